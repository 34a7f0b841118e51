// tandem/comm/engine/sending.cpp: from a posted send to packets on rails.
#include <algorithm>
#include <array>
#include <cstring>

#include "tandem/comm/engine/engine.hpp"

namespace tandem::comm::internal {

/// The way of a small message when nothing is queued and the rail is free: no queue, no plan, nothing to be remembered, and on a
/// rail that lends its room no copy on the way. Null: it cannot go this way, and nothing has happened.
inline RequestCore* Engine::send_at_once(Peer& peer, Tag tag, const Pieces& pieces, std::uint32_t after,
                                         const SendOptions& options) {
  const std::size_t bytes = pieces.bytes();
  if (!takes_at_once(peer, bytes) || !Credit(peer, context_.options).covers(bytes, options.header.size())) [[unlikely]] {
    return nullptr;
  }
  Rail& rail = *peer.rails[0];
  std::array<std::byte, wire::kBeforeData + Endpoint::max_header_bytes + kInlineBytes> own;
  const std::size_t records = wire::kBeforeData + wire::padded(options.header.size());
  const std::span<std::byte> block = rail.link->lend(std::span(own).first(records + wire::padded(bytes)));
  if (block.empty()) [[unlikely]] {
    rail.blocked = true;
    return nullptr;
  }
  // From the end to the beginning, as `Link::lend` wants it.
  if (bytes % 8 != 0) std::memset(block.data() + block.size() - 8, 0, 8);
  const std::size_t left_in_first = pieces.contiguous() && records < Link::kFirstBytes ? Link::kFirstBytes - records : 0;
  const std::size_t near = std::min(bytes, left_in_first);
  if (bytes > near) pieces.copy_out(near, block.subspan(records + near, bytes - near));
  wire::Writer writer(block);
  writer.put_head(peer.head);
  wire::Eager eager{
      .bytes = static_cast<std::uint32_t>(bytes), .channel = options.channel.value(), .after = after, .tag = tag.value()};
  if (after != 0) eager.prefix.flags = wire::flag_after;
  eager.prefix.header_bytes = static_cast<std::uint16_t>(options.header.size());
  writer.put(eager);
  writer.put_bytes(options.header);
  if (near > 0) pieces.copy_out(0, block.subspan(records, near));
  if (rail.link->send_lent(block) == SendStatus::retry) [[unlikely]] {
    rail.blocked = true;
    return nullptr;
  }
  return sent_at_once(peer, tag, bytes, units_of(bytes, options.header.size()), block.size(), options);
}

/// Any send but a short one whose rail is free (send_short.hpp).
RequestCore* Engine::send_otherwise(Rank to, Tag tag, SendBuffer&& buffer, const SendOptions& options) {
  TANDEM_ASSERT(to.value() < context_.size);
  TANDEM_ASSERT(options.header.size() <= Endpoint::max_header_bytes);
  std::uint32_t after = 0;
  if (!broadcasts_.by_key.empty()) {
    start_those_before(to, options.channel, tag);
    after = last_broadcast_to(to, options.channel, tag);
  }
  Peer* peer = peer_for(to);
  const bool gone = peer == nullptr || peer->dead || peer->left;
  if (!gone) [[likely]] {
    if (RequestCore* sent = send_at_once(*peer, tag, buffer.pieces(), after, options)) [[likely]] return sent;
  }
  ++statistics_.messages_sent;
  auto* core = new SendCore;
  core->keep();
  core->other = to;
  core->RequestCore::tag = tag;
  core->SendItem::channel = options.channel.value();
  core->pieces = std::move(buffer).take();
  core->bytes = core->pieces.bytes();
  core->SendItem::priority = options.priority;
  core->after = after;
  core->keep_header(options.header);
  keep_notify(*core, options);
  ++outstanding_;
  trace_.send_posted(*core);
  if (gone) {
    finish_send(*core, peer != nullptr && peer->left ? Ending::peer_left : Ending::peer_dead, to);
    return core;
  }
  core->peer = peer;
  if (to == context_.rank) {
    prepare(*core, *peer);
    send_to_self(*core, *peer);
  } else {
    enqueue(*core, *peer);
    pump(*peer);
  }
  return core;
}

/// Says how a message travels, as far as its size decides, and fills its `SendItem`. What is to go eagerly takes its credit when
/// its packet is formed, so that waiting messages take none; it is announced when there is none then.
void Engine::prepare(SendCore& core, Peer& peer) {
  core.SendItem::tag = core.RequestCore::tag.value();
  core.ordered = true;
  const bool self = peer.transport == nullptr;
  core.whole = self || core.bytes <= eager_limit(peer);
  if (!core.whole) {
    core.bulk_bytes = bytes_unasked(core, peer);
    core.whole = core.bulk_bytes == core.bytes && context_.options.eager_bytes == 0 &&
                 within_credit(peer, core.bytes, core.header().size());
  }
  if (!core.whole) {
    core.SendItem::kind = core.bulk_bytes > 0 ? SendKind::whole : SendKind::record;
    core.control_bytes = announced_bytes(core);
    return;
  }
  const bool inlined = core.bytes <= kInlineBytes;
  core.SendItem::kind = inlined ? SendKind::record : SendKind::whole;
  core.control_bytes = static_cast<std::uint32_t>(sizeof(wire::Eager) + wire::padded(core.header().size()) +
                                                  (inlined ? wire::padded(core.bytes) : 0));
  core.bulk_bytes = inlined ? 0 : core.bytes;
}

/// How much of a large message goes unasked: a segment, where a network that is known to be fast would be idle for the time of
/// the question. Nothing while others are under way, since they fill that time, and ought to end first; nor where receives are
/// late, or read by themselves.
std::uint64_t Engine::bytes_unasked(const SendCore& core, const Peer& peer) const noexcept {
  const Capabilities& able = peer.transport->capabilities();
  if (!peer.receives_wait || able.remote_read || able.shared_memory || !peer.outgoing.empty() || !peer.queue.idle()) return 0;
  const std::size_t segment = segment_for(peer);
  return segment > able.segment_bytes ? std::min<std::uint64_t>(segment, core.bytes) : 0;
}

/// Of its announcement.
std::uint32_t Engine::announced_bytes(const SendCore& core) noexcept {
  return static_cast<std::uint32_t>(sizeof(wire::Announce) + wire::padded(core.header().size()));
}

void Engine::make_stream(SendCore& core, Peer& peer) {
  ++peer.announced;
  OutgoingStream& stream = new_stream(peer);
  stream.send = &core;
  stream.source = &core.pieces;
  stream.length = stream.limit = stream.available = core.bytes;
  stream.priority = core.SendItem::priority;
  core.stream = &stream;
  reserve_port(stream);
}

bool Engine::within_credit(const Peer& peer, std::uint64_t bytes, std::size_t header_bytes) const noexcept {
  return Credit(peer, context_.options).covers(bytes, header_bytes);
}

/// Sees to it that eager messages of the plan that the credit does not cover do not go as they are. True when there was one: the
/// plan is stale.
bool Engine::announce_uncovered(Peer& peer) {
  Credit credit(peer, context_.options);
  if (credit.ample_for(plan_)) return false;
  const auto uncovered = [&credit](SendItem& item) {
    if (static_cast<Item&>(item).what != ItemKind::message) return false;
    const auto& core = static_cast<SendCore&>(item);
    return core.whole && !credit.take(core);
  };
  bool stale = std::any_of(plan_.records.begin(), plan_.records.end(), [&](SendItem* item) { return uncovered(*item); });
  if (!stale && (plan_.bulk == nullptr || !uncovered(*plan_.bulk))) return false;
  settle_queue(peer);
  return true;
}

/// Messages up to this size go unasked.
std::size_t Engine::eager_limit(const Peer& peer) const noexcept {
  const Capabilities& able = peer.transport->capabilities();
  return context_.options.eager_bytes > 0 ? std::min(context_.options.eager_bytes, able.max_payload_bytes) : able.eager_bytes;
}

void Engine::mark_dirty(Peer& peer) {
  if (std::exchange(peer.dirty, true)) return;
  dirty_.push_back(&peer);
}

/// Forms packets for the peer while its rails take them.
void Engine::pump(Peer& peer) {
  if (peer.pumping) return mark_dirty(peer);
  peer.pumping = true;
  for (unsigned number = 0; number < peer.rails.size(); ++number) {
    Rail& rail = *peer.rails[number];
    if (rail.blocked && !peer.dead) rail.blocked = !rail.link->has_room_again();
    while (!peer.dead && !peer.queue.idle() && !rail.blocked && pump_rail(peer, number)) {}
  }
  peer.pumping = false;
  note_backlog(peer);
  note_ready_bulk(peer);
}

/// Keeps count of the peers for whom something waits: when there is none, the network rests.
void Engine::note_backlog(Peer& peer) {
  const bool waits = !peer.dead && !peer.queue.idle();
  if (waits == peer.backlogged || peer.transport == nullptr) return;
  peer.backlogged = waits;
  Port& port = *peer.port;
  if (waits) {
    ++port.backlogged;
  } else if (--port.backlogged == 0) {
    if (port.rate.known()) return port.rate.rested(now(), 0);
    const auto [at_ns, bytes] = unsent_bytes(*peer.transport);
    port.rate.rested(at_ns, bytes);
    const bool watched = std::find(draining_.begin(), draining_.end(), peer.transport) != draining_.end();
    if (port.rate.look_ns() >= 0 && !watched) draining_.push_back(peer.transport);
  }
}

// ---- The gate of a port that peers share (`PortPacer`).

bool Engine::has_pacer(const Peer& peer) const noexcept {
  return context_.options.port_priorities && peer.transport != nullptr && !peer.transport->capabilities().shared_memory &&
         peer.queue.order() == SendOrder::priority;
}

/// Keeps the gate's account of what peers have ready.
void Engine::note_ready_bulk(Peer& peer) {
  const SendItem* const stream = peer.queue.stream();
  const auto priority = stream != nullptr ? std::optional(stream->priority) : std::nullopt;
  if (priority == peer.paced_priority || !has_pacer(peer)) return;
  if (peer.port->pacer.changed(std::exchange(peer.paced_priority, priority), priority, now())) release_paced(*peer.port);
}

/// Whether the peer's streams have to wait. They are noted, and pumped again when they need not.
bool Engine::must_wait_for_port(Peer& peer) {
  const SendItem* const stream = peer.queue.stream();
  if (stream == nullptr || !has_pacer(peer)) return false;
  const Port& port = *peer.port;
  const std::int64_t now_ns = now();
  const std::int64_t busy_ns = port.pacer.expects_above(stream->priority, now_ns) ? port_busy_ns(peer, 1) : 0;
  if (!port.pacer.holds(stream->priority, now_ns, busy_ns)) return false;
  peer.port->look_ns = port.pacer.due_ns(now_ns);
  if (!std::exchange(peer.held, true)) paced_peers_.push_back(&peer);
  return true;
}

/// For so long the port is busy with what it has and so many segments to the peer.
std::int64_t Engine::port_busy_ns(const Peer& peer, unsigned segments) const {
  const PortRate& port = peer.port->rate;
  const double rate = port.known() ? port.bytes_per_ns() : peer.bytes_per_ns;
  const auto bytes = static_cast<double>(unsent_bytes(*peer.transport).second + segments * segment_for(peer));
  return rate > 0 ? static_cast<std::int64_t>(bytes / rate) : 0;
}

/// What is urgent moves, or its receiver answers, within that time.
std::int64_t Engine::grace_ns(const Peer& peer) const {
  constexpr std::int64_t kLeastNs = 200'000, kMostNs = 200'000'000;
  constexpr unsigned kSegments = 2;
  return std::clamp(port_busy_ns(peer, kSegments), kLeastNs, kMostNs);
}

/// A segment was handed to the network.
void Engine::note_segment(Peer& peer, std::int32_t priority) {
  PortPacer& pacer = peer.port->pacer;
  if (pacer.contended()) pacer.moved(priority, now(), grace_ns(peer));
}

/// What was announced to its receiver is ready soon, if a receive waits for it. Until then what the port has keeps it busy.
void Engine::reserve_port(OutgoingStream& stream) {
  Peer& peer = *stream.peer;
  if (!has_pacer(peer) || !peer.port->pacer.has_below(stream.priority)) return;
  PortPacer& pacer = peer.port->pacer;
  const std::int64_t now_ns = now();
  stream.expected = pacer.announce(stream.priority, now_ns, now_ns + grace_ns(peer));
}

void Engine::drop_reservation(OutgoingStream& stream) {
  if (const std::uint64_t expected = std::exchange(stream.expected, 0); expected != 0) withdraw(*stream.peer->port, expected);
}

void Engine::withdraw(Port& port, std::uint64_t announced) {
  if (port.pacer.withdraw(announced)) release_paced(port);
}

/// The last of it was handed over: while that is in buffers, what is less urgent would share the port with it.
void Engine::reserve_while_draining(const OutgoingStream& stream) {
  const Peer& peer = *stream.peer;
  if (paced_peers_.empty() || !has_pacer(peer)) return;
  const std::int64_t now_ns = now();
  const std::int64_t wait_ns = port_busy_ns(peer, 0) / 4 * 3;  // the port shall not rest
  if (wait_ns > 0) peer.port->pacer.announce(stream.priority, now_ns, now_ns + std::min(wait_ns, grace_ns(peer)));
}

void Engine::release_paced(const Port& port) {
  paced_peers_.remove_if([&](Peer* peer) {
    if (peer->port != &port) return false;
    peer->held = false;
    mark_dirty(*peer);
    return true;
  });
}

void Engine::check_pacers(std::int64_t now_ns) {
  for (auto& [transport, port] : ports_) {
    if (port.look_ns > now_ns) continue;
    port.pacer.expire(now_ns);
    release_paced(port);
  }
}

bool Engine::uses_announcements(Rank to) {
  const Peer* const peer = to == context_.rank ? nullptr : peer_for(to);
  return peer != nullptr && !peer->dead && !peer->left && has_pacer(*peer);
}

std::uint64_t Engine::announce(Rank to, std::uint64_t bytes, std::int64_t in_ns, std::int32_t priority) {
  if (!uses_announcements(to)) return 0;
  Peer& peer = *peer_for(to);
  constexpr std::int64_t kLeastLatenessNs = 1'000'000;
  if (bytes <= eager_limit(peer)) return 0;  // in the way of little, and little is in its way
  const std::int64_t now_ns = now();
  peer.port->pacer.expire(now_ns);  // what nobody withdraws, and nobody waits for, shall not pile up
  ++statistics_.announcements;
  const std::int64_t when_ns = now_ns + std::max<std::int64_t>(0, in_ns);
  return peer.port->pacer.announce(priority, when_ns, when_ns + std::max(kLeastLatenessNs, (when_ns - now_ns) / 8));
}

void Engine::withdraw(Rank to, std::uint64_t announced) {
  const Peer* const peer = peer_for(to);
  if (peer != nullptr && peer->port != nullptr) withdraw(*peer->port, announced);
}

/// What is in a transport's buffers, and when: together, though this thread may lose its core in between.
std::pair<std::int64_t, std::size_t> Engine::unsent_bytes(const Transport& transport) const {
  constexpr std::int64_t kTogetherNs = 10'000;
  std::int64_t before_ns = now();
  std::size_t bytes = transport.unsent_bytes();
  for (int tries = 0; tries < 3; ++tries) {
    const std::int64_t after_ns = now();
    if (after_ns - before_ns < kTogetherNs) break;
    before_ns = after_ns;
    bytes = transport.unsent_bytes();
  }
  return {before_ns, bytes};
}

/// Looks how far the buffers of transports have drained, whose rate is not known yet.
void Engine::check_draining(std::int64_t now_ns) {
  draining_.remove_if([&](Transport* transport) {
    PortRate& rate = ports_.find(transport)->second.rate;
    if (rate.look_ns() >= 0 && now_ns >= rate.look_ns()) {
      const auto [at_ns, bytes] = unsent_bytes(*transport);
      rate.look(at_ns, bytes);
    }
    return rate.look_ns() < 0;
  });
}

bool Engine::pump_rail(Peer& peer, unsigned number) {
  const Capabilities& able = peer.transport->capabilities();
  const RailView view{.rail = number,
                      .rails = peer.rail_states,
                      .max_control_bytes = able.max_control_bytes - sizeof(wire::BlockHead),
                      .max_payload_bytes = able.max_payload_bytes,
                      .segment_bytes = segment_for(peer),
                      .streams_wait = must_wait_for_port(peer)};
  do {
    strategy_->plan(peer.queue, view, plan_);
  } while (announce_uncovered(peer));
  if (plan_.empty()) return false;
  if (block_.size() < able.max_control_bytes) block_.resize(able.max_control_bytes);
  wire::Writer writer(block_);
  writer.put_head(peer.head);
  for (SendItem* item : plan_.records) write_record(*item, writer);
  pieces_.clear();
  Rail& rail = *peer.rails[number];
  std::uint32_t slot = 0;
  if (plan_.bulk != nullptr) {
    write_record(*plan_.bulk, writer);
    payload_of(*plan_.bulk, plan_.bulk_bytes, pieces_);
    slot = post_packet(rail, PostedPacket{.bytes = plan_.bulk_bytes});
  }
  const SendStatus status = rail.link->try_send(
      Packet{.control = writer.block(), .payload = pieces_, .payload_bytes = plan_.bulk_bytes, .cookie = slot});
  if (plan_.bulk != nullptr && status != SendStatus::posted) free_posted(rail, slot);
  PortRate& port = peer.port->rate;
  if (status == SendStatus::retry) {
    rail.blocked = true;
    if (!able.shared_memory && port.awaits_refusal()) port.refused(now(), peer.transport->unsent_bytes());
    return false;
  }
  if (plan_.bulk_bytes > 0 && !able.shared_memory) port.took(now(), plan_.bulk_bytes);
  peer.head_sent = peer.head;
  ++statistics_.packets_sent;
  trace_.packet_sent(peer.rank, writer.block().size() + plan_.bulk_bytes);
  peer.queue.commit(plan_);
  // What follows a sent item may post more and plan again, so the plan is taken away first.
  sent_now_.assign(plan_.records.begin(), plan_.records.end());
  SendItem* const bulk = plan_.bulk;
  const std::uint64_t bulk_bytes = plan_.bulk_bytes;
  if (bulk != nullptr && bulk->kind == SendKind::stream && has_pacer(peer)) note_segment(peer, bulk->priority);
  if (bulk != nullptr && status == SendStatus::posted) {
    peer.rail_states[number].in_flight_bytes += bulk_bytes;
    name_posted(*bulk, rail.posted[slot]);
  }
  for (std::size_t i = 0; i < sent_now_.size(); ++i) after_sent(*sent_now_[i], peer, 0, false);
  if (bulk != nullptr) after_sent(*bulk, peer, bulk_bytes, status == SendStatus::posted);
  return true;
}

/// Payload of a packet of a large message: what the rail needs some ten microseconds for, at least what the transport asks for.
/// Small packets cost time on fast rails, large ones make urgent messages wait on slow ones.
std::size_t Engine::segment_for(const Peer& peer) noexcept {
  constexpr double kSegmentNs = 64'000;
  constexpr std::size_t kMostBytes = 512 * 1024;
  const Capabilities& able = peer.transport->capabilities();
  const auto wanted = static_cast<std::size_t>(peer.measured ? peer.bytes_per_ns * kSegmentNs : 0);
  return std::min(able.max_payload_bytes, std::max(able.segment_bytes, std::min(wanted, kMostBytes)));
}

std::uint32_t Engine::post_packet(Rail& rail, const PostedPacket& packet) {
  if (rail.free_posted == UINT32_MAX) {
    rail.posted.push_back(packet);
    return static_cast<std::uint32_t>(rail.posted.size() - 1);
  }
  const std::uint32_t slot = rail.free_posted;
  rail.free_posted = rail.posted[slot].next_free;
  rail.posted[slot] = packet;
  return slot;
}

void Engine::free_posted(Rail& rail, std::uint32_t slot) {
  rail.posted[slot] = PostedPacket{.next_free = rail.free_posted};
  rail.free_posted = slot;
}

void Engine::name_posted(SendItem& item, PostedPacket& packet) {
  switch (static_cast<Item&>(item).what) {
    case ItemKind::message:
      if (auto& core = static_cast<SendCore&>(item); core.whole) packet.send = &core;
      else packet.stream = core.stream;
      break;
    case ItemKind::stream: packet.stream = &static_cast<OutgoingStream&>(item); break;
    case ItemKind::offer: packet.child = static_cast<OfferItem&>(item).child; break;
    case ItemKind::control: break;
  }
  if (packet.stream != nullptr) ++packet.stream->posted;
}

void Engine::write_record(SendItem& item, wire::Writer& writer) {
  switch (static_cast<Item&>(item).what) {
    case ItemKind::message: return write_message(static_cast<SendCore&>(item), writer);
    case ItemKind::control: return writer.put_bytes(std::span(static_cast<ControlItem&>(item).record).first(item.control_bytes));
    case ItemKind::stream: {
      const auto& stream = static_cast<OutgoingStream&>(item);
      wire::Data data{.stream = stream.id, .offset = stream.cursor};
      if (stream.epoch != 0) data.prefix.flags = wire::flag_epoch;
      return writer.put(data);
    }
    case ItemKind::offer: return write_offer(*static_cast<OfferItem&>(item).child, writer);
  }
}

wire::Announce Engine::announcement(const SendCore& core) noexcept {
  const bool along = core.SendItem::kind == SendKind::whole;
  const bool readable = !along && core.pieces.contiguous();
  wire::Announce announce{.stream = core.stream->id,
                          .channel = core.SendItem::channel,
                          .after = core.after,
                          .tag = core.SendItem::tag,
                          .bytes = core.bytes,
                          .address = readable ? reinterpret_cast<std::uint64_t>(core.pieces.data()) : 0};
  if (core.after != 0) announce.prefix.flags |= wire::flag_after;
  if (along) announce.prefix.flags |= wire::flag_payload;
  announce.prefix.header_bytes = static_cast<std::uint16_t>(core.header().size());
  return announce;
}

void Engine::write_message(SendCore& core, wire::Writer& writer) {
  if (!core.whole) {
    writer.put(announcement(core));
    return writer.put_bytes(core.header());
  }
  wire::Eager eager{.bytes = static_cast<std::uint32_t>(core.bytes),
                    .channel = core.SendItem::channel,
                    .after = core.after,
                    .tag = core.SendItem::tag};
  const bool payload = core.SendItem::kind == SendKind::whole;
  if (core.after != 0) eager.prefix.flags |= wire::flag_after;
  if (payload) eager.prefix.flags |= wire::flag_payload;
  eager.prefix.header_bytes = static_cast<std::uint16_t>(core.header().size());
  writer.put(eager);
  writer.put_bytes(core.header());
  if (!payload && core.bytes > 0) core.pieces.copy_out(0, writer.claim(core.bytes));
}

void Engine::payload_of(SendItem& item, std::uint64_t bytes, std::vector<iovec>& pieces) {
  switch (static_cast<Item&>(item).what) {
    case ItemKind::message: return static_cast<SendCore&>(item).pieces.slice(0, bytes, pieces);
    case ItemKind::stream: {
      const auto& stream = static_cast<OutgoingStream&>(item);
      return stream.source->slice(stream.base + stream.cursor, bytes, pieces);
    }
    case ItemKind::offer: {
      const Child& child = *static_cast<OfferItem&>(item).child;
      return child.broadcast->memory->slice(child.broadcast->strands[child.strand].first, bytes, pieces);
    }
    case ItemKind::control: return;
  }
}

void Engine::after_sent(SendItem& item, Peer& peer, std::uint64_t bulk_bytes, bool posted) {
  switch (static_cast<Item&>(item).what) {
    case ItemKind::message: {
      auto& core = static_cast<SendCore&>(item);
      ++peer.envelopes_sent;
      if (!core.whole) {
        trace_.request_event<trace::Type::send_announced>(core);
        if (bulk_bytes == 0) return;
        core.stream->cursor = bulk_bytes;
        core.stream->started_ns = now();
        ++statistics_.segments;
        return;
      }
      take_credit(peer, units_of(core.bytes, core.header().size()));
      trace_.request_event<trace::Type::message_sent>(core);
      if (!posted) finish_send(core, Ending::done);
      return;
    }
    case ItemKind::control: delete &static_cast<ControlItem&>(item); return;
    case ItemKind::stream: {
      auto& stream = static_cast<OutgoingStream&>(item);
      stream.cursor += bulk_bytes;
      ++statistics_.segments;
      if (stream.send != nullptr && stream.cursor >= stream.limit) trace_.request_event<trace::Type::message_sent>(*stream.send);
      if (stream.segment != UINT64_MAX) refresh(stream);  // the next segment
      return stream_advanced(stream);
    }
    case ItemKind::offer: return offer_sent(*static_cast<OfferItem&>(item).child, bulk_bytes, posted);
  }
}

void Engine::sent(Link& link, std::uint64_t cookie) {
  Rail& rail = rail_of(link);
  const auto slot = static_cast<std::uint32_t>(cookie);
  TANDEM_ASSERT(slot < rail.posted.size());
  const PostedPacket packet = rail.posted[slot];
  free_posted(rail, slot);
  rail.peer->rail_states[link.rail()].in_flight_bytes -= packet.bytes;
  if (packet.send != nullptr) finish_send(*packet.send, Ending::done);
  if (packet.stream != nullptr) {
    --packet.stream->posted;
    stream_advanced(*packet.stream);
  }
  if (packet.child != nullptr) {
    packet.child->offer_posted = false;
    child_progress(*packet.child);
  }
  if (!rail.peer->queue.idle()) mark_dirty(*rail.peer);
}

void Engine::writable(Link& link) {
  Rail& rail = rail_of(link);
  rail.blocked = false;
  mark_dirty(*rail.peer);
}

void Engine::post_control(Peer& peer, std::span<const std::byte> record) {
  if (peer.dead || peer.rank == context_.rank) return;
  if (sends_past_queue(peer) && send_alone(peer, record)) return;
  auto* item = new ControlItem;
  std::memcpy(item->record.data(), record.data(), record.size());
  item->priority = INT32_MAX;
  item->SendItem::kind = SendKind::record;
  item->control_bytes = static_cast<std::uint32_t>(record.size());
  peer.queue.push(*item);
  mark_dirty(peer);
}

/// Tells a peer, in an empty block, what it may send again.
void Engine::send_head(Peer& peer) {
  connect_rails(peer);
  send_alone(peer, {});  // or the next packet, or `writable`, brings it
}

/// Whether records go at once: where that is a few stores, and nothing waits. On networks, those of one turn share a packet.
bool Engine::sends_past_queue(const Peer& peer) const noexcept {
  return !peer.rails.empty() && peer.queue.idle() && peer.transport->capabilities().shared_memory;
}

/// The announcement of a message that was not queued. False: it has to be.
bool Engine::announce_at_once(const SendCore& core, Peer& peer) {
  if (core.SendItem::kind != SendKind::record || !sends_past_queue(peer)) return false;
  const wire::Announce announce = announcement(core);
  static_assert(sizeof announce <= ControlItem::kMostBytes);
  if (!send_alone(peer, std::as_bytes(std::span(&announce, 1)), core.header())) return false;
  ++peer.envelopes_sent;
  trace_.request_event<trace::Type::send_announced>(core);
  return true;
}

/// A block of this record only, past the queue. False: the rail takes none now.
bool Engine::send_alone(Peer& peer, std::span<const std::byte> record, std::span<const std::byte> header) {
  Rail& rail = *peer.rails[0];
  if (rail.blocked) return false;
  std::array<std::byte, sizeof(wire::BlockHead) + ControlItem::kMostBytes + Endpoint::max_header_bytes> room;
  wire::Writer writer(room);
  writer.put_head(peer.head);
  writer.put_bytes(record);
  writer.put_bytes(header);
  if (rail.link->try_send(Packet{.control = writer.block()}) == SendStatus::retry) {
    rail.blocked = true;
    return false;
  }
  peer.head_sent = peer.head;
  ++statistics_.packets_sent;
  trace_.packet_sent(peer.rank, writer.block().size());
  return true;
}

void Engine::freed(Peer& peer, std::uint32_t units) {
  if (units == 0) return;
  ++peer.head.freed_messages;
  peer.head.freed_units += units;
}

/// Of a strand: at least one, since none means that no credit is held.
std::uint32_t Engine::units_for(std::uint64_t bytes) noexcept { return std::max(1u, units_of(bytes, 0)); }

void Engine::send_to_self(SendCore& core, Peer& peer) {
  const MatchKey key{.source = context_.rank, .channel = core.SendItem::channel, .tag = core.SendItem::tag};
  if (ReceiveCore* receive = match(key)) {
    fill(*receive, peer, core.RequestCore::tag, core.bytes, core.header());
    std::vector<std::byte> bytes(std::min<std::size_t>(core.bytes, receive->pieces.bytes()));
    core.pieces.copy_out(0, bytes);
    receive->pieces.copy_in(0, bytes);
    arrive(*receive, core.bytes > receive->pieces.bytes() ? Ending::truncated : Ending::done);
  } else {
    auto* envelope = new Envelope(Envelope::Kind::eager, key, &peer, core.bytes, core.header());
    envelope->complete = true;
    envelope->make_room();
    core.pieces.copy_out(0, envelope->room());
    set_aside(*envelope);
  }
  trace_.request_event<trace::Type::message_sent>(core);
  finish_send(core, Ending::done);
}

}  // namespace tandem::comm::internal
