// tandem/linalg/flows/gesv_test.cpp: solutions by LU factors, where pivoting is needed and where pivots are used again.
#include "tandem/linalg/flows/gesv.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/linalg/flows/getrf.hpp"
#include "tandem/linalg/flows/getrf_nopiv.hpp"
#include "tandem/linalg/flows/getrf_test_support.hpp"
#include "tandem/linalg/flows/getrs.hpp"
#include "tandem/linalg/flows/laswp.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/kernels/laswp.hpp"

namespace tandem::linalg::test::gesv_test {
namespace {

/// Blocks [0 1; 1 0] on the diagonal.
struct SwappedPairs {
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return T((i ^ 1) == j ? 1 : 0);
  }
};

TYPED_TEST(GetrfFlow, PivotsAreLapacksInterchanges) {
  using T = TypeParam;
  Runtime rt(options({3, "random"}));
  const std::size_t rows = 75, cols = 60;
  Tiled<T> a(rt, {.rows = rows, .cols = cols, .tile = 16}, RandomGeneral{2}),
      b(rt, {.rows = rows, .cols = 21, .tile = 16}, RandomGeneral{3});
  TiledPivots pivots(rt, a.data);
  ASSERT_EQ(getrf(rt, a.data, pivots), 0u);
  auto wanted = b.dense();
  auto interchanges = pivots.ipiv(rt);
  for (std::size_t& row : interchanges) --row;
  kernels::laswp<T>(interchanges, {wanted.data(), rows, 21, rows});
  submit_laswp(rt, pivots, b.data);
  rt.wait();
  EXPECT_EQ(b.dense(), wanted);
}

TYPED_TEST(GetrfFlow, SolvesWherePivotingIsNeeded) {
  using T = TypeParam;
  const std::size_t n = 58, nb = 8;
  const TileShape square{.rows = n, .cols = n, .tile = nb}, tall{.rows = n, .cols = 3, .tile = nb};
  const auto check = [&](Runtime& rt, const auto& generator, const char* what) {
    Tiled<T> a(rt, square, generator), factors(rt, square, generator), again(rt, square, generator);
    Tiled<T> b(rt, tall, RandomGeneral{6}), x(rt, tall, RandomGeneral{6});
    TiledPivots pivots(rt, factors.data);
    ASSERT_EQ(gesv(rt, factors.data, pivots, x.data), 0u) << what;
    EXPECT_LE(gesv_residual(rt, a.data, x.data, b.data), residual_limit) << what;
    EXPECT_LE(getrf_residual(rt, again.data, factors.data, pivots), residual_limit) << what;
  };
  std::vector<std::size_t> reversed(n);
  for (std::size_t i = 0; i < n; ++i) reversed[i] = n - 1 - i;
  for (const auto& setting : settings) {
    Runtime rt(options(setting));
    check(rt, Shifted{.order = n, .by = 1}, "zero diagonal");
    check(rt, Shifted{.order = n, .by = nb}, "zero diagonal tiles");
    check(rt, SwappedPairs{}, "[0 1; 1 0]");
    check(rt, RowsOf<RandomDominant>{{.seed = 4, .order = n}, &reversed}, "dominant matrix, rows reversed");
  }
}

TYPED_TEST(GetrfFlow, GesvSolvesTheSystem) {
  using T = TypeParam;
  for (const auto& setting : settings) {
    Runtime rt(options(setting));
    for (auto [n, rhs] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 1}, {50, 0}, {50, 1}, {61, 30}}) {
      const TileShape square{.rows = n, .cols = n, .tile = 16}, tall{.rows = n, .cols = rhs, .tile = 16};
      Tiled<T> a(rt, square, RandomGeneral{5}), factors(rt, square, RandomGeneral{5});
      Tiled<T> b(rt, tall, RandomGeneral{6}), x(rt, tall, RandomGeneral{6});
      TiledPivots pivots(rt, factors.data);
      ASSERT_EQ(gesv(rt, factors.data, pivots, x.data), 0u);
      EXPECT_LE(gesv_residual(rt, a.data, x.data, b.data), residual_limit) << "n=" << n << " rhs=" << rhs;

      const RandomDominant dominant{.seed = 7, .order = n};
      Tiled<T> d(rt, square, dominant), d_factors(rt, square, dominant);
      Tiled<T> c(rt, tall, RandomGeneral{6}), y(rt, tall, RandomGeneral{6});
      ASSERT_EQ(gesv_nopiv(rt, d_factors.data, y.data), 0u);
      EXPECT_LE(gesv_residual(rt, d.data, y.data, c.data), residual_limit) << "n=" << n << " rhs=" << rhs;
    }
  }
}

