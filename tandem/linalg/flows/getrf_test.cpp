// tandem/linalg/flows/getrf_test.cpp: LU factorisations and solutions of every shape, precision, pivoting and schedule.
#include "tandem/linalg/flows/getrf.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/flows/gesv.hpp"
#include "tandem/linalg/flows/getrf_nopiv.hpp"
#include "tandem/linalg/flows/getrs.hpp"
#include "tandem/linalg/flows/laswp.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/kernels/getrf.hpp"
#include "tandem/linalg/kernels/laswp.hpp"

namespace tandem::linalg {
namespace {

using test::Tiled;

template <class T>
class GetrfFlow : public testing::Test {};
TYPED_TEST_SUITE(GetrfFlow, test::Scalars, test::Letters);

/// Of one size and tiling.
struct Case {
  std::size_t rows, cols, nb;
  TileShape shape() const { return {.rows = rows, .cols = cols, .tile = nb}; }
};
const Case cases[] = {{0, 0, 8},      {0, 5, 8},     {1, 1, 8},     {7, 7, 8},     {8, 8, 8},     {9, 9, 8},
                      {65, 65, 16},   {150, 150, 40}, {90, 90, 90},  {100, 40, 16}, {40, 100, 16}, {100, 16, 16},
                      {16, 100, 16},  {100, 5, 16},  {5, 100, 16},  {33, 32, 16}};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.rows << " x " << c.cols << " in " << c.nb; }

/// The rows of another generator's matrix in another order.
template <class G>
struct RowsOf {
  G generator;
  const std::vector<std::size_t>* order;
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return generator.template element<T>((*order)[i], j);
  }
};

/// A permutation matrix: zeros on the diagonal, unless shifted by nothing.
struct Shifted {
  std::size_t order = 0, by = 1;
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return T((i + by) % order == j ? 1 : 0);
  }
};

/// The same element everywhere.
struct Constant {
  double value = 0;
  template <Scalar T>
  T element(std::size_t, std::size_t) const noexcept {
    return T(static_cast<Real<T>>(value));
  }
};

/// Blocks [0 1; 1 0] on the diagonal.
struct SwappedPairs {
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return T((i ^ 1) == j ? 1 : 0);
  }
};

/// Wilkinson's: the last column doubles at each step of partial pivoting, up to 2^(n-1) (Higham, Accuracy and Stability of
/// Numerical Algorithms, 2nd ed., section 9.4).
struct Wilkinson {
  std::size_t order = 0;
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return T(Real<T>(j + 1 == order || i == j ? 1 : i > j ? -1 : 0));
  }
};

TYPED_TEST(GetrfFlow, FactorsEveryShapeInEverySchedule) {
  using T = TypeParam;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (const Case& c : cases) {
      Tiled<T> a(rt, c.shape(), RandomGeneral{c.rows}), factors(rt, c.shape(), RandomGeneral{c.rows});
      TiledPivots pivots(rt, factors.data);
      ASSERT_EQ(getrf(rt, factors.data, pivots), 0u) << c;
      EXPECT_LE(getrf_residual(rt, a.data, factors.data, pivots), residual_limit) << c;
      const auto ipiv = pivots.ipiv(rt);
      ASSERT_EQ(ipiv.size(), std::min(c.rows, c.cols));
      for (std::size_t t = 0; t < ipiv.size(); ++t) EXPECT_TRUE(ipiv[t] > t && ipiv[t] <= c.rows) << c;
    }
  }
}

TYPED_TEST(GetrfFlow, FactorsEveryShapeWithoutPivoting) {
  using T = TypeParam;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (const Case& c : cases) {
      const RandomDominant generator{.seed = c.cols, .order = std::max(c.rows, c.cols)};
      Tiled<T> a(rt, c.shape(), generator), factors(rt, c.shape(), generator);
      ASSERT_EQ(getrf_nopiv(rt, factors.data), 0u) << c;
      EXPECT_LE(getrf_nopiv_residual(rt, a.data, factors.data), residual_limit) << c;
    }
  }
}

