// tandem/model/transfers/transfer_model_test.cpp: links of several shapes, with accidents, and under load.
#include "tandem/model/transfers/transfer_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tandem/model/tasks/random_durations.hpp"

namespace tandem::model::transfer_model_test {
namespace {

/// 1.5 us and 10 GB/s; from 16 KiB on another protocol, with 6 us and 12 GB/s.
double link(double bytes) { return bytes < 16384 ? 1500 + bytes / 10 : 6000 + bytes / 12; }

TransferCurve measured(std::uint64_t seed, double slower = 1, double accidents = 0) {
  RandomDurations random(seed);
  TransferCurve curve;
  for (int round = 0; round < 20; ++round)
    for (std::uint64_t bytes = 1; bytes <= 4U << 20; bytes *= 4)
      curve.add(bytes,
                random.uniform() < accidents ? 1e9 : random.around(slower * link(static_cast<double>(bytes)), 0.03));
  return curve;
}

TEST(TransferCurve, EstimatesBetweenAndBeyondTheMeasuredSizes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    TransferCurve curve = measured(seed, 1, 0.03);
    for (const std::uint64_t bytes : {0U, 8U, 300U, 3000U, 40000U, 1'000'000U, 30'000'000U}) {
      const Estimate estimate = curve.estimate(bytes);
      ASSERT_TRUE(estimate.known) << bytes;
      ASSERT_NEAR(estimate.mean_ns / link(static_cast<double>(bytes)), 1, 0.12)
          << "seed " << seed << ", " << bytes << " bytes";
    }
  }
}

TEST(TransferCurve, NeverDescends) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomDurations random(seed);
    TransferCurve curve;
    for (std::uint64_t bytes = 1; bytes <= 1U << 20; bytes *= 2)
      for (int i = 0; i < 5; ++i) curve.add(bytes, random.around(1000, 0.3));  // noise alone
    double before = 0;
    for (std::uint64_t bytes = 1; bytes < 1U << 23; bytes += 1 + bytes / 7) {
      const double mean = curve.estimate(bytes).mean_ns;
      ASSERT_GE(mean, before * (1 - 1e-9)) << "seed " << seed << ", " << bytes << " bytes";
      before = mean;
    }
  }
}

TEST(TransferCurve, TheAffineLawHasLatencyAndBandwidth) {
  RandomDurations random(1);
  TransferCurve curve;
  EXPECT_FALSE(curve.affine());
  for (int i = 0; i < 20; ++i)
    for (std::uint64_t bytes = 8; bytes <= 8U << 20; bytes *= 8)
      curve.add(bytes, random.around(2000 + static_cast<double>(bytes) / 5, 0.05));
  const auto law = curve.affine();
  ASSERT_TRUE(law);
  EXPECT_NEAR(law->latency_ns, 2000, 3 * law->latency_error_ns);
  EXPECT_NEAR(law->bytes_per_ns, 5, 3 * law->bytes_per_ns_error);
  EXPECT_LT(law->latency_error_ns, 100);
  EXPECT_LT(law->bytes_per_ns_error, 0.25);
}

TEST(TransferCurve, FarFromWhatWasMeasuredNothingIsKnown) {
  TransferCurve curve;
  EXPECT_FALSE(curve.estimate(100).known);
  for (int i = 0; i < 10; ++i) curve.add(1000, 500);
  EXPECT_TRUE(curve.estimate(1000).known);
  EXPECT_FALSE(curve.estimate(2000).known) << "one size does not tell latency from bandwidth";
  for (int i = 0; i < 30; ++i) curve.add(2000, 600);
  EXPECT_TRUE(curve.estimate(4000).known);
  EXPECT_FALSE(curve.estimate(1'000'000).known);
  EXPECT_GT(curve.estimate(16000).deviation_ns / curve.estimate(16000).mean_ns,
            curve.estimate(4000).deviation_ns / curve.estimate(4000).mean_ns);
}

TEST(TransferCurve, AChangeIsLearnt) {
  TransferCurve curve = measured(5);
  EXPECT_NEAR(curve.estimate(1U << 20).mean_ns / link(1U << 20), 1, 0.05);
  for (int i = 0; i < 30; ++i) curve.add(1U << 20, 3 * link(1U << 20));
  EXPECT_NEAR(curve.estimate(1U << 20).mean_ns / link(1U << 20), 3, 0.05);
}

TEST(TransferModel, LoadLiesBetweenBothCurves) {
  TransferModel model{.alone = measured(1), .loaded = measured(2, 3)};
  const double bytes = 100'000, truth = link(bytes);
  EXPECT_NEAR(model.estimate(100'000, 0).mean_ns / truth, 1, 0.1);
  EXPECT_NEAR(model.estimate(100'000, 0.5).mean_ns / truth, 2, 0.2);
  EXPECT_NEAR(model.estimate(100'000, 1).mean_ns / truth, 3, 0.3);
  EXPECT_EQ(model.estimate(100'000, 7).mean_ns, model.estimate(100'000, 1).mean_ns);
  TransferModel half{.alone = measured(1), .loaded = {}};
  EXPECT_LT(half.estimate(100'000, 0).deviation_ns, half.estimate(100'000, 1).deviation_ns);
  EXPECT_TRUE(half.estimate(100'000, 1).known);
}

}  // namespace
}  // namespace tandem::model::transfer_model_test
