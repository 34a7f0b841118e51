// tandem/model/contention/curve_fit.hpp: parameters of a bus from measured bandwidths, with 95 % intervals.
//
// The thesis reads its parameters off the curves: the greatest total, the greatest bandwidth alone, the least share. A
// maximum of noisy numbers is too high, and its position is chance where the curve is flat. Here all four curves are
// fitted at once: errors are relative, so the sum over all measurements of (ln measured - ln predicted)^2 / sigma^2 is
// minimised. For each pair (N_par_max, N_seq_max) the rest follows by Levenberg and Marquardt's method; N_par_max =
// N_seq_max has no delta_l, and N_seq_max at the greatest number of cores no delta_r. The chosen pair has the least sum
// + (number of parameters) ln(number of measurements) (Schwarz's criterion), so that a slope exists only where the data
// show one. sigma is estimated from the residuals, separately for computation and for communication.
// computation and for communication apart.
//
// Intervals are those of the profile likelihood: a value belongs to the interval of a parameter, or of a prediction, if
// some pair and some values of the other parameters explain the measurements almost as well, by Student's t. So they
// include what is not known about N.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/model/contention/sample.hpp"
#include "tandem/model/contention/soft_bus.hpp"

namespace tandem::model::contention {

/// Which parameters are fitted.
enum class BusShape {
  sharp,  ///< the thesis's
  soft,   ///< softness and network weight too, where the data show them
};

/// A range with a confidence of 95 %.
struct Interval {
  double low = 0;   ///< least
  double high = 0;  ///< greatest
  bool contains(double value) const noexcept { return low <= value && value <= high; }
};

/// The result of the measurements at one placement. A value.
class CurveFit {
 public:
  /// A quantity of a bus: a parameter, or a bandwidth that it predicts.
  using Quantity = std::function<double(const SoftParameters&)>;

  const SoftParameters& parameters() const noexcept { return chosen_; }  ///< that explain the measurements best
  /// The interval of any quantity. Calls it some thousand times.
  Interval interval(const Quantity& quantity) const;
  /// The interval of N_par_max, a whole number.
  Interval n_par_max() const noexcept { return n_par_max_; }
  Interval n_seq_max() const noexcept { return n_seq_max_; }  ///< of N_seq_max, a whole number

  double computation_spread() const noexcept {
    return spread_[0];
  }  ///< relative standard deviation of measurements around the fit
  double communication_spread() const noexcept { return spread_[1]; }  ///< relative standard deviation of the network's
  unsigned most_cores() const noexcept { return most_cores_; }         ///< of the measurements

 private:
  friend class CurveFitter;
  static constexpr std::size_t most_parameters = 10;
  using Values = std::array<double, most_parameters>;

  /// One pair (N_par_max, N_seq_max), and the sum of squares that it leaves.
  struct Candidate {
    unsigned n_par_max = 1, n_seq_max = 1;
    std::vector<std::size_t> free;  ///< the parameters that are fitted
    Values values{};
    double sum = 0;                  ///< of squares
    std::vector<double> covariance;  ///< of the free ones, by rows
  };
  static SoftParameters parameters_of(const Candidate& candidate, const Values& values, unsigned most_cores);
  static double step_of(std::size_t parameter, const Values& values);

  SoftParameters chosen_;
  std::vector<Candidate> accepted_;  ///< all that explain the measurements almost as well
  double least_ = 0, slack_ = 0;     ///< the chosen sum of squares, and by how much another may be greater
  Interval n_par_max_, n_seq_max_;
  std::array<double, 2> spread_{};
  unsigned most_cores_ = 0;
};

/// Fits a bus to samples of one placement. Errors: invalid_argument where there are less than four numbers of cores,
/// where one of the four bandwidths was never measured, or where a sample is not positive. Takes milliseconds for 18
/// cores, a second for 64.
base::Result<CurveFit> fit_curve(std::span<const Sample> samples, BusShape shape);

/// Parameters by the thesis's method (sections 6.2.1, 6.3.1): maxima and minima of the curves, the mean of repetitions
/// first. For comparison. Errors: as for `fit_curve`.
base::Result<ThresholdParameters> pick_maxima(std::span<const Sample> samples);

}  // namespace tandem::model::contention
