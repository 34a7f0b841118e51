// tools/bench/stability_test.cpp: runs on an unusual machine are repeated, and counted.
#include "tools/bench/stability.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tandem::tools::bench_stability_test {
namespace {

/// A machine whose number is 100 except at some probes, counted from the first one after the beginning.
struct Machine {
  std::vector<unsigned> far, near;  ///< probes at which it is 200, or 50
  unsigned asked = 0;
  bool begun = false;

  StabilityMonitor monitor() {
    auto made = StabilityMonitor::begin([this]() -> base::Result<double> { return number(); }, 1.35);
    begun = true;
    return std::move(made).value();
  }
  double number() {
    if (!begun) return 100;
    const auto among = [at = asked](const std::vector<unsigned>& all) {
      return std::count(all.begin(), all.end(), at) > 0;
    };
    const double now = among(far) ? 200 : among(near) ? 50 : 100;
    ++asked;
    return now;
  }
};

unsigned runs_of(StabilityMonitor& monitor, bool well = true) {
  unsigned runs = 0;
  monitor.around([&] { return ++runs, well; });
  return runs;
}

TEST(StabilityMonitor, ARunOnTheUsualMachineCounts) {
  Machine machine;
  StabilityMonitor monitor = machine.monitor();
  EXPECT_EQ(runs_of(monitor), 1u);
  EXPECT_EQ(machine.asked, 2u);
  EXPECT_EQ(monitor.report().usual, 100);
  EXPECT_EQ(monitor.report().runs, 1u);
  EXPECT_EQ(monitor.report().repeated, 0u);
}

TEST(StabilityMonitor, ItWaitsForTheUsualMachine) {
  Machine machine{.far = {0, 1}, .near = {2}};
  StabilityMonitor monitor = machine.monitor();
  EXPECT_EQ(runs_of(monitor), 1u);
  EXPECT_EQ(machine.asked, 5u);
}

TEST(StabilityMonitor, ARunAfterWhichTheMachineIsAnotherIsRepeated) {
  Machine machine{.far = {1}, .near = {3}};
  StabilityMonitor monitor = machine.monitor();
  EXPECT_EQ(runs_of(monitor), 3u);
  EXPECT_EQ(monitor.report().runs, 1u);
  EXPECT_EQ(monitor.report().repeated, 2u);
  EXPECT_EQ(monitor.report().unusual, 0u);
}

TEST(StabilityMonitor, AMachineThatStaysUnusualIsReported) {
  Machine machine;
  for (unsigned i = 0; i < 10'000; ++i) machine.far.push_back(i);
  StabilityMonitor monitor = machine.monitor();
  EXPECT_GT(runs_of(monitor), 1u);
  EXPECT_EQ(monitor.report().unusual, 1u);
}

TEST(StabilityMonitor, WithoutTimeNothingIsRepeated) {
  Machine machine;
  for (unsigned i = 0; i < 10'000; ++i) machine.far.push_back(i);
  StabilityMonitor monitor = machine.monitor();
  monitor.repeat_unless([] { return true; });
  EXPECT_EQ(runs_of(monitor), 1u);
  EXPECT_EQ(machine.asked, 1u);
  EXPECT_EQ(monitor.report().unusual, 1u);
}

TEST(StabilityMonitor, ARunThatFailsIsNotRepeated) {
  Machine machine{.far = {1}, .near = {}};
  StabilityMonitor monitor = machine.monitor();
  EXPECT_EQ(runs_of(monitor, false), 1u);
}

TEST(StabilityMonitor, WithoutANumberThereIsNoWatch) {
  const auto silent = []() -> base::Result<double> { return base::Error{base::ErrorCode::io, "silent"}; };
  const auto monitor = StabilityMonitor::begin(silent, 1.35);
  ASSERT_FALSE(monitor.ok());
  EXPECT_EQ(monitor.error().message, "silent");
}

}  // namespace
}  // namespace tandem::tools::bench_stability_test
