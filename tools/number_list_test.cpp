// tools/number_list_test.cpp: ranges, and what is none.
#include "tools/number_list.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::tools {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(NumberList, HasTheLastNumberIfAStepMeetsIt) {
  EXPECT_EQ(range_of("4800:11200:3200"), (Numbers{4800, 8000, 11200}));
  EXPECT_EQ(range_of("4800:11199:3200"), (Numbers{4800, 8000}));
  EXPECT_EQ(range_of("-3:-3:9223372036854775807"), (Numbers{-3}));
  EXPECT_EQ(range_of("9223372036854775806:9223372036854775807:1").value().size(), 2U);
}

TEST(NumberList, IsNoRangeOfWordsOrBackwards) {
  for (const char* text : {"", "5", "1:2", "1:2:0", "1:2:-1", "2:1:1", "1:2:3:4", "1:x:1", ":2:1", "1:2:", " 1:2:1"})
    EXPECT_FALSE(range_of(text)) << text;
}

TEST(NumberList, EndsALongRange) { EXPECT_EQ(range_of("1:9223372036854775807:1").value().size(), most_of_range + 1); }

TEST(NumberList, TakesPositiveNumbersWithinABound) {
  EXPECT_EQ(positive_numbers("7", 9), (Numbers{7}));
  EXPECT_EQ(positive_numbers("1:9:4", 9), (Numbers{1, 5, 9}));
  for (const char* word : {"0", "10", "0:4:2", "1:10:9", "x", "1:1000000:1"})
    EXPECT_FALSE(positive_numbers(word, 9)) << word;
}

}  // namespace
}  // namespace tandem::tools
