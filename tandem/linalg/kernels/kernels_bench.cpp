// tandem/linalg/kernels/kernels_bench.cpp: rates of the tile kernels beside the library's own, on one core.
//
// `linalg_kernels_bench --benchmark_filter=double` prints GFlop/s as counters; "library" is the BLAS or LAPACK routine.
#include <benchmark/benchmark.h>

#include <complex>
#include <vector>

#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include "tandem/base/blas_threads.hpp"
#include "tandem/linalg/generators.hpp"
#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/getrf.hpp"
#include "tandem/linalg/kernels/getrf_nopiv.hpp"
#include "tandem/linalg/kernels/geqrt.hpp"
#include "tandem/linalg/kernels/herk.hpp"
#include "tandem/linalg/kernels/lacpy.hpp"
#include "tandem/linalg/kernels/potrf.hpp"
#include "tandem/linalg/kernels/tpmqrt.hpp"
#include "tandem/linalg/kernels/tpqrt.hpp"
#include "tandem/linalg/kernels/trsm.hpp"
#include "tandem/linalg/kernels/unmqr.hpp"
#include "tandem/linalg/tile_matrix.hpp"

namespace {

using namespace tandem;
using namespace tandem::linalg;

/// Three n x n tiles in the memory that tiled matrices have: a positive definite one, a general one and a result, in
/// double.
struct Tiles {
  explicit Tiles(std::size_t order) : n(order), memory({.rows = order, .cols = 3 * order, .tile = order}) {
    base::restrict_blas_threads();
    generate_tile(RandomPositiveDefinite{.seed = 1, .order = n}, {}, spd);
    generate_tile(RandomGeneral{.seed = 2}, {}, general);
    generate_tile(RandomGeneral{.seed = 3}, {}, result);
  }
  std::size_t n;
  TileMatrix<double> memory;
  MatrixView<double> spd = memory.tile(0, 0), general = memory.tile(0, 1), result = memory.tile(0, 2);
};

void report(benchmark::State& state, double flops) {
  state.counters["GFlop/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

double cube(const Tiles& t) { return double(t.n) * double(t.n) * double(t.n); }

void gemm_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  for (auto _ : state)
    kernels::gemm(Op::no_trans, Op::conj_trans, -1e-9, t.spd, t.general, 1.0, t.result);
  report(state, 2 * cube(t));
}

void gemm_library_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  const int n = int(t.n);
  for (auto _ : state)
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, n, n, n, -1e-9, t.spd.data, n, t.general.data, n, 1.0,
                t.result.data, n);
  report(state, 2 * cube(t));
}

// Each solve starts from a fresh copy: repeated solves would run into denormal or infinite numbers.
void trsm_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  for (auto _ : state) {
    kernels::lacpy(Uplo::general, t.general, t.result);
    kernels::trsm(Side::right, Uplo::lower, Op::conj_trans, Diag::non_unit, 1.0, t.spd, t.result);
  }
  report(state, cube(t));
}
void trsm_library_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  const int n = int(t.n);
  for (auto _ : state) {
    kernels::lacpy(Uplo::general, t.general, t.result);
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, n, n, 1.0, t.spd.data, n,
                t.result.data, n);
  }
  report(state, cube(t));
}

void herk_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  for (auto _ : state) kernels::herk(Uplo::lower, Op::no_trans, -1e-9, t.general, 1.0, t.result);
  report(state, cube(t));
}
void herk_library_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  const int n = int(t.n);
  for (auto _ : state)
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, n, n, -1e-9, t.general.data, n, 1.0, t.result.data, n);
  report(state, cube(t));
}

void potrf_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  for (auto _ : state) {
    kernels::lacpy(Uplo::lower, t.spd, t.result);
    benchmark::DoNotOptimize(kernels::potrf(Uplo::lower, t.result));
  }
  report(state, cube(t) / 3);
}
void potrf_library_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  const int n = int(t.n);
  for (auto _ : state) {
    kernels::lacpy(Uplo::lower, t.spd, t.result);
    benchmark::DoNotOptimize(LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, t.result.data, n));
  }
  report(state, cube(t) / 3);
}

