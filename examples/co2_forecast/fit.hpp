// examples/co2_forecast/fit.hpp: the hyperparameters under which the measurements are most likely.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "covariance.hpp"
#include "tandem/base/result.hpp"

namespace co2_forecast {

/// The log marginal likelihood, in nats, and its derivatives with respect to the logarithms of the hyperparameters.
struct Likelihood {
  double log_marginal_likelihood = 0;
  Gradient gradient{};
};

/// Nothing when the covariance matrix is numerically not positive definite under these hyperparameters.
using LikelihoodFunction = std::function<std::optional<Likelihood>(const Hyperparameters&)>;

/// The report of one evaluation, given while the fit runs.
struct FitProgress {
  std::size_t evaluation_count = 0;
  double seconds = 0;  ///< since the fit began
  std::optional<double> log_marginal_likelihood;
  double best_log_marginal_likelihood = 0;  ///< minus infinity until an evaluation succeeded
};

/// When the fit stops, and the function that gets its progress.
struct FitOptions {
  double tolerance_nats = 1e-4;  ///< it stops when a step gains less than this
  std::size_t evaluations_limit = 200;
  double seconds_limit = 600;
  std::function<void(const FitProgress&)> progress = {};
};

/// The best that was seen, and why no more was tried.
struct FitOutcome {
  Hyperparameters theta;
  double log_marginal_likelihood = 0;
  std::size_t evaluation_count = 0;
  double seconds = 0;
  std::string stopped_because;
};

/// Climbs from `start` (moved into the bounds of hyperparameter_fields) by L-BFGS over the logarithms of the
/// hyperparameters, with NLopt. Finds a local maximum. An error when the likelihood cannot be evaluated anywhere. Calls
/// `likelihood` and `progress` on this thread; what they throw comes out.
tandem::base::Result<FitOutcome> fit(const Hyperparameters& start, const LikelihoodFunction& likelihood,
                                     const FitOptions& options = {});

}  // namespace co2_forecast
