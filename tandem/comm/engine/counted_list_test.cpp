// tandem/comm/engine/counted_list_test.cpp: after any operations on the lists, the number is that of their entries.
#include "tandem/comm/engine/counted_list.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace tandem::comm::internal::counted_list_test {
namespace {

TEST(CountedList, OneNumberCountsTheEntriesOfAllLists) {
  std::size_t left = 0;
  std::mt19937 random(5);
  {
    CountedList<int> a(left), b(left);
    for (int i = 0; i < 20'000; ++i) {
      CountedList<int>& list = random() % 2 ? a : b;
      const int value = static_cast<int>(random() % 8);
      switch (random() % 16) {
        case 0: list.clear(); break;
        case 1: list.remove(value); break;
        case 2: list.remove_if([&](int entry) { return entry < value; }); break;
        case 3: {
          const std::size_t before = list.size();
          EXPECT_EQ(list.take({1, 2, 3}).size(), before);
          EXPECT_TRUE(list.empty());
          break;
        }
        case 4:
        case 5:
          if (!list.empty()) list.pop_back();
          break;
        default: list.push_back(value); break;
      }
      ASSERT_EQ(left, a.size() + b.size());
    }
    a.push_back(1);
  }
  EXPECT_EQ(left, 0u) << "a list that ends takes its entries with it";
}

TEST(CountedList, WhatWasTakenIsNotInTheListAndMemoryIsUsedOn) {
  std::size_t left = 0;
  CountedList<std::unique_ptr<int>> list(left);
  list.push_back(std::make_unique<int>(7));
  std::vector<std::unique_ptr<int>> taken = list.take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(*taken.front(), 7);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(left, 0u);
  taken.reserve(100);
  const auto* const memory = taken.data();
  EXPECT_TRUE(list.take(std::move(taken)).empty());
  list.push_back(nullptr);
  EXPECT_EQ(&list[0], memory);
}

}  // namespace
}  // namespace tandem::comm::internal::counted_list_test
