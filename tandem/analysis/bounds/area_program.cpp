// tandem/analysis/bounds/area_program.cpp: hands the area bound to lp_solve, and computes it from the solver's prices.
#include "tandem/analysis/bounds/area_program.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#if TANDEM_LPSOLVE
#include <lpsolve/lp_lib.h>
#endif

namespace tandem::analysis {
namespace {

/// The dual's value: sum_k n_k min_t p_t a_kt.
double bound_of(const AreaProgram& program, const std::vector<double>& prices) {
  double sum = 0;
  for (std::size_t kernel = 0; kernel < program.tasks.size(); ++kernel) {
    std::optional<double> least;
    for (std::size_t kind = 0; kind < prices.size(); ++kind)
      if (const auto& time = program.times[kernel][kind])
        least = std::min(least.value_or(HUGE_VAL), prices[kind] * *time);
    sum += program.tasks[kernel] * least.value_or(0);
  }
  return sum;
}

/// Equal prices for all workers.
std::vector<double> equal_prices(const AreaProgram& program) {
  double workers = 0;
  for (const double count : program.workers) workers += count;
  return std::vector<double>(program.workers.size(), 1 / workers);
}

#if TANDEM_LPSOLVE

struct Free {
  void operator()(lprec* program) const noexcept { delete_lp(program); }
};

/// Prices and an optimal distribution; empty: the solver failed. Columns: T, then the share of each kernel's tasks on
/// each kind where it can run. Rows: one per kind, then one per kernel. Times are in units of `scale`, so that numbers
/// are near 1.
std::optional<std::pair<std::vector<double>, std::vector<std::vector<double>>>> optimum(const AreaProgram& program,
                                                                                        double scale) {
  const std::size_t kinds = program.workers.size(), kernels = program.tasks.size();
  std::vector<std::vector<int>> columns(kernels, std::vector<int>(kinds));  // 0: none
  int last = 1;
  for (std::size_t kernel = 0; kernel < kernels; ++kernel)
    for (std::size_t kind = 0; kind < kinds; ++kind)
      if (program.times[kernel][kind]) columns[kernel][kind] = ++last;
  const std::unique_ptr<lprec, Free> lp(make_lp(0, last));
  if (lp == nullptr) return std::nullopt;
  set_verbose(lp.get(), NEUTRAL);
  set_add_rowmode(lp.get(), TRUE);
  std::vector<int> places;
  std::vector<double> factors;
  const auto add_row = [&](int type, double right) {
    return add_constraintex(lp.get(), static_cast<int>(places.size()), factors.data(), places.data(), type, right) ==
           TRUE;
  };
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    places = {1};
    factors = {-1};
    for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
      if (columns[kernel][kind] == 0) continue;
      places.push_back(columns[kernel][kind]);
      factors.push_back(program.tasks[kernel] * *program.times[kernel][kind] / program.workers[kind] / scale);
    }
    if (!add_row(LE, 0)) return std::nullopt;
  }
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
    places.clear();
    for (const int column : columns[kernel])
      if (column != 0) places.push_back(column);
    factors.assign(places.size(), 1);
    if (!add_row(EQ, 1)) return std::nullopt;
  }
  set_add_rowmode(lp.get(), FALSE);
  if (set_obj(lp.get(), 1, 1) != TRUE) return std::nullopt;
  set_presolve(lp.get(), PRESOLVE_SENSDUALS, get_presolveloops(lp.get()));
  if (::solve(lp.get()) != OPTIMAL) return std::nullopt;
  std::vector<double> values(static_cast<std::size_t>(last)),
      duals(1 + kinds + kernels + static_cast<std::size_t>(last));
  if (get_variables(lp.get(), values.data()) != TRUE || get_dual_solution(lp.get(), duals.data()) != TRUE)
    return std::nullopt;
  std::vector<double> prices;
  double sum = 0;
  for (std::size_t kind = 0; kind < kinds; ++kind)
    sum += prices.emplace_back(std::abs(duals[1 + kind]));  // of the row, divided by its workers
  if (!(sum > 0)) return std::nullopt;
  for (std::size_t kind = 0; kind < kinds; ++kind) prices[kind] /= sum * program.workers[kind];
  std::vector<std::vector<double>> placed(kernels, std::vector<double>(kinds));
  for (std::size_t kernel = 0; kernel < kernels; ++kernel)
    for (std::size_t kind = 0; kind < kinds; ++kind)
      if (const int column = columns[kernel][kind]; column != 0)
        placed[kernel][kind] =
            program.tasks[kernel] * std::clamp(values[static_cast<std::size_t>(column) - 1], 0.0, 1.0);
  return std::pair(std::move(prices), std::move(placed));
}

#endif

}  // namespace

bool has_area_solver() noexcept {
#if TANDEM_LPSOLVE
  return true;
#else
  return false;
#endif
}

AreaSolution solve(const AreaProgram& program) {
  const std::size_t kinds = program.workers.size();
  if (kinds == 0) return {};
  AreaSolution result{.bound = bound_of(program, equal_prices(program)), .is_exact = kinds == 1, .placed = {}};
  if (kinds == 1)
    for (const double count : program.tasks) result.placed.push_back({count});
#if TANDEM_LPSOLVE
  if (kinds > 1 && !(result.bound > 0)) result.is_exact = program.tasks.empty();
  else if (kinds > 1) {
    if (auto best = optimum(program, result.bound)) {
      const double bound = bound_of(program, best->first);
      // Worse than equal prices: the solver was wrong.
      if (bound >= result.bound * (1 - 1e-9))
        result = {.bound = std::max(bound, result.bound), .is_exact = true, .placed = std::move(best->second)};
    }
  }
#endif
  return result;
}

}  // namespace tandem::analysis
