// tandem/comm/engine/incoming_transfers.hpp: large messages on their way in: grants, segments, and copies from the
// sender's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/counted_list.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// The receiver's side of announced messages and of broadcasts' strands. Chooses how a message comes: in segments, read
/// from the sender's memory, or copied by both.
///
/// State: the copies under way. Transfers belong to `Peer::incoming`. Under the endpoint's lock.
class IncomingTransfers {
 public:
  explicit IncomingTransfers(EngineParts& parts);

  const char* take_data(Rail& rail, const wire::Data& data, std::size_t payload_bytes);
  /// How a receive met an announcement.
  struct Meets {
    bool late = false;  ///< the receive was posted after the announcement came
    bool call = false;  ///< a handler's, which counts so in `Peer::occupied`
  };
  /// Starts the transfer of an announced message that a receive has matched.
  void start_incoming(ReceiveCore& core, Peer& peer, const Envelope::Announced& announced, std::uint64_t bytes,
                      Meets meets);
  /// Takes the payload of this packet as the beginning that came with an announcement.
  static void land_along(Rail& rail, Incoming& incoming, std::size_t bytes);
  /// Grants the whole strand, since its memory is there.
  void grant_strand(Incoming& incoming);
  /// Notes that the bytes [offset, offset + bytes) are in memory.
  void landed_data(Incoming& incoming, std::uint64_t offset, std::uint64_t bytes);
  /// Ends a transfer.
  void end_incoming(Incoming& incoming);
  /// Takes the payload of this packet as a segment.
  static void land_in(Rail& rail, Incoming& incoming, std::uint64_t offset);
  bool copies() const noexcept { return !pulling_.empty(); }
  /// Copies one piece of each message that is read from its sender's memory.
  void copy_some();
  /// Whether this rank may read the peer's memory.
  bool can_pull(const Peer& peer) const noexcept;
  /// Whether that is worth it for a strand.
  bool can_pull_strand(const Peer& peer, std::uint64_t bytes) const noexcept;
  /// Begins to read the sender's memory at `address`.
  void start_pull(Incoming& incoming, std::uint64_t address);
  void copy_incoming(Incoming& incoming);
  const char* take_shared(Peer& peer, const wire::Shared& shared);

 private:
  void grant_all(Incoming& incoming);
  std::optional<CopyWay> choose_way(const Incoming& incoming, std::uint64_t address);
  void end_pull(Incoming& incoming);
  void stop_pull(Incoming& incoming);
  void pull_refused(Incoming& incoming);
  void send_instead(Incoming& incoming);
  bool share(Incoming& incoming);
  static void stop_sharing(Incoming& incoming);
  void no_part_left(Incoming& incoming);

  const EngineContext& context_;
  EndpointStatistics& statistics_;
  Completions& completions_;
  Peers& peers_;
  PeerQueues& queues_;
  BroadcastListener& listener_;
  CountedList<Incoming*> pulling_;
  std::vector<iovec> pieces_;  ///< scratch of `copy_incoming`
};

}  // namespace tandem::comm::internal
