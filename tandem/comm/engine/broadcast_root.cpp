// tandem/comm/engine/broadcast_root.cpp: where broadcasts begin: their recipients, and in which order.
#include <algorithm>

#include "tandem/base/driver.hpp"
#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {
namespace {

static_assert(kMostPerRoute * route_entry_bytes + sizeof(wire::BlockHead) + sizeof(wire::Mcast) +
                  Endpoint::max_header_bytes <=
              4096);
/// Above this many unseen envelopes the fence of a route entry (9 bits) would be ambiguous.
constexpr std::uint32_t kMostUnseen = 250;
/// Time for which a broadcast waits at most for a free rail, when all rails of its recipients are busy.
constexpr std::int64_t kPatienceNs = 2'000'000;
constexpr int kMostLookedAt = 64;
/// Rails of a held broadcast that each step checks.
constexpr std::size_t kRailsPerLook = 64;

}  // namespace

BroadcastRoot::BroadcastRoot(EngineParts& parts)
    : context_(parts.context),
      trace_(parts.completions.trace),
      statistics_(parts.completions.statistics),
      broadcasts_(parts.broadcasts),
      completions_(parts.completions),
      peers_(parts.peers),
      deferral_(parts.deferral),
      planner_(parts.planner),
      children_(parts.children),
      recipient_(parts.recipient) {}

RequestCore* BroadcastRoot::mcast(std::span<const Recipient> recipients, Tag tag, SendBuffer buffer,
                                  const McastOptions& options) {
  TANDEM_ASSERT(options.header.size() <= Endpoint::max_header_bytes);
  auto* core = new McastCore;
  core->keep();
  core->tag = tag;
  core->other = context_.rank;
  completions_.keep_notify(*core, options);
  completions_.begin();
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
  broadcast.start_at_ns = context_.now() + options.hold_ns;
  core->broadcast = &broadcast;
  broadcast.plan = options.plan;
  planner_.sort_recipients(broadcast, recipients);
  trace_.mcast_posted(*core, options.channel, broadcast.recipients);

  broadcasts_.all.emplace(Broadcasts::name(broadcast.root, broadcast.id), std::move(owned));
  broadcasts_.unacknowledged.insert(broadcast.id);
  broadcasts_.by_key[broadcast.key()].push_back(&broadcast);
  broadcasts_.held.add(broadcast);
  start_waiting_broadcasts();
  return core;
}

bool BroadcastRoot::append(RequestCore& core, Recipient recipient) {
  if (core.kind != RequestCore::Kind::broadcast) return false;
  Broadcast* broadcast = static_cast<McastCore&>(core).broadcast;
  if (broadcast == nullptr || broadcast->started || !planner_.insert_recipient(*broadcast, recipient)) return false;
  broadcast->unjoined.ask_again();
  broadcast->cards_asked = false;
  trace_.mcast_joined(core, recipient.rank);
  return true;
}

bool BroadcastRoot::cancel_broadcast(McastCore& core) {
  Broadcast* broadcast = core.broadcast;
  if (broadcast == nullptr || broadcast->started) return false;
  broadcasts_.held.remove(*broadcast);
  broadcast->recipients.clear();
  broadcast->started = true;
  broadcast->cancelled = true;
  recipient_.maybe_released(*broadcast);
  recipient_.acknowledge_if_all(*broadcast);
  return true;
}

/// Starts broadcasts that need not wait any longer: for late recipients, for a free rail, for an older one of their
/// key.
void BroadcastRoot::start_waiting_broadcasts() {
  broadcasts_.held.start_due(context_.now(), [this](Broadcast& broadcast) {
    const HeldBroadcasts::Look look = look_at_held(broadcast);
    if (look.started) {
      broadcasts_.held.remove(broadcast);
      start(broadcast);
    }
    return look;
  });
}

/// Starts the broadcasts that a send of their key is posted behind, since the send must know how each of them reaches
/// its recipient.
bool BroadcastRoot::start_those_before(Rank to, Channel channel, Tag tag) {
  const auto* const held = broadcasts_.held.of_key({channel.value(), tag.value()});
  if (held == nullptr) return false;
  const auto last = std::find_if(held->rbegin(), held->rend(),
                                 [to](const Broadcast* broadcast) { return broadcast->goes_to(to); });
  const std::vector<Broadcast*> waiting(held->begin(), last.base());
  for (Broadcast* broadcast : waiting) {
    broadcasts_.held.remove(*broadcast);
    start(*broadcast);
  }
  return true;
}

