// tandem/comm/engine/deferral.hpp: messages that are not announced until their receiver wants them.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// Both sides of deferral (see the protocol in deferral.cpp): which sends may not be announced yet, and what this rank
/// asks those peers for that defer messages to it.
///
/// State: the peers that defer messages to this rank. What is deferred to a peer lies in `Peer::deferred`. Under the
/// endpoint's lock.
class Deferral {
 public:
  explicit Deferral(EngineParts& parts);

  bool any_peer_defers() const noexcept { return !deferring_peers_.empty(); }
  /// The messages deferred here, of all peers.
  std::uint64_t deferred_messages() const noexcept;

  /// Adds a posted message to the queue of its peer, or to the deferred ones.
  void enqueue(SendCore& core, Peer& peer);
  /// Announces or defers queued eager messages that the credit does not cover.
  void settle_queue(Peer& peer);
  /// Announces other messages, since an announced one has ended.
  void announce_more(Peer& peer);
  const char* take_want(Peer& peer, const wire::Want& want);
  /// Drops a deferred message that is cancelled, or whose peer is dead.
  void drop_deferred(SendCore& core);
  const char* take_defer(Peer& peer, const wire::Defer& record);
  /// Notes that the peer defers nothing any more.
  void forget_deferring_peer(Peer& peer);
  /// A receive was posted and has matched nothing: asks the peers for such a message.
  void want_from_all(const MatchPattern& pattern);
  /// A probe has matched nothing: asks the peers for such a message, once.
  void want_probed(const MatchPattern& pattern);
  /// Tells the peer that a handler takes all messages of the channel.
  void want_all(Peer& peer, std::uint32_t channel);
  void want_all_from_all(std::uint32_t channel);

 private:
  static bool may_announce(const Peer& peer) noexcept;
  static bool may_call(const Peer& peer) noexcept;
  static bool concerns(const MatchPattern& pattern, const Peer& peer) noexcept;
  bool has_to_wait(const SendCore& core, Peer& peer, bool covered);
  void start_deferring(Peer& peer);
  void stop_deferring(Peer& peer);
  static void make_announced(SendCore& core) noexcept;
  void announce_deferred(SendCore& core);
  void announce_calls(Peer& peer);
  void tell_wants(Peer& peer);
  bool note_want(Peer& peer);
  void want(Peer& peer, const MatchPattern& pattern);

  const EngineContext& context_;
  Peers& peers_;
  PeerQueues& queues_;
  Arrivals& arrivals_;
  std::vector<Peer*> deferring_peers_;  ///< defer messages to this rank
};

}  // namespace tandem::comm::internal
