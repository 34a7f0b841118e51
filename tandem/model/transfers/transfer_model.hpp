// tandem/model/transfers/transfer_model.hpp: durations of transfers: latency and bandwidth of one link, alone and under
// load.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/model/tasks/size_model.hpp"

namespace tandem::model {

/// y(s) = latency + s / bandwidth: the affine law of a link, for people and for comparisons.
struct AffineLink {
  double latency_ns = 0;
  double bytes_per_ns = 0;        ///< 0: the size does not matter
  double latency_error_ns = 0;    ///< standard errors, of the fit
  double bytes_per_ns_error = 0;
};

/// Durations of transfers over one link, by their bytes: a piecewise affine curve through the measured sizes.
///
/// A link is seldom affine: protocols change with the size, and caches end. So the curve goes through the means m_i of
/// the measured sizes s_i, each by its `History`, once they ascend: neighbours that descend are replaced by their mean,
/// weighted by 1 / e_i^2 (the pool of adjacent violators, which is least squares under the order). Between two sizes it
/// is affine. Outside it continues with the slope between the last size and the next one that differs by a factor of
/// two.
///
/// The relative deviation is that of the neighbouring sizes; beyond the measured ones it grows by as much again with
/// each factor of two. Known within a factor of 16 of the measured sizes, if these span a factor of two; else at the
/// measured size alone.
///
/// A value of bounded size (64 measured sizes, as `SizeModel`); not thread-safe.
class TransferCurve {
 public:
  void add(std::uint64_t bytes, double ns) { sizes_.add(bytes, ns); ++added_; }
  /// The estimate for a size. Some tens of ns; 2 us for 16 sizes when 16 durations came since the last curve was made.
  Estimate estimate(std::uint64_t bytes);
  /// Weighted least squares of relative errors, both terms at least 0; empty: fewer than two sizes are known.
  std::optional<AffineLink> affine() const;

  const SizeModel& sizes() const noexcept { return sizes_; }
  /// Gives a size this history, as read from a file.
  void set(std::uint64_t bytes, const History& history) { sizes_.set(bytes, history); made_at_ = 0; }

 private:
  struct Node {
    double bytes = 0, mean_ns = 0, deviation = 0, weight = 0;  ///< deviation: relative
    std::uint64_t samples = 0;
  };
  std::vector<Node> known_sizes() const;
  void make_curve();
  double slope_at(bool begin) const;

  SizeModel sizes_;
  std::vector<Node> curve_;  ///< by size; its means do not descend
  std::uint64_t added_ = 0, made_at_ = 0;  ///< `made_at_`: `added_` from which on the curve is made anew
};

/// One link, alone and while all others are busy, too.
struct TransferModel {
  TransferCurve alone;
  TransferCurve loaded;

  /// `load` is from 0 (alone) to 1 (as when `loaded` was measured): the mean lies between those of both curves, in
  /// proportion. If one curve is not known, it is the other one's, with a deviation that grows with the distance in
  /// load.
  Estimate estimate(std::uint64_t bytes, double load);
};

}  // namespace tandem::model
