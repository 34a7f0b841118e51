// tandem/comm/engine/sends.hpp: posted sends: at once, eagerly, or announced.
#pragma once

#include <cstdint>

#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/engine_trace.hpp"
#include "tandem/comm/engine/peer.hpp"

namespace tandem::comm::internal {

/// Takes a send from its posting to the queue of its peer, or straight to a free rail.
///
/// Stateless: a send's state is its `SendCore`. Under the endpoint's lock.
class Sends {
 public:
  explicit Sends(EngineParts& parts);

  /// Posts a short message whose rail is free; see sends_inline.hpp.
  RequestCore* send_short(Peer& peer, Tag tag, const Pieces& pieces, const SendOptions& options);
  /// Posts any send that `send_short` cannot take.
  RequestCore* send_otherwise(Rank to, Tag tag, SendBuffer&& buffer, const SendOptions& options);
  /// Posts a send whose bytes come later.
  RequestCore* send_later(Rank to, Tag tag, std::size_t bytes, const SendOptions& options);
  static bool takes_at_once(const Peer& peer, std::size_t bytes) noexcept;

 private:
  RequestCore* send_at_once(Peer& peer, Tag tag, const Pieces& pieces, std::uint64_t after, const SendOptions& options);
  std::uint64_t broadcast_before(Rank to, Channel channel, Tag tag);
  RequestCore* send_queued(SendCore& core, Rank to, Tag tag, Peer* peer, std::uint64_t after,
                           const SendOptions& options);
  RequestCore* sent_at_once(Peer& peer, Tag tag, std::size_t bytes, std::uint32_t units, std::size_t packet_bytes,
                            const SendOptions& options);
  void send_to_self(SendCore& core, Peer& peer);

  const EngineContext& context_;
  EngineTrace& trace_;
  EndpointStatistics& statistics_;
  Broadcasts& broadcasts_;
  Completions& completions_;
  Peers& peers_;
  PeerQueues& queues_;
  PacketSender& packets_;
  Deferral& deferral_;
  Arrivals& arrivals_;
  BroadcastRoot& root_;
};

}  // namespace tandem::comm::internal
