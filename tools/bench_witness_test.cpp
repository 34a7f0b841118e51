// tools/bench_witness_test.cpp: runs on an unusual machine are repeated, and counted.
#include "tools/bench_witness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tandem::tools {
namespace {

/// A machine whose number is 100 but for some questions, which are counted from the first one after the beginning.
struct Machine {
  std::vector<unsigned> far, near;  ///< questions at which it is 200, or 50
  unsigned asked = 0;
  bool begun = false;

  Watch watch() {
    auto made = Watch::begin([this]() -> base::Result<double> { return number(); }, 1.35);
    begun = true;
    return std::move(made).value();
  }
  double number() {
    if (!begun) return 100;
    const auto among = [at = asked](const std::vector<unsigned>& all) { return std::count(all.begin(), all.end(), at) > 0; };
    const double now = among(far) ? 200 : among(near) ? 50 : 100;
    ++asked;
    return now;
  }
};

unsigned runs_of(Watch& watch, bool well = true) {
  unsigned runs = 0;
  watch.around([&] { return ++runs, well; });
  return runs;
}

TEST(BenchWitness, ARunOnTheUsualMachineCounts) {
  Machine machine;
  Watch watch = machine.watch();
  EXPECT_EQ(runs_of(watch), 1u);
  EXPECT_EQ(machine.asked, 2u);
  EXPECT_EQ(watch.account().usual, 100);
  EXPECT_EQ(watch.account().runs, 1u);
  EXPECT_EQ(watch.account().repeated, 0u);
}

TEST(BenchWitness, ItWaitsForTheUsualMachine) {
  Machine machine{.far = {0, 1}, .near = {2}};
  Watch watch = machine.watch();
  EXPECT_EQ(runs_of(watch), 1u);
  EXPECT_EQ(machine.asked, 5u);
}

TEST(BenchWitness, ARunAfterWhichTheMachineIsAnotherIsRepeated) {
  Machine machine{.far = {1}, .near = {3}};
  Watch watch = machine.watch();
  EXPECT_EQ(runs_of(watch), 3u);
  EXPECT_EQ(watch.account().runs, 1u);
  EXPECT_EQ(watch.account().repeated, 2u);
  EXPECT_EQ(watch.account().unusual, 0u);
}

TEST(BenchWitness, AMachineThatStaysUnusualIsToldOf) {
  Machine machine;
  for (unsigned i = 0; i < 10'000; ++i) machine.far.push_back(i);
  Watch watch = machine.watch();
  EXPECT_GT(runs_of(watch), 1u);
  EXPECT_EQ(watch.account().unusual, 1u);
}

TEST(BenchWitness, ARunThatFailsIsNotRepeated) {
  Machine machine{.far = {1}, .near = {}};
  Watch watch = machine.watch();
  EXPECT_EQ(runs_of(watch, false), 1u);
}

TEST(BenchWitness, WithoutANumberThereIsNoWatch) {
  const auto watch = Watch::begin([]() -> base::Result<double> { return base::Error{base::ErrorCode::io, "silent"}; }, 1.35);
  ASSERT_FALSE(watch.ok());
  EXPECT_EQ(watch.error().message, "silent");
}

}  // namespace
}  // namespace tandem::tools
