// tandem/comm/engine/broadcast_recipient.cpp: where broadcasts arrive: their records, their memory, their place in the
// order.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {
namespace {

/// A broadcast as its first record (`wire::Mcast` or `wire::McastLost`) describes it.
template <class Record>
std::unique_ptr<Broadcast> broadcast_of(const Record& record, std::span<const std::byte> self,
                                        std::span<const std::byte> header) {
  auto made = std::make_unique<Broadcast>();
  made->root = Rank{record.root};
  made->id = record.id;
  made->channel = Channel{record.channel};
  made->tag = Tag{record.tag};
  made->bytes = record.bytes;
  made->after = record.after;
  made->header.assign(header.begin(), header.end());
  made->strand_count = record.strands;
  made->self = read_route_entry(self);
  for (unsigned i = 0; i < made->strands.size(); ++i) {
    made->strands[i].broadcast = made.get();
    made->strands[i].index = i;
  }
  return made;
}

constexpr const char* kTooManyBroadcasts = "more broadcasts of one root at once than it may have under way";
/// Most broadcasts of one root beyond its count: they are acknowledged, and no receive has met them.
constexpr std::size_t kMostUncounted = 4 * kMostBroadcasts;

/// Notes that the bytes [begin, end) are here, beyond those that arrived in order, and joins ranges that touch.
void note_island(Strand& strand, std::uint64_t begin, std::uint64_t end) {
  auto next = strand.islands.upper_bound(begin);
  if (next != strand.islands.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != strand.islands.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = strand.islands.erase(next);
  }
  strand.islands.emplace_hint(next, begin, end);
}

}  // namespace

BroadcastRecipient::BroadcastRecipient(EngineParts& parts)
    : context_(parts.context),
      trace_(parts.completions.trace),
      broadcasts_(parts.broadcasts),
      completions_(parts.completions),
      peers_(parts.peers),
      queues_(parts.queues),
      incoming_(parts.incoming),
      arrivals_(parts.arrivals),
      children_(parts.children),
      allowed_(Allowance::of(parts.context.options)) {}

const char* BroadcastRecipient::take_mcast(Rail& rail, wire::Reader& reader, std::size_t packet_payload_bytes) {
  Peer& peer = *rail.peer;
  const auto record = reader.get<wire::Mcast>();
  const bool has_first = (record.prefix.flags & wire::flag_first) != 0;
  const std::size_t payload_bytes = has_first ? packet_payload_bytes : 0;
  const auto header = reader.get_bytes(record.prefix.header_bytes);
  const auto route_there = reader.get_bytes(std::size_t{record.route_entries} * route_entry_bytes);
  if (!reader.ok()) return nullptr;
  // The route is copied before it is checked: the sender may be able to change the original.
  std::array<std::byte, kMostPerRoute * route_entry_bytes> route_room;
  if (route_there.size() > route_room.size()) return "a broadcast with too long a route";
  const auto route_bytes = std::span(route_room).first(route_there.size());
  std::ranges::copy(route_there, route_bytes.begin());
  wire::loaded_once();
  const unsigned index = (record.prefix.flags & wire::flag_strand) != 0 ? 1 : 0;
  if (const char* wrong = check_mcast(record, index, route_bytes, payload_bytes)) return wrong;
  if (has_first && payload_bytes == 0) return "a first segment without its payload";
  if (has_first && rail.landing.kind != LandingPlace::Kind::none) return "two payloads in one packet";
  if (payload_bytes > 0) rail.landing.kind = LandingPlace::Kind::drop;

  const Rank root_rank{record.root};
  forget_entered(root_rank, record.low_id);
  auto found = broadcasts_.all.find(Broadcasts::name(root_rank, record.id));
  if (found == broadcasts_.all.end()) {
    const RootState& root = broadcasts_.roots[record.root];
    const auto lost = root.lost.find(record.id);
    const bool forgotten = root.has_entered(record.id);
    if (forgotten && lost == root.lost.end()) {  // complete: an ancestor adopted us in vain
      refuse(peer, record);
      return nullptr;
    }
    if (!may_begin(root_rank)) return kTooManyBroadcasts;
    found = broadcasts_.all.emplace(Broadcasts::name(root_rank, record.id), broadcast_of(record, route_bytes, header))
                .first;
    if (forgotten) {  // lost here, and begun again for those below
      Broadcast& again = *found->second;
      again.entered = again.lost = again.delivered = again.released = true;
      again.culprit = lost->second;
    }
  }
  Broadcast& broadcast = *found->second;
  // Which rank sent the wrong one is unknown here, so none is accused; the sender serves the ranks below us that need
  // this one.
  if (broadcast.bytes != record.bytes || broadcast.strand_count != record.strands) return refuse(peer, record), nullptr;
  const char* const wrong = take_strand(rail, broadcast, record, route_bytes, payload_bytes);
  if (wrong == nullptr && peers_.is_dead(root_rank)) orphan(broadcast);
  return wrong;
}

