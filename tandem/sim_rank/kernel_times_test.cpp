// tandem/sim_rank/kernel_times_test.cpp: drawn durations have the mean and the deviation that a model says.
#include "tandem/sim_rank/kernel_times.hpp"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace tandem::sim::kernel_times_test {
namespace {

TEST(DrawnTimes, HaveTheMeanAndTheSpread) {
  DrawnTimes times({}, 0, 7);
  double sum = 0, squares = 0;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) {
    const auto ns = static_cast<double>(times.draw({.mean_ns = 1e6, .deviation_ns = 3e5}, 1).ns);
    EXPECT_GT(ns, 0);
    sum += ns;
    squares += ns * ns;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 1e6, 1e4);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean), 3e5, 1.5e4);
}

TEST(DrawnTimes, AreOneSeedsAlone) {
  const auto first = [](std::uint32_t rank, std::uint64_t seed) {
    return DrawnTimes({.node_spread = 0.1}, rank, seed).draw({.mean_ns = 1e9}, 1).ns;
  };
  EXPECT_EQ(first(0, 1), first(0, 1));
  EXPECT_NE(first(0, 1), first(1, 1)) << "nodes differ";
  EXPECT_NE(first(0, 1), first(0, 2)) << "runs differ";
  const auto of_run = [](std::uint32_t rank, std::uint64_t seed) {
    return DrawnTimes({.run_spread = 0.1}, rank, seed).draw({.mean_ns = 1e9}, 1).ns;
  };
  EXPECT_EQ(of_run(0, 1), of_run(1, 1)) << "a run is slow or fast as a whole";
  EXPECT_NE(of_run(0, 1), of_run(0, 2));
  const auto of_kind = [](std::uint32_t rank, std::uint64_t kind) {
    return DrawnTimes({}, rank, 1).draw({.mean_ns = 1e9, .mean_error_ns = 1e8}, kind).ns;
  };
  EXPECT_EQ(of_kind(0, 1), of_kind(3, 1)) << "a mean is wrong by the same factor on all ranks";
  EXPECT_NE(of_kind(0, 1), of_kind(0, 2));
}

/// The numbers of another machine: equal seeds give them everywhere.
TEST(DrawnTimes, AreTheSameOnAllMachines) {
  DrawnTimes drawn({.node_spread = 0.05, .run_spread = 0.1}, 3, 42);
  const KernelTime time{.mean_ns = 123'456.789, .deviation_ns = 34'567.8, .mean_error_ns = 4'567.8};
  std::int64_t sum = 0;
  for (unsigned i = 0; i < 1'000; ++i) sum = sum * 31 % 1'000'000'007 + drawn.draw(time, i % 7).ns;
  EXPECT_EQ(sum, 871'400'910);
}

}  // namespace
}  // namespace tandem::sim::kernel_times_test
