// tandem/clock/drift_model_test.cpp: the polygon by hand, then constant, linear and sinusoidal drifts, under which the
// bound holds.
//
// The system: points (t_i, theta(t_i) + n_i, w) with |n_i| <= w, theta being that of an injected drift. Whatever the
// noise does, the true offset must be within the model's error of the model's offset: between points, after them and
// before them.
#include "tandem/clock/drift_model.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/clock/drifting_clock.hpp"

namespace tandem::clock::drift_model_test {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

TEST(DriftModel, KnowsOnlyTheLimitOfTheRateFromOnePoint) {
  DriftModel model({.rate = 100e-6, .rate_change_per_s = 0});
  EXPECT_TRUE(model.add({5 * second_ns, 40, 10}));
  EXPECT_EQ(model.at(5 * second_ns).offset_ns, 40);
  EXPECT_NEAR(static_cast<double>(model.at(5 * second_ns).error_ns), 10, 1);
  EXPECT_NEAR(static_cast<double>(model.at(6 * second_ns).error_ns), 100'010, 1);
  EXPECT_NEAR(static_cast<double>(model.at(4 * second_ns).error_ns), 100'010, 1) << "backwards alike";
}

TEST(DriftModel, GivesTheErrorsOfTheHeadersExample) {
  DriftModel straight({.rate = 500e-6, .rate_change_per_s = 0}), bent({.rate = 500e-6, .rate_change_per_s = 0.2e-6});
  for (DriftModel* model : {&straight, &bent}) {
    EXPECT_TRUE(model->add({0, 0, 100}));
    EXPECT_TRUE(model->add({second_ns, 0, 100}));
  }
  EXPECT_NEAR(static_cast<double>(straight.line().error_at(2 * second_ns)), 300, 2);
  EXPECT_NEAR(static_cast<double>(bent.line().error_at(2 * second_ns)), 500, 2);
  EXPECT_NEAR(static_cast<double>(straight.at(second_ns / 2).error_ns), 100, 1) << "between the points";
}

TEST(DriftModel, InterpolatesAlongALineAndExtrapolatesIt) {
  DriftModel model({.rate = 500e-6, .rate_change_per_s = 0});
  for (std::int64_t s = 0; s <= 10; ++s) EXPECT_TRUE(model.add({s * second_ns, 7'000 + 50'000 * s, 200}));
  EXPECT_EQ(model.at(second_ns * 9 / 2).offset_ns, 7'000 + 225'000);
  EXPECT_EQ(model.at(20 * second_ns).offset_ns, 7'000 + 1'000'000);
  EXPECT_NEAR(model.line().terms().rate, 50e-6, 1e-12);
}

TEST(DriftModel, ALoosePointDoesNoHarm) {
  DriftModel model({.rate = 500e-6, .rate_change_per_s = 0});
  model.add({0, 0, 100});
  model.add({second_ns, 0, 100});
  const std::int64_t before_ns = model.at(3 * second_ns).error_ns;
  EXPECT_TRUE(model.add({2 * second_ns, 30'000, 50'000})) << "a sleepy answer, far off, but says so";
  EXPECT_LE(model.at(3 * second_ns).error_ns, before_ns);
  EXPECT_NEAR(static_cast<double>(model.at(3 * second_ns).offset_ns), 0, 1);
}

TEST(DriftModel, ForgetsWhatWasBeforeAStepOfTheClock) {
  DriftModel model({.rate = 100e-6, .rate_change_per_s = 0.1e-6});
  for (std::int64_t s = 0; s < 5; ++s) EXPECT_TRUE(model.add({s * second_ns, 0, 100}));
  EXPECT_FALSE(model.add({5 * second_ns, 80'000, 100})) << "a step of the clock";
  EXPECT_FALSE(model.add({5 * second_ns + 1'000'000, 80'000, 100})) << "as the next point says";
  EXPECT_EQ(model.point_count(), 2U);
  EXPECT_NEAR(static_cast<double>(model.at(5 * second_ns).offset_ns), 80'000, 1);
  EXPECT_GT(model.at(6 * second_ns).error_ns, 100'000) << "nothing is known of the rate any more";
}

TEST(DriftModel, OneWrongMeasurementWidensTheErrorOfItsIntervalOnly) {
  const DriftLimits limits{.rate = 500e-6, .rate_change_per_s = 0.2e-6};
  for (const std::int64_t jump_ns : {20'000, -20'000, 3'000, 2'000'000}) {
    DriftModel model(limits), undisturbed(limits);
    const auto add = [&](std::int64_t s) {
      const OffsetPoint point{s * second_ns, 1'000 * s, 100};
      EXPECT_TRUE(undisturbed.add(point));
      return model.add(point);
    };
    for (std::int64_t s = 0; s < 10; ++s) EXPECT_TRUE(add(s));
    EXPECT_FALSE(model.add({10 * second_ns, 10'000 + jump_ns, 100}));
    for (std::int64_t ms = 9'001; ms < 11'000; ms += 37) {  // the disturbed interval: either may be right
      const std::int64_t local_ns = ms * 1'000'000, right_ns = ms, disturbed_ns = ms + jump_ns;
      for (const std::int64_t true_ns : {right_ns, disturbed_ns}) {
        EXPECT_LE(std::abs(model.at(local_ns).offset_ns - true_ns), model.at(local_ns).error_ns) << ms;
        if (ms < 10'000) continue;
        const GlobalTime line = model.line().to_global(local_ns);
        EXPECT_LE(std::abs(line.ns - local_ns - true_ns), line.error_ns) << ms;
      }
    }
    for (std::int64_t ms = 0; ms <= 9'000; ms += 250)
      EXPECT_EQ(model.at(ms * 1'000'000).error_ns, undisturbed.at(ms * 1'000'000).error_ns)
          << "before it, at " << ms << " ms";
    EXPECT_TRUE(add(11));
    for (std::int64_t s = 12; s < 20; ++s) EXPECT_TRUE(add(s));
    EXPECT_EQ(model.limits().rate_change_per_s, limits.rate_change_per_s);
    EXPECT_EQ(model.point_count(), undisturbed.point_count());
    for (std::int64_t ms = 0; ms <= 25'000; ms += 250) {
      EXPECT_EQ(model.at(ms * 1'000'000).error_ns, undisturbed.at(ms * 1'000'000).error_ns)
          << "after it, at " << ms << " ms";
      EXPECT_EQ(model.line().error_at(ms * 1'000'000), undisturbed.line().error_at(ms * 1'000'000));
    }
  }
}

TEST(DriftModel, AWrongFirstMeasurementIsForgottenWhenTwoContradictIt) {
  DriftModel model({.rate = 100e-6, .rate_change_per_s = 0.1e-6});
  EXPECT_TRUE(model.add({0, 900'000, 100}));
  EXPECT_FALSE(model.add({second_ns, 0, 100}));
  EXPECT_GE(model.at(second_ns).error_ns, 900'000 - 200'000) << "nobody knows which of the two is wrong";
  EXPECT_FALSE(model.add({2 * second_ns, 0, 100}));
  EXPECT_EQ(model.point_count(), 2U);
  EXPECT_NEAR(static_cast<double>(model.at(2 * second_ns).offset_ns), 0, 100);
}

TEST(DriftModel, RaisesItsLimitOfTheChangeOfRateWhenThatProvesTooSmall) {
  DriftModel model({.rate = 500e-6, .rate_change_per_s = 0.1e-6});
  bool agreed = true;
  // the rate changes by 0.5 ppm/s
  for (std::int64_t s = 0; s < 10; ++s) agreed &= model.add({s * second_ns, 250 * s * s, 100});
  EXPECT_FALSE(agreed);
  EXPECT_EQ(model.point_count(), 10U) << "nothing was forgotten";
  EXPECT_GE(model.limits().rate_change_per_s, 0.2e-6);
  const GlobalTime next = model.line().to_global(10 * second_ns);
  EXPECT_LE(std::abs(next.ns - (10 * second_ns + 25'000)), next.error_ns);
}

TEST(DriftModel, KeepsTheLastPointsOnly) {
  DriftModel model({}, 4);
  for (std::int64_t s = 0; s < 100; ++s) model.add({s * second_ns, 0, 100});
  EXPECT_EQ(model.point_count(), 4U);
  EXPECT_EQ(model.last().local_ns, 99 * second_ns);
}

TEST(DriftModelDeathTest, RefusesToGoBackInTime) {
  DriftModel model;
  model.add({10, 0, 1});
  EXPECT_DEATH(model.add({10, 0, 1}), "assertion failed");
}

struct Case {
  const char* name;
  Drift drift;
};

class InjectedDrift : public ::testing::TestWithParam<Case> {
 protected:
  std::int64_t true_offset_ns(std::int64_t local_ns) const { return GetParam().drift.at(local_ns) - local_ns; }
  /// A point every `interval_ns`, wrong by up to `noise_ns`, its stated error.
  std::vector<OffsetPoint> points(unsigned seed, std::int64_t from_ns, std::int64_t interval_ns, int count,
                                  std::int64_t noise_ns) const {
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::int64_t> noise(-noise_ns, noise_ns), jitter(0, interval_ns / 4);
    std::vector<OffsetPoint> all;
    for (int i = 0; i < count; ++i) {
      const std::int64_t local_ns = from_ns + i * interval_ns + jitter(random);
      all.push_back({local_ns, true_offset_ns(local_ns) + noise(random), noise_ns + 1});
    }
    return all;
  }
};

TEST_P(InjectedDrift, StaysWithinTheBoundBetweenPointsAndBeyond) {
  const DriftLimits limits{.rate = 500e-6, .rate_change_per_s = 0.2e-6};
  ASSERT_LE(GetParam().drift.greatest_rate_change_per_s(), limits.rate_change_per_s);
  for (unsigned seed = 1; seed <= 30; ++seed) {
    DriftModel model(limits);
    for (const OffsetPoint& point : points(seed, 3 * second_ns, second_ns, 20, 250))
      ASSERT_TRUE(model.add(point)) << "seed " << seed;
    for (std::int64_t local_ns = 0; local_ns < 40 * second_ns; local_ns += 37'000'000) {
      const OffsetPoint at = model.at(local_ns);
      ASSERT_LE(std::abs(at.offset_ns - true_offset_ns(local_ns)), at.error_ns)
          << "seed " << seed << ", at " << local_ns;
      const GlobalTime line = model.line().to_global(local_ns);
      ASSERT_LE(std::abs(line.ns - GetParam().drift.at(local_ns)), line.error_ns)
          << "seed " << seed << ", at " << local_ns;
    }
  }
}

TEST_P(InjectedDrift, IsFollowedWithinHalfAMicrosecondByProbesASecondApart) {
  // As over shared memory: half round trips of 250 ns, middles wrong by 60 ns at most. The line is used until the next
  // probe.
  std::vector<std::int64_t> errors_ns;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    DriftModel model;
    for (OffsetPoint point : points(seed, 0, second_ns, 60, 60)) {
      if (point.local_ns > 10 * second_ns) {
        for (std::int64_t at_ns = point.local_ns - second_ns / 2; at_ns < point.local_ns; at_ns += 50'000'000) {
          errors_ns.push_back(std::abs(model.line().to_global(at_ns).ns - GetParam().drift.at(at_ns)));
        }
      }
      point.error_ns = 250;
      ASSERT_TRUE(model.add(point));
    }
  }
  std::sort(errors_ns.begin(), errors_ns.end());
  EXPECT_LT(errors_ns[errors_ns.size() * 99 / 100], 500);
}

TEST_P(InjectedDrift, IsFollowedThoughAThirdOfTheProbesAreDisturbed) {
  // These had several times as long round trips, and it is unknown which way took longer. All of the next second
  // counts.
  std::vector<std::int64_t> errors_ns;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> share(-0.5, 0.5);
    DriftModel model;
    for (OffsetPoint point : points(seed, 0, second_ns / 2, 120, 60)) {
      point.error_ns = random() % 3 == 0 ? 2'500 : 450;
      if (point.error_ns > 450) point.offset_ns += static_cast<std::int64_t>(share(random) * 2'500);
      if (point.local_ns > 10 * second_ns) {
        for (std::int64_t at_ns = point.local_ns - second_ns / 2; at_ns < point.local_ns; at_ns += 50'000'000)
          errors_ns.push_back(std::abs(model.line().to_global(at_ns).ns - GetParam().drift.at(at_ns)));
      }
      ASSERT_TRUE(model.add(point));
    }
  }
  std::sort(errors_ns.begin(), errors_ns.end());
  // A rate that turns within seconds has too few good probes. The middles of the polygons were wrong by 420 to 520 ns.
  const bool turns_soon = GetParam().drift.period_ns < 20 * second_ns && GetParam().drift.amplitude_ns > 0;
  EXPECT_LT(errors_ns[errors_ns.size() * 99 / 100], turns_soon ? 700 : 300);
}

INSTANTIATE_TEST_SUITE_P(
    Drifts, InjectedDrift,
    ::testing::Values(Case{"none", {}}, Case{"constant_offset", {.offset_ns = 987'654'321'987}},
                      Case{"linear", {.offset_ns = -5'000'000, .rate = 80e-6}},
                      Case{"sinusoidal", {.offset_ns = 1'000'000, .rate = -30e-6, .amplitude_ns = 10'000,
                                           .period_ns = 60 * second_ns}},
                      Case{"fast_sinusoidal", {.amplitude_ns = 400, .period_ns = 10 * second_ns}}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace tandem::clock::drift_model_test
