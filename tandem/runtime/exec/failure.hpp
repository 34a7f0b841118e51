// tandem/runtime/exec/failure.hpp: kernels that threw, what was cancelled because of them, and what wait() throws.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/runtime/data/poison.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::runtime {

/// The failures of a runtime. Thread-safe; the mutex is taken on failures only.
///
/// The first wait that meets a failure throws it. A later wait throws it again only if it cancels tasks that were
/// submitted after the first wait. Positions in the flow decide both, never dates, so every schedule throws the same.
///
/// Life of a failure. It is known until a wait has reported it, and longer while data has no value because of it: each
/// wait has failures that nothing names any more forgotten (`forget_unnamed`). A report looks only at failures that are
/// new or have cancelled tasks since the last one.
class FailureLog {
 public:
  FailureLog();

  FlowFailure* add(TaskId id, std::exception_ptr exception, std::string description) {
    return add(id, std::move(exception), std::move(description), false);
  }
  /// Adds a failure that is never forgotten.
  FlowFailure* add_for_good(TaskId id, std::exception_ptr exception, std::string description) {
    return add(id, std::move(exception), std::move(description), true);
  }
  /// The failure at position `id`; when it is not known, adds it by `make(description)`, which returns the exception.
  FlowFailure* known_or(TaskId id, const std::function<std::exception_ptr(std::string& description)>& make);
  /// The failure at position `id`, or null.
  FlowFailure* find(TaskId id);
  /// Counts that the task at position `task` did not run because of `cause`.
  void cancelled(TaskId task, FlowFailure& cause);
  /// As `cancelled`, for a task that may lie behind the end of a cancelled flow: it counts unless `settle` excludes it
  /// before the next report.
  void cancelled_in_doubt(TaskId task, FlowFailure& cause);
  /// Sets the end of the flow: position `last`.
  void settle(TaskId last);

  /// Notes what made the task at position `task` fail or be cancelled; of several causes the earliest counts. Until the
  /// next report, tasks that the user ordered after it and threads that wait for it can ask for the cause.
  void note_cause(TaskId task, FlowFailure& cause);
  FlowFailure* cause_of(TaskId task);

  /// The failure of data without a value that a cancelled flow should have written. Its position is behind all other
  /// failures; a wait throws it when it cancels a task.
  FlowFailure& lost() noexcept { return lost_; }

  /// False if nothing failed or was cancelled since the last report.
  bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  /// Notes that a wait after position `until` throws `failure`.
  void note_thrown(FlowFailure& failure, TaskId until);
  /// What a wait at position `until` throws, with nothing under way: the earliest failure that is to be thrown, or
  /// null. All then count as thrown.
  struct Report {
    FlowFailure* failure = nullptr;
    std::size_t failed = 0;
    std::size_t cancelled = 0;
    /// Text for the log: the failure, and how many tasks failed and were cancelled. `failure` must not be null.
    std::string text() const;
  };
  Report take_report(TaskId until);

  /// Forgets reported failures that nothing names, once there are many. Nothing is under way. `visit_named(visit)`
  /// calls `visit` for each failure, or null, that some of `data_count` data names; it is called so seldom that this
  /// costs a few steps for each failure.
  template <class VisitNamed>
  void forget_unnamed(std::size_t data_count, const VisitNamed& visit_named) {
    const std::lock_guard guard(mutex_);
    if (failures_.size() < most_failures_) return;
    looked_at_ += data_count;
    visit_named([](FlowFailure* failure) {
      if (failure != nullptr) failure->is_named = true;
    });
    forget_others();
    most_failures_ = kFew + 2 * failures_.size() + data_count / 16;
  }
  std::size_t size() const {
    const std::lock_guard guard(mutex_);
    return failures_.size();
  }
  /// Number of failures and data that reports and `forget_unnamed` looked at; for tests of the cost.
  std::uint64_t looked_at() const {
    const std::lock_guard guard(mutex_);
    return looked_at_;
  }

 private:
  static constexpr TaskId kLost = UINT64_MAX - 1;  ///< the position of no task

  static constexpr std::size_t kFew = 64;

  FlowFailure* add(TaskId id, std::exception_ptr exception, std::string description, bool stays);
  void count(TaskId task, FlowFailure& cause);
  void note_new(FlowFailure& failure);
  void forget_others();

  mutable std::mutex mutex_;  ///< guards all members except `any_`
  FlowFailure lost_;
  std::multimap<TaskId, FlowFailure> failures_;  ///< failures by position
  std::vector<FlowFailure*> new_;                ///< failures with `is_new`
  std::size_t most_failures_ = kFew;             ///< number of failures at which `forget_unnamed` looks at them
  std::uint64_t looked_at_ = 0;
  std::unordered_map<TaskId, FlowFailure*> causes_;
  std::vector<std::pair<TaskId, FlowFailure*>> doubts_;
  std::size_t failed_ = 0;     ///< tasks that failed since the last report
  TaskId reported_until_ = 0;
  std::size_t cancelled_ = 0;
  std::atomic<bool> any_{false};
};

}  // namespace tandem::runtime
