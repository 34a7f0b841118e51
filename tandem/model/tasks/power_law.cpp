// tandem/model/tasks/power_law.cpp: the fit: two parameters by least squares, the exponent by search.
#include "tandem/model/tasks/power_law.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/model/line_sums.hpp"

namespace tandem::model {
namespace {

constexpr double kLeastExponent = 0.2, kGreatestExponent = 4;
constexpr double kLeastErrorOfMean = 0.01;  ///< of a mean, relative

struct Point {
  double t, log_t, y, weight;
};

struct Line {
  double a, c, cost;
};

/// The best a, c >= 0 for one exponent.
Line best_line(const std::vector<Point>& points, double b) {
  LineSums sums;
  for (const Point& p : points) sums.add(std::exp(b * p.log_t), p.y, p.weight);
  const auto [a, c] = sums.best();
  double cost = (b - 1) * (b - 1);
  for (const Point& p : points) {
    const double difference = a * std::exp(b * p.log_t) + c - p.y;
    cost += p.weight * difference * difference;
  }
  return {a, c, cost};
}

/// The exponent of least cost: the best of a grid, then golden section between its neighbours.
double best_exponent(const std::vector<Point>& points) {
  constexpr int kSteps = 38;
  constexpr double kStep = (kGreatestExponent - kLeastExponent) / kSteps;
  const auto cost = [&](double b) { return best_line(points, b).cost; };
  double best = kLeastExponent, least = cost(best);
  for (int i = 1; i <= kSteps; ++i)
    if (const double b = kLeastExponent + i * kStep, here = cost(b); here < least) best = b, least = here;
  double low = std::max(kLeastExponent, best - kStep), high = std::min(kGreatestExponent, best + kStep);
  const double golden = (std::sqrt(5.0) - 1) / 2;
  while (high - low > 1e-4) {
    const double left = high - golden * (high - low), right = low + golden * (high - low);
    if (cost(left) < cost(right)) high = right;
    else low = left;
  }
  return (low + high) / 2;
}

using Matrix = std::array<std::array<double, 3>, 3>;

/// The inverse of a symmetric positive definite matrix, by cofactors.
Matrix inverse(const Matrix& m) {
  Matrix result{};
  const auto minor = [&](int row, int column) {
    const int r1 = (row + 1) % 3, r2 = (row + 2) % 3, c1 = (column + 1) % 3, c2 = (column + 2) % 3;
    return m[r1][c1] * m[r2][c2] - m[r1][c2] * m[r2][c1];
  };
  const double determinant = m[0][0] * minor(0, 0) + m[0][1] * minor(0, 1) + m[0][2] * minor(0, 2);
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 3; ++column) result[row][column] = minor(column, row) / determinant;
  return result;
}

}  // namespace

std::optional<PowerLaw> PowerLaw::fit(std::span<const SizePoint> measured) {
  std::vector<Point> points;
  PowerLaw law;
  double noise = 0;
  law.least_ = HUGE_VAL;
  law.scale_ = 0;
  for (const SizePoint& point : measured) {
    if (!point.duration.known || point.size < 1) continue;
    law.scale_ = std::max(law.scale_, point.size);
    law.least_ = std::min(law.least_, point.size);
  }
  double top = 0;  // the greatest mean: the unit of a and c
  for (const SizePoint& point : measured) {
    const Estimate& duration = point.duration;
    if (!duration.known || point.size < 1) continue;
    const double error =
        std::max(duration.deviation_ns / std::sqrt(static_cast<double>(std::min<std::uint64_t>(duration.samples, 29))),
                 kLeastErrorOfMean * duration.mean_ns);
    const double t = point.size / law.scale_;
    points.push_back({t, std::log(t), duration.mean_ns, 1 / (error * error)});
    noise += duration.deviation_ns / duration.mean_ns;
    law.samples_ += duration.samples;
    top = std::max(top, duration.mean_ns);
  }
  if (points.size() < 3 || law.scale_ < 2 * law.least_) return {};
  law.noise_ = noise / static_cast<double>(points.size());
  law.b_ = best_exponent(points);
  const Line line = best_line(points, law.b_);
  law.a_ = line.a;
  law.c_ = line.c;

  // a and c in units of `top`, so that the matrix has entries of one size; for each, the expectation 0 +- 10 keeps it
  // invertible.
  Matrix information{{{0.01, 0, 0}, {0, 1, 0}, {0, 0, 0.01}}};
  for (const Point& p : points) {
    const double u = std::exp(law.b_ * p.log_t);
    const std::array<double, 3> gradient{u * top, law.a_ * u * p.log_t, top};
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) information[i][j] += p.weight * gradient[i] * gradient[j];
  }
  law.covariance_ = inverse(information);
  const double excess = points.size() > 3 ? std::max(1.0, line.cost / static_cast<double>(points.size() - 3)) : 1;
  const std::array<double, 3> unit{top, 1, top};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) law.covariance_[i][j] *= excess * unit[i] * unit[j];
  return law;
}

double PowerLaw::mean_ns(double size) const noexcept { return a_ * std::pow(size / scale_, b_) + c_; }

Estimate PowerLaw::estimate(double size) const noexcept {
  const double t = std::max(size, 1.0) / scale_, u = std::pow(t, b_), mean = a_ * u + c_;
  const std::array<double, 3> gradient{u, a_ * u * std::log(t), 1};
  double of_mean = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) of_mean += gradient[i] * covariance_[i][j] * gradient[j];
  of_mean = std::max(0.0, of_mean);
  const double deviation = std::sqrt(noise_ * noise_ * mean * mean + of_mean);
  return {.mean_ns = mean,
          .deviation_ns = deviation,
          .samples = samples_,
          .law_error_ns = std::sqrt(of_mean),
          .beyond = std::max({1.0, t, least_ / std::max(size, 1.0)}),
          .known = mean > 0 && deviation <= kKnownDeviation * mean};
}

}  // namespace tandem::model
