// tandem/comm/engine/broadcast_recipient.hpp: where broadcasts arrive: their place in the order, their memory, their
// ends.
#pragma once

#include <cstdint>
#include <span>

#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/engine_trace.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// The recipient's side of broadcasts, and how they end, also at their root.
///
/// State: in `Broadcasts`, which the broadcast parts share. Under the endpoint's lock.
class BroadcastRecipient final : public BroadcastListener {
 public:
  explicit BroadcastRecipient(EngineParts& parts);

  const char* take_mcast(Rail& rail, wire::Reader& reader, std::size_t payload_bytes);
  const char* take_lost(Peer& peer, const wire::McastLost& record);
  /// Whether no rank above is known to be alive that would report the end of a strand.
  static bool orphaned(const Broadcast& broadcast) noexcept;
  /// Lets messages and broadcasts of a root that waited for what has come enter the order.
  void settle(Rank root);
  void matched(Broadcast& broadcast, ReceiveCore& core) override;
  void landed(Strand& strand, std::uint64_t begin, std::uint64_t end) override;
  void superseded_landed(Strand& strand) override;
  void child_advanced(const Child& child) override;
  /// Releases the receive or the request when nothing reads the memory any more.
  void maybe_released(Broadcast& broadcast);
  /// Ends the order of this rank's broadcast when all recipients have it: later messages need not name it.
  void acknowledge_if_all(Broadcast& broadcast);
  /// Ends a broadcast whose data will not come: fails the receive, and informs those below.
  void lose(Broadcast& broadcast, Rank dead);
  /// Reacts to a possible death above: connects to the root, or gives the broadcast up when that is dead.
  void orphan(Broadcast& broadcast);

 private:
  const char* check_mcast(const wire::Mcast& record, unsigned index, std::span<const std::byte> route_bytes,
                          std::size_t payload_bytes) const;
  const char* take_strand(Rail& rail, Broadcast& broadcast, const wire::Mcast& record,
                          std::span<const std::byte> route_bytes, std::size_t payload_bytes);
  void pass_on_loss(Strand& strand, std::span<const std::byte> route_bytes);
  Incoming& expect(Strand& strand);
  void listen(Strand& strand, std::uint64_t granted, std::uint8_t epoch);
  bool make_room(Broadcast& broadcast, bool always);
  void drop_library(Broadcast& broadcast);
  void decline(Strand& strand);
  void refuse(Peer& parent, const wire::Mcast& record);
  void ask_for_declined(Broadcast& broadcast);
  void free_credit(Strand& strand);
  bool may_begin(Rank root);
  bool may_enter(Broadcast& broadcast);
  void try_enter(Broadcast& broadcast);
  void enter(Broadcast& broadcast);
  void forget_entered(Rank root, std::uint64_t low_id);
  void strand_landed(Strand& strand, std::uint64_t begin, std::uint64_t end);
  void end_complete(Strand& strand);
  void maybe_arrived(Broadcast& broadcast);
  void maybe_acknowledge(Strand& strand);
  void maybe_forget(Broadcast& broadcast);

  const EngineContext& context_;
  EngineTrace& trace_;
  Broadcasts& broadcasts_;
  Completions& completions_;
  Peers& peers_;
  PeerQueues& queues_;
  IncomingTransfers& incoming_;
  Arrivals& arrivals_;
  BroadcastChildren& children_;
  const Allowance allowed_;  ///< to each peer
  std::size_t count_at_ = kMostBroadcasts;  ///< how many broadcasts there are when `may_begin` counts
};

}  // namespace tandem::comm::internal
