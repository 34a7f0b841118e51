// tandem/runtime/sched/queues/highest_first_test.cpp: compares it with a map, and counts moves with many priorities.
#include "tandem/runtime/sched/queues/highest_first.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::runtime::highest_first_test {
namespace {

/// A value that counts its moves: the steps besides searches.
struct Counted {
  static inline std::size_t moves = 0;
  int number = 0;
  Counted() = default;
  Counted(Counted&& other) noexcept : number(other.number) { ++moves; }
  Counted& operator=(Counted&& other) noexcept {
    number = other.number;
    ++moves;
    return *this;
  }
};

TEST(HighestFirst, DoesWhatAMapDoes) {
  std::mt19937 random(5);
  for (const unsigned range : {3U, 60U, 70U, 400U, 100'000U}) {
    HighestFirst<int> values;
    std::map<std::int32_t, int> reference;
    for (int i = 0; i < 20'000; ++i) {
      if (random() % 1'000 < 480 || reference.empty()) {
        const auto priority = static_cast<std::int32_t>(random() % range) - 7;
        ++reference[priority];
        ++values[priority];
      } else {
        reference.erase(std::prev(reference.end()));
        values.pop_top();
      }
      ASSERT_EQ(values.empty(), reference.empty());
      if (reference.empty()) continue;
      ASSERT_EQ(values.top_priority(), reference.rbegin()->first);
      ASSERT_EQ(values.top(), reference.rbegin()->second);
      ASSERT_TRUE(i % 64 != 0 || values.check_invariants());
    }
    auto at = reference.begin();
    values.for_each([&](std::int32_t priority, int value) {
      ASSERT_NE(at, reference.end());
      EXPECT_EQ(priority, at->first);
      EXPECT_EQ(value, (at++)->second);
    });
    EXPECT_EQ(at, reference.end());
  }
}

/// Moves of values for each of `count` priorities, added in this order, until all have left.
double moves_each(std::vector<std::int32_t> priorities) {
  HighestFirst<Counted> values;
  Counted::moves = 0;
  for (const std::int32_t priority : priorities) values[priority].number = priority;
  for (std::size_t i = 0; i < priorities.size(); ++i) values.pop_top();
  EXPECT_TRUE(values.empty());
  return static_cast<double>(Counted::moves) / static_cast<double>(priorities.size());
}

TEST(HighestFirst, ManyPrioritiesCostAsManyMovesEachAsFew) {
  std::mt19937 random(9);
  for (const bool is_shuffled : {false, true})
    for (const bool descends : {false, true}) {
      std::vector<double> each;
      for (const int count : {1'000, 64'000}) {
        std::vector<std::int32_t> priorities;
        for (int i = 0; i < count; ++i) priorities.push_back(descends ? -i : i);
        if (is_shuffled) std::shuffle(priorities.begin(), priorities.end(), random);
        each.push_back(moves_each(priorities));
      }
      EXPECT_LT(each[1], 2 * HighestFirst<Counted>::kMostAtHand);
      EXPECT_LT(each[1], 1.5 * each[0] + 2) << "of 64 times as many";
    }
}

TEST(HighestFirst, AWorkerThatTakesAndGivesAtTheEdgeOfTheArrayMovesLittle) {
  HighestFirst<Counted> values;
  for (std::int32_t priority = 0; priority < 10'000; ++priority) values[priority];
  Counted::moves = 0;
  constexpr int kRounds = 10'000;
  for (int i = 0; i < kRounds; ++i) {  // about the size at which the array exchanges values with the map
    const std::int32_t highest = values.top_priority();
    values.pop_top();
    values.pop_top();
    values[highest];
    values[highest - 1];
  }
  EXPECT_LT(Counted::moves, 20U * kRounds);
}

}  // namespace
}  // namespace tandem::runtime::highest_first_test
