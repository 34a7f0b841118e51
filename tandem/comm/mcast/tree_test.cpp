// tandem/comm/mcast/tree_test.cpp: every tree holds every recipient once, nests, keeps its bounds, and respects
// priorities.
#include "tandem/comm/mcast/tree.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tandem::comm::tree_test {
namespace {

constexpr std::uint32_t root = ~0u;

/// The content of a strand, unpacked by a reader that is independent of the builder: recursion over the preorder.
struct Reading {
  std::map<std::uint32_t, std::uint32_t> parent;                 ///< of each recipient
  std::map<std::uint32_t, std::vector<std::uint32_t>> children;  ///< in the order of service
  std::map<std::uint32_t, std::uint32_t> depth;                  ///< 1 for the root's children
  std::vector<std::uint32_t> parent_array{0};                    ///< vertices in preorder, as `OnePortTimes` wants them
  std::vector<std::uint32_t> recipient{root};                    ///< of each vertex

  void read(const std::vector<RouteNode>& nodes, std::size_t first, std::size_t end, std::uint32_t vertex,
            std::uint32_t level) {
    const std::uint32_t above = recipient[vertex];
    for (std::size_t i = first; i < end; i += nodes[i].subtree_size) {
      ASSERT_GE(nodes[i].subtree_size, 1u);
      ASSERT_LE(i + nodes[i].subtree_size, end);
      ASSERT_TRUE(parent.emplace(nodes[i].recipient, above).second)
          << "recipient " << nodes[i].recipient << " comes twice";
      children[above].push_back(nodes[i].recipient);
      depth[nodes[i].recipient] = level;
      parent_array.push_back(vertex);
      recipient.push_back(nodes[i].recipient);
      const auto mine = static_cast<std::uint32_t>(recipient.size()) - 1;
      read(nodes, i + 1, i + nodes[i].subtree_size, mine, level + 1);
    }
  }
};

Reading read(const Strand& strand) {
  Reading reading;
  reading.read(strand.nodes, 0, strand.nodes.size(), 0, 1);
  return reading;
}

std::uint32_t height(const Reading& reading) {
  std::uint32_t highest = 0;
  for (const auto& [recipient, depth] : reading.depth) highest = std::max(highest, depth);
  return highest;
}

std::size_t widest(const Reading& reading) {
  std::size_t most = 0;
  for (const auto& [recipient, children] : reading.children) most = std::max(most, children.size());
  return most;
}

void expect_all_once(const Reading& reading, std::uint32_t n) {
  ASSERT_EQ(reading.parent.size(), n);
  for (const auto& [recipient, above] : reading.parent) EXPECT_LT(recipient, n);
}

/// When each recipient has the data in the ideal model.
std::vector<double> finishes(const Reading& reading, std::uint32_t segments, bool interleaved, RootShare share = {}) {
  OnePortTimes times;
  times.run(reading.parent_array, {.segments = segments, .interleaved = interleaved}, share);
  std::vector<double> result(reading.recipient.size() - 1);
  for (std::uint32_t v = 1; v < reading.recipient.size(); ++v) result[reading.recipient[v]] = times.finish(v);
  return result;
}

Forest build(std::uint32_t n, const TreeShape& shape) {
  Forest forest;
  TreeBuilder().build(n, shape, forest);
  return forest;
}

std::uint32_t log2_floor(std::uint32_t x) { return static_cast<std::uint32_t>(std::bit_width(x)) - 1; }

const TreeShape one_strand_shapes[]{{.kind = TreeKind::flat},
                                    {.kind = TreeKind::chain},
                                    {.kind = TreeKind::binary},
                                    {.kind = TreeKind::kary, .fanout = 1},
                                    {.kind = TreeKind::kary, .fanout = 3},
                                    {.kind = TreeKind::kary, .fanout = 7},
                                    {.kind = TreeKind::binomial},
                                    {.kind = TreeKind::knomial, .fanout = 2},
                                    {.kind = TreeKind::knomial, .fanout = 3},
                                    {.kind = TreeKind::knomial, .fanout = 8},
                                    {.kind = TreeKind::delegate, .below = TreeKind::binomial},
                                    {.kind = TreeKind::delegate, .below = TreeKind::flat},
                                    {.kind = TreeKind::delegate, .fanout = 3, .below = TreeKind::kary}};

TEST(Tree, HoldsEachRecipientOnceAndNests) {
  for (TreeShape shape : one_strand_shapes) {
    for (std::uint32_t n = 0; n <= 70; ++n) {
      SCOPED_TRACE(testing::Message() << tree_name(shape.kind) << " of " << n);
      const Forest forest = build(n, shape);
      ASSERT_EQ(forest.strand_count, n == 0 ? 0u : 1u);
      if (n == 0) continue;
      expect_all_once(read(forest.strands[0]), n);
      EXPECT_EQ(forest.strands[0].second_wave, n);
    }
  }
}

TEST(Tree, RespectsPrioritiesInTheOnePortModelAtEverySegmentCount) {
  for (TreeShape shape : one_strand_shapes) {
    for (std::uint32_t segments : {1u, 2u, 5u, 54u}) {
      for (std::uint32_t n = 1; n <= 70; ++n) {
        SCOPED_TRACE(testing::Message() << tree_name(shape.kind) << " of " << n << ", segments " << segments);
        shape.segments = segments;
        const Forest forest = build(n, shape);
        const Reading reading = read(forest.strands[0]);
        const std::vector<double> finish = finishes(reading, segments, forest.interleaved);
        EXPECT_TRUE(std::is_sorted(finish.begin(), finish.end()));
        for (const auto& [recipient, above] : reading.parent) EXPECT_TRUE(above == root || above < recipient);
      }
    }
  }
}

TEST(Tree, KeepsTheBoundsOfItsKind) {
  for (std::uint32_t n = 1; n <= 70; ++n) {
    SCOPED_TRACE(testing::Message() << n << " recipients");
    const auto reading_of = [&](const TreeShape& shape) { return read(build(n, shape).strands[0]); };
    EXPECT_EQ(height(reading_of({.kind = TreeKind::flat})), 1u);
    EXPECT_EQ(widest(reading_of({.kind = TreeKind::flat})), n);
    EXPECT_EQ(height(reading_of({.kind = TreeKind::chain})), n);
    EXPECT_EQ(widest(reading_of({.kind = TreeKind::chain})), 1u);
    EXPECT_EQ(height(reading_of({.kind = TreeKind::binary})), log2_floor(n + 1));
    EXPECT_LE(widest(reading_of({.kind = TreeKind::binary})), 2u);
    EXPECT_LE(widest(reading_of({.kind = TreeKind::kary, .fanout = 5})), 5u);
    EXPECT_LE(height(reading_of({.kind = TreeKind::kary, .fanout = 5})), n <= 5 ? 1u : n <= 30 ? 2u : 3u);
    EXPECT_LE(height(reading_of({.kind = TreeKind::binomial})), log2_floor(n) + 1);
    EXPECT_EQ(widest(reading_of({.kind = TreeKind::binomial})), log2_floor(n) + 1);
    EXPECT_LE(height(reading_of({.kind = TreeKind::knomial, .fanout = 4})), log2_floor(n) / 2 + 1);
    EXPECT_LE(widest(reading_of({.kind = TreeKind::knomial, .fanout = 4})), 3 * (log2_floor(n) / 2 + 1));
  }
}

TEST(Tree, BinomialServesTheLargestSubtreeFirstAndTheLastStepHasTheLowestPriorities) {
  // Eleven recipients, as in thesis fig. 4.2b: recipient 0 here is rank 11 there, which has the highest priority.
  const Reading reading = read(build(11, {.kind = TreeKind::binomial}).strands[0]);
  EXPECT_EQ(reading.children.at(root), (std::vector<std::uint32_t>{0, 1, 3, 7}));
  const std::vector<double> step = finishes(reading, 1, false);
  EXPECT_EQ(step, (std::vector<double>{1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4}));
}

TEST(Tree, ExampleOfTheHeader) {
  const std::vector<RouteNode> expected{{0, 3}, {2, 1}, {4, 1}, {1, 2}, {5, 1}, {3, 1}};
  EXPECT_EQ(build(6, {.kind = TreeKind::binomial}).strands[0].nodes, expected);
}

TEST(Tree, TwoTreeHasEachRecipientInBothTreesAndInteriorInOneAtMost) {
  for (std::uint32_t n = 2; n <= 70; ++n) {
    SCOPED_TRACE(testing::Message() << n << " recipients");
    const Forest forest = build(n, {.kind = TreeKind::two_tree, .segments = 20});
    ASSERT_EQ(forest.strand_count, 2u);
    std::array<Reading, 2> readings;
    for (unsigned s = 0; s < 2; ++s) {
      readings[s] = read(forest.strands[s]);
      expect_all_once(readings[s], n);
      EXPECT_EQ(readings[s].children.at(root).size(), 1u);
      EXPECT_LE(widest(readings[s]), 2u);
      EXPECT_LE(height(readings[s]), log2_floor(n) + 1);
    }
    for (std::uint32_t i = 0; i < n; ++i)
      EXPECT_FALSE(readings[0].children.contains(i) && readings[1].children.contains(i));
    const std::vector<double> one = finishes(readings[0], 20, true, {.slots_before = 0, .slots = 2});
    const std::vector<double> other = finishes(readings[1], 20, true, {.slots_before = 1, .slots = 2});
    for (std::uint32_t i = 1; i < n; ++i) EXPECT_LE(std::max(one[i - 1], other[i - 1]), std::max(one[i], other[i]));
  }
  EXPECT_EQ(build(1, {.kind = TreeKind::two_tree}).strand_count, 1u);
}

TEST(Tree, DelegateGivesTheRootOneChild) {
  for (std::uint32_t n = 1; n <= 70; ++n) {
    const Reading reading = read(build(n, {.kind = TreeKind::delegate, .below = TreeKind::binomial}).strands[0]);
    EXPECT_EQ(reading.children.at(root), std::vector<std::uint32_t>{0});
  }
}

TEST(Tree, TwoGroupsAreServedOneAfterTheOther) {
  for (std::uint32_t n = 1; n <= 70; ++n) {
    for (std::uint32_t first : {0u, 1u, 5u, 70u}) {
      SCOPED_TRACE(testing::Message() << n << " recipients, first group of " << first);
      const std::uint32_t size = std::min(first == 0 ? (n + 1) / 2 : first, n);
      const Forest forest = build(
          n,
          {.kind = TreeKind::two_groups, .above = TreeKind::binomial, .below = TreeKind::binary, .first_group = first});
      expect_all_once(read(forest.strands[0]), n);
      const auto& nodes = forest.strands[0].nodes;
      EXPECT_EQ(forest.strands[0].second_wave, size);
      for (std::uint32_t i = 0; i < n; ++i) EXPECT_EQ(nodes[i].recipient < size, i < size);
      const std::vector<RouteNode> group(nodes.begin(), nodes.begin() + size);
      EXPECT_EQ(group, build(size, {.kind = TreeKind::binomial}).strands[0].nodes);
      if (size == n) continue;
      std::vector<RouteNode> later(nodes.begin() + size, nodes.end());
      for (RouteNode& node : later) node.recipient -= size;
      EXPECT_EQ(later, build(n - size, {.kind = TreeKind::binary}).strands[0].nodes);
    }
  }
}

TEST(Tree, LargestGapOfPriorities) {
  EXPECT_EQ(largest_gap({}), 0u);
  EXPECT_EQ(largest_gap(std::vector<std::int32_t>{4}), 0u);
  EXPECT_EQ(largest_gap(std::vector<std::int32_t>{4, 4, 4, 4}), 2u);
  EXPECT_EQ(largest_gap(std::vector<std::int32_t>{90, 89, 88, 5, 4}), 3u);
  EXPECT_EQ(largest_gap(std::vector<std::int32_t>{2'147'483'647, -2'147'483'647 - 1}), 1u);
}

TEST(Tree, OneCopyFromTheNetworkForEachHost) {
  const std::uint64_t seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  TreeBuilder builder;
  Forest forest;
  for (int round = 0; round < 500; ++round) {
    const auto n = static_cast<std::uint32_t>(random() % 40);
    const auto host_count = 1 + static_cast<std::uint32_t>(random() % 8);
    std::vector<std::uint32_t> host(n);
    for (std::uint32_t& each : host) each = 100 + static_cast<std::uint32_t>(random() % host_count);
    const TreeKind kind = round % 3 == 0 ? TreeKind::two_tree : round % 3 == 1 ? TreeKind::binomial : TreeKind::chain;
    const TreeKind inside = round % 2 == 0 ? TreeKind::flat : TreeKind::chain;
    builder.build(n, {.kind = kind}, {.host = host, .root_host = 100, .inside = inside}, forest);
    ASSERT_EQ(forest.strand_count == 0, n == 0);
    for (std::uint32_t s = 0; s < forest.strand_count; ++s) {
      const Reading reading = read(forest.strands[s]);
      expect_all_once(reading, n);
      std::map<std::uint32_t, int> copies;
      for (const auto& [recipient, above] : reading.parent) {
        const std::uint32_t from = above == root ? 100 : host[above];
        if (from != host[recipient]) ++copies[host[recipient]];
        EXPECT_TRUE(from != host[recipient] || above == root || above < recipient);
      }
      std::set<std::uint32_t> elsewhere(host.begin(), host.end());
      elsewhere.erase(100);
      ASSERT_EQ(copies.size(), elsewhere.size());
      for (const auto& [each, count] : copies) EXPECT_EQ(count, 1) << "host " << each;
      for (const auto& [above, children] : reading.children) {  // the wire before the neighbours
        const auto is_near = [&](std::uint32_t c) { return host[c] == (above == root ? 100 : host[above]); };
        EXPECT_TRUE(std::is_partitioned(children.begin(), children.end(),
                                        [&](std::uint32_t c) { return !is_near(c); }));
      }
    }
  }
}

TEST(Tree, HostsStandInTheOrderOfTheirFirstRecipients) {
  const std::vector<std::uint32_t> host{5, 9, 5, 7, 9, 7, 7};
  Forest forest;
  TreeBuilder().build(7, {.kind = TreeKind::chain}, {.host = host, .root_host = 1, .inside = TreeKind::chain}, forest);
  const Reading reading = read(forest.strands[0]);
  EXPECT_EQ(reading.children.at(root), std::vector<std::uint32_t>{0});
  EXPECT_EQ(reading.children.at(0), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(reading.children.at(1), (std::vector<std::uint32_t>{3, 4}));
  EXPECT_EQ(reading.children.at(3), std::vector<std::uint32_t>{5});
  EXPECT_EQ(reading.children.at(5), std::vector<std::uint32_t>{6});
}

TEST(Tree, LargeTreesAreBuiltWithoutRecursion) {
  for (TreeKind kind : {TreeKind::chain, TreeKind::binomial, TreeKind::two_tree, TreeKind::flat}) {
    const Forest forest = build(60'000, {.kind = kind});
    EXPECT_EQ(forest.strands[0].nodes.size(), 60'000u);
  }
}

TEST(Tree, NamesAreReadBack) {
  for (unsigned i = 0; i < tree_kind_count; ++i) {
    const auto kind = static_cast<TreeKind>(i);
    EXPECT_EQ(tree_kind(tree_name(kind)), kind);
  }
  EXPECT_EQ(tree_kind("fir"), std::nullopt);
}

TEST(TreeDeathTest, AutomaticIsNoTree) { EXPECT_DEATH(build(3, {.kind = TreeKind::automatic}), "automatic"); }

}  // namespace
}  // namespace tandem::comm::tree_test
