// tandem/runtime/exec/failure.cpp: the list of failures.
#include "tandem/runtime/exec/failure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace tandem::runtime {

FailureLog::FailureLog() {
  lost_.id = kLost;
  lost_.description =
      "data has no value, since the flow was cancelled before the task that was to write it; write it first";
  lost_.exception = std::make_exception_ptr(FlowCancelled(lost_.description));
}

FlowFailure* FailureLog::add(TaskId id, std::exception_ptr exception, std::string description, bool stays) {
  std::lock_guard guard(mutex_);
  FlowFailure& failure = failures_.emplace(id, FlowFailure{})->second;
  failure.id = id;
  failure.exception = std::move(exception);
  failure.description = std::move(description);
  failure.stays = stays;
  note_new(failure);
  ++failed_;
  any_.store(true, std::memory_order_release);
  return &failure;
}

void FailureLog::note_new(FlowFailure& failure) {
  if (&failure == &lost_ || std::exchange(failure.is_new, true)) return;
  new_.push_back(&failure);
}

FlowFailure* FailureLog::find(TaskId id) {
  if (id == kLost) return &lost_;
  std::lock_guard guard(mutex_);
  const auto first = failures_.lower_bound(id);
  return first != failures_.end() && first->first == id ? &first->second : nullptr;
}

FlowFailure* FailureLog::known_or(TaskId id, const std::function<std::exception_ptr(std::string&)>& make) {
  if (FlowFailure* known = find(id); known != nullptr) return known;
  std::string description;
  const std::exception_ptr exception = make(description);
  FlowFailure* failure = add(id, exception, std::move(description));
  std::lock_guard guard(mutex_);
  // Waits of other ranks have thrown it, so the wait of this rank at the same position has thrown it, too.
  if (id <= reported_until_) failure->thrown_until = reported_until_;
  return failure;
}

void FailureLog::cancelled(TaskId task, FlowFailure& cause) {
  std::lock_guard guard(mutex_);
  count(task, cause);
  any_.store(true, std::memory_order_release);
}

void FailureLog::count(TaskId task, FlowFailure& cause) {
  ++cancelled_;
  cause.last_cancelled = std::max(cause.last_cancelled, task);
  note_new(cause);
}

void FailureLog::cancelled_in_doubt(TaskId task, FlowFailure& cause) {
  std::lock_guard guard(mutex_);
  doubts_.emplace_back(task, &cause);
  any_.store(true, std::memory_order_release);
}

void FailureLog::settle(TaskId last) {
  std::lock_guard guard(mutex_);
  for (const auto& [task, cause] : std::exchange(doubts_, {}))
    if (task <= last) count(task, *cause);
}

void FailureLog::note_cause(TaskId task, FlowFailure& cause) {
  std::lock_guard guard(mutex_);
  FlowFailure*& known = causes_[task];
  if (known == nullptr || cause.id < known->id) known = &cause;
}

FlowFailure* FailureLog::cause_of(TaskId task) {
  std::lock_guard guard(mutex_);
  const auto at = causes_.find(task);
  return at == causes_.end() ? nullptr : at->second;
}

void FailureLog::note_thrown(FlowFailure& failure, TaskId until) {
  std::lock_guard guard(mutex_);
  failure.thrown_until = until;
}

std::string FailureLog::Report::text() const {
  std::string out = failure->description;
  if (failed > 1) out += fmt::format("; {} tasks failed", failed);
  if (cancelled > 0)
    out +=
        fmt::format("; {} {} on {} {} cancelled", cancelled, cancelled == 1 ? "task that depends" : "tasks that depend",
                    failed > 1 ? "them" : "it", cancelled == 1 ? "was" : "were");
  return out;
}

FailureLog::Report FailureLog::take_report(TaskId until) {
  settle(until);
  std::lock_guard guard(mutex_);
  Report report;
  report.failed = std::exchange(failed_, 0);
  report.cancelled = std::exchange(cancelled_, 0);
  causes_ = {};
  // A failure that is not new counts as thrown by every report since it was reported.
  const TaskId known_until = std::exchange(reported_until_, until);
  looked_at_ += new_.size();
  for (FlowFailure* const failure : new_) {
    const bool unreported =
        failure->thrown_until == 0 || failure->last_cancelled > std::max(failure->thrown_until, known_until);
    if (unreported && (report.failure == nullptr || failure->id < report.failure->id)) report.failure = failure;
    failure->thrown_until = until;
    failure->is_new = false;
  }
  new_ = {};
  if (report.failure == nullptr && lost_.last_cancelled > lost_.thrown_until) report.failure = &lost_;
  lost_.thrown_until = until;
  any_.store(false, std::memory_order_release);
  return report;
}

/// Forgets failures without the mark `is_named` that nothing in this object names either.
void FailureLog::forget_others() {
  for (const auto& [task, cause] : causes_) cause->is_named = true;
  for (const auto& [task, cause] : doubts_) cause->is_named = true;
  looked_at_ += failures_.size();
  lost_.is_named = false;
  for (auto entry = failures_.begin(); entry != failures_.end();) {
    FlowFailure& failure = entry->second;
    const bool is_known = std::exchange(failure.is_named, false) || failure.is_new || failure.stays;
    entry = is_known ? std::next(entry) : failures_.erase(entry);
  }
}

}  // namespace tandem::runtime
