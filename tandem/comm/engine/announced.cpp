// tandem/comm/engine/announced.cpp: large messages: announced, granted, then sent in segments or copied between the processes.
#include <algorithm>

#include "tandem/comm/engine/engine.hpp"

namespace tandem::comm::internal {
namespace {

/// What one step copies between two processes before it looks at the network again. Two calls for what one could copy cost some
/// microseconds; this much takes as long as a segment through the rings.
constexpr std::uint64_t kCopyBytes = 512 * 1024;

}  // namespace

OutgoingStream& Engine::new_stream(Peer& peer) {
  auto* stream = new OutgoingStream;
  stream->peer = &peer;
  do {
    stream->id = peer.next_stream++;
  } while (stream->id == 0 || peer.outgoing.contains(stream->id));
  stream->SendItem::kind = SendKind::stream;
  stream->control_bytes = sizeof(wire::Data);
  peer.outgoing.emplace(stream->id, stream);
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
  mark_dirty(*stream.peer);
}

/// Something of a stream was sent or is not read any more: is that all?
void Engine::stream_advanced(OutgoingStream& stream) {
  if (stream.child != nullptr) return child_progress(*stream.child);
  if (stream.cursor < stream.limit || stream.posted > 0 || stream.granted < stream.limit) return;
  SendCore& core = *stream.send;
  if (stream.started_ns != 0) measure(*stream.peer, stream.limit, stream.started_ns);
  end_stream(stream);
  core.stream = nullptr;
  finish_send(core, Ending::done);
}

void Engine::end_stream(OutgoingStream& stream) {
  if (stream.queued()) stream.peer->queue.remove(stream);
  stream.peer->outgoing.erase(stream.id);
  delete &stream;
}

const char* Engine::take_grant(Peer& peer, const wire::Grant& grant) {
  const auto found = peer.outgoing.find(grant.stream);
  if (found == peer.outgoing.end()) return nullptr;  // of a stream that has ended here: a broadcast's last grants
  OutgoingStream& stream = *found->second;
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
  }
  stream.granted = std::max(stream.granted, grant.up_to);
  refresh(stream);
  stream_advanced(stream);
  return nullptr;
}

/// A receive has met an announcement.
void Engine::start_incoming(ReceiveCore& core, const Envelope& envelope) {
  Peer& peer = *envelope.peer;
  const auto [address, number, along] = envelope.announced;
  auto* incoming = new Incoming;
  incoming->peer = &peer;
  incoming->stream = number;
  incoming->receive = &core;
  incoming->length = std::min<std::uint64_t>(envelope.bytes, core.pieces.bytes());
  incoming->met = !envelope.late;
  incoming->restart = along > 0 && (envelope.late || along > incoming->length);
  incoming->started_ns = now();
  peer.incoming.emplace(number, incoming);
  const std::size_t least = peer.transport->capabilities().remote_copy_bytes;
  incoming->chosen = can_pull(peer) && least > 0 && incoming->length >= least && address != 0;
  if (!incoming->chosen || ports_[peer.transport].copies.choose(incoming->length) == CopyWay::segments) {
    grant_all(*incoming);
    if (incoming->length == 0) landed_data(*incoming, 0, 0);
    return;
  }
  incoming->pulling = true;
  incoming->pull_address = address;
  incoming->pull_end = incoming->length;
  pulling_.push_back(incoming);
}

bool Engine::can_pull(const Peer& peer) const noexcept {
  return peer.transport != nullptr && peer.transport->capabilities().remote_read && ground_.options.cross_memory &&
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
  rail.landing.kind = LandingPlace::Kind::incoming;
  rail.landing.incoming = &incoming;
  rail.landing.offset = 0;
  ++incoming.landings;
}

const char* Engine::take_data(Rail& rail, const wire::Data& data, std::size_t payload_bytes) {
  Peer& peer = *rail.peer;
  if (payload_bytes == 0 || rail.landing.kind != LandingPlace::Kind::none) return "a segment without its payload";
  const auto found = peer.incoming.find(data.stream);
  rail.landing.kind = LandingPlace::Kind::drop;
  if (found == peer.incoming.end()) return nullptr;  // declined, cancelled, or complete in another way
  Incoming& incoming = *found->second;
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
  rail.landing.kind = LandingPlace::Kind::incoming;
  rail.landing.incoming = &incoming;
  rail.landing.offset = data.offset;
  ++incoming.landings;
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
  if (incoming.chosen) {
    const CopyWay way = incoming.pull_end > 0 ? CopyWay::pull : CopyWay::segments;
    ports_[incoming.peer->transport].copies.took(way, incoming.length, now() - incoming.started_ns);
  }
  end_incoming(incoming);
  arrive(core, core.bytes > core.pieces.bytes() ? Ending::truncated : Ending::done);
}

void Engine::end_incoming(Incoming& incoming) {
  std::erase(pulling_, &incoming);
  incoming.peer->incoming.erase(incoming.stream);
  delete &incoming;
}

/// What a transfer says about the network: an average in which recent ones count more.
void Engine::measure(Peer& peer, std::uint64_t bytes, std::int64_t since_ns) {
  // What buffers on the way take in says nothing.
  if (bytes < std::min<std::uint64_t>(256 * 1024, 4 * peer.transport->capabilities().segment_bytes)) return;
  const std::int64_t took = ground_.now_ns() - since_ns;
  if (took <= 0) return;
  const double rate = static_cast<double>(bytes) / static_cast<double>(took);
  peer.bytes_per_ns = peer.measured ? peer.bytes_per_ns * 0.75 + rate * 0.25 : rate;
  peer.measured = true;
}

/// The receiver has read everything that it wanted from our memory.
const char* Engine::take_finish(Peer& peer, const wire::Finish& finish) {
  const auto found = peer.outgoing.find(finish.stream);
  if (found == peer.outgoing.end()) return nullptr;
  OutgoingStream& stream = *found->second;
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
  finish_send(core, Ending::done);
  return nullptr;
}

/// One piece of each copy between processes. True when something was copied.
bool Engine::copy_some() {
  // The list changes when a copy ends, hence by index.
  for (std::size_t i = 0; i < pulling_.size(); ++i) copy_incoming(*pulling_[i]);
  return true;
}

void Engine::copy_incoming(Incoming& incoming) {
  const std::uint64_t bytes = std::min(kCopyBytes, incoming.pull_end - incoming.pull_at);
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
  if (incoming.pull_at == incoming.pull_end) {
    incoming.pulling = false;
    ++statistics_.remote_copies;
    std::erase(pulling_, &incoming);
    post_control(peer, wire::Finish{.stream = incoming.stream});
  }
  landed_data(incoming, incoming.pull_at - bytes, bytes);
}

/// Reading the peer's memory is not permitted after all: everything comes as segments, and nobody tries again.
void Engine::pull_refused(Incoming& incoming) {
  incoming.peer->no_remote_copy = true;
  ground_.log->info("reading the memory of rank {} is not permitted; messages from it are copied through the transport",
                    incoming.peer->rank.value());
  std::erase(pulling_, &incoming);
  incoming.pulling = incoming.chosen = false;
  incoming.landed = 0;
  if (incoming.strand != nullptr) grant_strand(incoming);
  else grant_all(incoming);
}

}  // namespace tandem::comm::internal
