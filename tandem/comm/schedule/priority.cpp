// tandem/comm/schedule/priority.cpp: highest priority first, aggregated.
#include "tandem/comm/schedule/strategies.hpp"

namespace tandem::comm::internal {
namespace {

/// Highest priority first, the order of posting inside one. A packet holds messages of at least the priority of the
/// first ready stream, and a segment of that stream; so urgent items wait for the rail's current packet, one segment at
/// most.
///
/// Streams of one priority go one after the other, the oldest first, since sharing the rail would end none of them
/// earlier and all but the last later (of n equal ones, the mean end comes at (n+1)/2n of the time that fair shares
/// need). Whole messages and segments of one priority take turns. A lower priority waits while a higher one has
/// anything ready, however long: the program that sets priorities decides so. Rail 0 alone is used.
class Priority final : public Strategy {
 public:
  std::string_view name() const noexcept override { return "priority"; }
  SendOrder order() const noexcept override { return SendOrder::priority; }

  void plan(const SendQueue& queue, const RailView& view, PacketPlan& out) const override {
    plan_one_rail(queue, view, out);
  }
};

}  // namespace

std::unique_ptr<Strategy> make_priority() { return std::make_unique<Priority>(); }

}  // namespace tandem::comm::internal
