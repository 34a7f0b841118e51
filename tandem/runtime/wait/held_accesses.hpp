// tandem/runtime/wait/held_accesses.hpp: the accesses that the application holds, and the tasks that wait for them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

struct ApplicationAccess;

/// The accesses that the application holds. Only the submitting thread can release them, so a wait of this thread for a
/// task that comes after one of them can never end: it is refused.
///
/// Held accesses also keep the memory of their data, if it has a budget: a task that waits for that memory waits for
/// the release (`Room::blocked`).
///
/// Threads: the submitting thread. It walks the successors of held accesses, and of blocked tasks, while workers run.
/// Only this thread adds to their lists. A blocked task may get memory, run and end meanwhile; the walk then stops
/// there (`visit_successors`). Cost: nothing while no access is held; else one step per task that waits for one.
class HeldAccesses {
 public:
  void add(ApplicationAccess& access) { held_.push_back(&access); }
  /// Removes an access. False: it was not held.
  bool remove(ApplicationAccess& access) noexcept { return std::erase(held_, &access) != 0; }
  bool any() const noexcept { return !held_.empty(); }

  /// The held access for which `task`, which has not begun, waits, directly or not; or null.
  const ApplicationAccess* before(const Task& task) const;
  /// Number of tasks that cannot end before the application releases an access, the accesses included. `blocked`: tasks
  /// that wait for memory of accesses.
  std::uint64_t blocked_count(std::span<const Task* const> blocked) const;
  /// Whether `task`, which has not begun, is one of `tasks`, or waits for one of them, directly or not. None of `tasks`
  /// begins before the application releases an access.
  static bool waits_for(const Task& task, std::span<const Task* const> tasks);
  /// Text for messages: which data is held, and since which line.
  std::string described() const;

 private:
  std::vector<ApplicationAccess*> held_;
};

}  // namespace tandem::runtime
