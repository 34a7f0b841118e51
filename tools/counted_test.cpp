// tools/counted_test.cpp: one is singular, all else plural.
#include "tools/counted.hpp"

#include <gtest/gtest.h>

namespace tandem::tools {
namespace {

TEST(Counted, OneIsSingular) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(2, "rank"), "2 ranks");
}

}  // namespace
}  // namespace tandem::tools
