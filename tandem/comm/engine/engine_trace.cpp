// tandem/comm/engine/engine_trace.cpp: the records of messages and broadcasts, when they are on.
#include "tandem/comm/engine/engine_trace.hpp"

#include <algorithm>
#include <cstring>

namespace tandem::comm::internal {

using enum trace::Type;

void EngineTrace::record_receive_posted(ReceiveCore& core) noexcept {
  const MatchPattern& wanted = core.pattern;
  stream.set_instant(stream.read_clock());
  stream.append<trace::Type::receive_posted>(number(core), wanted.any_source ? UINT32_MAX : wanted.source.value(),
                                             wanted.channel, wanted.any_tag ? UINT64_MAX : wanted.tag);
}

void EngineTrace::record_send_posted(SendCore& core) noexcept {
  stream.append<trace::Type::send_posted>(number(core), core.other.value(), core.SendItem::channel,
                                          core.SendItem::priority, core.RequestCore::tag.value(), core.bytes);
}

void EngineTrace::record_sent_at_once(SentCore& core, Channel channel, int priority,
                                      std::size_t packet_bytes) noexcept {
  const std::uint32_t peer = core.other.value();
  if (follows()) {
    stream.append<trace::Type::send_posted>(number(core), peer, channel.value(), priority, core.tag.value(),
                                            core.bytes);
    stream.append<message_sent>(core.request);
  } else {
    stream.set_instant(stream.read_clock());
  }
  stream.append<trace::Type::packet_sent>(peer, packet_bytes);
  if (core.request != 0) stream.append<message_released>(core.request);
}

void EngineTrace::mcast_posted(RequestCore& core, Channel channel, std::span<const Recipient> recipients) noexcept {
  if (!follows()) return;
  stream.set_instant(stream.read_clock());
  stream.append<trace::Type::mcast_posted>(number(core), channel.value(), core.tag.value(), core.bytes,
                                           recipients.size());
  for (const Recipient& recipient : recipients) stream.append<mcast_recipient>(core.request, recipient.rank.value());
}

void EngineTrace::record_arrived(const ReceiveCore& core) noexcept {
  stream.set_instant(stream.read_clock());
  if (core.request == 0) return;
  stream.append<message_arrived>(core.request, core.other.value(), core.pattern.channel, core.tag.value(), core.bytes);
}

void EngineTrace::record_end(const RequestCore& core, bool begins_instant) noexcept {
  if (core.request == 0) return;
  if (begins_instant) stream.set_instant(stream.read_clock());
  if (core.ending == Ending::done) stream.append<message_released>(core.request);
  else stream.append<message_failed>(core.request, static_cast<std::uint8_t>(core.ending));
}

void EngineTrace::mcast_routed(const RequestCore& core, TreeKind tree, std::uint32_t segment_bytes,
                               std::span<const std::uint32_t> children) noexcept {
  if (core.request == 0 || !stream.any_on<trace::Type::mcast_routed>()) return;
  struct [[gnu::packed]] Fixed {
    std::uint32_t request;
    std::uint8_t tree;
    std::uint32_t segment_bytes;
    std::uint8_t children;
  };
  const std::size_t listed = std::min<std::size_t>(children.size(), UINT8_MAX);
  const trace::Stream::Open record =
      stream.open(trace::Type::mcast_routed, stream.read_clock(), sizeof(Fixed) + 4 * listed);
  if (record.fields == nullptr) return;
  const Fixed fixed{core.request, static_cast<std::uint8_t>(tree), segment_bytes, static_cast<std::uint8_t>(listed)};
  std::memcpy(record.fields, &fixed, sizeof fixed);
  if (listed > 0) std::memcpy(record.fields + sizeof fixed, children.data(), 4 * listed);
  stream.publish(record);
}

}  // namespace tandem::comm::internal
