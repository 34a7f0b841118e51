// tandem/linalg/flows/getrf_test.cpp: LU factorisations of every shape, precision, pivoting and schedule.
#include "tandem/linalg/flows/getrf.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <random>
#include <span>
#include <vector>

#include "tandem/linalg/flows/getrf_nopiv.hpp"
#include "tandem/linalg/flows/getrf_test_support.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/kernels/getrf.hpp"

namespace tandem::linalg::test::getrf_test {
namespace {

/// A size and a tiling.
struct Case {
  std::size_t rows, cols, nb;
  TileShape shape() const { return {.rows = rows, .cols = cols, .tile = nb}; }
};
const Case cases[] = {{0, 0, 8},      {0, 5, 8},     {1, 1, 8},     {7, 7, 8},     {8, 8, 8},     {9, 9, 8},
                      {65, 65, 16},   {150, 150, 40}, {90, 90, 90},  {100, 40, 16}, {40, 100, 16}, {100, 16, 16},
                      {16, 100, 16},  {100, 5, 16},  {5, 100, 16},  {33, 32, 16}};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.rows << " x " << c.cols << " in " << c.nb;
}

/// Wilkinson's: the last column doubles at each step of partial pivoting, up to 2^(n-1) (Higham, Accuracy and Stability
/// of Numerical Algorithms, 2nd ed., section 9.4).
struct Wilkinson {
  std::size_t order = 0;
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return T(Real<T>(j + 1 == order || i == j ? 1 : i > j ? -1 : 0));
  }
};

TYPED_TEST(GetrfFlow, FactorsEveryShapeInEverySchedule) {
  using T = TypeParam;
  for (const auto& setting : settings) {
    Runtime rt(options(setting));
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
  for (const auto& setting : settings) {
    Runtime rt(options(setting));
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
  for (const auto& setting : settings) {
    Runtime rt(options(setting));
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
  Runtime rt(options({1, "lws"}));
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

TYPED_TEST(GetrfFlow, FindsTheOrderOfPermutedMatricesExactly) {
  using T = TypeParam;
  const std::size_t n = 53, nb = 8;
  Runtime rt(options({2, "lws"}));
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
  Runtime rt(options({2, "lws"}));
  const std::size_t n = 160;
  for (std::uint64_t seed : {1, 2, 3}) {
    Tiled<T> a(rt, {.rows = n, .cols = n, .tile = 16}, RandomGeneral{seed}),
        again(rt, {.rows = n, .cols = n, .tile = 16}, RandomGeneral{seed});
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
  Runtime rt(options({2, "lws"}));
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
  Runtime rt(options({2, "lws"}));
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

}  // namespace
}  // namespace tandem::linalg::test::getrf_test
