// tandem/comm/engine/arrivals.cpp: from arrived messages to receives: matching, unexpected messages, active messages.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {

Arrivals::Arrivals(EngineParts& parts)
    : context_(parts.context),
      trace_(parts.completions.trace),
      statistics_(parts.completions.statistics),
      broadcasts_(parts.broadcasts),
      completions_(parts.completions),
      peers_(parts.peers),
      incoming_(parts.incoming),
      listener_(parts.recipient),
      allowed_(Allowance::of(parts.context.options)) {}

/// Ends a receive or a probe that was posted for a rank that cannot be reached (null) or is gone.
void Arrivals::fail_posted(ReceiveCore& core, const Peer* peer) {
  take_back(core);
  completions_.fail_receive(core, peer != nullptr && peer->left ? Ending::peer_left : Ending::peer_dead,
                            core.pattern.source);
}

const char* Arrivals::take_eager(Rail& rail, wire::Reader& reader, std::size_t payload_bytes) {
  Peer& peer = *rail.peer;
  const auto eager = reader.get<wire::Eager>();
  const std::uint64_t named = (eager.prefix.flags & wire::flag_after) != 0 ? reader.get<wire::After>().broadcast : 0;
  const auto header = reader.get_bytes(eager.prefix.header_bytes);
  const bool by_payload = (eager.prefix.flags & wire::flag_payload) != 0;
  const auto data = by_payload ? std::span<const std::byte>() : reader.get_bytes(eager.bytes);
  if (!reader.ok()) return nullptr;  // the caller says so
  const std::uint64_t after = not_entered(peer.rank, named);
  const MatchKey key{.source = peer.rank, .channel = eager.channel, .tag = eager.tag};
  if (header.size() > Endpoint::max_header_bytes) return "a message with too large a header";
  if (!by_payload) return take_message(rail, key, eager.bytes, after, header, data);
  if (eager.bytes == 0 || eager.bytes != payload_bytes || rail.landing.kind != LandingPlace::Kind::none) {
    return "an eager message whose payload has another size";
  }
  const char* wrong = nullptr;
  ReceiveCore* receive = receive_for(rail, key, eager.bytes, after, header, data, wrong);
  if (receive == nullptr) return wrong;
  rail.landing.receive = receive;
  rail.landing.kind = LandingPlace::Kind::receive;
  if (peers_.shows_rate(peer, eager.bytes)) rail.landing.started_ns = context_.now();
  receive->pieces.slice(0, std::min<std::size_t>(eager.bytes, receive->pieces.bytes()), rail.landing.pieces);
  return nullptr;
}

/// The broadcast that a message names, if the message has to wait for it; 0: none.
std::uint64_t Arrivals::not_entered(Rank root, std::uint64_t named) {
  return named != 0 && !broadcasts_.roots[root.value()].has_entered(named) ? named : 0;
}

/// The receive that an eager message has met. Null: the message is kept, its handler is asked, or it is `wrong`.
[[gnu::always_inline]] inline ReceiveCore* Arrivals::receive_for(Rail& rail, MatchKey key, std::uint32_t bytes,
                                                               std::uint64_t after, std::span<const std::byte> header,
                                                               std::span<const std::byte> data, const char*& wrong) {
  Peer& peer = *rail.peer;
  ++peer.head.seen;
  ReceiveCore* receive = after != 0 ? nullptr : match(key);
  if (receive == nullptr) [[unlikely]] wrong = keep_eager(rail, key, bytes, after, header, data);
  else fill(*receive, peer, Tag{key.tag}, bytes, header);
  return receive;
}

/// Takes an eager message whose data is here. `after`: the broadcast that it waits for; 0: none.
const char* Arrivals::take_message(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint64_t after,
                                   std::span<const std::byte> header, std::span<const std::byte> data) {
  const char* wrong = nullptr;
  ReceiveCore* receive = receive_for(rail, key, bytes, after, header, data, wrong);
  if (receive != nullptr) deliver(*receive, *rail.peer, bytes, header.size(), data);
  return wrong;
}

const char* Arrivals::look_up_plain_message(Rail& rail, const wire::Eager& eager, std::span<const std::byte> control) {
  return take_message(rail, {.source = rail.peer->rank, .channel = eager.channel, .tag = eager.tag}, eager.bytes, 0, {},
               control.subspan(wire::kBeforeData, eager.bytes));
}

/// Keeps an eager message that no receive waits for, or that waits for a broadcast itself (`after`). Without `data` the
/// payload is still to land.
const char* Arrivals::keep_eager(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint64_t after,
                                 std::span<const std::byte> header, std::span<const std::byte> data) {
  if (!rail.peer->occupied.take(units_of(bytes, header.size()), allowed_)) return kBeyondCredit;
  auto* envelope = new Envelope(Envelope::Kind::eager, key, rail.peer, bytes, header);
  envelope->counted = true;
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
  set_aside(*envelope, after);
  return nullptr;
}