TYPED_TEST(GetrfFlow, EveryScheduleGivesTheSameBits) {
  using T = TypeParam;
  std::vector<T> first, first_nopiv;
  std::vector<std::size_t> first_ipiv;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    const TileShape shape{.rows = 130, .cols = 110, .tile = 24};
    Tiled<T> a(rt, shape, RandomGeneral{1}), dominant(rt, shape, RandomDominant{.seed = 1, .order = 130});
    TiledPivots pivots(rt, a.data);
    ASSERT_EQ(getrf(rt, a.data, pivots), 0u);
    ASSERT_EQ(getrf_nopiv(rt, dominant.data), 0u);
    if (first.empty()) {
      first = a.dense();
      first_nopiv = dominant.dense();
      first_ipiv = pivots.ipiv(rt);
    }
    EXPECT_EQ(a.dense(), first) << setting.workers << " workers, " << setting.sched;
    EXPECT_EQ(dominant.dense(), first_nopiv) << setting.workers << " workers, " << setting.sched;
    EXPECT_EQ(pivots.ipiv(rt), first_ipiv);
  }
}

TYPED_TEST(GetrfFlow, OfOneTileIsPartialPivoting) {
  using T = TypeParam;
  Runtime rt(test::options({1, "lws"}));
  const std::size_t n = 50;
  Tiled<T> a(rt, {.rows = n, .cols = n, .tile = 64}, RandomGeneral{9});
  auto dense = a.dense();
  std::vector<std::size_t> interchanges(n);
  kernels::getrf(MatrixView<T>{dense.data(), n, n, n}, std::span(interchanges));
  for (std::size_t& row : interchanges) ++row;
  TiledPivots pivots(rt, a.data);
  ASSERT_EQ(getrf(rt, a.data, pivots), 0u);
  EXPECT_EQ(pivots.ipiv(rt), interchanges);
}

TYPED_TEST(GetrfFlow, PivotsAreLapacksInterchanges) {
  using T = TypeParam;
  Runtime rt(test::options({3, "random"}));
  const std::size_t rows = 75, cols = 60;
  Tiled<T> a(rt, {.rows = rows, .cols = cols, .tile = 16}, RandomGeneral{2}), b(rt, {.rows = rows, .cols = 21, .tile = 16},
                                                                               RandomGeneral{3});
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

TYPED_TEST(GetrfFlow, FindsTheOrderOfPermutedMatricesExactly) {
  using T = TypeParam;
  const std::size_t n = 53, nb = 8;
  Runtime rt(test::options({2, "lws"}));
  std::mt19937 random(1);  // NOLINT: the same cases each time
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t(0));
  for (int round = 0; round < 3; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    // Rows of a diagonal matrix: P A is diagonal again, L is I.
    const RowsOf<Shifted> generator{{.order = n, .by = 0}, &order};
    Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb}, generator);
    TiledPivots pivots(rt, a.data);
    ASSERT_EQ(getrf(rt, a.data, pivots), 0u);
    const auto factors = a.dense();
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(factors[i + j * n], T(i == j ? 1 : 0));
  }
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
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    check(rt, Shifted{.order = n, .by = 1}, "zero diagonal");
    check(rt, Shifted{.order = n, .by = nb}, "zero diagonal tiles");
    check(rt, SwappedPairs{}, "[0 1; 1 0]");
    check(rt, RowsOf<RandomDominant>{{.seed = 4, .order = n}, &reversed}, "dominant matrix, rows reversed");
  }
}

