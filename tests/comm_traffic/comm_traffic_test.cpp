// tests/comm_traffic/comm_traffic_test.cpp: random traffic over the loop network, checked by the oracle.
// COMM_TRAFFIC_SEED=n plays one seed, COMM_TRAFFIC_COUNT=n plays that many,
// COMM_TRAFFIC_FRESH=1 begins where nobody has begun before.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "runner.hpp"
#include "tests/environment.hpp"

namespace tandem::comm_traffic::comm_traffic_test {
namespace {

struct Seeds {
  std::uint64_t first;
  std::uint64_t count;
};

Seeds seeds(std::uint64_t count) {
  if (std::getenv("COMM_TRAFFIC_SEED")) return {test::number_of("COMM_TRAFFIC_SEED", 0), 1};
  const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return {test::number_of("COMM_TRAFFIC_FRESH", 0) != 0 ? now : 0, test::number_of("COMM_TRAFFIC_COUNT", count)};
}

/// Plays each seed; what `play` says is what was wrong, or nothing.
template <class Play>
void for_each_seed(std::uint64_t wanted, Play play) {
  const auto [first, count] = seeds(wanted);
  for (std::uint64_t seed = first; seed < first + count; ++seed)
    ASSERT_EQ(play(seed), "") << "COMM_TRAFFIC_SEED=" << seed;
}

std::string play(const Shape& shape, std::uint64_t seed) {
  return Runner(draw_plan(shape, seed), draw_world(shape, seed), seed).run();
}

TEST(CommTraffic, SendsAloneAreMatchedByTheRules) {
  for_each_seed(300, [](std::uint64_t seed) {
    Shape shape = draw_shape(seed);
    shape.broadcast_percent = 0;
    return play(shape, seed);
  });
}

TEST(CommTraffic, SendsAndBroadcastsTogetherAreMatchedByTheRules) {
  for_each_seed(300, [](std::uint64_t seed) {
    Shape shape = draw_shape(seed);
    shape.ranks += 1;
    shape.broadcast_percent = static_cast<unsigned>(20 + seed % 60);
    return play(shape, seed);
  });
}

TEST(CommTraffic, AStoppedRankLosesNothingWhenItGoesOn) {
  for_each_seed(300, [](std::uint64_t seed) {
    Shape shape = draw_shape(seed);
    shape.ranks += 1;
    WorldOptions world = draw_world(shape, seed);
    world.stops = true;
    return Runner(draw_plan(shape, seed), world, seed).run();
  });
}

TEST(CommTraffic, WhatIsTakenBackIsReceivedByNobodyAndTheRestInOrder) {
  for_each_seed(300, [](std::uint64_t seed) {
    Shape shape = draw_shape(seed);
    shape.ranks += 1;
    WorldOptions world = draw_world(shape, seed);
    world.cancels = true;
    return Runner(draw_plan(shape, seed), world, seed).run();
  });
}

/// Broadcasts that travel for so long that hundreds of sends pass them.
TEST(CommTraffic, FloodsOfSendsPassBroadcastsOfOtherKeys) {
  for_each_seed(8, [](std::uint64_t seed) {
    Shape shape = draw_shape(seed);
    shape.ranks = static_cast<std::uint32_t>(3 + seed % 3);
    shape.messages = 3000;
    shape.broadcast_percent = 3;
    shape.wildcard_percent = 0;
    shape.eager_bytes = 2048;
    shape.largest_bytes = 300;
    shape.early_percent = 90;
    WorldOptions world = draw_world(shape, seed);
    world.stops = seed % 2 == 0;
    world.network.packets_in_flight = 16;
    return Runner(draw_plan(shape, seed), world, seed).run();
  });
}

TEST(CommTraffic, ADeathEndsWhatItMustAndNothingElse) {
  for_each_seed(300, [](std::uint64_t seed) {
    Shape shape = draw_shape(seed);
    shape.ranks += 2;
    WorldOptions world = draw_world(shape, seed);
    world.stops = seed % 3 == 0;
    Runner runner(draw_plan(shape, seed), world, seed);
    const std::uint32_t victims[] = {static_cast<std::uint32_t>(seed % shape.ranks)};
    return runner.run_with_deaths(victims, seed % (2 * shape.messages));
  });
}

/// Mostly broadcasts, so that roots die together with those that forward for them.
TEST(CommTraffic, DeathsOfTwoOrThreeAtOnceReachAllRanksConcerned) {
  for_each_seed(300, [](std::uint64_t seed) {
    Shape shape = draw_shape(seed);
    shape.ranks += 4;
    shape.broadcast_percent = static_cast<unsigned>(50 + seed % 50);
    WorldOptions world = draw_world(shape, seed);
    world.stops = seed % 3 == 0;
    Runner runner(draw_plan(shape, seed), world, seed);
    std::vector<std::uint32_t> victims;
    for (std::uint32_t i = 0; i < 2 + seed % 2; ++i)
      victims.push_back(static_cast<std::uint32_t>((seed + i) % shape.ranks));
    return runner.run_with_deaths(victims, seed % (2 * shape.messages));
  });
}

}  // namespace
}  // namespace tandem::comm_traffic::comm_traffic_test
