// tandem/comm/engine/broadcast_planner.hpp: by which tree a broadcast travels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/context.hpp"

namespace tandem::comm::internal {

/// Chooses the tree, the segments and the routes of a broadcast, or takes those of its `BroadcastPlan`.
///
/// State: scratch memory. Under the endpoint's lock.
class BroadcastPlanner {
 public:
  explicit BroadcastPlanner(EngineParts& parts);

  void sort_recipients(Broadcast& broadcast, std::span<const Recipient> given);
  const PlannedTree& planned(Broadcast& broadcast, std::span<const RouteRecipient> recipients);
  bool insert_recipient(Broadcast& broadcast, Recipient recipient);

 private:
  std::vector<Recipient> sorted(std::span<const Recipient> given, bool by_priority) const;
  void make_plan(const Broadcast& broadcast, std::span<const RouteRecipient> recipients, PlannedTree& plan);
  TreeChoice choose_tree(const Broadcast& broadcast, std::span<const RouteRecipient> recipients,
                         const NetworkCosts& costs);
  NetworkCosts costs_for(const Broadcast& broadcast, std::span<const RouteRecipient> recipients, bool one_machine);
  bool share_machine(std::span<const RouteRecipient> recipients);

  const EngineContext& context_;
  EndpointStatistics& statistics_;
  Broadcasts& broadcasts_;
  Peers& peers_;
  IncomingTransfers& incoming_;
  /// Hosts of the recipients of the broadcast that is being planned; empty: all different.
  std::vector<std::uint32_t> hosts_;
  TreeKind inside_ = TreeKind::flat;
};

}  // namespace tandem::comm::internal
