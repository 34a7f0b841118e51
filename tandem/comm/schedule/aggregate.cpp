// tandem/comm/schedule/aggregate.cpp: as many messages as fit into each packet, in the order of posting.
#include "tandem/comm/schedule/strategies.hpp"

namespace tandem::comm::internal {
namespace {

/// Messages go in the order of posting, as many as the control block holds; a segment of the oldest ready stream rides
/// behind them. So messages do not wait for streams, and streams share packets with messages: whole messages and
/// segments take turns. Streams go one after the other. Rail 0 alone is used. Nothing starves while streams end.
class Aggregate final : public Strategy {
 public:
  std::string_view name() const noexcept override { return "aggregate"; }
  SendOrder order() const noexcept override { return SendOrder::posting; }

  void plan(const SendQueue& queue, const RailView& view, PacketPlan& out) const override {
    plan_one_rail(queue, view, out);
  }
};

}  // namespace

std::unique_ptr<Strategy> make_aggregate() { return std::make_unique<Aggregate>(); }

}  // namespace tandem::comm::internal
