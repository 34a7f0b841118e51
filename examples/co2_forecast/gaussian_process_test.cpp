// examples/co2_forecast/gaussian_process_test.cpp: the task flow against LAPACK on whole matrices.
#include "gaussian_process.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "dense_reference.hpp"

namespace co2_forecast::gaussian_process_test {
namespace {

struct Problem {
  TrainingSet training;
  TimeAxis forecast;
};

/// Irregular times over some years, with a trend, a season and something that looks like noise.
Problem some_problem(std::size_t train_count, std::size_t forecast_count) {
  std::vector<double> times, residuals, later;
  for (std::size_t i = 0; i < train_count; ++i) {
    const double t = 1980 + 0.019 * static_cast<double>(i + (i > train_count / 2 ? 7 : 0));
    times.push_back(t);
    residuals.push_back(1.4 * (t - 1983) + 3 * std::sin(6.28 * t) + 0.3 * std::sin(1e3 * t));
  }
  for (std::size_t i = 0; i < forecast_count; ++i) later.push_back(times.back() + 0.019 * static_cast<double>(i + 1));
  return {{TimeAxis(times), residuals}, TimeAxis(later)};
}

TEST(GaussianProcess, EqualsTheDenseRegressionForAnyTileSizeAndWorkerCount) {
  const Problem problem = some_problem(203, 41);
  const Hyperparameters theta;
  const auto expected =
      dense_reference::regress(theta, problem.training.times, problem.training.residuals_ppm, problem.forecast);
  ASSERT_TRUE(expected);
  for (const unsigned workers : {1U, 3U}) {
    for (const std::size_t tile : {17UL, 64UL, 256UL}) {
      tandem::Runtime runtime({.workers = workers, .sched = {}, .more = {}});
      GaussianProcess process(runtime, problem.training, tile);
      const auto found = process.regress(theta, problem.forecast);
      ASSERT_TRUE(found);
      EXPECT_NEAR(found->log_marginal_likelihood, expected->log_marginal_likelihood,
                  1e-8 * std::abs(expected->log_marginal_likelihood));
      ASSERT_EQ(found->mean_ppm.size(), expected->mean.size());
      for (std::size_t j = 0; j < expected->mean.size(); ++j) {
        EXPECT_NEAR(found->mean_ppm[j], expected->mean[j], 1e-6);
        EXPECT_NEAR(found->deviation_ppm[j], std::sqrt(expected->variance[j]), 1e-6);
      }
    }
  }
}

TEST(GaussianProcess, TheGradientEqualsTheDenseOneAndTheDifferences) {
  const Problem problem = some_problem(150, 0);
  Hyperparameters theta;
  theta.white_noise_ppm = 0.4;
  tandem::Runtime runtime({.workers = 2U, .sched = {}, .more = {}});
  GaussianProcess process(runtime, problem.training, 40);
  const auto found = process.likelihood(theta);
  const auto expected =
      dense_reference::regress(theta, problem.training.times, problem.training.residuals_ppm, problem.forecast);
  ASSERT_TRUE(found && expected);
  EXPECT_NEAR(found->log_marginal_likelihood, expected->log_marginal_likelihood,
              1e-8 * std::abs(expected->log_marginal_likelihood));
  for (std::size_t p = 0; p < hyperparameter_count; ++p) {
    const auto& field = hyperparameter_fields[p];
    EXPECT_NEAR(found->gradient[p], expected->gradient[p], 1e-6 * std::max(1.0, std::abs(expected->gradient[p])))
        << field.name;
    const double step = 1e-4;
    Hyperparameters above = theta, below = theta;
    above.*field.member *= std::exp(step);
    below.*field.member *= std::exp(-step);
    const double difference =
        (process.likelihood(above)->log_marginal_likelihood - process.likelihood(below)->log_marginal_likelihood) /
        (2 * step);
    EXPECT_NEAR(found->gradient[p], difference, 1e-3 * std::max(1.0, std::abs(difference))) << field.name;
  }
}

TEST(GaussianProcess, TheLikelihoodIsTheSameInEachRunToTheLastDigit) {
  const Problem problem = some_problem(180, 10);
  double first = 0;
  for (int run = 0; run < 5; ++run) {
    tandem::Runtime runtime({.workers = 4U, .sched = "random", .more = {}});
    GaussianProcess process(runtime, problem.training, 30);
    const double found = process.regress({}, problem.forecast)->log_marginal_likelihood;
    if (run == 0) first = found;
    EXPECT_EQ(found, first);
  }
}

TEST(GaussianProcess, AMatrixThatIsNotPositiveDefiniteIsAResultNotAnError) {
  Problem problem = some_problem(60, 5);
  Hyperparameters theta;
  theta.white_noise_ppm = 1e-12;
  theta.correlated_noise_ppm = 1e-12;
  theta.medium_amplitude_ppm = 1e-12;
  theta.trend_amplitude_ppm = 1e3;
  tandem::Runtime runtime({.workers = 2U, .sched = {}, .more = {}});
  GaussianProcess process(runtime, problem.training, 16);
  EXPECT_FALSE(process.regress(theta, problem.forecast));
  EXPECT_FALSE(process.likelihood(theta));
  EXPECT_TRUE(process.regress({}, problem.forecast)) << "the next call is not disturbed";
}

TEST(GaussianProcess, AForecastFarAwayKnowsNothingButTheVariance) {
  const Problem problem = some_problem(50, 0);
  const Hyperparameters theta;
  tandem::Runtime runtime({.workers = 2U, .sched = {}, .more = {}});
  GaussianProcess process(runtime, problem.training, 16);
  const auto found = process.regress(theta, TimeAxis({9000.25}));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->mean_ppm[0], 0, 1e-1);
  EXPECT_NEAR(found->deviation_ppm[0], std::sqrt(measurement_variance(theta)), 1e-2);
}

}  // namespace
}  // namespace co2_forecast::gaussian_process_test
