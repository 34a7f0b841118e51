// tandem/comm/engine/held_broadcasts_test.cpp: which broadcasts a pass looks at, in which order they start, and what
// that costs.
#include "tandem/comm/engine/held_broadcasts.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

namespace tandem::comm::internal::held_broadcasts_test {
namespace {

struct Held {
  std::uint64_t id;
  std::uint64_t key_of;
  std::int64_t starts_at_ns;
  std::uint64_t key() const { return key_of; }
};
using HeldOnes = BasicHeldBroadcasts<Held, std::uint64_t, std::hash<std::uint64_t>>;

/// Broadcasts that start when their time has come.
struct Room {
  void post(std::uint64_t key, std::int64_t starts_at_ns) {
    held.add(all.emplace_back(Held{all.size() + 1, key, starts_at_ns}));
  }
  void pass(std::int64_t now_ns) {
    held.start_due(now_ns, [&](Held& one) {
      ++looks;
      if (now_ns < one.starts_at_ns) return HeldOnes::Look{.again_ns = one.starts_at_ns, .due_ns = one.starts_at_ns};
      held.remove(one);
      started.push_back(one.id);
      return HeldOnes::Look{.started = true};
    });
  }
  std::size_t left = 0;
  HeldOnes held{left};
  std::deque<Held> all;
  std::vector<std::uint64_t> started;
  std::size_t looks = 0;
};

TEST(HeldBroadcasts, StartInTheOrderOfPostingAndNeverBeforeAnOlderOneOfTheirKey) {
  Room room;
  room.post(7, 100);
  room.post(8, 0);
  room.post(7, 0);
  room.post(8, 0);
  EXPECT_EQ(room.left, 4u);
  EXPECT_EQ(room.held.first_id(), 1u);
  room.pass(0);
  EXPECT_EQ(room.started, (std::vector<std::uint64_t>{2, 4}));
  EXPECT_EQ(room.held.due_ns(), 100);
  room.pass(99);
  EXPECT_EQ(room.left, 2u);
  room.pass(100);
  EXPECT_EQ(room.started, (std::vector<std::uint64_t>{2, 4, 1, 3}));
  EXPECT_EQ(room.held.due_ns(), HeldOnes::kNever);
  EXPECT_EQ(room.left, 0u);
}

TEST(HeldBroadcasts, TheNextOfAKeyIsLookedAtWhenTheOldestIsCancelled) {
  Room room;
  room.post(7, 1000);
  room.post(7, 5);
  room.post(7, 5);
  room.pass(10);
  EXPECT_TRUE(room.started.empty());
  room.held.remove(room.all[1]);  // not the oldest
  room.pass(10);
  EXPECT_TRUE(room.started.empty());
  room.held.remove(room.all[0]);
  EXPECT_EQ(room.held.due_ns(), 0);
  room.pass(10);
  EXPECT_EQ(room.started, (std::vector<std::uint64_t>{3}));
}

TEST(HeldBroadcasts, RandomOnesAllStartInOrder) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::minstd_rand random(seed + 1);
    Room room;
    std::int64_t now_ns = 0;
    for (int step = 0; step < 200; ++step) {
      if (random() % 2 == 0) room.post(random() % 4, now_ns + static_cast<std::int64_t>(random() % 50));
      now_ns += random() % 5;
      if (random() % 3 == 0) room.pass(now_ns);
      if (random() % 20 == 0) room.held.look_at_all();
    }
    room.pass(now_ns + 1000);
    ASSERT_EQ(room.started.size(), room.all.size()) << "seed " << seed;
    for (std::uint64_t key = 0; key < 4; ++key) {
      std::uint64_t last = 0;
      for (const std::uint64_t id : room.started) {
        if (room.all[id - 1].key_of != key) continue;
        ASSERT_LT(last, id) << "seed " << seed;
        last = id;
      }
    }
  }
}

/// Steps are as frequent as polls and each makes a pass: held broadcasts must cost nothing.
TEST(HeldBroadcasts, APassLooksOnlyAtThoseWhoseTimeHasCome) {
  for (const std::size_t count : {100u, 10'000u}) {
    Room room;
    for (std::size_t i = 0; i < count; ++i) room.post(i, 1'000'000);
    for (std::size_t i = 0; i < count; ++i) room.post(i % 10, 0);  // behind those of ten keys
    for (int step = 0; step < 1000; ++step) room.pass(step);
    EXPECT_EQ(room.looks, count) << "each is looked at once, when it is new";
    room.pass(1'000'000);
    EXPECT_EQ(room.started.size(), 2 * count);
    EXPECT_EQ(room.looks, 3 * count) << "and once when it starts";
  }
}

/// A broadcast to many ranks waits for their addresses, which come one after the other.
TEST(HeldBroadcasts, EachRankIsAskedOnceAndOneMorePerLook) {
  for (const std::size_t ranks : {100u, 10'000u}) {
    WaitingRanks waiting;
    std::vector<bool> here(ranks, false);
    std::size_t asked = 0;
    const auto waits = [&](std::size_t rank) { return ++asked, !here[rank]; };
    for (std::size_t i = 0; i < ranks; ++i) {
      EXPECT_TRUE(waiting.any(ranks, waits));
      here[i * 7 % ranks] = true;  // 7 and the numbers of ranks have no common divisor
    }
    EXPECT_FALSE(waiting.any(ranks, waits));
    EXPECT_LE(asked, 2 * ranks + 1);
    waiting.ask_again();
    EXPECT_FALSE(waiting.any(ranks, waits));
  }
}

}  // namespace
}  // namespace tandem::comm::internal::held_broadcasts_test
