// tandem/comm/engine/peer_queues.hpp: what enters the queue of a peer: records, messages and streams.
#pragma once

#include <cstdint>
#include <span>

#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/engine_trace.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// Gives what is to be sent its form in the queue of its peer, from which `PacketSender` forms packets. Where that is
/// cheap, a record goes past the queue to the rail.
///
/// Stateless: queues and streams belong to `Peer`. Under the endpoint's lock.
class PeerQueues {
 public:
  explicit PeerQueues(EngineParts& parts);

  // Records of the engine's own.
  /// Sends a record: at once where that is cheap, else before all messages that are queued.
  void post_control(Peer& peer, std::span<const std::byte> record);
  template <wire::IsRecord Record>
  void post_control(Peer& peer, const Record& record) {
    post_control(peer, std::as_bytes(std::span(&record, 1)));
  }
  /// Sends a block of this record only, past the queue. False: the rail takes none now.
  bool send_alone(Peer& peer, std::span<const std::byte> record, std::span<const std::byte> header = {});

  // Messages.
  /// Decides how a message travels, as far as its size says, and fills its `SendItem`. An eager message takes its
  /// credit when its packet is formed, so that waiting messages take none; without credit then, it is announced.
  void prepare(SendCore& core, Peer& peer);
  /// Bytes of a message's announcement in a control block.
  static std::uint32_t announced_bytes(const SendCore& core) noexcept;
  /// Bytes of the record that names the broadcast before a message; 0: it names none.
  static constexpr std::size_t after_bytes(std::uint64_t after) noexcept { return after ? sizeof(wire::After) : 0; }
  static void write_announcement(const SendCore& core, wire::Writer& writer);
  /// Sends the announcement of a message past the queue. False: it has to be queued.
  bool announce_at_once(const SendCore& core, Peer& peer);

  // Streams.
  /// A new stream to the peer, with a number of its own.
  static OutgoingStream& new_stream(Peer& peer);
  /// Gives an announced message the stream that will carry it.
  void make_stream(SendCore& core, Peer& peer);
  /// Puts what may be sent of a stream into the queue, since grants or data have come.
  void refresh(OutgoingStream& stream);
  void drop_stream(OutgoingStream& stream);

 private:
  bool sends_past_queue(const Peer& peer) const noexcept;
  std::uint64_t bytes_unasked(const SendCore& core, const Peer& peer) const noexcept;

  const EngineContext& context_;
  EngineTrace& trace_;
  EndpointStatistics& statistics_;
  Peers& peers_;
  PortPacing& pacing_;
};

}  // namespace tandem::comm::internal
