// tandem/comm/engine/incoming_transfers.cpp: large messages on their way in: grants, segments, and copies from the
// sender's memory.
#include <algorithm>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {
namespace {

/// Bytes that one step copies between two processes before it polls the network again. Two calls instead of one cost
/// some microseconds; this many bytes take as long as a segment through the rings.
constexpr std::uint64_t kCopyBytes = 512 * 1024;

/// Bytes that each of two sides that copy a message takes at a time: a quarter, since calls cost a microsecond, and one
/// side waits for the rest of the other's last part; of long messages less, since urgent ones wait for a part.
std::uint64_t part_bytes_for(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kPage = 4096, kLeast = 32 * 1024, kMost = 128 * 1024;
  const std::uint64_t least = std::max(kLeast, bytes / Meeting::kMostParts + 1);
  return (std::max(std::min(bytes / 4, kMost), least) + kPage - 1) / kPage * kPage;
}

}  // namespace

IncomingTransfers::IncomingTransfers(EngineParts& parts)
    : context_(parts.context),
      statistics_(parts.completions.statistics),
      completions_(parts.completions),
      peers_(parts.peers),
      queues_(parts.queues),
      listener_(parts.recipient),
      pulling_(parts.work_left) {}

void IncomingTransfers::start_incoming(ReceiveCore& core, Peer& peer, const Envelope::Announced& announced,
                                       std::uint64_t bytes, Meets meets) {
  const bool late = meets.late;
  const auto [address, number, along] = announced;
  auto* incoming = new Incoming;
  incoming->peer = &peer;
  incoming->stream = number;
  incoming->receive = &core;
  incoming->length = std::min<std::uint64_t>(bytes, core.pieces.bytes());
  incoming->met = !late;
  incoming->call = meets.call;
  incoming->restart = along > 0 && (late || along > incoming->length);
  incoming->started_ns = context_.now();
  peer.incoming.insert(number, *incoming);
  incoming->way = choose_way(*incoming, address);
  if (!incoming->way || incoming->way == CopyWay::segments) {
    grant_all(*incoming);
    if (incoming->length == 0) landed_data(*incoming, 0, 0);
    return;
  }
  start_pull(*incoming, address);
  if (incoming->way == CopyWay::both && !share(*incoming)) incoming->way = CopyWay::pull;
}

/// The way in which the message comes. Empty: there is no choice, and it comes in segments.
std::optional<CopyWay> IncomingTransfers::choose_way(const Incoming& incoming, std::uint64_t address) {
  const Peer& peer = *incoming.peer;
  const std::size_t least = peer.transport->capabilities().remote_copy_bytes;
  if (!can_pull(peer) || least == 0 || incoming.length < least || address == 0) return std::nullopt;
  if (incoming.receive->beyond_host) return std::nullopt;
  const bool sharable = peer.shared == nullptr && !peer.no_sharing && incoming.receive->pieces.contiguous();
  return peer.port->copies.choose(incoming.length, sharable);
}

void IncomingTransfers::start_pull(Incoming& incoming, std::uint64_t address) {
  incoming.pulling = true;
  incoming.pull_address = address;
  pulling_.push_back(&incoming);
}

bool IncomingTransfers::can_pull(const Peer& peer) const noexcept {
  return peer.transport != nullptr && peer.transport->capabilities().remote_read && context_.options.cross_memory &&
         !peer.no_remote_copy;
}

bool IncomingTransfers::can_pull_strand(const Peer& peer, std::uint64_t bytes) const noexcept {
  const std::size_t least = can_pull(peer) ? peer.transport->capabilities().remote_broadcast_bytes : 0;
  return least > 0 && bytes >= least;
}

void IncomingTransfers::grant_all(Incoming& incoming) {
  incoming.granted = incoming.length;
  wire::Grant grant{.stream = incoming.stream, .up_to = incoming.length};
  grant.prefix.flags = wire::flag_last;
  if (incoming.met) grant.prefix.flags |= wire::flag_met;
  if (incoming.restart) grant.prefix.flags |= wire::flag_restart;
  queues_.post_control(*incoming.peer, grant);
}

/// Grants a whole strand, whose memory exists. The rail, and the window before this grant, bound what is in flight.
void IncomingTransfers::grant_strand(Incoming& incoming) {
  if (incoming.granted >= incoming.length) return;
  incoming.granted = incoming.length;
  queues_.post_control(*incoming.peer, wire::Grant{.stream = incoming.stream, .up_to = incoming.length});
}