/// Notifies that a message begins to come from `peer`, which may not be the source of a broadcast.
void Arrivals::notify_incoming(const Peer& peer, const MatchKey& key, std::uint64_t bytes) {
  const double rate = std::max(peer.bytes_per_ns, 1e-6);
  // The known network counts until messages have shown how fast it is now.
  const bool by_known = !peer.measured && peer.known != nullptr && peer.known->message_ns;
  const double takes_ns = by_known ? peer.known->message_ns(bytes)
                                   : 2 * static_cast<double>(peer.latency_ns) + static_cast<double>(bytes) / rate;
  const std::int64_t expected_ns = context_.now() + static_cast<std::int64_t>(takes_ns);
  completions_.call_later([this, key, bytes, expected_ns] {
    completions_.on_incoming(key.source, Channel{key.channel}, Tag{key.tag}, bytes,
                             std::max<std::int64_t>(expected_ns - context_.now(), 0));
  });
}

const char* Arrivals::take_announce(Rail& rail, wire::Reader& reader, std::size_t payload_bytes) {
  Peer& peer = *rail.peer;
  const auto announce = reader.get<wire::Announce>();
  const std::uint64_t named = (announce.prefix.flags & wire::flag_after) != 0 ? reader.get<wire::After>().broadcast : 0;
  const auto header = reader.get_bytes(announce.prefix.header_bytes);
  if (!reader.ok()) return nullptr;
  if (header.size() > Endpoint::max_header_bytes) return "a message with too large a header";
  if (peer.incoming.contains(announce.stream)) return "an announcement with the number of a stream that exists";
  const bool brings = (announce.prefix.flags & wire::flag_payload) != 0;
  const std::size_t along = brings ? payload_bytes : 0;
  if (brings) {
    const bool fits = along > 0 && along <= announce.bytes && announce.address == 0;
    if (!fits || rail.landing.kind != LandingPlace::Kind::none)
      return "an announcement with a payload that is not its beginning";
    rail.landing.kind = LandingPlace::Kind::drop;
  }
  ++peer.head.seen;
  const MatchKey key{.source = peer.rank, .channel = announce.channel, .tag = announce.tag};
  const Envelope::Announced announced{
      .address = announce.address, .stream = announce.stream, .along = base::narrow<std::uint32_t>(along)};
  if (completions_.on_incoming && announce.bytes > 0) notify_incoming(peer, key, announce.bytes);
  const std::uint64_t after = not_entered(peer.rank, named);
  if (ReceiveCore* receive = after != 0 ? nullptr : match(key)) {
    fill(*receive, peer, Tag{key.tag}, announce.bytes, header);
    incoming_.start_incoming(*receive, peer, announced, announce.bytes, {});
    if (Incoming* incoming = along > 0 ? peer.incoming.find(announce.stream) : nullptr)
      incoming_.land_along(rail, *incoming, along);
    return nullptr;
  }
  const bool handled = has_handler(key.channel);
  const bool call = handled && !peer.wants_everything;
  const bool counted = !handled && !peer.wants_everything;
  if (call && !peer.occupied.take_call(allowed_)) return kBeyondCalls;
  if (counted && !peer.occupied.take_announcement(allowed_, peer.asked)) return kBeyondCredit;
  auto* envelope = new Envelope(Envelope::Kind::announced, key, &peer, announce.bytes, header);
  envelope->announced = announced;
  envelope->counted = counted;
  envelope->call = call;
  envelope->late = true;
  envelope->placed = (announce.prefix.flags & wire::flag_placed) != 0 && Peers::reads(peer, BufferMemory::cuda);
  set_aside(*envelope, after);
  return nullptr;
}

/// Puts a message into the order of its key: to its handler, to the receive that waits for it, or among the unexpected.
/// The envelope may be gone then.
void Arrivals::match_envelope(Envelope& envelope) {
  if (ReceiveCore* receive = match(envelope.key)) give(envelope, *receive);
  else set_aside(envelope);
}

void Arrivals::set_aside(Envelope& envelope, std::uint64_t after) {
  if (after != 0) broadcasts_.roots[envelope.key.source.value()].plain.push_back({&envelope, after});
  else if (has_handler(envelope.key.channel)) hand_over(envelope);
  else keep(envelope);
}

void Arrivals::keep(Envelope& envelope) {
  ++statistics_.unexpected_messages;
  if (envelope.data != nullptr) statistics_.unexpected_bytes += envelope.bytes;
  if (envelope.peer != nullptr && !envelope.peer->probed.empty()) [[unlikely]] {
    std::erase_if(envelope.peer->probed, [&](const MatchPattern& pattern) { return pattern.matches(envelope.key); });
  }
  envelope.kept = true;
  matcher_.keep(envelope);
  if (!awaiting_.empty()) [[unlikely]] tell_awaiting(envelope);
}

