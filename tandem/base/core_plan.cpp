// tandem/base/core_plan.cpp: groups of ranks that share cores, and their shares.
#include "tandem/base/core_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "tandem/base/pu_list.hpp"

namespace tandem::base {
namespace {

using Pus = std::set<unsigned>;

/// The hardware threads of one core that are in a mask.
struct Piece {
  const Core* core;
  std::vector<unsigned> pus;
};

/// The cores of a mask, in the order of the topology.
std::vector<Piece> pieces_of(const Topology& host, const Pus& mask) {
  std::vector<Piece> pieces;
  for (const Core& core : host.cores()) {
    Piece piece{&core, {}};
    for (const unsigned pu : core.pus)
      if (mask.contains(pu)) piece.pus.push_back(pu);
    if (!piece.pus.empty()) pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::vector<unsigned> pus_of(std::span<const Piece> pieces) {
  std::vector<unsigned> pus;
  for (const Piece& piece : pieces) pus.insert(pus.end(), piece.pus.begin(), piece.pus.end());
  std::sort(pus.begin(), pus.end());
  return pus;
}

/// The nearest index at which another package begins, or else another NUMA node, within `reach` of `at`; `at` when
/// there is none.
std::size_t snap(const std::vector<Piece>& pieces, std::size_t at, std::size_t reach) {
  const auto begins = [&](std::size_t place, bool package) {
    const Core &before = *pieces[place - 1].core, &after = *pieces[place].core;
    return package ? before.package != after.package : before.numa_node != after.numa_node;
  };
  for (const bool package : {true, false})
    for (std::size_t step = 0; step <= reach; ++step)
      for (const std::size_t place : {at - std::min(step, at), at + step})
        if (place > 0 && place < pieces.size() && begins(place, package)) return place;
  return at;
}

/// Cuts the cores of a mask into `count` shares of neighbours. At least as many cores as shares.
std::vector<std::vector<unsigned>> divide(const std::vector<Piece>& pieces, std::size_t count) {
  const std::size_t cores = pieces.size();
  std::vector<std::size_t> cuts{0};
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t cut = snap(pieces, i * cores / count, cores / count / 4);
    cuts.push_back(std::max(cut, cuts.back() + 1));
  }
  cuts.push_back(cores);
  std::vector<std::vector<unsigned>> shares;
  for (std::size_t i = 0; i < count; ++i)
    shares.push_back(pus_of(std::span(pieces).subspan(cuts[i], cuts[i + 1] - cuts[i])));
  return shares;
}

/// Groups of ranks whose masks overlap, directly or through others, as indices in the list of masks.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<Pus>& masks) {
  std::vector<std::size_t> group(masks.size());
  std::iota(group.begin(), group.end(), std::size_t(0));
  const auto root = [&](std::size_t at) {
    while (group[at] != at) at = group[at] = group[group[at]];
    return at;
  };
  std::map<unsigned, std::size_t> owner;
  for (std::size_t i = 0; i < masks.size(); ++i)
    for (const unsigned pu : masks[i]) {
      const auto [known, fresh] = owner.emplace(pu, i);
      if (!fresh) group[root(i)] = root(known->second);
    }
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < masks.size(); ++i) members[root(i)].push_back(i);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [at, places] : members) groups.push_back(std::move(places));
  return groups;
}

