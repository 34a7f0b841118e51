// tandem/comm/engine/packets.cpp: from a peer's queue to packets on its rails.
#include <algorithm>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {

PacketSender::PacketSender(EngineParts& parts, std::unique_ptr<Strategy> strategy)
    : context_(parts.context),
      trace_(parts.completions.trace),
      statistics_(parts.completions.statistics),
      peers_(parts.peers),
      pacing_(parts.pacing),
      queues_(parts.queues),
      deferral_(parts.deferral),
      outgoing_(parts.outgoing),
      children_(parts.children),
      departures_(parts.departures),
      strategy_(std::move(strategy)) {}

void PacketSender::flush() {
  do {
    children_.queue_offers();
    pump_dirty();
  } while (children_.has_offers());
}

void PacketSender::pump_dirty() {
  while (Peer* const next = peers_.take_dirty()) {
    Peer& peer = *next;
    if (peer.dead || peer.rank == context_.rank) continue;
    if (!peers_.choose_transport(peer)) {
      departures_.peer_failed(peer.rank, "no transport reaches it");
      continue;
    }
    peers_.connect_rails(peer);
    if (!peer.queue.idle()) pump(peer);
    if (peers_.head_is_due(peer)) queues_.send_alone(peer, {});  // or the next packet, or `writable`, brings the head
  }
}

/// Announces eager messages of the plan that the credit does not cover. True when there was one: the plan is stale.
bool PacketSender::announce_uncovered(Peer& peer) {
  Credit credit(peer);
  if (credit.ample_for(plan_)) return false;
  const auto uncovered = [&credit](SendItem& item) {
    if (static_cast<Item&>(item).what != ItemKind::message) return false;
    const auto& core = static_cast<SendCore&>(item);
    return core.whole && !credit.take(core);
  };
  bool stale = std::any_of(plan_.records.begin(), plan_.records.end(),
                           [&](SendItem* item) { return uncovered(*item); });
  if (!stale && (plan_.bulk == nullptr || !uncovered(*plan_.bulk))) return false;
  deferral_.settle_queue(peer);
  return true;
}

/// Forms packets for the peer while its rails take them.
void PacketSender::pump(Peer& peer) {
  if (peer.pumping) return peers_.mark_dirty(peer);
  peer.pumping = true;
  for (unsigned number = 0; number < peer.rails.size(); ++number) {
    Rail& rail = *peer.rails[number];
    if (rail.blocked && !peer.dead) rail.blocked = !rail.link->has_room_again();
    while (!peer.dead && !peer.queue.idle() && !rail.blocked && pump_rail(peer, number)) {}
  }
  peer.pumping = false;
  pacing_.note_backlog(peer);
  pacing_.note_ready_bulk(peer);
}

