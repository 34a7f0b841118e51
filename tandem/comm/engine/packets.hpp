// tandem/comm/engine/packets.hpp: from a peer's queue to packets on its rails.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/engine_trace.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/schedule/strategy.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// Forms packets from what is queued for a peer while its rails take them, and says what follows when a packet was
/// sent.
///
/// State: scratch memory of the packet that is being formed. Under the endpoint's lock.
class PacketSender {
 public:
  PacketSender(EngineParts& parts, std::unique_ptr<Strategy> strategy);

  /// Forms packets for the peer while its rails take them.
  void pump(Peer& peer);
  /// Queues what broadcasts offer, connects to peers of `Peers::mark_dirty`, and forms packets for them. Not while a
  /// transport is being polled.
  void flush();
  /// As `PacketSink::sent`, and `PacketSink::writable`.
  void sent(Link& link, std::uint64_t cookie);
  void writable(Link& link);

 private:
  void pump_dirty();
  bool pump_rail(Peer& peer, unsigned rail);
  static std::uint32_t post_packet(Rail& rail, const PostedPacket& packet);
  static void free_posted(Rail& rail, std::uint32_t slot);
  static void name_posted(SendItem& item, PostedPacket& packet);
  void write_record(SendItem& item, wire::Writer& writer);
  static void write_message(SendCore& core, wire::Writer& writer);
  static std::uint64_t payload_of(SendItem& item, std::uint64_t bytes, std::vector<iovec>& pieces);
  void after_sent(SendItem& item, Peer& peer, std::uint64_t bulk_bytes, bool posted);
  bool announce_uncovered(Peer& peer);

  const EngineContext& context_;
  EngineTrace& trace_;
  EndpointStatistics& statistics_;
  Peers& peers_;
  PortPacing& pacing_;
  PeerQueues& queues_;
  Deferral& deferral_;
  OutgoingTransfers& outgoing_;
  BroadcastChildren& children_;
  Departures& departures_;
  std::unique_ptr<Strategy> strategy_;
  PacketPlan plan_;
  std::vector<SendItem*> sent_now_;
  std::vector<std::byte> block_;
  std::vector<iovec> pieces_;
};

}  // namespace tandem::comm::internal
