// tandem/comm/engine/sends.cpp: posted sends: at once, eagerly, or announced.
#include <algorithm>
#include <array>
#include <cstring>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/engine/parts.hpp"
#include "tandem/comm/wrong_argument.hpp"

namespace tandem::comm::internal {

Sends::Sends(EngineParts& parts)
    : context_(parts.context),
      trace_(parts.completions.trace),
      statistics_(parts.completions.statistics),
      broadcasts_(parts.broadcasts),
      completions_(parts.completions),
      peers_(parts.peers),
      queues_(parts.queues),
      packets_(parts.packets),
      deferral_(parts.deferral),
      arrivals_(parts.arrivals),
      root_(parts.root) {}

/// The path of a small message when nothing is queued and the rail is free: no queue, no plan, no state, and on a rail
/// that reserves its own memory no intermediate copy. Null: the message cannot go this way, and nothing has happened.
inline RequestCore* Sends::send_at_once(Peer& peer, Tag tag, const Pieces& pieces, std::uint64_t after,
                                         const SendOptions& options) {
  const std::size_t bytes = pieces.bytes();
  if (!takes_at_once(peer, bytes) || !Credit(peer).covers(bytes, options.header.size())) [[unlikely]] {
    return nullptr;
  }
  Rail& rail = *peer.rails[0];
  std::array<std::byte, wire::kBeforeData + sizeof(wire::After) + Endpoint::max_header_bytes + kInlineBytes> own;
  const std::size_t records = wire::kBeforeData + PeerQueues::after_bytes(after) + wire::padded(options.header.size());
  const std::span<std::byte> block = rail.link->reserve(std::span(own).first(records + wire::padded(bytes)));
  if (block.empty()) [[unlikely]] {
    rail.blocked = true;
    return nullptr;
  }
  // From the end to the beginning, as `Link::reserve` wants it.
  if (bytes % 8 != 0) std::memset(block.data() + block.size() - 8, 0, 8);
  const std::size_t left_in_first =
      pieces.contiguous() && records < Link::kFirstBytes ? Link::kFirstBytes - records : 0;
  const std::size_t near = std::min(bytes, left_in_first);
  if (bytes > near) pieces.copy_out(near, block.subspan(records + near, bytes - near));
  wire::Writer writer(block);
  writer.put_head(peer.head);
  wire::Eager eager{
      .bytes = base::narrow<std::uint32_t>(bytes), .channel = options.channel.value(), .tag = tag.value()};
  if (after != 0) eager.prefix.flags = wire::flag_after;
  eager.prefix.header_bytes = base::narrow<std::uint16_t>(options.header.size());
  writer.put(eager);
  if (after != 0) writer.put(wire::After{after});
  writer.put_bytes(options.header);
  if (near > 0) pieces.copy_out(0, block.subspan(records, near));
  if (rail.link->send_reserved(block) == SendStatus::retry) [[unlikely]] {
    rail.blocked = true;
    return nullptr;
  }
  return sent_at_once(peer, tag, bytes, units_of(bytes, options.header.size()), block.size(), options);
}

static bool is_gone(const Peer* peer) noexcept { return peer == nullptr || peer->dead || peer->left; }

/// Posts any send but a short one whose rail is free (sends_inline.hpp).
RequestCore* Sends::send_otherwise(Rank to, Tag tag, SendBuffer&& buffer, const SendOptions& options) {
  if (to.value() >= context_.size) throw_no_such_rank("isend", to, context_.size);
  if (options.header.size() > Endpoint::max_header_bytes) throw_long_header("isend", options.header.size());
  const std::uint64_t after = broadcast_before(to, options.channel, tag);
  Peer* peer = peers_.peer_for(to);
  if (!is_gone(peer)) [[likely]] {
    if (RequestCore* sent = send_at_once(*peer, tag, buffer.pieces(), after, options)) [[likely]] return sent;
  }
  auto* core = new SendCore;
  core->pieces = std::move(buffer).take();
  core->bytes = core->pieces.bytes();
  return send_queued(*core, to, tag, peer, after, options);
}

RequestCore* Sends::send_later(Rank to, Tag tag, std::size_t bytes, const SendOptions& options) {
  const std::uint64_t after = broadcast_before(to, options.channel, tag);
  auto* core = new SendCore;
  core->bytes = bytes;
  core->late = true;
  return send_queued(*core, to, tag, peers_.peer_for(to), after, options);
}

/// The broadcast of the same key that a message must be matched after; 0: none.
inline std::uint64_t Sends::broadcast_before(Rank to, Channel channel, Tag tag) {
  if (broadcasts_.by_key.empty()) return 0;
  if (root_.start_those_before(to, channel, tag)) packets_.flush();
  return root_.last_broadcast_to(to, channel, tag);
}

inline RequestCore* Sends::send_queued(SendCore& core, Rank to, Tag tag, Peer* peer, std::uint64_t after,
                                       const SendOptions& options) {
  ++statistics_.messages_sent;
  core.keep();
  core.other = to;
  core.RequestCore::tag = tag;
  core.SendItem::channel = options.channel.value();
  core.SendItem::priority = options.priority;
  core.after = after;
  core.keep_header(options.header);
  completions_.keep_notify(core, options);
  completions_.begin();
  trace_.send_posted(core);
  if (is_gone(peer)) {
    completions_.end_send(core, peer != nullptr && peer->left ? Ending::peer_left : Ending::peer_dead, to);
    return &core;
  }
  core.peer = peer;
  if (to == context_.rank) {
    queues_.prepare(core, *peer);
    send_to_self(core, *peer);
  } else {
    deferral_.enqueue(core, *peer);
    packets_.pump(*peer);
  }
  return &core;
}

void Sends::send_to_self(SendCore& core, Peer& peer) {
  const MatchKey key{.source = context_.rank, .channel = core.SendItem::channel, .tag = core.SendItem::tag};
  if (ReceiveCore* receive = arrivals_.match(key)) {
    arrivals_.fill(*receive, peer, core.RequestCore::tag, core.bytes, core.header());
    std::vector<std::byte> bytes(std::min<std::size_t>(core.bytes, receive->pieces.bytes()));
    core.pieces.copy_out(0, bytes);
    receive->pieces.copy_in(0, bytes);
    completions_.arrive(*receive, core.bytes > receive->pieces.bytes() ? Ending::truncated : Ending::done);
  } else {
    auto* envelope = new Envelope(Envelope::Kind::eager, key, &peer, core.bytes, core.header());
    envelope->complete = true;
    envelope->make_room();
    core.pieces.copy_out(0, envelope->room());
    arrivals_.set_aside(*envelope);
  }
  trace_.request_event<trace::Type::message_sent>(core);
  completions_.end_send(core, Ending::done);
}

}  // namespace tandem::comm::internal
