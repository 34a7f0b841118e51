// tandem/comm/schedule/fifo.cpp: one item per packet, in the order of posting.
#include "tandem/comm/schedule/strategies.hpp"

namespace tandem::comm::internal {
namespace {

/// The plainest strategy, to measure the others against. A stream sends all that it has ready before anything younger
/// goes; a stream with nothing ready is passed by. Rail 0 alone is used. Nothing starves while streams end.
class Fifo final : public Strategy {
 public:
  std::string_view name() const noexcept override { return "fifo"; }
  SendOrder order() const noexcept override { return SendOrder::posting; }

  void plan(const SendQueue& queue, const RailView& view, PacketPlan& out) const override {
    out.clear();
    if (view.rail != 0) return;
    const SendQueue::Cursor message = queue.messages();
    SendItem* const stream = queue.stream();
    if (stream && (!message || stream->sequence < message->sequence)) {
      add_bulk(out, *stream, segment_of(view, stream->bulk_bytes));
    } else if (message && message->kind == SendKind::whole) {
      add_bulk(out, *message, message->bulk_bytes);
    } else if (message) {
      add_record(out, *message);
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> make_fifo() { return std::make_unique<Fifo>(); }

}  // namespace tandem::comm::internal
