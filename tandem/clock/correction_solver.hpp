// tandem/clock/correction_solver.hpp: least squares over functions that are linear between knots, under inequalities.
//
// Mathematics. x holds the values of several functions at their knots, one function after the other. The problem is
//
//     min  x'Ax/2 - b'x    under    g_k(x) = c_k'x + d_k >= 0,
//
// A of half bandwidth 2 without entries between different functions; each c_k has two neighbouring entries for a place
// in one function and two for one in another. By augmented Lagrangians (Rockafellar, 1973), with multipliers z_k >= 0,
// a stiffness mu,
//
//     x  <-  argmin  x'Ax/2 - b'x + mu/2 sum_k min(0, g_k(x) - z_k/mu)^2,      z_k  <-  max(0, z_k - mu g_k(x)).
//
// The minimum is found by Newton steps, each with those k whose term is not zero at present, and as long as is best
// along its direction: the function is convex, so that its slope has one zero there. Each step's system, A + mu sum c
// c', is solved by a sparse L D L' (up-looking; Davis, "Direct methods for sparse linear systems", 4.7), the unknowns
// in order of time. So what L has between different functions is due to the inequalities at work alone.
//
// Example: x = (x_0, x_1), A = 1 and b = (0, 0), under x_1 - x_0 - 2 >= 0, has x = (-1, 1) with z = 1.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace tandem::clock::internal {

/// (1 - share) x[column] + share x[column + 1], or 0 where there is no column.
struct Place {
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  std::size_t column = nowhere;
  double share = 0;

  bool exists() const noexcept { return column != nowhere; }
  double of(const std::vector<double>& x) const noexcept {
    return exists() ? (1 - share) * x[column] + share * x[column + 1] : 0;
  }
};

/// gap + x(to) - x(from) >= 0.
struct Inequality {
  Place from, to;
  double gap = 0;
  double value(const std::vector<double>& x) const noexcept { return gap + to.of(x) - from.of(x); }
};

/// The upper triangle of a symmetric matrix, summed up from what is added.
class SparseMatrix {
 public:
  explicit SparseMatrix(std::size_t size) : columns_(size) {}

  std::size_t size() const noexcept { return columns_.size(); }
  void add(std::size_t row, std::size_t column, double value);
  /// The entries (row, value) of a column down to its diagonal, by row.
  struct Entry {
    std::size_t row;
    double value;
  };
  std::span<const Entry> column(std::size_t index) const noexcept { return columns_[index]; }
  std::vector<double> times(const std::vector<double>& x) const;

 private:
  std::vector<std::vector<Entry>> columns_;
};

/// A = L D L' of a positive definite matrix.
class SparseFactor {
 public:
  explicit SparseFactor(const SparseMatrix& matrix);
  void solve(std::vector<double>& x) const;

 private:
  std::vector<std::size_t> begin_,
      rows_;  ///< column i of L below its diagonal of ones: rows_[begin_[i]] to before begin_[i + 1]
  std::vector<double> values_, diagonal_;
};

class LeastSquares {
 public:
  /// Unknowns are neighbours where their times are near, for speed only.
  explicit LeastSquares(std::span<const double> times);

  /// Adds weight (x(place) - value)^2 / 2.
  void add_value(const Place& place, double value, double weight);
  /// Adds weight (sum_i entries_i x[column + i])^2 / 2.
  void add_zero(std::size_t column, std::span<const double> entries, double weight);

  struct Limits {
    double stiffness;  ///< mu at first: some times the weights
    double tolerance;  ///< how far below 0 a g_k may stay
  };
  /// The solution; without any inequality the plain one. When inequalities contradict each other, it violates some.
  std::vector<double> solve(std::span<const Inequality> inequalities, const Limits& limits) const;

 private:
  std::vector<std::size_t> place_of_;  ///< of each unknown, in order of time, which is that of all that follows
  SparseMatrix matrix_;
  std::vector<double> right_side_;
};

}  // namespace tandem::clock::internal
