// tandem/runtime/wait/held_accesses.hpp: the accesses that the application holds, and the tasks that wait for them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

struct ApplicationAccess;

/// The accesses that the application holds. Only the submitting thread can release them, so a wait of this thread for a task that
/// comes after one of them can never end: it is refused.
///
/// They also keep the memory of their data, where it has a budget: who waits for that memory waits for the release (`Room::blocked`).
///
/// Threads: the submitting thread. It walks the successors of held accesses, and of blocked tasks, while workers run. Only this thread adds to their
/// lists. A blocked task may get memory, run and end meanwhile: then the walk stops there (`visit_successors`). Cost: nothing while no access is held;
/// else one step per task that waits for one.
class HeldAccesses {
 public:
  void add(ApplicationAccess& access) { held_.push_back(&access); }
  /// False: it was not held.
  bool remove(ApplicationAccess& access) noexcept { return std::erase(held_, &access) != 0; }
  bool any() const noexcept { return !held_.empty(); }

  /// The held access that `task`, which has not begun, waits for, directly or not; or null.
  const ApplicationAccess* before(const Task& task) const;
  /// So many tasks cannot end before the application releases an access, the accesses included. `blocked`: tasks that wait for memory of accesses.
  std::uint64_t blocked_count(std::span<const Task* const> blocked) const;
  /// Whether `task`, which has not begun, is one of `tasks`, which begin no sooner than the application releases an access, or waits for one of them,
  /// directly or not.
  static bool waits_for(const Task& task, std::span<const Task* const> tasks);
  /// Which data is held, and since which line, for messages.
  std::string described() const;

 private:
  std::vector<ApplicationAccess*> held_;
};

}  // namespace tandem::runtime
