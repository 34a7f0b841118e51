// tandem/linalg/kernels/kernels_test.cpp: every tile kernel against loops that follow its definition, in all
// precisions.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "tandem/base/blas_threads.hpp"
#include "tandem/linalg/generators.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/herk.hpp"
#include "tandem/linalg/kernels/kernel_test_support.hpp"
#include "tandem/linalg/kernels/lacpy.hpp"
#include "tandem/linalg/kernels/laset.hpp"
#include "tandem/linalg/kernels/norms.hpp"
#include "tandem/linalg/kernels/potrf.hpp"
#include "tandem/linalg/kernels/trsm.hpp"

namespace tandem::linalg::kernels_test {
namespace {

using test::Padded;
using test::random;

/// The element of op(A).
template <class T>
T at(Op op, MatrixView<T> a, std::size_t i, std::size_t j) {
  return op == Op::no_trans ? a(i, j) : op == Op::trans ? a(j, i) : conj(a(j, i));
}

template <class T>
class KernelsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { base::restrict_blas_threads(); }
  static Real<T> tolerance(std::size_t n) { return Real<T>(n + 1) * 8 * epsilon<T>; }
};

TYPED_TEST_SUITE(KernelsTest, test::Scalars, test::Letters);

constexpr Op ops[] = {Op::no_trans, Op::trans, Op::conj_trans};
constexpr Uplo triangles[] = {Uplo::lower, Uplo::upper};

TYPED_TEST(KernelsTest, GemmEqualsItsDefinition) {
  using T = TypeParam;
  const std::size_t m = 13, n = 7, k = 9;
  const T alpha = T(Real<T>(-1.5)), beta = T(Real<T>(0.5));
  for (Op op_a : ops) {
    for (Op op_b : ops) {
      auto a = op_a == Op::no_trans ? random<T>(1, m, k) : random<T>(1, k, m);
      auto b = op_b == Op::no_trans ? random<T>(2, k, n) : random<T>(2, n, k);
      auto c = random<T>(3, m, n), expected = random<T>(3, m, n);
      kernels::gemm(op_a, op_b, alpha, a.view(), b.view(), beta, c.view());
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < m; ++i) {
          T sum{};
          for (std::size_t l = 0; l < k; ++l) sum += at(op_a, a.view(), i, l) * at(op_b, b.view(), l, j);
          EXPECT_LE(std::abs(c.view()(i, j) - (alpha * sum + beta * expected.view()(i, j))), this->tolerance(k));
        }
      EXPECT_TRUE(c.guards_intact());
    }
  }
}

TYPED_TEST(KernelsTest, TrsmSolvesEveryFormOfTriangularSystem) {
  using T = TypeParam;
  // Orders around the leaf (32) and the strip (32 or 64 right-hand sides), and odd ones.
  for (std::size_t n : {1, 2, 5, 31, 32, 33, 70, 129}) {
    for (std::size_t rhs : {std::size_t(1), std::size_t(3), std::size_t(65)}) {
      for (Side side : {Side::left, Side::right})
        for (Uplo uplo : triangles)
          for (Op op : ops)
            for (Diag diag : {Diag::non_unit, Diag::unit}) {
              const bool left = side == Side::left;
              auto a = random<T>(n, n, n);
              // A well-conditioned triangle; elements that must not be read are NaN.
              for (std::size_t j = 0; j < n; ++j)
                for (std::size_t i = 0; i < n; ++i) {
                  const bool inside = uplo == Uplo::lower ? i > j : i < j;
                  T& element = a.view()(i, j);
                  if (i == j)
                    element = diag == Diag::unit ? T(std::numeric_limits<Real<T>>::quiet_NaN()) : element + T(2);
                  else element = inside ? element / T(Real<T>(n)) : T(std::numeric_limits<Real<T>>::quiet_NaN());
                }
              auto b = left ? random<T>(7, n, rhs) : random<T>(7, rhs, n);
              auto x = left ? random<T>(7, n, rhs) : random<T>(7, rhs, n);
              const T alpha = T(Real<T>(0.5));
              kernels::trsm(side, uplo, op, diag, alpha, a.view(), x.view());
              const auto triangle = [&](std::size_t i, std::size_t j) {
                const bool stored_lower = (op == Op::no_trans) == (i > j);
                if (i == j) return diag == Diag::unit ? T(1) : at(op, a.view(), i, j);
                return stored_lower == (uplo == Uplo::lower) ? at(op, a.view(), i, j) : T(0);
              };
              Real<T> worst = 0;
              for (std::size_t r = 0; r < rhs; ++r)
                for (std::size_t i = 0; i < n; ++i) {
                  T sum{};
                  for (std::size_t k = 0; k < n; ++k)
                    sum += left ? triangle(i, k) * x.view()(k, r) : x.view()(r, k) * triangle(k, i);
                  const T wanted = alpha * (left ? b.view()(i, r) : b.view()(r, i));
                  worst = std::max(worst, std::abs(sum - wanted));
                  if (std::isnan(std::abs(sum))) worst = std::numeric_limits<Real<T>>::infinity();
                }
              ASSERT_LE(worst, this->tolerance(n))
                  << "n=" << n << " rhs=" << rhs << " side=" << char(side) << " uplo=" << char(uplo)
                  << " op=" << char(op) << " diag=" << char(diag);
              ASSERT_TRUE(x.guards_intact());
            }
    }
  }
}

