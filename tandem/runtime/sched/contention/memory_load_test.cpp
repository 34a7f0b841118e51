// tandem/runtime/sched/contention/memory_load_test.cpp: shares of memory, use of memory learnt from them, and the
// duration of the next kernel.
#include "tandem/runtime/sched/contention/memory_load.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tandem/runtime/sched/placing/test_machine.hpp"

namespace tandem::runtime::memory_load_test {
namespace {

/// A core moves 10 bytes per ns alone, and the bus carries 20: so two cores have their full rate, and four have half of
/// it. Messages take a fifth.
MemoryShares shares_of_two() {
  return {.core_bytes_per_ns = 10,
          .stream_bytes_per_ns = 5,
          .of_cores = {1, 1, 1, 2.0 / 3, 0.5},
          .beside_messages = {1, 1, 0.8, 1.6 / 3, 0.4},
          .of_streams = {1, 1, 0.6, 0.2, 0.2}};
}

/// Four cores, and a device with a memory.
Machine four_cores_and_a_card() {
  Machine machine;
  machine.workers.assign(4, {DeviceKind::cpu, 0});
  machine.workers.push_back({DeviceKind::user, 1});
  machine.distance.assign(4, {1, 1, 1, 1});
  machine.add_node({.kind = NodeKind::device, .name = "card"});
  machine.check();
  return machine;
}

constexpr unsigned kMoves = 0, kComputes = 1, kHalf = 2;
constexpr unsigned kCard = 4;

struct Scene {
  Machine machine = four_cores_and_a_card();
  MemoryLoad load;
  std::int64_t now_ns = 1'000;
  explicit Scene(const MemoryGateRule& rule = {}) : load(shares_of_two(), machine, rule) {
    load.begin_kind(kMoves, 10'000, {});  // at least 1000 ns
    load.begin_kind(kComputes, 100, {});
    load.begin_kind(kHalf, 5'000, {});
  }
  /// Runs tasks of the kind on so many cores at once, each for the given time.
  void run(unsigned kind, unsigned cores, std::int64_t duration_ns) {
    std::vector<float> demands;
    for (unsigned worker = 0; worker < cores; ++worker)
      demands.push_back(load.charge(kind, worker, duration_ns, now_ns));
    now_ns += duration_ns;
    for (unsigned worker = 0; worker < cores; ++worker) {
      load.learn(kind, worker, static_cast<double>(duration_ns), now_ns);
      load.forget(demands[worker], worker, duration_ns, now_ns);
    }
  }
  double expected_ns(unsigned kind, unsigned worker) const {
    Estimate kernel{.mean_ns = 7, .known = true};
    load.adjust(kernel, load.use_of(kind), worker);
    return kernel.mean_ns;
  }
};

TEST(MemoryShares, LieOnLinesBetweenNumbersOfCores) {
  const MemoryShares shares = shares_of_two();
  EXPECT_EQ(shares.share_of(0.5, false), 1);
  EXPECT_DOUBLE_EQ(shares.share_of(2.5, false), (1 + 2.0 / 3) / 2);
  EXPECT_EQ(shares.share_of(9, false), 0.5);
  EXPECT_EQ(shares.slowdown(1, 4, false), 2);
  EXPECT_EQ(shares.slowdown(1, 4, true), 2.5);
  EXPECT_EQ(shares.slowdown(0.5, 4, false), 1) << "that is left for it";
}

TEST(MemoryShares, SlowLinksSufferLater) {
  const MemoryShares shares = shares_of_two();
  EXPECT_EQ(shares.copy_bytes_per_ns(5, 0), 5);
  EXPECT_EQ(shares.copy_bytes_per_ns(5, 2), 3);
  EXPECT_EQ(shares.copy_bytes_per_ns(3, 2), 3) << "so much is left";
  EXPECT_DOUBLE_EQ(shares.copy_bytes_per_ns(10, 2), 6) << "a faster one asks for more";
  EXPECT_DOUBLE_EQ(shares.copy_bytes_per_ns(2, 4), 1) << "it has a part in any case";
}

TEST(MemoryLoad, ATaskTakesLongerBesideOthersThatUseMemory) {
  Scene scene;
  EXPECT_EQ(scene.expected_ns(kMoves, 0), 7) << "nothing is known";
  for (int i = 0; i < 4; ++i) scene.run(kMoves, 1, 1'000);
  EXPECT_EQ(scene.load.use_of(kMoves).demand, 1);
  EXPECT_TRUE(scene.load.use_of(kMoves).is_bound);
  EXPECT_DOUBLE_EQ(scene.expected_ns(kMoves, 0), 1'000);
  for (unsigned worker = 1; worker < 4; ++worker) scene.load.charge(kMoves, worker, 1'000, scene.now_ns);
  EXPECT_DOUBLE_EQ(scene.expected_ns(kMoves, 0), 2'000) << "it would be the fourth";
  EXPECT_DOUBLE_EQ(scene.expected_ns(kMoves, 1), 1'500) << "instead of what that worker has";
  EXPECT_EQ(scene.expected_ns(kMoves, kCard), 7) << "a card has a memory of its own";
  EXPECT_EQ(scene.load.cores(0), 3);
  scene.load.set_messages(true, scene.now_ns);
  EXPECT_DOUBLE_EQ(scene.expected_ns(kMoves, 0), 2'500);
}

TEST(MemoryLoad, WhatIsLearntIsTheTimeAlone) {
  Scene scene;
  scene.run(kMoves, 1, 9'000);
  EXPECT_EQ(scene.load.use_of(kMoves).alone_ns, 0) << "the first of a kind does not count";
  scene.run(kMoves, 4, 2'000);
  EXPECT_EQ(scene.load.use_of(kMoves).demand, 0.5) << "four halves fill the bus just so";
  EXPECT_TRUE(scene.load.use_of(kMoves).is_bound) << "all the same";
  scene.run(kMoves, 1, 1'000);
  EXPECT_EQ(scene.load.use_of(kMoves).demand, 1) << "it asks for more";
  for (int i = 0; i < 20; ++i) scene.run(kMoves, 4, 2'000);
  EXPECT_NEAR(scene.load.use_of(kMoves).alone_ns, 1'000, 50);
  EXPECT_NEAR(scene.expected_ns(kMoves, 0), 1'000, 50) << "beside nobody";
}

TEST(MemoryLoad, ATaskThatComputesIsNotHindered) {
  Scene scene;
  for (int i = 0; i < 8; ++i) scene.run(kComputes, 4, 1'000);
  EXPECT_NEAR(scene.load.use_of(kComputes).demand, 0.01, 1e-6);
  EXPECT_EQ(scene.expected_ns(kComputes, 0), 7);
  EXPECT_FALSE(scene.load.use_of(kComputes).is_bound);
}

TEST(MemoryLoad, ATaskThatAsksForAPartOfACoresBandwidthIsHinderedLater) {
  Scene scene;
  for (int i = 0; i < 4; ++i) scene.run(kHalf, 1, 1'000);
  EXPECT_DOUBLE_EQ(scene.load.use_of(kHalf).demand, 0.5);
  for (unsigned worker = 1; worker < 4; ++worker) scene.load.charge(kHalf, worker, 1'000, scene.now_ns);
  EXPECT_DOUBLE_EQ(scene.load.cores(0), 1.5);
  EXPECT_DOUBLE_EQ(scene.expected_ns(kHalf, 0), 1'000) << "four halves fill the bus just so";
}

/// The task has 10000 bytes, and ends before memory could have moved them beside three others.
TEST(MemoryLoad, ATaskWhoseDataIsInCachesIsNotHindered) {
  Scene scene;
  for (int i = 0; i < 30; ++i) scene.run(kMoves, 4, 600);
  EXPECT_LT(scene.load.use_of(kMoves).demand, 0.01);
}

TEST(MemoryLoad, TheCodeletHasTheLastWord) {
  Scene scene;
  scene.load.begin_kind(kMoves, 10'000, false);
  scene.load.begin_kind(kComputes, 0, true);
  for (int i = 0; i < 4; ++i) scene.run(kMoves, 1, 1'000), scene.run(kComputes, 4, 2'000);
  EXPECT_EQ(scene.load.use_of(kMoves).demand, 0);
  EXPECT_EQ(scene.load.use_of(kComputes).demand, 1);
  EXPECT_NEAR(scene.load.use_of(kComputes).alone_ns, 1'000, 1);
}

TEST(MemoryLoad, TasksThatWaitForMemoryHinderNobodyMeanwhile) {
  Scene scene({.most = 2, .most_beside_messages = 1});
  std::vector<float> demands;
  for (int round = 0; round < 3; ++round) {
    demands.clear();
    for (unsigned worker = 0; worker < 4; ++worker)
      demands.push_back(scene.load.charge(kMoves, worker, 1'000, scene.now_ns));
    scene.now_ns += 1'000;  // two of the four ran, and memory did not limit them
    for (unsigned worker = 0; worker < 2; ++worker) scene.load.learn(kMoves, worker, 1'000, scene.now_ns);
    for (unsigned worker = 0; worker < 4; ++worker) scene.load.forget(demands[worker], worker, 1'000, scene.now_ns);
    EXPECT_TRUE(scene.load.use_of(kMoves).is_bound) << round << ": otherwise caches seem to serve it";
  }
  EXPECT_NEAR(scene.load.use_of(kMoves).alone_ns, 1'000, 1);
  EXPECT_TRUE(scene.load.is_idle());
}

TEST(MemoryLoad, ATaskMovesFromCoreToCore) {
  Scene scene;
  scene.load.begin_kind(kHalf, 5'000, true);
  const float demand = scene.load.charge(kHalf, 0, 1'000, scene.now_ns);
  EXPECT_EQ(scene.load.cores(0), 1);
  scene.load.move(demand, 0, 2, 1'000, scene.now_ns);
  EXPECT_EQ(scene.load.cores(0), 1);
  EXPECT_EQ(scene.load.bound_cores(0), 1);
  scene.load.forget(demand, 2, 1'000, scene.now_ns);
  EXPECT_TRUE(scene.load.is_idle());
}

TEST(MemoryLoad, CopiesHaveWhatCoresLeave) {
  Scene scene;
  for (int i = 0; i < 4; ++i) scene.run(kMoves, 1, 1'000);
  scene.now_ns += 1'000'000;  // a long time later
  scene.run(kComputes, 1, 1'000);
  EXPECT_NEAR(scene.load.copy_bytes_per_ns(5, 0, 1), 5, 0.1);
  std::vector<float> demands;
  for (unsigned worker = 0; worker < 4; ++worker)
    demands.push_back(scene.load.charge(kMoves, worker, 2'000, scene.now_ns));
  scene.now_ns += 100'000;
  for (unsigned worker = 0; worker < 4; ++worker) scene.load.forget(demands[worker], worker, 2'000, scene.now_ns);
  EXPECT_NEAR(scene.load.copy_bytes_per_ns(5, 0, 1), 1, 0.2);
  EXPECT_EQ(scene.load.copy_bytes_per_ns(5, 1, 1), 5) << "between cards";
  EXPECT_TRUE(scene.load.is_idle());
}

}  // namespace
}  // namespace tandem::runtime::memory_load_test
