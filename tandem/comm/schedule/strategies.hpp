// tandem/comm/schedule/strategies.hpp: the built-in strategies, and what they share.
#pragma once

#include <algorithm>
#include <memory>

#include "tandem/comm/schedule/strategy.hpp"

namespace tandem::comm::internal {

std::unique_ptr<Strategy> make_fifo();
std::unique_ptr<Strategy> make_aggregate();
std::unique_ptr<Strategy> make_priority();
std::unique_ptr<Strategy> make_split();

/// The size of a stream's next segment on a rail that takes `wanted` of it.
inline std::uint64_t segment_of(const RailView& view, std::uint64_t wanted) noexcept {
  return std::min<std::uint64_t>(wanted, std::min(view.segment_bytes, view.max_payload_bytes));
}

/// Appends an item without payload.
inline void add_record(PacketPlan& plan, SendItem& item) {
  plan.records.push_back(&item);
  plan.control_bytes += item.control_bytes;
}

/// Ends the packet with a payload: a whole message's, or `bytes` of a stream's.
inline void add_bulk(PacketPlan& plan, SendItem& item, std::uint64_t bytes) noexcept {
  plan.bulk = &item;
  plan.bulk_bytes = bytes;
  plan.control_bytes += item.control_bytes;
}

/// Fills a packet of rail 0 with as many messages as fit, in the queue's order and beside the record of `stream`; the
/// payload is the first whole message's or a segment of `segment_bytes` of `stream` (null: none wants the rail).
/// Messages that go by less than the stream's priority wait; those of the same priority go first, but their payloads
/// take turns with the stream's segments.
void fill_packet(const SendQueue& queue, const RailView& view, SendItem* stream, std::uint64_t segment_bytes,
                 PacketPlan& out);

/// The plan of strategies that use rail 0 alone: `fill_packet`, with the stream that the queue's order puts first.
void plan_one_rail(const SendQueue& queue, const RailView& view, PacketPlan& out);

}  // namespace tandem::comm::internal