void getrf_nopiv_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  for (auto _ : state) {
    kernels::lacpy(Uplo::general, t.spd, t.result);
    benchmark::DoNotOptimize(kernels::getrf_nopiv(t.result));
  }
  report(state, 2 * cube(t) / 3);
}
void getrf_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  std::vector<std::size_t> interchanges(t.n);
  for (auto _ : state) {
    kernels::lacpy(Uplo::general, t.general, t.result);
    benchmark::DoNotOptimize(kernels::getrf(t.result, std::span(interchanges)));
  }
  report(state, 2 * cube(t) / 3);
}
void getrf_library_double(benchmark::State& state) {
  Tiles t(std::size_t(state.range(0)));
  const int n = int(t.n);
  std::vector<int> ipiv(t.n);
  for (auto _ : state) {
    kernels::lacpy(Uplo::general, t.general, t.result);
    benchmark::DoNotOptimize(LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, n, n, t.result.data, n, ipiv.data()));
  }
  report(state, 2 * cube(t) / 3);
}

/// The pivots of two tiles, one on the other, as a match of a tournament finds them: rows in a padded array.
struct Match {
  explicit Match(std::size_t n) : from({.rows = 2 * n + 8, .cols = n, .tile = 2 * n + 8}), to(from.shape()) {
    base::restrict_blas_threads();
    generate_tile(RandomGeneral{.seed = 2}, {}, from.tile(0, 0));
    a = to.tile(0, 0).block(0, 0, 2 * n, n);
  }
  void copy() { kernels::lacpy(Uplo::general, from.tile(0, 0).block(0, 0, a.rows, a.cols), a); }
  TileMatrix<double> from, to;
  MatrixView<double> a;
};

void getrf_tall_double(benchmark::State& state) {
  const auto n = std::size_t(state.range(0));
  Match match(n);
  std::vector<std::size_t> interchanges(n);
  for (auto _ : state) {
    match.copy();
    benchmark::DoNotOptimize(kernels::getrf(match.a, std::span(interchanges)));
  }
  report(state, 5 * double(n) * double(n) * double(n) / 3);
}
void getrf_tall_library_double(benchmark::State& state) {
  const auto n = std::size_t(state.range(0));
  Match match(n);
  std::vector<int> ipiv(n);
  for (auto _ : state) {
    match.copy();
    benchmark::DoNotOptimize(
        LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, int(2 * n), int(n), match.a.data, int(match.a.ld), ipiv.data()));
  }
  report(state, 5 * double(n) * double(n) * double(n) / 3);
}

/// Tiles of a QR factorisation: A and B are factorised anew each time, C and D have Q^H applied repeatedly, which keeps
/// their norms.
struct QrTiles : Tiles {
  explicit QrTiles(std::size_t order)
      : Tiles(order), more({.rows = order, .cols = 3 * order, .tile = order}), factors(block * order) {
    generate_tile(RandomGeneral{.seed = 4}, {}, d);
  }
  void reset_r() { kernels::lacpy(Uplo::general, general, r); }
  void reset_v() { kernels::lacpy(Uplo::general, spd, v); }
  static constexpr std::size_t block = 32;
  TileMatrix<double> more;
  std::vector<double> factors;
  MatrixView<double> r = more.tile(0, 0), v = more.tile(0, 1), c = result, d = more.tile(0, 2);
  MatrixView<double> t{factors.data(), block, n, block};
  std::vector<double> work = std::vector<double>(block * n);
};

void geqrt_double(benchmark::State& state) {
  QrTiles q(std::size_t(state.range(0)));
  for (auto _ : state) {
    q.reset_r();
    kernels::geqrt(q.r, q.t);
  }
  report(state, 4 * cube(q) / 3);
}
void geqrt_library_double(benchmark::State& state) {
  QrTiles q(std::size_t(state.range(0)));
  const int n = int(q.n), ib = int(q.block);
  for (auto _ : state) {
    q.reset_r();
    LAPACKE_dgeqrt_work(LAPACK_COL_MAJOR, n, n, ib, q.r.data, n, q.t.data, ib, q.work.data());
  }
  report(state, 4 * cube(q) / 3);
}

