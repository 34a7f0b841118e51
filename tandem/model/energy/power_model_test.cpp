// tandem/model/energy/power_model_test.cpp: powers are recovered from generated intervals with noise; indistinguishable
// ones have large errors.
#include "tandem/model/energy/power_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tandem::model::power_model_test {
namespace {

/// Intervals of 50 ms of a machine with `workers` workers, each busy for a random part of the interval with a random
/// codelet.
class Generated {
 public:
  Generated(std::uint64_t seed, double idle, std::vector<double> watts, double noise)
      : random_(seed), idle_(idle), watts_(std::move(watts)), noise_(noise) {}

  void add_to(PowerModel& model, unsigned intervals, unsigned workers = 8) {
    std::uniform_real_distribution<double> part(0, 1);
    std::normal_distribution<double> error(0, noise_);
    for (unsigned i = 0; i < intervals; ++i) {
      std::vector<double> seconds(watts_.size());
      const double load = part(random_);
      for (unsigned worker = 0; worker < workers; ++worker)
        if (part(random_) < load) seconds[random_() % watts_.size()] += 0.05 * part(random_);
      double joules = idle_ * 0.05;
      std::vector<PowerModel::Busy> busy;
      for (unsigned k = 0; k < watts_.size(); ++k) {
        joules += watts_[k] * seconds[k];
        if (seconds[k] > 0) busy.push_back({k, seconds[k]});
      }
      model.add(std::max(0.0, joules * (1 + error(random_))), 0.05, busy);
    }
  }

 private:
  std::mt19937_64 random_;
  double idle_;
  std::vector<double> watts_;
  double noise_;
};

TEST(PowerModel, PowersAreRecoveredFromNoisyIntervals) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<double> truth{12, 5, 20};
    PowerModel model;
    Generated(seed, 40, truth, 0.03).add_to(model, 400);
    const PowerModel::Fit fit = model.fit();
    EXPECT_NEAR(fit.idle.watts, 40, 3) << "seed " << seed;
    for (std::size_t k = 0; k < truth.size(); ++k) {
      EXPECT_NEAR(fit.codelets[k].watts, truth[k], 0.12 * truth[k] + 0.5) << "seed " << seed << ", codelet " << k;
      EXPECT_LT(std::abs(fit.codelets[k].watts - truth[k]), 5 * fit.codelets[k].error)
          << "seed " << seed << ", codelet " << k;
      EXPECT_TRUE(fit.codelets[k].is_known());
      EXPECT_GT(fit.codelets[k].confidence(), 0.7);
    }
  }
}

TEST(PowerModel, ErrorsShrinkWithTheNumberOfIntervals) {
  PowerModel model;
  Generated generated(3, 40, {12, 5, 20}, 0.1);
  generated.add_to(model, 50);
  const double early = model.fit().codelets[1].error;
  generated.add_to(model, 5000);
  EXPECT_LT(model.fit().codelets[1].error, early / 4);
}

TEST(PowerModel, ExactIntervalsGiveExactPowers) {
  PowerModel model;
  Generated(5, 30, {10, 25}, 0).add_to(model, 1000);
  const PowerModel::Fit fit = model.fit();
  EXPECT_NEAR(fit.idle.watts, 30, 0.5);
  EXPECT_NEAR(fit.codelets[0].watts, 10, 0.3);
  EXPECT_NEAR(fit.codelets[1].watts, 25, 0.3);
}

TEST(PowerModel, CodeletsThatAlwaysRunTogetherShareByTheirTime) {
  PowerModel model;
  for (int i = 0; i < 200; ++i) {
    const double seconds = 0.05 * (i % 5) / 4.0;
    model.add(2 + 10 * seconds + 20 * seconds, 0.05, std::vector<PowerModel::Busy>{{0, seconds}, {1, seconds}});
  }
  const PowerModel::Fit fit = model.fit();
  EXPECT_NEAR(fit.idle.watts, 40, 1);
  EXPECT_NEAR(fit.codelets[0].watts, 15, 0.5);
  EXPECT_NEAR(fit.codelets[1].watts, 15, 0.5);
  EXPECT_GT(fit.codelets[0].error, 3);  // the truth, 10 and 20, is within two errors
}

TEST(PowerModel, WithoutIdleTimeAllEnergyIsShared) {
  PowerModel model;
  for (int i = 0; i < 200; ++i) model.add(100 * 0.05, 0.05, std::vector<PowerModel::Busy>{{0, 0.2}});
  const PowerModel::Fit fit = model.fit();
  const double explained = fit.idle.watts * 0.05 + fit.codelets[0].watts * 0.2;
  EXPECT_NEAR(explained, 5, 0.1);
  EXPECT_GT(fit.idle.error, 10);
}

TEST(PowerModel, NoPowerIsNegative) {
  // Kernels of codelet 1 make the rest cheaper, which is impossible.
  PowerModel model;
  std::mt19937_64 random(9);
  for (int i = 0; i < 300; ++i) {
    const double a = 0.05 * static_cast<double>(random() % 100) / 100,
                 b = 0.05 * static_cast<double>(random() % 100) / 100;
    model.add(std::max(0.1, 2 + 20 * a - 15 * b), 0.05, std::vector<PowerModel::Busy>{{0, a}, {1, b}});
  }
  const PowerModel::Fit fit = model.fit();
  EXPECT_NEAR(fit.codelets[1].watts, 0, 1e-6);
  EXPECT_FALSE(fit.codelets[1].is_known());
  EXPECT_GT(fit.codelets[0].watts, 5);
}

TEST(PowerModel, NothingIsKnownWithoutIntervalsOrEnergy) {
  PowerModel model;
  EXPECT_FALSE(model.fit().idle.is_known());
  model.add(0, 0.05, std::vector<PowerModel::Busy>{{2, 0.01}});
  const PowerModel::Fit fit = model.fit();
  EXPECT_EQ(fit.codelets.size(), 3u);
  EXPECT_FALSE(fit.idle.is_known());
  EXPECT_FALSE(fit.codelets[2].is_known());
}

TEST(PowerModel, TheNumberOfCodeletsIsBounded) {
  PowerModel model;
  std::vector<PowerModel::Busy> busy;
  for (unsigned k = 0; k < PowerModel::kMostCodelets; ++k) busy.push_back({k, 0.01});
  for (int i = 0; i < 10; ++i) model.add(5, 0.05, busy);
  EXPECT_EQ(model.fit().codelets.size(), PowerModel::kMostCodelets);
}

TEST(PowerModel, TwoRunsCountByTheirErrors) {
  const Watts sum = combined({10, 1, 5}, {20, 3, 7});
  EXPECT_NEAR(sum.watts, 11, 1e-9);
  EXPECT_NEAR(sum.error, std::sqrt(0.9), 1e-9);
  EXPECT_EQ(sum.seconds, 12);
  EXPECT_EQ(combined({}, {20, 3, 7}).watts, 20);
}

}  // namespace
}  // namespace tandem::model::power_model_test
