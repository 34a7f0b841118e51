// tandem/runtime/wait/held_accesses.hpp: the accesses that the application holds, and the tasks that wait for them.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

struct ApplicationAccess;

/// The accesses that the application holds. Only the submitting thread can release them, so a wait of this thread for a task that
/// comes after one of them can never end: it is refused.
///
/// Threads: the submitting thread. It walks the successors of held accesses while workers run. None of these tasks has begun, and
/// only this thread adds to their lists, so the lists do not change. Cost: nothing while no access is held; else one step per
/// task that waits for one.
class HeldAccesses {
 public:
  void add(ApplicationAccess& access) { held_.push_back(&access); }
  void remove(ApplicationAccess& access) noexcept { std::erase(held_, &access); }
  bool any() const noexcept { return !held_.empty(); }

  /// The held access that `task`, which has not begun, waits for, directly or not; or null.
  const ApplicationAccess* before(const Task& task) const;
  /// So many tasks cannot end before the application releases an access, the accesses included.
  std::uint64_t blocked_count() const;

 private:
  std::vector<ApplicationAccess*> held_;
};

}  // namespace tandem::runtime