/// Whether the oldest held broadcast of its key may start, or when to check again.
HeldBroadcasts::Look BroadcastRoot::look_at_held(Broadcast& broadcast) {
  const std::int64_t now_ns = context_.now(), start_ns = broadcast.start_at_ns;
  if (now_ns < start_ns) return {.again_ns = start_ns, .due_ns = start_ns};
  if (broadcast.recipients.empty() || peers_.leaving()) return {.started = true};
  const std::int64_t cards_ns = start_ns + Peers::kCardPatienceNs, rails_ns = start_ns + kPatienceNs;
  if (now_ns < cards_ns && waits_for_cards(broadcast)) return {.again_ns = cards_ns, .due_ns = cards_ns};  // or earlier
  if (now_ns >= rails_ns || some_rail_is_free(broadcast)) return {.started = true};
  return {.again_ns = 0, .due_ns = rails_ns};
}

/// The first look asks for all addresses that are not here.
bool BroadcastRoot::waits_for_cards(Broadcast& broadcast) {
  if (peers_.knows_all_cards()) return false;
  if (!std::exchange(broadcast.cards_asked, true)) {
    for (const Recipient& recipient : broadcast.recipients) (void)peers_.waits_for_card(recipient.rank);
  }
  return broadcast.unjoined.any(broadcast.recipients.size(),
                                [&](std::size_t i) { return peers_.waits_for_card(broadcast.recipients[i].rank); });
}

/// Checks some recipients' rails; the next step checks others.
bool BroadcastRoot::some_rail_is_free(Broadcast& broadcast) const {
  for (std::size_t looked_at = 0; looked_at < std::min(kRailsPerLook, broadcast.recipients.size()); ++looked_at) {
    broadcast.next_looked_at = (broadcast.next_looked_at + 1) % broadcast.recipients.size();
    const Peer* const peer = peers_.find(broadcast.recipients[broadcast.next_looked_at].rank);
    if (peer == nullptr || peer->dead || peer->queue.idle()) return true;
  }
  return false;
}

/// The last broadcast of a key, not acknowledged yet, that goes to a rank; 0: none.
std::uint64_t BroadcastRoot::last_broadcast_to(Rank to, Channel channel, Tag tag, std::uint64_t before) const {
  const auto found = broadcasts_.by_key.find({channel.value(), tag.value()});
  if (found == broadcasts_.by_key.end()) return 0;
  for (auto it = found->second.rbegin(); it != found->second.rend(); ++it) {
    const Broadcast& broadcast = **it;
    if (broadcast.id >= before) continue;
    // A broadcast that goes plainly is ordered by its rail, behind the older ones that it names itself.
    if (broadcast.goes_to(to) && !broadcast.plainly.contains(to.value())) return broadcast.id;
  }
  return 0;
}

void BroadcastRoot::start(Broadcast& broadcast) {
  broadcast.started = true;
  for (Strand& strand : broadcast.strands) strand.broadcast = &broadcast;
  // The recipients of the key's newest unacknowledged broadcast match it first. A recipient that must wait for another
  // broadcast, or for plain messages still queued here, is served by a plain send behind them.
  const auto& same_key = broadcasts_.by_key[broadcast.key()];
  for (const Broadcast* other : same_key) {
    if (other->id < broadcast.id) broadcast.after = other->id;
  }
  // Plain sends are deferred until they are wanted; broadcasts are not, so that their recipients keep their offers.
  const bool too_many = broadcasts_.unacknowledged.size() > kMostBroadcasts;
  std::vector<RouteRecipient> by_tree;
  for (const Recipient& recipient : broadcast.recipients) {
    const Peer* const known = peers_.find(recipient.rank);
    if (known != nullptr && (known->dead || known->left)) {
      note_dead_recipient(broadcast, recipient.rank);
      continue;
    }
    const std::uint64_t before = last_broadcast_to(recipient.rank, broadcast.channel, broadcast.tag, broadcast.id);
    RouteRecipient entry{.rank = recipient.rank, .priority = recipient.priority, .ordered = before != 0, .fence = 0};
    // A recipient that has not joined yet serves none.
    const bool by_route = !too_many && !peers_.awaits_card(recipient.rank) &&
                          (before == 0 || before == broadcast.after) &&
                          fence_for(broadcast, recipient.rank, entry.fence);
    if (by_route) by_tree.push_back(entry);
    else broadcast.plainly.insert(recipient.rank.value());
  }
  if (by_tree.size() == 1) {
    broadcast.plainly.insert(by_tree[0].rank.value());
    by_tree.clear();
  }
  for (const Recipient& recipient : broadcast.recipients) {
    if (!broadcast.plainly.contains(recipient.rank.value())) continue;
    send_plainly(broadcast, recipient,
                 last_broadcast_to(recipient.rank, broadcast.channel, broadcast.tag, broadcast.id));
  }
  pass_fences(broadcast);
  if (!by_tree.empty()) lay_out_routes(broadcast, by_tree);
  recipient_.maybe_released(broadcast);
  recipient_.acknowledge_if_all(broadcast);
}

