// tandem/clock/correction_solver.cpp: sparse L D L', and augmented Lagrangians over it.
#include "tandem/clock/correction_solver.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tandem::clock::internal {
namespace {

constexpr int kMostMultiplierSteps = 60, kMostNewtonSteps = 60, kBisections = 50;
/// Multipliers that leave more than this share of the worst violation cause a greater stiffness, up to a limit.
constexpr double kWantedGain = 0.25, kStiffening = 4, kMostStiffening = 1e4;
/// Steps after which a violation that stays, within that share, shows that inequalities contradict each other.
constexpr int kIdleSteps = 6;
constexpr double kIdleGain = 0.99;

constexpr std::size_t kNone = Place::nowhere;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// An entry of c.
struct Term {
  std::size_t column;
  double factor;
};

/// The coefficients of x in an inequality; `place_of` leads from unknowns to columns.
std::vector<Term> normal_of(const Inequality& inequality, const std::vector<std::size_t>& place_of) {
  std::vector<Term> terms;
  const auto add = [&](const Place& place, double sign) {
    if (!place.exists()) return;
    terms.push_back({place_of[place.column], sign * (1 - place.share)});
    terms.push_back({place_of[place.column + 1], sign * place.share});
  };
  add(inequality.to, 1);
  add(inequality.from, -1);
  return terms;
}

double product(const std::vector<Term>& terms, const std::vector<double>& x) {
  double sum = 0;
  for (const Term& term : terms) sum += term.factor * x[term.column];
  return sum;
}

void add_square(const std::vector<Term>& terms, double weight, SparseMatrix& matrix) {
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t j = i; j < terms.size(); ++j)
      matrix.add(terms[i].column, terms[j].column, weight * terms[i].factor * terms[j].factor);
}

std::vector<double> solution(const SparseMatrix& matrix, const std::vector<double>& right_side) {
  const SparseFactor factor(matrix);
  std::vector<double> x = right_side;
  factor.solve(x);
  // A second solve reduces rounding errors, since only their bends determine curves between far points.
  std::vector<double> residual = matrix.times(x);
  for (std::size_t i = 0; i < x.size(); ++i) residual[i] = right_side[i] - residual[i];
  factor.solve(residual);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += residual[i];
  return x;
}

/// The function to be minimised for given multipliers, and its minimum.
class Augmented {
 public:
  struct Row {
    std::vector<Term> normal;
    double gap = 0, multiplier = 0;
    double value(const std::vector<double>& x) const { return gap + product(normal, x); }
  };

  Augmented(const SparseMatrix& matrix, const std::vector<double>& right_side, std::vector<Row> rows, double stiffness)
      : matrix_(matrix), right_side_(right_side), rows_(std::move(rows)), stiffness_(stiffness) {}

  void minimise(std::vector<double>& x) const {
    std::vector<std::size_t> before;
    for (int step = 0; step < kMostNewtonSteps; ++step) {
      std::vector<std::size_t> at_work;
      for (std::size_t k = 0; k < rows_.size(); ++k)
        if (stiffness_ * rows_[k].value(x) < rows_[k].multiplier) at_work.push_back(k);
      if (step > 0 && at_work == before) return;
      move(newton_point(at_work), x);
      before = std::move(at_work);
    }
  }

  /// z <- max(0, z - mu g). Returns the worst violation.
  double update_multipliers(const std::vector<double>& x) {
    double worst = 0;
    for (Row& row : rows_) {
      const double value = row.value(x);
      row.multiplier = std::max(0.0, row.multiplier - stiffness_ * value);
      worst = std::max(worst, -value);
    }
    return worst;
  }

  double stiffness() const noexcept { return stiffness_; }
  void stiffen(double factor) noexcept { stiffness_ *= factor; }

 private:
  std::vector<double> newton_point(const std::vector<std::size_t>& at_work) const {
    SparseMatrix matrix = matrix_;
    std::vector<double> right_side = right_side_;
    for (const std::size_t k : at_work) {
      add_square(rows_[k].normal, stiffness_, matrix);
      for (const Term& term : rows_[k].normal)
        right_side[term.column] += term.factor * (rows_[k].multiplier - stiffness_ * rows_[k].gap);
    }
    return solution(matrix, right_side);
  }

  /// Moves to the minimum between x and `target`: all the way when the function still falls there.
  void move(const std::vector<double>& target, std::vector<double>& x) const {
    std::vector<double> direction = target;
    for (std::size_t i = 0; i < x.size(); ++i) direction[i] -= x[i];
    const std::vector<double> product_x = matrix_.times(x);
    const double slope = dot(direction, product_x) - dot(direction, right_side_),
                 bend = dot(direction, matrix_.times(direction));
    std::vector<std::pair<double, double>> lines;  // g - z / mu at x, and its growth along the direction
    for (const Row& row : rows_)
      lines.emplace_back(row.value(x) - row.multiplier / stiffness_, product(row.normal, direction));
    const auto rises = [&](double length) {
      double sum = slope + length * bend;
      for (const auto& [value, growth] : lines) sum += stiffness_ * growth * std::min(0.0, value + length * growth);
      return sum > 0;
    };
    double low = 0, high = 1;
    if (rises(1)) {
      for (int i = 0; i < kBisections; ++i) (rises((low + high) / 2) ? high : low) = (low + high) / 2;
    }
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = high == 1 ? target[i] : x[i] + high * direction[i];
  }

  const SparseMatrix& matrix_;
  const std::vector<double>& right_side_;
  std::vector<Row> rows_;
  double stiffness_;
};

}  // namespace

