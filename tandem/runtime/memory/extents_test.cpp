// tandem/runtime/memory/extents_test.cpp: places in a file never overlap, free ones merge, and the file stays short.
#include "tandem/runtime/memory/extents.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::runtime::extents_test {
namespace {

TEST(Extents, AreMergedAndTakenAgain) {
  Extents extents;
  EXPECT_EQ(extents.take(10), 0U);
  EXPECT_EQ(extents.take(20), 10U);
  EXPECT_EQ(extents.take(30), 30U);
  EXPECT_EQ(extents.take(5), 60U);
  extents.give_back(0, 10);
  extents.give_back(30, 30);
  EXPECT_EQ(extents.free_count(), 2U);
  extents.give_back(10, 20);
  EXPECT_EQ(extents.free_count(), 1U) << "one extent of 60";
  EXPECT_EQ(extents.take(60), 0U);
  EXPECT_EQ(extents.end(), 65U);
}

TEST(Extents, TheSmallestThatFitsIsTaken) {
  Extents extents;
  extents.take(100);
  extents.take(1);
  extents.take(40);
  extents.take(1);
  extents.give_back(0, 100);
  extents.give_back(101, 40);
  EXPECT_EQ(extents.take(30), 101U);
  EXPECT_EQ(extents.take(30), 0U);
  EXPECT_EQ(extents.take(10), 131U);
}

TEST(Extents, TheEndOfTheFileMovesBack) {
  Extents extents;
  extents.take(10);
  extents.take(10);
  extents.take(10);
  extents.give_back(10, 10);
  extents.give_back(20, 10);
  EXPECT_EQ(extents.end(), 10U);
  EXPECT_EQ(extents.free_count(), 0U);
  extents.give_back(0, 10);
  EXPECT_EQ(extents.end(), 0U);
}

TEST(Extents, HolesTakeNothingOfTheDisk) {
  Extents extents;
  for (int i = 0; i < 5; ++i) extents.take(10);
  extents.give_back(10, 10);
  extents.give_back(30, 10);
  EXPECT_EQ(extents.disk_bytes(), 50U);
  EXPECT_EQ(extents.take_holes().size(), 2U);
  EXPECT_EQ(extents.disk_bytes(), 30U);
  EXPECT_TRUE(extents.take_holes().empty()) << "they are holes already";
  extents.give_back(20, 10);
  EXPECT_EQ(extents.disk_bytes(), 50U) << "the merged extent is to be punched as a whole";
  EXPECT_EQ(extents.take_holes().size(), 1U);
  EXPECT_EQ(extents.take(10), 10U);
  EXPECT_EQ(extents.disk_bytes(), 30U) << "what is left of a hole is one";
  EXPECT_TRUE(extents.check_invariants());
}

/// Pieces of random sizes come and go, with about `alive` of them at a time. Returns the largest length of the file.
std::uint64_t longest_file(int pieces, std::size_t alive, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Extents extents;
  std::map<std::uint64_t, std::uint64_t> taken;
  std::uint64_t used = 0, longest = 0;
  for (int i = 0; i < pieces; ++i) {
    const std::uint64_t bytes = 1 + random() % 1'000;
    const std::uint64_t at = extents.take(bytes);
    const auto next = taken.lower_bound(at);
    EXPECT_TRUE(next == taken.end() || at + bytes <= next->first);
    EXPECT_TRUE(next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= at);
    taken.emplace(at, bytes);
    used += bytes;
    while (taken.size() > alive || (taken.size() > 1 && random() % 4 == 0)) {
      auto leaves = taken.begin();
      std::advance(leaves, static_cast<std::ptrdiff_t>(random() % taken.size()));
      extents.give_back(leaves->first, leaves->second);
      used -= leaves->second;
      taken.erase(leaves);
    }
    if (random() % 64 == 0) extents.take_holes();
    EXPECT_EQ(extents.used(), used);
    EXPECT_TRUE(extents.check_invariants());
    if (testing::Test::HasFailure()) break;
    longest = std::max(longest, extents.end());
  }
  return longest;
}

TEST(Extents, AFileDoesNotGrowWithTheNumberOfPieces) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const std::uint64_t in_short_run = longest_file(1'000, 50, seed), in_long_run = longest_file(20'000, 50, seed);
    EXPECT_LE(in_long_run, in_short_run + in_short_run / 2) << "seed " << seed;
    EXPECT_LE(in_long_run, 2U * 50 * 1'000) << "twice the largest pieces";
  }
}

}  // namespace
}  // namespace tandem::runtime::extents_test
