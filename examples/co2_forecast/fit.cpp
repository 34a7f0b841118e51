// examples/co2_forecast/fit.cpp: NLopt's L-BFGS around the likelihood, in logarithms.
#include "fit.hpp"

#include <nlopt.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <vector>

namespace co2_forecast {

namespace {

using tandem::base::Error;
using tandem::base::ErrorCode;
using tandem::base::Result;
using SteadyClock = std::chrono::steady_clock;

std::vector<double> logarithms_of(const Hyperparameters& theta) {
  std::vector<double> x;
  for (const auto& field : hyperparameter_fields) {
    x.push_back(std::clamp(std::log(theta.*field.member), std::log(field.lower), std::log(field.upper)));
  }
  return x;
}

Hyperparameters hyperparameters_at(const std::vector<double>& x) {
  Hyperparameters theta;
  for (std::size_t p = 0; p < hyperparameter_count; ++p) theta.*hyperparameter_fields[p].member = std::exp(x[p]);
  return theta;
}

/// The function that NLopt maximises. It keeps the best point itself: a line search may end elsewhere.
class Objective {
 public:
  Objective(const LikelihoodFunction& likelihood, const FitOptions& options)
      : likelihood_(likelihood), options_(options) {
    best_.log_marginal_likelihood = -std::numeric_limits<double>::infinity();
  }

  /// What NLopt calls, with the Objective as `self`. NLopt is C inside, so an exception is carried around it.
  static double evaluate(const std::vector<double>& x, std::vector<double>& gradient, void* self) {
    auto& objective = *static_cast<Objective*>(self);
    try {
      return objective.at(x, gradient);
    } catch (...) {
      objective.thrown_ = std::current_exception();
      throw nlopt::forced_stop();
    }
  }

  FitOutcome& best() { return best_; }
  std::exception_ptr thrown() const { return thrown_; }

 private:
  double at(const std::vector<double>& x, std::vector<double>& gradient) {
    const Hyperparameters theta = hyperparameters_at(x);
    const auto found = likelihood_(theta);
    ++best_.evaluation_count;
    best_.seconds = std::chrono::duration<double>(SteadyClock::now() - begin_).count();
    if (found && found->log_marginal_likelihood > best_.log_marginal_likelihood) {
      best_.theta = theta;
      best_.log_marginal_likelihood = found->log_marginal_likelihood;
    }
    if (options_.progress) {
      options_.progress({best_.evaluation_count, best_.seconds,
                         found ? std::optional{found->log_marginal_likelihood} : std::nullopt,
                         best_.log_marginal_likelihood});
    }
    if (!gradient.empty()) {
      for (std::size_t p = 0; p < hyperparameter_count; ++p) gradient[p] = found ? found->gradient[p] : 0;
    }
    // Where K is not positive definite the line search must turn back: worse than any likelihood, yet a number to
    // compare.
    constexpr double impossible = -1e12;
    return found ? found->log_marginal_likelihood : impossible;
  }

  const LikelihoodFunction& likelihood_;
  const FitOptions& options_;
  SteadyClock::time_point begin_ = SteadyClock::now();
  FitOutcome best_;
  std::exception_ptr thrown_;
};

/// The limits are compared here too: when one is met inside a line search, L-BFGS reports success.
std::string reason(nlopt::result code, const FitOutcome& outcome, const FitOptions& options) {
  if (code == nlopt::MAXEVAL_REACHED || outcome.evaluation_count >= options.evaluations_limit)
    return "the limit of evaluations";
  if (code == nlopt::MAXTIME_REACHED || outcome.seconds >= options.seconds_limit) return "the limit of time";
  if (code == nlopt::FTOL_REACHED) return "a step gained less than the tolerance";
  return "converged";
}

}  // namespace

Result<FitOutcome> fit(const Hyperparameters& start, const LikelihoodFunction& likelihood, const FitOptions& options) {
  Objective objective(likelihood, options);
  nlopt::opt optimiser(nlopt::LD_LBFGS, hyperparameter_count);

  std::vector<double> lower, upper;
  for (const auto& field : hyperparameter_fields) {
    lower.push_back(std::log(field.lower));
    upper.push_back(std::log(field.upper));
  }
  optimiser.set_lower_bounds(lower);
  optimiser.set_upper_bounds(upper);
  optimiser.set_ftol_abs(options.tolerance_nats);
  optimiser.set_maxeval(static_cast<int>(options.evaluations_limit));
  optimiser.set_maxtime(options.seconds_limit);
  optimiser.set_max_objective(Objective::evaluate, &objective);

  auto x = logarithms_of(start);
  double ignored = 0;
  try {
    const auto code = optimiser.optimize(x, ignored);
    objective.best().stopped_because = reason(code, objective.best(), options);
  } catch (const nlopt::roundoff_limited&) {
    objective.best().stopped_because = "rounding errors hide any further gain";
  } catch (const nlopt::forced_stop&) {
    std::rethrow_exception(objective.thrown());
  } catch (const std::runtime_error&) {
    // NLopt's L-BFGS reports a line search that finds no ascent as a general failure; near a maximum that is the normal
    // end.
    objective.best().stopped_because = "no step gained more";
  }
  if (std::isinf(objective.best().log_marginal_likelihood)) {
    return Error{
        ErrorCode::invalid_argument,
        "the covariance matrix is not positive definite at any hyperparameters tried; raise --hyper white_noise=..."};
  }
  return std::move(objective.best());
}

}  // namespace co2_forecast
