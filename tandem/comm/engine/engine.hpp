// tandem/comm/engine/engine.hpp: the progress engine: what happens between posting and completion, on no thread of its
// own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/engine/parts.hpp"
#include "tandem/comm/transport/transport.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// The progress engine of one rank: the owner of its parts (parts.hpp), and the sink of its transports. It posts,
/// steps, and passes each record that arrives to the part whose protocol it belongs to. Not thread-safe: the endpoint
/// holds one lock around every call. Callbacks that are due wait in `events` for the endpoint, which calls them without
/// the lock.
///
/// Requests wait in the queue of their peer, and packets are formed only when a rail can take one; when nothing waits
/// and the rail is free, a small message goes straight to it.
class Engine final : public PacketSink {
 public:
  Engine(EngineContext context, std::unique_ptr<Strategy> strategy);
  ~Engine() override;

  void add_transport(std::unique_ptr<Transport> transport);
  std::span<const std::unique_ptr<Transport>> transports() const noexcept { return parts_.peers.transports(); }

  // Posting. Each returns a core with a reference for the caller.
  [[gnu::always_inline]] RequestCore* send(Rank to, Tag tag, SendBuffer&& buffer, const SendOptions& options) {
    parts_.completions.trace.begin_instant();
    Peer* const peer = parts_.peers.recent();
    const Pieces& pieces = buffer.pieces();
    const bool is_short = pieces.bytes() <= Envelope::small_bytes && pieces.contiguous() && options.header.empty();
    if (peer != nullptr && peer->rank == to && is_short && parts_.broadcasts.by_key.empty()) [[likely]] {
      if (RequestCore* sent = parts_.sends.send_short(*peer, tag, pieces, options)) [[likely]] return sent;
    }
    return parts_.sends.send_otherwise(to, tag, std::move(buffer), options);
  }
  RequestCore* send_later(Rank to, Tag tag, std::size_t bytes, const SendOptions& options) {
    return parts_.sends.send_later(to, tag, bytes, options);
  }
  bool supply(RequestCore& core, SendBuffer&& buffer, BufferMemory memory) {
    if (core.kind != RequestCore::Kind::send) return false;
    auto& send = static_cast<SendCore&>(core);
    if (!parts_.outgoing.supply(send, std::move(buffer).take(), memory)) return false;
    parts_.packets.pump(*send.peer);  // it may have ended now
    return true;
  }
  bool reads(Rank to, BufferMemory memory) {
    const Peer* const peer = memory == BufferMemory::host ? nullptr : parts_.peers.peer_for(to);
    return memory == BufferMemory::host || (peer != nullptr && Peers::reads(*peer, memory));
  }
  [[gnu::always_inline]] RequestCore* receive(ReceiveCore& core) {
    const Rank from = core.pattern.source;
    TANDEM_DEBUG_ASSERT(from.value() < parts_.context.size);
    parts_.completions.begin();
    parts_.completions.trace.receive_posted(core);
    if (ArrivedEnvelope* found = parts_.arrivals.matcher().post(core)) [[unlikely]] {
      parts_.arrivals.give(static_cast<Envelope&>(*found), core);
      return &core;
    }
    if (parts_.deferral.any_peer_defers()) [[unlikely]] parts_.deferral.want_from_all(core.pattern);
    // A receive from a rank connects to it: the connection brings the news of its death.
    if (!core.pattern.any_source) [[likely]] {
      Peer* peer = parts_.peers.peer_for(from);
      if (peer == nullptr || peer->dead || peer->left) [[unlikely]] parts_.arrivals.fail_posted(core, peer);
    }
    return &core;
  }
  /// A receive into memory that the processor must not touch. Null: the message is not here, or comes in another way.
  RequestCore* receive_placed(Source from, TagPattern tag, Pieces&& pieces, const ReceiveOptions& options) {
    // Nothing comes from a dead rank: a receive is posted, which fails and says so.
    const bool may_come = !from.any() && !parts_.peers.is_dead(from.rank());
    if (may_come && !parts_.arrivals.is_placed(Arrivals::pattern_of(from, tag, options.channel))) return nullptr;
    return receive(make_receive(from, tag, std::move(pieces), false, options));
  }
  RequestCore* await_message(ReceiveCore& core);
  static ReceiveCore& make_receive(Source from, TagPattern tag, Pieces&& pieces, bool owned,
                                   const ReceiveOptions& options) {
    return Arrivals::make_receive(from, tag, std::move(pieces), owned, options);
  }
  RequestCore* mcast(std::span<const Recipient> recipients, Tag tag, SendBuffer buffer, const McastOptions& options) {
    RequestCore* const core = parts_.root.mcast(recipients, tag, std::move(buffer), options);
    parts_.packets.flush();
    return core;
  }
  bool append(RequestCore& mcast, Recipient recipient) { return parts_.root.append(mcast, recipient); }
  bool cancel(RequestCore& core);
  /// Announces a message that will be posted for that rank in about `in_ns`: see `PortPacer`. 0: that has no use.
  std::uint64_t announce(Rank to, std::uint64_t bytes, std::int64_t in_ns, std::int32_t priority) {
    return parts_.pacing.announce(to, bytes, in_ns, priority);
  }
  bool uses_announcements(Rank to) { return parts_.pacing.uses_announcements(to); }
  void withdraw(Rank to, std::uint64_t announced) { parts_.pacing.withdraw(to, announced); }
  std::optional<Peeked> probe(Source from, TagPattern tag, Channel channel) {
    const MatchPattern pattern = Arrivals::pattern_of(from, tag, channel);
    std::optional<Peeked> found = parts_.arrivals.probe(pattern);
    if (!found && parts_.deferral.any_peer_defers()) parts_.deferral.want_probed(pattern);
    return found;
  }
  /// Registers a handler. False: the channel has one.
  bool register_rpc(Channel channel, RpcHandler handler) {
    if (!parts_.arrivals.register_rpc(channel, std::move(handler))) return false;
    parts_.deferral.want_all_from_all(channel.value());
    return true;
  }

