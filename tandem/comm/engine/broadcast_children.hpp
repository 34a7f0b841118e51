// tandem/comm/engine/broadcast_children.hpp: serving the children of a tree: offers, segments, acknowledgements,
// declines, adoptions.
#pragma once

#include <cstdint>

#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/engine_trace.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// What a rank does for those below it in a broadcast's tree, at the root as at any forwarder.
///
/// State: in `Strand::children`. Under the endpoint's lock.
class BroadcastChildren {
 public:
  explicit BroadcastChildren(EngineParts& parts);

  /// Bytes that a child accepts before it has taken earlier ones.
  static std::uint64_t window_bytes(std::uint32_t segment) noexcept;
  /// Adds a child of ours with its subtree.
  static Child& add_child(Strand& strand, RouteView route);
  /// Offers the strand to the children whose turn it is, once there is something to send.
  void offer_children(Strand& strand);
  /// Queues the offers that are due. Not while a transport is being polled, since this may connect.
  void queue_offers();
  bool has_offers() const noexcept { return !broadcasts_.to_offer.empty(); }
  /// Writes the offer into a packet, and does what follows when it was sent.
  void write_offer(Child& child, wire::Writer& writer);
  void offer_sent(Child& child, std::uint64_t bulk_bytes, bool posted);
  /// Reacts when something was sent to a child, was read, or was acknowledged.
  void child_progress(Child& child);
  const char* take_note(Peer& peer, const wire::McastNote& note);
  /// A child is dead: we serve those below it, or inform them that the data will not come.
  void lose_child(Child& child);
  /// Informs a recipient that the data will not come, and counts it as a child until it has answered.
  void await_lost(Strand& strand, RouteView leaf, Rank dead);
  static bool all_sent(const Broadcast& broadcast) noexcept;
  void end_below(Strand& strand);

 private:
  static void adopt(const Child& lost, RouteView orphan);
  static bool handed_over(const Child& child) noexcept;
  bool may_pull(const Peer& peer, const Strand& strand) const noexcept;
  std::uint64_t low_id(Rank root) const;
  static bool has_accepted(const Child& child) noexcept;
  void offer(Child& child);
  void declined(Child& child);

  const EngineContext& context_;
  EngineTrace& trace_;
  EndpointStatistics& statistics_;
  Broadcasts& broadcasts_;
  Peers& peers_;
  PortPacing& pacing_;
  PeerQueues& queues_;
  IncomingTransfers& incoming_;
  BroadcastListener& listener_;
};

}  // namespace tandem::comm::internal
