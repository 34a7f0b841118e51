// tandem/runtime/exec/failure.cpp: the list of failures.
#include "tandem/runtime/exec/failure.hpp"

#include <algorithm>

namespace tandem::runtime {

FlowFailure* FailureLog::add(TaskId id, std::exception_ptr exception, std::string description) {
  std::lock_guard guard(mutex_);
  auto& failure = failures_.emplace_back(std::make_unique<FlowFailure>());
  failure->id = id;
  failure->exception = std::move(exception);
  failure->description = std::move(description);
  any_.store(true, std::memory_order_release);
  return failure.get();
}

FlowFailure* FailureLog::earliest() {
  std::lock_guard guard(mutex_);
  FlowFailure* earliest = nullptr;
  for (std::size_t i = reported_; i < failures_.size(); ++i)
    if (earliest == nullptr || failures_[i]->id < earliest->id) earliest = failures_[i].get();
  return earliest;
}

FailureLog::Report FailureLog::take_report() {
  Report report;
  report.failure = earliest();
  std::lock_guard guard(mutex_);
  report.failed = failures_.size() - reported_;
  report.cancelled = cancelled_.exchange(0, std::memory_order_relaxed);
  reported_ = failures_.size();
  any_.store(false, std::memory_order_release);
  return report;
}

}  // namespace tandem::runtime