  // Progress.
  /// Polls, sends what can be sent, and advances remote copies by a piece. Returns when it wants to be called again, in
  /// ns of the endpoint's clock.
  std::int64_t step(std::int64_t now_ns);
  /// When `step` has something to do even if nothing arrives.
  std::int64_t due_ns() const noexcept { return std::min(parts_.pacing.due_ns(), parts_.root.due_ns()); }
  /// Makes the next step poll every transport, also those that cost a system call.
  void poll_all_next() noexcept { steps_ = UINT64_MAX; }
  /// Whether something was sent since `wake_peers`.
  bool wakeups_are_due() const noexcept { return packets_at_wake_ != parts_.completions.statistics.packets_sent; }
  /// After posts, when no thread will `step` soon: wakes peers that sleep.
  void wake_peers() {
    packets_at_wake_ = parts_.completions.statistics.packets_sent;
    hurry_transports();
  }
  /// Events since the last call of `step` that took something from a transport.
  unsigned last_events() const noexcept { return last_events_; }
  /// Whether anything is left to be done without waiting for the network.
  bool busy() const noexcept { return copies() || parts_.peers.any_dirty() || !parts_.broadcasts.to_offer.empty(); }
  /// Whether no part has work or events left.
  bool nothing_left() const noexcept { return parts_.work_left == 0; }
  /// Whether no send, stream, forward or receive is under way.
  bool quiet() const noexcept { return parts_.completions.outstanding() == 0; }
  CountedList<Event>& events() noexcept { return parts_.completions.events; }

  // Leaving.
  /// Whether peers need something of this rank: sends, forwards, acknowledgements that are not handed over.
  bool pending_for_peers() const noexcept { return parts_.departures.pending_for_peers(); }
  /// When leaving takes long, connects to roots: the death of a root may delay the ranks below, and only a connection
  /// shows it.
  void connect_to_roots() { parts_.departures.connect_to_roots(); }
  /// Ends the look-ups of ranks: no further rank will be found. Without the lock.
  void stop_lookups() { parts_.peers.stop_lookups(); }
  void say_goodbye() { parts_.departures.say_goodbye(); }
  bool all_answered_goodbye() const noexcept { return parts_.departures.all_answered_goodbye(); }
  bool accepts_now() const noexcept {
    return std::ranges::any_of(transports(), [](const auto& transport) { return transport->accepts_now(); });
  }
  /// Closes the links to all peers; what was under way ends as cancelled. Not while polling.
  void abandon() { parts_.departures.abandon(); }
  void cancel_everything() { parts_.departures.cancel_everything(); }

