// tandem/linalg/flows/residuals_test.cpp: residuals are small for right results and large for wrong ones.
#include "tandem/linalg/flows/residuals.hpp"

#include <gtest/gtest.h>

#include <complex>

#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/flows/gemm.hpp"
#include "tandem/linalg/flows/herk.hpp"
#include "tandem/linalg/flows/posv.hpp"

namespace tandem::linalg::residuals_test {
namespace {

using test::Tiled;

template <class T>
class Residuals : public testing::Test {};
TYPED_TEST_SUITE(Residuals, test::Scalars, test::Letters);

/// Adds to one element an error that is small beside the matrix but large beside rounding.
template <class T>
void disturb(Runtime& rt, const TiledData<T>& a, std::size_t i, std::size_t j) {
  auto tile = rt.acquire(read_write(a(i, j)));
  (*tile)(1, 1) *= T(Real<T>(1) + 5000 * epsilon<T>);
  (*tile)(1, 1) += T(5000 * epsilon<T>);
}

TYPED_TEST(Residuals, OfFactorsSeeOneWrongElement) {
  using T = TypeParam;
  const std::size_t n = 30, nb = 8;
  Runtime rt(test::options({2, "lws"}));
  for (Uplo uplo : {Uplo::lower, Uplo::upper}) {
    const TileShape shape{.rows = n, .cols = n, .tile = nb, .uplo = uplo};
    const RandomPositiveDefinite generator{.seed = 1, .order = n};
    Tiled<T> a(rt, shape, generator), again(rt, shape, generator), factor(rt, shape, generator);
    ASSERT_EQ(potrf(rt, uplo, factor.data), 0u);
    EXPECT_LE(potrf_residual(rt, uplo, a.data, factor.data), 3);
    disturb(rt, factor.data, 1, 1);
    EXPECT_GT(potrf_residual(rt, uplo, again.data, factor.data), residual_limit);
  }
}

TYPED_TEST(Residuals, OfProductsSeeOneWrongElement) {
  using T = TypeParam;
  const std::size_t n = 30, nb = 8;
  const TileShape shape{.rows = n, .cols = n, .tile = nb};
  Runtime rt(test::options({2, "lws"}));
  Tiled<T> a(rt, shape, RandomGeneral{1}), b(rt, shape, RandomGeneral{2}), before(rt, shape, RandomGeneral{3}),
      c(rt, shape, RandomGeneral{3});
  const Product<T> product{
      .op_a = Op::conj_trans, .op_b = Op::no_trans, .alpha = T(2), .a = a.data, .b = b.data, .beta = T(-1)};
  gemm(rt, product.op_a, product.op_b, product.alpha, a.data, b.data, product.beta, c.data);
  EXPECT_LE(gemm_residual(rt, product, before.data, c.data), 3);
  auto tile = rt.acquire(read_write(c.data(2, 1)));
  (*tile)(0, 3) += T(Real<T>(0.25));
  tile.release();
  EXPECT_GT(gemm_residual(rt, product, before.data, c.data), residual_limit);
}

TYPED_TEST(Residuals, OfRankUpdatesGoByTheExpandedMatrix) {
  using T = TypeParam;
  const std::size_t n = 30, k = 20, nb = 8;
  Runtime rt(test::options({2, "lws"}));
  for (Uplo uplo : {Uplo::lower, Uplo::upper})
    for (Mirror mirror : {Mirror::symmetric, Mirror::hermitian}) {
      const TileShape square{.rows = n, .cols = n, .tile = nb, .uplo = uplo}, full{.rows = n, .cols = n, .tile = nb};
      Tiled<T> a(rt, {.rows = n, .cols = k, .tile = nb}, RandomGeneral{1}), c(rt, square, Kms{0.5});
      Tiled<T> before(rt, full, Kms{0.5}), after(rt, full);
      const bool hermitian = mirror == Mirror::hermitian;
      if (hermitian) herk(rt, uplo, Op::no_trans, Real<T>(2), a.data, Real<T>(1), c.data);
      else syrk(rt, uplo, Op::no_trans, T(2), a.data, T(1), c.data);
      submit_expand(rt, uplo, mirror, c.data, after.data);
      const Product<T> product{.op_a = Op::no_trans,
                               .op_b = hermitian ? Op::conj_trans : Op::trans,
                               .alpha = T(2),
                               .a = a.data,
                               .b = a.data,
                               .beta = T(1)};
      EXPECT_LE(gemm_residual(rt, product, before.data, after.data), 3);
    }
}

TEST(Residuals, AreScaledAsLapackDoes) {
  EXPECT_EQ(scaled_residual(0.0, 0.0, 5, 0.5), 0.0);
  EXPECT_EQ(scaled_residual(1.0, 0.0, 5, 0.5), 2.0);
  EXPECT_EQ(scaled_residual(6.0, 2.0, 3, 0.5), 2.0);
}

}  // namespace
}  // namespace tandem::linalg::residuals_test