void Arrivals::await_message(ReceiveCore& core) {
  if (ArrivedEnvelope* const found = matcher_.peek(core.pattern))
    return end_awaiting(core, static_cast<Envelope&>(*found));
  awaiting_.emplace(core.pattern.tag, &core);
}

/// Ends the requests that wait for such a message, which is kept.
void Arrivals::tell_awaiting(const Envelope& envelope) {
  for (auto [at, end] = awaiting_.equal_range(envelope.key.tag); at != end;) {
    ReceiveCore& core = *at->second;
    if (!core.pattern.matches(envelope.key)) {
      ++at;
      continue;
    }
    at = awaiting_.erase(at);
    end_awaiting(core, envelope);
  }
}

void Arrivals::end_awaiting(ReceiveCore& core, const Envelope& envelope) {
  core.other = envelope.key.source;
  core.bytes = envelope.bytes;
  core.ending = Ending::done;
  completions_.end(core, CompletionQueue::Event::released);
}

bool Arrivals::take_back(ReceiveCore& core) noexcept {
  if (matcher_.cancel(core)) return true;
  const auto [first, last] = awaiting_.equal_range(core.pattern.tag);
  const auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second == &core; });
  if (found == last) return false;
  awaiting_.erase(found);
  return true;
}

std::vector<ReceiveCore*> Arrivals::extract_awaiting(std::optional<Rank> from) {
  std::vector<ReceiveCore*> found;
  std::erase_if(awaiting_, [&](const auto& entry) {
    const bool is_wanted = !from || entry.second->pattern.source == *from;
    if (is_wanted) found.push_back(entry.second);
    return is_wanted;
  });
  return found;
}

void Arrivals::keep_no_more(Envelope& envelope) {
  if (envelope.kind == Envelope::Kind::announced && envelope.counted) {
    envelope.counted = false;
    envelope.peer->occupied.leave_announcement();
  }
  if (!envelope.kept) return;
  envelope.kept = false;
  --statistics_.unexpected_messages;
  if (envelope.data != nullptr) statistics_.unexpected_bytes -= envelope.bytes;
}

/// Gives an unexpected message to a receive. The envelope is gone afterwards, or when its data is complete.
void Arrivals::give(Envelope& envelope, ReceiveCore& core) {
  keep_no_more(envelope);
  if (envelope.kind == Envelope::Kind::broadcast && envelope.lost) {  // the broadcast is gone
    completions_.fail_receive(core, Ending::peer_dead, envelope.key.source);
    delete &envelope;
    return;
  }
  if (envelope.kind == Envelope::Kind::broadcast) {
    Broadcast& broadcast = *envelope.broadcast;
    broadcast.envelope = nullptr;
    delete &envelope;
    return listener_.matched(broadcast, core);
  }
  // A sender that gives two messages one number lies about at least one of them.
  const bool announced = envelope.kind == Envelope::Kind::announced;
  if (announced && envelope.peer->incoming.contains(envelope.announced.stream)) lose_envelope(envelope);
  if (envelope.lost) {
    core.other = envelope.key.source;
    core.tag = Tag{envelope.key.tag};
    completions_.fail_receive(core, Ending::peer_dead, envelope.key.source);
    return discard(&envelope);
  }
  fill(core, *envelope.peer, Tag{envelope.key.tag}, envelope.bytes, envelope.header());
  if (announced) {
    const IncomingTransfers::Meets meets{.late = envelope.late, .call = envelope.call};
    incoming_.start_incoming(core, *envelope.peer, envelope.announced, envelope.bytes, meets);
    delete &envelope;
  } else if (envelope.complete) {
    finish_envelope(envelope, core);
  } else {
    envelope.receive = &core;
  }
}

/// Ends an eager message that was unexpected, is complete and has its receive.
void Arrivals::finish_envelope(Envelope& envelope, ReceiveCore& core) {
  if (core.owns_buffer && envelope.data != nullptr) {
    core.keep_owned(std::move(envelope.data));
  } else {
    core.pieces.copy_in(0, envelope.room().first(std::min<std::size_t>(envelope.bytes, core.pieces.bytes())));
  }
  const bool truncated = !core.has_owned() && envelope.bytes > core.pieces.bytes();
  if (envelope.counted) envelope.peer->occupied.leave(1, units_of(envelope.bytes, envelope.header_bytes));
  freed_message(*envelope.peer, envelope.bytes, envelope.header_bytes);
  if (peers_.head_is_due(*envelope.peer)) peers_.mark_dirty(*envelope.peer);
  delete &envelope;
  completions_.arrive(core, truncated ? Ending::truncated : Ending::done);
}

