// tandem/comm/engine/broadcast_children.cpp: serving the children of a tree: offers, segments, acknowledgements,
// declines, adoptions.
#include <algorithm>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {

BroadcastChildren::BroadcastChildren(EngineParts& parts)
    : context_(parts.context),
      trace_(parts.completions.trace),
      statistics_(parts.completions.statistics),
      broadcasts_(parts.broadcasts),
      peers_(parts.peers),
      pacing_(parts.pacing),
      queues_(parts.queues),
      incoming_(parts.incoming),
      listener_(parts.recipient) {}

std::uint64_t BroadcastChildren::window_bytes(std::uint32_t segment) noexcept {
  return std::max<std::uint64_t>(4ull * segment, 128 * 1024);
}

Child& BroadcastChildren::add_child(Strand& strand, RouteView route) {
  auto child = std::make_unique<Child>();
  child->broadcast = strand.broadcast;
  child->strand = strand.index;
  child->rank = route.entry(0).rank;
  child->route = route;
  child->deaths = strand.deaths;
  child->offer.child = child.get();
  strand.children.push_back(std::move(child));
  return *strand.children.back();
}

/// Serves a child of one that died or declined.
void BroadcastChildren::adopt(const Child& lost, RouteView orphan) {
  Child& child = add_child(lost.broadcast->strands[lost.strand], orphan);
  child.adopted = true;
  child.deaths = static_cast<std::uint16_t>(std::min(lost.deaths + (lost.declined ? 0 : 1), UINT16_MAX));
}

/// Offers the strand to the children whose turn it is, once its first segment is here. If we read the strand from the
/// parent's memory, it must be here whole: then children can read it from ours.
void BroadcastChildren::offer_children(Strand& strand) {
  if (strand.arrived < std::min<std::uint64_t>(strand.segment, strand.bytes)) return;
  if (strand.incoming != nullptr && strand.incoming->pulling) return;
  for (const auto& child : strand.children) {
    if (child->sent || child->acknowledged) continue;
    if (!child->offered) {
      child->offered = true;
      broadcasts_.to_offer.push_back(child.get());
    }
    // Children are served one after the other: the next one's turn comes when everything was handed over for this one.
    if (strand.sequential && !(child->declined || handed_over(*child))) return;
  }
}

bool BroadcastChildren::handed_over(const Child& child) noexcept {
  if (child.sent) return true;
  if (!child.offer_sent || child.stream == nullptr) return false;
  const OutgoingStream& stream = *child.stream;
  if (child.address != 0) return true;  // a child that reads by itself occupies no port
  return stream.cursor >= stream.limit && stream.posted == 0 && !child.offer_posted;
}

void BroadcastChildren::queue_offers() {
  while (has_offers()) {
    Child& child = *broadcasts_.to_offer.back();
    broadcasts_.to_offer.pop_back();
    if (!child.acknowledged) offer(child);
  }
}

void BroadcastChildren::offer(Child& child) {
  Broadcast& broadcast = *child.broadcast;
  Strand& strand = broadcast.strands[child.strand];
  Peer* peer = peers_.peer_for(child.rank);
  if (peer == nullptr || peer->dead || peer->left) return lose_child(child);
  child.peer = peer;
  const std::int32_t priority = child.route.entry(0).priority;
  OutgoingStream& stream = queues_.new_stream(*peer);
  stream.child = &child;
  stream.priority = priority;
  stream.source = broadcast.memory;
  stream.base = strand.first;
  stream.length = stream.limit = strand.bytes;
  stream.available = strand.arrived;
  stream.segment = strand.segment;
  child.stream = &stream;
  // Small strands count against the credit, as eager messages do; large ones get a window that the child may decline.
  // Unasked bytes must not overtake the first packet, so that of several rails only this packet's bytes go unasked.
  const std::uint64_t window = window_bytes(strand.segment);
  const std::uint64_t one_packet = std::min<std::uint64_t>(strand.segment, pacing_.segment_for(*peer));
  const bool one_rail = peer->rails.size() == 1;
  if (!child.adopted && may_pull(*peer, strand)) {
    child.address = reinterpret_cast<std::uint64_t>(broadcast.memory->data() + strand.first);
  }
  // An adopted child may have to decline, since it and those below it may have been served already.
  child.credited = !child.adopted && child.address == 0 && strand.bytes <= (one_rail ? window : one_packet) &&
                   Credit(*peer).covers_strand(strand.bytes) && (one_rail || strand.arrived == strand.bytes);
  if (child.credited) {
    take_credit(*peer, units_for(strand.bytes));
    child.unasked = strand.bytes;
  } else {
    child.unasked = strand.bytes <= window || !one_rail || child.address != 0 ? 0 : window;
  }
  stream.granted = child.unasked;
  const std::uint64_t first = std::min({one_packet, strand.arrived, child.unasked});
  OfferItem& item = child.offer;
  item.priority = priority;
  item.SendItem::kind = first > 0 ? SendKind::whole : SendKind::record;
  item.bulk_bytes = first;
  item.control_bytes = base::narrow<std::uint32_t>(sizeof(wire::Mcast) + wire::padded(broadcast.header.size()) +
                                                   child.route.bytes().size());
  peer->queue.push(item);
  peers_.mark_dirty(*peer);
  if (broadcast.root == context_.rank) return;
  ++statistics_.mcasts_forwarded;
  trace_.stream.emit<trace::Type::mcast_forwarded>(broadcast.root.value(), child.rank.value(), broadcast.tag.value(),
                                                   strand.bytes);
}

