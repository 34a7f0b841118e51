// tandem/comm/engine/port_pacing.cpp: which large messages wait so that more urgent ones have the port of a network to
// themselves.
#include <algorithm>

#include "tandem/base/driver.hpp"
#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {

PortPacing::PortPacing(EngineParts& parts)
    : context_(parts.context),
      statistics_(parts.completions.statistics),
      peers_(parts.peers),
      paced_peers_(parts.work_left),
      draining_(parts.work_left) {}

/// Counts the peers with something in their queues: when there are none, the network is idle.
void PortPacing::note_backlog(Peer& peer) {
  const bool waits = !peer.dead && !peer.queue.idle();
  if (waits == peer.backlogged || peer.transport == nullptr) return;
  peer.backlogged = waits;
  Port& port = *peer.port;
  if (waits) {
    ++port.backlogged;
  } else if (--port.backlogged == 0) {
    if (!port.rate.awaits_unsent()) return port.rate.rested(context_.now(), 0);
    const auto [at_ns, bytes] = unsent_bytes(*peer.transport);
    port.rate.rested(at_ns, bytes);
    const bool watched = std::find(draining_.begin(), draining_.end(), peer.transport) != draining_.end();
    if (port.rate.look_ns() >= 0 && !watched) draining_.push_back(peer.transport);
  }
}

bool PortPacing::has_pacer(const Peer& peer) const noexcept {
  return context_.options.port_priorities && peer.transport != nullptr &&
         !peer.transport->capabilities().shared_memory && peer.queue.order() == SendOrder::priority;
}

/// Tells the pacer which streams peers have ready.
void PortPacing::note_ready_bulk(Peer& peer) {
  const SendItem* const stream = peer.queue.stream();
  const auto priority = stream != nullptr ? std::optional(stream->priority) : std::nullopt;
  if (priority == peer.paced_priority || !has_pacer(peer)) return;
  if (peer.port->pacer.changed(std::exchange(peer.paced_priority, priority), priority, context_.now()))
    release_paced(*peer.port);
}

/// Whether the peer's streams have to wait. They are noted, and pumped again when they may go.
bool PortPacing::must_wait_for_port(Peer& peer) {
  const SendItem* const stream = peer.queue.stream();
  if (stream == nullptr || !has_pacer(peer)) return false;
  const Port& port = *peer.port;
  const std::int64_t now_ns = context_.now();
  const std::int64_t busy_ns = port.pacer.expects_above(stream->priority, now_ns) ? port_busy_ns(peer, 1) : 0;
  if (!port.pacer.holds(stream->priority, now_ns, busy_ns)) return false;
  peer.port->look_ns = port.pacer.due_ns(now_ns);
  if (!std::exchange(peer.held, true)) paced_peers_.push_back(&peer);
  return true;
}

/// Time for which the port is busy with what it has and this many segments to the peer.
std::int64_t PortPacing::port_busy_ns(const Peer& peer, unsigned segments) const {
  const PortRate& port = peer.port->rate;
  // What messages took says little of a port that others used, too; a port that seems too slow is left idle.
  const double rate = port.known() ? port.bytes_per_ns() : std::max(peer.bytes_per_ns, peer.port->assumed_bytes_per_ns);
  const auto bytes = static_cast<double>(unsent_bytes(*peer.transport).second + segments * segment_for(peer));
  return rate > 0 ? static_cast<std::int64_t>(bytes / rate) : 0;
}

/// Time within which urgent data moves, or its receiver answers.
std::int64_t PortPacing::grace_ns(const Peer& peer) const {
  constexpr std::int64_t kLeastNs = 200'000, kMostNs = 200'000'000;
  constexpr unsigned kSegments = 2;
  return std::clamp(port_busy_ns(peer, kSegments), kLeastNs, kMostNs);
}

/// Notes that a segment was handed to the network.
void PortPacing::note_segment(Peer& peer, std::int32_t priority) {
  PortPacer& pacer = peer.port->pacer;
  if (pacer.contended()) pacer.moved(priority, context_.now(), grace_ns(peer));
}

/// Reserves the port for what was announced to its receiver and is ready soon, if a receive waits for it. Until then
/// what the port has keeps it busy.
void PortPacing::reserve_port(OutgoingStream& stream) {
  Peer& peer = *stream.peer;
  if (!has_pacer(peer) || !peer.port->pacer.has_below(stream.priority)) return;
  PortPacer& pacer = peer.port->pacer;
  const std::int64_t now_ns = context_.now();
  stream.expected = pacer.announce(stream.priority, now_ns, now_ns + grace_ns(peer));
}

void PortPacing::drop_reservation(OutgoingStream& stream) {
  if (const std::uint64_t expected = std::exchange(stream.expected, 0); expected != 0)
    withdraw(*stream.peer->port, expected);
}

void PortPacing::withdraw(Port& port, std::uint64_t announced) {
  if (port.pacer.withdraw(announced)) release_paced(port);
}

