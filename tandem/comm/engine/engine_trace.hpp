// tandem/comm/engine/engine_trace.hpp: what an engine records in the trace: messages, packets, broadcasts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tandem/comm/engine/core.hpp"
#include "tandem/comm/mcast/tree.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::comm::internal {

/// The engine's stream, "comm engine", and the numbers of requests in it.
///
/// Protocol. Written only under the endpoint's lock, whichever thread holds it: so postings, packets and arrivals of
/// one rank are one stream in one order. Callbacks run later, outside of the lock; the trace has the event when the
/// engine decides it.
///
/// A request gets its number when it is posted, while any event that names requests is recorded; without one (0) it
/// appears in no event. So a trace that begins in the middle of a program knows all of a request, or nothing.
///
/// A message's send and its receive are found by their order: the nth `send_posted`, or `mcast_recipient` of a
/// broadcast, of one rank to another one, on a channel with a tag, belongs to the nth receive of that rank, channel and
/// tag there, in the order of `receive_posted`. For a receive from any rank or with any tag, `message_arrived` says
/// which one it met.
///
/// Cost of what is not recorded: a load and a predicted branch per probe, of a line that no thread writes.
class EngineTrace {
 public:
  trace::Stream stream;

  /// Whether requests are followed.
  [[gnu::always_inline]] bool follows() const noexcept {
    using enum trace::Type;
    return stream.any_on<send_posted, receive_posted, send_announced, send_granted, message_sent, message_arrived,
                         message_released, message_failed, mcast_posted, mcast_recipient, mcast_routed, bag_closed>();
  }
  /// Sets the instant of the next event before something is posted, so that it precedes other ranks' reactions.
  [[gnu::always_inline]] void begin_instant() noexcept {
    if (follows()) [[unlikely]] stream.set_instant(stream.read_clock());
  }

  // Posting.
  [[gnu::always_inline]] void receive_posted(ReceiveCore& core) noexcept {
    if (follows()) [[unlikely]] record_receive_posted(core);
  }
  [[gnu::always_inline]] void send_posted(SendCore& core) noexcept {
    if (follows()) [[unlikely]] record_send_posted(core);
  }
  /// A small message that was handed to its rail while it was posted.
  [[gnu::always_inline]] void sent_at_once(SentCore& core, Channel channel, int priority,
                                           std::size_t packet_bytes) noexcept {
    using enum trace::Type;
    if (follows() || stream.any_on<packet_sent>()) [[unlikely]]
      record_sent_at_once(core, channel, priority, packet_bytes);
  }
  void mcast_posted(RequestCore& core, Channel channel, std::span<const Recipient> recipients) noexcept;
  void mcast_joined(const RequestCore& core, Rank recipient) noexcept {
    if (core.request != 0) stream.emit<trace::Type::mcast_recipient>(core.request, recipient.value());
  }

  // Later events of a request.
  [[gnu::always_inline]] void arrived(const ReceiveCore& core) noexcept {
    if (follows()) [[unlikely]] record_arrived(core);
  }
  /// Follows `arrived`, at its instant.
  [[gnu::always_inline]] void released_too(const RequestCore& core) noexcept {
    if (follows()) [[unlikely]] record_end(core, false);
  }
  [[gnu::always_inline]] void ended(const RequestCore& core) noexcept {
    if (follows()) [[unlikely]] record_end(core, true);
  }
  template <trace::Type Event>
  void request_event(const RequestCore& core) noexcept {
    if (stream.any_on<Event>()) [[unlikely]]
      if (core.request != 0) stream.emit<Event>(core.request);
  }

  // Packets.
  [[gnu::always_inline]] void packet_sent(Rank peer, std::size_t bytes) noexcept {
    stream.emit<trace::Type::packet_sent>(peer.value(), bytes);
  }
  [[gnu::always_inline]] void packet_received(Rank peer, std::size_t bytes) noexcept {
    stream.emit<trace::Type::packet_received>(peer.value(), bytes);
  }

  // Broadcasts.
  /// Records one strand of a broadcast.
  void mcast_routed(const RequestCore& core, TreeKind tree, std::uint32_t segment_bytes,
                    std::span<const std::uint32_t> children) noexcept;

 private:
  std::uint32_t number(RequestCore& core) noexcept {
    if (++last_request_ == 0) ++last_request_;
    return core.request = last_request_;
  }
  [[gnu::cold, gnu::noinline]] void record_receive_posted(ReceiveCore& core) noexcept;
  [[gnu::cold, gnu::noinline]] void record_send_posted(SendCore& core) noexcept;
  [[gnu::cold, gnu::noinline]] void record_sent_at_once(SentCore& core, Channel channel, int priority,
                                                      std::size_t packet_bytes) noexcept;
  [[gnu::cold, gnu::noinline]] void record_arrived(const ReceiveCore& core) noexcept;
  [[gnu::cold, gnu::noinline]] void record_end(const RequestCore& core, bool begins_instant) noexcept;

  std::uint32_t last_request_ = 0;
};

}  // namespace tandem::comm::internal
