// tandem/runtime/sched/placing/expected_tasks.hpp: urgent tasks that messages on their way will soon make ready.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "tandem/base/spin_lock.hpp"

namespace tandem::runtime {

/// Urgency and expected time of tasks that a network will make ready. A worker that would begin a long and less urgent
/// task may rather wait for one of them (`Policy::waits`): one worker at a time, and once for each task.
///
/// Any thread. While nothing is expected the workers read one word.
class ExpectedTasks {
 public:
  struct Expected {
    std::uint64_t number = 0;    ///< never 0
    std::int32_t priority = 0;
    std::int64_t due_ns = 0;
    bool waited_for = false;
  };

  /// Adds a task. The caller calls `remove` with the number once the task is ready, or will not be. An entry that is
  /// not removed is forgotten some time after it was due.
  std::uint64_t add(std::int32_t priority, std::int64_t due_ns, std::int64_t now_ns) {
    const std::lock_guard guard(lock_);
    std::erase_if(expected_, [now_ns](const Expected& old) { return old.due_ns + kLateNs < now_ns; });
    expected_.push_back({++last_number_, priority, due_ns, false});
    count_.store(expected_.size(), std::memory_order_relaxed);
    return last_number_;
  }

  void remove(std::uint64_t number) {
    const std::lock_guard guard(lock_);
    std::erase_if(expected_, [number](const Expected& known) { return known.number == number; });
    count_.store(expected_.size(), std::memory_order_relaxed);
  }

  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

  bool contains(std::uint64_t number) const {
    const std::lock_guard guard(lock_);
    return std::any_of(expected_.begin(), expected_.end(),
                       [number](const Expected& known) { return known.number == number; });
  }

  /// Claims the earliest one for which `waits(expected)` is true. The caller waits for it until it calls `unclaim`; no
  /// other worker waits meanwhile.
  template <class Waits>
  std::optional<Expected> claim(Waits waits) {
    const std::lock_guard guard(lock_);
    if (claimed_) return {};
    Expected* first = nullptr;
    for (Expected& known : expected_)
      if (!known.waited_for && (first == nullptr || known.due_ns < first->due_ns) && waits(known)) first = &known;
    if (first == nullptr) return {};
    first->waited_for = claimed_ = true;
    return *first;
  }
  void unclaim() {
    const std::lock_guard guard(lock_);
    claimed_ = false;
  }

 private:
  static constexpr std::int64_t kLateNs = 1'000'000'000;

  mutable base::SpinLock lock_;
  std::vector<Expected> expected_;
  std::uint64_t last_number_ = 0;
  bool claimed_ = false;
  std::atomic<std::size_t> count_{0};
};

}  // namespace tandem::runtime
