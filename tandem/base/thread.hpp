// tandem/base/thread.hpp: a thread with a name and a stack of known size, or an error for people.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem::base {

/// Default size of a thread's stack in bytes: what the program's own may grow to now (the soft limit RLIMIT_STACK,
/// `ulimit -s`), 64 MiB where that is `unlimited`. Any thread.
std::size_t usual_stack_bytes() noexcept;

/// The least stack that the system needs: 64 KiB.
inline constexpr std::size_t kLeastStackBytes = 64 << 10;

/// A thread like `std::thread`, except for its name, its stack, and the exception when it cannot be made. Its function
/// may not throw.
///
/// Not thread-safe: its owner makes it, moves it and joins it.
class Thread {
 public:
  struct Options {
    std::string name = "tandem";  ///< as tools show it; the first 15 characters count
    std::size_t stack_bytes = 0;  ///< at least `kLeastStackBytes`, rounded up to pages; 0: `usual_stack_bytes`
  };

  Thread() noexcept = default;  ///< none
  /// Runs a copy of `run`. Throws StartError with cause and remedy when there is no thread: the limit of processes and
  /// threads is reached (RLIMIT_NPROC, pids.max), or there is no memory for the stack.
  Thread(const Options& options, std::function<void()> run);
  Thread(Thread&& other) noexcept : body_(std::move(other.body_)), thread_(other.thread_) {}
  /// This object has no thread, or was joined.
  Thread& operator=(Thread&& other) noexcept;
  /// This object has no thread, or was joined.
  ~Thread();

  bool joinable() const noexcept { return body_ != nullptr; }
  /// Waits until `run` has returned. It is joinable.
  void join();
  pthread_t native_handle() const noexcept { return thread_; }  ///< it is joinable

 private:
  struct Body;
  struct Free {
    void operator()(Body* body) const noexcept;
  };

  std::unique_ptr<Body, Free> body_;  ///< null: none
  pthread_t thread_{};
};

/// Threads that end together: its destructor joins them. Not thread-safe.
class ThreadGroup {
 public:
  ThreadGroup() = default;
  ~ThreadGroup() { join(); }
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  /// Adds a thread; throws as `Thread` does.
  void add(const Thread::Options& options, std::function<void()> run) {
    threads_.reserve(threads_.size() + 1);
    threads_.emplace_back(options, std::move(run));
  }
  /// Waits until all have returned and removes them.
  void join() {
    for (Thread& thread : threads_) thread.join();
    threads_.clear();
  }
  std::size_t size() const noexcept { return threads_.size(); }

 private:
  std::vector<Thread> threads_;
};

}  // namespace tandem::base
