// tandem/runtime/sched/queues/task_queue.hpp: one queue of ready tasks, and the queue of tasks that only some workers
// can run.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/base/inbox.hpp"
#include "tandem/base/pipe.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/runtime/sched/queues/priority_queue.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// A queue of `ReadyQueues`, which states its protocol.
struct alignas(64) TaskQueue {
  /// Priority of the task last put into the pipe; used by the submitting thread.
  std::int32_t put_priority = PriorityQueue::kNoPriority;
  base::Pipe<Task> submitted;
  alignas(64) base::Inbox<Task> inbox;
  std::atomic<bool> priority_changes{false};  ///< the pipe has another priority
  alignas(64) base::SpinLock lock;
  PriorityQueue tasks;
  /// Priority of the task last taken from the pipe; under the lock.
  std::int32_t submitted_priority = PriorityQueue::kNoPriority;
  std::atomic<std::int32_t> top_priority{PriorityQueue::kNoPriority};  ///< written under the lock
  std::atomic<std::uint32_t> size{0};  ///< written under the lock; seq_cst, see "Sleeping"

  explicit TaskQueue(bool by_priority) : tasks(by_priority) {}
  bool has_new() const noexcept { return !submitted.empty() || !inbox.empty(); }
  bool looks_new() const noexcept { return !submitted.looks_empty() || !inbox.looks_empty(); }
  bool looks_filled() const noexcept { return looks_new() || size.load(std::memory_order_relaxed) != 0; }
  bool must_look() const noexcept {
    return tasks.empty() || tasks.top_priority() < submitted_priority ||
           priority_changes.load(std::memory_order_relaxed) || !inbox.looks_empty();
  }
};

/// A set of workers, and the tasks that only these can run. Its queue is filled through its inbox.
struct WorkerGroup {
  TaskQueue queue;
  const std::vector<unsigned> members;
  const bool staged;  ///< for tasks that have memory on the members' node: each member takes them before others
  /// Workers without a device for tasks that devices among the members could not run; null: there are none.
  WorkerGroup* processors = nullptr;

  WorkerGroup(bool by_priority, std::vector<unsigned> workers, bool of_staged = false)
      : queue(by_priority), members(std::move(workers)), staged(of_staged) {}
};

}  // namespace tandem::runtime
