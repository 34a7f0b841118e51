// tandem/comm/engine/port_pacing.hpp: which large messages wait so that more urgent ones have the port of a network to
// themselves.
#pragma once

#include <cstdint>
#include <utility>

#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/counted_list.hpp"
#include "tandem/comm/engine/peer.hpp"

namespace tandem::comm::internal {

/// Makes bulk wait at ports that several peers share, as `PortPacer` decides, and measures the rates of ports. Peers
/// have queues of their own, so this part is the one that looks across them.
///
/// State: the peers whose bulk waits, and the transports whose buffers are being watched. Under the endpoint's lock.
class PortPacing {
 public:
  explicit PortPacing(EngineParts& parts);

  /// Notes that the peer's queue has become empty, or is not empty any more.
  void note_backlog(Peer& peer);
  /// Whether bulk to this peer may have to wait for other peers.
  bool has_pacer(const Peer& peer) const noexcept;
  /// Notes that the most urgent ready stream of the peer may have changed.
  void note_ready_bulk(Peer& peer);
  /// Whether the peer's streams wait now. They are sent when they may go.
  bool must_wait_for_port(Peer& peer);
  /// Makes bulk of lower priority wait for an announced message that will be ready soon.
  void reserve_port(OutgoingStream& stream);
  /// Ends the reservation for a stream.
  void drop_reservation(OutgoingStream& stream);
  void withdraw(Rank to, std::uint64_t announced);
  void withdraw(Port& port, std::uint64_t announced);
  /// Makes bulk wait until the last of an urgent message has left the buffers.
  void reserve_while_draining(const OutgoingStream& stream);
  /// Notes that a segment was handed to the network.
  void note_segment(Peer& peer, std::int32_t priority);
  void check_pacers(std::int64_t now_ns);
  void check_draining(std::int64_t now_ns);
  bool uses_announcements(Rank to);
  /// Announces a message that will be posted for that rank in about `in_ns`: see `PortPacer`. 0: that has no use.
  std::uint64_t announce(Rank to, std::uint64_t bytes, std::int64_t in_ns, std::int32_t priority);
  /// Bytes of a segment to this peer.
  static std::size_t segment_for(const Peer& peer) noexcept;

  /// Does what time alone makes due. `due_ns`: when to call it again, if nothing happens before.
  void step(std::int64_t now_ns);
  bool waits_for_time() const noexcept { return !draining_.empty() || !paced_peers_.empty(); }
  std::int64_t due_ns() const noexcept;

 private:
  std::int64_t port_busy_ns(const Peer& peer, unsigned segments) const;
  std::int64_t grace_ns(const Peer& peer) const;
  void release_paced(const Port& port);
  std::pair<std::int64_t, std::size_t> unsent_bytes(const Transport& transport) const;

  const EngineContext& context_;
  EndpointStatistics& statistics_;
  Peers& peers_;
  CountedList<Peer*> paced_peers_;     ///< their bulk waits for their ports
  CountedList<Transport*> draining_;  ///< their rates will be known when their buffers have drained
};

}  // namespace tandem::comm::internal
