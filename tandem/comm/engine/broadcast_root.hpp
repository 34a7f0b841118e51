// tandem/comm/engine/broadcast_root.hpp: starts broadcasts: their recipients and order.
#pragma once

#include <cstdint>
#include <span>

#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/engine_trace.hpp"

namespace tandem::comm::internal {

/// The root's side of broadcasts: recipients, the start, the order among messages of one key, and the end when all have
/// acknowledged.
///
/// State: in `Broadcasts`, which the broadcast parts share. Under the endpoint's lock.
class BroadcastRoot {
 public:
  explicit BroadcastRoot(EngineParts& parts);

  /// When the next look at a held broadcast may start it, in ns of the endpoint's clock.
  std::int64_t due_ns() const noexcept { return broadcasts_.held.due_ns(); }

  /// As `Endpoint::mcast`, and `Endpoint::append`.
  RequestCore* mcast(std::span<const Recipient> recipients, Tag tag, SendBuffer buffer, const McastOptions& options);
  bool append(RequestCore& mcast, Recipient recipient);
  /// Cancels a broadcast. False: it has started.
  bool cancel_broadcast(McastCore& core);
  /// Starts broadcasts that need not wait any longer: for late recipients, for a free rail, for an older one of their
  /// key.
  void start_waiting_broadcasts();
  /// Starts the broadcasts of a key to `to` that a send is posted behind. False: there is none to start.
  bool start_those_before(Rank to, Channel channel, Tag tag);
  /// The newest unacknowledged broadcast of a key to a rank, older than `before`; 0: none.
  std::uint64_t last_broadcast_to(Rank to, Channel channel, Tag tag, std::uint64_t before = UINT64_MAX) const;

 private:
  HeldBroadcasts::Look look_at_held(Broadcast& broadcast);
  bool waits_for_cards(Broadcast& broadcast);
  bool some_rail_is_free(Broadcast& broadcast) const;
  void start(Broadcast& broadcast);
  bool fence_for(const Broadcast& broadcast, Rank rank, std::uint16_t& fence) const;
  void send_plainly(Broadcast& broadcast, Recipient recipient, std::uint64_t after);
  void lay_out_routes(Broadcast& broadcast, std::span<const RouteRecipient> recipients);
  void trace_routed(const Strand& strand, TreeKind tree);
  void pass_fences(const Broadcast& broadcast);

  const EngineContext& context_;
  EngineTrace& trace_;
  EndpointStatistics& statistics_;
  Broadcasts& broadcasts_;
  Completions& completions_;
  Peers& peers_;
  Deferral& deferral_;
  BroadcastPlanner& planner_;
  BroadcastChildren& children_;
  BroadcastRecipient& recipient_;
};

}  // namespace tandem::comm::internal
