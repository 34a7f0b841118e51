// tandem/comm/engine/broadcast_root.cpp: where broadcasts begin: who receives them, and in which order.
#include <algorithm>

#include "tandem/comm/engine/engine.hpp"

namespace tandem::comm::internal {
namespace {

static_assert(kMostPerRoute * route_entry_bytes + sizeof(wire::BlockHead) + sizeof(wire::Mcast) + Endpoint::max_header_bytes <=
              4096);
/// Above this many unseen envelopes the fence of a route entry (9 bits) would be ambiguous.
constexpr std::uint32_t kMostUnseen = 250;
/// A broadcast whose recipients' rails are all busy waits for this long at most for one of them.
constexpr std::int64_t kPatienceNs = 2'000'000;
constexpr int kMostLookedAt = 64;

}  // namespace

RequestCore* Engine::mcast(std::span<const Recipient> recipients, Tag tag, SendBuffer buffer, const McastOptions& options) {
  TANDEM_ASSERT(options.header.size() <= Endpoint::max_header_bytes);
  auto* core = new McastCore;
  core->keep();
  core->tag = tag;
  core->other = context_.rank;
  keep_notify(*core, options);
  ++outstanding_;
  ++statistics_.mcasts_started;

  auto owned = std::make_unique<Broadcast>();
  Broadcast& broadcast = *owned;
  broadcast.root = context_.rank;
  broadcast.id = broadcasts_.next_id++;
  broadcast.channel = options.channel;
  broadcast.tag = tag;
  broadcast.own = std::move(buffer).take();
  broadcast.memory = &broadcast.own;
  broadcast.bytes = core->bytes = broadcast.own.bytes();
  broadcast.header.assign(options.header.begin(), options.header.end());
  broadcast.request = core;
  broadcast.tree = options.tree;
  broadcast.arity = options.arity;
  broadcast.segment_wanted = options.segment_bytes;
  broadcast.start_at_ns = now() + options.hold_ns;
  core->broadcast = &broadcast;
  broadcast.plan = options.plan;
  sort_recipients(broadcast, recipients);
  trace_.mcast_posted(*core, options.channel, broadcast.recipients);

  broadcasts_.all.emplace(Broadcasts::name(broadcast.root, broadcast.id), std::move(owned));
  broadcasts_.unacknowledged.insert(broadcast.id);
  broadcasts_.by_key[{options.channel.value(), tag.value()}].push_back(&broadcast);
  broadcasts_.unstarted.push_back(&broadcast);
  start_waiting_broadcasts();
  flush_offers();
  return core;
}

/// Keeps the recipients sorted: highest priority first, then in the order in which they came. One rank counts once.
bool Engine::insert_recipient(Broadcast& broadcast, Recipient recipient) {
  TANDEM_ASSERT(recipient.rank.value() < context_.size);
  if (recipient.rank == context_.rank) return false;
  auto& list = broadcast.recipients;
  const auto twin = std::find_if(list.begin(), list.end(), [&](const Recipient& other) { return other.rank == recipient.rank; });
  const bool fresh = twin == list.end();
  if (!fresh) {
    if (twin->priority >= recipient.priority) return false;
    list.erase(twin);
  }
  const auto place =
      std::find_if(list.begin(), list.end(), [&](const Recipient& other) { return other.priority < recipient.priority; });
  list.insert(place, recipient);
  return fresh;
}

bool Engine::append(RequestCore& core, Recipient recipient) {
  if (core.kind != RequestCore::Kind::broadcast) return false;
  Broadcast* broadcast = static_cast<McastCore&>(core).broadcast;
  if (broadcast == nullptr || broadcast->started || !insert_recipient(*broadcast, recipient)) return false;
  trace_.mcast_joined(core, recipient.rank);
  return true;
}

bool Engine::cancel_broadcast(McastCore& core) {
  Broadcast* broadcast = core.broadcast;
  if (broadcast == nullptr || broadcast->started) return false;
  broadcasts_.unstarted.remove(broadcast);
  broadcast->recipients.clear();
  broadcast->started = true;
  broadcast->cancelled = true;
  maybe_released(*broadcast);
  acknowledge_if_all(*broadcast);
  return true;
}

/// Starts those that need not wait any longer: for late recipients, for a free rail, for an older one of their key.
void Engine::start_waiting_broadcasts() {
  std::vector<Broadcast*> ready;
  for (Broadcast* broadcast : broadcasts_.unstarted) {
    const auto& same_key = broadcasts_.by_key[{broadcast->channel.value(), broadcast->tag.value()}];
    const bool overtakes = std::any_of(same_key.begin(), same_key.end(), [&](const Broadcast* other) {
      return other->id < broadcast->id && !other->started && std::find(ready.begin(), ready.end(), other) == ready.end();
    });
    if (!overtakes && may_start(*broadcast)) ready.push_back(broadcast);
  }
  for (Broadcast* broadcast : ready) {
    broadcasts_.unstarted.remove(broadcast);
    start(*broadcast);
  }
}

/// A send is posted behind broadcasts of its key: they start now, since the send must know how each of them reaches its
/// recipient.
void Engine::start_those_before(Rank to, Channel channel, Tag tag) {
  const auto found = broadcasts_.by_key.find({channel.value(), tag.value()});
  if (found == broadcasts_.by_key.end()) return;
  const auto goes_there = [&](const Recipient& recipient) { return recipient.rank == to; };
  std::vector<Broadcast*> waiting;
  std::size_t needed = 0;
  for (Broadcast* broadcast : found->second) {
    if (broadcast->started) continue;
    waiting.push_back(broadcast);
    if (std::any_of(broadcast->recipients.begin(), broadcast->recipients.end(), goes_there)) needed = waiting.size();
  }
  waiting.resize(needed);
  for (Broadcast* broadcast : waiting) {
    broadcasts_.unstarted.remove(broadcast);
    start(*broadcast);
  }
  flush_offers();
}

bool Engine::may_start(const Broadcast& broadcast) const {
  const std::int64_t now_ns = now();
  if (now_ns < broadcast.start_at_ns) return false;
  if (broadcast.recipients.empty() || leaving_ || now_ns >= broadcast.start_at_ns + kPatienceNs) return true;
  return std::any_of(broadcast.recipients.begin(), broadcast.recipients.end(), [&](const Recipient& recipient) {
    const auto peer = peers_.find(recipient.rank.value());
    return peer == peers_.end() || peer->second->dead || peer->second->queue.idle();
  });
}

/// When the next look at an unstarted broadcast may start it, if nothing happens before.
std::int64_t Engine::due_ns(const Broadcast& broadcast, std::int64_t now_ns) noexcept {
  if (now_ns < broadcast.start_at_ns) return broadcast.start_at_ns;
  const std::int64_t patience_ends_ns = broadcast.start_at_ns + kPatienceNs;
  // Beyond that it waits for an older one of its key, which is due by itself.
  return now_ns < patience_ends_ns ? patience_ends_ns : base::kNever;
}

/// The last broadcast of a key, not acknowledged yet, that goes to a rank; 0: none.
std::uint32_t Engine::last_broadcast_to(Rank to, Channel channel, Tag tag, std::uint32_t before) const {
  const auto found = broadcasts_.by_key.find({channel.value(), tag.value()});
  if (found == broadcasts_.by_key.end()) return 0;
  for (auto it = found->second.rbegin(); it != found->second.rend(); ++it) {
    const Broadcast& broadcast = **it;
    if (broadcast.id >= before) continue;
    for (const Recipient& recipient : broadcast.recipients) {
      // One that goes plainly is ordered by its rail, behind the older ones that it names itself.
      if (recipient.rank == to && !broadcast.plainly.contains(to.value())) return broadcast.id;
    }
  }
  return 0;
}

void Engine::start(Broadcast& broadcast) {
  broadcast.started = true;
  for (Strand& strand : broadcast.strands) strand.broadcast = &broadcast;
  // The newest unacknowledged one of the key: those that it went to match it first. Whoever has to wait for another one, or for
  // plain messages that are still queued here, is served by a plain send, behind them.
  const auto& same_key = broadcasts_.by_key[{broadcast.channel.value(), broadcast.tag.value()}];
  for (const Broadcast* other : same_key) {
    if (other->id < broadcast.id) broadcast.after = other->id;
  }
  std::vector<RouteRecipient> by_tree;
  for (const Recipient& recipient : broadcast.recipients) {
    const auto known = peers_.find(recipient.rank.value());
    if (known != peers_.end() && (known->second->dead || known->second->left)) {
      note_dead_recipient(broadcast, recipient.rank);
      continue;
    }
    const std::uint32_t before = last_broadcast_to(recipient.rank, broadcast.channel, broadcast.tag, broadcast.id);
    RouteRecipient entry{.rank = recipient.rank, .priority = recipient.priority, .ordered = before != 0, .fence = 0};
    const bool by_route = (before == 0 || before == broadcast.after) && fence_for(broadcast, recipient.rank, entry.fence);
    if (by_route) by_tree.push_back(entry);
    else broadcast.plainly.insert(recipient.rank.value());
  }
  if (by_tree.size() == 1) {
    broadcast.plainly.insert(by_tree[0].rank.value());
    by_tree.clear();
  }
  for (const Recipient& recipient : broadcast.recipients) {
    if (!broadcast.plainly.contains(recipient.rank.value())) continue;
    send_plainly(broadcast, recipient, last_broadcast_to(recipient.rank, broadcast.channel, broadcast.tag, broadcast.id));
  }
  pass_fences(broadcast);
  if (!by_tree.empty()) lay_out_routes(broadcast, by_tree);
  maybe_released(broadcast);
  acknowledge_if_all(broadcast);
}

/// How many envelopes the recipient must have seen before it may match the broadcast; false: that cannot be said.
bool Engine::fence_for(const Broadcast& broadcast, Rank rank, std::uint16_t& fence) const {
  const auto found = peers_.find(rank.value());
  if (found == peers_.end()) return true;
  const Peer& peer = *found->second;
  if (peer.envelopes_sent - peer.head_received.seen > kMostUnseen) return false;
  if (peer.deferred != nullptr && peer.deferred->holds(broadcast.channel.value(), broadcast.tag.value())) return false;
  int looked_at = 0;
  for (auto item = peer.queue.messages(); item; item.advance()) {
    if (++looked_at > kMostLookedAt) return false;
    if (item->ordered && item->channel == broadcast.channel.value() && item->tag == broadcast.tag.value()) return false;
  }
  fence = static_cast<std::uint16_t>(peer.envelopes_sent & max_route_fence);
  return true;
}

void Engine::send_plainly(Broadcast& broadcast, Recipient recipient, std::uint32_t after) {
  Peer* peer = peer_for(recipient.rank);
  if (peer == nullptr || peer->dead || peer->left) return note_dead_recipient(broadcast, recipient.rank);
  auto* core = new SendCore;
  core->other = recipient.rank;
  core->RequestCore::tag = broadcast.tag;
  core->SendItem::channel = broadcast.channel.value();
  core->pieces = Pieces(broadcast.own.list());
  core->bytes = broadcast.bytes;
  core->keep_header(broadcast.header);
  core->SendItem::priority = recipient.priority;
  core->after = after;
  core->broadcast = &broadcast;
  core->peer = peer;
  core->request = broadcast.request->request;
  ++outstanding_;
  ++broadcast.plain_pending;
  enqueue(*core, *peer);
  mark_dirty(*peer);
}

void Engine::note_dead_recipient(Broadcast& broadcast, Rank dead) {
  broadcast.recipient_died = true;
  broadcast.culprit = dead;
}

/// Lays the planned routes out, with what each recipient must have seen before, and offers the broadcast to those directly below.
void Engine::lay_out_routes(Broadcast& broadcast, std::span<const RouteRecipient> recipients) {
  const PlannedTree& plan = planned(broadcast, recipients);
  broadcast.strand_count = plan.strand_count;
  const std::uint64_t half = broadcast.strand_count == 2 ? (broadcast.bytes + 1) / 2 : broadcast.bytes;
  for (unsigned index = 0; index < broadcast.strand_count; ++index) {
    const PlannedTree::Way& way = plan.ways[index];
    Strand& strand = broadcast.strands[index];
    strand.route_bytes = way.route;
    for (std::size_t at = 0; at < way.recipients.size(); ++at) {
      const RouteRecipient& recipient = recipients[way.recipients[at]];
      set_order(std::span(strand.route_bytes).subspan(at * route_entry_bytes), recipient.ordered, recipient.fence);
    }
    strand.sequential = way.sequential;
    strand.index = index;
    strand.known = strand.complete = true;
    strand.first = index * half;
    strand.bytes = std::min(half, broadcast.bytes - strand.first);
    strand.arrived = strand.bytes;
    strand.segment =
        static_cast<std::uint32_t>(plan.segment_bytes == 0 ? std::max<std::uint64_t>(1, strand.bytes)
                                                           : std::min<std::uint64_t>(plan.segment_bytes, 1u << 30));
  }
  for (unsigned index = 0; index < broadcast.strand_count; ++index) {
    Strand& strand = broadcast.strands[index];
    for (RouteView child : RouteView(strand.route_bytes).children()) add_child(strand, child);
    trace_routed(strand, plan.chosen);
    offer_children(strand);
  }
}

void Engine::trace_routed(const Strand& strand, TreeKind tree) {
  if (!trace_.follows()) return;
  std::vector<std::uint32_t> children;
  for (const auto& child : strand.children) children.push_back(child->rank.value());
  trace_.mcast_routed(*strand.broadcast->request, tree, strand.segment, children);
}

/// Everybody has it: nothing needs to be named after it any more.
void Engine::acknowledge_if_all(Broadcast& broadcast) {
  if (broadcast.root != context_.rank || !broadcast.started || broadcast.acknowledged) return;
  for (unsigned index = 0; index < broadcast.strand_count; ++index) {
    for (const auto& child : broadcast.strands[index].children) {
      if (!child->acknowledged) return;
    }
  }
  broadcast.acknowledged = true;
  broadcasts_.unacknowledged.erase(broadcast.id);
  const auto found = broadcasts_.by_key.find({broadcast.channel.value(), broadcast.tag.value()});
  std::erase(found->second, &broadcast);
  if (found->second.empty()) broadcasts_.by_key.erase(found);
  maybe_forget(broadcast);
}

/// All broadcasts up to this number have begun.
std::uint32_t Engine::started_up_to() const noexcept {
  std::uint32_t next = broadcasts_.next_id;
  for (const Broadcast* broadcast : broadcasts_.unstarted) next = std::min(next, broadcast->id);
  return next - 1;
}

/// What is sent to a recipient from now on comes behind the fence of this broadcast. To be told, since a broadcast may travel for
/// so long that a fence's few bits have come round meanwhile.
void Engine::pass_fences(const Broadcast& broadcast) {
  const std::uint32_t up_to = started_up_to();
  if (up_to > broadcast.id) {  // younger ones began before it, and could not be told of
    for (const auto& [rank, peer] : peers_) peer->head.fences_passed = up_to;
    return;
  }
  for (const Recipient& recipient : broadcast.recipients) {
    const auto found = peers_.find(recipient.rank.value());
    if (found != peers_.end()) found->second->head.fences_passed = up_to;
  }
}

std::uint32_t Engine::low_id() const noexcept {
  return broadcasts_.unacknowledged.empty() ? broadcasts_.next_id : *broadcasts_.unacknowledged.begin();
}

}  // namespace tandem::comm::internal