/// Takes the bytes that come with an announcement that met its receive.
void IncomingTransfers::land_along(Rail& rail, Incoming& incoming, std::size_t bytes) {
  if (incoming.restart) return;
  incoming.receive->pieces.slice(0, bytes, rail.landing.pieces);
  land_in(rail, incoming, 0);
}

/// Makes a segment of `incoming` of the payload that a rail delivers now.
void IncomingTransfers::land_in(Rail& rail, Incoming& incoming, std::uint64_t offset) {
  rail.landing.kind = LandingPlace::Kind::incoming;
  rail.landing.incoming = &incoming;
  rail.landing.offset = offset;
  ++incoming.landings;
}

const char* IncomingTransfers::take_data(Rail& rail, const wire::Data& data, std::size_t payload_bytes) {
  Peer& peer = *rail.peer;
  if (payload_bytes == 0 || rail.landing.kind != LandingPlace::Kind::none) return "a segment without its payload";
  Incoming* const found = peer.incoming.find(data.stream);
  rail.landing.kind = LandingPlace::Kind::drop;
  if (found == nullptr) return nullptr;  // declined, cancelled, or complete in another way
  Incoming& incoming = *found;
  const bool epoch = (data.prefix.flags & wire::flag_epoch) != 0;
  if (epoch != (incoming.epoch != 0)) return nullptr;  // sent before the sender knew that we had declined
  if (data.offset > incoming.length || payload_bytes > incoming.length - data.offset)
    return "a segment beyond the end of its stream";
  if (incoming.receive != nullptr) {
    incoming.receive->pieces.slice(data.offset, payload_bytes, rail.landing.pieces);
  } else if (incoming.strand != nullptr && incoming.strand->broadcast->memory != nullptr) {
    if (incoming.strand->islands.size() >= Strand::kMostIslands) return "a strand that comes in too many pieces";
    // What an ancestor sends again is here already, and the user may be reading it.
    if (data.offset + payload_bytes > incoming.strand->arrived) {
      incoming.strand->broadcast->memory->slice(incoming.strand->first + data.offset, payload_bytes,
                                                rail.landing.pieces);
    }
  } else {
    return nullptr;
  }
  land_in(rail, incoming, data.offset);
  return nullptr;
}

void IncomingTransfers::landed_data(Incoming& incoming, std::uint64_t offset, std::uint64_t bytes) {
  incoming.landed += bytes;
  if (incoming.strand != nullptr) return listener_.landed(*incoming.strand, offset, offset + bytes);
  const bool unfinished = incoming.landed < incoming.length || incoming.landings > 0 || incoming.pulling;
  if (incoming.receive == nullptr || unfinished) return;
  ReceiveCore& core = *incoming.receive;
  peers_.measure(*incoming.peer, incoming.length, incoming.started_ns);
  if (incoming.way)
    incoming.peer->port->copies.took(*incoming.way, incoming.length, context_.now() - incoming.started_ns);
  end_incoming(incoming);
  completions_.arrive(core, core.bytes > core.pieces.bytes() ? Ending::truncated : Ending::done);
}

void IncomingTransfers::end_incoming(Incoming& incoming) {
  pulling_.remove(&incoming);
  stop_sharing(incoming);
  incoming.peer->incoming.erase(incoming.stream, incoming);
  if (incoming.call) incoming.peer->occupied.leave_call();
  delete &incoming;
}

void IncomingTransfers::copy_incoming(Incoming& incoming) {
  if (incoming.meeting && !incoming.meeting->take()) return no_part_left(incoming);
  const std::uint64_t bytes =
      std::min(incoming.meeting ? incoming.part_bytes : kCopyBytes, incoming.length - incoming.pull_at);
  Peer& peer = *incoming.peer;
  const Pieces& memory = incoming.strand != nullptr ? *incoming.strand->broadcast->memory : incoming.receive->pieces;
  pieces_.clear();
  memory.slice((incoming.strand != nullptr ? incoming.strand->first : 0) + incoming.pull_at, bytes, pieces_);
  std::uint64_t from = incoming.pull_address + incoming.pull_at;
  for (const iovec& piece : pieces_) {
    if (!Peers::copy_link(peer).read_remote(from, {static_cast<std::byte*>(piece.iov_base), piece.iov_len}))
      return pull_refused(incoming);
    from += piece.iov_len;
  }
  incoming.pull_at += bytes;
  ++statistics_.segments;
  if (!incoming.meeting && incoming.pull_at == incoming.length) end_pull(incoming);
  landed_data(incoming, incoming.pull_at - bytes, bytes);
}

