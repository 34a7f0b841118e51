// tandem/linalg/kernels/qr_kernels_test.cpp: geqrt, unmqr, tpqrt and tpmqrt: that Q is unitary, that Q R is what was
// given, and that nothing else is read or written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/base/blas_threads.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/geqrt.hpp"
#include "tandem/linalg/kernels/kernel_test_support.hpp"
#include "tandem/linalg/kernels/lacpy.hpp"
#include "tandem/linalg/kernels/laset.hpp"
#include "tandem/linalg/kernels/norms.hpp"
#include "tandem/linalg/kernels/tpmqrt.hpp"
#include "tandem/linalg/kernels/tpqrt.hpp"
#include "tandem/linalg/kernels/unmqr.hpp"

namespace tandem::linalg::qr_kernels_test {
namespace {

using test::Padded;
using test::random;

template <class T>
class QrKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() { base::restrict_blas_threads(); }
  static constexpr Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();

  /// max |a_ij - b_ij|, a NaN included.
  static Real<T> distance(MatrixView<const T> a, MatrixView<const T> b) {
    Real<T> worst = 0;
    for (std::size_t j = 0; j < a.cols; ++j)
      for (std::size_t i = 0; i < a.rows; ++i) {
        const Real<T> d = std::abs(a(i, j) - b(i, j));
        worst = d > worst || std::isnan(d) ? d : worst;
      }
    return worst;
  }
  static Padded<T> identity(std::size_t n) {
    Padded<T> result(n, n);
    kernels::laset(Uplo::general, T(0), T(1), result.view());
    return result;
  }
  static Real<T> tolerance(std::size_t n) { return Real<T>(n + 5) * 4 * epsilon<T>; }
};
TYPED_TEST_SUITE(QrKernels, test::Scalars, test::Letters);

struct Size {
  std::size_t m, n, ib;
};
// One reflector, leaves and joints of the recursion, panels that do not divide the tile, wide and tall ones.
constexpr Size sizes[] = {{1, 1, 4},    {5, 1, 4},    {1, 5, 4},    {7, 7, 1},     {8, 8, 8},    {13, 9, 4},
                          {9, 13, 4},   {33, 33, 11}, {64, 64, 32}, {70, 50, 32},  {50, 70, 32}, {130, 67, 17},
                          {67, 130, 17}, {40, 200, 9}, {100, 100, 32}};

TYPED_TEST(QrKernels, GeqrtFactorsEveryShape) {
  using T = TypeParam;
  for (const auto [m, n, ib] : sizes) {
    const std::size_t k = std::min(m, n);
    auto a = random<T>(1, m, n), factor = random<T>(1, m, n), t = random<T>(9, ib, k + 2),
         t_before = random<T>(9, ib, k + 2);
    kernels::geqrt(factor.view(), t.view());
    ASSERT_TRUE(factor.guards_intact() && t.guards_intact());
    EXPECT_EQ(this->distance(t.view().block(0, k, ib, 2), t_before.view().block(0, k, ib, 2)), 0);

    Padded<T> r(m, n);
    kernels::laset(Uplo::general, T(0), T(0), r.view());
    kernels::lacpy(Uplo::upper, factor.view(), r.view());
    for (std::size_t i = 0; i < k; ++i) EXPECT_EQ(r.view()(i, i), T(real_part(r.view()(i, i))));
    // Only the reflectors' elements below the diagonal are read.
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i <= std::min(j, m - 1); ++i) factor.view()(i, j) = T(this->nan);
    kernels::unmqr(Op::no_trans, factor.view(), t.view(), r.view());
    EXPECT_LE(this->distance(r.view(), a.view()), this->tolerance(m)) << m << " x " << n << ", ib " << ib;
    EXPECT_TRUE(r.guards_intact());

    auto q = this->identity(m), one = this->identity(m);
    kernels::unmqr(Op::no_trans, factor.view(), t.view(), q.view());
    kernels::unmqr(Op::conj_trans, factor.view(), t.view(), q.view());
    EXPECT_LE(this->distance(q.view(), one.view()), this->tolerance(m)) << m << " x " << n << ", ib " << ib;
  }
}

TYPED_TEST(QrKernels, TpqrtFactorsATriangleOnTopOfATile) {
  using T = TypeParam;
  for (const auto [m, n, ib] : sizes) {
    auto top = random<T>(1, n + 3, n), below = random<T>(2, m, n), v = random<T>(2, m, n), t = random<T>(9, ib, n);
    // The triangle lies in a taller tile whose other elements must not change.
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = j + 1; i < n + 3; ++i) top.view()(i, j) = T(this->nan);
    Padded<T> r(n + 3, n);
    kernels::lacpy(Uplo::general, top.view(), r.view());
    kernels::tpqrt(r.view(), v.view(), t.view());
    ASSERT_TRUE(r.guards_intact() && v.guards_intact() && t.guards_intact());

    Padded<T> product(n + 3, n), rest(m, n);
    kernels::laset(Uplo::general, T(0), T(0), product.view());
    kernels::laset(Uplo::general, T(0), T(0), rest.view());
    kernels::lacpy(Uplo::upper, r.view(), product.view());
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = j + 1; i < n + 3; ++i) {
        ASSERT_TRUE(std::isnan(std::abs(r.view()(i, j))));
        top.view()(i, j) = T(0);
      }
    kernels::tpmqrt(Op::no_trans, v.view(), t.view(), product.view(), rest.view());
    EXPECT_LE(this->distance(product.view(), top.view()), this->tolerance(m + n)) << m << " x " << n << ", ib " << ib;
    EXPECT_LE(this->distance(rest.view(), below.view()), this->tolerance(m + n)) << m << " x " << n << ", ib " << ib;

    auto c0 = random<T>(3, n + 3, 11), c1 = random<T>(4, m, 11), before0 = random<T>(3, n + 3, 11),
         before1 = random<T>(4, m, 11);
    kernels::tpmqrt(Op::conj_trans, v.view(), t.view(), c0.view(), c1.view());
    EXPECT_EQ(this->distance(c0.view().block(n, 0, 3, 11), before0.view().block(n, 0, 3, 11)), 0);
    kernels::tpmqrt(Op::no_trans, v.view(), t.view(), c0.view(), c1.view());
    EXPECT_LE(this->distance(c0.view(), before0.view()), this->tolerance(m + n));
    EXPECT_LE(this->distance(c1.view(), before1.view()), this->tolerance(m + n));
    EXPECT_TRUE(c0.guards_intact() && c1.guards_intact());
  }
}

