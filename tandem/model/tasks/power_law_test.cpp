// tandem/model/tasks/power_law_test.cpp: the law is found, its uncertainty holds, and grows where nothing was measured.
#include "tandem/model/tasks/power_law.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tandem/model/tasks/random_durations.hpp"

namespace tandem::model::power_law_test {
namespace {

Estimate measured(double mean_ns, double deviation_ns = 0, std::uint64_t samples = 20) {
  return {.mean_ns = mean_ns, .deviation_ns = deviation_ns, .samples = samples, .known = true};
}

TEST(PowerLaw, ExactDurationsGiveExactParameters) {
  for (const double b : {0.5, 1.0, 1.5, 2.0, 3.0}) {
    const auto truth = [b](double size) { return 1e5 * std::pow(size / 1e6, b) + 500; };
    std::vector<SizePoint> points;
    for (double size = 1000; size < 2e6; size *= 2) points.push_back({size, measured(truth(size))});
    const auto law = PowerLaw::fit(points);
    ASSERT_TRUE(law);
    EXPECT_NEAR(law->exponent(), b, 0.02);
    for (const double size : {3000.0, 700'000.0, 4e6})
      EXPECT_NEAR(law->estimate(size).mean_ns / truth(size), 1, 0.05) << b << " at " << size;
  }
}

TEST(PowerLaw, DurationsThatDoNotDependOnTheSizeAreAConstant) {
  std::vector<SizePoint> points;
  for (double size = 1000; size < 100'000; size *= 3) points.push_back({size, measured(800, 20)});
  const auto law = PowerLaw::fit(points);
  ASSERT_TRUE(law);
  EXPECT_NEAR(law->estimate(5000).mean_ns, 800, 20);
}

TEST(PowerLaw, TooFewSizesGiveNone) {
  EXPECT_FALSE(PowerLaw::fit({}));
  const std::vector<SizePoint> two{{1000, measured(1)}, {2000, measured(2)}};
  EXPECT_FALSE(PowerLaw::fit(two));
  const std::vector<SizePoint> near{{1000, measured(1)}, {1100, measured(2)}, {1200, measured(3)}};
  EXPECT_FALSE(PowerLaw::fit(near));
  const std::vector<SizePoint> unknown{{1000, measured(1)}, {2000, measured(2)}, {4000, {.mean_ns = 4, .samples = 1}}};
  EXPECT_FALSE(PowerLaw::fit(unknown));
}

TEST(PowerLaw, TheTruthLiesWithinThreeDeviations) {
  unsigned outside = 0, known = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    RandomDurations random(seed);
    const double b = random.between(0.5, 3), c = random.between(0, 1e4), noise = random.between(0.005, 0.1);
    const double a = 1e6 / std::pow(1e6, b);
    const auto truth = [&](double size) { return a * std::pow(size, b) + c; };
    std::vector<SizePoint> points;
    const auto sizes = static_cast<unsigned>(random.between(4, 12));
    for (unsigned i = 0; i < sizes; ++i) {
      const double size = std::exp(random.between(std::log(1e4), std::log(1e6)));
      points.push_back(
          {size, measured(truth(size) * (1 + noise * random.normal() / std::sqrt(20.0)), noise * truth(size))});
    }
    const auto law = PowerLaw::fit(points);
    if (!law) continue;
    const double size = std::exp(random.between(std::log(5e3), std::log(4e6)));  // also beyond what was measured
    const Estimate estimate = law->estimate(size);
    if (!estimate.known) continue;
    ++known;
    if (std::abs(estimate.mean_ns - truth(size)) > 3 * estimate.deviation_ns) ++outside;
  }
  EXPECT_GT(known, 600U);
  EXPECT_LE(outside, known / 50);
}

TEST(PowerLaw, TheUncertaintyGrowsBeyondTheMeasuredSizes) {
  std::vector<SizePoint> points;
  RandomDurations random(1);
  for (double size = 1e4; size < 1e6; size *= 2)
    points.push_back({size, measured(random.around(size * std::sqrt(size), 0.02), size * std::sqrt(size) * 0.1)});
  const auto law = PowerLaw::fit(points);
  ASSERT_TRUE(law);
  const auto relative = [&](double size) { return law->estimate(size).deviation_ns / law->estimate(size).mean_ns; };
  EXPECT_LT(relative(2e5), relative(1e7));
  EXPECT_LT(relative(1e7), relative(1e9));
  EXPECT_LT(law->estimate(2e5).law_error_ns, law->estimate(2e5).deviation_ns);
  EXPECT_LT(law->estimate(2e5).law_error_ns * 10, law->estimate(1e7).law_error_ns);
  EXPECT_EQ(law->estimate(2e5).beyond, 1);
  EXPECT_NEAR(law->estimate(2e3).beyond, 5, 1e-9);
  EXPECT_NEAR(law->estimate(4 * law->scale()).beyond, 4, 1e-9);
}

}  // namespace
}  // namespace tandem::model::power_law_test
