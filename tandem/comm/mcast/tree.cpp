// tandem/comm/mcast/tree.cpp: trees as arrays of parents, their places filled by priority, and their preorder.
#include "tandem/comm/mcast/tree.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "tandem/base/assert.hpp"

namespace tandem::comm {
namespace {

constexpr std::array<std::string_view, tree_kind_count> names{"flat",       "chain",     "binary",   "kary",
                                                              "binomial",   "knomial",   "two_tree", "delegate",
                                                              "two_groups", "automatic", "ordered"};

constexpr std::uint32_t no_vertex = ~0u;

/// Whether it is one tree below one root: neither two_tree nor made of other trees.
bool is_plain(TreeKind kind) { return kind <= TreeKind::knomial; }

/// The parent of vertex v = 1 .. in a plain tree whose root is vertex 0.
std::uint32_t plain_parent(TreeKind kind, std::uint32_t fanout, std::uint32_t v) {
  switch (kind) {
    case TreeKind::flat: return 0;
    case TreeKind::chain: return v - 1;
    case TreeKind::binary: return (v - 1) / 2;
    case TreeKind::kary: return (v - 1) / fanout;
    case TreeKind::binomial: return v - std::bit_floor(v);
    case TreeKind::knomial: {
      std::uint64_t unit = 1;  // of v's leading digit
      while (unit * fanout <= v) unit *= fanout;
      return static_cast<std::uint32_t>(v % unit);
    }
    default: break;
  }
  TANDEM_ASSERT(false && "a plain tree");
  return 0;
}

/// Appends `count` vertices that form a plain tree below `root`, which may already have children.
void append_plain(std::vector<std::uint32_t>& parent, std::uint32_t root, TreeKind kind, std::uint32_t fanout,
                  std::uint32_t count) {
  TANDEM_ASSERT(is_plain(kind));
  TANDEM_ASSERT(kind != TreeKind::kary || fanout >= 1);
  TANDEM_ASSERT(kind != TreeKind::knomial || fanout >= 2);
  const auto before = static_cast<std::uint32_t>(parent.size()) - 1;
  for (std::uint32_t v = 1; v <= count; ++v) {
    const std::uint32_t above = plain_parent(kind, fanout, v);
    parent.push_back(above == 0 ? root : before + above);
  }
}

}  // namespace

std::string_view tree_name(TreeKind kind) noexcept { return names[static_cast<std::size_t>(kind)]; }

std::span<const std::string_view> tree_names() noexcept { return names; }

std::optional<TreeKind> tree_kind(std::string_view name) noexcept {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<TreeKind>(found - names.begin());
}

bool serves_interleaved(TreeKind kind) noexcept {
  return kind == TreeKind::chain || kind == TreeKind::binary || kind == TreeKind::kary || kind == TreeKind::two_tree;
}

std::uint32_t largest_gap(std::span<const std::int32_t> priorities) noexcept {
  if (priorities.size() < 2) return 0;
  std::size_t at = priorities.size() / 2;
  std::int64_t widest = 0;
  for (std::size_t i = 1; i < priorities.size(); ++i) {
    const std::int64_t gap = std::int64_t{priorities[i - 1]} - priorities[i];
    if (gap > widest) widest = gap, at = i;
  }
  return static_cast<std::uint32_t>(at);
}

void TreeBuilder::build(std::uint32_t recipient_count, const TreeShape& shape, Forest& out) {
  make_plans(recipient_count, shape, out);
  for (std::uint32_t s = 0; s < out.strand_count; ++s) {
    const Plan& plan = plans_[s];
    recipient_.assign(1, 0);
    for (std::size_t v = 1; v < plan.parent.size(); ++v) recipient_.push_back(number_at_place_[plan.place[v]]);
    emit(plan, out.strands[s]);
  }
}

void TreeBuilder::build(std::uint32_t recipient_count, const TreeShape& shape, const HostGroups& groups, Forest& out) {
  TANDEM_ASSERT(groups.host.size() == recipient_count);
  TANDEM_ASSERT(groups.inside == TreeKind::flat || groups.inside == TreeKind::chain);
  sort_hosts(recipient_count, groups);
  make_plans(static_cast<std::uint32_t>(hosts_.size()), shape, out);
  if (recipient_count > 0 && out.strand_count == 0) {  // only the root's host
    out.strand_count = 1;
    plans_[0].parent.assign(1, 0);
    plans_[0].second_wave = no_vertex;
  }
  for (std::uint32_t s = 0; s < out.strand_count; ++s) {
    Plan& plan = plans_[s];
    const auto inner = static_cast<std::uint32_t>(plan.parent.size());
    recipient_.assign(1, 0);
    for (std::uint32_t v = 1; v < inner; ++v)
      recipient_.push_back(by_host_[hosts_[number_at_place_[plan.place[v]]].first]);
    for (std::uint32_t v = 1; v < inner; ++v) {
      const HostRange& host = hosts_[number_at_place_[plan.place[v]]];
      append_members(plan, v, host.first + 1, host.end, groups.inside);
    }
    append_members(plan, 0, root_host_.first, root_host_.end, groups.inside);
    emit(plan, out.strands[s]);
  }
}

/// Fills `plans_` and `number_at_place_`, and the fields of `out` beside its strands.
void TreeBuilder::make_plans(std::uint32_t count, const TreeShape& shape, Forest& out) {
  TANDEM_ASSERT(shape.kind != TreeKind::automatic && shape.kind != TreeKind::ordered);
  TANDEM_ASSERT(shape.segments >= 1);
  number_at_place_.resize(count);
  finish_.resize(count);
  out.strand_count = count == 0 ? 0 : 1;
  out.interleaved = serves_interleaved(shape.kind);
  if (count == 0) return;
  if (shape.kind == TreeKind::two_tree && count > 1) {
    out.strand_count = 2;
    make_two_tree(count, shape);
    return;
  }
  Plan& plan = plans_[0];
  plan.parent.assign(1, 0);
  plan.place.assign(1, 0);
  for (std::uint32_t v = 1; v <= count; ++v) plan.place.push_back(v - 1);
  plan.second_wave = no_vertex;
  if (shape.kind == TreeKind::delegate) {
    out.interleaved = serves_interleaved(shape.below);
    make_delegate(count, shape);
  } else if (shape.kind == TreeKind::two_groups) {
    out.interleaved = serves_interleaved(shape.above) && serves_interleaved(shape.below);
    make_two_groups(count, shape);
  } else {
    append_plain(plan.parent, 0, shape.kind == TreeKind::two_tree ? TreeKind::flat : shape.kind, shape.fanout, count);
    rank_one_tree(plan.parent, 0, out.interleaved, shape.segments);
  }
}

void TreeBuilder::make_delegate(std::uint32_t count, const TreeShape& shape) {
  Plan& plan = plans_[0];
  plan.parent.push_back(0);
  append_plain(plan.parent, 1, shape.below, shape.fanout, count - 1);
  rank_one_tree(plan.parent, 0, serves_interleaved(shape.below), shape.segments);
}

void TreeBuilder::make_two_groups(std::uint32_t count, const TreeShape& shape) {
  Plan& plan = plans_[0];
  const std::uint32_t half = shape.first_group == 0 ? (count + 1) / 2 : shape.first_group;
  const std::uint32_t first = std::min(half, count);
  std::uint32_t place = 0;
  for (const auto& [kind, size] : {std::pair(shape.above, first), std::pair(shape.below, count - first)}) {
    append_plain(plan.parent, 0, kind, shape.fanout, size);
    scratch_.assign(1, 0);
    append_plain(scratch_, 0, kind, shape.fanout, size);
    rank_one_tree(scratch_, place, serves_interleaved(kind), shape.segments);
    place += size;
  }
  plan.second_wave = first < count ? first + 1 : no_vertex;
}

/// Both trees from one in-order tree over the positions 1 .. count, made from the top so that parents come first: the
/// root of positions base + 1 .. base + size is the one with the highest lowest bit.
void TreeBuilder::make_two_tree(std::uint32_t count, const TreeShape& shape) {
  for (Plan& plan : plans_) {
    plan.parent.assign(1, 0);
    plan.place.assign(1, 0);
    plan.second_wave = no_vertex;
  }
  parts_.assign(1, {0, count});  // the subtree of vertex v is part v - 1
  std::vector<std::uint32_t>& above = plans_[0].parent;
  above.push_back(0);
  for (std::uint32_t v = 1; v <= count; ++v) {
    const Part part = parts_[v - 1];
    const std::uint32_t top = std::bit_floor(part.size);
    const std::uint32_t position = part.base + top;
    plans_[0].place.push_back(position - 1);
    plans_[1].place.push_back(count % 2 == 0 ? count - position : position % count);
    for (const Part& child : {Part{part.base, top - 1}, Part{position, part.size - top}}) {
      if (child.size == 0) continue;
      parts_.push_back(child);
      above.push_back(v);
    }
  }
  plans_[1].parent = above;

  finish_.assign(count, 0);
  for (std::uint32_t s = 0; s < 2; ++s) {
    times_.run(plans_[s].parent, {.segments = shape.segments, .interleaved = true}, {.slots_before = s, .slots = 2});
    for (std::uint32_t v = 1; v <= count; ++v) {
      double& finish = finish_[plans_[s].place[v]];
      finish = std::max(finish, times_.finish(v));
    }
  }
  rank_places(0, count);
}

void TreeBuilder::rank_one_tree(std::span<const std::uint32_t> parent, std::uint32_t first_place, bool interleaved,
                                std::uint32_t segments) {
  times_.run(parent, {.segments = segments, .interleaved = interleaved});
  const auto count = static_cast<std::uint32_t>(parent.size() - 1);
  for (std::uint32_t v = 1; v <= count; ++v) finish_[first_place + v - 1] = times_.finish(v);
  rank_places(first_place, count);
}

/// The place that finishes first gets the smallest number, and so on.
void TreeBuilder::rank_places(std::uint32_t first_place, std::uint32_t count) {
  std::vector<std::uint32_t>& order = sizes_;
  order.resize(count);
  std::iota(order.begin(), order.end(), first_place);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return finish_[a] != finish_[b] ? finish_[a] < finish_[b] : a < b;
  });
  for (std::uint32_t i = 0; i < count; ++i) number_at_place_[order[i]] = first_place + i;
}

