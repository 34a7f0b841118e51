// tandem/comm/engine/announced.cpp: large messages: announced, granted, then sent in segments or copied between the processes.
#include <algorithm>

#include "tandem/comm/engine/engine.hpp"

namespace tandem::comm::internal {
namespace {

/// What one step copies between two processes before it looks at the network again. Two calls for what one could copy cost some
/// microseconds; this much takes as long as a segment through the rings.
constexpr std::uint64_t kCopyBytes = 512 * 1024;

/// What each of two that copy a message takes at a time: a quarter, since calls cost a microsecond, and one waits for the rest of
/// the other's last part; of long messages less, since urgent ones wait for a part.
std::uint64_t part_bytes_for(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kPage = 4096, kLeast = 32 * 1024, kMost = 128 * 1024;
  const std::uint64_t least = std::max(kLeast, bytes / Meeting::kMostParts + 1);
  return (std::max(std::min(bytes / 4, kMost), least) + kPage - 1) / kPage * kPage;
}

std::uint64_t parts_of(std::uint64_t bytes, std::uint64_t part_bytes) noexcept { return (bytes + part_bytes - 1) / part_bytes; }

}  // namespace

OutgoingStream& Engine::new_stream(Peer& peer) {
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

/// Tells the queue how much of a stream may be sent now.
void Engine::refresh(OutgoingStream& stream) {
  const std::uint64_t ready = stream.ready();
  if (stream.queued()) {
    stream.peer->queue.update(stream, ready);
  } else if (ready > 0) {
    stream.bulk_bytes = ready;
    stream.peer->queue.push(stream);
  } else {
    return;
  }
  note_ready_bulk(*stream.peer);
  mark_dirty(*stream.peer);
}

/// Something of a stream was sent or is not read any more: is that all?
void Engine::stream_advanced(OutgoingStream& stream) {
  if (stream.child != nullptr) return child_progress(*stream.child);
  if (stream.cursor < stream.limit || stream.posted > 0 || stream.granted < stream.limit) return;
  SendCore& core = *stream.send;
  reserve_while_draining(stream);
  if (stream.started_ns != 0) measure(*stream.peer, stream.limit, stream.started_ns);
  end_stream(stream);
  core.stream = nullptr;
  finish_send(core, Ending::done);
}

void Engine::end_stream(OutgoingStream& stream) {
  Peer& peer = *stream.peer;
  const bool message = stream.send != nullptr;
  drop_stream(stream);
  if (message && peer.deferred != nullptr && !peer.dead) announce_more(peer);
}

void Engine::drop_stream(OutgoingStream& stream) {
  stop_pushing(stream);
  drop_reservation(stream);
  if (stream.queued()) {
    stream.peer->queue.remove(stream);
    note_ready_bulk(*stream.peer);
  }
  if (stream.send != nullptr) --stream.peer->announced;
  stream.peer->outgoing.erase(stream.id, stream);
  delete &stream;
}

const char* Engine::take_grant(Peer& peer, const wire::Grant& grant) {
  OutgoingStream* const found = peer.outgoing.find(grant.stream);
  if (found == nullptr) return nullptr;  // of a stream that has ended here: a broadcast's last grants
  OutgoingStream& stream = *found;
  if (grant.up_to > stream.length) return "a grant beyond the end of its stream";
  if ((grant.prefix.flags & wire::flag_restart) != 0) {
    if (stream.granted > 0 && stream.send != nullptr) return "a restart of what was accepted";
    if (stream.child != nullptr) {
      if (!stream.child->declined || stream.epoch != 0) return "a restart of what was not declined";
      stream.granted = 0;
      stream.epoch = 1;
    }
    stream.cursor = 0;
  }
  if ((grant.prefix.flags & wire::flag_last) != 0) {
    if (stream.child != nullptr) return "a broadcast that is to end early";
    if (grant.up_to < stream.cursor) return "a grant that ends before what was sent";
    stream.limit = grant.up_to;
  }
  if (stream.send != nullptr && stream.granted == 0) {
    peer.receives_wait = (grant.prefix.flags & wire::flag_met) != 0;
    if (!peer.receives_wait || stream.cursor == 0) stream.started_ns = now();
    trace_.request_event<trace::Type::send_granted>(*stream.send);
  }
  stream.granted = std::max(stream.granted, grant.up_to);
  refresh(stream);
  drop_reservation(stream);
  stream_advanced(stream);
  return nullptr;
}

/// A receive has met an announcement. `late`: it did not wait for it.
void Engine::start_incoming(ReceiveCore& core, Peer& peer, const Envelope::Announced& announced, std::uint64_t bytes, bool late) {
  const auto [address, number, along] = announced;
  auto* incoming = new Incoming;
  incoming->peer = &peer;
  incoming->stream = number;
  incoming->receive = &core;
  incoming->length = std::min<std::uint64_t>(bytes, core.pieces.bytes());
  incoming->met = !late;
  incoming->restart = along > 0 && (late || along > incoming->length);
  incoming->started_ns = now();
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

/// Nothing: there is no choice, and the message comes in segments.
std::optional<CopyWay> Engine::choose_way(const Incoming& incoming, std::uint64_t address) {
  const Peer& peer = *incoming.peer;
  const std::size_t least = peer.transport->capabilities().remote_copy_bytes;
  if (!can_pull(peer) || least == 0 || incoming.length < least || address == 0) return std::nullopt;
  const bool sharable = peer.shared == nullptr && !peer.no_sharing && incoming.receive->pieces.contiguous();
  return peer.port->copies.choose(incoming.length, sharable);
}

void Engine::start_pull(Incoming& incoming, std::uint64_t address) {
  incoming.pulling = true;
  incoming.pull_address = address;
  pulling_.push_back(&incoming);
}

bool Engine::can_pull(const Peer& peer) const noexcept {
  return peer.transport != nullptr && peer.transport->capabilities().remote_read && context_.options.cross_memory &&
         !peer.no_remote_copy;
}

void Engine::grant_all(Incoming& incoming) {
  incoming.granted = incoming.length;
  wire::Grant grant{.stream = incoming.stream, .up_to = incoming.length};
  grant.prefix.flags = wire::flag_last;
  if (incoming.met) grant.prefix.flags |= wire::flag_met;
  if (incoming.restart) grant.prefix.flags |= wire::flag_restart;
  post_control(*incoming.peer, grant);
}

/// A strand's memory is held: everything may come. What is in flight is bounded by the rail, and by the window before this grant.
void Engine::grant_strand(Incoming& incoming) {
  if (incoming.granted >= incoming.length) return;
  incoming.granted = incoming.length;
  post_control(*incoming.peer, wire::Grant{.stream = incoming.stream, .up_to = incoming.length});
}

/// What comes with an announcement that met its receive.
void Engine::land_along(Rail& rail, Incoming& incoming, std::size_t bytes) {
  if (incoming.restart) return;
  incoming.receive->pieces.slice(0, bytes, rail.landing.pieces);
  land_in(rail, incoming, 0);
}

/// The payload that a rail delivers now is a segment of `incoming`.
void Engine::land_in(Rail& rail, Incoming& incoming, std::uint64_t offset) {
  rail.landing.kind = LandingPlace::Kind::incoming;
  rail.landing.incoming = &incoming;
  rail.landing.offset = offset;
  ++incoming.landings;
}

const char* Engine::take_data(Rail& rail, const wire::Data& data, std::size_t payload_bytes) {
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
    // What an ancestor sends again is here already, and its reader may be the user by now.
    if (data.offset + payload_bytes > incoming.strand->arrived) {
      incoming.strand->broadcast->memory->slice(incoming.strand->first + data.offset, payload_bytes, rail.landing.pieces);
    }
  } else {
    return nullptr;
  }
  land_in(rail, incoming, data.offset);
  return nullptr;
}

void Engine::landed_data(Incoming& incoming, std::uint64_t offset, std::uint64_t bytes) {
  incoming.landed += bytes;
  if (incoming.strand != nullptr) {
    Strand& strand = *incoming.strand;
    Broadcast& broadcast = *strand.broadcast;
    if (broadcast.lost) return lose(broadcast, broadcast.culprit);
    strand_landed(strand, offset, offset + bytes);
    if (strand.complete && strand.incoming == &incoming && incoming.landings == 0) {
      end_incoming(*std::exchange(strand.incoming, nullptr));
      maybe_forget(broadcast);
    }
    return;
  }
  if (incoming.receive == nullptr || incoming.landed < incoming.length || incoming.pulling) return;
  ReceiveCore& core = *incoming.receive;
  measure(*incoming.peer, incoming.length, incoming.started_ns);
  if (incoming.way) incoming.peer->port->copies.took(*incoming.way, incoming.length, now() - incoming.started_ns);
  end_incoming(incoming);
  arrive(core, core.bytes > core.pieces.bytes() ? Ending::truncated : Ending::done);
}

void Engine::end_incoming(Incoming& incoming) {
  pulling_.remove(&incoming);
  stop_sharing(incoming);
  incoming.peer->incoming.erase(incoming.stream, incoming);
  delete &incoming;
}

/// Whether a transfer of this size says something about the network: what buffers on the way take in does not.
bool Engine::shows_rate(const Peer& peer, std::uint64_t bytes) noexcept {
  return bytes >= std::min<std::uint64_t>(256 * 1024, 4 * peer.transport->capabilities().segment_bytes);
}

/// What a transfer says about the network: an average in which recent ones count more.
void Engine::measure(Peer& peer, std::uint64_t bytes, std::int64_t since_ns) {
  if (!shows_rate(peer, bytes)) return;
  const std::int64_t took = context_.now_ns() - since_ns;
  if (took <= 0) return;
  const double rate = static_cast<double>(bytes) / static_cast<double>(took);
  peer.bytes_per_ns = peer.measured ? peer.bytes_per_ns * 0.75 + rate * 0.25 : rate;
  peer.measured = true;
}

/// The receiver has read everything that it wanted from our memory.
const char* Engine::take_finish(Peer& peer, const wire::Finish& finish) {
  OutgoingStream* const found = peer.outgoing.find(finish.stream);
  if (found == nullptr) return nullptr;
  OutgoingStream& stream = *found;
  const bool readable =
      stream.send != nullptr || (stream.child != nullptr && stream.child->address != 0 && stream.child->offer_sent);
  const bool begun = stream.granted > 0 || (stream.send != nullptr && stream.cursor > 0);
  if (!readable || begun) return "the end of a copy of what is sent in segments";
  if (stream.child != nullptr) {
    stream.granted = stream.cursor = stream.limit;
    child_progress(*stream.child);
    return nullptr;
  }
  SendCore& core = *stream.send;
  end_stream(stream);
  core.stream = nullptr;
  trace_.request_event<trace::Type::message_sent>(core);
  finish_send(core, Ending::done);
  return nullptr;
}

/// One piece of each copy between processes.
void Engine::copy_some() {
  // The lists change when a copy ends, hence by index.
  for (std::size_t i = 0; i < pulling_.size(); ++i) copy_incoming(*pulling_[i]);
  for (std::size_t i = 0; i < pushing_.size(); ++i) copy_outgoing(pushing_[i]);
}

void Engine::copy_incoming(Incoming& incoming) {
  if (incoming.meeting && !incoming.meeting->take()) return nothing_left(incoming);
  const std::uint64_t bytes = std::min(incoming.meeting ? incoming.part_bytes : kCopyBytes, incoming.length - incoming.pull_at);
  Peer& peer = *incoming.peer;
  connect_rails(peer);
  const Pieces& memory = incoming.strand != nullptr ? *incoming.strand->broadcast->memory : incoming.receive->pieces;
  pieces_.clear();
  memory.slice((incoming.strand != nullptr ? incoming.strand->first : 0) + incoming.pull_at, bytes, pieces_);
  std::uint64_t from = incoming.pull_address + incoming.pull_at;
  for (const iovec& piece : pieces_) {
    if (!peer.rails[0]->link->read_remote(from, {static_cast<std::byte*>(piece.iov_base), piece.iov_len}))
      return pull_refused(incoming);
    from += piece.iov_len;
  }
  incoming.pull_at += bytes;
  ++statistics_.segments;
  if (!incoming.meeting && incoming.pull_at == incoming.length) end_pull(incoming);
  landed_data(incoming, incoming.pull_at - bytes, bytes);
}

/// Everything is here: the sender may have its memory back.
void Engine::end_pull(Incoming& incoming) {
  stop_pull(incoming);
  ++statistics_.remote_copies;
  post_control(*incoming.peer, wire::Finish{.stream = incoming.stream});
}

void Engine::stop_pull(Incoming& incoming) {
  incoming.pulling = false;
  pulling_.remove(&incoming);
}

/// Reading the peer's memory is not permitted after all: everything comes as segments, and nobody tries again.
void Engine::pull_refused(Incoming& incoming) {
  if (!incoming.peer->no_remote_copy) {
    context_.log->info("reading the memory of rank {} is not permitted; messages from it are copied through the transport",
                      incoming.peer->rank.value());
  }
  incoming.peer->no_remote_copy = true;
  incoming.way.reset();
  stop_pull(incoming);
  if (incoming.meeting) {
    while (incoming.meeting->take()) {}
    if (incoming.meeting->taken() < incoming.meeting->parts()) return;  // until the sender has finished what it took
  }
  send_instead(incoming);
}

void Engine::send_instead(Incoming& incoming) {
  stop_sharing(incoming);
  incoming.landed = 0;
  if (incoming.strand != nullptr) grant_strand(incoming);
  else grant_all(incoming);
}

// ---- Messages that both sides copy, from both ends.

/// Asks the sender to take part in what we begin to pull. False: it cannot.
bool Engine::share(Incoming& incoming) {
  Peer& peer = *incoming.peer;
  std::atomic<std::uint64_t>* const word = peer.all_rails.front()->link->shared_word(Link::Direction::incoming);
  incoming.part_bytes = part_bytes_for(incoming.length);
  const std::uint64_t parts = parts_of(incoming.length, incoming.part_bytes);
  if (word == nullptr || parts < 2) return false;
  incoming.meeting = Meeting::begin(*word, incoming.stream, static_cast<std::uint32_t>(parts));
  peer.shared = &incoming;
  post_control(peer, wire::Share{.stream = incoming.stream,
                                 .address = reinterpret_cast<std::uint64_t>(incoming.receive->pieces.data()),
                                 .bytes = incoming.length,
                                 .part_bytes = incoming.part_bytes});
  return true;
}

void Engine::stop_sharing(Incoming& incoming) {
  incoming.meeting.reset();
  if (incoming.peer->shared == &incoming) incoming.peer->shared = nullptr;
}

/// Nothing is left for us to read.
void Engine::nothing_left(Incoming& incoming) {
  if (incoming.landed < incoming.length) return stop_pull(incoming);  // the sender says when it has written what it took
  end_pull(incoming);
  landed_data(incoming, 0, 0);
}

const char* Engine::take_share(Rail& rail, const wire::Share& share) {
  Peer& peer = *rail.peer;
  OutgoingStream* const found = peer.outgoing.find(share.stream);
  if (found == nullptr) return nullptr;
  OutgoingStream& stream = *found;
  const bool begun = stream.granted > 0 || stream.cursor > 0;
  if (stream.send == nullptr || begun || !stream.source->contiguous()) return "a share in what is not to be shared";
  if (share.bytes > stream.length || share.part_bytes == 0 || share.part_bytes > share.bytes) {
    return "a share in bytes that the message does not have";
  }
  const std::uint64_t parts = parts_of(share.bytes, share.part_bytes);
  std::atomic<std::uint64_t>* const word = rail.link->shared_word(Link::Direction::outgoing);
  const bool pushed = std::any_of(pushing_.begin(), pushing_.end(), [&](const Push& push) { return push.stream == &stream; });
  if (parts == 0 || parts > Meeting::kMostParts || word == nullptr || pushed) return "a share that cannot be";
  trace_.request_event<trace::Type::send_granted>(*stream.send);
  pushing_.push_back(Push{.stream = &stream,
                          .address = share.address,
                          .bytes = share.bytes,
                          .part_bytes = share.part_bytes,
                          .meeting = Meeting::join(*word, stream.id, static_cast<std::uint32_t>(parts))});
  return nullptr;
}

/// One part of a message that its receiver reads, too. The push is gone when none is left.
void Engine::copy_outgoing(Push& push) {
  const OutgoingStream& stream = *push.stream;
  Peer& peer = *stream.peer;
  connect_rails(peer);
  bool refused = false;
  if (const auto part = push.meeting.take()) {
    const std::uint64_t at = *part * push.part_bytes;
    const auto* const from = static_cast<const std::byte*>(stream.source->data()) + stream.base + at;
    refused = !peer.rails[0]->link->write_remote(push.address + at, {from, std::min(push.part_bytes, push.bytes - at)});
    if (!refused && push.meeting.left()) return;
  }
  if (push.meeting.taken() > 0) {
    wire::Shared shared{.stream = stream.id, .bytes = push.taken_bytes()};
    if (refused) shared.prefix.flags = wire::flag_refused;
    post_control(peer, shared);
  }
  stop_pushing(stream);
}

void Engine::stop_pushing(const OutgoingStream& stream) {
  if (!pushing_.empty()) [[unlikely]] pushing_.remove_if([&](const Push& push) { return push.stream == &stream; });
}

const char* Engine::take_shared(Peer& peer, const wire::Shared& shared) {
  Incoming* const found = peer.incoming.find(shared.stream);
  if (found == nullptr) return nullptr;
  Incoming& incoming = *found;
  if (!incoming.meeting) return "a part of what is not shared";
  if (incoming.pulling && incoming.meeting->take()) return "the end of a shared message that is not at its end";
  stop_pull(incoming);
  if (peer.no_remote_copy) return send_instead(incoming), nullptr;
  if (shared.bytes != incoming.length - incoming.pull_at) return "a part of another size than what is missing";
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

}  // namespace tandem::comm::internal
