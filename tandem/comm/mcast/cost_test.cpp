// tandem/comm/mcast/cost_test.cpp: predictions equal the formulas of the literature, and choices are those of the
// examples.
#include "tandem/comm/mcast/cost.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace tandem::comm::cost_test {
namespace {

constexpr std::size_t tile_bytes = 439'296;

/// Ranks in network namespaces of one machine with two cores, each behind a rate limiter.
NetworkCosts namespaces(double bytes_per_ns) {
  return {.latency_ns = 50'000, .per_message_ns = 0, .bytes_per_ns = bytes_per_ns, .cpu_per_message_ns = 10'000,
          .cpu_per_byte_ns = 0.3, .shared_cores = 2};
}

TEST(TreeChooser, PredictsTheFormulasOfWholeMessages) {
  const double a = 700, b = 0.5, m = 100'000;
  TreeChooser chooser({.latency_ns = 0, .per_message_ns = a, .bytes_per_ns = 1 / b});
  for (std::uint32_t n = 1; n <= 70; ++n) {
    const BroadcastLoad load{.recipients = n, .bytes = static_cast<std::size_t>(m)};
    const double levels = std::ceil(std::log2(n + 1.0));
    EXPECT_NEAR(chooser.predict_ns(load, {.kind = TreeKind::flat}, 0), n * (a + b * m), 1e-3);
    EXPECT_NEAR(chooser.predict_ns(load, {.kind = TreeKind::binomial}, 0), levels * (a + b * m), 1e-3);
    const double k = 10;
    EXPECT_NEAR(chooser.predict_ns(load, {.kind = TreeKind::chain}, 10'000), (n - 1 + k) * (a + b * m / k), 1e-3);
  }
}

TEST(TreeChooser, PipelinedTreesStayNearTheirFormulasAndAboveTheBound) {
  const double a = 700, b = 0.5, m = 4'000'000;
  TreeChooser chooser({.latency_ns = 0, .per_message_ns = a, .bytes_per_ns = 1 / b, .min_segment_bytes = 256});
  for (std::uint32_t n : {7u, 15u, 38u, 63u, 200u}) {
    const BroadcastLoad load{.recipients = n, .bytes = static_cast<std::size_t>(m)};
    const double levels = std::ceil(std::log2(n + 1.0));
    const double two_tree = chooser.cut(load, {.kind = TreeKind::two_tree}).predicted_ns;
    EXPECT_NEAR(two_tree / 1.15 / (b * m + 2 * a * levels + std::sqrt(8 * a * b * m * levels)), 1, 0.05) << n;
    const double chain = chooser.cut(load, {.kind = TreeKind::chain}).predicted_ns;
    const double best_k = std::sqrt(b * m * (n - 1) / a);
    EXPECT_NEAR(chain / ((n - 1 + best_k) * (a + b * m / best_k)), 1, 0.05) << n;
    const double binary = chooser.cut(load, {.kind = TreeKind::binary}).predicted_ns;
    EXPECT_NEAR(binary / (2 * b * m), 1, 0.15) << n;
    for (double each : {two_tree, chain, binary, chooser.choose(load).predicted_ns}) EXPECT_GE(each, b * m);
  }
}

TEST(TreeChooser, WorkedExample) {
  NetworkCosts costs = namespaces(0.025);
  costs.shared_cores = 0;
  TreeChooser chooser(costs);
  const BroadcastLoad load{.recipients = 38, .bytes = tile_bytes};
  const double m_over_w = tile_bytes / 0.025, l = 50'000;
  EXPECT_NEAR(chooser.predict_ns(load, {.kind = TreeKind::chain}, 8192), 38 * (m_over_w / 54 + l) + 53 * m_over_w / 54,
              1);
  EXPECT_NEAR(chooser.predict_ns(load, {.kind = TreeKind::two_tree}, 8192), 1.15 * (63 * m_over_w / 54 + 6 * l), 1);
  costs.burst_bytes = 65'536;
  costs.burst_bytes_per_ns = 4;
  chooser.set_costs(costs);
  const double quick = tile_bytes / 14.0 / 4;
  EXPECT_NEAR(chooser.predict_ns(load, {.kind = TreeKind::chain}, 32'768),
              38 * (quick + l) + m_over_w - 65'536 / 0.025 - quick, 1);
}

TEST(TreeChooser, LimitersThatLetALittlePassEarlySpeakForTheChain) {
  NetworkCosts costs = namespaces(0.025);
  costs.burst_bytes = 65'536;
  costs.burst_bytes_per_ns = 4;
  TreeChooser chooser(costs);
  for (const auto& [recipients, at_most_ms] : {std::pair(7u, 17.6), std::pair(15u, 18.0), std::pair(38u, 19.0)}) {
    const TreeChoice choice = chooser.choose({.recipients = recipients, .bytes = tile_bytes});
    EXPECT_EQ(choice.shape.kind, TreeKind::chain) << recipients;
    EXPECT_GE(choice.segment_bytes, 8192u);
    EXPECT_LT(choice.predicted_ns, at_most_ms * 1e6);
  }
}

TEST(TreeChooser, TwoHundredMegabitsAreUsedByThirtyEightRecipientsAlsoWithoutBursts) {
  TreeChooser chooser(namespaces(0.025));
  const TreeChoice choice = chooser.choose({.recipients = 38, .bytes = tile_bytes});
  EXPECT_EQ(choice.shape.kind, TreeKind::two_tree);
  EXPECT_LT(choice.predicted_ns, 1.5 * tile_bytes / 0.025);
  EXPECT_GE(choice.segment_bytes, 4096u);  // smaller ones would cost more processor time than the wire takes
  const std::size_t eight_megabytes = 8u << 20;
  const TreeChoice large = chooser.choose({.recipients = 38, .bytes = eight_megabytes});
  EXPECT_LT(large.predicted_ns, 1.15 * eight_megabytes / 0.025);
}

TEST(TreeChooser, CopiesOnSharedCoresSpeakForFewBigSegmentsAndFlatterTrees) {
  NetworkCosts memory{.latency_ns = 5'000, .per_message_ns = 500, .bytes_per_ns = 12, .receiver_pulls = true,
                      .cpu_per_message_ns = 6'000, .cpu_per_byte_ns = 0.08, .shared_cores = 2};
  TreeChooser chooser(memory);
  for (std::uint32_t n : {7u, 31u}) {
    const TreeChoice choice = chooser.choose({.recipients = n, .bytes = tile_bytes});
    EXPECT_EQ(choice.shape.kind, TreeKind::flat) << tree_name(choice.shape.kind);
    EXPECT_EQ(choice.segment_bytes, 0u);
  }
  memory.receiver_pulls = false;
  chooser.set_costs(memory);
  const TreeChoice pushed = chooser.choose({.recipients = 31, .bytes = tile_bytes});
  EXPECT_TRUE(pushed.shape.kind == TreeKind::binomial || pushed.shape.kind == TreeKind::knomial)
      << tree_name(pushed.shape.kind);
}

TEST(TreeChooser, IsWithinFivePerCentOfEveryTreeAndCut) {
  TreeBuilder builder;
  for (double rate : {0.025, 0.125, 5.0}) {
    TreeChooser chooser(namespaces(rate));
    for (std::uint32_t n : {1u, 2u, 3u, 7u, 15u, 38u}) {
      for (std::size_t bytes :
           {std::size_t{0}, std::size_t{1000}, std::size_t{32'768}, tile_bytes, std::size_t{8'000'000}}) {
        const BroadcastLoad load{.recipients = n, .bytes = bytes};
        const TreeChoice choice = chooser.choose(load);
        const double chosen = chooser.predict_ns(load, choice.shape, choice.segment_bytes);
        for (TreeKind kind :
             {TreeKind::flat, TreeKind::chain, TreeKind::binary, TreeKind::binomial, TreeKind::two_tree})
          EXPECT_LE(chosen, 1.05 * chooser.cut(load, {.kind = kind}).predicted_ns)
              << tree_name(kind) << " " << n << " " << bytes;
      }
    }
  }
}

TEST(TreeChooser, BusyRootHandsTheWorkOn) {
  TreeChooser chooser({.latency_ns = 5'000, .per_message_ns = 10'000, .bytes_per_ns = 1});
  const TreeChoice idle = chooser.choose({.recipients = 15, .bytes = 4000});
  EXPECT_NE(idle.shape.kind, TreeKind::delegate);
  const TreeChoice busy = chooser.choose({.recipients = 15, .bytes = 4000, .queued_bytes = 1'000'000});
  TreeBuilder builder;
  Forest forest;
  builder.build(15, busy.shape, forest);
  std::uint32_t children_of_root = 0;
  for (std::uint32_t i = 0; i < 15; i += forest.strands[0].nodes[i].subtree_size) ++children_of_root;
  builder.build(15, idle.shape, forest);
  std::uint32_t children_of_idle_root = 0;
  for (std::uint32_t i = 0; i < 15; i += forest.strands[0].nodes[i].subtree_size) ++children_of_idle_root;
  EXPECT_LT(children_of_root, children_of_idle_root);
}

TEST(TreeChooser, RemembersByClassAndForgetsWithTheCosts) {
  TreeChooser chooser(namespaces(0.025));
  const TreeChoice first = chooser.choose({.recipients = 38, .bytes = 439'296});
  const TreeChoice similar = chooser.choose({.recipients = 38, .bytes = 430'000});
  EXPECT_EQ(first, similar);
  EXPECT_EQ(similar.shape.segments, segment_count(similar.shape.kind, 38, 430'000, similar.segment_bytes));
  chooser.set_costs(namespaces(10));
  EXPECT_FALSE(chooser.choose({.recipients = 38, .bytes = 439'296}) == first);
}

TEST(TreeChooser, AnOrderedBroadcastNeverFollowsTwoTrees) {
  TreeChooser chooser({.latency_ns = 20'000, .per_message_ns = 700, .bytes_per_ns = 2, .min_segment_bytes = 4096});
  int two_trees = 0;
  for (std::uint32_t recipients : {2u, 7u, 38u, 200u}) {
    for (std::size_t bytes = 1024; bytes <= std::size_t{1} << 26; bytes *= 4) {
      BroadcastLoad load{.recipients = recipients, .bytes = bytes};
      const TreeChoice any = chooser.choose(load);
      load.ordered = true;
      const TreeChoice ordered = chooser.choose(load);
      EXPECT_NE(ordered.shape.kind, TreeKind::two_tree) << recipients << ", " << bytes;
      if (any.shape.kind == TreeKind::two_tree) ++two_trees;
      else EXPECT_EQ(any, ordered) << recipients << ", " << bytes;
    }
  }
  EXPECT_GT(two_trees, 0);
}

TEST(TreeChooser, NobodyOneAndNothing) {
  TreeChooser chooser(namespaces(0.025));
  EXPECT_EQ(chooser.choose({.recipients = 0, .bytes = 1000}).predicted_ns, 0);
  EXPECT_EQ(chooser.choose({.recipients = 1, .bytes = 1000}).shape.kind, TreeKind::flat);
  EXPECT_EQ(chooser.choose({.recipients = 5, .bytes = 0}).shape.segments, 1u);
  EXPECT_EQ(segment_count(TreeKind::two_tree, 5, 100, 25), 2u);
  EXPECT_EQ(segment_count(TreeKind::chain, 5, 100, 30), 4u);
}

}  // namespace
}  // namespace tandem::comm::cost_test
