// tandem/model/tasks/history_test.cpp: accidents change nothing, changes of speed are learnt, files keep the shape.
#include "tandem/model/tasks/history.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tandem/model/tasks/random_durations.hpp"

namespace tandem::model::history_test {
namespace {

constexpr std::uint64_t kSeeds = 2000;

struct Case {
  explicit Case(std::uint64_t seed)
      : random(seed), ns(std::exp(random.between(std::log(200.0), std::log(1e10)))), noise(random.between(0, 0.2)) {}
  History good(unsigned samples, double speed = 1) {
    History history;
    for (unsigned i = 0; i < samples; ++i) history.add(random.around(ns / speed, noise));
    return history;
  }
  RandomDurations random;
  double ns, noise;
};

bool equal(const Estimate& a, const Estimate& b) { return a.mean_ns == b.mean_ns && a.deviation_ns == b.deviation_ns; }

TEST(History, AnAccidentAfterTwentyGoodDurationsChangesNoDecision) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Case here(seed);
    History history = here.good(20 + static_cast<unsigned>(here.random.between(0, 40)));
    const Estimate before = history.estimate();
    history.add(100 * here.ns);
    // The estimate is equal to the last bit, so decisions by it do not change.
    ASSERT_TRUE(equal(history.estimate(), before)) << "seed " << seed;
  }
}

TEST(History, SevenAccidentsInARowChangeNothing) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Case here(seed);
    History history;
    for (int i = 0; i < 20; ++i) history.add(here.ns * here.random.between(1, 1.2));  // none of them is a suspect
    const Estimate before = history.estimate();
    for (int accident = 1; accident <= 7; ++accident) history.add(here.random.between(20, 1000) * here.ns);
    ASSERT_TRUE(equal(history.estimate(), before)) << "seed " << seed;
    history.add(100 * here.ns);
    ASSERT_GT(history.estimate().mean_ns, 1.5 * before.mean_ns) << "seed " << seed << ": the eighth is the truth";
  }
}

TEST(History, AnAccidentAmongTheFirstFourIsLeftOut) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Case here(seed);
    History history;
    const auto accident = static_cast<int>(here.random.between(0, 4));
    for (int i = 0; i < 4; ++i) history.add(i == accident ? 100 * here.ns : here.random.around(here.ns, 0.05));
    const Estimate estimate = history.estimate();
    ASSERT_TRUE(estimate.known);
    ASSERT_NEAR(estimate.mean_ns / here.ns, 1, 0.25) << "seed " << seed;
  }
}

TEST(History, ASpeedThatChangesByTwoIsLearntWithinFiftyDurations) {
  unsigned most = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Case here(seed);
    const double speed = seed % 2 == 0 ? 2 : 0.5;
    History history = here.good(20 + static_cast<unsigned>(here.random.between(0, 200)));
    unsigned needed = 0;
    // Learnt: within what noise leaves of the mean of 21 durations, three standard errors, and 1 %.
    const double truth = here.ns / speed * std::exp(here.noise * here.noise / 2);
    const auto learnt = [&] {
      return std::abs(history.estimate().mean_ns / truth - 1) < 0.01 + 3 * here.noise / std::sqrt(21.0);
    };
    for (unsigned i = 1; i <= 50; ++i) {
      history.add(here.random.around(here.ns / speed, here.noise));
      if (!learnt()) needed = i + 1;
    }
    ASSERT_LE(needed, 50U) << "seed " << seed << ": " << history.estimate().mean_ns << " instead of " << truth;
    most = std::max(most, needed);
  }
  RecordProperty("most", static_cast<int>(most));
  EXPECT_GE(most, 8U) << "an accident would be learnt, too";
}

TEST(History, ChangesThatAreNoAccidentsAreFollowedAtOnce) {
  History history;
  for (int i = 0; i < 29; ++i) history.add(1000);
  history.add(1100);
  EXPECT_GT(history.estimate().mean_ns, 1000);
  EXPECT_LT(history.estimate().mean_ns, 1010);
}

TEST(History, RareAccidentsAreLeftOutForEver) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Case here(seed);
    History history = here.good(20);
    for (int i = 0; i < 2000; ++i)
      history.add(here.random.uniform() < 0.05 ? 50 * here.ns : here.random.around(here.ns, here.noise));
    ASSERT_NEAR(history.estimate().mean_ns / here.ns, 1, 0.02 + here.noise) << "seed " << seed;
  }
}

TEST(History, TheMeanOfTwoPeaksIsBetweenThem) {
  History history;
  for (int i = 0; i < 200; ++i) history.add(i % 5 < 3 ? 1000 : 3000);
  EXPECT_NEAR(history.estimate().mean_ns, 1800, 60);
  EXPECT_NEAR(history.estimate().deviation_ns, 1000, 60);
}

TEST(History, ConfidenceGrowsWithDurations) {
  Case here(7);
  EXPECT_EQ(History().estimate().confidence(), 0);
  EXPECT_FALSE(History().estimate().known);
  EXPECT_EQ(here.good(1).estimate().confidence(), 0);
  double before = 0;
  for (const unsigned samples : {4U, 10U, 29U}) {
    const double confidence = here.good(samples).estimate().confidence();
    EXPECT_GT(confidence, before) << samples;
    before = confidence;
  }
  EXPECT_LT(before, 1);
  EXPECT_FALSE(here.good(History::kEnough - 1).estimate().known);
  EXPECT_TRUE(here.good(History::kEnough).estimate().known);
}

