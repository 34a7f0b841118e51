// tandem/comm/engine/stream_table_test.cpp: the table against a map, for any sequence of numbers.
#include "tandem/comm/engine/stream_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace tandem::comm::internal::stream_table_test {
namespace {

/// Numbers of one kind come and go at random, in growing and shrinking phases.
template <class Number>
void compare(std::uint32_t seed, Number number_of) {
  std::mt19937 random(seed);
  std::vector<int> streams(4096);
  StreamTable<int> table;
  std::map<std::uint32_t, int*> expected;
  std::vector<std::uint32_t> there;
  for (unsigned step = 0; step < 20'000; ++step) {
    const std::size_t wanted = step / 2500 % 2 == 0 ? 1000 : 3;
    if (random() % 1000 < (there.size() < wanted ? 600U : 400U) || there.empty()) {
      const std::uint32_t number = number_of(step, random);
      ASSERT_EQ(table.contains(number), expected.contains(number));
      if (expected.contains(number)) continue;
      int& stream = streams[1 + random() % (streams.size() - 1)];
      table.insert(number, stream);
      expected.emplace(number, &stream);
      there.push_back(number);
    } else {
      const std::size_t which = random() % there.size();
      const std::uint32_t number = there[which];
      there[which] = there.back();
      there.pop_back();
      table.erase(number, *expected.at(number));
      table.erase(number, streams[0]);  // not there, or another stream
      expected.erase(number);
      ASSERT_EQ(table.find(number), nullptr);
    }
    ASSERT_EQ(table.size(), expected.size());
    if (!there.empty()) {
      const std::uint32_t some = there[random() % there.size()];
      ASSERT_EQ(table.find(some), expected.at(some));
    }
    if (step % 97 != 0) continue;
    for (const auto& [number, stream] : expected) ASSERT_EQ(table.find(number), stream);
    std::multiset<int*> all, wanted_all;
    table.for_each([&](int& stream) { all.insert(&stream); });
    for (const auto& [number, stream] : expected) wanted_all.insert(stream);
    ASSERT_EQ(all, wanted_all);
  }
}

TEST(StreamTable, HoldsWhatWasPutInAndNotTakenOut) {
  using Random = std::mt19937;
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    // Ascending numbers; past the largest one; a few, repeatedly; random ones; ones chosen to collide.
    compare(seed, [](unsigned step, Random&) { return step + 1; });
    compare(seed, [](unsigned step, Random&) { return UINT32_MAX - 5000 + step; });
    compare(seed, [](unsigned, Random& random) { return static_cast<std::uint32_t>(random() % 1500); });
    compare(seed, [](unsigned, Random& random) { return static_cast<std::uint32_t>(random()); });
    compare(seed, [](unsigned step, Random&) { return (step % 3000 << 20) * 0x144cbc89U; });
  }
}

TEST(StreamTable, IsEmptyAtFirstAndAgain) {
  StreamTable<int> table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.find(0), nullptr);
  int stream = 0;
  table.insert(0, stream);
  EXPECT_EQ(table.find(0), &stream);
  EXPECT_FALSE(table.contains(1));
  table.erase(0, stream);
  table.erase(0, stream);
  EXPECT_TRUE(table.empty());
  EXPECT_TRUE(table.all().empty());
}

TEST(StreamTable, KeepsBothOfWhatHasOneNumber) {
  StreamTable<int> table;
  int streams[3] = {};
  for (int& stream : streams) table.insert(7, stream);
  table.erase(7, streams[1]);
  EXPECT_EQ(table.size(), 2u);
  const std::vector<int*> left = table.all();
  const std::vector<int*> wanted{&streams[0], &streams[2]};
  EXPECT_TRUE(std::is_permutation(left.begin(), left.end(), wanted.begin(), wanted.end()));
  table.erase(7, streams[0]);
  EXPECT_EQ(table.find(7), &streams[2]);
}

}  // namespace
}  // namespace tandem::comm::internal::stream_table_test
