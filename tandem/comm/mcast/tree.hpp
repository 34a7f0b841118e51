// tandem/comm/mcast/tree.hpp: which rank forwards a broadcast to which: trees over recipients that are sorted by
// priority. Pure.
//
//   Forest forest;
//   TreeBuilder().build(6, {.kind = TreeKind::binomial}, forest);
//   // forest.strands[0].nodes: (0, 3) (2, 1) (4, 1) (1, 2) (5, 1) (3, 1): preorder, recipient and size of its subtree
//
// Recipients are the numbers 0 .. n-1, highest priority first; the root is none of them. Positions of a tree are filled
// by priority (thesis 4.3.3): the position that has the data first in the one-port model (`one_port.hpp`, no latency)
// gets recipient 0, the next recipient 1, and so on; among equals, the one served by the earlier rank. Therefore
//   - a recipient's parent has a smaller number, in every tree of one strand;
//   - in the model with the number of segments asked for, no recipient finishes before one with a smaller number: for
//     flat,
//     chain, binary, k-ary, binomial, k-nomial, delegate;
//   - two_groups promises this within each group, and that the root serves the first group before it turns to the second;
//   - two_tree promises it for the later one of a recipient's two halves;
//   - with recipients grouped by host it holds among the first recipients of the hosts, and among those that share a
//     host.
//
// The trees, for n recipients:
//   flat        the root serves all
//   chain       0 serves 1 serves 2 ...
//   kary        each serves `fanout` others, the root too; complete, so that all but the last level are full (binary: two)
//   binomial    each vertex with the data serves the next one without: v serves v + 2^j for all 2^j > v, with the
//               root as 0 and recipient i as i + 1 (thesis fig. 4.1c, 4.2b); height floor(log2 n) + 1
//   knomial     like binomial, with radix `fanout`: v serves v + i r^j, 0 < i < r, for all r^j > v
//   two_tree    P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009:
//               two binary trees, each carries half of the bytes; a recipient that is interior in one is a leaf in the
//               other, so that everybody sends what it receives. The trees are in order: position i = 1 .. n has the
//               height of its lowest set bit, odd positions are leaves; the second is the mirror image (n even) or the
//               shift by one (n odd) of the first. We do not colour their edges: a rank interleaves its sends, and the
//               receiving port is shared instead of scheduled.
//   delegate    the root serves recipient 0 only, which serves the others by the tree `below` as if it were the root (thesis 4.5)
//   two_groups  the first `first_group` recipients by the tree `above`, then the others by the tree `below` (bitrees,
//   thesis 4.5)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tandem/comm/mcast/one_port.hpp"
#include "tandem/comm/mcast/tree_kind.hpp"

namespace tandem::comm {

/// Whether ranks of this tree send segment by segment to all of their children (true), or all segments to one child
/// after the other (false). The first keeps pipelines full; the second has the first children ready early, and they
/// help.
bool serves_interleaved(TreeKind kind) noexcept;

/// A tree to build.
struct TreeShape {
  TreeKind kind = TreeKind::binomial;
  std::uint32_t fanout = 2;              ///< kary: at least 1; knomial: the radix, at least 2; else unused
  std::uint32_t segments = 1;  ///< into which the message, or each half of it, is cut. Only the order depends on it
  /// With two_groups, the tree of the first group. Not two_tree, delegate, two_groups; fanout is shared.
  TreeKind above = TreeKind::binomial;
  TreeKind below = TreeKind::binomial;   ///< delegate, two_groups; as above
  std::uint32_t first_group = 0;         ///< two_groups: recipients of the first group; 0: half of them
};

/// A recipient and how many recipients its subtree has, itself included.
struct RouteNode {
  std::uint32_t recipient;
  std::uint32_t subtree_size;
  friend bool operator==(const RouteNode&, const RouteNode&) = default;
};

/// One tree in preorder, without its root: the root's children are the consecutive subtrees, in the order of service,
/// and so on below.
struct Strand {
  std::vector<RouteNode> nodes;
  /// Index of the first node whose subtree the root serves after all before; the size if none.
  std::uint32_t second_wave = 0;
};

/// What a broadcast follows. Each strand holds every recipient once, and carries an equal part of the bytes.
struct Forest {
  std::array<Strand, 2> strands;
  std::uint32_t strand_count = 0;  ///< 0 without recipients
  bool interleaved = false;        ///< how ranks serve their children, see `serves_interleaved`
};

/// Recipients that share a host. They share one copy from the network: the first of each host is in the requested tree,
/// and serves the others of its host after its children there; the root serves those of its own host.
struct HostGroups {
  std::span<const std::uint32_t> host;  ///< of each recipient: any number that names the host
  std::uint32_t root_host = 0;
  TreeKind inside = TreeKind::flat;     ///< flat or chain, within one host
};

/// Position after which a list of priorities, highest first, has its largest gap, for `TreeShape::first_group`; half of
/// them when all are equal. 0 for fewer than two.
std::uint32_t largest_gap(std::span<const std::int32_t> priorities) noexcept;

/// Builds forests. Reusable, so that the steady state allocates nothing; not thread-safe.
class TreeBuilder {
 public:
  /// Builds a forest for any number of recipients, also 0. O(n log n).
  void build(std::uint32_t recipient_count, const TreeShape& shape, Forest& out);
  /// Like `build` above, with recipients grouped by host; `groups.host` has one entry per recipient.
  void build(std::uint32_t recipient_count, const TreeShape& shape, const HostGroups& groups, Forest& out);

 private:
  /// A tree while it is built: vertex 0 is the root, `parent[v] < v`, siblings are served in increasing order.
  struct Plan {
    std::vector<std::uint32_t> parent;
    std::vector<std::uint32_t>
        place;  ///< of each vertex but the root: the position that both trees of a two-tree name alike
    std::uint32_t second_wave = 0;     ///< first vertex of the second wave; ~0u if none
  };

  void make_plans(std::uint32_t count, const TreeShape& shape, Forest& out);
  void make_two_tree(std::uint32_t count, const TreeShape& shape);
  void make_delegate(std::uint32_t count, const TreeShape& shape);
  void make_two_groups(std::uint32_t count, const TreeShape& shape);
  void rank_places(std::uint32_t first_place, std::uint32_t count);
  void rank_one_tree(std::span<const std::uint32_t> parent, std::uint32_t first_place, bool interleaved,
                     std::uint32_t segments);
  void sort_hosts(std::uint32_t recipient_count, const HostGroups& groups);
  void append_members(Plan& plan, std::uint32_t vertex, std::uint32_t first, std::uint32_t end, TreeKind inside);
  void emit(const Plan& plan, Strand& out);

  std::array<Plan, 2> plans_;
  OnePortTimes times_;
  std::vector<double> finish_;                   ///< of each place
  std::vector<std::uint32_t> number_at_place_;   ///< a recipient's number, or a host's
  std::vector<std::uint32_t> recipient_;         ///< of each vertex of the plan at hand
  std::vector<std::uint32_t> scratch_, sizes_, offsets_;
  std::vector<std::uint32_t> by_host_;           ///< recipients sorted by host, then by number
  struct HostRange {
    std::uint32_t first, end;                    ///< within by_host_
  };
  struct Part {
    std::uint32_t base, size;                    ///< positions base + 1 .. base + size
  };
  std::vector<Part> parts_;                      ///< of a two-tree: the subtree of each vertex
  std::vector<HostRange> hosts_;                 ///< in the order of their first recipients, without the root's
  HostRange root_host_{};
};

}  // namespace tandem::comm
