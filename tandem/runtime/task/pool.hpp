// tandem/runtime/task/pool.hpp: the memory of tasks and extra links.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "tandem/base/inbox.hpp"
#include "tandem/base/large_memory.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// A block of edges beyond one per access.
struct LinkChunk {
  static constexpr unsigned kLinks = 15;
  LinkChunk* next = nullptr;
  unsigned used = 0;
  Link links[kLinks];
};

/// The memory of tasks. Belongs to the submitting thread, which alone takes and recycles; any thread may hand finished
/// tasks back (`take_back`), lock-free. Memory of a task stays a task's memory until the pool is destroyed, so that a
/// stale `TaskRef` may be read.
///
/// Cost: `take` is a pop from a list of the submitter's own; the steady state allocates nothing.
class TaskPool {
 public:
  static constexpr std::size_t kClassBytes = 64;
  static constexpr std::size_t kSmallClasses = 65;  ///< up to 4 KiB
  static constexpr std::size_t kLargeClasses = 5;   ///< from 8 KiB on, each twice as large as the one before
  static constexpr std::size_t kClasses = kSmallClasses + kLargeClasses;
  static_assert(kMaxTaskBytes == kClassBytes * (kSmallClasses - 1));
  static_assert(Task::value_offset(kMaxAccesses, 64) + kMaxTaskBytes <= kMaxTaskBytes << kLargeClasses);

  TaskPool() = default;
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  /// Takes a task with room for `bytes` in all, at most those of the largest class. It has the id of its former use,
  /// and a sealed list of successors.
  Task* take(std::size_t bytes) {
    std::size_t size_class = (bytes + kClassBytes - 1) / kClassBytes;
    if (__builtin_expect(size_class >= kSmallClasses, 0)) size_class = large_class(bytes);
    Task*& free = free_[size_class];
    if (free == nullptr) refill(size_class);
    Task* task = free;
    free = task->next;
    fetch(free);
    return task;
  }

  /// Bytes of the tasks of a class.
  static constexpr std::size_t bytes_of_class(std::size_t size_class) noexcept {
    return size_class < kSmallClasses ? size_class * kClassBytes : kMaxTaskBytes << (size_class - kSmallClasses + 1);
  }

  /// Recycles a finished task at once. By the submitting thread.
  void recycle(Task* task);

  /// Hands over a chain of finished tasks, linked by `next`. Any thread.
  void take_back(Task* first, Task* last) noexcept { returned_.put(first, last); }

  /// Recycles the tasks that were handed back. By the submitting thread. Returns their number.
  std::size_t collect();

  /// An extra link for `task`.
  Link* extra_link(Task& task);
  TaskExtra& extra_of(Task& task);
  /// Takes back the extra links of a recorded task, which is never recycled. Its predecessors have ended.
  void release_links(Task& task) noexcept {
    if (task.extra != nullptr) free_links(*task.extra);
  }
  /// Takes back the result of `extra_of` from a task whose memory is not the pool's and is about to be freed.
  void release_extra(Task& task) noexcept;

  /// Calls `visit(Task&)` for each task that the pool has ever made, in use or not. By the submitting thread.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& slab : slabs_)
      for (std::size_t i = 0; i < slab.count; ++i)
        visit(*reinterpret_cast<Task*>(slab.memory.get() + i * slab.task_bytes));
  }

  std::size_t bytes() const noexcept { return bytes_; }
  /// Whether free tasks have ended, are in the list of their size, and have no links, and whether no list has a cycle.
  /// By the submitting thread.
  bool check_invariants() const noexcept;
  /// Number of `TaskExtra`, in use or not.
  std::size_t extra_count() const noexcept { return extras_.size(); }

 private:
  struct Slab {
    std::unique_ptr<std::byte, base::FreeLarge> memory;
    std::size_t task_bytes;
    std::size_t count;     ///< of tasks that were made
    std::size_t capacity;  ///< in tasks
  };

  /// Prefetches the lines of the next task, which a worker has written last.
  static void fetch(const Task* task) noexcept {
    __builtin_prefetch(task, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(task) + 64, 1);
  }
  static std::size_t large_class(std::size_t bytes) noexcept;
  void refill(std::size_t size_class);
  void make(std::size_t size_class);
  void free_links(TaskExtra& extra) noexcept;
  void clear(TaskExtra& extra) noexcept;

  std::array<Task*, kClasses> free_{};
  Task* handed_back_ = nullptr;  ///< taken from `returned_`, and not processed yet
  LinkChunk* free_links_ = nullptr;
  std::vector<std::unique_ptr<LinkChunk[]>> link_slabs_;
  std::vector<Slab> slabs_;
  std::array<std::size_t, kClasses> open_{};  ///< 1 + the slab with room for more tasks of the class; 0: none
  std::size_t made_bytes_ = 0;                ///< of tasks
  std::size_t link_chunks_ = 0;
  std::vector<std::unique_ptr<TaskExtra>> extras_;
  std::vector<TaskExtra*> free_extras_;
  std::size_t bytes_ = 0;
  alignas(64) base::Inbox<Task> returned_;
};

}  // namespace tandem::runtime
