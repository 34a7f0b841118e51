// tandem/comm/engine/arrivals_inline.hpp: the way of a small message to a posted receive, in line where its packet
// arrives.
#pragma once

#include <algorithm>
#include <memory>
#include <new>

#include "tandem/comm/engine/parts.hpp"  // which includes this file

namespace tandem::comm::internal {

/// The posted receive that a message goes to, now unlinked. Null: none, or the message is for a handler.
[[gnu::always_inline]] inline ReceiveCore* Arrivals::match(MatchKey key) {
  return has_handler(key.channel) ? nullptr : static_cast<ReceiveCore*>(matcher_.arrive(key));
}

/// Writes into a receive what is known of its message.
[[gnu::always_inline]] inline void Arrivals::fill(ReceiveCore& core, Peer& peer, Tag tag, std::uint64_t bytes,
                                                std::span<const std::byte> header) {
  core.other = peer.rank;
  core.tag = tag;
  core.bytes = bytes;
  core.keep_header(header);
  if (core.owns_buffer && core.pieces.bytes() == 0 && bytes > 0) [[unlikely]] {
    // The size comes from the network. Without as much memory the receive has no room, and ends as truncated.
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
    if (memory == nullptr) return;
    core.pieces = Pieces(memory.get(), bytes);
    core.keep_owned(std::move(memory));
  }
}

/// Copies the data of an eager message into the receive that it has met.
[[gnu::always_inline]] inline void Arrivals::deliver(ReceiveCore& receive, Peer& peer, std::uint32_t bytes,
                                                   std::size_t header_bytes, std::span<const std::byte> data) {
  const std::size_t room = receive.pieces.bytes();
  receive.pieces.copy_in(0, data.first(std::min(data.size(), room)));
  freed_message(peer, bytes, header_bytes);
  completions_.arrive(receive, bytes > room ? Ending::truncated : Ending::done);
}

/// Takes a block for which `wire::holds_one_plain_message`, by far the most frequent kind. Short, since it needs no
/// look-up.
[[gnu::always_inline]] inline const char* Arrivals::take_plain_message(Rail& rail, Peer& peer,
                                                                                     std::span<const std::byte> control,
                                                                                     std::uint64_t first) {
  const wire::Eager eager = wire::plain_message(control, first);
  PostedReceive* const met =
      handlers_.empty() ? matcher_.arrive_at_hand({.source = peer.rank, .channel = eager.channel, .tag = eager.tag})
                        : nullptr;
  if (met == nullptr) [[unlikely]] return look_up_plain_message(rail, eager, control);
  auto& receive = static_cast<ReceiveCore&>(*met);
  ++peer.head.seen;
  fill(receive, peer, Tag{eager.tag}, eager.bytes, {});
  deliver(receive, peer, eager.bytes, 0, control.subspan(wire::kBeforeData, eager.bytes));
  return nullptr;
}

}  // namespace tandem::comm::internal
