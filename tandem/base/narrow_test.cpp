// tandem/base/narrow_test.cpp: conversions to smaller integers.
#include "tandem/base/narrow.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace tandem::base::narrow_test {
namespace {

TEST(Narrow, KeepsWhatFits) {
  EXPECT_EQ(narrow<std::uint32_t>(std::uint64_t{UINT32_MAX}), UINT32_MAX);
  EXPECT_EQ(narrow<std::int8_t>(-128), -128);
}

TEST(NarrowDeathTest, EndsTheProcessForWhatDoesNot) {
  EXPECT_DEATH(static_cast<void>(narrow<std::uint32_t>(std::uint64_t{UINT32_MAX} + 1)), "in_range");
  EXPECT_DEATH(static_cast<void>(narrow<std::uint32_t>(-1)), "in_range");
}

TEST(Saturated, EndsAtTheLimits) {
  EXPECT_EQ(saturated<std::uint32_t>(UINT64_MAX), UINT32_MAX);
  EXPECT_EQ(saturated<std::uint32_t>(-5), 0U);
  EXPECT_EQ(saturated<std::int8_t>(-1000), -128);
  EXPECT_EQ(saturated<std::int8_t>(7U), 7);
}

}  // namespace
}  // namespace tandem::base::narrow_test
