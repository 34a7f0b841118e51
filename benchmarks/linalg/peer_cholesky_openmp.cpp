// benchmarks/linalg/peer_cholesky_openmp.cpp: tiled Cholesky on OpenMP's `task depend`, of the compiler that builds
// this file.
//
// OpenMP ignores priorities unless OMP_MAX_TASK_PRIORITY is set before the program starts, so it starts itself again
// with it.
#include <omp.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "benchmarks/linalg/harness.hpp"
#include "benchmarks/linalg/kernels.hpp"
#include "benchmarks/linalg/tiled_cholesky.hpp"

namespace benchmarks::linalg {
namespace {

/// Submits the tasks of one factorisation; inside a parallel region, on one thread. Tasks depend on the first entry of
/// a tile.
template <class T>
class Submitter {
 public:
  explicit Submitter(const TiledMatrix<T>& matrix) : matrix_(matrix) {}

  void potrf(std::size_t k, int priority) {
    T* const a = matrix_.tile(k, k);
    const int n = matrix_.extent(k);
#pragma omp task depend(inout : a[0]) firstprivate(a, n) priority(priority)
    require_definite(linalg::potrf(n, a));
  }

  void trsm(std::size_t k, std::size_t m, int priority) {
    const T* const l = matrix_.tile(k, k);
    T* const a = matrix_.tile(m, k);
    const Extents extents{matrix_.extent(m), matrix_.extent(k), 0};
#pragma omp task depend(in : l[0]) depend(inout : a[0]) firstprivate(l, a, extents) priority(priority)
    linalg::trsm(extents, l, a);
  }

  void syrk(std::size_t k, std::size_t m, int priority) {
    const T* const a = matrix_.tile(m, k);
    T* const c = matrix_.tile(m, m);
    const Extents extents{matrix_.extent(m), matrix_.extent(m), matrix_.extent(k)};
#pragma omp task depend(in : a[0]) depend(inout : c[0]) firstprivate(a, c, extents) priority(priority)
    linalg::syrk(extents, a, c);
  }

  void gemm(std::size_t k, std::size_t m, std::size_t n, int priority) {
    const T* const a = matrix_.tile(m, k);
    const T* const b = matrix_.tile(n, k);
    T* const c = matrix_.tile(m, n);
    const Extents extents{matrix_.extent(m), matrix_.extent(n), matrix_.extent(k)};
#pragma omp task depend(in : a[0], b[0]) depend(inout : c[0]) firstprivate(a, b, c, extents) priority(priority)
    linalg::gemm(extents, a, b, c);
  }

 private:
  const TiledMatrix<T>& matrix_;
};

template <class T>
Measurement measure(const Plan& plan) {
  return measure_tiled<T>(plan, [&](const TiledMatrix<T>& matrix) {
#pragma omp parallel num_threads(plan.workers) default(shared)
#pragma omp single
    {
      Submitter<T> submitter(matrix);
      submit_cholesky(matrix.side(), submitter);
    }
  });
}

/// Returns when the environment lets priorities through; otherwise sets it and starts the program anew.
void ensure_priorities(char** argv) {
  if (std::getenv("OMP_MAX_TASK_PRIORITY") == nullptr) {
    setenv("OMP_MAX_TASK_PRIORITY", "1000000", 1);
    execv("/proc/self/exe", argv);
    std::perror("cannot start again with OMP_MAX_TASK_PRIORITY, so without priorities");
  }
}

}  // namespace
}  // namespace benchmarks::linalg

int main(int argc, char** argv) {
  namespace linalg = benchmarks::linalg;
  linalg::ensure_priorities(argv);
  const linalg::Plan plan(argc, argv);
  openblas_set_num_threads(1);
#ifdef __clang__
  benchmarks::Report report{"libomp", __VERSION__, plan.workers, {}};
#else
  benchmarks::Report report{"openmp", __VERSION__, plan.workers, {}};
#endif
  report.results.push_back(plan.single ? linalg::measure<float>(plan) : linalg::measure<double>(plan));
  report.print();
  return 0;
}
