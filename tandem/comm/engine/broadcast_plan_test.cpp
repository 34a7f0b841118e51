// tandem/comm/engine/broadcast_plan_test.cpp: broadcasts that share a plan arrive like others, and choose anew what
// differs.
#include "tandem/comm/broadcast_plan.hpp"

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/comm/endpoint_test_support.hpp"

namespace tandem::comm::broadcast_plan_test {
namespace {

using endpoint_test::Bytes;
using endpoint_test::pattern;
using endpoint_test::World;

using Plan = std::shared_ptr<BroadcastPlan>;

/// All ranks but the first, with falling priorities, and some that do not count.
std::vector<Recipient> everybody(const World& world) {
  std::vector<Recipient> recipients{{Rank{0}, 3}};
  for (std::uint32_t rank = 1; rank < world.at.size(); ++rank)
    recipients.push_back({Rank{rank}, -static_cast<int>(rank)});
  recipients.push_back({Rank{1}, -100});
  return recipients;
}

/// Broadcasts, and checks what arrives. Returns whether the tree was the plan's.
bool broadcast(World& world, std::span<const Recipient> recipients, std::size_t bytes, McastOptions options) {
  const std::uint64_t before = world.at[0]->statistics().plans_reused;
  static unsigned seed = 0;
  const Bytes sent = pattern(bytes, ++seed);
  std::vector<Bytes> got(world.at.size());
  std::vector<std::pair<std::uint32_t, Request>> receives;
  std::vector<bool> there(world.at.size(), false);
  for (const Recipient& recipient : recipients) {
    const std::uint32_t rank = recipient.rank.value();
    if (rank == 0 || there[rank]) continue;
    there[rank] = true;
    got[rank].resize(bytes);
    receives.emplace_back(rank, world.at[rank]->irecv(Rank{0}, Tag{1}, got[rank]));
  }
  EXPECT_EQ(world.at[0]->wait(world.at[0]->mcast(recipients, Tag{1}, sent, options)).ending, Ending::done);
  for (const auto& [rank, receive] : receives) {
    EXPECT_EQ(world.at[rank]->wait(receive).ending, Ending::done);
    EXPECT_EQ(got[rank], sent) << "rank " << rank;
  }
  return world.at[0]->statistics().plans_reused > before;
}

class BroadcastPlanTest : public testing::TestWithParam<TreeKind> {};

TEST_P(BroadcastPlanTest, LaterBroadcastsTakeTheTreeOfTheFirst) {
  for (const std::uint32_t ranks : {3u, 8u, 19u}) {
    for (const std::size_t bytes : {0u, 1u, 1000u, 50'000u}) {
      World world(ranks, {.ranks_per_host = ranks % 2 == 0 ? 1u : 3u}, {}, ranks);
      const McastOptions options{.tree = GetParam(), .plan = std::make_shared<BroadcastPlan>()};
      unsigned reused = 0;
      for (int round = 0; round < 6; ++round) reused += broadcast(world, everybody(world), bytes, options) ? 1 : 0;
      EXPECT_GE(reused, 4u) << "of 6 at least all but the first one, and one after the network was measured";
    }
  }
}

/// Random broadcasts and messages of one key, many under way. Returns the time of the end, and what was sent.
std::pair<std::int64_t, std::uint64_t> play(std::uint64_t seed, TreeKind tree, bool with_plans, std::uint64_t& reused) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<unsigned>(random() % n); };
  const std::uint32_t ranks = 3 + below(8);
  const bool copies = below(2) == 0;
  World world(ranks, {.ranks_per_host = 1 + below(3), .copies = copies}, {}, seed);
  std::vector<std::vector<Recipient>> lists(3);
  std::vector<Plan> plans(3);
  for (unsigned i = 0; i < lists.size(); ++i) {
    for (std::uint32_t rank = 1; rank < ranks; ++rank)
      if (i == 0 || below(3) != 0) lists[i].push_back({Rank{rank}, static_cast<int>(below(3))});
    if (with_plans) plans[i] = std::make_shared<BroadcastPlan>();
  }
  std::vector<Bytes> sent;
  std::vector<std::vector<std::size_t>> expected(ranks);
  std::vector<Request> posted;
  sent.reserve(40);
  for (std::size_t i = 0; i < 40; ++i) {
    sent.push_back(pattern(std::vector<std::size_t>{100, 100, 100, 30'000}[below(4)], static_cast<unsigned>(i)));
    if (below(5) == 0) {
      const std::uint32_t to = 1 + below(ranks - 1);
      expected[to].push_back(i);
      posted.push_back(world.at[0]->isend(Rank{to}, Tag{1}, sent[i]));
    } else {
      const unsigned list = below(lists.size());
      for (const Recipient& recipient : lists[list]) expected[recipient.rank.value()].push_back(i);
      posted.push_back(world.at[0]->mcast(lists[list], Tag{1}, sent[i], {.tree = tree, .plan = plans[list]}));
    }
    if (below(3) == 0) world.loop.step_some(below(100));
  }
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    for (const std::size_t which : expected[rank]) {
      Bytes got(sent[which].size());
      EXPECT_EQ(world.at[rank]->wait(world.at[rank]->irecv(Rank{0}, Tag{1}, got)).ending, Ending::done)
          << "seed " << seed;
      EXPECT_EQ(got, sent[which]) << "seed " << seed << ", rank " << rank;
    }
  }
  for (const Request& request : posted) EXPECT_EQ(world.at[0]->wait(request).ending, Ending::done);
  reused += world.at[0]->statistics().plans_reused;
  std::uint64_t packets = 0;
  for (const auto& endpoint : world.at) packets += endpoint->statistics().packets_sent;
  return {world.loop.now_ns(), packets};
}

TEST_P(BroadcastPlanTest, TrafficIsTheSameWithPlansAndWithout) {
  std::uint64_t reused = 0, without = 0;
  for (std::uint64_t seed = 1; seed <= endpoint_test::seeds(20); ++seed) {
    const auto planned = play(seed, GetParam(), true, reused);
    const auto plain = play(seed, GetParam(), false, without);
    // With `automatic` a plan has the tree that was best when its first broadcast started.
    if (GetParam() == TreeKind::automatic) continue;
    EXPECT_EQ(planned, plain) << "seed " << seed;
  }
  EXPECT_GE(reused, endpoint_test::seeds(20));
  EXPECT_EQ(without, 0u);
}

INSTANTIATE_TEST_SUITE_P(Trees, BroadcastPlanTest,
                         testing::Values(TreeKind::flat, TreeKind::chain, TreeKind::kary, TreeKind::binomial,
                                         TreeKind::two_tree, TreeKind::delegate, TreeKind::two_groups,
                                         TreeKind::automatic),
                         [](const auto& tested) { return std::string(tree_name(tested.param)); });

TEST(BroadcastPlan, WhatIsNotAlikeIsChosenAnew) {
  World world(9);
  std::vector<Recipient> all = everybody(world);
  McastOptions options{.tree = TreeKind::chain, .plan = std::make_shared<BroadcastPlan>()};
  const auto expect_anew = [&](const char* what, std::size_t bytes) {
    EXPECT_FALSE(broadcast(world, all, bytes, options)) << what;
    EXPECT_TRUE(broadcast(world, all, bytes, options)) << "after " << what;
  };
  expect_anew("the first", 1000);
  expect_anew("other bytes, though of one class of sizes", 1001);
  expect_anew("and back", 1000);
  options.tree = TreeKind::kary;
  expect_anew("another tree", 1000);
  options.tree.arity = 3;
  expect_anew("another arity", 1000);
  options.tree.segment_bytes = 100;
  expect_anew("other segments", 1000);
  options.tree.by_priority = false;
  expect_anew("another order", 1000);
  options.tree.by_priority = true;
  expect_anew("and back, too", 1000);
  all[3].priority = 7;
  expect_anew("another priority", 1000);
  all.erase(all.begin() + 4);
  expect_anew("a recipient less", 1000);
  std::swap(all[5], all[6]);
  EXPECT_TRUE(broadcast(world, all, 1000, options)) << "sorted by priority they are the same";
  options.plan = std::make_shared<BroadcastPlan>();
  expect_anew("an empty plan", 1000);
}

TEST(BroadcastPlan, WhatWasChosenBeforeTheNetworkWasMeasuredIsChosenAgain) {
  World world(5, {.latency_min_ns = 40'000, .latency_max_ns = 50'000});
  const std::vector<Recipient> all = everybody(world);
  const McastOptions options{.plan = std::make_shared<BroadcastPlan>()};
  EXPECT_FALSE(broadcast(world, all, 3000, options));
  EXPECT_TRUE(broadcast(world, all, 3000, options));
  const Bytes large = pattern(1'000'000, 1);
  for (int round = 0; round < 5; ++round) {
    Bytes got(large.size());
    const Request receive = world.at[0]->irecv(Rank{1}, Tag{2}, got);
    world.at[1]->wait(world.at[1]->isend(Rank{0}, Tag{2}, large));
    world.at[0]->wait(receive);
  }
  EXPECT_FALSE(broadcast(world, all, 3000, options))
      << "the network has turned out to be slower than its transport says";
  EXPECT_TRUE(broadcast(world, all, 3000, options));
}

TEST(BroadcastPlan, ARankThatIsDeadIsNotPlannedFor) {
  for (const std::uint32_t dead : {1u, 3u, 6u}) {
    World world(7);
    std::vector<Recipient> all = everybody(world), others = all;
    std::erase_if(others, [&](const Recipient& recipient) { return recipient.rank.value() == dead; });
    const McastOptions options{.tree = TreeKind::chain, .plan = std::make_shared<BroadcastPlan>()};
    broadcast(world, all, 1000, options);
    EXPECT_TRUE(broadcast(world, all, 1000, options));
    world.network->kill(Rank{dead});
    world.settle();
    for (int round = 0; round < 3; ++round) {
      const std::uint64_t before = world.at[0]->statistics().plans_reused;
      const Bytes sent = pattern(1000, dead);
      std::vector<Bytes> got(7, Bytes(sent.size()));
      const Request mcast = world.at[0]->mcast(all, Tag{1}, sent, options);
      for (const Recipient& recipient : others) {
        const std::uint32_t rank = recipient.rank.value();
        if (rank == 0 || got[rank] == sent) continue;
        EXPECT_EQ(world.at[rank]->wait(world.at[rank]->irecv(Rank{0}, Tag{1}, got[rank])).ending, Ending::done);
        EXPECT_EQ(got[rank], sent);
      }
      EXPECT_EQ(world.at[0]->wait(mcast).ending, Ending::peer_dead);
      EXPECT_EQ(world.at[0]->statistics().plans_reused - before, round == 0 ? 0u : 1u);
    }
  }
}

TEST(BroadcastPlan, ALateRecipientIsPlannedForTogetherWithTheOthers) {
  World world(4);
  const McastOptions options{.hold_ns = 1'000'000, .plan = std::make_shared<BroadcastPlan>()};
  const std::vector<Recipient> first{{Rank{1}, 0}, {Rank{2}, 0}};
  const Bytes sent = pattern(500, 1);
  for (int round = 0; round < 4; ++round) {
    const Request mcast = world.at[0]->mcast(first, Tag{1}, sent, options);
    if (round % 2 == 1) {
      EXPECT_TRUE(world.at[0]->append(mcast, {Rank{3}, 1}));
      EXPECT_EQ(world.at[3]->wait(world.at[3]->irecv_owned(Rank{0}, Tag{1})).bytes, 500u);
    }
    for (const std::uint32_t rank : {1u, 2u})
      EXPECT_EQ(world.at[rank]->wait(world.at[rank]->irecv_owned(Rank{0}, Tag{1})).bytes, 500u);
    world.at[0]->wait(mcast);
  }
  EXPECT_EQ(world.at[0]->statistics().plans_reused, 0u);
}

TEST(BroadcastPlan, APlanMayGoWhileItsBroadcastsAreUnderWay) {
  World world(5);
  const Bytes sent = pattern(40'000, 1);
  std::vector<Request> posted;
  {
    const auto plan = std::make_shared<BroadcastPlan>();
    for (int i = 0; i < 4; ++i) posted.push_back(world.at[0]->mcast(everybody(world), Tag{1}, sent, {.plan = plan}));
  }
  for (std::uint32_t rank = 1; rank < 5; ++rank)
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(world.at[rank]->wait(world.at[rank]->irecv_owned(Rank{0}, Tag{1})).bytes, sent.size());
  for (const Request& request : posted) EXPECT_EQ(world.at[0]->wait(request).ending, Ending::done);
}

TEST(BroadcastPlan, ThreadsShareOne) {
  constexpr std::uint32_t ranks = 5, threads = 4, rounds = 50;
  LoopNetwork network({.ranks = ranks});
  base::Log log{base::LogLevel::error};
  std::vector<std::unique_ptr<Endpoint>> at;
  at.reserve(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    at.push_back(Endpoint::open_loop(network, Rank{rank}, {}, log, nullptr));
  std::vector<Recipient> recipients;
  for (std::uint32_t rank = 1; rank < ranks; ++rank) recipients.push_back({Rank{rank}, 0});
  const auto plan = std::make_shared<BroadcastPlan>();
  std::vector<std::thread> running;
  std::atomic<unsigned> wrong{0};
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      for (std::uint32_t round = 0; round < rounds; ++round) {
        const Bytes sent = pattern(round % 10 == 0 ? 2000 : 300, thread * 1000 + round);
        const Request mcast = at[0]->mcast(recipients, Tag{thread}, sent, {.plan = plan});
        for (std::uint32_t rank = 1; rank < ranks; ++rank) {
          Bytes got(sent.size());
          at[rank]->wait(at[rank]->irecv(Rank{0}, Tag{thread}, got));
          wrong += got == sent ? 0 : 1;
        }
        at[0]->wait(mcast);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(at[0]->statistics().mcasts_started, threads * rounds);
}

}  // namespace
}  // namespace tandem::comm::broadcast_plan_test
