// tandem/runtime/sched/placing/durations_test.cpp: what is learnt of kernels, and the choice among implementations.
#include "tandem/runtime/sched/placing/durations.hpp"

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/base/splitmix64.hpp"

namespace tandem::runtime::durations_test {
namespace {

const model::Footprint kSmall(1, 8), kLarge(2, 8'000);

CodeletCore codelet_with(unsigned cpu, unsigned card = 0) {
  CodeletCore codelet("work");
  codelet.devices.assign(cpu, DeviceKind::cpu);
  codelet.devices.insert(codelet.devices.end(), card, DeviceKind::cuda);
  return codelet;
}

/// Runs `count` tasks, with the durations of `takes`. Returns the runs of each implementation.
std::vector<unsigned> play(Durations& choices, const CodeletCore& codelet, unsigned count,
                           const std::function<double(unsigned)>& takes, model::Footprint footprint = kSmall,
                           DeviceKind kind = DeviceKind::cpu) {
  std::vector<unsigned> runs(codelet.devices.size(), 0);
  for (unsigned i = 0; i < count; ++i) {
    const auto [implementation, is_usual] = choices.choose(codelet, footprint, kind);
    ++runs[implementation];
    choices.add(codelet.name, footprint, kind, implementation, takes(implementation));
  }
  return runs;
}

TEST(Durations, TheFastestRunsAfterTheTrials) {
  Durations choices;
  const CodeletCore codelet = codelet_with(3);
  const std::array<double, 3> takes{5'000, 1'000, 20'000};
  const auto runs = play(choices, codelet, 1'000, [&](unsigned i) { return takes[i]; });
  EXPECT_GE(runs[0], (Durations::kTrials + 1));
  EXPECT_GE(runs[2], (Durations::kTrials + 1));
  EXPECT_GT(runs[1], 980U);
  double all_ns = 0;
  for (unsigned i = 0; i < 3; ++i) all_ns += runs[i] * takes[i];
  EXPECT_LT(all_ns, 1'000 * 1'000 * 1.1);
}

TEST(Durations, TrialsCostAPercentHoweverSlowTheyAre) {
  Durations choices;
  const CodeletCore codelet = codelet_with(2);
  const auto runs = play(choices, codelet, 200'000, [](unsigned i) { return i == 0 ? 100.0 : 100'000.0; });
  EXPECT_LE(runs[1], (Durations::kTrials + 1) + 2);
}

TEST(Durations, EachFootprintAndKindHasItsOwn) {
  Durations choices;
  const CodeletCore codelet = codelet_with(2, 2);
  play(choices, codelet, 100, [](unsigned i) { return i == 0 ? 1.0 : 2.0; }, kSmall);
  play(choices, codelet, 100, [](unsigned i) { return i == 0 ? 2.0 : 1.0; }, kLarge);
  play(choices, codelet, 100, [](unsigned i) { return i == 3 ? 1.0 : 2.0; }, kSmall, DeviceKind::cuda);
  EXPECT_EQ(choices.choose(codelet, kSmall, DeviceKind::cpu).implementation, 0U);
  EXPECT_EQ(choices.choose(codelet, kLarge, DeviceKind::cpu).implementation, 1U);
  EXPECT_EQ(choices.choose(codelet, kSmall, DeviceKind::cuda).implementation, 3U);
}

TEST(Durations, AnotherCodeletOfTheNameHasItsOwn) {
  Durations choices;
  play(choices, codelet_with(2), 100, [](unsigned i) { return i == 0 ? 2.0 : 1.0; });
  CodeletCore other("work");
  other.devices = {DeviceKind::cpu, DeviceKind::cuda, DeviceKind::cpu};
  const auto runs = play(choices, other, 100, [](unsigned i) { return i == 0 ? 2.0 : 1.0; });
  EXPECT_EQ(runs[1], 0U) << "it is for cards";
  EXPECT_GT(runs[2], 90U);
}

TEST(Durations, AChangeIsNoticed) {
  Durations choices;
  const CodeletCore codelet = codelet_with(2);
  play(choices, codelet, 1'000, [](unsigned i) { return i == 0 ? 100.0 : 200.0; });
  const auto runs = play(choices, codelet, 10'000, [](unsigned i) { return i == 0 ? 1'000.0 : 200.0; });
  EXPECT_GT(runs[1], 9'900U) << "the best one became slow, as its own runs say";
  const auto later = play(choices, codelet, 10'000, [](unsigned i) { return i == 0 ? 50.0 : 200.0; });
  EXPECT_GT(later[0], 5'000U) << "another one became fast, as its trials say";
}

TEST(Durations, WhatIsGivenIsNotTried) {
  class Given final : public Estimates {
    Estimate expected_ns(std::string_view, model::Footprint, DeviceKind) const override { return {}; }
    Estimate expected_ns_by(unsigned i, std::string_view, model::Footprint, DeviceKind) const override {
      return {.mean_ns = i == 0 ? 500.0 : 100.0, .known = true};
    }
  } given;
  Durations choices(&given);
  const auto runs = play(choices, codelet_with(2), 100, [](unsigned i) { return i == 0 ? 500.0 : 100.0; });
  EXPECT_EQ(runs[0], 0U);
}

TEST(Durations, EverNewShapesRunTheBestForTheirSize) {
  Durations choices;
  const CodeletCore codelet = codelet_with(2);
  std::vector<unsigned> small(2), large(2);  // the first one is better for small data, the second for large
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto run = [&](std::uint64_t shape, std::uint64_t bytes, std::vector<unsigned>& runs, double first_ns) {
      const model::Footprint footprint(base::mix64(shape), bytes);
      const unsigned ran = choices.choose(codelet, footprint, DeviceKind::cpu).implementation;
      ++runs[ran];
      choices.add(codelet.name, footprint, DeviceKind::cpu, ran, ran == 0 ? first_ns : 1'000.0);
    };
    run(2 * i, 900 + i % 100, small, 100);
    run(2 * i + 1, 1'000'000 + i, large, 10'000);
  }
  EXPECT_LE(small[1], 10U);
  EXPECT_LE(large[0], 10U);
}

TEST(Durations, AShapeThatComesAgainIsTriedByItself) {
  Durations choices;
  const CodeletCore codelet = codelet_with(2);
  play(choices, codelet, 100, [](unsigned i) { return i == 0 ? 100.0 : 200.0; }, {1, 5'000});
  const auto runs = play(choices, codelet, 100, [](unsigned i) { return i == 0 ? 300.0 : 200.0; }, {2, 5'000});
  EXPECT_GT(runs[1], 90U) << "of the same size, but another shape";
}

TEST(Durations, AreKnownForABoundedNumberOfShapes) {
  for (const std::uint64_t shapes : {2 * Durations::kMost, 3 * Durations::kMost}) {
    Durations choices;
    const CodeletCore codelet = codelet_with(2);
    for (std::uint64_t shape = 1; shape <= shapes; ++shape)
      play(choices, codelet, 1, [](unsigned) { return 100.0; }, {base::mix64(shape), shape});
    EXPECT_EQ(choices.size(), Durations::kMost);
  }
}

TEST(Durations, TrialsOfSeveralWorkersAreSpread) {
  Durations choices;
  const CodeletCore codelet = codelet_with(2);
  std::vector<unsigned> begun(2, 0);
  // None has ended.
  for (int i = 0; i < 6; ++i) ++begun[choices.choose(codelet, kSmall, DeviceKind::cpu).implementation];
  EXPECT_EQ(begun, (std::vector<unsigned>{3, 3}));
}

// --- what is learnt

Estimate learnt(const Durations& estimates) { return estimates.expected_ns("work", 7, DeviceKind::cpu); }

TEST(Durations, AreMeansByCodeletFootprintAndKind) {
  Durations estimates;
  EXPECT_FALSE(learnt(estimates).known);
  for (const double ns : {900.0, 100.0, 120.0, 140.0}) estimates.add("work", 7, DeviceKind::cpu, 0, ns);
  EXPECT_TRUE(learnt(estimates).known);
  EXPECT_DOUBLE_EQ(learnt(estimates).mean_ns, 120) << "the first one loads code";
  EXPECT_NEAR(learnt(estimates).deviation_ns, 27.5, 0.1);
  EXPECT_FALSE(estimates.expected_ns("other", 7, DeviceKind::cpu).known);
  EXPECT_FALSE(estimates.expected_ns("work", 8, DeviceKind::cpu).known);
  EXPECT_FALSE(estimates.expected_ns("work", 7, DeviceKind::user).known);
}

TEST(Durations, SayHowManyKernelsAreMissing) {
  Durations estimates;
  for (const unsigned missing : {3U, 2U, 1U, 0U}) {
    EXPECT_EQ(learnt(estimates).missing, missing);
    EXPECT_EQ(learnt(estimates).known, missing == 0);
    estimates.add("work", 7, DeviceKind::cpu, 0, 100);
  }
}

TEST(Durations, ForgetNothingForAccidents) {
  Durations estimates;
  for (int i = 0; i < 21; ++i) estimates.add("work", 7, DeviceKind::cpu, 0, 100);
  for (int i = 0; i < 7; ++i) estimates.add("work", 7, DeviceKind::cpu, 0, 10'000);
  EXPECT_DOUBLE_EQ(learnt(estimates).mean_ns, 100);
  estimates.add("work", 7, DeviceKind::cpu, 0, 10'000);
  EXPECT_GT(learnt(estimates).mean_ns, 1'000) << "eight in a row are none";
}

TEST(Durations, FollowAMachineThatBecomesSlower) {
  Durations estimates;
  for (int i = 0; i < 1'000; ++i) estimates.add("work", 7, DeviceKind::cpu, 0, 100);
  for (int i = 0; i < 50; ++i) estimates.add("work", 7, DeviceKind::cpu, 0, 200);
  EXPECT_NEAR(learnt(estimates).mean_ns, 200, 10);
}

void learn(Durations& estimates, std::uint64_t bytes, double ns, unsigned times = Durations::kTrials + 1) {
  for (unsigned i = 0; i < times; ++i) estimates.add("work", bytes, DeviceKind::cpu, 0, ns);
}

TEST(Durations, LearnWhatComesAfterAnyNumberOfShapes) {
  for (const std::uint64_t shapes : {Durations::kMost, 3 * Durations::kMost}) {
    Durations estimates;
    for (std::uint64_t shape = 1; shape <= shapes; ++shape) learn(estimates, shape, 10, 1);
    EXPECT_EQ(estimates.size(), Durations::kMost);
    learn(estimates, 1'000'000, 500);
    EXPECT_EQ(estimates.size(), Durations::kMost);
    const Estimate known = estimates.expected_ns("work", 1'000'000, DeviceKind::cpu);
    EXPECT_TRUE(known.known);
    EXPECT_EQ(known.mean_ns, 500);
  }
}

TEST(Durations, KeepWhatRunsAgainAndAgain) {
  Durations estimates;
  learn(estimates, 8, 100);
  for (std::uint64_t shape = 1'000; shape < 1'000 + 2 * Durations::kMost; ++shape) {
    learn(estimates, shape, 10, 1);
    if (shape % 10'000 == 0) learn(estimates, 8, 100, 1);
  }
  EXPECT_TRUE(estimates.expected_ns("work", 8, DeviceKind::cpu).known);
  EXPECT_FALSE(estimates.expected_ns("work", 1'000, DeviceKind::cpu).known);
}

}  // namespace
}  // namespace tandem::runtime::durations_test
