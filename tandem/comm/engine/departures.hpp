// tandem/comm/engine/departures.hpp: what a peer's death, or its leaving, ends; and how this rank leaves.
#pragma once

#include <string_view>

#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/counted_list.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// Ends what is under way with a peer that died or left, and says goodbye for this rank.
///
/// State: the peers that said goodbye during this poll. Under the endpoint's lock.
class Departures {
 public:
  explicit Departures(EngineParts& parts);

  /// As `PacketSink`.
  void peer_failed(Rank peer, std::string_view reason);
  void opened(Link& link);
  void peer_unreachable(Rank peer, std::string_view reason);
  /// The polled transport cannot connect to the peer: the next one that reaches it takes over, if there is one.
  void peer_needs_other_transport(Rank peer, std::string_view reason);
  /// When leaving takes long, connects to the roots of broadcasts, whose deaths may delay the ranks below us.
  void connect_to_roots();
  void end_everything();
  /// Whether peers need something of this rank: sends, forwards, acknowledgements that are not handed over.
  bool pending_for_peers() const noexcept;
  void say_goodbye();
  bool all_answered_goodbye() const noexcept;
  /// Closes the links to all peers; what was under way ends as cancelled. Not while polling.
  void abandon();
  void cancel_everything();
  const char* take_goodbye(Peer& peer, const wire::Goodbye& goodbye);
  /// Tells transports, between polls, which peers said goodbye.
  void report_departures();

 private:
  bool waits_for(const Peer& peer) const;
  void peer_has_left(Peer& peer);
  /// Fails the receives and probes that are posted for that rank alone.
  void fail_posted_from(Rank rank, Ending ending);
  void fail_peer(Peer& peer, Ending ending);
  void fail_landings(Peer& peer, Ending ending);
  void fail_outgoing(Peer& peer, Ending ending);
  void fail_send(SendCore& core, Ending ending, Rank rank);
  void fail_broadcasts(Rank dead);
  void drop_broadcasts();
  bool pending_below(const Broadcast& broadcast) const noexcept;

  const EngineContext& context_;
  Broadcasts& broadcasts_;
  Completions& completions_;
  Peers& peers_;
  PortPacing& pacing_;
  PeerQueues& queues_;
  Deferral& deferral_;
  OutgoingTransfers& outgoing_;
  IncomingTransfers& incoming_;
  Arrivals& arrivals_;
  BroadcastChildren& children_;
  BroadcastRecipient& recipient_;
  CountedList<Peer*> departed_;  ///< said goodbye during this poll; their transports learn of it after the poll
};

}  // namespace tandem::comm::internal
