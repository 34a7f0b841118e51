// tandem/runtime/wait/find_cycle_test.cpp: cycles of waits, which no program can make through the API.
#include "tandem/runtime/wait/find_cycle.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace tandem::runtime::find_cycle_test {
namespace {

TEST(FindCycle, AGraphWithoutCyclesHasNone) {
  EXPECT_TRUE(find_cycle<int>({}, {}).empty());
  EXPECT_TRUE(find_cycle<int>({1, 2, 3, 4}, {{1, {2, 3}}, {2, {4}}, {3, {4}}}).empty());
}

TEST(FindCycle, NamesThoseThatWaitForEachOtherAndNoOthers) {
  // 1 waits for 2, which is outside the cycle of 3, 4, 5.
  EXPECT_EQ(find_cycle<int>({1, 2, 3, 4, 5}, {{1, {2}}, {2, {3}}, {3, {4}}, {4, {5}}, {5, {3}}}),
            (std::vector<int>{3, 4, 5}));
}

TEST(FindCycle, ANodeThatWaitsForItselfIsACycle) { EXPECT_EQ(find_cycle<int>({7}, {{7, {7}}}), (std::vector<int>{7})); }

TEST(FindCycle, LooksAtPartsThatHangNotTogether) {
  EXPECT_EQ(find_cycle<int>({1, 2, 8, 9}, {{1, {2}}, {8, {9}}, {9, {8}}}), (std::vector<int>{8, 9}));
}

TEST(FindCycle, DepthIsNotLimitedByTheStack) {
  constexpr int kDepth = 300'000;
  std::vector<int> nodes(kDepth);
  std::iota(nodes.begin(), nodes.end(), 0);
  WaitsFor<int> waits_for;
  for (int i = 0; i + 1 < kDepth; ++i) waits_for[i] = {i + 1};
  EXPECT_TRUE(find_cycle(nodes, waits_for).empty());
  waits_for[kDepth - 1] = {0};
  EXPECT_EQ(find_cycle(nodes, waits_for).size(), static_cast<std::size_t>(kDepth));
}

}  // namespace
}  // namespace tandem::runtime::find_cycle_test
