// tandem/comm/mcast/route_test.cpp: routes are read as they were written, taken apart without copies, and refused when
// malformed.
#include "tandem/comm/mcast/route.hpp"

#include <array>
#include <random>

#include <gtest/gtest.h>

namespace tandem::comm::route_test {
namespace {

constexpr Rank self{1998}, root{1999};
constexpr std::uint32_t job_size = 2000;

std::vector<std::byte> route_of_sizes(const std::vector<std::uint32_t>& sizes) {
  std::vector<std::byte> bytes(sizes.size() * route_entry_bytes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint64_t word = i | std::uint64_t{sizes[i]} << 22;
    for (unsigned b = 0; b < 8; ++b) bytes[8 * i + b] = static_cast<std::byte>(word >> 8 * b);
  }
  return bytes;
}

const char* verdict(const std::vector<std::uint32_t>& sizes) {
  const std::vector<std::byte> bytes = route_of_sizes(sizes);
  return RouteView(bytes).validate(job_size, self, root);
}

/// The definition, by recursion: a forest is a list of trees, each an entry and a forest.
bool is_forest(const std::vector<std::uint32_t>& sizes, std::size_t first, std::size_t end) {
  while (first < end) {
    if (sizes[first] == 0 || sizes[first] > end - first) return false;
    if (!is_forest(sizes, first + 1, first + sizes[first])) return false;
    first += sizes[first];
  }
  return true;
}

TEST(Route, EntryKeepsEveryFieldAtItsExtremes) {
  std::array<std::byte, 8> bytes{};
  for (const RouteEntry& entry : {RouteEntry{Rank(0), 1, 0, false, 0},
                                  RouteEntry{Rank(max_route_rank), 65'535, 32'767, true, 511},
                                  RouteEntry{Rank(5), 7, -32'768, false, 511}, RouteEntry{Rank(5), 7, -1, true, 0}}) {
    write_route_entry(entry, bytes);
    EXPECT_EQ(read_route_entry(bytes), entry);
  }
}

TEST(Route, BitsAreWhereTheHeaderSays) {
  std::array<std::byte, 8> bytes{};
  write_route_entry({Rank(0x2ABCDE), 0x1234, 0x4321, true, 0x155}, bytes);
  const std::uint64_t expected = 0x2ABCDEull | 0x1234ull << 22 | 0x4321ull << 38 | 1ull << 54 | 0x155ull << 55;
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(bytes[i], static_cast<std::byte>(expected >> 8 * i));
}

TEST(Route, OrderIsWrittenIntoAnEntryThatIsThere) {
  std::array<std::byte, 8> bytes{};
  for (const RouteEntry& entry :
       {RouteEntry{Rank(max_route_rank), 65'535, -1, true, 511}, RouteEntry{Rank(5), 7, 3, false, 0}}) {
    for (const std::uint16_t fence : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{511}}) {
      for (const bool ordered : {false, true}) {
        write_route_entry(entry, bytes);
        set_order(bytes, ordered, fence);
        EXPECT_EQ(read_route_entry(bytes),
                  (RouteEntry{entry.rank, entry.subtree_size, entry.priority, ordered, fence}));
      }
    }
  }
}

TEST(Route, PrioritiesSaturate) {
  std::array<std::byte, 8> bytes{};
  write_route_entry({Rank(1), 1, 1'000'000, false, 0}, bytes);
  EXPECT_EQ(read_route_entry(bytes).priority, 32'767);
  write_route_entry({Rank(1), 1, -1'000'000, false, 0}, bytes);
  EXPECT_EQ(read_route_entry(bytes).priority, -32'768);
}

/// Follows a route as the ranks would, and counts the ranks that it reaches.
void deliver(RouteView forest, std::vector<int>& reached) {
  for (const RouteView child : forest.children()) {
    const RouteEntry entry = child.entry(0);
    ++reached[entry.rank.index()];
    EXPECT_EQ(child.size(), entry.subtree_size);
    EXPECT_EQ(child.below().validate(job_size, entry.rank, root), nullptr);
    deliver(child.below(), reached);
  }
}

TEST(Route, ReachesEverybodyOnceWhenEachForwardsPartsOfWhatCame) {
  std::vector<std::byte> bytes;
  TreeBuilder builder;
  Forest forest;
  for (TreeKind kind :
       {TreeKind::flat, TreeKind::chain, TreeKind::binomial, TreeKind::two_tree, TreeKind::two_groups}) {
    for (std::uint32_t n = 1; n <= 70; ++n) {
      builder.build(n, {.kind = kind}, forest);
      std::vector<RouteRecipient> recipients;
      for (std::uint32_t i = 0; i < n; ++i)
        recipients.push_back({.rank = Rank(3 * i), .priority = 100 - static_cast<int>(i)});
      for (std::uint32_t s = 0; s < forest.strand_count; ++s) {
        write_route(forest.strands[s], recipients, bytes);
        EXPECT_EQ(bytes.size(), 8 * n);
        const RouteView route(bytes);
        ASSERT_EQ(route.validate(job_size, self, root), nullptr);
        std::vector<int> reached(job_size, 0);
        deliver(route, reached);
        for (std::uint32_t rank = 0; rank < job_size; ++rank) ASSERT_EQ(reached[rank], rank % 3 == 0 && rank < 3 * n);
      }
    }
  }
}

TEST(Route, ValidAsDefinedForAllSizesOfSmallRoutes) {
  for (std::uint32_t count = 0; count <= 6; ++count) {
    std::vector<std::uint32_t> sizes(count, 0);
    for (;;) {
      EXPECT_EQ(verdict(sizes) == nullptr, is_forest(sizes, 0, count));
      std::uint32_t digit = 0;
      while (digit < count && ++sizes[digit] > count + 1) sizes[digit++] = 0;
      if (digit == count) break;
    }
  }
}

TEST(Route, MalformedOnesAreRefusedWithTheReason) {
  EXPECT_STREQ(verdict({0}), "a route has an empty subtree");
  EXPECT_STREQ(verdict({2}), "a subtree is larger than the route that holds it");
  EXPECT_STREQ(verdict({2, 2, 1}), "a subtree is larger than the subtree that holds it");
  const std::vector<std::byte> bytes = route_of_sizes({3, 1, 1});
  EXPECT_STREQ(RouteView(std::span(bytes).first(12)).validate(job_size, self, root), "a route ends within an entry");
  EXPECT_STREQ(RouteView(bytes).validate(2, self, root), "a route names a rank that the job does not have");
  EXPECT_STREQ(RouteView(bytes).validate(job_size, Rank(2), root),
               "a route leads back to a rank that already has the data");
  EXPECT_STREQ(RouteView(bytes).validate(job_size, self, Rank(1)),
               "a route leads back to a rank that already has the data");
  EXPECT_EQ(RouteView(bytes).validate(3, self, root), nullptr);
  EXPECT_EQ(RouteView().validate(job_size, self, root), nullptr);
  const std::vector<std::byte> many((max_route_entries + 1) * route_entry_bytes);
  EXPECT_STREQ(RouteView(many).validate(job_size, self, root), "a route has more entries than any subtree may have");
}

TEST(Route, RandomBytesAreRefusedOrAreAForest) {
  const std::uint64_t seed = 99;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  int accepted = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::vector<std::byte> bytes(random() % 7 * 8 + (random() % 8 == 0 ? random() % 8 : 0));
    for (std::byte& byte : bytes) byte = random() % 3 == 0 ? static_cast<std::byte>(random()) : std::byte{0};
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) bytes[i + 2] = static_cast<std::byte>(random() % 4 << 6);
    const RouteView route(bytes);
    if (route.validate(1 << 22, self, root) != nullptr) continue;
    ++accepted;
    std::uint32_t entries = 0;
    for (const RouteView child : route.children()) entries += child.size();
    EXPECT_EQ(entries, route.size());
  }
  EXPECT_GT(accepted, 100);
}

TEST(Route, DeepestAndWidestAreCheckedQuickly) {
  std::vector<std::uint32_t> chain(1900), stairs(1900), flat(1900, 1);
  for (std::uint32_t i = 0; i < 1900; ++i) {
    chain[i] = 1900 - i;
    stairs[i] = i % 2 == 0 ? 1900 - i : 1;
  }
  EXPECT_EQ(verdict(chain), nullptr);
  EXPECT_EQ(verdict(stairs), nullptr);
  EXPECT_EQ(verdict(flat), nullptr);
}

TEST(RouteDeathTest, DuplicatesAreOurMistake) {
#ifdef NDEBUG
  GTEST_SKIP() << "checked in debug builds only";
#else
  Forest forest;
  TreeBuilder().build(2, {.kind = TreeKind::flat}, forest);
  const std::vector<RouteRecipient> twice{{.rank = Rank(4)}, {.rank = Rank(4)}};
  std::vector<std::byte> bytes;
  EXPECT_DEATH(write_route(forest.strands[0], twice, bytes), "all_different");
#endif
}

}  // namespace
}  // namespace tandem::comm::route_test
