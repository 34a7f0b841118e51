// tandem/base/lru_table_test.cpp: what stays, and what leaves.
#include "tandem/base/lru_table.hpp"

#include <gtest/gtest.h>

namespace tandem::base::lru_table_test {
namespace {

TEST(LruTable, KeepsWhatWasUsedLast) {
  LruTable<int> table(3);
  for (const std::uint64_t key : {1U, 2U, 3U}) table.use(key) = static_cast<int>(10 * key);
  EXPECT_EQ(table.use(1), 10);
  EXPECT_EQ(*table.find(2), 20) << "a look is no use";
  EXPECT_EQ(table.use(4), 0) << "a new one";
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.find(2), nullptr) << "it was used longest ago";
  ASSERT_NE(table.find(1), nullptr);
  ASSERT_NE(table.find(3), nullptr);
  EXPECT_EQ(table.use(2), 0) << "it begins anew";
  EXPECT_EQ(table.find(3), nullptr);
}

TEST(LruTable, HasNoMoreThanItsBoundHoweverManyKeysCome) {
  for (const std::uint64_t keys : {1'000U, 100'000U}) {
    LruTable<int> table(100);
    for (std::uint64_t key = 0; key < keys; ++key) table.use(key) = 1;
    EXPECT_EQ(table.size(), 100U);
    EXPECT_NE(table.find(keys - 100), nullptr);
    EXPECT_EQ(table.find(keys - 101), nullptr);
  }
}

TEST(LruTable, OfOneKeepsTheLast) {
  LruTable<int> table(1);
  table.use(1) = 1;
  table.use(2) = 2;
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_EQ(*table.find(2), 2);
}

}  // namespace
}  // namespace tandem::base::lru_table_test
