// benchmarks/linalg/harness.hpp: command line, timing and check that the Cholesky programs share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"
#include "benchmarks/linalg/matrix.hpp"

namespace benchmarks::linalg {

/// What the command line asks for: --n, --nb, --workers, --repetitions, --precision d|s, --check.
struct Plan {
  unsigned n;
  unsigned nb;
  unsigned workers;
  unsigned repetitions;
  bool single;
  bool check;

  Plan(int argc, char** argv)
      : Plan(Options(argc, argv, {"n", "nb", "workers", "repetitions", "precision"}, {"check"}),
             std::max(1U, std::thread::hardware_concurrency())) {}

 private:
  Plan(const Options& options, unsigned cores)
      : n(options.count("n", 8192)),
        nb(std::min(options.count("nb", 512), n)),
        workers(options.count("workers", cores)),
        repetitions(options.count("repetitions", 5)),
        single(options.text("precision", "d") == "s"),
        check(options.has("check")) {
    if (!single && options.text("precision", "d") != "d") {
      std::fprintf(stderr, "--precision is d or s\n");
      std::exit(2);
    }
  }
};

/// Seconds that `body` takes.
template <class Body>
double seconds(const Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Operations of the factorisation, as customary: n^3 / 3.
inline double cholesky_flop(double n) { return n * n * n / 3; }

/// Ends the program when the factor is not one: LAPACK's testers accept a scaled residual up to 30.
inline void require_small(double residual) {
  std::fprintf(stderr, "scaled residual %.3g\n", residual);
  if (!(residual < 30)) {
    std::fprintf(stderr, "this is no Cholesky factor\n");
    std::exit(1);
  }
}

/// Ends the program when LAPACK's info is not 0. For use inside tasks, too.
inline void require_definite(int info) {
  if (info != 0) {
    std::fprintf(stderr, "potrf: info = %d\n", info);
    std::exit(1);
  }
}

/// GFlop/s of `factorise(matrix)`, which leaves the factor in the tiles; once to warm up (and check), then the
/// repetitions. Filling the matrix is outside the clock.
template <class T, class Factorise>
Measurement measure_tiled(const Plan& plan, const Factorise& factorise) {
  TiledMatrix<T> matrix(plan.n, plan.nb);
  const std::size_t side = matrix.side();
  Measurement measurement{"potrf", "GFlop/s", {}, side * (side + 1) * (side + 2) / 6};
  for (unsigned i = 0; i <= plan.repetitions; ++i) {
    matrix.fill(plan.workers);
    const double elapsed = seconds([&] { factorise(matrix); });
    if (i > 0) {
      measurement.samples.push_back(cholesky_flop(plan.n) / elapsed * 1e-9);
    } else if (plan.check) {
      require_small(matrix.residual());
    }
  }
  return measurement;
}

}  // namespace benchmarks::linalg