template <class T>
void check_rank_update(bool hermitian, std::size_t n, std::size_t k, Uplo uplo, Op op, Real<T> tolerance) {
  auto a = op == Op::no_trans ? random<T>(1, n, k) : random<T>(1, k, n);
  auto c = random<T>(2, n, n), before = random<T>(2, n, n);
  if (hermitian) {
    for (std::size_t i = 0; i < n; ++i) c.view()(i, i) = before.view()(i, i) = T(real_part(c.view()(i, i)));
    kernels::herk(uplo, op, Real<T>(-0.5), a.view(), Real<T>(2), c.view());
  } else {
    kernels::syrk(uplo, op, T(Real<T>(-0.5)), a.view(), T(2), c.view());
  }
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i < n; ++i) {
      const bool inside = uplo == Uplo::lower ? i >= j : i <= j;
      if (!inside) {
        ASSERT_EQ(c.view()(i, j), before.view()(i, j));
        continue;
      }
      T sum{};
      for (std::size_t l = 0; l < k; ++l) {
        const T right = at(op, a.view(), j, l);
        sum += at(op, a.view(), i, l) * (hermitian ? conj(right) : right);
      }
      ASSERT_LE(std::abs(c.view()(i, j) - (T(Real<T>(-0.5)) * sum + T(2) * before.view()(i, j))), tolerance);
    }
  ASSERT_TRUE(c.guards_intact());
}

TYPED_TEST(KernelsTest, RankUpdatesTouchOneTriangleOnly) {
  using T = TypeParam;
  for (std::size_t n : {1, 6, 32, 33, 100})
    for (std::size_t k : {std::size_t(1), std::size_t(40)})
      for (Uplo uplo : triangles) {
        const Real<T> tolerance = this->tolerance(k) * 2;
        check_rank_update<T>(true, n, k, uplo, Op::no_trans, tolerance);
        check_rank_update<T>(true, n, k, uplo, Op::conj_trans, tolerance);
        check_rank_update<T>(false, n, k, uplo, Op::no_trans, tolerance);
        check_rank_update<T>(false, n, k, uplo, Op::trans, tolerance);
      }
}

TYPED_TEST(KernelsTest, RankUpdateWithBetaZeroDoesNotReadC) {
  using T = TypeParam;
  auto a = random<T>(1, 40, 5);
  Padded<T> c(40, 40);
  kernels::laset(Uplo::general, T(std::numeric_limits<Real<T>>::quiet_NaN()),
                 T(std::numeric_limits<Real<T>>::quiet_NaN()), c.view());
  kernels::herk(Uplo::lower, Op::no_trans, Real<T>(1), a.view(), Real<T>(0), c.view());
  for (std::size_t j = 0; j < 40; ++j)
    for (std::size_t i = j; i < 40; ++i) ASSERT_FALSE(std::isnan(std::abs(c.view()(i, j))));
}

