// tandem/runtime/sched/memory_gate.hpp: how many memory-bound tasks run while urgent messages are under way.
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/runtime/sched/priority_queue.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// What a model of memory contention says of this machine to the gate.
struct MemoryGateRule {
  unsigned most = UINT_MAX;                  ///< memory-bound tasks at once: so many fill the bus
  unsigned most_beside_messages = UINT_MAX;  ///< the same beside an urgent message; from 1 to `most`
  double least_bytes_per_ns = 0;             ///< a task that moves so much is memory-bound
  double network_bytes_per_ns = 0;           ///< alone; 0: messages do not matter

  /// It matters where so many workers are.
  bool limits(unsigned workers) const noexcept { return most_beside_messages < workers; }
  /// A message of so many bytes takes long enough to be worth it.
  bool is_long(std::size_t bytes) const noexcept {
    return network_bytes_per_ns > 0 && static_cast<double>(bytes) >= network_bytes_per_ns * 100'000;
  }
};

/// Memory-bound tasks slow down each other and the network (thesis, chapters 5 and 6). Beyond as many as fill the bus, one more gains nothing, and
/// delays those that are urgent; and a long message needs a part of the bus. So only some of them run at once, the most urgent first: the limit is
/// `MemoryGateRule::most`, or `most_beside_messages` while a long message is under way that is as urgent as the task. The others wait here, and their
/// workers run what needs no memory, or rest.
///
/// Tasks are here that any CPU worker may run: those that all share, and those that a `PlacingPolicy` has given to one of several alike
/// (`Placer::may_move`). The worker that has room takes what is most urgent of both. Tasks of a `PullingPolicy` are limited when they are given away.
///
/// A worker is *inside* from the memory-bound task that it takes until it takes another kind or rests. For each task that it has taken it asks:
/// if it is inside and not one of too many, or if there is room, it runs the task, or a more urgent one that waits here; else its task waits here.
///
/// Progress. A task waits here only while as many workers are inside as its limit says, at least one. A worker that leaves runs a task that waits, or
/// hands one on to another worker, if there is room; a message that ends lets go of as many as there is room for. So when no worker is inside, nothing
/// waits.
///
/// Threads: any. All decisions are under one lock. A worker takes it when it goes in or out, and while something waits or a message is under way.
class MemoryGate {
 public:
  /// Before the workers start.
  void set(const MemoryGateRule& rule) { rule_ = rule; }
  const MemoryGateRule& rule() const noexcept { return rule_; }

  /// A long message begins for which tasks of this priority wait, and ends. The end returns tasks that wait no longer, linked by `Task::next`.
  void message_begins(std::int32_t priority);
  [[nodiscard]] Task* message_ends(std::int32_t priority);

  /// So many memory-bound tasks of this priority may run at once now. Any thread, without the lock.
  unsigned limit(std::int32_t priority) const noexcept {
    return priority <= urgency_.load(std::memory_order_relaxed) ? rule_.most_beside_messages : rule_.most;
  }
  /// A long message is under way.
  bool has_messages() const noexcept { return urgency_.load(std::memory_order_relaxed) != kNoMessage; }

  /// What a worker does.
  struct Answer {
    Task* run = nullptr;      ///< null: look for another one, if `waits`
    Task* hand_on = nullptr;  ///< goes to another worker
    bool waits = false;       ///< the task waits here
  };
  /// A worker has taken `task`, or found none (null). `inside` is the worker's own.
  /// `stays`: no other worker may run the task, so it is not handed on; it is not memory-bound.
  Answer ask(Task* task, bool is_memory_bound, bool& inside, bool stays = false) {
    if (is_memory_bound == inside && !is_busy_.load(std::memory_order_relaxed)) [[likely]] return {.run = task};
    return ask_slowly(task, is_memory_bound, inside, !stays);
  }
  /// A worker rests. What it hands on, or null.
  [[nodiscard]] Task* leave(bool& inside) { return inside ? ask_slowly(nullptr, false, inside, false).hand_on : nullptr; }

  /// How often a task has begun to wait here.
  std::uint64_t delayed() const noexcept { return delayed_.load(std::memory_order_relaxed); }
  /// No message is under way, and nothing waits. When nothing runs.
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
  mutable base::SpinLock lock_;         ///< guards what follows
  std::vector<std::int32_t> messages_;  ///< priorities of those under way
  unsigned inside_ = 0;                 ///< workers
  PriorityQueue waiting_;
};

}  // namespace tandem::runtime