TYPED_TEST(GetrfFlow, OneFactorisationServesManyRightHandSides) {
  using T = TypeParam;
  Runtime rt(options({2, "lws"}));
  const TileShape square{.rows = 60, .cols = 60, .tile = 16}, tall{.rows = 60, .cols = 2, .tile = 16};
  Tiled<T> a(rt, square, RandomGeneral{1}), factors(rt, square, RandomGeneral{1});
  TiledPivots pivots(rt, factors.data);
  ASSERT_EQ(getrf(rt, factors.data, pivots), 0u);
  for (std::uint64_t seed : {2, 3}) {
    Tiled<T> b(rt, tall, RandomGeneral{seed}), x(rt, tall, RandomGeneral{seed});
    getrs(rt, factors.data, pivots, x.data);
    EXPECT_LE(gesv_residual(rt, a.data, x.data, b.data), residual_limit);
  }
}

TYPED_TEST(GetrfFlow, PivotsMayBeUsedForAnotherFactorisation) {
  using T = TypeParam;
  Runtime rt(options({2, "lws"}));
  const TileShape square{.rows = 60, .cols = 60, .tile = 16}, tall{.rows = 60, .cols = 2, .tile = 16};
  Tiled<T> first(rt, square, RandomGeneral{1}), a(rt, square, RandomGeneral{2}), factors(rt, square, RandomGeneral{2});
  Tiled<T> b(rt, tall, RandomGeneral{3}), x(rt, tall, RandomGeneral{3});
  TiledPivots pivots(rt, first.data);
  Info info;
  submit_getrf(rt, first.data, pivots, info);
  submit_gesv(rt, factors.data, pivots, x.data, info);
  EXPECT_LE(gesv_residual(rt, a.data, x.data, b.data), residual_limit);
  EXPECT_FALSE(info.failed());
}

TEST(GetrfFlow, RefusesMatricesThatDoNotFit) {
  Runtime rt(options({1, "lws"}));
  Tiled<double> a(rt, {.rows = 10, .cols = 10, .tile = 4}, RandomGeneral{1}),
      wide(rt, {.rows = 4, .cols = 10, .tile = 4}), lower(rt, {.rows = 10, .cols = 10, .tile = 4, .uplo = Uplo::lower});
  Tiled<double> short_b(rt, {.rows = 9, .cols = 1, .tile = 4}), other_tile(rt, {.rows = 10, .cols = 1, .tile = 5});
  TiledPivots pivots(rt, a.data), of_wide(rt, wide.data);
  Info info;
  EXPECT_THROW(getrf(rt, lower.data, pivots), UsageError);
  EXPECT_THROW(getrf_nopiv(rt, lower.data), UsageError);
  EXPECT_THROW(getrf(rt, a.data, of_wide), UsageError);
  EXPECT_THROW(gesv(rt, wide.data, of_wide, short_b.data), UsageError);
  EXPECT_THROW(gesv(rt, a.data, pivots, short_b.data), UsageError);
  EXPECT_THROW(gesv_nopiv(rt, a.data, other_tile.data), UsageError);
  EXPECT_THROW(getrs(rt, wide.data, of_wide, short_b.data), UsageError);
  EXPECT_THROW(getrs_nopiv(rt, a.data, short_b.data), UsageError);
  EXPECT_THROW(submit_laswp(rt, pivots, short_b.data), UsageError);
  EXPECT_THROW(submit_laswp(rt, pivots, other_tile.data), UsageError);
}

}  // namespace
}  // namespace tandem::linalg::test::gesv_test