TYPED_TEST(GetrfFlow, GesvSolvesTheSystem) {
  using T = TypeParam;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
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
  Runtime rt(test::options({2, "lws"}));
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
  Runtime rt(test::options({2, "lws"}));
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

TYPED_TEST(GetrfFlow, SubmitsTheSameTasksWhateverTheValues) {
  using T = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  const TileShape square{.rows = 60, .cols = 60, .tile = 16};
  Tiled<T> factors(rt, square, RandomDominant{.seed = 1, .order = 60});
  TiledPivots pivots(rt, factors.data);
  Info info;
  // Recorded with one matrix, the flow factorises others, which need other pivots.
  Graph graph = rt.record([&] { submit_getrf(rt, factors.data, pivots, info); });
  for (std::uint64_t seed : {1, 2, 3}) {
    Tiled<T> a(rt, square, RandomGeneral{seed});
    generate(rt, RandomGeneral{seed}, factors.data);
    rt.wait(rt.replay(graph));
    EXPECT_LE(getrf_residual(rt, a.data, factors.data, pivots), residual_limit);
  }
}

TYPED_TEST(GetrfFlow, ReturnsTheFirstZeroPivot) {
  using T = TypeParam;
  const std::size_t n = 100, nb = 16;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (std::size_t bad : {std::size_t(0), std::size_t(15), std::size_t(16), std::size_t(55), n - 1}) {
      Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb}, MinIj{});
      {
        auto tile = rt.acquire(read_write(a.data(bad / nb, bad / nb)));
        (*tile)(bad % nb, bad % nb) -= T(1);
      }
      EXPECT_EQ(getrf_nopiv(rt, a.data), bad + 1);

      // A column of zeros stays one, whichever rows are exchanged.
      Tiled<T> singular(rt, {.rows = n, .cols = n, .tile = nb}, RandomGeneral{3});
      for (std::size_t i = 0; i < singular.data.row_tiles(); ++i) {
        auto tile = rt.acquire(read_write(singular.data(i, bad / nb)));
        for (std::size_t row = 0; row < tile->rows; ++row) (*tile)(row, bad % nb) = T(0);
      }
      TiledPivots pivots(rt, singular.data);
      EXPECT_EQ(getrf(rt, singular.data, pivots), bad + 1);
    }
  }
}

TYPED_TEST(GetrfFlow, SingularMatricesEndAndSayWhere) {
  using T = TypeParam;
  const std::size_t n = 50, nb = 8;
  const TileShape square{.rows = n, .cols = n, .tile = nb};
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    Tiled<T> zeros(rt, square, Constant{0}), ones(rt, square, Constant{1}), zero_row(rt, square, RandomGeneral{1});
    TiledPivots pivots(rt, zeros.data);
    EXPECT_EQ(getrf(rt, zeros.data, pivots), 1u);
    EXPECT_EQ(getrf(rt, ones.data, pivots), 2u);
    for (std::size_t j = 0; j < zero_row.data.col_tiles(); ++j) {
      auto tile = rt.acquire(read_write(zero_row.data(2, j)));
      for (std::size_t col = 0; col < tile->cols; ++col) (*tile)(3, col) = T(0);
    }
    EXPECT_EQ(getrf(rt, zero_row.data, pivots), n);
    // The pivots that a failure leaves are still interchanges within the matrix.
    for (const std::size_t row : pivots.ipiv(rt)) EXPECT_TRUE(row >= 1 && row <= n);
  }
}

TYPED_TEST(GetrfFlow, WhatIsNotANumberEndsToo) {
  using T = TypeParam;
  const std::size_t n = 50, nb = 8;
  Runtime rt(test::options({3, "random"}));
  Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb}, RandomGeneral{1});
  {
    auto tile = rt.acquire(read_write(a.data(3, 1)));
    (*tile)(1, 1) = T(std::numeric_limits<Real<T>>::quiet_NaN());
  }
  TiledPivots pivots(rt, a.data);
  EXPECT_EQ(getrf(rt, a.data, pivots), 0u);
  for (const std::size_t row : pivots.ipiv(rt)) EXPECT_TRUE(row >= 1 && row <= n);
}

