// tandem/comm/engine/copy_choice_test.cpp: the faster way of copying is found, for each size, and found again when it
// changes.
#include "tandem/comm/engine/copy_choice.hpp"

#include <gtest/gtest.h>

namespace tandem::comm::internal::copy_choice_test {
namespace {

constexpr std::uint64_t kSmall = 439'296, kLarge = 8 << 20;

/// Copies messages of one size on a machine where the ways take this long. Returns how many were pulled.
unsigned run(CopyChoice& choice, std::uint64_t bytes, unsigned messages, double pull_ns, double segments_ns) {
  unsigned pulled = 0;
  for (unsigned i = 0; i < messages; ++i) {
    const CopyWay way = choice.choose(bytes, false);
    pulled += way == CopyWay::pull;
    choice.took(way, bytes, static_cast<std::int64_t>(way == CopyWay::pull ? pull_ns : segments_ns));
  }
  return pulled;
}

constexpr unsigned kRow = CopyChoice::kRow;
constexpr unsigned kTries = CopyChoice::kFirstTries * kRow;  // messages
/// Messages in tries, of `messages` in all, for a way that is tried once a period.
constexpr unsigned tried(unsigned messages, unsigned period) { return (messages / period + 1) * kRow; }

TEST(CopyChoice, TriesBothWaysAtFirst) {
  CopyChoice choice;
  EXPECT_EQ(run(choice, kSmall, 2 * kTries, 1000, 2000), kTries);
  // A way that takes long is tried a little at a time.
  const unsigned later = CopyChoice::kFirstTries * (CopyChoice::kOftenTriesPeriod + kRow - 1);
  EXPECT_EQ(run(choice, kLarge, kTries + later, 1000, 2000), kTries);
}

TEST(CopyChoice, TakesTheFasterWayOfEachSize) {
  CopyChoice choice;
  EXPECT_GE(run(choice, kSmall, 1000, 20'000, 45'000), 1000 - kTries - tried(1000, CopyChoice::kTriesPeriod));
  EXPECT_LE(run(choice, kLarge, 1000, 2'300'000, 1'300'000), kTries + tried(1000, CopyChoice::kTriesPeriod));
  // Messages of one size do not change what was learnt for another.
  EXPECT_GE(run(choice, kSmall, 100, 20'000, 45'000), 100 - kRow);
}

TEST(CopyChoice, TakesWhatFitsACacheInSegmentsWhereTheseAreMuchFaster) {
  CopyChoice slightly, much;
  EXPECT_GE(run(slightly, kSmall, 1000, 50'000, 40'000), 1000 - kTries - tried(1000, CopyChoice::kOftenTriesPeriod));
  EXPECT_LE(run(much, kSmall, 1000, 80'000, 40'000), kTries + tried(1000, CopyChoice::kTriesPeriod));
}

TEST(CopyChoice, TriesWhatIsMuchSlowerRarely) {
  CopyChoice choice;
  EXPECT_LE(run(choice, kLarge, 3 * CopyChoice::kRareTriesPeriod, 50'000'000, 1'300'000), kTries + 3 * kRow);
}

TEST(CopyChoice, TriesOftenWhatMightSoonBeTaken) {
  CopyChoice near, far;
  run(near, kSmall, 2 * kTries, 60'000, 45'000);
  EXPECT_EQ(run(near, kSmall, 10 * (CopyChoice::kOftenTriesPeriod + kRow - 1), 60'000, 45'000),
            10 * (CopyChoice::kOftenTriesPeriod - 1));
  // Segments would have to be much faster before they are taken.
  run(far, kSmall, 2 * kTries, 40'000, 45'000);
  EXPECT_EQ(run(far, kSmall, 3 * (CopyChoice::kTriesPeriod + kRow - 1), 40'000, 45'000),
            3 * (CopyChoice::kTriesPeriod - 1));
}

TEST(CopyChoice, NoticesThatTheOtherWayHasBecomeFaster) {
  CopyChoice choice;
  run(choice, kLarge, 500, 1'000'000, 1'300'000);
  EXPECT_GE(run(choice, kLarge, 1'000, 1'000'000, 1'300'000), 900u);
  run(choice, kLarge, 2'000, 1'600'000, 1'300'000);
  EXPECT_LE(run(choice, kLarge, 1'000, 1'600'000, 1'300'000), tried(1'000, CopyChoice::kOftenTriesPeriod));
}

/// Like `run`, where both sides can copy. Returns how many messages both copied.
unsigned run_shared(CopyChoice& choice, std::uint64_t bytes, unsigned messages, double both_ns, double pull_ns,
                    double segments_ns) {
  unsigned shared = 0;
  for (unsigned i = 0; i < messages; ++i) {
    const CopyWay way = choice.choose(bytes, true);
    shared += way == CopyWay::both;
    choice.took(way, bytes,
                static_cast<std::int64_t>(way == CopyWay::both   ? both_ns
                                          : way == CopyWay::pull ? pull_ns
                                                                 : segments_ns));
  }
  return shared;
}

TEST(CopyChoice, TheBestOfThreeWaysIsTaken) {
  constexpr unsigned kRest = 2 * tried(1000, CopyChoice::kOftenTriesPeriod) + 3 * kTries;
  for (const std::uint64_t bytes : {kSmall, kLarge}) {
    CopyChoice both, pull, segments;
    EXPECT_GE(run_shared(both, bytes, 1000, 20'000, 30'000, 60'000), 1000 - kRest);
    EXPECT_LE(run_shared(pull, bytes, 1000, 30'000, 20'000, 60'000), kRest);
    EXPECT_LE(run_shared(segments, bytes, 1000, 60'000, 70'000, 20'000), kRest);
    EXPECT_GE(run(pull, bytes, 100, 20'000, 60'000), 90u);
    EXPECT_LE(run(segments, bytes, 100, 70'000, 20'000), 10u);
  }
}

TEST(CopyChoice, SharesWhereThatBecomesBetterAndStopsWhereSendersAreLate) {
  CopyChoice choice;
  run_shared(choice, kSmall, 1000, 40'000, 30'000, 60'000);
  run_shared(choice, kSmall, 2000, 20'000, 30'000, 60'000);
  EXPECT_GE(run_shared(choice, kSmall, 1000, 20'000, 30'000, 60'000), 900u);
  run_shared(choice, kSmall, 100, 45'000, 30'000, 60'000);
  EXPECT_LE(run_shared(choice, kSmall, 1000, 45'000, 30'000, 60'000), 100u);
}

TEST(CopyChoice, OneInterruptionDoesNotDecide) {
  CopyChoice choice;
  run(choice, kSmall, 100, 20'000, 45'000);
  choice.took(CopyWay::pull, kSmall, 1'000'000'000);
  EXPECT_GE(run(choice, kSmall, 10, 20'000, 45'000), 9u);
}

TEST(CopyChoice, NothingThatIsMeasuredOddlyStopsIt) {
  CopyChoice choice;
  choice.took(CopyWay::pull, 0, 100);
  choice.took(CopyWay::pull, kSmall, -5);
  // In a world without time both are equal.
  EXPECT_GE(run(choice, kSmall, 160, 0, 0), 160u - kTries - tried(160, CopyChoice::kOftenTriesPeriod));
  EXPECT_GE(run(choice, UINT64_MAX, 500, 1e9, 2e9), 300u);
}

}  // namespace
}  // namespace tandem::comm::internal::copy_choice_test
