// tests/dist_flow/random_submit_task.hpp: the definition of `submit_task`, which random_submit_objects.cpp and
// random_submit_vectors.cpp compile.
#pragma once

#include <span>
#include <utility>

#include "random_submit.hpp"

namespace tandem::dist_test {

/// What a kernel got for one access, without its type.
struct View {
  std::span<const Word> seen;
  std::span<Word> written;   ///< empty: not writable, or an object
  Values* object = nullptr;  ///< a writable one
};
inline View view_of(std::span<const Word> view) { return {.seen = view, .written = {}}; }
inline View view_of(std::span<Word> view) { return {.seen = view, .written = view}; }
inline View view_of(const Values& view) { return {.seen = view, .written = {}}; }
inline View view_of(Values& view) { return {.seen = view, .written = {}, .object = &view}; }

/// The kernel of all tasks.
void run_kernel(const Operation& operation, std::size_t position, Runtime& rt, std::span<const View> views);

template <bool objects, class... Accesses>
void submit_next(Runtime& rt, const AllData<objects>& data, std::size_t position, const Operation& operation,
                 const Accesses&... accesses) {
  constexpr std::size_t index = sizeof...(accesses);
  if constexpr (index > 0) {
    if (index == operation.data.size()) {
      const auto kernel = [](const Operation* what, std::size_t at, Runtime* runtime, auto&&... views) {
        const View all[] = {view_of(views)...};
        run_kernel(*what, at, *runtime, all);
      };
      const auto submit = [&](const auto& codelet) {
        rt.submit({.priority = operation.priority, .on = operation.on}, codelet, &operation, position, &rt,
                  accesses...);
      };
      if constexpr (objects) return submit(Codelet("task", kernel));
      const auto everywhere = Codelet("task", kernel).also(DeviceKind::user, kernel);
      submit(position % 2 == 0 ? everywhere : everywhere.prefer_devices());
      return;
    }
  }
  if constexpr (index < kMostUses) {
    const auto& next = data[operation.data[index]];
    switch (operation.modes[index]) {
      case AccessMode::read: return submit_next<objects>(rt, data, position, operation, accesses..., read(next));
      case AccessMode::write: return submit_next<objects>(rt, data, position, operation, accesses..., write(next));
      case AccessMode::commute: return submit_next<objects>(rt, data, position, operation, accesses..., commute(next));
      case AccessMode::reduce: return submit_next<objects>(rt, data, position, operation, accesses..., reduce(next));
      default: return submit_next<objects>(rt, data, position, operation, accesses..., read_write(next));
    }
  }
}

template <bool objects>
void submit_task(Runtime& rt, const AllData<objects>& data, std::size_t position, const Operation& operation) {
  submit_next<objects>(rt, data, position, operation);
}

}  // namespace tandem::dist_test
