// tandem/runtime/sched/contention/memory_gate.hpp: how many memory-bound tasks run while urgent messages are under way.
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/runtime/sched/queues/priority_queue.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Limits that a model of memory contention gives for this machine.
struct MemoryGateRule {
  unsigned most = UINT_MAX;                  ///< memory-bound tasks at once: so many saturate the bus
  unsigned most_beside_messages = UINT_MAX;  ///< memory-bound tasks beside an urgent message; from 1 to `most`
  double least_bytes_per_ns = 0;             ///< a task that moves at least this much is memory-bound
  double network_bytes_per_ns = 0;           ///< rate of the network alone; 0: messages do not matter

  /// Whether the rule limits so many workers.
  bool limits(unsigned workers) const noexcept { return most_beside_messages < workers; }
  /// Whether a message of so many bytes takes long enough to limit tasks for it.
  bool is_long(std::size_t bytes) const noexcept {
    return network_bytes_per_ns > 0 && static_cast<double>(bytes) >= network_bytes_per_ns * 100'000;
  }
};

/// Memory-bound tasks slow down each other and the network (thesis, chapters 5 and 6). Once the bus is saturated, one
/// more gains nothing and delays urgent tasks; and a long message needs a part of the bus. So only some of them run at
/// once, the most urgent first: the limit is `MemoryGateRule::most`, or `most_beside_messages` while a long message is
/// under way that is as urgent as the task. The others wait here, and their workers run what needs no memory, or rest.
///
/// The gate has tasks that any CPU worker may run: those that all workers share, and those that a `PlacingPolicy` has
/// given to one of several equal workers (`Placer::may_move`). A worker with room takes the most urgent task of both.
/// Tasks of a `PullingPolicy` are limited when the policy gives them away.
///
/// A worker is *inside* from the memory-bound task that it takes until it takes another kind or rests. It asks for each
/// task that it has taken. If it is inside and not one of too many, or if there is room, it runs the task, or a more
/// urgent one that waits here; else its task waits here.
///
/// Progress. A task waits here only while as many workers are inside as its limit says, at least one. A worker that
/// leaves runs a waiting task, or hands one on to another worker, if there is room. The end of a message releases as
/// many tasks as there is room for. So when no worker is inside, nothing waits.
///
/// Threads: any. One lock guards all decisions. A worker takes it when it goes in or out, and while something waits or
/// a message is under way.
class MemoryGate {
 public:
  /// Sets the limits before the workers start.
  void set(const MemoryGateRule& rule) { rule_ = rule; }
  const MemoryGateRule& rule() const noexcept { return rule_; }

  /// A long message begins or ends, for which tasks of this priority wait. The end returns the released tasks, linked
  /// by `Task::next`.
  void message_begins(std::int32_t priority);
  [[nodiscard]] Task* message_ends(std::int32_t priority);

  /// The most memory-bound tasks of this priority that may run now. Any thread, without the lock.
  unsigned limit(std::int32_t priority) const noexcept {
    return priority <= urgency_.load(std::memory_order_relaxed) ? rule_.most_beside_messages : rule_.most;
  }
  /// Whether a long message is under way.
  bool has_messages() const noexcept { return urgency_.load(std::memory_order_relaxed) != kNoMessage; }

  /// What a worker must do.
  struct Answer {
    Task* run = nullptr;      ///< task to run; null: look for another one, if `waits`
    Task* hand_on = nullptr;  ///< task for another worker
    bool waits = false;       ///< the task waits here
  };
  /// Called when a worker has taken `task`, or found none (null). `inside` is the worker's own. `stays`: no other
  /// worker may run the task, so it is not handed on; it is not memory-bound.
  Answer ask(Task* task, bool is_memory_bound, bool& inside, bool stays = false) {
    if (is_memory_bound == inside && !is_busy_.load(std::memory_order_relaxed)) [[likely]] return {.run = task};
    return ask_slowly(task, is_memory_bound, inside, !stays);
  }
  /// Called when a worker rests. Returns a task to hand on, or null.
  [[nodiscard]] Task* leave(bool& inside) {
    return inside ? ask_slowly(nullptr, false, inside, false).hand_on : nullptr;
  }

  /// Number of tasks that had to wait here.
  std::uint64_t delayed() const noexcept { return delayed_.load(std::memory_order_relaxed); }
  /// Checks, when nothing runs, that no message is under way and nothing waits.
  bool check_invariants() const;

 private:
  Answer ask_slowly(Task* task, bool is_memory_bound, bool& inside, bool takes = true);
  bool has_room(std::int32_t priority) const noexcept { return inside_ < limit(priority); }
  void note_state();

  static constexpr std::int64_t kNoMessage = INT64_MIN;

  MemoryGateRule rule_;
  std::atomic<bool> is_busy_{false};  ///< something waits, or a message is under way. A hint; written under the lock
  std::atomic<std::int64_t> urgency_{kNoMessage};  ///< the greatest priority among the messages. Written under the lock
  std::atomic<std::uint64_t> delayed_{0};
  mutable base::SpinLock lock_;         ///< guards the members below
  std::vector<std::int32_t> messages_;  ///< priorities of the messages under way
  unsigned inside_ = 0;                 ///< workers that are inside
  PriorityQueue waiting_;
};

}  // namespace tandem::runtime