TEST(History, WhatIsNoDurationIsIgnored) {
  History history;
  for (const double ns : {-1.0, std::nan(""), HUGE_VAL, -HUGE_VAL}) history.add(ns);
  EXPECT_EQ(history.samples(), 0U);
  history.add(0);
  EXPECT_EQ(history.estimate().mean_ns, 1);
}

TEST(History, TheSummaryRestoresQuartilesAndMean) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Case here(seed);
    const History history = here.good(4 + static_cast<unsigned>(here.random.between(0, 100)));
    const History restored = History::restore(history.summary());
    ASSERT_EQ(restored.samples(), history.samples());
    ASSERT_EQ(restored.news(), 0U);
    ASSERT_NEAR(restored.estimate().mean_ns / history.estimate().mean_ns, 1, 0.02 + here.noise) << "seed " << seed;
    if (history.samples() < 13) continue;
    for (int i = 0; i < 5; ++i)
      ASSERT_NEAR(restored.summary().quantiles[i] / history.summary().quantiles[i], 1, 1e-5)
          << "seed " << seed << ", quantile " << i;
  }
}

TEST(History, ARestoredHistoryOfAMachineThatHasChangedIsLearntAnew) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Case here(seed);
    History history = History::restore(here.good(1000).summary());
    for (int i = 0; i < 30; ++i) history.add(here.random.around(here.ns * 100, here.noise));  // the file was poisoned
    ASSERT_NEAR(history.estimate().mean_ns / (here.ns * 100), 1, 0.05 + here.noise) << "seed " << seed;
  }
}

TEST(History, ProgramsThatRunFewTasksLearnTogether) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Case here(seed);
    History file = History::restore(here.good(100).summary());
    for (int run = 0; run < 10; ++run) {  // each with five tasks, on a machine that is slower now
      History program = History::restore(file.summary());
      for (int i = 0; i < 5; ++i) program.add(here.random.around(4 * here.ns, here.noise));
      History present = History::restore(file.summary());
      present.add_news_of(program);
      file = present;
      ASSERT_EQ(file.samples(), 100U + 5 * (run + 1));
    }
    ASSERT_NEAR(file.estimate().mean_ns / (4 * here.ns), 1, 0.1 + here.noise) << "seed " << seed;
  }
}

TEST(History, SuspectsAreNewsOnce) {
  History file;
  for (int i = 0; i < 20; ++i) file.add(1000);
  History program = History::restore(file.summary());
  for (int i = 0; i < 3; ++i) program.add(1e6);
  file.add_news_of(program);
  EXPECT_EQ(file.summary().suspect_count, 3U);
  EXPECT_EQ(file.estimate().mean_ns, 1000);
  History again = History::restore(file.summary());
  again.add(1000);  // nothing else happened
  file.add_news_of(again);
  EXPECT_EQ(file.summary().suspect_count, 3U);
  EXPECT_EQ(file.samples(), 24U);
}

TEST(History, NewsOfTwoProgramsAreAddedToOneFile) {
  Case here(3);
  const History start = here.good(10);
  History file = History::restore(start.summary()), first = file, second = file;
  for (int i = 0; i < 100; ++i) first.add(here.ns), second.add(2 * here.ns);
  file.add_news_of(first);
  file.add_news_of(second);
  EXPECT_EQ(file.samples(), 210U);
  EXPECT_NEAR(file.estimate().mean_ns / here.ns, 2, 0.01);  // what was learnt last
}

TEST(History, OverallIsOfAllDurationsAndTheEstimateOfTheLastOnes) {
  History history;
  for (int i = 0; i < 400; ++i) history.add(i % 2 == 0 ? 900 : 1100);
  for (int i = 0; i < 100; ++i) history.add(3000);  // something else runs on the machine for a while
  EXPECT_NEAR(history.estimate().mean_ns, 3000, 1);
  EXPECT_NEAR(history.overall().mean_ns, 1400, 5);
  EXPECT_NEAR(history.overall().deviation_ns, 805, 5);
  EXPECT_EQ(history.overall().samples, 500U);
  const History restored = History::restore(history.summary());
  EXPECT_NEAR(restored.overall().mean_ns, history.overall().mean_ns, 1e-6);
  EXPECT_NEAR(restored.overall().deviation_ns, history.overall().deviation_ns, 1e-3);
}

TEST(History, OverallLeavesAccidentsOutAndIsTheEstimateWhileTheWindowHasAll) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Case here(seed);
    History history = here.good(20);
    ASSERT_TRUE(equal(history.overall(), history.estimate())) << "seed " << seed;
    ASSERT_FALSE(history.summary().overall.has_value());
    for (int i = 0; i < 100; ++i) history.add(here.random.around(here.ns, here.noise));
    const double before_ns = history.overall().mean_ns;
    for (int i = 0; i < 5; ++i) history.add(here.ns * 1000);  // with a suspect or two from before
    ASSERT_EQ(history.overall().mean_ns, before_ns) << "seed " << seed;
  }
}

TEST(History, OverallOfAFileIsThatOfAllPrograms) {
  History file;
  double sum = 0;
  for (int run = 1; run <= 9; ++run) {  // of one speed each, with more tasks than the window has
    History program = History::restore(file.summary());
    for (int i = 0; i < 200; ++i) program.add(1000.0 * run), sum += 1000.0 * run;
    file.add_news_of(program);
    file = History::restore(file.summary());
  }
  EXPECT_NEAR(file.estimate().mean_ns, 9000, 1);
  EXPECT_NEAR(file.overall().mean_ns / (sum / 1800), 1, 0.01);  // but for what a program first takes for accidents
  EXPECT_NEAR(static_cast<double>(file.overall().samples), 1800, 30);
}

}  // namespace
}  // namespace tandem::model::history_test
