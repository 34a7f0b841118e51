// tandem/base/suggest_test.cpp: distances by example, and plausible suggestions.
#include "tandem/base/suggest.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace tandem::base::suggest_test {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("sched", "sched"), 0U);
  EXPECT_EQ(edit_distance("shed", "sched"), 1U);
  EXPECT_EQ(edit_distance("scehd", "sched"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(NearestName, FindsWhatWasMeant) {
  const std::vector<std::string> names{"sched", "workers", "window"};
  EXPECT_EQ(nearest_name("shed", names), "sched");
  EXPECT_EQ(nearest_name("worker", names), "workers");
  EXPECT_EQ(nearest_name("widnow", names), "window");
}

TEST(NearestName, SaysNothingRatherThanSomethingFarFetched) {
  const std::vector<std::string> names{"sched", "workers", "window"};
  EXPECT_EQ(nearest_name("temperature", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'w'), names), "");
}

}  // namespace
}  // namespace tandem::base::suggest_test