TYPED_TEST(KernelsTest, PotrfFactorsBothTriangles) {
  using T = TypeParam;
  for (std::size_t n : {0, 1, 2, 17, 32, 33, 64, 150}) {
    for (Uplo uplo : triangles) {
      Padded<T> a(n, n), factor(n, n);
      generate_tile(RandomPositiveDefinite{.seed = 3, .order = n, .dominance = 1}, {}, a.view());
      kernels::lacpy(Uplo::general, a.view(), factor.view());
      ASSERT_EQ(kernels::potrf(uplo, factor.view()), 0u);
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < n; ++i) {
          const bool inside = uplo == Uplo::lower ? i >= j : i <= j;
          if (!inside) {
            ASSERT_EQ(factor.view()(i, j), a.view()(i, j));
            continue;
          }
          T sum{};  // (L L^H)_ij or (U^H U)_ij
          for (std::size_t k = 0; k <= std::min(i, j); ++k)
            sum += uplo == Uplo::lower ? factor.view()(i, k) * conj(factor.view()(j, k))
                                       : conj(factor.view()(k, i)) * factor.view()(k, j);
          ASSERT_LE(std::abs(sum - a.view()(i, j)), this->tolerance(n) * Real<T>(n)) << n << char(uplo);
        }
      ASSERT_TRUE(factor.guards_intact());
    }
  }
}

TYPED_TEST(KernelsTest, PotrfMeetsTheKnownFactors) {
  using T = TypeParam;
  const std::size_t n = 77;
  Padded<T> ones(n, n), kms(n, n);
  generate_tile(MinIj{}, {}, ones.view());
  generate_tile(Kms{0.75}, {}, kms.view());
  ASSERT_EQ(kernels::potrf(Uplo::lower, ones.view()), 0u);
  ASSERT_EQ(kernels::potrf(Uplo::lower, kms.view()), 0u);
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = j; i < n; ++i) {
      EXPECT_EQ(ones.view()(i, j), T(1));
      const double known = std::pow(0.75, double(i - j)) * (j == 0 ? 1 : std::sqrt(1 - 0.75 * 0.75));
      EXPECT_LE(std::abs(kms.view()(i, j) - T(Real<T>(known))), this->tolerance(n));
    }
}

TYPED_TEST(KernelsTest, PotrfReturnsTheOrderOfTheFirstBadMinor) {
  using T = TypeParam;
  const std::size_t n = 100;
  for (std::size_t bad : {std::size_t(0), std::size_t(31), std::size_t(32), std::size_t(70), n - 1}) {
    for (Uplo uplo : triangles) {
      for (Real<T> pivot : {Real<T>(-1), std::numeric_limits<Real<T>>::quiet_NaN()}) {
        Padded<T> a(n, n);
        generate_tile(RandomPositiveDefinite{.seed = 5, .order = n}, {}, a.view());
        a.view()(bad, bad) = T(pivot);
        EXPECT_EQ(kernels::potrf(uplo, a.view()), bad + 1) << char(uplo);
      }
    }
  }
}

TYPED_TEST(KernelsTest, LacpyAndLasetWriteTheirTriangleOnly) {
  using T = TypeParam;
  for (auto [m, n] : {std::pair<std::size_t, std::size_t>{6, 6}, {4, 7}, {7, 4}}) {
    for (Uplo uplo : {Uplo::lower, Uplo::upper, Uplo::general}) {
      auto a = random<T>(1, m, n), b = random<T>(2, m, n), c = random<T>(2, m, n), before = random<T>(2, m, n);
      kernels::lacpy(uplo, a.view(), b.view());
      kernels::laset(uplo, T(3), T(4), c.view());
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < m; ++i) {
          const bool inside = uplo == Uplo::general || i == j || (uplo == Uplo::lower ? i > j : i < j);
          EXPECT_EQ(b.view()(i, j), inside ? a.view()(i, j) : before.view()(i, j));
          EXPECT_EQ(c.view()(i, j), !inside ? before.view()(i, j) : i == j ? T(4) : T(3));
        }
      EXPECT_TRUE(b.guards_intact() && c.guards_intact());
    }
  }
}

TYPED_TEST(KernelsTest, EmptyTilesAreLeftAlone) {
  using T = TypeParam;
  const MatrixView<T> none{};
  kernels::gemm(Op::no_trans, Op::no_trans, T(1), none, none, T(0), none);
  kernels::trsm(Side::left, Uplo::lower, Op::no_trans, Diag::non_unit, T(1), none, none);
  kernels::herk(Uplo::lower, Op::no_trans, Real<T>(1), none, Real<T>(0), none);
  kernels::lacpy(Uplo::general, none, none);
  EXPECT_EQ(kernels::potrf(Uplo::upper, none), 0u);
}

}  // namespace
}  // namespace tandem::linalg::kernels_test
