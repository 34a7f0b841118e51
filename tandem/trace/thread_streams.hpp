// tandem/trace/thread_streams.hpp: streams of threads that are no actor's: the program's own.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "tandem/trace/stream.hpp"

namespace tandem::trace {

/// A stream that a thread of the program's has got. The thread alone writes it. Two may detach it: the thread when it ends, and
/// the session when it is closed. They do so under `mutex`, so that the second one finds it detached; and they share the
/// object.
struct ThreadStream {
  std::mutex mutex;
  Stream stream;
};

/// Those of one session. Any thread.
class ThreadStreams {
 public:
  explicit ThreadStreams(Session& session) noexcept : session_(session) {}

  /// This thread's, which it gets if it has none. `name` empty: as the system calls the thread. Null: the thread is ending, its
  /// variables are gone.
  Stream* of_this_thread(std::string_view name);
  /// All of them: their threads write no more, or were told by something else that the session ends.
  void detach_all();

 private:
  struct OfThread;

  Session& session_;
  std::mutex mutex_;                                  ///< guards what follows
  std::vector<std::shared_ptr<ThreadStream>> streams_;  ///< of threads that may live
};

}  // namespace tandem::trace
