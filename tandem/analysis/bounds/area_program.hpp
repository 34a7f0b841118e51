// tandem/analysis/bounds/area_program.hpp: the linear program of the area bound.
//
// Kernels k = 1..K have n_k tasks. Kinds of worker t = 1..W have w_t workers, on which a task of kernel k takes a_kt.
// With x_kt tasks of kernel k on kind t:
//
//   minimise T   such that   sum_t x_kt = n_k,   sum_k a_kt x_kt <= w_t T,   x_kt >= 0
//
// No schedule is shorter, since it is one such x (Agullo, Beaumont, Eyraud-Dubois, Kumar: "Are Static Schedules so Bad?
// A Case Study on Cholesky Factorization", IPDPS 2016, section IV). By duality, prices p_t >= 0 with sum_t w_t p_t = 1
// give a lower bound of T:
//
//   sum_k n_k min_t p_t a_kt
//
// and the best prices give T itself. The bound is computed from the solver's prices, so that no rounding of the solver
// takes it above T.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace tandem::analysis {

struct AreaProgram {
  std::vector<double> workers;                            ///< of each kind, greater than 0
  std::vector<double> tasks;                              ///< of each kernel, greater than 0
  std::vector<std::vector<std::optional<double>>> times;  ///< of each kernel on each kind; empty: cannot run there
};

struct AreaSolution {
  double bound = 0;                          ///< in the unit of times
  bool is_exact = true;                      ///< false: a weaker bound, of equal prices, without a solver
  std::vector<std::vector<double>> placed;   ///< x_kt of an optimal distribution; empty: not exact
};

/// Whether this library was built with a solver, lp_solve.
bool has_area_solver() noexcept;
/// Solves the program. One kind needs no solver.
AreaSolution solve(const AreaProgram& program);

}  // namespace tandem::analysis
