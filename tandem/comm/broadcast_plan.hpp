// tandem/comm/broadcast_plan.hpp: the tree of a broadcast that is sent again and again, chosen once.
#pragma once

#include <memory>

namespace tandem::comm {

namespace internal {
class BroadcastPlanner;
struct PlannedTree;
}  // namespace internal

/// What like broadcasts share (`McastOptions::plan`): their recipients in order, tree, segments and routes.
///
///   const auto plan = std::make_shared<BroadcastPlan>();
///   for (const Step& step : steps) endpoint.mcast(recipients, tag, step.bytes, {.plan = plan});  // the first one fills it
///
/// Made empty. A broadcast whose recipients, priorities, bytes, tree options and costs of the network equal those of
/// the plan takes its tree (`EndpointStatistics::plans_reused`). Any other one chooses as without a plan, and stores
/// its choice there. So a wrong plan costs only time, and a choice made before the network was measured is made again
/// afterwards. What the root has queued for others, which `TreeKind::automatic` considers, counts when the tree is
/// chosen, not later.
///
/// Belongs to the endpoint that sees it first. Threads: it may be given to broadcasts of any threads, any number of
/// them under way; the endpoint guards it. Lives as long as it is referenced; broadcasts hold it until they start.
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
