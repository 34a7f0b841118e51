// tandem/trace/thread_streams.cpp: gives threads their streams, and takes them back when they end.
#include "tandem/trace/thread_streams.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "tandem/trace/current.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::trace {

namespace {

std::string name_of_this_thread() {
  char name[16] = {};
  if (pthread_getname_np(pthread_self(), name, sizeof name) != 0) name[0] = '\0';
  return fmt::format("{} {}", name[0] != '\0' ? name : "thread", ::gettid());
}

}  // namespace

/// The streams that a thread has, of all sessions. They stay until it ends, since `CurrentStream` may speak of them; those
/// whose session was closed serve the next one.
struct ThreadStreams::OfThread {
  std::vector<std::shared_ptr<ThreadStream>> streams;
  /// Of this thread, and without a destructor: still there when the others have gone.
  static constinit inline thread_local bool gone = false;

  ~OfThread() {
    gone = true;
    for (const auto& own : streams) {
      if (CurrentStream::stream_ == &own->stream) CurrentStream::stream_ = nullptr;
      const std::lock_guard guard(own->mutex);
      own->stream.detach();
    }
  }
  static OfThread& get() {
    static thread_local OfThread own;
    return own;
  }
};

Stream* ThreadStreams::of_this_thread(std::string_view name) {
  if (OfThread::gone) return nullptr;
  // So that the next event finds it at once. An actor that is running here stays.
  const auto adopt = [](ThreadStream& one) {
    if (CurrentStream::stream_ == nullptr || !CurrentStream::stream_->attached()) CurrentStream::stream_ = &one.stream;
    return &one.stream;
  };
  OfThread& own = OfThread::get();
  ThreadStream* found = nullptr;
  for (const auto& one : own.streams) {
    if (one->stream.writes_to(session_)) return adopt(*one);
    if (!one->stream.attached()) found = one.get();
  }
  if (found == nullptr) found = own.streams.emplace_back(std::make_shared<ThreadStream>()).get();
  const auto shared = *std::ranges::find(own.streams, found, [](const auto& one) { return one.get(); });
  {
    const std::lock_guard guard(mutex_);
    std::erase_if(streams_, [](const auto& one) { return one.use_count() == 1; });  // their threads have ended
    if (std::ranges::find(streams_, shared) == streams_.end()) streams_.push_back(shared);
  }
  const std::lock_guard guard(found->mutex);  // behind a session's end that has just let it go
  session_.attach(found->stream, {.kind = ActorKind::user, .name = name.empty() ? name_of_this_thread() : std::string(name)});
  return adopt(*found);
}

void ThreadStreams::detach_all() {
  std::vector<std::shared_ptr<ThreadStream>> streams;
  {
    const std::lock_guard guard(mutex_);
    streams.swap(streams_);
  }
  for (const auto& own : streams) {
    const std::lock_guard guard(own->mutex);
    // Another session's: the thread has used it again.
    if (own->stream.writes_to(session_)) own->stream.detach();
  }
}

}  // namespace tandem::trace
