// tandem/comm/engine/receiving.cpp: from packets to receives: parsing, matching, and where payloads land.
#include <algorithm>
#include <cstring>
#include <new>

#include "tandem/comm/engine/engine.hpp"

namespace tandem::comm::internal {

/// A receive that is posted, from a rank that cannot be reached (null) or is gone.
void Engine::fail_posted(ReceiveCore& core, const Peer* peer) {
  matcher_.cancel(core);
  fail_receive(core, peer != nullptr && peer->left ? Ending::peer_left : Ending::peer_dead, core.pattern.source);
}

Landing Engine::arrived(Link& link, std::span<const std::byte> control, std::size_t payload_bytes) {
  Landing landing;
  if (payload_bytes == 0) {
    landing.malformed = arrived_whole(link, control);
    return landing;
  }
  Rail& rail = rail_of(link);
  ++statistics_.packets_received;
  trace_.packet_received(rail.peer->rank, control.size() + payload_bytes);
  if (rail.peer->dead) {
    rail.landing.kind = LandingPlace::Kind::drop;
    return landing;
  }
  rail.landing.kind = LandingPlace::Kind::none;
  rail.landing.pieces.clear();
  landing.malformed = take_block(rail, control, payload_bytes);
  if (landing.malformed == nullptr) {
    if (rail.landing.kind == LandingPlace::Kind::none) landing.malformed = "a payload that no record speaks of";
    rail.landing.bytes = payload_bytes;
    landing.pieces = rail.landing.pieces;
  }
  after_arrival(*rail.peer);
  return landing;
}

const char* Engine::arrived_whole(Link& link, std::span<const std::byte> control) {
  Rail& rail = rail_of(link);
  Peer& peer = *rail.peer;
  ++statistics_.packets_received;
  trace_.packet_received(peer.rank, control.size());
  if (peer.dead) [[unlikely]] return nullptr;
  const char* malformed = nullptr;
  if (wire::holds_one_plain_message(control)) [[likely]] {
    take_head(rail, control.data());
    take_plain_message(rail, peer, control);
  } else {
    rail.landing.kind = LandingPlace::Kind::none;
    malformed = take_block(rail, control, 0);
  }
  after_arrival(peer);
  return malformed;
}

inline void Engine::after_arrival(Peer& peer) {
  if (!broadcasts_.roots.empty()) [[unlikely]] settle(peer.rank);
  if (head_is_due(peer)) [[unlikely]] mark_dirty(peer);
}

const char* Engine::take_block(Rail& rail, std::span<const std::byte> control, std::size_t payload_bytes) {
  wire::Reader reader(control);
  if (reader.get_bytes(sizeof(wire::BlockHead)).empty()) return "a block shorter than its head";
  take_head(rail, control.data());
  while (!reader.at_end()) {
    const wire::Prefix prefix = reader.peek();
    const char* wrong = prefix.kind == wire::Kind::eager ? take_eager(rail, reader, payload_bytes)
                                                         : take_other(rail, reader, prefix.kind, payload_bytes);
    if (!reader.ok()) return "a block that ends inside a record";
    if (wrong != nullptr) return wrong;
  }
  return nullptr;
}

/// Any record but an eager message.
const char* Engine::take_other(Rail& rail, wire::Reader& reader, wire::Kind kind, std::size_t payload_bytes) {
  Peer& peer = *rail.peer;
  switch (kind) {
    case wire::Kind::eager: break;
    case wire::Kind::announce: return take_announce(rail, reader, payload_bytes);
    case wire::Kind::grant: return take_grant(peer, reader.get<wire::Grant>());
    case wire::Kind::data: return take_data(rail, reader.get<wire::Data>(), payload_bytes);
    case wire::Kind::finish: return take_finish(peer, reader.get<wire::Finish>());
    case wire::Kind::share: return take_share(rail, reader.get<wire::Share>());
    case wire::Kind::shared: return take_shared(peer, reader.get<wire::Shared>());
    case wire::Kind::mcast: return take_mcast(rail, reader, payload_bytes);
    case wire::Kind::mcast_done:
    case wire::Kind::mcast_decline: return take_note(peer, reader.get<wire::McastNote>());
    case wire::Kind::mcast_lost: return take_lost(peer, reader.get<wire::McastLost>());
    case wire::Kind::goodbye:
    case wire::Kind::goodbye_answered: return take_goodbye(peer, reader.get<wire::Goodbye>());
    case wire::Kind::defer: return take_defer(peer, reader.get<wire::Defer>());
    case wire::Kind::want: return take_want(peer, reader.get<wire::Want>());
  }
  return "a record of an unknown kind";
}

/// A block's head begins here. Blocks of different rails overtake each other; what an older one says is known. All four counters
/// at once are fewer instructions, and no branch for each.
[[gnu::always_inline]] inline void Engine::take_head(const Rail& rail, const std::byte* head) {
  using Counters [[gnu::vector_size(sizeof(wire::BlockHead))]] = std::uint32_t;
  using Differences [[gnu::vector_size(sizeof(wire::BlockHead))]] = std::int32_t;
  wire::BlockHead& heard = rail.peer->head_received;
  const std::uint32_t fences_passed = heard.fences_passed;
  Counters told, known;
  std::memcpy(&told, head, sizeof told);
  std::memcpy(&known, &heard, sizeof known);
  known = reinterpret_cast<Differences>(told - known) > 0 ? told : known;
  std::memcpy(static_cast<void*>(&heard), &known, sizeof known);
  if (rail.link->rail() != 0) [[unlikely]] heard.fences_passed = fences_passed;  // those speak of rail 0
}

const char* Engine::take_eager(Rail& rail, wire::Reader& reader, std::size_t payload_bytes) {
  Peer& peer = *rail.peer;
  const auto eager = reader.get<wire::Eager>();
  const auto header = reader.get_bytes(eager.prefix.header_bytes);
  const bool by_payload = (eager.prefix.flags & wire::flag_payload) != 0;
  const auto data = by_payload ? std::span<const std::byte>() : reader.get_bytes(eager.bytes);
  if (!reader.ok()) return nullptr;  // the caller says so
  const bool early =
      (eager.prefix.flags & wire::flag_after) != 0 && !broadcasts_.roots[peer.rank.value()].has_entered(eager.after);
  const std::uint32_t after = early ? eager.after : 0;
  const MatchKey key{.source = peer.rank, .channel = eager.channel, .tag = eager.tag};
  if (!by_payload) return take_message(rail, key, eager.bytes, after, header, data), nullptr;
  if (eager.bytes == 0 || eager.bytes != payload_bytes || rail.landing.kind != LandingPlace::Kind::none) {
    return "an eager message whose payload has another size";
  }
  ReceiveCore* receive = receive_for(rail, key, eager.bytes, after, header, data);
  if (receive == nullptr) return nullptr;
  rail.landing.receive = receive;
  rail.landing.kind = LandingPlace::Kind::receive;
  if (shows_rate(peer, eager.bytes)) rail.landing.started_ns = now();
  receive->pieces.slice(0, std::min<std::size_t>(eager.bytes, receive->pieces.bytes()), rail.landing.pieces);
  return nullptr;
}

/// The receive that an eager message has met, and that knows of it now. Null: the message is kept, or its handler is asked.
[[gnu::always_inline]] inline ReceiveCore* Engine::receive_for(Rail& rail, MatchKey key, std::uint32_t bytes,
                                                               std::uint32_t after, std::span<const std::byte> header,
                                                               std::span<const std::byte> data) {
  Peer& peer = *rail.peer;
  ++peer.head.seen;
  ReceiveCore* receive = after != 0 ? nullptr : match(key);
  if (receive == nullptr) [[unlikely]] keep_eager(rail, key, bytes, after, header, data);
  else fill(*receive, peer, Tag{key.tag}, bytes, header);
  return receive;
}

/// An eager message whose data is here. `after`: the broadcast that it waits for; 0: none.
void Engine::take_message(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint32_t after, std::span<const std::byte> header,
                          std::span<const std::byte> data) {
  ReceiveCore* receive = receive_for(rail, key, bytes, after, header, data);
  if (receive != nullptr) deliver(*receive, *rail.peer, bytes, header.size(), data);
}

/// The data of an eager message goes to the receive that it has met.
[[gnu::always_inline]] inline void Engine::deliver(ReceiveCore& receive, Peer& peer, std::uint32_t bytes,
                                                   std::size_t header_bytes, std::span<const std::byte> data) {
  const std::size_t room = receive.pieces.bytes();
  receive.pieces.copy_in(0, data.first(std::min(data.size(), room)));
  freed_message(peer, bytes, header_bytes);
  arrive(receive, bytes > room ? Ending::truncated : Ending::done);
}

/// `wire::holds_one_plain_message`: by far the most frequent. Without what needs a look-up it is short.
[[gnu::always_inline]] inline void Engine::take_plain_message(Rail& rail, Peer& peer, std::span<const std::byte> control) {
  const wire::Eager eager = wire::plain_message(control);
  PostedReceive* const met =
      handlers_.empty() ? matcher_.arrive_at_hand({.source = peer.rank, .channel = eager.channel, .tag = eager.tag}) : nullptr;
  if (met == nullptr) [[unlikely]] return look_up_plain_message(rail, control);
  auto& receive = static_cast<ReceiveCore&>(*met);
  ++peer.head.seen;
  fill(receive, peer, Tag{eager.tag}, eager.bytes, {});
  deliver(receive, peer, eager.bytes, 0, control.subspan(wire::kBeforeData, eager.bytes));
}

void Engine::look_up_plain_message(Rail& rail, std::span<const std::byte> control) {
  const wire::Eager eager = wire::plain_message(control);
  take_message(rail, {.source = rail.peer->rank, .channel = eager.channel, .tag = eager.tag}, eager.bytes, 0, {},
               control.subspan(wire::kBeforeData, eager.bytes));
}

/// An eager message that no receive waits for, or that has to wait for a broadcast itself (`after`). Without `data` the payload
/// is still to land.
void Engine::keep_eager(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint32_t after, std::span<const std::byte> header,
                        std::span<const std::byte> data) {
  auto* envelope = new Envelope(Envelope::Kind::eager, key, rail.peer, bytes, header);
  envelope->after = after;
  envelope->complete = data.size() == bytes;
  envelope->make_room();
  const std::span<std::byte> room = envelope->room();
  if (!envelope->complete) {
    rail.landing.kind = LandingPlace::Kind::envelope;
    rail.landing.envelope = envelope;
    rail.landing.pieces.push_back(iovec{room.data(), room.size()});
  } else {
    copy_few(room.data(), data.data(), data.size());
  }
  if (after != 0) wait_for_broadcast(*envelope);
  else set_aside(*envelope);
}

/// All of a message begins to come from `peer`; of a broadcast, that is not its source.
void Engine::notify_incoming(const Peer& peer, const MatchKey& key, std::uint64_t bytes) {
  const double rate = std::max(peer.bytes_per_ns, 1e-6);
  const std::int64_t expected_ns = now_ns_ + 2 * peer.latency_ns + static_cast<std::int64_t>(static_cast<double>(bytes) / rate);
  events_.push_back(Event{.call = [this, key, bytes, expected_ns] {
    on_incoming(key.source, Channel{key.channel}, Tag{key.tag}, bytes, std::max<std::int64_t>(expected_ns - now(), 0));
  }});
}

const char* Engine::take_announce(Rail& rail, wire::Reader& reader, std::size_t payload_bytes) {
  Peer& peer = *rail.peer;
  const auto announce = reader.get<wire::Announce>();
  const auto header = reader.get_bytes(announce.prefix.header_bytes);
  if (!reader.ok()) return nullptr;
  if (peer.incoming.contains(announce.stream)) return "an announcement with the number of a stream that exists";
  const bool brings = (announce.prefix.flags & wire::flag_payload) != 0;
  const std::size_t along = brings ? payload_bytes : 0;
  if (brings) {
    const bool fits = along > 0 && along <= announce.bytes && announce.address == 0;
    if (!fits || rail.landing.kind != LandingPlace::Kind::none) return "an announcement with a payload that is not its beginning";
    rail.landing.kind = LandingPlace::Kind::drop;
  }
  ++peer.head.seen;
  const MatchKey key{.source = peer.rank, .channel = announce.channel, .tag = announce.tag};
  const Envelope::Announced announced{
      .address = announce.address, .stream = announce.stream, .along = static_cast<std::uint32_t>(along)};
  if (on_incoming && announce.bytes > 0) notify_incoming(peer, key, announce.bytes);
  const bool early =
      (announce.prefix.flags & wire::flag_after) != 0 && !broadcasts_.roots[peer.rank.value()].has_entered(announce.after);
  if (ReceiveCore* receive = early ? nullptr : match(key)) {
    fill(*receive, peer, Tag{key.tag}, announce.bytes, header);
    start_incoming(*receive, peer, announced, announce.bytes, false);
    if (Incoming* incoming = along > 0 ? peer.incoming.find(announce.stream) : nullptr) land_along(rail, *incoming, along);
    return nullptr;
  }
  auto* envelope = new Envelope(Envelope::Kind::announced, key, &peer, announce.bytes, header);
  envelope->announced = announced;
  envelope->late = true;
  envelope->after = early ? announce.after : 0;
  if (early) wait_for_broadcast(*envelope);
  else set_aside(*envelope);
  return nullptr;
}

/// The posted receive that a message goes to; it is posted no more. Null: none, or the message is for a handler.
[[gnu::always_inline]] inline ReceiveCore* Engine::match(MatchKey key) {
  return has_handler(key.channel) ? nullptr : static_cast<ReceiveCore*>(matcher_.arrive(key));
}

/// A message takes its place in the order of its key: to its handler, to the receive that waits for it, or among the unexpected.
/// The envelope may be gone then.
void Engine::match_envelope(Envelope& envelope) {
  if (ReceiveCore* receive = match(envelope.key)) give(envelope, *receive);
  else set_aside(envelope);
}

/// A message in its place in the order, that no receive waits for.
void Engine::set_aside(Envelope& envelope) {
  if (has_handler(envelope.key.channel)) hand_over(envelope);
  else keep(envelope);
}

void Engine::keep(Envelope& envelope) {
  ++statistics_.unexpected_messages;
  if (envelope.data != nullptr) statistics_.unexpected_bytes += envelope.bytes;
  if (envelope.peer != nullptr && !envelope.peer->probed.empty()) [[unlikely]] {
    std::erase_if(envelope.peer->probed, [&](const MatchPattern& pattern) { return pattern.matches(envelope.key); });
  }
  envelope.kept = true;
  matcher_.keep(envelope);
}

void Engine::keep_no_more(Envelope& envelope) {
  if (!envelope.kept) return;
  envelope.kept = false;
  --statistics_.unexpected_messages;
  if (envelope.data != nullptr) statistics_.unexpected_bytes -= envelope.bytes;
}

/// A message that was in nobody's hands goes to a receive. The envelope is gone afterwards, or when its data is complete.
void Engine::give(Envelope& envelope, ReceiveCore& core) {
  keep_no_more(envelope);
  if (envelope.kind == Envelope::Kind::broadcast && envelope.lost) {  // the broadcast is gone
    fail_receive(core, Ending::peer_dead, envelope.key.source);
    delete &envelope;
    return;
  }
  if (envelope.kind == Envelope::Kind::broadcast) {
    Broadcast& broadcast = *envelope.broadcast;
    broadcast.envelope = nullptr;
    delete &envelope;
    return matched(broadcast, core);
  }
  // A sender that gives two messages one number lies about at least one of them.
  const bool announced = envelope.kind == Envelope::Kind::announced;
  if (announced && envelope.peer->incoming.contains(envelope.announced.stream)) lose_envelope(envelope);
  if (envelope.lost) {
    core.other = envelope.key.source;
    core.tag = Tag{envelope.key.tag};
    fail_receive(core, Ending::peer_dead, envelope.key.source);
    return discard(&envelope);
  }
  fill(core, *envelope.peer, Tag{envelope.key.tag}, envelope.bytes, envelope.header());
  if (announced) {
    start_incoming(core, *envelope.peer, envelope.announced, envelope.bytes, envelope.late);
    delete &envelope;
  } else if (envelope.complete) {
    finish_envelope(envelope, core);
  } else {
    envelope.receive = &core;
  }
}

/// An eager message that was unexpected is complete and has its receive.
void Engine::finish_envelope(Envelope& envelope, ReceiveCore& core) {
  if (core.owns_buffer && envelope.data != nullptr) {
    core.keep_owned(std::move(envelope.data));
  } else {
    core.pieces.copy_in(0, envelope.room().first(std::min<std::size_t>(envelope.bytes, core.pieces.bytes())));
  }
  const bool truncated = !core.has_owned() && envelope.bytes > core.pieces.bytes();
  freed_message(*envelope.peer, envelope.bytes, envelope.header_bytes);
  if (head_is_due(*envelope.peer)) mark_dirty(*envelope.peer);
  delete &envelope;
  arrive(core, truncated ? Ending::truncated : Ending::done);
}

void Engine::discard(Envelope* envelope) {
  keep_no_more(*envelope);
  delete envelope;
}

/// What the receive learns of its message.
[[gnu::always_inline]] inline void Engine::fill(ReceiveCore& core, Peer& peer, Tag tag, std::uint64_t bytes,
                                                std::span<const std::byte> header) {
  core.other = peer.rank;
  core.tag = tag;
  core.bytes = bytes;
  core.keep_header(header);
  if (core.owns_buffer && core.pieces.bytes() == 0 && bytes > 0) [[unlikely]] {
    // The size comes from the network. Without as much memory the receive is one without room: it ends as truncated.
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
    if (memory == nullptr) return;
    core.pieces = Pieces(memory.get(), bytes);
    core.keep_owned(std::move(memory));
  }
}

void Engine::landed(Link& link, std::uint64_t) {
  Rail& rail = rail_of(link);
  LandingPlace& place = rail.landing;
  const auto kind = std::exchange(place.kind, LandingPlace::Kind::none);
  Peer& peer = *rail.peer;
  switch (kind) {
    case LandingPlace::Kind::none:
    case LandingPlace::Kind::drop: return;
    case LandingPlace::Kind::receive: {
      ReceiveCore& core = *place.receive;
      if (context_.options.eager_bytes == 0) measure(peer, place.bytes, place.started_ns);  // so large on fast networks alone
      freed_message(peer, core.bytes, core.header().size());
      if (head_is_due(peer)) mark_dirty(peer);
      return arrive(core, core.bytes > core.pieces.bytes() ? Ending::truncated : Ending::done);
    }
    case LandingPlace::Kind::envelope: {
      Envelope& envelope = *place.envelope;
      envelope.complete = true;
      if (envelope.receive != nullptr) finish_envelope(envelope, *envelope.receive);
      return;
    }
    case LandingPlace::Kind::incoming: {
      Incoming& incoming = *place.incoming;
      --incoming.landings;
      return landed_data(incoming, place.offset, place.bytes);
    }
  }
}

const char* Engine::take_goodbye(Peer& peer, const wire::Goodbye& goodbye) {
  departed_.push_back(&peer);
  // Once we have answered, nothing is written into its memory any more.
  pushing_.remove_if([&](const Push& push) { return push.stream->peer == &peer; });
  if (goodbye.prefix.kind == wire::Kind::goodbye_answered) {
    peer.goodbye_answered = true;
    return nullptr;
  }
  wire::Goodbye answer;
  answer.prefix.kind = wire::Kind::goodbye_answered;
  post_control(peer, answer);
  if (!std::exchange(peer.left, true)) peer_has_left(peer);
  return nullptr;
}

std::optional<Peeked> Engine::probe(Source from, TagPattern tag, Channel channel) {
  const MatchPattern pattern = pattern_of(from, tag, channel);
  ArrivedEnvelope* found = matcher_.peek(pattern);
  if (found == nullptr) {
    if (!deferring_peers_.empty()) want_probed(pattern);
    return std::nullopt;
  }
  const auto& envelope = static_cast<const Envelope&>(*found);
  const auto header = envelope.header();
  return Peeked{.source = envelope.key.source,
                .tag = Tag{envelope.key.tag},
                .bytes = envelope.bytes,
                .header = {header.begin(), header.end()}};
}

// ---- Active messages.

void Engine::register_rpc(Channel channel, RpcHandler handler) {
  TANDEM_ASSERT(!handlers_.contains(channel.value()));
  handlers_.emplace(channel.value(), std::move(handler));
  const MatchPattern everything{.source = Rank{0}, .channel = channel.value(), .tag = 0, .any_source = true, .any_tag = true};
  while (ArrivedEnvelope* found = matcher_.take(everything)) hand_over(static_cast<Envelope&>(*found));
  for (Peer* peer : deferring_peers_) want_all(*peer, channel.value());
}

/// Asks the handler, without the lock, where the message should go.
void Engine::hand_over(Envelope& envelope) {
  keep_no_more(envelope);
  asked_.insert(&envelope);
  // Looked up while the lock is held: others may register handlers later. They stay where they are.
  const RpcHandler& handler = handlers_.find(envelope.key.channel)->second;
  events_.push_back(Event{.call = [this, &envelope, &handler] {
    RpcAnswer answer;
    if (handler.arrived) {
      answer = handler.arrived(RpcArrival{
          .source = envelope.key.source, .tag = Tag{envelope.key.tag}, .bytes = envelope.bytes, .header = envelope.header()});
    }
    context_.with_lock([&] { answered(envelope, std::move(answer), handler); });
  }});
}

void Engine::answered(Envelope& envelope, RpcAnswer answer, const RpcHandler& handler) {
  asked_.erase(&envelope);
  Pieces pieces = std::move(answer.buffer).take();
  const bool owned = answer.wanted && pieces.bytes() == 0;
  // It is posted nowhere; but the trace shall know what for.
  const MatchPattern met{.source = envelope.key.source, .channel = envelope.key.channel, .tag = envelope.key.tag};
  auto* core = new ReceiveCore(met, std::move(pieces), owned);
  ++outstanding_;
  trace_.receive_posted(*core);
  if (answer.wanted && handler.done) {
    std::function<void(const Status&)> done = handler.done;
    if (handler.executor) {
      // The request stays alive for as long as the executor needs it: a reference travels with the call.
      core->retain();
      done = [&handler, request = Request(core)](const Status&) {
        handler.executor([&handler, request] { handler.done(request.status()); });
      };
    }
    keep_notify(*core, Callbacks{.released = done, .failed = done}, nullptr, 0);
  }
  give(envelope, *core);
}

}  // namespace tandem::comm::internal
