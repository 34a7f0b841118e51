// tandem/comm/engine/broadcast_planner.cpp: by which tree a broadcast travels.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/broadcast_plan.hpp"
#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm {

BroadcastPlan::BroadcastPlan() : tree_(std::make_unique<internal::PlannedTree>()) {}
BroadcastPlan::~BroadcastPlan() = default;

}  // namespace tandem::comm

namespace tandem::comm::internal {
namespace {

/// Processor time to wake the next rank of a hop, where ranks share cores: a chain of 7 between namespaces without a
/// limit took 20 us per segment and hop beside its bytes.
constexpr double kWakeUpNs = 10'000;
/// A burst was not a limiter's when the network carries this many times the rate that was seen behind the burst.
constexpr double kFasterThanSeen = 2;

bool are_alike(std::span<const Recipient> known, const auto& given) {
  return std::equal(known.begin(), known.end(), given.begin(), given.end(),
                    [](const Recipient& a, const auto& b) { return a.rank == b.rank && a.priority == b.priority; });
}

}  // namespace

BroadcastPlanner::BroadcastPlanner(EngineParts& parts)
    : context_(parts.context),
      statistics_(parts.completions.statistics),
      broadcasts_(parts.broadcasts),
      peers_(parts.peers),
      incoming_(parts.incoming) {}

/// Keeps the recipients sorted: highest priority first, unless they are served as they came, then in the order in which
/// they came. One rank counts once.
bool BroadcastPlanner::insert_recipient(Broadcast& broadcast, Recipient recipient) {
  TANDEM_ASSERT(recipient.rank.value() < context_.size);
  if (recipient.rank == context_.rank) return false;
  auto& list = broadcast.recipients;
  const auto twin =
      std::find_if(list.begin(), list.end(), [&](const Recipient& other) { return other.rank == recipient.rank; });
  const bool fresh = twin == list.end();
  if (!fresh) {
    if (twin->priority >= recipient.priority) return false;
    list.erase(twin);
  }
  const auto place =
      std::find_if(list.begin(), list.end(),
                   [&](const Recipient& other) {
                     return broadcast.tree.by_priority && other.priority < recipient.priority;
                   });
  list.insert(place, recipient);
  return fresh;
}

/// The result of inserting all by `insert_recipient`: of each rank the first entry with its highest priority, ordered
/// by priority, unless they are served as they came, then by entry.
std::vector<Recipient> BroadcastPlanner::sorted(std::span<const Recipient> given, bool by_priority) const {
  std::vector<std::size_t> entries;  // indices of the entries that count
  std::unordered_map<std::uint32_t, std::size_t> places;  // index in `entries` by rank
  for (std::size_t i = 0; i < given.size(); ++i) {
    TANDEM_ASSERT(given[i].rank.value() < context_.size);
    if (given[i].rank == context_.rank) continue;
    const auto [place, fresh] = places.emplace(given[i].rank.value(), entries.size());
    if (fresh) entries.push_back(i);
    else if (given[entries[place->second]].priority < given[i].priority) entries[place->second] = i;
  }
  std::ranges::sort(entries, [&](std::size_t a, std::size_t b) {
    return by_priority && given[a].priority != given[b].priority ? given[a].priority > given[b].priority : a < b;
  });
  std::vector<Recipient> recipients;
  for (const std::size_t entry : entries) recipients.push_back(given[entry]);
  return recipients;
}

/// Sorts like `insert_recipient`, or takes the order that the plan remembers.
void BroadcastPlanner::sort_recipients(Broadcast& broadcast, std::span<const Recipient> given) {
  PlannedTree* const plan = broadcast.plan != nullptr ? broadcast.plan->tree_.get() : nullptr;
  if (plan != nullptr) {
    TANDEM_ASSERT(plan->planner == nullptr || plan->planner == this);
    plan->planner = this;
    if (are_alike(plan->given, given) && plan->sorted_by_priority == broadcast.tree.by_priority) {
      broadcast.recipients = plan->sorted;
      return;
    }
  }
  broadcast.recipients = sorted(given, broadcast.tree.by_priority);
  if (plan == nullptr) return;
  plan->given.assign(given.begin(), given.end());
  plan->sorted = broadcast.recipients;
  plan->sorted_by_priority = broadcast.tree.by_priority;
}

/// The tree that the broadcast's plan has, if it is still the right one; else the one that is chosen now.
const PlannedTree& BroadcastPlanner::planned(Broadcast& broadcast, std::span<const RouteRecipient> recipients) {
  const std::shared_ptr<BroadcastPlan> shared = std::exchange(broadcast.plan, nullptr);
  PlannedTree& plan = shared != nullptr ? *shared->tree_ : broadcasts_.unplanned;
  if (shared != nullptr && plan.bytes == broadcast.bytes && plan.wanted == broadcast.tree &&
      are_alike(plan.recipients, recipients) && plan.costs == costs_for(broadcast, recipients, plan.one_machine)) {
    ++statistics_.plans_reused;
    return plan;
  }
  plan.one_machine = share_machine(recipients);
  plan.costs = costs_for(broadcast, recipients, plan.one_machine);
  make_plan(broadcast, recipients, plan);
  if (shared == nullptr) return plan;
  plan.bytes = broadcast.bytes;
  plan.wanted = broadcast.tree;
  plan.recipients.clear();
  for (const RouteRecipient& recipient : recipients) plan.recipients.push_back({recipient.rank, recipient.priority});
  return plan;
}

/// Builds the tree over the recipients, in the order in which they are served.
void BroadcastPlanner::make_plan(const Broadcast& broadcast, std::span<const RouteRecipient> recipients,
                                 PlannedTree& plan) {
  const TreeChoice choice = choose_tree(broadcast, recipients, plan.costs);
  plan.chosen = choice.shape.kind;
  plan.segment_bytes = choice.segment_bytes;
  for (PlannedTree::Way& way : plan.ways) {
    way.route.clear();
    way.recipients.clear();
  }
  std::vector<RouteRecipient> bare(recipients.begin(), recipients.end());
  for (RouteRecipient& recipient : bare) recipient = {.rank = recipient.rank, .priority = recipient.priority};
  for (std::size_t first = 0; first < recipients.size(); first += kMostPerRoute) {
    const auto part = std::span(bare).subspan(first, std::min(kMostPerRoute, recipients.size() - first));
    TreeShape shape = choice.shape;
    shape.segments =
        segment_count(shape.kind, base::narrow<std::uint32_t>(part.size()), broadcast.bytes, choice.segment_bytes);
    if (hosts_.size() >= first + part.size()) {
      broadcasts_.builder.build(
          base::narrow<std::uint32_t>(part.size()), shape,
          HostGroups{.host = std::span(hosts_).subspan(first, part.size()), .root_host = 0, .inside = inside_},
          broadcasts_.forest);
    } else {
      broadcasts_.builder.build(base::narrow<std::uint32_t>(part.size()), shape, broadcasts_.forest);
    }
    // The first part decides whether there are two strands; a part too small for two has its tree twice.
    const Forest& forest = broadcasts_.forest;
    if (first == 0) plan.strand_count = broadcast.bytes > 1 ? forest.strand_count : 1;
    for (unsigned index = 0; index < plan.strand_count; ++index) {
      const comm::Strand& strand = forest.strands[std::min(index, forest.strand_count - 1)];
      PlannedTree::Way& way = plan.ways[index];
      write_route(strand, part, broadcasts_.route);
      way.route.insert(way.route.end(), broadcasts_.route.begin(), broadcasts_.route.end());
      for (const RouteNode& node : strand.nodes)
        way.recipients.push_back(base::narrow<std::uint32_t>(first) + node.recipient);
      way.sequential = !forest.interleaved;
    }
  }
}

/// The user's tree, or the best one by what is known of the network, with its segments. Fills `hosts_` when ranks share
/// hosts.
TreeChoice BroadcastPlanner::choose_tree(const Broadcast& broadcast, std::span<const RouteRecipient> recipients,
                               const NetworkCosts& costs) {
  hosts_.clear();
  inside_ = TreeKind::flat;
  bool one_host = true;
  if (context_.directory != nullptr) {
    std::map<std::string, std::uint32_t> numbers;
    const PeerCard* own = peers_.card_of(context_.rank);
    numbers.emplace(own != nullptr ? own->host : "", 0);
    bool shared = false;
    for (const RouteRecipient& recipient : recipients) {
      const PeerCard* card = peers_.card_of(recipient.rank);
      const auto [it, fresh] = numbers.emplace(card != nullptr ? card->host : std::to_string(recipient.rank.value()),
                                               base::narrow<std::uint32_t>(numbers.size()));
      hosts_.push_back(it->second);
      shared |= !fresh;
      one_host &= it->second == 0;
    }
    // With one host alone there is nothing to group.
    if (!shared || one_host) hosts_.clear();
  }
  const TreeOptions& wanted = broadcast.tree;
  const auto differs = std::ranges::adjacent_find(recipients, std::not_equal_to(), &RouteRecipient::priority);
  const bool order_matters = differs != recipients.end();
  BroadcastLoad load{.recipients = static_cast<std::uint32_t>(std::min(recipients.size(), kMostPerRoute)),
                     .bytes = broadcast.bytes,
                     .ordered = wanted.kind == TreeKind::ordered && order_matters};
  if (peers_.any_backlogged()) {
    for (const auto& [rank, peer] : peers_.all()) load.queued_bytes += peer->queue.pending_bytes();
  }
  broadcasts_.chooser.set_costs(costs);
  TreeChoice choice;
  if (wanted.kind == TreeKind::automatic || wanted.kind == TreeKind::ordered) {
    choice = broadcasts_.chooser.choose(load);
  } else {
    TreeShape shape{.kind = wanted.kind,
                    .fanout = std::max(2U, wanted.arity > 0 ? wanted.arity : 4U),
                    .above = wanted.above,
                    .below = wanted.below,
                    .first_group = wanted.first_group};
    if (wanted.kind == TreeKind::two_groups) {
      std::vector<std::int32_t> priorities;
      for (const RouteRecipient& recipient : recipients) priorities.push_back(recipient.priority);
      if (shape.first_group == 0) shape.first_group = largest_gap(priorities);
      choice = {.shape = shape, .segment_bytes = 65536};
    } else {
      choice = broadcasts_.chooser.cut(load, shape);
    }
  }
  if (wanted.segment_bytes > 0) choice.segment_bytes = wanted.segment_bytes;
  context_.log->debug(
      "broadcast {} of {} bytes to {}: {}, segments of {} bytes, {:.2f} ms predicted with {:.1f} us latency, {:.4f} "
      "bytes/ns, "
      "bursts of {:.0f} bytes, {} bytes queued",
      broadcast.id, broadcast.bytes, recipients.size(), tree_name(choice.shape.kind), choice.segment_bytes,
      choice.predicted_ns / 1e6, costs.latency_ns / 1e3, costs.bytes_per_ns, costs.burst_bytes, load.queued_bytes);
  return choice;
}

/// The costs that the chooser gets, rounded, so that small changes do not make a plan stale.
NetworkCosts BroadcastPlanner::costs_for(const Broadcast& broadcast, std::span<const RouteRecipient> recipients,
                                         bool one_machine) {
  const Peer* peer = nullptr;
  for (const RouteRecipient& recipient : recipients) {
    const Peer* const found = peers_.find(recipient.rank);
    if (found == nullptr || !Peers::has_transport(*found)) continue;
    if (peer == nullptr || found->measured) peer = found;
    if (peer->measured) break;
  }
  if (peer == nullptr) {
    Peer* first = peers_.peer_for(recipients[0].rank);
    peer = first != nullptr && Peers::has_transport(*first) ? first : nullptr;
  }
  NetworkCosts costs;
  if (peer == nullptr) return costs;
  const auto rounded = [](double value) { return std::exp2(std::round(std::log2(std::max(value, 1e-9)) * 4) / 4); };
  const Capabilities& able = peer->transport->capabilities();
  const PortRate& port = peer->port->rate;
  costs.latency_ns = rounded(static_cast<double>(peer->latency_ns));
  // A port seems slow when the sender or the receiver has no core. A better rate of the transport replaces it.
  const double seen = port.known() ? port.bytes_per_ns() : peer->bytes_per_ns;
  const double carried = peer->transport->carried_bytes_per_ns();
  costs.bytes_per_ns = rounded(std::max(seen, carried));
  if (port.known() && port.burst_bytes() > 0 && carried < kFasterThanSeen * seen) {
    costs.burst_bytes = rounded(port.burst_bytes());
    costs.burst_bytes_per_ns = std::max(4.0, costs.bytes_per_ns);
  }
  // a larger one would be several packets
  costs.max_segment_bytes = std::min(able.segment_bytes, able.max_payload_bytes);
  if (incoming_.can_pull_strand(*peer, broadcast.bytes) && broadcast.own.contiguous()) {
    costs.receiver_pulls = true;
    costs.max_segment_bytes = 0;  // what recipients read by themselves is not cut
  }
  costs.per_message_ns = able.message_ns;
  costs.cpu_per_message_ns = 2 * able.message_ns + (able.shared_memory ? 0 : kWakeUpNs);
  costs.cpu_per_byte_ns = able.copy_ns_per_byte;
  costs.shared_cores = one_machine ? context_.cores : 0;
  return costs;
}

/// Whether all ranks of a broadcast run on one machine, also in different network namespaces: then they share its
/// cores.
bool BroadcastPlanner::share_machine(std::span<const RouteRecipient> recipients) {
  const auto machine_of = [this](Rank rank) {
    const PeerCard* card = peers_.card_of(rank);
    return card != nullptr ? card->host.substr(0, card->host.find('/')) : std::to_string(rank.value());
  };
  const std::string ours = machine_of(context_.rank);
  return std::all_of(recipients.begin(), recipients.end(),
                     [&](const RouteRecipient& recipient) { return machine_of(recipient.rank) == ours; });
}

}  // namespace tandem::comm::internal
