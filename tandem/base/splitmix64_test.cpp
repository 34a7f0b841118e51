// tandem/base/splitmix64_test.cpp: the generator gives the published numbers.
#include "tandem/base/splitmix64.hpp"

#include <gtest/gtest.h>

namespace tandem::base::splitmix64_test {
namespace {

TEST(SplitMix64, GivesTheReferenceNumbersOfSeedZero) {
  std::uint64_t state = 0;
  EXPECT_EQ(splitmix64(state), 0xe220a8397b1dcdafU);
  EXPECT_EQ(splitmix64(state), 0x6e789e6aa1b965f4U);
  EXPECT_EQ(splitmix64(state), 0x06c45d188009454fU);
  EXPECT_EQ(state, 3 * kSplitMix64Step);
}

TEST(SplitMix64, MixesEachBitIntoTheOthers) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const int changed =
        __builtin_popcountll(mix64(0x123456789abcdefU) ^ mix64(0x123456789abcdefU ^ (std::uint64_t{1} << bit)));
    EXPECT_GT(changed, 12) << "bit " << bit;
  }
}

}  // namespace
}  // namespace tandem::base::splitmix64_test
