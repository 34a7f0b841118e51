// tandem/clock/correction_solver.cpp: sparse L D L', and augmented Lagrangians over it.
#include "tandem/clock/correction_solver.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tandem::clock::internal {
namespace {

constexpr int kMostMultiplierSteps = 60, kMostNewtonSteps = 30;
/// Multipliers that leave more than this share of the worst violation want a greater stiffness, up to a limit.
constexpr double kWantedGain = 0.25, kStiffening = 4, kMostStiffening = 1e4;
/// Inequalities that contradict each other show by a violation that stays, over so many steps, within that share.
constexpr int kIdleSteps = 6;
constexpr double kIdleGain = 0.99;

constexpr std::size_t kNone = Place::nowhere;

}  // namespace

void SparseMatrix::add(std::size_t row, std::size_t column, double value) {
  if (row > column) std::swap(row, column);
  std::vector<Entry>& entries = columns_[column];
  const auto at = std::lower_bound(entries.begin(), entries.end(), row,
                                   [](const Entry& entry, std::size_t index) { return entry.row < index; });
  if (at != entries.end() && at->row == row) at->value += value;
  else entries.insert(at, {row, value});
}

SparseFactor::SparseFactor(const SparseMatrix& matrix) : begin_(matrix.size() + 1), diagonal_(matrix.size()) {
  const std::size_t size = matrix.size();
  // Row k of L is not zero at i where a path of parents leads from some entry (j, k) of A through i: the elimination tree, in
  // which the parent of i is the first row below it that is not zero.
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
    // Paths that were found later end in earlier ones, and each was turned round: backwards, every i comes before its parent.
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

std::vector<LeastSquares::Term> LeastSquares::normal(const Inequality& inequality) {
  std::vector<Term> terms;
  const auto add = [&](const Place& place, double sign) {
    if (!place.exists()) return;
    terms.push_back({place.column, sign * (1 - place.share)});
    terms.push_back({place.column + 1, sign * place.share});
  };
  add(inequality.to, 1);
  add(inequality.from, -1);
  return terms;
}

void LeastSquares::add_square(std::span<const Term> terms, double weight, SparseMatrix& matrix) const {
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t j = i; j < terms.size(); ++j)
      matrix.add(place_of_[terms[i].column], place_of_[terms[j].column], weight * terms[i].factor * terms[j].factor);
}

void LeastSquares::add_value(const Place& place, double value, double weight) {
  const std::vector<Term> terms = normal({.from = {}, .to = place});
  add_square(terms, weight, matrix_);
  for (const Term& term : terms) right_side_[term.column] += weight * value * term.factor;
}

void LeastSquares::add_zero(std::size_t column, std::span<const double> entries, double weight) {
  std::vector<Term> terms;
  for (const double entry : entries) terms.push_back({column++, entry});
  add_square(terms, weight, matrix_);
}

std::vector<double> LeastSquares::solution(const SparseMatrix& matrix, const std::vector<double>& right_side) const {
  const SparseFactor factor(matrix);
  const std::size_t size = matrix.size();
  std::vector<double> wanted(size), x(size);
  for (std::size_t i = 0; i < size; ++i) wanted[place_of_[i]] = right_side[i];
  // Twice: the second time for what rounding left, since curves between far points are held by their bends alone.
  std::vector<double> residual = wanted;
  for (int i = 0; i < 2; ++i) {
    factor.solve(residual);
    for (std::size_t j = 0; j < size; ++j) x[j] += residual[j];
    residual = wanted;
    for (std::size_t column = 0; column < size; ++column) {
      for (const auto& [row, value] : matrix.column(column)) {
        residual[row] -= value * x[column];
        if (row != column) residual[column] -= value * x[row];
      }
    }
  }
  std::vector<double> result(size);
  for (std::size_t i = 0; i < size; ++i) result[i] = x[place_of_[i]];
  return result;
}

std::vector<double> LeastSquares::solve(std::span<const Inequality> inequalities, const Limits& limits) const {
  std::vector<double> x = solution(matrix_, right_side_);
  std::vector<double> multipliers(inequalities.size());
  double stiffness = limits.stiffness, worst = std::numeric_limits<double>::infinity();
  int idle = 0;
  for (int step = 0; step < kMostMultiplierSteps && idle < kIdleSteps; ++step) {
    std::vector<std::size_t> before;
    for (int newton = 0; newton < kMostNewtonSteps; ++newton) {
      std::vector<std::size_t> at_work;
      for (std::size_t k = 0; k < inequalities.size(); ++k)
        if (stiffness * inequalities[k].value(x) < multipliers[k]) at_work.push_back(k);
      if (newton > 0 && at_work == before) break;
      SparseMatrix matrix = matrix_;
      std::vector<double> right_side = right_side_;
      for (const std::size_t k : at_work) {
        const std::vector<Term> terms = normal(inequalities[k]);
        add_square(terms, stiffness, matrix);
        for (const Term& term : terms)
          right_side[term.column] += term.factor * (multipliers[k] - stiffness * inequalities[k].gap);
      }
      x = solution(matrix, right_side);
      before = std::move(at_work);
    }
    const double last_worst = std::exchange(worst, 0);
    for (std::size_t k = 0; k < inequalities.size(); ++k) {
      const double value = inequalities[k].value(x);
      multipliers[k] = std::max(0.0, multipliers[k] - stiffness * value);
      worst = std::max(worst, -value);
    }
    if (worst <= limits.tolerance) break;
    idle = worst > kIdleGain * last_worst ? idle + 1 : 0;
    if (worst > kWantedGain * last_worst && stiffness < kMostStiffening * limits.stiffness) stiffness *= kStiffening;
  }
  return x;
}

}  // namespace tandem::clock::internal