void SparseMatrix::add(std::size_t row, std::size_t column, double value) {
  if (row > column) std::swap(row, column);
  std::vector<Entry>& entries = columns_[column];
  const auto at = std::lower_bound(entries.begin(), entries.end(), row,
                                   [](const Entry& entry, std::size_t index) { return entry.row < index; });
  if (at != entries.end() && at->row == row) at->value += value;
  else entries.insert(at, {row, value});
}

std::vector<double> SparseMatrix::times(const std::vector<double>& x) const {
  std::vector<double> y(size());
  for (std::size_t index = 0; index < size(); ++index) {
    for (const auto& [row, value] : columns_[index]) {
      y[row] += value * x[index];
      if (row != index) y[index] += value * x[row];
    }
  }
  return y;
}

SparseFactor::SparseFactor(const SparseMatrix& matrix) : begin_(matrix.size() + 1), diagonal_(matrix.size()) {
  const std::size_t size = matrix.size();
  // Row k of L is not zero at i where a path of parents leads from some entry (j, k) of A through i: the elimination
  // tree, in which the parent of i is the first row below it that is not zero.
  std::vector<std::size_t> parent(size, kNone), seen_for(size, kNone), used(size);
  for (std::size_t k = 0; k < size; ++k) {
    seen_for[k] = k;
    for (const auto& entry : matrix.column(k)) {
      for (std::size_t i = entry.row; seen_for[i] != k; i = parent[i]) {
        if (parent[i] == kNone) parent[i] = k;
        ++begin_[i + 1];
        seen_for[i] = k;
      }
    }
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  rows_.resize(begin_.back());
  values_.resize(begin_.back());

  // Row k solves L y = (column k of A); then l_ki = y_i / d_i and d_k = a_kk - sum l_ki y_i.
  std::fill(seen_for.begin(), seen_for.end(), kNone);
  std::vector<double> y(size);
  std::vector<std::size_t> path, order;
  for (std::size_t k = 0; k < size; ++k) {
    order.clear();
    seen_for[k] = k;
    for (const auto& entry : matrix.column(k)) {
      y[entry.row] += entry.value;
      path.clear();
      for (std::size_t i = entry.row; seen_for[i] != k; i = parent[i]) {
        path.push_back(i);
        seen_for[i] = k;
      }
      order.insert(order.end(), path.rbegin(), path.rend());
    }
    diagonal_[k] = std::exchange(y[k], 0);
    // Later paths end in earlier ones, and each was reversed: backwards, every i comes before its parent.
    for (auto next = order.rbegin(); next != order.rend(); ++next) {
      const std::size_t i = *next, end = begin_[i] + used[i];
      const double value = std::exchange(y[i], 0);
      for (std::size_t p = begin_[i]; p < end; ++p) y[rows_[p]] -= values_[p] * value;
      rows_[end] = k;
      values_[end] = value / diagonal_[i];
      diagonal_[k] -= values_[end] * value;
      ++used[i];
    }
  }
}

void SparseFactor::solve(std::vector<double>& x) const {
  const std::size_t size = diagonal_.size();
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t p = begin_[i]; p < begin_[i + 1]; ++p) x[rows_[p]] -= values_[p] * x[i];
  for (std::size_t i = size; i-- > 0;) {
    x[i] /= diagonal_[i];
    for (std::size_t p = begin_[i]; p < begin_[i + 1]; ++p) x[i] -= values_[p] * x[rows_[p]];
  }
}

LeastSquares::LeastSquares(std::span<const double> times)
    : place_of_(times.size()), matrix_(times.size()), right_side_(times.size()) {
  std::vector<std::size_t> by_time(times.size());
  std::iota(by_time.begin(), by_time.end(), std::size_t{0});
  std::stable_sort(by_time.begin(), by_time.end(), [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
  for (std::size_t place = 0; place < by_time.size(); ++place) place_of_[by_time[place]] = place;
}

void LeastSquares::add_value(const Place& place, double value, double weight) {
  const std::vector<Term> terms = normal_of({.from = {}, .to = place}, place_of_);
  add_square(terms, weight, matrix_);
  for (const Term& term : terms) right_side_[term.column] += weight * value * term.factor;
}

void LeastSquares::add_zero(std::size_t column, std::span<const double> entries, double weight) {
  std::vector<Term> terms;
  for (const double entry : entries) terms.push_back({place_of_[column++], entry});
  add_square(terms, weight, matrix_);
}

std::vector<double> LeastSquares::solve(std::span<const Inequality> inequalities, const Limits& limits) const {
  std::vector<double> x = solution(matrix_, right_side_);
  std::vector<Augmented::Row> rows;
  for (const Inequality& inequality : inequalities) rows.push_back({normal_of(inequality, place_of_), inequality.gap});
  Augmented augmented(matrix_, right_side_, std::move(rows), limits.stiffness);
  double worst = std::numeric_limits<double>::infinity();
  int idle = 0;
  for (int step = 0; step < kMostMultiplierSteps && idle < kIdleSteps && !inequalities.empty(); ++step) {
    augmented.minimise(x);
    const double last_worst = std::exchange(worst, augmented.update_multipliers(x));
    if (worst <= limits.tolerance) break;
    idle = worst > kIdleGain * last_worst ? idle + 1 : 0;
    if (worst > kWantedGain * last_worst && augmented.stiffness() < kMostStiffening * limits.stiffness)
      augmented.stiffen(kStiffening);
  }
  std::vector<double> in_given_order(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) in_given_order[i] = x[place_of_[i]];
  return in_given_order;
}

}  // namespace tandem::clock::internal
