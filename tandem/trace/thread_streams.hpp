// tandem/trace/thread_streams.hpp: streams of the program's own threads.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "tandem/trace/stream.hpp"

namespace tandem::trace {

/// The stream of one thread of the program. Only that thread writes it. Two may detach it: the thread when it ends, and
/// the session when it closes. Both lock `mutex` for that, so that the second one finds it detached, and both own a
/// reference to the object.
struct ThreadStream {
  std::mutex mutex;
  Stream stream;
};

/// The streams of one session's threads. Any thread.
class ThreadStreams {
 public:
  explicit ThreadStreams(Session& session) noexcept : session_(session) {}

  /// The calling thread's stream, attached at its first call. `name` empty: the system's name of the thread. Null: the
  /// thread is ending, and its thread-local variables are destroyed.
  Stream* of_this_thread(std::string_view name);
  /// Detaches all streams. The caller ensures that their threads no longer write.
  void detach_all();

 private:
  struct OfThread;

  Session& session_;
  std::mutex mutex_;                                  ///< guards what follows
  std::vector<std::shared_ptr<ThreadStream>> streams_;  ///< of threads that may be running
};

}  // namespace tandem::trace
