// tandem/comm/callback_failures.hpp: what callbacks threw, on its way to a caller that waits.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace tandem::comm::internal {

/// Callbacks run on any thread that makes progress, mostly without a caller. So the first exception is kept until a
/// call that waits, or makes progress, throws it. Thread-safe.
class CallbackFailures {
 public:
  /// Keeps an exception. False: an earlier one is kept, and this one is dropped.
  bool keep(std::exception_ptr thrown) noexcept {
    const std::lock_guard guard(mutex_);
    if (kept_ != nullptr) return false;
    kept_ = std::move(thrown);
    any_.store(true, std::memory_order_relaxed);
    return true;
  }
  /// Whether `rethrow` would throw; outdated at once.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// Throws the kept exception, if any, and forgets it.
  void rethrow() {
    if (!any()) [[likely]] return;
    std::exception_ptr thrown;
    {
      const std::lock_guard guard(mutex_);
      thrown = std::exchange(kept_, nullptr);
      any_.store(false, std::memory_order_relaxed);
    }
    if (thrown != nullptr) std::rethrow_exception(std::move(thrown));
  }

 private:
  std::mutex mutex_;
  std::exception_ptr kept_;       ///< guarded by the mutex
  std::atomic<bool> any_{false};  ///< whether there is one; a hint, the mutex orders the rest
};

}  // namespace tandem::comm::internal
