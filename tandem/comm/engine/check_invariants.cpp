// tandem/comm/engine/check_invariants.cpp: what must hold in an engine between two steps.
#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "tandem/base/assert.hpp"
#include "tandem/comm/engine/engine.hpp"

namespace tandem::comm::internal {
namespace {

/// What messages of one peer take of our memory, by a fresh count.
struct Found {
  std::uint64_t messages = 0;
  std::uint32_t units = 0;
  std::uint64_t announcements = 0;
  std::uint64_t calls = 0;
};
using FoundByPeer = std::unordered_map<const Peer*, Found>;

void count(const Envelope& envelope, FoundByPeer& found) {
  if (envelope.peer == nullptr) return;
  Found& of = found[envelope.peer];
  if (envelope.call) ++of.calls;
  if (!envelope.counted) return;
  if (envelope.kind == Envelope::Kind::announced) {
    ++of.announcements;
    return;
  }
  ++of.messages;
  of.units += units_of(envelope.bytes, envelope.header_bytes);
}

void check_outgoing(const Peer& peer) {
  std::uint32_t announced = 0, calls = 0;
  peer.outgoing.for_each([&](const OutgoingStream& stream) {
    announced += stream.send != nullptr;
    calls += stream.call;
    TANDEM_ASSERT(stream.peer == &peer && peer.outgoing.find(stream.id) == &stream);
    TANDEM_ASSERT((stream.send != nullptr) != (stream.child != nullptr));
    TANDEM_ASSERT(stream.send == nullptr || stream.send->stream == &stream);
    TANDEM_ASSERT(stream.child == nullptr || stream.child->stream == &stream);
    TANDEM_ASSERT(stream.cursor <= stream.limit && stream.limit <= stream.length && stream.granted <= stream.length);
    std::uint32_t posted = 0;
    for (const auto& rail : peer.all_rails)
      posted += static_cast<std::uint32_t>(std::ranges::count(rail->posted, &stream, &PostedPacket::stream));
    TANDEM_ASSERT(stream.posted == posted);
  });
  TANDEM_ASSERT(peer.announced == announced && peer.announced_calls == calls);
}

void check_incoming(const Peer& peer) {
  peer.incoming.for_each([&](const Incoming& incoming) {
    TANDEM_ASSERT(incoming.peer == &peer);
    TANDEM_ASSERT(incoming.receive == nullptr || incoming.strand == nullptr);
    TANDEM_ASSERT(incoming.strand == nullptr || incoming.strand->incoming == &incoming);
    TANDEM_ASSERT(incoming.granted <= incoming.length && incoming.pull_at <= incoming.length);
    const auto landings = std::ranges::count_if(peer.all_rails, [&](const auto& rail) {
      return rail->landing.kind == LandingPlace::Kind::incoming && rail->landing.incoming == &incoming;
    });
    TANDEM_ASSERT(incoming.landings == static_cast<std::uint32_t>(landings));
  });
}

void check_dead(const Peer& peer) {
  TANDEM_ASSERT(!peer.queue.messages());
  TANDEM_ASSERT(peer.deferred == nullptr && peer.incoming.empty() && peer.announced == 0);
  TANDEM_ASSERT(peer.at_once_below == 0);
}

void check_strand(const Strand& strand) {
  TANDEM_ASSERT(strand.arrived <= strand.bytes);
  TANDEM_ASSERT(!strand.complete || (strand.arrived == strand.bytes && strand.superseded == 0));
  TANDEM_ASSERT(strand.incoming == nullptr ||
                (strand.incoming->strand == &strand && strand.incoming->peer == strand.parent));
  TANDEM_ASSERT(strand.islands.size() <= Strand::kMostIslands);
  std::uint64_t end = strand.arrived;
  for (const auto& [first, last] : strand.islands) {
    TANDEM_ASSERT(first > end && last > first && last <= strand.bytes);
    end = last;
  }
  for (const auto& child : strand.children) {
    TANDEM_ASSERT(child->broadcast == strand.broadcast && child->strand == strand.index);
    TANDEM_ASSERT(child->stream == nullptr || child->stream->child == child.get());
  }
}

}  // namespace

bool Engine::check_invariants() const {
  const Matcher& matcher = parts_.arrivals.matcher();
  const Broadcasts& broadcasts = parts_.broadcasts;
  const EndpointStatistics& statistics = parts_.completions.statistics;
  FoundByPeer found;

  // Messages without a receive.
  matcher.check_invariants();
  TANDEM_ASSERT(parts_.completions.outstanding() >= matcher.posted_count() + parts_.arrivals.awaiting_count());
  parts_.arrivals.for_each_awaited(
      [&](const MatchPattern& pattern) { TANDEM_ASSERT(!pattern.any_source && !pattern.any_tag); });
  std::uint64_t unexpected_bytes = 0;
  matcher.for_each_kept([&](const ArrivedEnvelope& kept) {
    const auto& envelope = static_cast<const Envelope&>(kept);
    TANDEM_ASSERT(envelope.kept && !parts_.arrivals.has_handler(envelope.key.channel));
    TANDEM_ASSERT(envelope.kind != Envelope::Kind::broadcast || envelope.lost ||
                  envelope.broadcast->envelope == &envelope);
    if (envelope.data != nullptr) unexpected_bytes += envelope.bytes;
    count(envelope, found);
  });
  TANDEM_ASSERT(statistics.unexpected_messages == matcher.kept_count() &&
                statistics.unexpected_bytes == unexpected_bytes);
  parts_.arrivals.for_each_asked([&](const Envelope& envelope) { count(envelope, found); });

  // Broadcasts.
  std::uint64_t forward_bytes = 0;
  std::size_t unacknowledged = 0;
  std::unordered_map<const Strand*, std::uint32_t> superseded;
  for (const auto& [name, broadcast] : broadcasts.all) {
    TANDEM_ASSERT(name == Broadcasts::name(broadcast->root, broadcast->id) && !broadcast->forgotten);
    if (broadcast->library != nullptr) forward_bytes += broadcast->library_bytes();
    unacknowledged += broadcast->root == parts_.context.rank && !broadcast->acknowledged;
    TANDEM_ASSERT(broadcast->envelope == nullptr || broadcast->envelope->broadcast == broadcast.get());
    for (const Strand& strand : broadcast->strands) {
      check_strand(strand);
      if (strand.superseded > 0) superseded.emplace(&strand, strand.superseded);
      if (strand.credit_messages == 0) continue;
      Found& of = found[strand.parent];
      of.messages += strand.credit_messages;
      of.units += strand.credit_units;
    }
  }
  TANDEM_ASSERT(broadcasts.forward_bytes == forward_bytes && broadcasts.unacknowledged.size() == unacknowledged);
  for (const auto& [rank, root] : broadcasts.roots) {
    TANDEM_ASSERT(root.entered.empty() || *root.entered.begin() >= root.low_id);
    TANDEM_ASSERT(std::ranges::all_of(root.waiting, [](const Broadcast* broadcast) { return broadcast->waiting; }));
    for (const RootState::Plain& waits : root.plain) count(*waits.envelope, found);
  }

  // Peers: their queues, their streams, and what they take of our memory.
  for (const auto& [rank, peer] : parts_.peers.all()) {
    for (const auto& rail : peer->all_rails) {
      const LandingPlace& place = rail->landing;
      if (place.kind == LandingPlace::Kind::superseded) --superseded[place.strand];
      if (place.kind == LandingPlace::Kind::envelope && place.envelope->receive != nullptr)
        count(*place.envelope, found);
    }
    peer->incoming.for_each([&](const Incoming& incoming) { found[peer.get()].calls += incoming.call; });
    check_outgoing(*peer);
    if (peer->dead) {
      check_dead(*peer);
      continue;
    }
    peer->queue.check_invariants();
    check_incoming(*peer);
    if (peer->deferred != nullptr) peer->deferred->check_invariants();
    TANDEM_ASSERT(peer->wants_sent < kMostWants);
    const Found& of = found[peer.get()];
    TANDEM_ASSERT(peer->occupied.messages() == of.messages && peer->occupied.units() == of.units);
    TANDEM_ASSERT(peer->occupied.announcements() == of.announcements && peer->occupied.calls() == of.calls);
  }
  TANDEM_ASSERT(std::ranges::all_of(superseded, [](const auto& entry) { return entry.second == 0; }));
  return true;
}

}  // namespace tandem::comm::internal