/// Whether one more broadcast of the root may be kept. A root has at most `kMostBroadcasts` unacknowledged ones. The
/// others are bounded: those with data by the credit and `comm.forward_bytes`, empty and lost ones here. Counting takes
/// time, so it happens when there are half as many more than at the last count.
bool BroadcastRecipient::may_begin(Rank root) {
  if (broadcasts_.all.size() < count_at_) return true;
  std::size_t under_way = 0, empty = 0, lost = 0;
  for (const auto& [name, broadcast] : broadcasts_.all) {
    if (broadcast->root != root) continue;
    const auto strands = std::span(broadcast->strands).first(broadcast->strand_count);
    if (broadcast->lost) ++lost;
    else if (!std::ranges::all_of(strands, &Strand::done_sent)) ++under_way;
    else if (broadcast->bytes == 0 && strands[0].credit_messages == 0) ++empty;
  }
  if (under_way > kMostBroadcasts || empty > kMostUncounted || lost > kMostUncounted) {
    context_.log->error(
        "rank {}: rank {} has {} broadcasts under way here, {} empty and {} lost ones that no receive has met",
        context_.rank.value(), root.value(), under_way, empty, lost);
    return false;
  }
  count_at_ = broadcasts_.all.size() + kMostBroadcasts / 2;
  return true;
}

const char* BroadcastRecipient::check_mcast(const wire::Mcast& record, unsigned index,
                                            std::span<const std::byte> route_bytes, std::size_t payload_bytes) const {
  if (record.root >= context_.size || record.root == context_.rank.value())
    return "a broadcast from a root that cannot be";
  if (record.id == 0 || record.strands < 1 || record.strands > 2 || index >= record.strands)
    return "a broadcast without number or strand";
  const std::uint64_t half = record.strands == 2 ? record.bytes / 2 + record.bytes % 2 : record.bytes;
  if (record.strand_first != index * half || record.strand_bytes != (index == 0 ? half : record.bytes - half)) {
    return "a strand that is not its part of the message";
  }
  if (record.segment_bytes == 0 && record.strand_bytes > 0) return "a strand without segments";
  if (payload_bytes > record.strand_bytes) return "a first segment beyond its strand";
  // The header must fit into a block of whichever transport leads further.
  if (record.prefix.header_bytes > Endpoint::max_header_bytes) return "a broadcast with too large a header";
  if (record.route_entries == 0 || record.route_entries > kMostPerRoute)
    return "a broadcast without a route, or with too long a one";
  const RouteView route(route_bytes);
  const RouteEntry self = route.entry(0);
  if (self.rank != context_.rank || self.subtree_size != route.size()) return "a route that does not begin here";
  return route.below().validate(context_.size, context_.rank, Rank{record.root});
}

