// tandem/runtime/exec/failure.hpp: kernels that threw, and what wait() will say of them.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// A kernel that threw. Handles whose version it owed point to it, so it lives as long as the runtime.
struct FlowFailure {
  TaskId id = 0;                 ///< position in the flow
  std::exception_ptr exception;
  std::string description;       ///< the task, its line, and what() of the exception
};

/// The failures of a runtime. Thread-safe; the mutex is taken on failures only.
class FailureLog {
 public:
  FlowFailure* add(TaskId id, std::exception_ptr exception, std::string description);
  void count_cancelled() noexcept { cancelled_.fetch_add(1, std::memory_order_relaxed); }

  bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  /// The earliest in the flow of those that were not yet reported, or null.
  FlowFailure* earliest();
  /// The earliest, and the number of tasks cancelled; all of them count as reported from now on.
  struct Report {
    FlowFailure* failure = nullptr;
    std::size_t failed = 0;
    std::size_t cancelled = 0;
  };
  Report take_report();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<FlowFailure>> failures_;
  std::size_t reported_ = 0;
  std::atomic<std::size_t> cancelled_{0};
  std::atomic<bool> any_{false};
};

}  // namespace tandem::runtime