/// Deals cores of masks that overlap in part: those that the fewest ranks may use come first.
void deal(const Topology& host, const std::vector<Pus>& masks, const std::vector<std::size_t>& group,
          std::vector<RankCores>& plan) {
  Pus all;
  for (const std::size_t place : group) all.insert(masks[place].begin(), masks[place].end());
  std::vector<std::pair<Piece, std::vector<std::size_t>>> offers;
  for (Piece& piece : pieces_of(host, all)) {
    std::vector<std::size_t> takers;
    for (const std::size_t place : group)
      if (std::any_of(piece.pus.begin(), piece.pus.end(), [&](unsigned pu) { return masks[place].contains(pu); }))
        takers.push_back(place);
    offers.emplace_back(std::move(piece), std::move(takers));
  }
  std::stable_sort(offers.begin(), offers.end(),
                   [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::map<std::size_t, std::size_t> cores;
  for (const auto& [piece, takers] : offers) {
    const std::size_t taker =
        *std::min_element(takers.begin(), takers.end(),
                          [&](std::size_t a, std::size_t b) { return cores[a] < cores[b]; });
    ++cores[taker];
    for (const unsigned pu : piece.pus)
      if (masks[taker].contains(pu)) plan[taker].pus.push_back(pu);
  }
  const bool enough = std::all_of(group.begin(), group.end(), [&](std::size_t place) { return cores[place] > 0; });
  for (const std::size_t place : group) {
    if (!enough) plan[place].pus.assign(masks[place].begin(), masks[place].end());
    plan[place].crowded = !enough;
    std::sort(plan[place].pus.begin(), plan[place].pus.end());
  }
}

void plan_group(const Topology& host, const std::vector<Pus>& masks, const std::vector<std::size_t>& group,
                std::vector<RankCores>& plan) {
  const Pus& mask = masks[group.front()];
  if (group.size() == 1) {
    plan[group.front()].pus.assign(mask.begin(), mask.end());
    return;
  }
  if (std::any_of(group.begin(), group.end(), [&](std::size_t place) { return masks[place] != mask; }))
    return deal(host, masks, group, plan);
  const std::vector<Piece> pieces = pieces_of(host, mask);
  const bool enough = pieces.size() >= group.size();
  const auto shares =
      enough ? divide(pieces, group.size()) : std::vector<std::vector<unsigned>>(group.size(), pus_of(pieces));
  for (std::size_t i = 0; i < group.size(); ++i) {
    plan[group[i]].pus = shares[i];
    plan[group[i]].crowded = !enough;
  }
}

/// All hardware threads of the packages or nodes that contain these.
std::vector<unsigned> widened(const Topology& host, const std::vector<unsigned>& pus, BindTo bind) {
  const auto domain = [bind](const Core& core) { return bind == BindTo::package ? core.package : core.numa_node; };
  std::set<unsigned> domains;
  for (const Core& core : host.cores())
    for (const unsigned pu : core.pus)
      if (std::binary_search(pus.begin(), pus.end(), pu)) domains.insert(domain(core));
  std::vector<unsigned> wide;
  for (const Core& core : host.cores())
    if (domains.contains(domain(core))) wide.insert(wide.end(), core.pus.begin(), core.pus.end());
  std::sort(wide.begin(), wide.end());
  return wide;
}

/// The order in which ranks take the shares: one of each domain in turn.
std::vector<std::size_t> dealt(const Topology& host, const std::vector<RankCores>& shares, MapBy map) {
  std::map<unsigned, std::vector<std::size_t>> by_domain;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    unsigned domain = 0;
    for (const Core& core : host.cores())
      if (!shares[i].pus.empty() && std::count(core.pus.begin(), core.pus.end(), shares[i].pus.front()) > 0)
        domain = map == MapBy::package ? core.package : core.numa_node;
    by_domain[domain].push_back(i);
  }
  std::vector<std::size_t> order;
  for (std::size_t turn = 0; order.size() < shares.size(); ++turn)
    for (const auto& [domain, places] : by_domain)
      if (turn < places.size()) order.push_back(places[turn]);
  return order;
}

}  // namespace

std::vector<RankCores> plan_rank_cores(const Topology& host, std::span<const RankMask> masks) {
  Pus known;
  for (const Core& core : host.cores()) known.insert(core.pus.begin(), core.pus.end());
  std::vector<Pus> sets;
  std::vector<RankCores> plan;
  for (const RankMask& mask : masks) {
    Pus set;
    for (const unsigned pu : mask.pus)
      if (known.contains(pu)) set.insert(pu);
    sets.push_back(std::move(set));
    plan.push_back({.rank = mask.rank});
  }
  for (const auto& group : groups_of(sets)) plan_group(host, sets, group, plan);
  return plan;
}

std::vector<RankCores> plan_host(const Topology& host, std::uint32_t first, std::uint32_t count, BindTo bind,
                                 MapBy map) {
  std::vector<unsigned> all;
  for (const Core& core : host.cores()) all.insert(all.end(), core.pus.begin(), core.pus.end());
  std::sort(all.begin(), all.end());
  std::vector<RankMask> masks;
  for (std::uint32_t i = 0; i < count; ++i) masks.push_back({first + i, all});
  std::vector<RankCores> shares = plan_rank_cores(host, masks);
  if (bind == BindTo::none) {
    for (RankCores& share : shares) share = {share.rank, all, count > 1};
    return shares;
  }
  if (map != MapBy::core) {
    const std::vector<RankCores> former = shares;
    const std::vector<std::size_t> order = dealt(host, former, map);
    for (std::size_t i = 0; i < order.size(); ++i)
      shares[i] = {shares[i].rank, former[order[i]].pus, former[order[i]].crowded};
  }
  if (bind != BindTo::core)
    for (RankCores& share : shares) share.pus = widened(host, share.pus, bind);
  return shares;
}

std::string draw_plan(const Topology& host, std::span<const RankCores> plan) {
  constexpr std::string_view letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::map<unsigned, char> letter_of;
  for (const RankCores& rank : plan)
    for (const unsigned pu : rank.pus) {
      const char letter = letters[rank.rank % letters.size()];
      const auto [known, fresh] = letter_of.emplace(pu, letter);
      if (!fresh) known->second = '+';
    }
  const auto shown = [&](const Core& core) {
    char letter = '.';
    for (const unsigned pu : core.pus)
      if (const auto found = letter_of.find(pu); found != letter_of.end())
        letter = letter == '.' || letter == found->second ? found->second : '+';
    return letter;
  };
  std::string picture;
  for (std::size_t i = 0; i < host.cores().size();) {
    const Core& first = host.cores()[i];
    std::string row;
    for (; i < host.cores().size() && host.cores()[i].package == first.package &&
           host.cores()[i].numa_node == first.numa_node;
         ++i)
      row += shown(host.cores()[i]);
    picture += fmt::format("  package {}, NUMA node {}: {}\n", first.package, first.numa_node, row);
  }
  for (const RankCores& rank : plan)
    picture += fmt::format("  rank {}: hardware threads {}{}\n", rank.rank, format_pu_list(rank.pus),
                           rank.crowded ? ", shared with other ranks" : "");
  return picture;
}

}  // namespace tandem::base
