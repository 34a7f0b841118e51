// tandem/base/core_plan.hpp: which cores each rank of a host gets. Pure: topology and masks in, an assignment out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/base/topology.hpp"

namespace tandem::base {

/// The hardware threads that a rank's process may use, as its launcher has set them.
struct RankMask {
  std::uint32_t rank = 0;
  std::vector<unsigned> pus = {};  ///< the operating system's numbers
};

/// The cores of a rank.
struct RankCores {
  std::uint32_t rank = 0;
  std::vector<unsigned> pus = {};  ///< the operating system's numbers, a part of the rank's mask; empty: unknown
  bool crowded = false;            ///< other ranks may use them, too: there were fewer cores than ranks
  bool operator==(const RankCores&) const = default;
};

/// Divides the cores of a host among the ranks on it.
///
/// - A rank whose mask overlaps no other rank's gets its whole mask.
/// - Ranks with one common mask divide its cores without overlap, in the order of the ranks. Each gets neighbouring
///   cores, as many as the others or one more. A border between two ranks moves to a border between packages or NUMA
///   nodes when that takes at most a quarter of a rank's share.
/// - Ranks whose masks overlap in part get one core after the other, each core given to the rank that has the fewest of
///   those that may use it.
/// - A group with fewer cores than ranks shares them all: each gets its whole mask, `crowded`.
///
/// `host` has all cores that the masks name; others are ignored. The result is in the order of `masks`.
std::vector<RankCores> plan_rank_cores(const Topology& host, std::span<const RankMask> masks);

/// What a rank is bound to when a launcher binds it.
enum class BindTo : std::uint8_t { none, core, numa, package };
/// Where consecutive ranks go: to neighbouring shares, or to one NUMA node or package after the other.
enum class MapBy : std::uint8_t { core, numa, package };

/// A plan for `count` ranks, `first` and those after it, that no launcher has bound, over all cores of `host`: shares
/// as above, dealt out as `map` says. With `BindTo::core` each rank is bound to its share, with `numa` or `package` to
/// all cores of the nodes or packages that contain its share (ranks that share these divide them when they start). With
/// `none` each rank has all cores.
std::vector<RankCores> plan_host(const Topology& host, std::uint32_t first, std::uint32_t count, BindTo bind,
                                 MapBy map);

/// A plan as a picture: a line for each NUMA node with a letter for each core (of the rank that has it; `+`: several,
/// `.`: none), then a line for each rank. Lines end with a newline.
std::string draw_plan(const Topology& host, std::span<const RankCores> plan);

}  // namespace tandem::base
