// tandem/trace/thread_streams.cpp: gives threads their streams, and takes them back when they end.
#include "tandem/trace/thread_streams.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "tandem/base/fiber_local.hpp"
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

const base::FiberLocal CurrentStream::own_stream_([]() noexcept -> void* { return &stream_; }, sizeof stream_);

/// A thread's streams, of all sessions. They live until the thread ends, since `CurrentStream` may refer to them. A
/// stream whose session was closed is used again for the next one.
struct ThreadStreams::OfThread {
  std::vector<std::shared_ptr<ThreadStream>> streams;
  /// Thread-local without a destructor: still valid when the other thread-local variables are destroyed.
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
  // Makes the stream current, so that the next event finds it at once. If an actor runs here, its stream stays the
  // current one.
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
  const std::lock_guard guard(found->mutex);  // waits for a session that is detaching it
  session_.attach(found->stream,
                  {.kind = ActorKind::user, .name = name.empty() ? name_of_this_thread() : std::string(name)});
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
    // The thread may have used it again for another session.
    if (own->stream.writes_to(session_)) own->stream.detach();
  }
}

}  // namespace tandem::trace