/// Whether a child may read the strand in our memory: one copy instead of two, on its core, and no segment to wake up
/// for.
bool BroadcastChildren::may_pull(const Peer& peer, const Strand& strand) const noexcept {
  const Pieces* memory = strand.broadcast->memory;
  return incoming_.can_pull_strand(peer, strand.bytes) && strand.complete && memory != nullptr && memory->contiguous();
}

/// The number below which all broadcasts of that root are acknowledged, as far as this rank knows.
std::uint64_t BroadcastChildren::low_id(Rank root) const {
  if (root != context_.rank) return broadcasts_.roots[root.value()].low_id;
  return broadcasts_.unacknowledged.empty() ? broadcasts_.next_id : *broadcasts_.unacknowledged.begin();
}

void BroadcastChildren::write_offer(Child& child, wire::Writer& writer) {
  const Broadcast& broadcast = *child.broadcast;
  const Strand& strand = broadcast.strands[child.strand];
  wire::Mcast record{
      .stream = child.stream->id,
      .root = broadcast.root.value(),
      .id = broadcast.id,
      .low_id = low_id(broadcast.root),
      .after = broadcast.after,
      .channel = broadcast.channel.value(),
      .route_entries = child.route.size(),
      .tag = broadcast.tag.value(),
      .bytes = broadcast.bytes,
      .strand_first = strand.first,
      .strand_bytes = strand.bytes,
      .segment_bytes = strand.segment,
      .strands = base::narrow<std::uint16_t>(broadcast.strand_count),
      .deaths = child.deaths,
      .address = child.address};
  record.prefix.header_bytes = base::narrow<std::uint16_t>(broadcast.header.size());
  record.prefix.flags = static_cast<std::uint8_t>(
      (child.strand == 1 ? wire::flag_strand : 0) | (strand.sequential ? wire::flag_sequential : 0) |
      (child.credited ? wire::flag_credited : 0) | (child.unasked > 0 ? wire::flag_unasked : 0) |
      (child.offer.SendItem::kind == SendKind::whole ? wire::flag_first : 0));
  writer.put(record);
  writer.put_bytes(broadcast.header);
  writer.put_bytes(child.route.bytes());
}

void BroadcastChildren::offer_sent(Child& child, std::uint64_t bulk_bytes, bool posted) {
  child.offer_sent = true;
  child.offer_posted = posted;
  child.stream->cursor = bulk_bytes;
  queues_.refresh(*child.stream);
  child_progress(child);
}

/// Whether a child has taken what it was offered, so that it will not decline any more.
bool BroadcastChildren::has_accepted(const Child& child) noexcept {
  return child.credited || child.stream->granted > (child.declined ? 0 : child.unasked);
}

/// Reacts when something was sent to a child, is not read any more, or was acknowledged.
void BroadcastChildren::child_progress(Child& child) {
  if (child.stream == nullptr || !child.offer_sent) return;
  OutgoingStream& stream = *child.stream;
  Strand& strand = child.broadcast->strands[child.strand];
  const bool drained = stream.posted == 0 && !child.offer_posted;
  // A child that may still decline could ask for everything again, or leave those below it to us.
  const bool accepted = has_accepted(child) || (strand.bytes == 0 && !child.adopted);
  if (!child.sent && drained && (child.acknowledged || (stream.cursor >= stream.limit && accepted))) {
    child.sent = true;
    if (stream.queued()) stream.peer->queue.remove(stream);
  }
  if (strand.sequential && handed_over(child)) offer_children(strand);
  if (child.sent && child.acknowledged) {
    queues_.drop_stream(stream);
    child.stream = nullptr;
  }
  listener_.child_advanced(child);
}