const char* BroadcastRecipient::take_strand(Rail& rail, Broadcast& broadcast, const wire::Mcast& record,
                                std::span<const std::byte> route_bytes, std::size_t payload_bytes) {
  Peer& peer = *rail.peer;
  Strand& strand = broadcast.strands[(record.prefix.flags & wire::flag_strand) != 0 ? 1 : 0];
  if (peer.incoming.contains(record.stream)) return "a broadcast with the number of a stream that exists";
  const bool again = strand.known;
  if (again && strand.parent != nullptr && !strand.parent->dead && record.deaths <= strand.deaths) {
    // The packet was sent before its sender's death, for which we were adopted, and has been overtaken.
    return refuse(peer, record), nullptr;
  }
  strand.deaths = record.deaths;
  if (strand.incoming != nullptr) {
    // The old parent is dead, which we do not know yet. What still lands from it equals what the new parent will send;
    // the strand is not complete before it has landed, or its link has ended.
    for (const auto& other : strand.incoming->peer->all_rails) {
      if (other->landing.incoming == strand.incoming && other->landing.kind == LandingPlace::Kind::incoming) {
        other->landing.kind = LandingPlace::Kind::superseded;
        other->landing.strand = &strand;
        ++strand.superseded;
      }
    }
    incoming_.end_incoming(*std::exchange(strand.incoming, nullptr));
  }
  if (strand.parent != &peer) free_credit(strand);  // of the parent before
  strand.parent = &peer;
  strand.parent_stream = record.stream;
  strand.done_sent = false;
  strand.declined = false;
  if (!again) {
    const bool first = !broadcast.strands[0].known && !broadcast.strands[1].known;
    if (completions_.on_incoming && first && payload_bytes < broadcast.bytes)
      arrivals_.notify_incoming(
          peer, {.source = broadcast.root, .channel = broadcast.channel.value(), .tag = broadcast.tag.value()},
          broadcast.bytes);
    strand.known = true;
    strand.first = record.strand_first;
    strand.bytes = record.strand_bytes;
    strand.segment = record.segment_bytes;
    strand.sequential = (record.prefix.flags & wire::flag_sequential) != 0;
  }
  const bool credited = (record.prefix.flags & wire::flag_credited) != 0;
  if (broadcast.lost && credited) {  // it cannot be declined, so that those below are ours
    freed(peer, 1, units_for(strand.bytes));
    return pass_on_loss(strand, route_bytes), nullptr;
  }
  // nothing of it is needed here, but those below may need it
  if (broadcast.lost || (strand.complete && !strand.serves)) {
    strand.done_sent = true;
    refuse(peer, record);
    maybe_forget(broadcast);
    return nullptr;
  }
  if (credited) {
    if (!peer.occupied.take(units_for(strand.bytes), allowed_)) return Arrivals::kBeyondCredit;
    strand.credit_units += units_for(strand.bytes);
    ++strand.credit_messages;
  }
  if (strand.complete) {
    free_credit(strand);
    maybe_acknowledge(strand);
    return nullptr;
  }
  if (!broadcast.entered) try_enter(broadcast);
  if (broadcast.memory == nullptr) {
    if (make_room(broadcast, credited)) ask_for_declined(broadcast);
    else if (credited) return "a broadcast that no memory can hold";
    else return decline(strand), nullptr;
  }
  if (!std::exchange(strand.serves, true)) {
    strand.route_bytes.assign(route_bytes.begin(), route_bytes.end());
    for (RouteView child : RouteView(strand.route_bytes).below().children()) children_.add_child(strand, child);
  }
  if (strand.bytes == 0) {
    strand_landed(strand, 0, 0);
    return nullptr;
  }
  if (record.address != 0 && incoming_.can_pull(peer))
    return incoming_.start_pull(expect(strand), record.address), nullptr;
  listen(strand,
         (record.prefix.flags & wire::flag_unasked) != 0
             ? (credited ? strand.bytes : children_.window_bytes(strand.segment))
             : 0,
         0);
  if (payload_bytes > 0) {
    if (payload_bytes > strand.arrived) broadcast.memory->slice(strand.first, payload_bytes, rail.landing.pieces);
    incoming_.land_in(rail, *strand.incoming, 0);
  }
  return nullptr;
}

/// Answers an offer of a strand that we do not need any more: the parent serves those below us.
void BroadcastRecipient::refuse(Peer& parent, const wire::Mcast& record) {
  wire::McastNote note{.stream = record.stream};
  if ((record.prefix.flags & wire::flag_credited) != 0) {
    freed(parent, 1, units_for(record.strand_bytes));
  } else if (record.route_entries > 1) {
    note.prefix.kind = wire::Kind::mcast_decline;
    queues_.post_control(parent, note);
  }
  note.prefix.kind = wire::Kind::mcast_done;
  queues_.post_control(parent, note);
}

/// Takes the strand from its parent from now on.
Incoming& BroadcastRecipient::expect(Strand& strand) {
  auto* incoming = new Incoming;
  incoming->peer = strand.parent;
  incoming->stream = strand.parent_stream;
  incoming->length = strand.bytes;
  incoming->strand = &strand;
  strand.parent->incoming.insert(strand.parent_stream, *incoming);
  strand.incoming = incoming;
  return *incoming;
}

/// Takes the strand in segments.
void BroadcastRecipient::listen(Strand& strand, std::uint64_t granted, std::uint8_t epoch) {
  Incoming* incoming = &expect(strand);
  incoming->granted = std::min(granted, strand.bytes);
  incoming->epoch = epoch;
  if (epoch != 0) {
    incoming->granted = strand.bytes;
    wire::Grant grant{.stream = strand.parent_stream, .up_to = incoming->granted};
    grant.prefix.flags = wire::flag_restart;
    queues_.post_control(*strand.parent, grant);
  } else {
    incoming_.grant_strand(*incoming);
  }
}