  // Memory that a burst has left unused, in tables and in the requests of all engines of the process.
  std::size_t spare_bytes() const noexcept;
  void trim_tables() noexcept { parts_.arrivals.matcher().trim(); }
  static void trim_requests() noexcept;  ///< needs no lock; takes time in proportion to that memory

  // Queries.
  std::vector<Rank> connected_ranks() const { return parts_.peers.connected(); }
  Transport* transport_to(Rank peer) { return parts_.peers.transport_to(peer); }
  std::uint64_t deferred_messages() const noexcept { return parts_.deferral.deferred_messages(); }
  std::string describe() const;  ///< what is under way, one line each
  /// Stops the program unless the counts and lists of all parts agree. Between two steps; its time grows with what is
  /// under way. With `TANDEM_AUDIT` steps call it.
  bool check_invariants() const;
  const EndpointStatistics& statistics() const noexcept { return parts_.completions.statistics; }
  trace::Stream& trace() noexcept { return parts_.completions.trace.stream; }
  /// Without the lock.
  void log_callback_failure(std::string_view what) const noexcept;

  void on_death(std::function<void(Rank, std::string_view)> call) { parts_.completions.on_death = std::move(call); }
  void on_incoming(std::function<void(Rank, Channel, Tag, std::uint64_t, std::int64_t)> call) {
    parts_.completions.on_incoming = std::move(call);
  }

  // PacketSink
  Landing arrived(Link& link, std::span<const std::byte> control, std::size_t payload_bytes) override;
  const char* arrived_whole(Link& link, std::span<const std::byte> control) override;
  void landed(Link& link, std::uint64_t token) override { parts_.arrivals.landed(link, token); }
  void sent(Link& link, std::uint64_t cookie) override { parts_.packets.sent(link, cookie); }
  void writable(Link& link) override { parts_.packets.writable(link); }
  void peer_failed(Rank peer, std::string_view reason) override { parts_.departures.peer_failed(peer, reason); }
  void opened(Link& link) override { parts_.departures.opened(link); }
  void peer_unreachable(Rank peer, std::string_view reason) override {
    parts_.departures.peer_unreachable(peer, reason);
  }
  void peer_needs_other_transport(Rank peer, std::string_view reason) override {
    parts_.departures.peer_needs_other_transport(peer, reason);
  }

 private:
  unsigned poll(Transport& transport, std::int64_t now_ns);
  void hurry_transports();
  [[gnu::noinline]] std::int64_t do_what_is_left(std::int64_t now_ns, bool events);
  bool copies() const noexcept { return parts_.incoming.copies() || parts_.outgoing.copies(); }
  /// Whether some part has work at a known time.
  bool waits_for_time() const noexcept { return !parts_.broadcasts.held.empty() || parts_.pacing.waits_for_time(); }
  const char* take_block(Rail& rail, std::span<const std::byte> control, std::size_t payload_bytes);
  static void take_head(const Rail& rail, const std::byte* head);
  void after_arrival(Peer& peer);
  [[gnu::noinline]] const char* take_other(Rail& rail, wire::Reader& reader, wire::Kind kind,
                                           std::size_t payload_bytes);

  EngineParts parts_;
  struct Polled {
    Transport* transport;
    bool costly;
  };
  std::vector<Polled> polled_;     ///< the transports
  Transport* busiest_ = nullptr;   ///< brought the last event
  std::uint64_t steps_ = 0;
  unsigned last_events_ = 0;
  std::uint64_t packets_at_wake_ = 0;  ///< `packets_sent` when the transports were last asked to hurry
};

}  // namespace tandem::comm::internal
