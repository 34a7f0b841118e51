// examples/co2_forecast/fit_test.cpp: the climb on a likelihood whose maximum is known, and on ways in which it can
// fail.
#include "fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace co2_forecast::fit_test {
namespace {

/// A quadratic in the logarithms with its maximum 3 at `peak`, of a different width in each.
Likelihood hill(const Hyperparameters& peak, const Hyperparameters& theta) {
  Likelihood result{.log_marginal_likelihood = 3};
  for (std::size_t p = 0; p < hyperparameter_count; ++p) {
    const auto member = hyperparameter_fields[p].member;
    const double x = std::log(theta.*member / peak.*member), curvature = 1 + static_cast<double>(p);
    result.log_marginal_likelihood -= 0.5 * curvature * x * x;
    result.gradient[p] = -curvature * x;
  }
  return result;
}

TEST(Fit, ClimbsToTheMaximumAndReportsEachEvaluation) {
  Hyperparameters peak;
  for (const auto& field : hyperparameter_fields) peak.*field.member *= 1.3;
  std::size_t report_count = 0;
  FitOptions options{.tolerance_nats = 1e-9};
  options.progress = [&](const FitProgress& progress) { EXPECT_EQ(progress.evaluation_count, ++report_count); };
  const auto outcome = fit({}, [&](const Hyperparameters& theta) { return std::optional{hill(peak, theta)}; }, options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_NEAR(outcome.value().log_marginal_likelihood, 3, 1e-8);
  for (const auto& field : hyperparameter_fields) {
    EXPECT_NEAR(outcome.value().theta.*field.member / peak.*field.member, 1, 1e-4) << field.name;
  }
  EXPECT_EQ(outcome.value().evaluation_count, report_count);
}

TEST(Fit, StaysWithinTheBounds) {
  Hyperparameters peak;
  peak.white_noise_ppm = 1e3;
  const auto outcome = fit({}, [&](const Hyperparameters& theta) { return std::optional{hill(peak, theta)}; });
  ASSERT_TRUE(outcome);
  EXPECT_NEAR(outcome.value().theta.white_noise_ppm, hyperparameter_fields.back().upper, 1e-9);
}

TEST(Fit, TurnsBackWhereTheMatrixIsNotPositiveDefinite) {
  Hyperparameters peak;
  peak.white_noise_ppm *= 2;
  const auto outcome = fit({}, [&](const Hyperparameters& theta) -> std::optional<Likelihood> {
    if (theta.white_noise_ppm > peak.white_noise_ppm * 1.2) return std::nullopt;
    return hill(peak, theta);
  });
  ASSERT_TRUE(outcome);
  EXPECT_NEAR(outcome.value().log_marginal_likelihood, 3, 0.05);
}

TEST(Fit, StopsAtTheLimitOfEvaluationsWithTheBestSoFar) {
  Hyperparameters peak;
  peak.season_amplitude_ppm *= 5;
  const auto outcome =
      fit({}, [&](const Hyperparameters& theta) { return std::optional{hill(peak, theta)}; }, {.evaluations_limit = 3});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome.value().evaluation_count, 3u);
  EXPECT_EQ(outcome.value().stopped_because, "the limit of evaluations");
}

TEST(Fit, ALikelihoodThatExistsNowhereIsAnError) {
  const auto outcome = fit({}, [](const Hyperparameters&) { return std::optional<Likelihood>{}; });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, tandem::base::ErrorCode::invalid_argument);
}

TEST(Fit, WhatTheLikelihoodThrowsComesOut) {
  const LikelihoodFunction failing = [](const Hyperparameters&) -> std::optional<Likelihood> {
    throw std::domain_error("a kernel failed");
  };
  EXPECT_THROW((void)fit({}, failing), std::domain_error);
}

}  // namespace
}  // namespace co2_forecast::fit_test
