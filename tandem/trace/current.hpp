// tandem/trace/current.hpp: the stream of the code that runs on this thread.
#pragma once

#include <utility>

namespace tandem::base {
class FiberLocal;
}

namespace tandem::trace {

class Stream;

/// While it lives, an actor runs on this thread: events of the program (from kernels, callbacks, conversions) go to the
/// actor's stream, without a lock, between the actor's own events.
///
/// Threads. The variable is thread-local. The destructor restores the previous stream: in an event loop all actors
/// share a thread, and the caller's thread is a worker only while it waits. A worker sets it once per step, which is
/// many tasks. Cost: two stores.
class CurrentStream {
 public:
  explicit CurrentStream(Stream& stream) noexcept : before_(std::exchange(stream_, &stream)) {}
  ~CurrentStream() { stream_ = before_; }
  CurrentStream(const CurrentStream&) = delete;
  CurrentStream& operator=(const CurrentStream&) = delete;

  /// The current stream; null: no actor runs here. It may belong to another session, or be detached.
  static Stream* get() noexcept { return stream_; }
  /// Identifies the thread: differs between living threads.
  static const void* thread() noexcept { return &stream_; }

 private:
  friend class ThreadStreams;
  static constinit inline thread_local Stream* stream_ = nullptr;
  static const base::FiberLocal own_stream_;

  Stream* const before_;
};

}  // namespace tandem::trace
