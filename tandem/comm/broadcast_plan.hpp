// tandem/comm/broadcast_plan.hpp: the tree of a broadcast that is sent again and again, chosen once.
#pragma once

#include <memory>

namespace tandem::comm {

namespace internal {
class BroadcastPlanner;
struct PlannedTree;
}  // namespace internal

/// What broadcasts that are alike share (`McastOptions::plan`): their recipients in order, tree, segments and routes.
///
///   const auto plan = std::make_shared<BroadcastPlan>();
///   for (const Step& step : steps) endpoint.mcast(recipients, tag, step.bytes, {.plan = plan});  // the first one fills it
///
/// Made empty. A broadcast that starts and finds in it what was chosen for the same recipients and priorities, bytes, tree
/// options and costs of the network takes that (`EndpointStatistics::plans_reused`); any other one chooses as without a plan, and
/// leaves its choice there. So a wrong plan costs time alone, and what was chosen before the network was measured is chosen again
/// after. What the root has queued for others, at which `TreeKind::automatic` looks, counts when it is chosen, not later.
///
/// Belongs to the endpoint that sees it first. Threads: it may be given to broadcasts of any threads, any number of them under
/// way; the endpoint guards it. Lives as long as it is referenced; broadcasts hold it until they start.
class BroadcastPlan {
 public:
  BroadcastPlan();
  ~BroadcastPlan();
  BroadcastPlan(const BroadcastPlan&) = delete;
  BroadcastPlan& operator=(const BroadcastPlan&) = delete;

 private:
  friend class internal::BroadcastPlanner;
  std::unique_ptr<internal::PlannedTree> tree_;  ///< under the endpoint's lock
};

}  // namespace tandem::comm
