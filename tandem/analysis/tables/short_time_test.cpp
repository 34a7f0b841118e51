// tandem/analysis/tables/short_time_test.cpp: times and numbers for people.
#include "tandem/analysis/tables/short_time.hpp"

#include <gtest/gtest.h>

namespace tandem::analysis::short_time_test {
namespace {

TEST(ShortTime, HasThreeDigitsAndTheUnitThatSuitsThem) {
  EXPECT_EQ(short_time(0), "0 ns");
  EXPECT_EQ(short_time(999.4), "999 ns");
  EXPECT_EQ(short_time(999.6), "1 us");
  EXPECT_EQ(short_time(76'280), "76.3 us");
  EXPECT_EQ(short_time(1'030'000), "1.03 ms");
  EXPECT_EQ(short_time(12.5e9), "12.5 s");
  EXPECT_EQ(short_time(4321e9), "4321 s");
}

TEST(Grouped, DigitsStandInThrees) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(12'345'678), "12,345,678");
}

}  // namespace
}  // namespace tandem::analysis::short_time_test
