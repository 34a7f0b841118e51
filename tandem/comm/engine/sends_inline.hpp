// tandem/comm/engine/sends_inline.hpp: the way of a short message whose rail is free, in line where it is posted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tandem/comm/engine/parts.hpp"  // which includes this file

namespace tandem::comm::internal {

/// `send_at_once` for a message that takes a line of a ring and no credit but for its number, has no header and no
/// broadcast before it, and finds the line ready. Null: it cannot go this way, and nothing has happened.
[[gnu::always_inline]] inline RequestCore* Sends::send_short(Peer& peer, Tag tag, const Pieces& pieces,
                                                              const SendOptions& options) {
  const std::size_t bytes = pieces.bytes();
  if (!takes_at_once(peer, bytes) || !Credit(peer).covers(0, 0)) [[unlikely]] return nullptr;
  Link& link = *peer.rails[0]->link;
  if (link.line == nullptr) [[unlikely]] return nullptr;
  static_assert(wire::kBeforeData + Envelope::small_bytes <= Link::kFirstBytes);
  const std::span<std::byte> block(link.line, wire::kBeforeData + wire::padded(bytes));
  if (bytes % 8 != 0) std::memset(block.data() + block.size() - 8, 0, 8);
  wire::Writer writer(block);
  writer.put_head(peer.head);
  writer.put(
      wire::Eager{.bytes = static_cast<std::uint32_t>(bytes), .channel = options.channel.value(), .tag = tag.value()});
  copy_few(block.data() + wire::kBeforeData, pieces.data(), bytes);
  link.send_reserved(block);
  return sent_at_once(peer, tag, bytes, 0, block.size(), options);
}

/// Whether a small message may go to the peer's rail without a queue, as far as its credit allows.
inline bool Sends::takes_at_once(const Peer& peer, std::size_t bytes) noexcept {
  return bytes < peer.at_once_below && !peer.rails[0]->blocked && peer.queue.idle();
}

/// Records an eager message that was handed to the rail without a queue.
inline RequestCore* Sends::sent_at_once(Peer& peer, Tag tag, std::size_t bytes, std::uint32_t units,
                                         std::size_t packet_bytes, const SendOptions& options) {
  ++peer.envelopes_sent;
  take_credit(peer, units);
  peer.head_sent = peer.head;
  ++statistics_.messages_sent;
  ++statistics_.packets_sent;
  auto* core = new SentCore(peer.rank, tag, bytes);
  trace_.sent_at_once(*core, options.channel, options.priority, packet_bytes);
  completions_.keep_notify(*core, options);
  completions_.notify(*core, CompletionQueue::Event::released);
  return core;
}

}  // namespace tandem::comm::internal
