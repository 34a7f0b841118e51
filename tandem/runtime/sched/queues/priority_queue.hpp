// tandem/runtime/sched/queues/priority_queue.hpp: ready tasks by priority, in constant time while few priorities are
// alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "tandem/runtime/sched/queues/highest_first.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// A queue of tasks, linked through `Task::next`: the highest priority first, among equals in the order of `push_back`;
/// `push_front` puts a task before its equals. Not thread-safe: its owner locks.
///
/// One bucket per priority that is present. Tasks leave from the highest bucket only, so the bucket that empties is
/// always that one, and no empty bucket exists. Push and pop cost what `HighestFirst` says: constant time for the
/// highest priority.
class PriorityQueue {
 public:
  static constexpr std::int32_t kNoPriority = std::numeric_limits<std::int32_t>::min();

  explicit PriorityQueue(bool by_priority = true) : by_priority_(by_priority) {}

  /// Appends a task; returns the priority under which it is stored.
  std::int32_t push_back(Task* task) {
    const std::int32_t priority = priority_of(*task);
    Bucket& bucket = buckets_[priority];
    task->next = nullptr;
    if (bucket.tail == nullptr) bucket.head = task;
    else bucket.tail->next = task;
    bucket.tail = task;
    ++size_;
    return priority;
  }

  void push_front(Task* task) {
    Bucket& bucket = buckets_[priority_of(*task)];
    task->next = bucket.head;
    bucket.head = task;
    if (bucket.tail == nullptr) bucket.tail = task;
    ++size_;
  }

  /// Removes the most urgent task; null when empty.
  Task* pop() noexcept {
    if (buckets_.empty()) return nullptr;
    Bucket& bucket = buckets_.top();
    Task* task = bucket.head;
    bucket.head = task->next;
    --size_;
    if (bucket.head == nullptr) buckets_.pop_top();
    else __builtin_prefetch(bucket.head);
    return task;
  }

  /// Removes the task with the least `key(task)` among the first `most` of the highest priority, the first among
  /// equals. Null when empty.
  template <class Key>
  Task* pop_least(std::size_t most, const Key& key) {
    if (buckets_.empty()) return nullptr;
    Bucket& bucket = buckets_.top();
    Task* before_least = nullptr;  // null: the head
    auto least = key(*bucket.head);
    Task* before = bucket.head;
    for (std::size_t looked = 1; looked < most && before->next != nullptr; ++looked, before = before->next) {
      const auto here = key(*before->next);
      if (!(here < least)) continue;
      least = here;
      before_least = before;
    }
    if (before_least == nullptr) return pop();
    Task* const task = before_least->next;
    before_least->next = task->next;
    if (bucket.tail == task) bucket.tail = before_least;
    --size_;
    return task;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// Priority of the task that `pop` would return; `kNoPriority` when empty.
  std::int32_t top_priority() const noexcept { return buckets_.empty() ? kNoPriority : buckets_.top_priority(); }

  /// Whether the buckets are as stated above, and hold `size` tasks. Walks everything.
  bool check_invariants() const noexcept {
    std::size_t tasks = 0;
    bool is_sound = buckets_.check_invariants();
    buckets_.for_each([&](std::int32_t priority, const Bucket& bucket) {
      is_sound = is_sound && bucket.head != nullptr;
      const Task* last = nullptr;
      for (const Task* task = bucket.head; is_sound && task != nullptr; task = task->next) {
        is_sound = ++tasks <= size_ && (!by_priority_ || task->priority == priority);
        last = task;
      }
      is_sound = is_sound && last == bucket.tail;
    });
    return is_sound && tasks == size_;
  }

 private:
  struct Bucket {
    Task* head = nullptr;
    Task* tail = nullptr;
  };

  std::int32_t priority_of(const Task& task) const noexcept { return by_priority_ ? task.priority : 0; }

  HighestFirst<Bucket> buckets_;
  std::size_t size_ = 0;
  bool by_priority_;
};

}  // namespace tandem::runtime