/// Reserves the port after the last of it was handed over: while that is in buffers, less urgent data would share the
/// port.
void PortPacing::reserve_while_draining(const OutgoingStream& stream) {
  const Peer& peer = *stream.peer;
  if (paced_peers_.empty() || !has_pacer(peer)) return;
  const std::int64_t now_ns = context_.now();
  const std::int64_t wait_ns = port_busy_ns(peer, 0) / 4 * 3;  // so that the port does not rest
  if (wait_ns > 0) peer.port->pacer.announce(stream.priority, now_ns, now_ns + std::min(wait_ns, grace_ns(peer)));
}

void PortPacing::release_paced(const Port& port) {
  paced_peers_.remove_if([&](Peer* peer) {
    if (peer->port != &port) return false;
    peer->held = false;
    peers_.mark_dirty(*peer);
    return true;
  });
}

void PortPacing::check_pacers(std::int64_t now_ns) {
  for (auto& [transport, port] : peers_.ports()) {
    if (port.look_ns > now_ns) continue;
    port.pacer.expire(now_ns);
    release_paced(port);
  }
}

bool PortPacing::uses_announcements(Rank to) {
  const Peer* const peer = to == context_.rank ? nullptr : peers_.peer_for(to);
  return peer != nullptr && !peer->dead && !peer->left && has_pacer(*peer);
}

std::uint64_t PortPacing::announce(Rank to, std::uint64_t bytes, std::int64_t in_ns, std::int32_t priority) {
  if (!uses_announcements(to)) return 0;
  Peer& peer = *peers_.peer_for(to);
  constexpr std::int64_t kLeastLatenessNs = 1'000'000;
  if (bytes <= peers_.eager_limit(peer)) return 0;  // small messages hardly delay others, nor are delayed
  const std::int64_t now_ns = context_.now();
  peer.port->pacer.expire(now_ns);  // so that announcements that are never withdrawn do not pile up
  ++statistics_.announcements;
  const std::int64_t when_ns = now_ns + std::max<std::int64_t>(0, in_ns);
  return peer.port->pacer.announce(priority, when_ns, when_ns + std::max(kLeastLatenessNs, (when_ns - now_ns) / 8));
}

void PortPacing::withdraw(Rank to, std::uint64_t announced) {
  const Peer* const peer = peers_.peer_for(to);
  if (peer != nullptr && peer->port != nullptr) withdraw(*peer->port, announced);
}

/// The time, and the bytes in a transport's buffers then: read together, though this thread may lose its core in
/// between.
std::pair<std::int64_t, std::size_t> PortPacing::unsent_bytes(const Transport& transport) const {
  constexpr std::int64_t kTogetherNs = 10'000;
  std::int64_t before_ns = context_.now();
  std::size_t bytes = transport.unsent_bytes();
  for (int tries = 0; tries < 3; ++tries) {
    const std::int64_t after_ns = context_.now();
    if (after_ns - before_ns < kTogetherNs) break;
    before_ns = after_ns;
    bytes = transport.unsent_bytes();
  }
  return {before_ns, bytes};
}

/// Checks how far the buffers of transports of unknown rate have drained.
void PortPacing::check_draining(std::int64_t now_ns) {
  draining_.remove_if([&](Transport* transport) {
    PortRate& rate = peers_.ports().find(transport)->second.rate;
    if (rate.look_ns() >= 0 && now_ns >= rate.look_ns()) {
      const auto [at_ns, bytes] = unsent_bytes(*transport);
      rate.look(at_ns, bytes);
    }
    return rate.look_ns() < 0;
  });
}

/// Payload of a packet of a large message: what the rail needs some ten microseconds for, and at least what the
/// transport asks for. Small packets cost time on fast rails, large ones make urgent messages wait on slow ones.
std::size_t PortPacing::segment_for(const Peer& peer) noexcept {
  constexpr double kSegmentNs = 64'000;
  constexpr std::size_t kMostBytes = 512 * 1024;
  const Capabilities& able = peer.transport->capabilities();
  const auto wanted = static_cast<std::size_t>(peer.measured ? peer.bytes_per_ns * kSegmentNs : 0);
  const std::size_t least = peer.rails.empty() ? 0 : peer.rails.front()->link->segment_bytes;
  return std::min(able.max_payload_bytes, std::max({able.segment_bytes, least, std::min(wanted, kMostBytes)}));
}

void PortPacing::step(std::int64_t now_ns) {
  if (!draining_.empty()) check_draining(now_ns);
  if (!paced_peers_.empty()) check_pacers(now_ns);
}

std::int64_t PortPacing::due_ns() const noexcept {
  std::int64_t next = base::kNever;
  for (Transport* transport : draining_) {
    next = std::min(next, std::max<std::int64_t>(0, peers_.ports().find(transport)->second.rate.look_ns()));
  }
  for (const Peer* peer : paced_peers_) next = std::min(next, peer->port->look_ns);
  return next;
}

}  // namespace tandem::comm::internal