void TreeBuilder::sort_hosts(std::uint32_t recipient_count, const HostGroups& groups) {
  by_host_.resize(recipient_count);
  std::iota(by_host_.begin(), by_host_.end(), 0u);
  std::sort(by_host_.begin(), by_host_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return groups.host[a] != groups.host[b] ? groups.host[a] < groups.host[b] : a < b;
  });
  hosts_.clear();
  root_host_ = {};
  for (std::uint32_t first = 0, end = 0; first < recipient_count; first = end) {
    const std::uint32_t host = groups.host[by_host_[first]];
    while (end < recipient_count && groups.host[by_host_[end]] == host) ++end;
    if (host == groups.root_host) {
      root_host_ = {first, end};
    } else {
      hosts_.push_back({first, end});
    }
  }
  std::sort(hosts_.begin(), hosts_.end(),
            [&](const HostRange& a, const HostRange& b) { return by_host_[a.first] < by_host_[b.first]; });
}

void TreeBuilder::append_members(Plan& plan, std::uint32_t vertex, std::uint32_t first, std::uint32_t end,
                                 TreeKind inside) {
  for (std::uint32_t i = first; i < end; ++i) {
    plan.parent.push_back(vertex);
    recipient_.push_back(by_host_[i]);
    if (inside == TreeKind::chain) vertex = static_cast<std::uint32_t>(plan.parent.size()) - 1;
  }
}

/// Preorder without recursion: subtree sizes from the last vertex up, then each vertex takes the next free place of its
/// parent's.
void TreeBuilder::emit(const Plan& plan, Strand& out) {
  const auto vertices = static_cast<std::uint32_t>(plan.parent.size());
  sizes_.assign(vertices, 1);
  for (std::uint32_t v = vertices - 1; v > 0; --v) sizes_[plan.parent[v]] += sizes_[v];
  offsets_.assign(vertices, 0);
  out.nodes.resize(vertices - 1);
  out.second_wave = vertices - 1;
  for (std::uint32_t v = 1; v < vertices; ++v) {
    std::uint32_t& next = offsets_[plan.parent[v]];
    out.nodes[next] = {recipient_[v], sizes_[v]};
    if (v == plan.second_wave) out.second_wave = next;
    offsets_[v] = next + 1;
    next += sizes_[v];
  }
}

}  // namespace tandem::comm
