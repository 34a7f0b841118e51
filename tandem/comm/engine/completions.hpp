// tandem/comm/engine/completions.hpp: how requests end, and how their users are notified.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/engine/core.hpp"
#include "tandem/comm/engine/counted_list.hpp"
#include "tandem/comm/engine/engine_trace.hpp"

namespace tandem::comm::internal {

/// A callback to be called once the lock is free.
struct Event {
  CompletionQueue::Event what = CompletionQueue::Event::released;
  RequestCore* core = nullptr;      ///< the event holds one reference
  std::function<void()> call = {};  ///< instead of a request: handlers of active messages, deaths
};

/// Ends requests, and queues the callbacks that follow: the owner of the engine takes them from `events` and calls them
/// without the lock. Counts and traces what ends.
///
/// State: the queue, the number of requests under way, the trace and the statistics, to which all parts write. Under
/// the endpoint's lock.
class Completions {
 public:
  explicit Completions(std::size_t& work_left) noexcept : events(work_left) {}

  // Posting.
  void begin() noexcept { ++outstanding_; }
  template <class Options>
  static void keep_notify(RequestCore& core, const Options& options) {
    if constexpr (requires { Options::none(); }) {
      if (&options == &Options::none()) [[likely]] return;
    }
    const Callbacks& calls = options.callbacks;
    if (calls.arrived || calls.released || calls.failed || calls.leaving || options.queue != nullptr) [[unlikely]] {
      keep_notify(core, calls, options.queue, options.user);
    }
  }
  static void keep_notify(RequestCore& core, const Callbacks& callbacks, CompletionQueue* queue, std::uint64_t user);

  // Ends.
  /// Ends a receive that has its data, and whose memory nothing reads any more.
  [[gnu::always_inline]] void arrive(ReceiveCore& core, Ending ending) {
    if (core.counted()) [[unlikely]] {
      mark_arrived(core, ending);
      return release(core);
    }
    core.ending = ending;
    ++statistics.messages_received;
    --outstanding_;
    trace.arrived(core);
    trace.released_too(core);
    core.end();
  }
  void mark_arrived(ReceiveCore& core, Ending ending);  ///< the data has arrived and is still read; `release` follows
  void release(RequestCore& core);
  void fail_receive(ReceiveCore& core, Ending ending, Rank culprit);
  /// Ends a send, or the root's side of a broadcast.
  void end_send(RequestCore& core, Ending ending, Rank culprit = Rank{0});
  void end(RequestCore& core, std::optional<CompletionQueue::Event> what);

  // Callbacks.
  void notify(RequestCore& core, CompletionQueue::Event what) {
    if (core.notifies) [[unlikely]] add_event(core, what);
  }
  /// Notes that the bytes of a large send begin to leave.
  void note_leaving(RequestCore& core) {
    if (core.notifies && core.extra->callbacks.leaving) [[unlikely]] call_later(core.extra->callbacks.leaving);
  }
  void call_later(std::function<void()> call) { events.push_back(Event{.call = std::move(call)}); }

  /// Requests posted and not released.
  std::uint64_t outstanding() const noexcept { return outstanding_; }

  CountedList<Event> events;
  EndpointStatistics statistics;
  EngineTrace trace;
  std::function<void(Rank, std::string_view)> on_death;
  std::function<void(Rank, Channel, Tag, std::uint64_t, std::int64_t)> on_incoming;

 private:
  void add_event(RequestCore& core, CompletionQueue::Event what);

  std::uint64_t outstanding_ = 0;
};

}  // namespace tandem::comm::internal
