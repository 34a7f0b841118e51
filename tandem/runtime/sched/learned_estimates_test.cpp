// tandem/runtime/sched/learned_estimates_test.cpp: estimates for ever new shapes, in bounded memory.
#include "tandem/runtime/sched/learned_estimates.hpp"

#include <gtest/gtest.h>

namespace tandem::runtime::learned_estimates_test {
namespace {

void run(LearnedEstimates& estimates, std::uint64_t bytes, double ns, unsigned times = LearnedEstimates::kTrials + 1) {
  for (unsigned i = 0; i < times; ++i) estimates.add("work", bytes, DeviceKind::cpu, ns);
}

TEST(LearnedEstimates, LearnWhatComesAfterAnyNumberOfShapes) {
  for (const std::uint64_t shapes : {LearnedEstimates::kMostFootprints, 3 * LearnedEstimates::kMostFootprints}) {
    LearnedEstimates estimates;
    for (std::uint64_t shape = 1; shape <= shapes; ++shape) run(estimates, shape, 10, 1);
    EXPECT_EQ(estimates.size(), LearnedEstimates::kMostFootprints);
    run(estimates, 1'000'000, 500);
    EXPECT_EQ(estimates.size(), LearnedEstimates::kMostFootprints);
    const Estimate known = estimates.expected_ns("work", 1'000'000, DeviceKind::cpu);
    EXPECT_TRUE(known.known);
    EXPECT_EQ(known.mean_ns, 500);
  }
}

TEST(LearnedEstimates, KeepWhatRunsAgainAndAgain) {
  LearnedEstimates estimates;
  run(estimates, 8, 100);
  for (std::uint64_t shape = 1'000; shape < 1'000 + 2 * LearnedEstimates::kMostFootprints; ++shape) {
    run(estimates, shape, 10, 1);
    if (shape % 10'000 == 0) run(estimates, 8, 100, 1);
  }
  EXPECT_TRUE(estimates.expected_ns("work", 8, DeviceKind::cpu).known);
  EXPECT_FALSE(estimates.expected_ns("work", 1'000, DeviceKind::cpu).known);
}

TEST(LearnedEstimates, OfAClassAreNotThoseThatAreGiven) {
  class Given final : public Estimates {
   public:
    Estimate expected_ns(std::string_view, model::Footprint, DeviceKind) const override { return {}; }
    void add(std::string_view, model::Footprint, DeviceKind, double) override { ++heard; }
    unsigned heard = 0;
  } given;
  LearnedEstimates estimates(&given);
  for (int i = 0; i < 3; ++i) {
    estimates.add("work", 1'000, DeviceKind::cpu, 70);
    estimates.add_class("work", model::size_class_of(1'000), DeviceKind::cpu, 70);
  }
  EXPECT_EQ(given.heard, 3U);
  EXPECT_EQ(estimates.expected_ns("work", model::size_class_of(1'020), DeviceKind::cpu).mean_ns, 70);
}

}  // namespace
}  // namespace tandem::runtime::learned_estimates_test
