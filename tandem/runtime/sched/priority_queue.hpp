// tandem/runtime/sched/priority_queue.hpp: ready tasks by priority, in constant time while few priorities are alive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// A queue of tasks, linked through `Task::next`: the highest priority first; among equals in the order of `push_back`, with
/// `push_front` going before. Not thread-safe: its owner locks.
///
/// One bucket per priority that is present, sorted, the highest last. Tasks leave from the highest bucket only, so a bucket that
/// empties is always the last one, and no empty bucket exists. Push: a binary search among the priorities present (none when it
/// is the highest); pop: constant. Allocates only when more priorities are present than ever before.
class PriorityQueue {
 public:
  static constexpr std::int32_t kNoPriority = std::numeric_limits<std::int32_t>::min();

  explicit PriorityQueue(bool by_priority = true) : by_priority_(by_priority) { buckets_.reserve(64); }

  /// The priority by which it stands.
  std::int32_t push_back(Task* task) {
    Bucket& bucket = bucket_for(task);
    task->next = nullptr;
    if (bucket.tail == nullptr) bucket.head = task;
    else bucket.tail->next = task;
    bucket.tail = task;
    ++size_;
    return bucket.priority;
  }

  void push_front(Task* task) {
    Bucket& bucket = bucket_for(task);
    task->next = bucket.head;
    bucket.head = task;
    if (bucket.tail == nullptr) bucket.tail = task;
    ++size_;
  }

  /// The most urgent task, or null.
  Task* pop() noexcept {
    if (buckets_.empty()) return nullptr;
    Bucket& bucket = buckets_.back();
    Task* task = bucket.head;
    bucket.head = task->next;
    --size_;
    if (bucket.head == nullptr) buckets_.pop_back();
    else __builtin_prefetch(bucket.head);
    return task;
  }

  /// Of the first `most` tasks of the highest priority that with the least `key(task)`, the first among equals. Null when empty.
  template <class Key>
  Task* pop_least(std::size_t most, const Key& key) {
    if (buckets_.empty()) return nullptr;
    Bucket& bucket = buckets_.back();
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
  /// Of the task that `pop` would give; `kNoPriority` when empty.
  std::int32_t top_priority() const noexcept { return buckets_.empty() ? kNoPriority : buckets_.back().priority; }

  /// Whether the buckets are as stated above, and hold `size` tasks. Walks everything.
  bool check_invariants() const noexcept {
    std::size_t tasks = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const Bucket& bucket = buckets_[i];
      if (bucket.head == nullptr || (i > 0 && buckets_[i - 1].priority >= bucket.priority)) return false;
      const Task* last = nullptr;
      for (const Task* task = bucket.head; task != nullptr; task = task->next) {
        if (++tasks > size_ || (by_priority_ && task->priority != bucket.priority)) return false;
        last = task;
      }
      if (last != bucket.tail) return false;
    }
    return tasks == size_;
  }

 private:
  struct Bucket {
    std::int32_t priority = 0;
    Task* head = nullptr;
    Task* tail = nullptr;
  };

  Bucket& bucket_for(const Task* task) {
    const std::int32_t priority = by_priority_ ? task->priority : 0;
    if (buckets_.empty() || buckets_.back().priority < priority) return buckets_.emplace_back(Bucket{priority, nullptr, nullptr});
    if (buckets_.back().priority == priority) return buckets_.back();
    auto at = std::lower_bound(buckets_.begin(), buckets_.end(), priority,
                               [](const Bucket& bucket, std::int32_t p) { return bucket.priority < p; });
    if (at->priority != priority) at = buckets_.insert(at, Bucket{priority, nullptr, nullptr});
    return *at;
  }

  std::vector<Bucket> buckets_;
  std::size_t size_ = 0;
  bool by_priority_;
};

}  // namespace tandem::runtime