bool PacketSender::pump_rail(Peer& peer, unsigned number) {
  const Capabilities& able = peer.transport->capabilities();
  const RailView view{.rail = number,
                      .rails = peer.rail_states,
                      .max_control_bytes = able.max_control_bytes - sizeof(wire::BlockHead),
                      .max_payload_bytes = able.max_payload_bytes,
                      .segment_bytes = pacing_.segment_for(peer),
                      .streams_wait = pacing_.must_wait_for_port(peer)};
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
  std::uint64_t message_bytes = 0;
  if (plan_.bulk != nullptr) {
    write_record(*plan_.bulk, writer);
    message_bytes = payload_of(*plan_.bulk, plan_.bulk_bytes, pieces_);
    slot = post_packet(rail, PostedPacket{.bytes = plan_.bulk_bytes});
  }
  PortRate& port = peer.port->rate;
  const bool is_port = !able.shared_memory;
  if (is_port && port.awaits_sample())
    if (const std::size_t unsent = peer.transport->unsent_bytes(); unsent > 0) port.sample(context_.now(), unsent);
  const SendStatus status = rail.link->try_send(Packet{.control = writer.block(),
                                                       .payload = pieces_,
                                                       .payload_bytes = plan_.bulk_bytes,
                                                       .message_bytes = message_bytes,
                                                       .cookie = slot});
  if (plan_.bulk != nullptr && status != SendStatus::posted) free_posted(rail, slot);
  if (status == SendStatus::retry) {
    rail.blocked = true;
    if (is_port && port.awaits_refusal()) port.refused(context_.now(), peer.transport->unsent_bytes());
    else if (is_port && port.awaits_sample()) port.sample(context_.now(), peer.transport->unsent_bytes());
    return false;
  }
  if (is_port && plan_.bulk_bytes > 0) port.took(context_.now(), plan_.bulk_bytes);
  peer.head_sent = peer.head;
  ++statistics_.packets_sent;
  trace_.packet_sent(peer.rank, writer.block().size() + plan_.bulk_bytes);
  peer.queue.commit(plan_);
  // What follows a sent item may post more and plan again, so the plan is taken away first.
  sent_now_.assign(plan_.records.begin(), plan_.records.end());
  SendItem* const bulk = plan_.bulk;
  const std::uint64_t bulk_bytes = plan_.bulk_bytes;
  if (bulk != nullptr && bulk->kind == SendKind::stream && pacing_.has_pacer(peer))
    pacing_.note_segment(peer, bulk->priority);
  if (bulk != nullptr && status == SendStatus::posted) {
    peer.rail_states[number].in_flight_bytes += bulk_bytes;
    name_posted(*bulk, rail.posted[slot]);
  }
  for (std::size_t i = 0; i < sent_now_.size(); ++i) after_sent(*sent_now_[i], peer, 0, false);
  if (bulk != nullptr) after_sent(*bulk, peer, bulk_bytes, status == SendStatus::posted);
  return true;
}

std::uint32_t PacketSender::post_packet(Rail& rail, const PostedPacket& packet) {
  if (rail.free_posted == UINT32_MAX) {
    rail.posted.push_back(packet);
    return base::narrow<std::uint32_t>(rail.posted.size() - 1);
  }
  const std::uint32_t slot = rail.free_posted;
  rail.free_posted = rail.posted[slot].next_free;
  rail.posted[slot] = packet;
  return slot;
}

void PacketSender::free_posted(Rail& rail, std::uint32_t slot) {
  rail.posted[slot] = PostedPacket{.next_free = rail.free_posted};
  rail.free_posted = slot;
}

