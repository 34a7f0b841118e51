// benchmarks/device/cuda_harness.hpp: products and Cholesky factorisations on a CUDA device, in tiles, against one call
// of cuBLAS and cuSOLVER, and with a budget of a third of the data.
//
// `cublas` and `cusolver` are flows of one tile: one call of the library. `gemm` and `potrf` begin with all data on the
// device, and leave it there. `third`: the device's budget is a third of the data, which lies in page-locked main
// memory, and comes and goes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"
#include "tandem/linalg/generators.hpp"

namespace benchmarks::cuda {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Plan {
  std::size_t n;     ///< order of the matrices
  std::size_t tile;  ///< order of a tile
  unsigned repetitions;
  double seconds;  ///< no further repetition begins after so many
  Clock::time_point start = Clock::now();

  Plan(int argc, char** argv) : Plan(Options(argc, argv, {"n", "tile", "repetitions", "seconds"})) {}
  bool has_time() const { return seconds_since(start) < seconds; }

 private:
  explicit Plan(const Options& options)
      : n(options.count("n", 32'768)),
        tile(options.count("tile", 2'048)),
        repetitions(options.count("repetitions", 3)),
        seconds(options.count("seconds", 300)) {}
};

/// How an adapter cuts a matrix, and where its tiles are before each repetition.
struct Layout {
  std::size_t n, tile;
  bool is_on_device;
};

inline void require_near(const char* what, double value, double expected, double tolerance) {
  if (std::abs(value - expected) <= tolerance) return;
  std::fprintf(stderr, "%s is wrong: %.17g instead of %.17g\n", what, value, expected);
  std::exit(1);
}

/// C := A B + C / 2, again and again: A, B and C begin as elements of these.
constexpr tandem::linalg::RandomGeneral general_a{.seed = 1}, general_b{.seed = 2}, general_c{.seed = 3};
constexpr double product_beta = 0.5;

/// An element of C after so many products, from the definition.
template <class Product>
void check_product(Product& product, std::size_t n, unsigned products) {
  double dot = 0, expected = general_c.element<double>(n - 1, 0);
  for (std::size_t k = 0; k < n; ++k) dot += general_a.element<double>(n - 1, k) * general_b.element<double>(k, 0);
  for (unsigned i = 0; i < products; ++i) expected = dot + product_beta * expected;
  require_near("the product", product.element(n - 1, 0), expected, 1e-12 * static_cast<double>(n));
}

inline tandem::linalg::RandomPositiveDefinite positive_definite(std::size_t n) { return {.seed = 1, .order = n}; }

/// Two elements of L L^T in the last row, which depends on all others.
template <class Factorisation>
void check_factor(Factorisation& factorisation, std::size_t n, unsigned) {
  const auto a = positive_definite(n);
  double square = 0;
  for (std::size_t j = 0; j < n; ++j) square += std::pow(factorisation.element(n - 1, j), 2);
  const double tolerance = 1e-12 * static_cast<double>(n);
  require_near("the factor", square, a.element<double>(n - 1, n - 1), tolerance);
  require_near("the factor", factorisation.element(n - 1, 0) * factorisation.element(0, 0), a.element<double>(n - 1, 0),
               tolerance);
}

/// GFlop/s of each repetition, after one that does not count, since the first loads libraries. None: there was no time.
/// `check(job, n, repetitions)` looks at the result.
template <class Job, class Adapter, class Check>
std::vector<double> rates(Adapter& adapter, const Plan& plan, Layout layout, double operations, const Check& check) {
  std::vector<double> all;
  if (!plan.has_time()) return all;
  Job job(adapter, layout);
  unsigned done = 0;
  do {
    job.prepare();
    const auto start = Clock::now();
    job.run();
    const double seconds = seconds_since(start);
    if (done > 0) all.push_back(operations / seconds * 1e-9);
    ++done;
  } while (done <= plan.repetitions && plan.has_time());
  check(job, plan.n, done);
  return all;
}

template <class Adapter>
std::vector<double> products(Adapter& adapter, const Plan& plan, Layout layout) {
  using Product = typename Adapter::Product;
  return rates<Product>(adapter, plan, layout, 2 * std::pow(static_cast<double>(plan.n), 3), check_product<Product>);
}

template <class Adapter>
std::vector<double> factorisations(Adapter& adapter, const Plan& plan, Layout layout) {
  using Factorisation = typename Adapter::Factorisation;
  return rates<Factorisation>(adapter, plan, layout, std::pow(static_cast<double>(plan.n), 3) / 3,
                              check_factor<Factorisation>);
}

/// `Adapter(budget)`: the device's memory for data, in bytes; 0: all. `Adapter::Product` and `Adapter::Factorisation`
/// are made of an adapter and a `Layout`: `prepare` makes the data again where a run has overwritten it, and takes it
/// to where the layout says; `run` returns when all has ended; `element(i, j)` is that of C, or of L.
template <class Adapter>
void measure(const Plan& plan) {
  const Layout one_tile{plan.n, plan.n, true}, on_device{plan.n, plan.tile, true},
      comes_and_goes{plan.n, plan.tile, false};
  const auto budget = [&](std::size_t bytes) { return std::max(bytes, 8 * plan.tile * plan.tile * sizeof(double)); };
  const std::size_t bytes = plan.n * plan.n * sizeof(double);
  std::vector<Measurement> results;
  const auto add = [&](const char* name, const char* unit, std::vector<double> samples) {
    if (samples.empty()) return std::fprintf(stderr, "%s: out of time\n", name), void();
    results.push_back({name, unit, std::move(samples)});
  };
  const auto add_ratio = [&](const char* name, const std::vector<double>& rates, const std::vector<double>& against) {
    if (!rates.empty() && !against.empty()) add(name, "ratio", {median(rates) / median(against)});
  };
  const auto add_all = [&](const char* library, const char* name, const std::vector<double>& of_library,
                           const std::vector<double>& in_tiles, const std::vector<double>& third) {
    const std::string tiles = name;
    add(library, "GFlop/s", of_library);
    add(name, "GFlop/s", in_tiles);
    add_ratio((tiles + "/" + library).c_str(), in_tiles, of_library);
    add((tiles + "_third").c_str(), "GFlop/s", third);
    add_ratio((tiles + "_third/" + tiles).c_str(), third, in_tiles);
  };

  std::vector<double> cublas, gemm, cusolver, potrf;
  std::string version;
  unsigned workers = 0;
  {
    Adapter all_memory(0);
    version = all_memory.version();
    workers = all_memory.workers();
    cublas = products(all_memory, plan, one_tile);
    gemm = products(all_memory, plan, on_device);
    cusolver = factorisations(all_memory, plan, one_tile);
    potrf = factorisations(all_memory, plan, on_device);
  }
  // Of the three matrices of a product a third is one; of the triangle of a factorisation it is a sixth of the square.
  const auto with_budget = [&](auto measured, std::size_t part) {
    if (!plan.has_time()) return std::vector<double>{};
    Adapter adapter(budget(part));
    return measured(adapter, plan, comes_and_goes);
  };
  add_all("cublas", "gemm", cublas, gemm, with_budget(products<Adapter>, bytes));
  add_all("cusolver", "potrf", cusolver, potrf, with_budget(factorisations<Adapter>, bytes / 6));
  Report{Adapter::name, version, workers, results}.print();
}

}  // namespace benchmarks::cuda
