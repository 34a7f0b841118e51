// tandem/runtime/device/emulation_test.cpp: how much longer kernels take in company.
#include "tandem/runtime/device/emulation.hpp"

#include <gtest/gtest.h>

namespace tandem::runtime::emulation_test {
namespace {

TEST(SlowDown, IsLinearBetweenPointsAndConstantOutside) {
  const SlowDown slow_down({{2, 1.0}, {4, 1.5}, {8, 3.5}});
  EXPECT_EQ(slow_down.factor(1), 1.0);
  EXPECT_EQ(slow_down.factor(2), 1.0);
  EXPECT_EQ(slow_down.factor(3), 1.25);
  EXPECT_EQ(slow_down.factor(4), 1.5);
  EXPECT_EQ(slow_down.factor(6), 2.5);
  EXPECT_EQ(slow_down.factor(8), 3.5);
  EXPECT_EQ(slow_down.factor(100), 3.5);
}

TEST(SlowDown, WithoutPointsCompanyChangesNothing) { EXPECT_EQ(SlowDown().factor(7), 1.0); }

}  // namespace
}  // namespace tandem::runtime::emulation_test