/// Ends a pull of which everything is here: the sender may have its memory back.
void IncomingTransfers::end_pull(Incoming& incoming) {
  stop_pull(incoming);
  ++statistics_.remote_copies;
  queues_.post_control(*incoming.peer, wire::Finish{.stream = incoming.stream});
}

void IncomingTransfers::stop_pull(Incoming& incoming) {
  incoming.pulling = false;
  pulling_.remove(&incoming);
}

/// Ends a pull that is not permitted after all: everything comes as segments, and no message tries again.
void IncomingTransfers::pull_refused(Incoming& incoming) {
  if (!incoming.peer->no_remote_copy) {
    context_.log->info(
        "reading the memory of rank {} is not permitted; messages from it are copied through the transport",
        incoming.peer->rank.value());
  }
  incoming.peer->no_remote_copy = true;
  incoming.way.reset();
  stop_pull(incoming);
  if (incoming.meeting) {
    while (incoming.meeting->take()) {}
    if (incoming.meeting->taken() < incoming.meeting->parts()) return;  // the sender has not finished what it took
  }
  send_instead(incoming);
}

void IncomingTransfers::send_instead(Incoming& incoming) {
  stop_sharing(incoming);
  incoming.landed = 0;
  if (incoming.strand != nullptr) grant_strand(incoming);
  else grant_all(incoming);
}

/// Asks the sender to take part in what we begin to pull. False: it cannot.
bool IncomingTransfers::share(Incoming& incoming) {
  Peer& peer = *incoming.peer;
  std::atomic<std::uint64_t>* const word = Peers::copy_link(peer).shared_word(Link::Direction::incoming);
  incoming.part_bytes = part_bytes_for(incoming.length);
  const std::uint64_t parts = parts_of(incoming.length, incoming.part_bytes);
  if (word == nullptr || parts < 2) return false;
  incoming.meeting = Meeting::begin(*word, incoming.stream, base::narrow<std::uint32_t>(parts));
  peer.shared = &incoming;
  queues_.post_control(peer, wire::Share{.stream = incoming.stream,
                                 .address = reinterpret_cast<std::uint64_t>(incoming.receive->pieces.data()),
                                 .bytes = incoming.length,
                                 .part_bytes = incoming.part_bytes});
  return true;
}

void IncomingTransfers::stop_sharing(Incoming& incoming) {
  incoming.meeting.reset();
  if (incoming.peer->shared == &incoming) incoming.peer->shared = nullptr;
}

/// Called when nothing is left for us to read.
void IncomingTransfers::no_part_left(Incoming& incoming) {
  // the sender says when it has written what it took
  if (incoming.landed < incoming.length) return stop_pull(incoming);
  end_pull(incoming);
  landed_data(incoming, 0, 0);
}

const char* IncomingTransfers::take_shared(Peer& peer, const wire::Shared& shared) {
  Incoming* const found = peer.incoming.find(shared.stream);
  if (found == nullptr) return nullptr;
  Incoming& incoming = *found;
  if (!incoming.meeting) return "a part of a message that is not shared";
  if (incoming.pulling && incoming.meeting->take()) return "the end of a shared message that is not at its end";
  stop_pull(incoming);
  if (peer.no_remote_copy) return send_instead(incoming), nullptr;
  if (shared.bytes != incoming.length - incoming.pull_at) return "a part whose size is not that of the missing bytes";
  if ((shared.prefix.flags & wire::flag_refused) != 0) {
    peer.no_sharing = true;
    incoming.way.reset();
    stop_sharing(incoming);
    start_pull(incoming, incoming.pull_address);  // goes on where it was
    return nullptr;
  }
  ++statistics_.shared_copies;
  end_pull(incoming);
  landed_data(incoming, incoming.pull_at, shared.bytes);
  return nullptr;
}

void IncomingTransfers::copy_some() {
  // The list changes when a copy ends, hence by index.
  for (std::size_t i = 0; i < pulling_.size(); ++i) copy_incoming(*pulling_[i]);
}

}  // namespace tandem::comm::internal