/// Makes memory for a broadcast whose receive is not posted, or is too short. Those that count against a credit always
/// get it, if there is as much at all: the size comes from the network.
bool BroadcastRecipient::make_room(Broadcast& broadcast, bool always) {
  const std::size_t used = broadcasts_.forward_bytes;
  const std::size_t limit = context_.options.forward_bytes;
  const std::uint64_t bytes = broadcast.library_bytes();
  if (!always && broadcast.bytes > 0 && (used > limit || bytes > limit - used)) return false;
  broadcast.library.reset(new (std::nothrow) std::byte[broadcast.bytes]);
  if (broadcast.library == nullptr) return false;
  broadcasts_.forward_bytes += bytes;
  broadcast.own = Pieces(broadcast.library.get(), broadcast.bytes);
  broadcast.memory = &broadcast.own;
  return true;
}

void BroadcastRecipient::decline(Strand& strand) {
  strand.declined = true;
  wire::McastNote note{.stream = strand.parent_stream};
  note.prefix.kind = wire::Kind::mcast_decline;
  queues_.post_control(*strand.parent, note);
  const Broadcast& broadcast = *strand.broadcast;
  trace_.stream.emit<trace::Type::mcast_declined>(broadcast.root.value(), strand.parent->rank.value(),
                                                  broadcast.tag.value());
}

/// Memory is there now: asks for the strands that were declined, from their beginning. We stay a leaf of them.
void BroadcastRecipient::ask_for_declined(Broadcast& broadcast) {
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    Strand& strand = broadcast.strands[i];
    if (std::exchange(strand.declined, false)) listen(strand, 0, 1);
  }
}

void BroadcastRecipient::free_credit(Strand& strand) {
  if (strand.credit_messages == 0 || strand.parent == nullptr) return;
  strand.parent->occupied.leave(strand.credit_messages, strand.credit_units);
  freed(*strand.parent, std::exchange(strand.credit_messages, 0), std::exchange(strand.credit_units, 0));
  peers_.mark_dirty(*strand.parent);
}

bool BroadcastRecipient::may_enter(Broadcast& broadcast) {
  RootState& root = broadcasts_.roots[broadcast.root.value()];
  if (broadcast.self.ordered && !root.has_entered(broadcast.after)) return false;
  const Peer* const peer = peers_.find(broadcast.root);
  if (peer != nullptr && root.passed(peer->head_received.fences_passed) >= broadcast.id) return true;
  const std::uint32_t seen = peer == nullptr ? 0 : peer->head.seen;
  const std::uint32_t missing = (broadcast.self.fence - seen) & max_route_fence;
  return missing == 0 || missing > (max_route_fence >> 1);
}

void BroadcastRecipient::try_enter(Broadcast& broadcast) {
  if (may_enter(broadcast)) {
    enter(broadcast);
    settle(broadcast.root);
  } else if (!std::exchange(broadcast.waiting, true)) {
    broadcasts_.roots[broadcast.root.value()].waiting.push_back(&broadcast);
  }
}

/// Puts the broadcast into the order of its key.
void BroadcastRecipient::enter(Broadcast& broadcast) {
  broadcast.entered = true;
  broadcast.waiting = false;
  broadcasts_.roots[broadcast.root.value()].enter(broadcast.id);
  const MatchKey key{.source = broadcast.root, .channel = broadcast.channel.value(), .tag = broadcast.tag.value()};
  auto* envelope = new Envelope(Envelope::Kind::broadcast, key, nullptr, broadcast.bytes, broadcast.header);
  envelope->broadcast = &broadcast;
  broadcast.envelope = envelope;
  arrivals_.match_envelope(*envelope);
}

/// Lets those enter that waited for what has come. Messages go first: a broadcast that waits for messages waits for all
/// that were sent before it, also for those that wait here themselves.
void BroadcastRecipient::settle(Rank rank) {
  const auto found = broadcasts_.roots.find(rank.value());
  if (found == broadcasts_.roots.end()) return;
  RootState& root = found->second;
  for (bool again = true; again;) {
    again = false;
    for (auto it = root.plain.begin(); it != root.plain.end();) {
      Envelope* const envelope = it->envelope;
      if (!root.has_entered(it->after)) {
        ++it;
        continue;
      }
      it = root.plain.erase(it);
      arrivals_.match_envelope(*envelope);
    }
    for (Broadcast* broadcast : root.waiting) {
      if (!may_enter(*broadcast)) continue;
      std::erase(root.waiting, broadcast);
      enter(*broadcast);
      for (unsigned i = 0; i < broadcast->strand_count; ++i) maybe_acknowledge(broadcast->strands[i]);
      again = true;
      break;
    }
  }
}

