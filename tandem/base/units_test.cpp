// tandem/base/units_test.cpp: durations and sizes are read as people write them, and written so that they can be read.
#include "tandem/base/units.hpp"

#include <gtest/gtest.h>

namespace tandem::base::units_test {
namespace {

TEST(Units, DurationsAreReadWithTheirUnit) {
  EXPECT_EQ(parse_duration_ns("250ns").value(), 250);
  EXPECT_EQ(parse_duration_ns("60us").value(), 60'000);
  EXPECT_EQ(parse_duration_ns(" 1.5 ms ").value(), 1'500'000);
  EXPECT_EQ(parse_duration_ns("2s").value(), 2'000'000'000);
  EXPECT_EQ(parse_duration_ns("5min").value(), 300'000'000'000);
  EXPECT_EQ(parse_duration_ns("0").value(), 0);
}

TEST(Units, ADurationWithoutUnitIsRefusedBecauseItIsAmbiguous) {
  const auto result = parse_duration_ns("10");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("10s"), std::string::npos);
}

TEST(Units, NonsenseIsRefused) {
  for (const char* text :
       {"", " ", "s", "1.5.2s", "1e3s", "inf", "nan s", "3 weeks", "0.3ns", "1e400s", "99999999999999999999h"})
    EXPECT_FALSE(parse_duration_ns(text)) << text;
  for (const char* text : {"", "KiB", "1.5B", "64 kib", "7X", "--3", "99999999999999999999TiB"})
    EXPECT_FALSE(parse_bytes(text)) << text;
}

TEST(Units, SizesAreReadInBothFamiliesOfPrefixes) {
  EXPECT_EQ(parse_bytes("4096").value(), 4096);
  EXPECT_EQ(parse_bytes("64KiB").value(), 65'536);
  EXPECT_EQ(parse_bytes("64K").value(), 65'536);
  EXPECT_EQ(parse_bytes("1.5 GiB").value(), 1'610'612'736);
  EXPECT_EQ(parse_bytes("2MB").value(), 2'000'000);
}

TEST(Units, WhatIsWrittenIsReadBack) {
  for (const std::int64_t value :
       {0LL, 1LL, 999LL, 1'000LL, 1'024LL, 1'500'000LL, 65'536LL, 7'000'000'001LL, 1LL << 40}) {
    EXPECT_EQ(parse_duration_ns(format_duration_ns(value)).value(), value);
    EXPECT_EQ(parse_bytes(format_bytes(value)).value(), value);
  }
  EXPECT_EQ(format_duration_ns(1'500'000), "1500us");
  EXPECT_EQ(format_bytes(65'536), "64KiB");
}

}  // namespace
}  // namespace tandem::base::units_test
