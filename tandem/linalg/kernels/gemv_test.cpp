// tandem/linalg/kernels/gemv_test.cpp: products of tiles and vectors against their definitions, in all precisions.
#include "tandem/linalg/kernels/gemv.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tandem/base/blas_threads.hpp"
#include "tandem/linalg/kernels/kernel_test_support.hpp"

namespace tandem::linalg::gemv_test {
namespace {

template <class T>
class GemvKernel : public testing::Test {
 protected:
  using R = Real<T>;

  static void SetUpTestSuite() { base::restrict_blas_threads(); }

  static std::vector<T> vector(std::uint64_t seed, std::size_t count) {
    std::vector<T> x(count);
    generate_tile(RandomGeneral{seed}, {}, MatrixView<T>{x.data(), count, 1, count});
    return x;
  }
  static std::vector<T> nothing(std::size_t count) {
    return std::vector<T>(count, T(std::numeric_limits<R>::quiet_NaN()));
  }

  /// y = A x for the A whose elements `at(i, j)` gives.
  template <class At>
  static void expect_product(const std::vector<T>& y, const std::vector<T>& x, const At& at) {
    for (std::size_t i = 0; i < y.size(); ++i) {
      T sum = T(0);
      for (std::size_t j = 0; j < x.size(); ++j) sum += at(i, j) * x[j];
      EXPECT_LE(std::abs(y[i] - sum), 50 * epsilon<T>) << "row " << i;
    }
  }
};
TYPED_TEST_SUITE(GemvKernel, test::Scalars, test::Letters);

TYPED_TEST(GemvKernel, MultipliesInAllShapesAndReadsNoResult) {
  using T = TypeParam;
  for (const std::size_t m : {0, 1, 5, 16, 37})
    for (const std::size_t n : {0, 1, 4, 23})
      for (const Op op : {Op::no_trans, Op::trans, Op::conj_trans}) {
        auto a = test::random<T>(1, m, n);
        const auto view = a.view();
        const auto x = this->vector(2, op == Op::no_trans ? n : m);
        auto y = this->nothing(op == Op::no_trans ? m : n);
        kernels::gemv<T>(op, view, x, y);
        this->expect_product(y, x, [&](std::size_t i, std::size_t j) {
          return op == Op::no_trans ? view(i, j) : op == Op::trans ? view(j, i) : conj(view(j, i));
        });
        EXPECT_TRUE(a.guards_intact());
      }
}

TYPED_TEST(GemvKernel, AHermitianMatrixIsReadInOneTriangle) {
  using T = TypeParam;
  for (const std::size_t n : {0, 1, 5, 16, 37})
    for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
      const RandomPositiveDefinite generator{.seed = 3, .order = 1};
      test::Padded<T> a(n, n);
      const auto view = a.view();
      generate_tile(generator, {}, view);
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < n; ++i)
          if (uplo == Uplo::lower ? i < j : i > j) view(i, j) = T(std::numeric_limits<Real<T>>::quiet_NaN());
      const auto x = this->vector(2, n);
      auto y = this->nothing(n);
      kernels::hemv<T>(uplo, view, x, y);
      this->expect_product(y, x, [&](std::size_t i, std::size_t j) { return generator.element<T>(i, j); });
    }
}

TYPED_TEST(GemvKernel, DotProductsAreSummedUpInDouble) {
  using T = TypeParam;
  for (const std::size_t n : {0, 1, 3, 4, 5, 100}) {
    const auto x = this->vector(1, n), y = this->vector(2, n);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += double(real_part(conj(x[i]) * y[i]));
    EXPECT_NEAR(kernels::real_dot<T>(x, y), sum, 200 * double(epsilon<T>)) << n;
  }
  const std::vector<T> small(10, T(Real<T>(1e-30)));
  EXPECT_NEAR(kernels::real_dot<T>(small, small), 1e-59, 1e-64);
}

}  // namespace
}  // namespace tandem::linalg::gemv_test
