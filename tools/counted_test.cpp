// tools/counted_test.cpp: singular for one, plural otherwise; sizes have three digits.
#include "tools/counted.hpp"

#include <gtest/gtest.h>

namespace tandem::tools::counted_test {
namespace {

TEST(Counted, OneIsSingular) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(2, "rank"), "2 ranks");
}

TEST(ShortBytes, SizesHaveThreeDigitsInUnitsOf1024) {
  EXPECT_EQ(short_bytes(0), "0 B");
  EXPECT_EQ(short_bytes(1023), "1023 B");
  EXPECT_EQ(short_bytes(1024), "1 KiB");
  EXPECT_EQ(short_bytes(1'536), "1.5 KiB");
  EXPECT_EQ(short_bytes(166'500'000), "159 MiB");
  EXPECT_EQ(short_bytes(13'128'171.0), "12.5 MiB");
  EXPECT_EQ(short_bytes(std::uint64_t{5} << 50), "5120 TiB");
}

}  // namespace
}  // namespace tandem::tools::counted_test