void Arrivals::discard(Envelope* envelope) {
  keep_no_more(*envelope);
  if (envelope->call) envelope->peer->occupied.leave_call();
  delete envelope;
}

void Arrivals::landed(Link& link, std::uint64_t) {
  Rail& rail = peers_.rail_of(link);
  LandingPlace& place = rail.landing;
  const auto kind = std::exchange(place.kind, LandingPlace::Kind::none);
  Peer& peer = *rail.peer;
  switch (kind) {
    case LandingPlace::Kind::none:
    case LandingPlace::Kind::drop: return;
    case LandingPlace::Kind::receive: {
      ReceiveCore& core = *place.receive;
      if (context_.options.eager_bytes == 0)
        peers_.measure(peer, place.bytes, place.started_ns);  // only large ones on fast networks
      freed_message(peer, core.bytes, core.header().size());
      if (peers_.head_is_due(peer)) peers_.mark_dirty(peer);
      return completions_.arrive(core, core.bytes > core.pieces.bytes() ? Ending::truncated : Ending::done);
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
      return incoming_.landed_data(incoming, place.offset, place.bytes);
    }
    case LandingPlace::Kind::superseded: return listener_.superseded_landed(*place.strand);
  }
}

std::optional<Peeked> Arrivals::probe(const MatchPattern& pattern) {
  ArrivedEnvelope* found = matcher_.peek(pattern);
  if (found == nullptr) return std::nullopt;
  const auto& envelope = static_cast<const Envelope&>(*found);
  const auto header = envelope.header();
  return Peeked{.source = envelope.key.source,
                .tag = Tag{envelope.key.tag},
                .bytes = envelope.bytes,
                .header = {header.begin(), header.end()},
                .announced = envelope.kind == Envelope::Kind::announced,
                .placed = envelope.placed};
}

bool Arrivals::is_placed(const MatchPattern& pattern) {
  const ArrivedEnvelope* const found = matcher_.peek(pattern);
  return found != nullptr && static_cast<const Envelope*>(found)->placed;
}

bool Arrivals::register_rpc(Channel channel, RpcHandler handler) {
  if (handlers_.contains(channel.value())) return false;
  handlers_.emplace(channel.value(), std::move(handler));
  const MatchPattern everything{
      .source = Rank{0}, .channel = channel.value(), .tag = 0, .any_source = true, .any_tag = true};
  while (ArrivedEnvelope* found = matcher_.take(everything)) hand_over(static_cast<Envelope&>(*found));
  return true;
}

/// Asks the handler, without the lock, where the message should go.
void Arrivals::hand_over(Envelope& envelope) {
  keep_no_more(envelope);
  asked_.insert(&envelope);
  // The handler is looked up while the lock is held: others may register handlers later, which do not move this one.
  const RpcHandler& handler = handlers_.find(envelope.key.channel)->second;
  completions_.call_later([this, &envelope, &handler] {
    RpcAnswer answer{.wanted = false};
    const auto pass_on = [&] { context_.with_lock([&] { answered(envelope, std::move(answer), handler); }); };
    try {
      answer = handler.arrived ? handler.arrived(RpcArrival{.source = envelope.key.source,
                                                            .tag = Tag{envelope.key.tag},
                                                            .bytes = envelope.bytes,
                                                            .header = envelope.header()})
                               : RpcAnswer{};
    } catch (...) {
      pass_on();
      throw;
    }
    pass_on();
  });
}

void Arrivals::answered(Envelope& envelope, RpcAnswer answer, const RpcHandler& handler) {
  asked_.erase(&envelope);
  Pieces pieces = std::move(answer.buffer).take();
  const bool owned = answer.wanted && pieces.bytes() == 0;
  // The receive is posted nowhere, but the trace records what it matches.
  const MatchPattern met{.source = envelope.key.source, .channel = envelope.key.channel, .tag = envelope.key.tag};
  auto* core = new ReceiveCore(met, std::move(pieces), owned);
  completions_.begin();
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
    completions_.keep_notify(*core, Callbacks{.released = done, .failed = done}, nullptr, 0);
  }
  give(envelope, *core);
}

/// Notes that the sender of a message is dead, so that its missing data will not come.
void Arrivals::lose_envelope(Envelope& envelope) {
  if (envelope.kind != Envelope::Kind::broadcast && !envelope.complete) envelope.lost = true;
}

void Arrivals::lose_asked(Rank sender) noexcept {
  for (Envelope* envelope : asked_) {
    if (envelope->key.source == sender) lose_envelope(*envelope);
  }
}

void Arrivals::lose_asked() noexcept {
  for (Envelope* envelope : asked_) envelope->lost = true;
}

void Arrivals::drop_asked() noexcept {
  for (Envelope* envelope : asked_) delete envelope;
  asked_.clear();
}

}  // namespace tandem::comm::internal
