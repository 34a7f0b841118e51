// tandem/trace/current.hpp: into whose stream the code that runs on this thread writes.
#pragma once

#include <utility>

namespace tandem::trace {

class Stream;

/// Says, as long as it lives, that an actor runs on this thread: what the program tells in between (from kernels, callbacks,
/// conversions) goes to the actor's stream, without a lock, and lies between the actor's own events.
///
/// Threads. Each has its own variable, which nobody else sees. Whoever was there before is there again afterwards: in an event
/// loop all actors share a thread, and the caller's thread is a worker only while it waits. A worker says it for a step, which
/// is many tasks.
class CurrentStream {
 public:
  explicit CurrentStream(Stream& stream) noexcept : before_(std::exchange(stream_, &stream)) {}
  ~CurrentStream() { stream_ = before_; }
  CurrentStream(const CurrentStream&) = delete;
  CurrentStream& operator=(const CurrentStream&) = delete;

  /// Null: nobody said anything. It may be another session's, or none's any more.
  static Stream* get() noexcept { return stream_; }
  /// Another value on each living thread.
  static const void* thread() noexcept { return &stream_; }

 private:
  friend class ThreadStreams;
  static constinit inline thread_local Stream* stream_ = nullptr;

  Stream* const before_;
};

}  // namespace tandem::trace