void PacketSender::name_posted(SendItem& item, PostedPacket& packet) {
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

void PacketSender::write_record(SendItem& item, wire::Writer& writer) {
  switch (static_cast<Item&>(item).what) {
    case ItemKind::message: return write_message(static_cast<SendCore&>(item), writer);
    case ItemKind::control:
      return writer.put_bytes(std::span(static_cast<ControlItem&>(item).record).first(item.control_bytes));
    case ItemKind::stream: {
      const auto& stream = static_cast<OutgoingStream&>(item);
      wire::Data data{.stream = stream.id, .offset = stream.cursor};
      if (stream.epoch != 0) data.prefix.flags = wire::flag_epoch;
      return writer.put(data);
    }
    case ItemKind::offer: return children_.write_offer(*static_cast<OfferItem&>(item).child, writer);
  }
}

void PacketSender::write_message(SendCore& core, wire::Writer& writer) {
  if (!core.whole) {
    PeerQueues::write_announcement(core, writer);
    return writer.put_bytes(core.header());
  }
  wire::Eager eager{.bytes = base::narrow<std::uint32_t>(core.bytes),
                    .channel = core.SendItem::channel,
                    .tag = core.SendItem::tag};
  const bool payload = core.SendItem::kind == SendKind::whole;
  if (core.after != 0) eager.prefix.flags |= wire::flag_after;
  if (payload) eager.prefix.flags |= wire::flag_payload;
  eager.prefix.header_bytes = base::narrow<std::uint16_t>(core.header().size());
  writer.put(eager);
  if (core.after != 0) writer.put(wire::After{core.after});
  writer.put_bytes(core.header());
  if (!payload && core.bytes > 0) core.pieces.copy_out(0, writer.claim(core.bytes));
}

/// Puts the next bytes of an item behind `pieces`. Returns the size of their message.
std::uint64_t PacketSender::payload_of(SendItem& item, std::uint64_t bytes, std::vector<iovec>& pieces) {
  switch (static_cast<Item&>(item).what) {
    case ItemKind::message: {
      const auto& core = static_cast<SendCore&>(item);
      core.pieces.slice(0, bytes, pieces);
      return core.bytes;
    }
    case ItemKind::stream: {
      const auto& stream = static_cast<OutgoingStream&>(item);
      stream.source->slice(stream.base + stream.cursor, bytes, pieces);
      return stream.child != nullptr ? stream.child->broadcast->bytes : stream.length;
    }
    case ItemKind::offer: {
      const Child& child = *static_cast<OfferItem&>(item).child;
      child.broadcast->memory->slice(child.broadcast->strands[child.strand].first, bytes, pieces);
      return child.broadcast->bytes;
    }
    case ItemKind::control: break;
  }
  return 0;
}

void PacketSender::after_sent(SendItem& item, Peer& peer, std::uint64_t bulk_bytes, bool posted) {
  switch (static_cast<Item&>(item).what) {
    case ItemKind::message: {
      auto& core = static_cast<SendCore&>(item);
      ++peer.envelopes_sent;
      if (!core.whole) {
        trace_.request_event<trace::Type::send_announced>(core);
        if (bulk_bytes == 0) return;
        core.stream->cursor = bulk_bytes;
        core.stream->started_ns = context_.now();
        ++statistics_.segments;
        return;
      }
      take_credit(peer, units_of(core.bytes, core.header().size()));
      trace_.request_event<trace::Type::message_sent>(core);
      if (!posted) outgoing_.finish_send(core, Ending::done);
      return;
    }
    case ItemKind::control: delete &static_cast<ControlItem&>(item); return;
    case ItemKind::stream: {
      auto& stream = static_cast<OutgoingStream&>(item);
      stream.cursor += bulk_bytes;
      ++statistics_.segments;
      if (stream.send != nullptr && stream.cursor >= stream.limit)
        trace_.request_event<trace::Type::message_sent>(*stream.send);
      if (stream.segment != UINT64_MAX) queues_.refresh(stream);  // the next segment
      return outgoing_.stream_advanced(stream);
    }
    case ItemKind::offer: return children_.offer_sent(*static_cast<OfferItem&>(item).child, bulk_bytes, posted);
  }
}

void PacketSender::sent(Link& link, std::uint64_t cookie) {
  Rail& rail = peers_.rail_of(link);
  const auto slot = base::narrow<std::uint32_t>(cookie);
  TANDEM_ASSERT(slot < rail.posted.size());
  const PostedPacket packet = rail.posted[slot];
  free_posted(rail, slot);
  rail.peer->rail_states[link.rail()].in_flight_bytes -= packet.bytes;
  if (packet.send != nullptr) outgoing_.finish_send(*packet.send, Ending::done);
  if (packet.stream != nullptr) {
    --packet.stream->posted;
    outgoing_.stream_advanced(*packet.stream);
  }
  if (packet.child != nullptr) {
    packet.child->offer_posted = false;
    children_.child_progress(*packet.child);
  }
  if (!rail.peer->queue.idle()) peers_.mark_dirty(*rail.peer);
}

void PacketSender::writable(Link& link) {
  Rail& rail = peers_.rail_of(link);
  rail.blocked = false;
  peers_.mark_dirty(*rail.peer);
}

}  // namespace tandem::comm::internal