/// How many envelopes the recipient must have seen before it may match the broadcast; false: unknown.
bool BroadcastRoot::fence_for(const Broadcast& broadcast, Rank rank, std::uint16_t& fence) const {
  const Peer* const found = peers_.find(rank);
  if (found == nullptr) return true;
  const Peer& peer = *found;
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

void BroadcastRoot::send_plainly(Broadcast& broadcast, Recipient recipient, std::uint64_t after) {
  Peer* peer = peers_.peer_for(recipient.rank);
  if (peer == nullptr || peer->dead || peer->left) return note_dead_recipient(broadcast, recipient.rank);
  auto* core = new SendCore;
  core->other = recipient.rank;
  core->RequestCore::tag = broadcast.tag;
  core->SendItem::channel = broadcast.channel.value();
  core->pieces = broadcast.own.copy();
  core->bytes = broadcast.bytes;
  core->keep_header(broadcast.header);
  core->SendItem::priority = recipient.priority;
  core->after = after;
  core->broadcast = &broadcast;
  core->peer = peer;
  core->request = broadcast.request->request;
  completions_.begin();
  ++broadcast.plain_pending;
  deferral_.enqueue(*core, *peer);
  peers_.mark_dirty(*peer);
}

/// Lays out the planned routes, with what each recipient must have seen before, and offers the broadcast to those
/// directly below.
void BroadcastRoot::lay_out_routes(Broadcast& broadcast, std::span<const RouteRecipient> recipients) {
  const PlannedTree& plan = planner_.planned(broadcast, recipients);
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
    strand.segment = strand_segment(plan.segment_bytes, strand.bytes);
  }
  for (unsigned index = 0; index < broadcast.strand_count; ++index) {
    Strand& strand = broadcast.strands[index];
    for (RouteView child : RouteView(strand.route_bytes).children()) children_.add_child(strand, child);
    trace_routed(strand, plan.chosen);
    children_.offer_children(strand);
  }
}

void BroadcastRoot::trace_routed(const Strand& strand, TreeKind tree) {
  if (!trace_.follows()) return;
  std::vector<std::uint32_t> children;
  for (const auto& child : strand.children) children.push_back(child->rank.value());
  trace_.mcast_routed(*strand.broadcast->request, tree, strand.segment, children);
}

/// Notes that what is sent to a recipient from now on comes behind the fence of this broadcast. Blocks say so, since a
/// fence's few bits may wrap while a broadcast travels.
void BroadcastRoot::pass_fences(const Broadcast& broadcast) {
  const std::uint64_t up_to = broadcasts_.started_up_to();
  const std::uint32_t low_bits = fences_on_wire(up_to);
  if (up_to > broadcast.id) {  // younger ones began before it, and blocks could not say so
    for (const auto& [rank, peer] : peers_.all()) peer->head.fences_passed = low_bits;
    return;
  }
  for (const Recipient& recipient : broadcast.recipients) {
    if (Peer* const peer = peers_.find(recipient.rank)) peer->head.fences_passed = low_bits;
  }
}

}  // namespace tandem::comm::internal
