// tandem/runtime/task/describe.cpp: names of tasks and data in messages for people.
#include "tandem/runtime/task/describe.hpp"

#include <fmt/format.h>

#include <string_view>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/task_number.hpp"

namespace tandem::runtime {

std::string describe(const SourceLine& where) {
  if (!where) return "an unknown line";
  std::string_view file = where.file;
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return fmt::format("{}:{}", file, where.line);
}

std::string name_of(const Task& task) {
  if (task.extra != nullptr && !task.extra->name.empty()) return task.extra->name;
  if (task.codelet != nullptr) return task.codelet->name;
  switch (task.kind) {
    case TaskKind::kernel: return "kernel";
    case TaskKind::join: return "join";
    case TaskKind::event: return "event";
    case TaskKind::application: return "acquire";
  }
  return "?";
}

std::string describe(const Task& task) {
  if (task.kind == TaskKind::application)  // not a task of the program
    return task.where ? fmt::format("acquire (at {})", describe(task.where)) : "acquire";
  const std::uint64_t number = TaskNumber::of(task.id);
  if (!task.where) return fmt::format("task {} '{}'", number, name_of(task));
  return fmt::format("task {} '{}' (submitted at {})", number, name_of(task), describe(task.where));
}

std::string describe_failure(const Task& task, std::string_view what) {
  constexpr unsigned most_named = 4;
  std::string text = fmt::format("{}: {}", describe(task), what);
  for (unsigned i = 0; i < task.access_count && i < most_named; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    const std::string_view mode = tandem::name_of(shown_mode(slot));
    text += fmt::format("{}{} ({})", i == 0 ? "; data: " : ", ", slot.handle()->name, mode);
  }
  if (task.access_count > most_named) text += fmt::format(", and {} more", task.access_count - most_named);
  return text;
}

std::string Handle::described() const {
  if (!registered_at) return fmt::format("data '{}'", name);
  return fmt::format("data '{}' (registered at {})", name, describe(registered_at));
}

}  // namespace tandem::runtime
