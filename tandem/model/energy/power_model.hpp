// tandem/model/energy/power_model.hpp: watts of each kind of kernel, from counters of the energy of all that runs
// together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem::model {

/// A power, and its uncertainty.
struct Watts {
  double watts = 0;    ///< 0 when nothing is known
  double error = 0;    ///< standard error
  double seconds = 0;  ///< time of observation

  /// Whether enough was measured to decide by it.
  bool is_known() const noexcept { return seconds > 0 && error < 0.5 * watts; }
  /// Confidence from 0 to 1, like that of `Estimate`: two standard errors subtracted.
  double confidence() const noexcept { return watts > 0 && 2 * error < watts ? 1 - 2 * error / watts : 0; }
};

/// The power of workers of one kind. Over an interval of t seconds, in which kernels of codelet k ran for b_k seconds,
/// summed over the workers, a counter that all of them share shows
///
///   E = p_0 t + sum_k p_k b_k + noise,     variance of the noise: s^2 t
///
/// p_0 is the power when no kernel runs, and p_k what one running kernel adds. With rows (t, b_1 ... b_K) / sqrt(t),
/// least squares give all of them from many intervals, whatever runs at the same time. Only sums of products are kept,
/// so an interval costs (K + 1)^2 additions.
///
/// What the intervals cannot distinguish, since codelets always ran in one proportion, or workers were never idle, a
/// prior decides: p_k is m +- m / 2, with m, common to all codelets, to be estimated, too; p_0 is 0 +- the mean power.
/// So energy is shared in proportion to time until more is known, and the errors, which are those of the posterior,
/// show it. s^2 comes from the remainder; it is 1 % of the energy of a mean interval at least, since counters are
/// updated each millisecond or so. No power is negative: those that would be are 0.
///
/// One thread at a time.
class PowerModel {
 public:
  static constexpr std::size_t kMostCodelets = 32;  ///< callers let one number stand for all further ones

  /// How long kernels of a codelet ran.
  struct Busy {
    unsigned codelet = 0;  ///< below `kMostCodelets`
    double seconds = 0;
  };
  /// Adds the joules that a counter, or several together, have shown in `seconds`. Codelets that are not in `busy` did
  /// not run.
  void add(double joules, double seconds, std::span<const Busy> busy);

  /// All powers of the model.
  struct Fit {
    Watts idle;                   ///< p_0
    std::vector<Watts> codelets;  ///< p_k, by number
  };
  /// The powers by all intervals so far: about 100 us for 30 codelets.
  Fit fit() const;

  std::uint64_t intervals() const noexcept { return intervals_; }  ///< that were added
  double joules() const noexcept { return joules_; }               ///< of all of them
  double seconds() const noexcept { return seconds_; }             ///< that they lasted

 private:
  double& at(std::size_t i, std::size_t j) noexcept { return products_[i * (kMostCodelets + 1) + j]; }
  double at(std::size_t i, std::size_t j) const noexcept { return products_[i * (kMostCodelets + 1) + j]; }
  double remainder(std::span<const double> powers) const;

  /// Sums of products of rows; row 0 is idle.
  std::vector<double> products_ = std::vector<double>((kMostCodelets + 1) * (kMostCodelets + 1));
  std::vector<double> with_joules_ = std::vector<double>(kMostCodelets + 1);  ///< of rows and energy
  double joules_squared_ = 0;
  std::vector<double> busy_;  ///< seconds, by codelet
  double joules_ = 0, seconds_ = 0;
  std::uint64_t intervals_ = 0;
};

/// The mean of both, weighted by their errors: what two runs have measured.
Watts combined(const Watts& a, const Watts& b);

}  // namespace tandem::model