/// max |u_ij| / max |a_ij|
template <class T>
Real<T> growth(const std::vector<T>& before, const std::vector<T>& factors, std::size_t n) {
  Real<T> of_a = 0, of_u = 0;
  for (const T& value : before) of_a = std::max<Real<T>>(of_a, std::abs(value));
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i <= j; ++i) of_u = std::max<Real<T>>(of_u, std::abs(factors[i + j * n]));
  return of_u / of_a;
}

TYPED_TEST(GetrfFlow, GrowsLittleMoreThanPartialPivoting) {
  using T = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  const std::size_t n = 160;
  for (std::uint64_t seed : {1, 2, 3}) {
    Tiled<T> a(rt, {.rows = n, .cols = n, .tile = 16}, RandomGeneral{seed}), again(rt, {.rows = n, .cols = n, .tile = 16},
                                                                                  RandomGeneral{seed});
    const auto before = a.dense();
    auto partial = before;
    std::vector<std::size_t> interchanges(n);
    kernels::getrf(MatrixView<T>{partial.data(), n, n, n}, std::span(interchanges));
    TiledPivots pivots(rt, a.data);
    ASSERT_EQ(getrf(rt, a.data, pivots), 0u);
    EXPECT_LE(growth(before, a.dense(), n), 2.5 * growth(before, partial, n));
    EXPECT_LE(getrf_residual(rt, again.data, a.data, pivots), 3);
  }
}

TYPED_TEST(GetrfFlow, MeetsTheGrowthOfWilkinsonsMatrix) {
  using T = TypeParam;
  const std::size_t n = 20;
  Runtime rt(test::options({2, "lws"}));
  const TileShape shape{.rows = n, .cols = n, .tile = 4};
  Tiled<T> a(rt, shape, Wilkinson{n}), factors(rt, shape, Wilkinson{n});
  TiledPivots pivots(rt, factors.data);
  ASSERT_EQ(getrf(rt, factors.data, pivots), 0u);
  // Powers of two: nothing is rounded, and no pivoting strategy that compares within columns avoids the growth.
  EXPECT_EQ(growth(a.dense(), factors.dense(), n), Real<T>(1 << (n - 1)));
  EXPECT_LE(getrf_residual(rt, a.data, factors.data, pivots), residual_limit);
}

TYPED_TEST(GetrfFlow, ResidualsSeeOneWrongElementAndWrongPivots) {
  using T = TypeParam;
  const std::size_t n = 30;
  const TileShape shape{.rows = n, .cols = n, .tile = 8};
  Runtime rt(test::options({2, "lws"}));
  Tiled<T> a(rt, shape, RandomGeneral{1}), again(rt, shape, RandomGeneral{1}), third(rt, shape, RandomGeneral{1}),
      factors(rt, shape, RandomGeneral{1});
  TiledPivots pivots(rt, factors.data);
  ASSERT_EQ(getrf(rt, factors.data, pivots), 0u);
  EXPECT_LE(getrf_residual(rt, a.data, factors.data, pivots), 3);
  EXPECT_GT(getrf_nopiv_residual(rt, third.data, factors.data), residual_limit);
  {
    auto tile = rt.acquire(read_write(factors.data(2, 1)));
    (*tile)(1, 1) += T(Real<T>(0.25));
  }
  EXPECT_GT(getrf_residual(rt, again.data, factors.data, pivots), residual_limit);
}

TEST(GetrfFlow, RefusesMatricesThatDoNotFit) {
  Runtime rt(test::options({1, "lws"}));
  Tiled<double> a(rt, {.rows = 10, .cols = 10, .tile = 4}, RandomGeneral{1}), wide(rt, {.rows = 4, .cols = 10, .tile = 4}),
      lower(rt, {.rows = 10, .cols = 10, .tile = 4, .uplo = Uplo::lower});
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
}  // namespace tandem::linalg