const char* BroadcastChildren::take_note(Peer& peer, const wire::McastNote& note) {
  OutgoingStream* const found = peer.outgoing.find(note.stream);
  if (found == nullptr) return nullptr;
  if (found->child == nullptr) return "a broadcast's note about a stream that is none";
  Child& child = *found->child;
  if (!child.offer_sent) return "a note about a broadcast that was not sent";
  if (note.prefix.kind == wire::Kind::mcast_done) {
    child.acknowledged = true;
    child_progress(child);
  } else if (!child.acknowledged) {
    if (child.declined || child.sent || has_accepted(child)) return "a broadcast is declined that was accepted";
    declined(child);
  }
  return nullptr;
}

/// A child has no room: it becomes a leaf that gets the data when it asks, and we serve its children.
void BroadcastChildren::declined(Child& child) {
  Strand& strand = child.broadcast->strands[child.strand];
  ++statistics_.mcasts_declined;
  child.declined = true;
  OutgoingStream& stream = *child.stream;
  stream.granted = 0;
  stream.cursor = 0;
  if (stream.queued()) stream.peer->queue.update(stream, 0);
  for (RouteView grandchild : child.route.below().children()) adopt(child, grandchild);
  child.route = child.route.part(0, 1);
  offer_children(strand);
}

/// A child is dead: we serve those below it while we have the data, else we inform them that it will not come.
void BroadcastChildren::lose_child(Child& child) {
  if (child.acknowledged) return;
  Broadcast& broadcast = *child.broadcast;
  Strand& strand = broadcast.strands[child.strand];
  child.acknowledged = child.sent = child.offer_sent = true;
  child.offer_posted = false;
  if (child.stream != nullptr) {
    queues_.drop_stream(*child.stream);
    child.stream = nullptr;
  }
  if (child.offer.queued()) child.peer->queue.remove(child.offer);
  if (broadcast.root == context_.rank) note_dead_recipient(broadcast, child.rank);
  const RouteView below = child.route.below();
  if (!broadcast.released && broadcast.memory != nullptr) {
    for (RouteView orphan : below.children()) {
      ++statistics_.mcasts_adopted;
      adopt(child, orphan);
    }
  } else {
    // These must know that the data will never come before the root believes that all have it: later broadcasts carry
    // how far that goes.
    for (std::uint32_t i = 0; i < below.size(); ++i) await_lost(strand, below.part(i, i + 1), child.rank);
  }
  offer_children(strand);
  listener_.child_advanced(child);
}

/// Informs one recipient that the data will not come, and counts it as a child until it has answered.
void BroadcastChildren::await_lost(Strand& strand, RouteView leaf, Rank dead) {
  Peer& peer = peers_.make_peer(leaf.entry(0).rank);
  if (peer.dead || peer.left || peer.rank == dead) return;
  Child& child = add_child(strand, leaf);
  child.adopted = true;
  child.peer = &peer;
  child.offered = child.offer_sent = child.sent = true;
  child.stream = &queues_.new_stream(peer);
  child.stream->child = &child;
  const Broadcast& broadcast = *strand.broadcast;
  wire::McastLost lost{
      .root = broadcast.root.value(),
      .id = broadcast.id,
      .low_id = low_id(broadcast.root),
      .after = broadcast.after,
      .channel = broadcast.channel.value(),
      .dead = dead.value(),
      .strands = broadcast.strand_count,
      .tag = broadcast.tag.value(),
      .bytes = broadcast.bytes};
  std::memcpy(&lost.self, leaf.bytes().data(), sizeof lost.self);
  lost.stream = child.stream->id;
  queues_.post_control(peer, lost);
}

bool BroadcastChildren::all_sent(const Broadcast& broadcast) noexcept {
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    for (const auto& child : broadcast.strands[i].children) {
      if (!child->sent) return false;
    }
  }
  return true;
}

/// Ends sending to those below in a strand of a lost broadcast. A child that has not been sent everything is informed,
/// with all behind it. A child that has everything may still die before it has served those behind it, so we wait for
/// its acknowledgement; and for that of one that reads our memory by itself, which must not change before.
void BroadcastChildren::end_below(Strand& strand) {
  std::vector<Child*> unserved;
  for (const auto& child : strand.children) {
    if (!child->acknowledged && !child->sent && !child->lost_sent) unserved.push_back(child.get());
  }
  for (Child* child : unserved) {
    for (std::uint32_t k = 0; k < child->route.size(); ++k)
      await_lost(strand, child->route.part(k, k + 1), strand.broadcast->culprit);
    child->lost_sent = true;
    if (child->address != 0 && child->offer_sent && !child->declined) {
      child->route = child->route.part(0, 1);  // those behind it have been informed, in case it dies
      continue;
    }
    child->acknowledged = true;
    if (child->offer.queued()) child->peer->queue.remove(child->offer);
    if (!child->offer_sent && child->stream != nullptr) queues_.drop_stream(*std::exchange(child->stream, nullptr));
    if (child->stream == nullptr) child->sent = true;
    else child_progress(*child);
  }
}

}  // namespace tandem::comm::internal
