// tandem/comm/engine/peer_queues.cpp: what enters the queue of a peer, and in which form.
#include <algorithm>
#include <array>
#include <cstring>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {

PeerQueues::PeerQueues(EngineParts& parts)
    : context_(parts.context),
      trace_(parts.completions.trace),
      statistics_(parts.completions.statistics),
      peers_(parts.peers),
      pacing_(parts.pacing) {}

void PeerQueues::post_control(Peer& peer, std::span<const std::byte> record) {
  if (peer.dead || peer.rank == context_.rank) return;
  if (sends_past_queue(peer) && send_alone(peer, record)) return;
  auto* item = new ControlItem;
  std::memcpy(item->record.data(), record.data(), record.size());
  item->priority = INT32_MAX;
  item->SendItem::kind = SendKind::record;
  item->control_bytes = base::narrow<std::uint32_t>(record.size());
  peer.queue.push(*item);
  peers_.mark_dirty(peer);
}

/// Whether records go at once: where that is a few stores, and nothing waits. On networks, the records of one turn
/// share a packet.
bool PeerQueues::sends_past_queue(const Peer& peer) const noexcept {
  return !peer.rails.empty() && peer.queue.idle() && peer.transport->capabilities().shared_memory;
}

bool PeerQueues::send_alone(Peer& peer, std::span<const std::byte> record, std::span<const std::byte> header) {
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

bool PeerQueues::announce_at_once(const SendCore& core, Peer& peer) {
  if (core.SendItem::kind != SendKind::record || !sends_past_queue(peer)) return false;
  std::array<std::byte, sizeof(wire::Announce) + sizeof(wire::After)> room;
  static_assert(sizeof room <= ControlItem::kMostBytes);
  wire::Writer announcement(room);
  write_announcement(core, announcement);
  if (!send_alone(peer, announcement.block(), core.header())) return false;
  ++peer.envelopes_sent;
  trace_.request_event<trace::Type::send_announced>(core);
  return true;
}

void PeerQueues::write_announcement(const SendCore& core, wire::Writer& writer) {
  const bool along = core.SendItem::kind == SendKind::whole;
  const bool readable = !along && !core.late && core.pieces.contiguous();
  wire::Announce announce{.stream = core.stream->id,
                          .channel = core.SendItem::channel,
                          .tag = core.SendItem::tag,
                          .bytes = core.bytes,
                          .address = readable ? reinterpret_cast<std::uint64_t>(core.pieces.data()) : 0};
  if (core.after != 0) announce.prefix.flags |= wire::flag_after;
  if (along) announce.prefix.flags |= wire::flag_payload;
  if (Peers::reads(*core.peer, BufferMemory::cuda)) announce.prefix.flags |= wire::flag_placed;
  announce.prefix.header_bytes = base::narrow<std::uint16_t>(core.header().size());
  writer.put(announce);
  if (core.after != 0) writer.put(wire::After{core.after});
}

void PeerQueues::prepare(SendCore& core, Peer& peer) {
  core.SendItem::tag = core.RequestCore::tag.value();
  core.ordered = true;
  const bool self = peer.transport == nullptr;
  core.whole = self || (!core.late && core.bytes <= peers_.eager_limit(peer));
  if (!core.whole && !core.late) {
    core.bulk_bytes = bytes_unasked(core, peer);
    core.whole = core.bulk_bytes == core.bytes && context_.options.eager_bytes == 0 &&
                 Credit(peer).covers(core.bytes, core.header().size());
  }
  if (!core.whole) {
    core.SendItem::kind = core.bulk_bytes > 0 ? SendKind::whole : SendKind::record;
    core.control_bytes = announced_bytes(core);
    return;
  }
  const bool inlined = core.bytes <= kInlineBytes;
  core.SendItem::kind = inlined ? SendKind::record : SendKind::whole;
  core.control_bytes =
      base::narrow<std::uint32_t>(sizeof(wire::Eager) + after_bytes(core.after) + wire::padded(core.header().size()) +
                                  (inlined ? wire::padded(core.bytes) : 0));
  core.bulk_bytes = inlined ? 0 : core.bytes;
}

/// Bytes of a large message that go unasked: a segment, where a network that is known to be fast would be idle for the
/// time of the question. 0 while other messages are under way, since they fill that time, and ought to end first; and
/// where receives are late, or read by themselves.
std::uint64_t PeerQueues::bytes_unasked(const SendCore& core, const Peer& peer) const noexcept {
  const Capabilities& able = peer.transport->capabilities();
  if (!peer.receives_wait || able.remote_read || able.shared_memory || !peer.outgoing.empty() || !peer.queue.idle())
    return 0;
  const std::size_t segment = pacing_.segment_for(peer);
  return segment > able.segment_bytes ? std::min<std::uint64_t>(segment, core.bytes) : 0;
}

std::uint32_t PeerQueues::announced_bytes(const SendCore& core) noexcept {
  return base::narrow<std::uint32_t>(sizeof(wire::Announce) + after_bytes(core.after) +
                                     wire::padded(core.header().size()));
}

OutgoingStream& PeerQueues::new_stream(Peer& peer) {
  auto* stream = new OutgoingStream;
  stream->peer = &peer;
  do {
    stream->id = peer.next_stream++;
  } while (stream->id == 0 || peer.outgoing.contains(stream->id));
  stream->SendItem::kind = SendKind::stream;
  stream->control_bytes = sizeof(wire::Data);
  peer.outgoing.insert(stream->id, *stream);
  return *stream;
}

void PeerQueues::make_stream(SendCore& core, Peer& peer) {
  ++peer.announced;
  OutgoingStream& stream = new_stream(peer);
  stream.send = &core;
  stream.source = &core.pieces;
  stream.length = stream.limit = core.bytes;
  stream.available = core.late ? 0 : core.bytes;
  stream.priority = core.SendItem::priority;
  stream.call = peer.deferred != nullptr && peer.deferred->takes_all(core.SendItem::channel);
  if (stream.call) ++peer.announced_calls;
  core.stream = &stream;
  pacing_.reserve_port(stream);
}

void PeerQueues::refresh(OutgoingStream& stream) {
  const std::uint64_t ready = stream.ready();
  if (stream.queued()) {
    stream.peer->queue.update(stream, ready);
  } else if (ready > 0) {
    stream.bulk_bytes = ready;
    stream.peer->queue.push(stream);
  } else {
    return;
  }
  pacing_.note_ready_bulk(*stream.peer);
  peers_.mark_dirty(*stream.peer);
}

void PeerQueues::drop_stream(OutgoingStream& stream) {
  pacing_.drop_reservation(stream);
  if (stream.queued()) {
    stream.peer->queue.remove(stream);
    pacing_.note_ready_bulk(*stream.peer);
  }
  if (stream.send != nullptr) --stream.peer->announced;
  if (stream.call) --stream.peer->announced_calls;
  stream.peer->outgoing.erase(stream.id, stream);
  delete &stream;
}

}  // namespace tandem::comm::internal