void unmqr_double(benchmark::State& state) {
  QrTiles q(std::size_t(state.range(0)));
  q.reset_r();
  kernels::geqrt(q.r, q.t);
  for (auto _ : state) kernels::unmqr(Op::conj_trans, q.r, q.t, q.c);
  report(state, 2 * cube(q));
}
void unmqr_library_double(benchmark::State& state) {
  QrTiles q(std::size_t(state.range(0)));
  const int n = int(q.n), ib = int(q.block);
  q.reset_r();
  kernels::geqrt(q.r, q.t);
  for (auto _ : state)
    LAPACKE_dgemqrt_work(LAPACK_COL_MAJOR, 'L', 'T', n, n, n, ib, q.r.data, n, q.t.data, ib, q.c.data, n,
                         q.work.data());
  report(state, 2 * cube(q));
}

void tpqrt_double(benchmark::State& state) {
  QrTiles q(std::size_t(state.range(0)));
  for (auto _ : state) {
    q.reset_r();
    q.reset_v();
    kernels::tpqrt(q.r, q.v, q.t);
  }
  report(state, 2 * cube(q));
}
void tpqrt_library_double(benchmark::State& state) {
  QrTiles q(std::size_t(state.range(0)));
  const int n = int(q.n), ib = int(q.block);
  for (auto _ : state) {
    q.reset_r();
    q.reset_v();
    LAPACKE_dtpqrt_work(LAPACK_COL_MAJOR, n, n, 0, ib, q.r.data, n, q.v.data, n, q.t.data, ib, q.work.data());
  }
  report(state, 2 * cube(q));
}

void tpmqrt_double(benchmark::State& state) {
  QrTiles q(std::size_t(state.range(0)));
  q.reset_r();
  q.reset_v();
  kernels::tpqrt(q.r, q.v, q.t);
  for (auto _ : state) kernels::tpmqrt(Op::conj_trans, q.v, q.t, q.c, q.d);
  report(state, 4 * cube(q));
}
void tpmqrt_library_double(benchmark::State& state) {
  QrTiles q(std::size_t(state.range(0)));
  const int n = int(q.n), ib = int(q.block);
  q.reset_r();
  q.reset_v();
  kernels::tpqrt(q.r, q.v, q.t);
  for (auto _ : state)
    LAPACKE_dtpmqrt_work(LAPACK_COL_MAJOR, 'L', 'T', n, n, n, 0, ib, q.v.data, n, q.t.data, ib, q.c.data, n, q.d.data,
                         n, q.work.data());
  report(state, 4 * cube(q));
}

#define TILE_SIZES Arg(128)->Arg(256)->Arg(320)->Arg(512)
BENCHMARK(gemm_double)->TILE_SIZES;
BENCHMARK(gemm_library_double)->TILE_SIZES;
BENCHMARK(trsm_double)->TILE_SIZES;
BENCHMARK(trsm_library_double)->TILE_SIZES;
BENCHMARK(herk_double)->TILE_SIZES;
BENCHMARK(herk_library_double)->TILE_SIZES;
BENCHMARK(potrf_double)->TILE_SIZES;
BENCHMARK(potrf_library_double)->TILE_SIZES;
BENCHMARK(getrf_nopiv_double)->TILE_SIZES;
BENCHMARK(getrf_double)->TILE_SIZES;
BENCHMARK(getrf_library_double)->TILE_SIZES;
BENCHMARK(getrf_tall_double)->TILE_SIZES;
BENCHMARK(getrf_tall_library_double)->TILE_SIZES;
BENCHMARK(geqrt_double)->TILE_SIZES;
BENCHMARK(geqrt_library_double)->TILE_SIZES;
BENCHMARK(unmqr_double)->TILE_SIZES;
BENCHMARK(unmqr_library_double)->TILE_SIZES;
BENCHMARK(tpqrt_double)->TILE_SIZES;
BENCHMARK(tpqrt_library_double)->TILE_SIZES;
BENCHMARK(tpmqrt_double)->TILE_SIZES;
BENCHMARK(tpmqrt_library_double)->TILE_SIZES;

}  // namespace
