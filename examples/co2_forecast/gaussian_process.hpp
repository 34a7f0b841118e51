// examples/co2_forecast/gaussian_process.hpp: Gaussian process regression as a flow of tasks on tiles.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "covariance.hpp"
#include "fit.hpp"
#include "tandem/tandem.hpp"

namespace co2_forecast {

/// What is learnt from: times, and measurements less their mean.
struct TrainingSet {
  TimeAxis times;
  std::vector<double> residuals_ppm;
};

/// A regression and a forecast. Means are residuals, as the training set's; deviations are those of a measurement.
struct Regression {
  double log_marginal_likelihood = 0;  ///< in nats
  std::vector<double> mean_ppm;        ///< at each time of the forecast
  std::vector<double> deviation_ppm;
  double flop_count = 0;  ///< of the linear algebra, as LAPACK counts
};

/// Regression on one training set, under hyperparameters that may change from call to call.
///
/// The forecast is of *measurements*. Both noise parts are in it: a measurement to come has its own white noise, and
/// its correlated noise, which lasts for weeks, has in part begun in the last weeks of training. So the covariance
/// between a training week and a forecast week has all parts but the white one, and the variance of a forecast week has
/// all of them. Held-out measurements should then lie inside the 95 % band 95 times in 100; a band for the noiseless
/// curve would be too narrow.
///
/// Owner: the program. Calls go on the thread that constructed the runtime, and return when their tasks have ended;
/// they throw what a kernel threw. The training set and the runtime outlive the object.
class GaussianProcess {
 public:
  /// `tile`: rows and columns of the tiles of the covariance matrix. Cost of a call: about n^2 / 2 covariances, n^3 / 3
  /// flops.
  GaussianProcess(tandem::Runtime& runtime, const TrainingSet& training, std::size_t tile)
      : runtime_(runtime), training_(training), tile_(tile) {}

  /// Algorithm 2.1 of Rasmussen and Williams (2006), with the forecast at `times`, which may be none. Nothing when the
  /// covariance matrix is numerically not positive definite.
  std::optional<Regression> regress(const Hyperparameters& theta, const TimeAxis& times);

  /// The likelihood with its gradient, by equation 5.9 there; three times the flops of the likelihood alone.
  std::optional<Likelihood> likelihood(const Hyperparameters& theta);

 private:
  tandem::Runtime& runtime_;
  const TrainingSet& training_;
  std::size_t tile_;
};

}  // namespace co2_forecast
