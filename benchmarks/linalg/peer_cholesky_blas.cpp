// benchmarks/linalg/peer_cholesky_blas.cpp: the BLAS library's own threads: LAPACK's potrf, and gemm as the machine's
// peak.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>

#include "benchmarks/linalg/harness.hpp"
#include "benchmarks/linalg/kernels.hpp"

namespace benchmarks::linalg {
namespace {

/// A square matrix in one piece, column-major, all of whose pages have been written by fill().
template <class T>
class PlainMatrix {
 public:
  explicit PlainMatrix(std::size_t n) : n_(n), entries_(new T[n * n]) {}

  T* data() { return entries_.get(); }

  void fill(unsigned workers) {
    on_threads(workers, n_, [this](std::size_t column) {
      for (std::size_t row = 0; row < n_; ++row) {
        entries_[column * n_ + row] = static_cast<T>(test_entry(row, column, n_));
      }
    });
  }

 private:
  std::size_t n_;
  std::unique_ptr<T[]> entries_;
};

template <class T>
Measurement measure_potrf(const Plan& plan) {
  PlainMatrix<T> matrix(plan.n);
  Measurement measurement{"potrf", "GFlop/s", {}};
  const int n = static_cast<int>(plan.n);
  for (unsigned i = 0; i <= plan.repetitions; ++i) {
    matrix.fill(plan.workers);
    const double elapsed = seconds([&] { require_definite(potrf(n, matrix.data())); });
    if (i > 0) {
      measurement.samples.push_back(cholesky_flop(plan.n) / elapsed * 1e-9);
    } else if (plan.check) {
      TiledMatrix<T> factor(plan.n, plan.n);
      std::copy_n(matrix.data(), std::size_t{plan.n} * plan.n, factor.tile(0, 0));
      require_small(factor.residual());
    }
  }
  return measurement;
}

/// Of order 4096 at most, where gemm has reached its rate.
template <class T>
Measurement measure_gemm(const Plan& plan) {
  const int n = static_cast<int>(std::min(plan.n, 4096U));
  PlainMatrix<T> a(n);
  PlainMatrix<T> b(n);
  PlainMatrix<T> c(n);
  for (PlainMatrix<T>* matrix : {&a, &b, &c}) {
    matrix->fill(plan.workers);
  }
  Measurement measurement{"gemm", "GFlop/s", {}};
  for (unsigned i = 0; i <= plan.repetitions; ++i) {
    const double elapsed = seconds([&] { gemm({n, n, n}, a.data(), b.data(), c.data()); });
    if (i > 0) {
      measurement.samples.push_back(2.0 * n * n * n / elapsed * 1e-9);
    }
  }
  return measurement;
}

template <class T>
Report measure(const Plan& plan) {
  return {"blas", library_version(), plan.workers, {measure_potrf<T>(plan), measure_gemm<T>(plan)}};
}

}  // namespace
}  // namespace benchmarks::linalg

int main(int argc, char** argv) {
  namespace linalg = benchmarks::linalg;
  const linalg::Plan plan(argc, argv);
  openblas_set_num_threads(static_cast<int>(plan.workers));
  (plan.single ? linalg::measure<float>(plan) : linalg::measure<double>(plan)).print();
  return 0;
}