TYPED_TEST(QrKernels, GeqrtGivesTheReflectorsOfTheTextbook) {
  using T = TypeParam;
  const std::size_t m = 45, n = 20, ib = 7;
  auto a = random<T>(1, m, n), factor = random<T>(1, m, n), t = random<T>(9, ib, n);
  kernels::geqrt(factor.view(), t.view());
  const auto r = a.view();
  for (std::size_t j = 0; j < n; ++j) {
    // v = a_j - beta e_j, scaled to v_j = 1; beta = -sign(Re a_jj) ||a_j||
    const MatrixView<T> column = r.block(j, j, m - j, 1);
    const Real<T> beta = -std::copysign(kernels::lange(Norm::frobenius, column), real_part(column(0, 0)));
    const T tau = (T(beta) - column(0, 0)) / beta, pivot = column(0, 0) - T(beta);
    for (std::size_t i = 1; i < column.rows; ++i) column(i, 0) /= pivot;
    for (std::size_t l = j + 1; l < n; ++l) {
      T product = r(j, l);
      for (std::size_t i = j + 1; i < m; ++i) product += conj(r(i, j)) * r(i, l);
      r(j, l) -= conj(tau) * product;
      for (std::size_t i = j + 1; i < m; ++i) r(i, l) -= r(i, j) * conj(tau) * product;
    }
    r(j, j) = T(beta);
    EXPECT_LE(std::abs(t.view()(j % ib, j) - tau), this->tolerance(m) * 4);
  }
  EXPECT_LE(this->distance(factor.view(), r), this->tolerance(m) * 4);
}

TYPED_TEST(QrKernels, NumbersNearTheEndsOfTheRangeLoseNothing) {
  using T = TypeParam;
  using R = Real<T>;
  const std::size_t m = 30, n = 20, ib = 8;
  // Squares of these leave the range; the smallest are less than a reciprocal of a finite number.
  const R huge = std::numeric_limits<R>::max() / 64, tiny = std::numeric_limits<R>::min() * 64;
  for (const R size : {huge, tiny}) {
    auto reference = random<T>(1, m, n), a = random<T>(1, m, n), t = random<T>(2, ib, n),
         t_reference = random<T>(2, ib, n);
    kernels::geqrt(reference.view(), t_reference.view());
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < m; ++i) a.view()(i, j) *= size;
    kernels::geqrt(a.view(), t.view());
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < m; ++i) {
        const T scaled = i <= j ? a.view()(i, j) / size : a.view()(i, j);
        // What is subtracted from tiny numbers may be less than the smallest normal one.
        EXPECT_LE(std::abs(scaled - reference.view()(i, j)), size == tiny ? R(1e-2) : this->tolerance(m) * 10) << size;
      }
  }
}

TYPED_TEST(QrKernels, ZerosAreTheirOwnFactor) {
  using T = TypeParam;
  Padded<T> a(9, 6), t(4, 6), top(6, 6);
  kernels::laset(Uplo::general, T(0), T(0), a.view());
  kernels::laset(Uplo::general, T(0), T(0), top.view());
  kernels::laset(Uplo::general, T(0), T(0), t.view());
  kernels::geqrt(a.view(), t.view());
  EXPECT_EQ(kernels::lange(Norm::max, a.view()), 0);
  EXPECT_EQ(kernels::lange(Norm::max, t.view()), 0);
  kernels::tpqrt(top.view(), a.view(), t.view());
  EXPECT_EQ(kernels::lange(Norm::max, a.view()), 0);
  EXPECT_EQ(kernels::lange(Norm::max, t.view()), 0);
}

TYPED_TEST(QrKernels, EmptyTilesAreLeftAlone) {
  using T = TypeParam;
  const MatrixView<T> none{};
  kernels::geqrt(none, none);
  kernels::unmqr(Op::no_trans, none, none, none);
  kernels::tpqrt(none, none, none);
  kernels::tpmqrt(Op::conj_trans, none, none, none, none);
  // A triangle on top of no rows is its own factor, once its diagonal is real.
  Padded<T> r(5, 5), t(3, 5);
  generate_tile(RandomGeneral{1}, {}, r.view());
  for (std::size_t i = 0; i < 5; ++i) r.view()(i, i) = T(real_part(r.view()(i, i)));
  Padded<T> before(5, 5);
  kernels::lacpy(Uplo::general, r.view(), before.view());
  kernels::tpqrt(r.view(), MatrixView<T>{nullptr, 0, 5, 1}, t.view());
  EXPECT_EQ(this->distance(r.view(), before.view()), 0);
  EXPECT_TRUE(r.guards_intact() && t.guards_intact());
}

}  // namespace
}  // namespace tandem::linalg::qr_kernels_test
