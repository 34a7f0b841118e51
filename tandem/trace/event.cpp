// tandem/trace/event.cpp: the names of values in events.
#include "tandem/trace/event.hpp"

namespace tandem::trace {

namespace {

template <class Enum, std::size_t N>
std::string_view look_up(const std::array<std::string_view, N>& names, Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : std::string_view("unknown");
}

constexpr bool every_type_stands_once_and_fits() {
  for (std::size_t i = 0; i < kEventSpecs; ++i) {
    const EventSpec& spec = spec_at(i);
    const auto number = static_cast<unsigned>(spec.type);
    if (number == 0 || number >= static_cast<unsigned>(Type::extended) || spec.name.empty() || spec.help.empty())
      return false;
    if (i > 0 && number <= static_cast<unsigned>(spec_at(i - 1).type)) return false;
  }
  return true;
}
static_assert(every_type_stands_once_and_fits());

}  // namespace

std::string_view name_of(Category category) noexcept {
  static constexpr std::array<std::string_view, kCategories> names{"about", "task", "sched", "worker", "data", "comm",
                                                                   "broadcast", "dist", "flow", "tracer", "user"};
  return look_up(names, category);
}

std::string_view name_of(ActorKind kind) noexcept {
  static constexpr std::array<std::string_view, 8> names{"catalogue", "submitter", "worker",  "progress",
                                                         "others",    "flusher",   "user",    "callbacks"};
  return look_up(names, kind);
}

std::string_view name_of(WorkerState state) noexcept {
  static constexpr std::array<std::string_view, kWorkerStates> names{"absent",   "scheduling",  "polling", "sleeping",
                                                                     "fetching", "progressing", "holding"};
  return look_up(names, state);
}

std::string_view name_of(StagingState state) noexcept {
  static constexpr std::array<std::string_view, kStagingStates> names{"memory", "data", "done"};
  return look_up(names, state);
}

std::string_view name_of(ProgressState state) noexcept {
  static constexpr std::array<std::string_view, 3> names{"working", "polling", "sleeping"};
  return look_up(names, state);
}

std::string_view name_of(NameKind kind) noexcept {
  static constexpr std::array<std::string_view, 7> names{"mark", "counter", "span", "node", "channel", "any", "energy"};
  return look_up(names, kind);
}

}  // namespace tandem::trace
