// tandem/model/line_sums.hpp: the line y = slope u + constant through weighted points, both not negative.
#pragma once

namespace tandem::model {

/// Sums over points (u, y), whose weights are the inverse of the variance of y. Two points of different u, at least,
/// give a line.
struct LineSums {
  double w = 0, wu = 0, wuu = 0, wy = 0, wuy = 0;

  void add(double u, double y, double weight) noexcept {
    w += weight;
    wu += weight * u;
    wuu += weight * u * u;
    wy += weight * y;
    wuy += weight * u * y;
  }
  double determinant() const noexcept { return w * wuu - wu * wu; }

  struct Line {
    double slope, constant;
  };
  /// The line of the least weighted squares; a negative coefficient is 0. All points at one u: their mean.
  Line best() const noexcept {
    const double d = determinant();
    const Line line = d > 0 ? Line{(w * wuy - wu * wy) / d, (wuu * wy - wu * wuy) / d} : Line{0, wy / w};
    if (line.slope < 0) return {0, wy / w};
    if (line.constant < 0) return {wuy / wuu, 0};
    return line;
  }
};

}  // namespace tandem::model
