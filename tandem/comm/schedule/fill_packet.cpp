// tandem/comm/schedule/fill_packet.cpp: many messages and one payload in a packet, by priority.
#include "tandem/comm/schedule/strategies.hpp"

namespace tandem::comm::internal {
namespace {

/// Whether a message fits behind what is planned, so that the stream's record still does. An empty packet takes any
/// message.
bool fits(const PacketPlan& plan, const SendItem& item, const SendItem* stream, const RailView& view) noexcept {
  const std::size_t reserved = stream && item.kind == SendKind::record ? stream->control_bytes : 0;
  return plan.empty() || plan.control_bytes + item.control_bytes + reserved <= view.max_control_bytes;
}

/// Whether a stream goes before the whole message at the cursor.
bool stream_goes_first(const SendQueue& queue, const SendQueue::Cursor& whole, const SendItem* stream) noexcept {
  if (!stream) return false;
  if (queue.order() == SendOrder::priority && whole.priority() > stream->priority) return false;
  return queue.last_payload_was_whole();
}

}  // namespace

void fill_packet(const SendQueue& queue, const RailView& view, SendItem* stream, std::uint64_t segment_bytes,
                 PacketPlan& out) {
  const bool by_priority = queue.order() == SendOrder::priority;
  for (SendQueue::Cursor message = queue.messages(); message; message.advance()) {
    if (stream && by_priority && message.priority() < stream->priority) break;
    if (!fits(out, *message, stream, view)) break;
    if (message->kind == SendKind::record) {
      add_record(out, *message);
      continue;
    }
    if (!stream_goes_first(queue, message, stream)) add_bulk(out, *message, message->bulk_bytes);
    break;
  }
  if (!stream || out.bulk || out.control_bytes + stream->control_bytes > view.max_control_bytes) return;
  add_bulk(out, *stream, segment_bytes);
}

void plan_one_rail(const SendQueue& queue, const RailView& view, PacketPlan& out) {
  out.clear();
  if (view.rail != 0) return;
  SendItem* const stream = view.streams_wait ? nullptr : queue.stream();
  fill_packet(queue, view, stream, stream ? segment_of(view, stream->bulk_bytes) : 0, out);
}

}  // namespace tandem::comm::internal
