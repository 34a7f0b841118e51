// tandem/runtime/submit/submitting_thread.hpp: the thread that submits the flow.
#pragma once

#include <atomic>

namespace tandem::runtime {

/// The thread that constructed the runtime. It alone submits and waits, and never from inside a kernel.
///
/// Threads: `is_this` and `check` may be called from any thread. The token is an address in thread-local memory; loads
/// are relaxed, since another thread only learns that the token is not its own.
class SubmittingThread {
 public:
  SubmittingThread() noexcept : owner_(&token_) { submitter_.store(owner_, std::memory_order_relaxed); }
  SubmittingThread(const SubmittingThread&) = delete;
  SubmittingThread& operator=(const SubmittingThread&) = delete;

  /// Whether this thread may submit now.
  bool is_this() const noexcept { return submitter_.load(std::memory_order_relaxed) == &token_; }
  /// Throws UsageError unless this thread may submit now. `action` completes "cannot ...".
  void check(const char* action) const {
    if (__builtin_expect(!is_this(), 0)) refuse(action);
  }

  /// While it lives, this thread runs kernels, and their submissions are refused.
  class RunsKernels {
   public:
    explicit RunsKernels(SubmittingThread& thread) noexcept : thread_(thread) {
      thread_.submitter_.store(nullptr, std::memory_order_relaxed);
    }
    ~RunsKernels() { thread_.submitter_.store(thread_.owner_, std::memory_order_relaxed); }
    RunsKernels(const RunsKernels&) = delete;
    RunsKernels& operator=(const RunsKernels&) = delete;

   private:
    SubmittingThread& thread_;
  };

 private:
  [[noreturn]] void refuse(const char* action) const;

  static constinit thread_local const char token_;

  std::atomic<const char*> submitter_{nullptr};  ///< token of the submitting thread; null while it runs kernels
  const char* const owner_;
};

}  // namespace tandem::runtime