void BroadcastRecipient::forget_entered(Rank rank, std::uint64_t low_id) {
  RootState& root = broadcasts_.roots[rank.value()];
  if (low_id <= root.low_id) return;
  root.low_id = low_id;
  root.entered.erase(root.entered.begin(), root.entered.lower_bound(low_id));
  root.lost.erase(root.lost.begin(), root.lost.lower_bound(low_id));
  settle(rank);
}

void BroadcastRecipient::matched(Broadcast& broadcast, ReceiveCore& core) {
  core.other = broadcast.root;
  core.tag = broadcast.tag;
  core.bytes = broadcast.bytes;
  core.keep_header(broadcast.header);
  broadcast.receive = &core;
  if (broadcast.lost) return lose(broadcast, broadcast.culprit);
  if (broadcast.memory == nullptr) {
    if (!core.owns_buffer && core.pieces.bytes() >= broadcast.bytes) broadcast.memory = &core.pieces;
    else if (!make_room(broadcast, true)) return lose(broadcast, broadcast.root);
    ask_for_declined(broadcast);
  }
  if (orphaned(broadcast)) peers_.connect_to(broadcast.root);
  maybe_arrived(broadcast);
}

/// Notes that the bytes [begin, end) of a strand are here.
void BroadcastRecipient::strand_landed(Strand& strand, std::uint64_t begin, std::uint64_t end) {
  Broadcast& broadcast = *strand.broadcast;
  if (begin > strand.arrived) return note_island(strand, begin, end);
  strand.arrived = std::max(strand.arrived, end);
  while (!strand.islands.empty() && strand.islands.begin()->first <= strand.arrived) {
    strand.arrived = std::max(strand.arrived, strand.islands.begin()->second);
    strand.islands.erase(strand.islands.begin());
  }
  for (const auto& child : strand.children) {
    if (child->stream == nullptr || child->acknowledged) continue;
    child->stream->available = strand.arrived;
    if (child->offer_sent) queues_.refresh(*child->stream);
  }
  children_.offer_children(strand);
  if (strand.arrived < strand.bytes || strand.complete) return;
  if (strand.superseded > 0 || (strand.incoming != nullptr && strand.incoming->landings > 0)) return;
  strand.complete = true;
  maybe_arrived(broadcast);
  maybe_acknowledge(strand);
}

void BroadcastRecipient::landed(Strand& strand, std::uint64_t begin, std::uint64_t end) {
  if (strand.broadcast->lost) return lose(*strand.broadcast, strand.broadcast->culprit);
  strand_landed(strand, begin, end);
  end_complete(strand);
}

void BroadcastRecipient::superseded_landed(Strand& strand) {
  --strand.superseded;
  if (strand.broadcast->lost || (!strand.complete && strand.arrived == strand.bytes))
    landed(strand, strand.arrived, strand.arrived);
}

/// Ends a complete strand, of which no more is expected.
void BroadcastRecipient::end_complete(Strand& strand) {
  if (!strand.complete || strand.incoming == nullptr || strand.incoming->landings > 0) return;
  incoming_.end_incoming(*std::exchange(strand.incoming, nullptr));
  maybe_forget(*strand.broadcast);
}

const char* BroadcastRecipient::take_lost(Peer& peer, const wire::McastLost& record) {
  if (record.root >= context_.size || record.root == context_.rank.value() || record.dead >= context_.size ||
      record.id == 0 || record.strands < 1 || record.strands > 2) {
    return "a lost broadcast that cannot be";
  }
  if (record.stream != 0) queues_.post_control(peer, wire::McastNote{.stream = record.stream});
  const Rank root_rank{record.root};
  forget_entered(root_rank, record.low_id);
  auto found = broadcasts_.all.find(Broadcasts::name(root_rank, record.id));
  if (found == broadcasts_.all.end()) {
    if (broadcasts_.roots[record.root].has_entered(record.id)) return nullptr;
    std::array<std::byte, route_entry_bytes> self;
    std::memcpy(self.data(), &record.self, sizeof record.self);
    if (!may_begin(root_rank)) return kTooManyBroadcasts;
    found = broadcasts_.all.emplace(Broadcasts::name(root_rank, record.id), broadcast_of(record, self, {})).first;
  }
  lose(*found->second, Rank{record.dead});
  return nullptr;
}

}  // namespace tandem::comm::internal
