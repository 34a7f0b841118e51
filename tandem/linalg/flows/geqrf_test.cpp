// tandem/linalg/flows/geqrf_test.cpp: factorisations and solutions of every shape, precision and schedule.
#include "tandem/linalg/flows/geqrf.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <utility>
#include <vector>

#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/flows/gels.hpp"
#include "tandem/linalg/flows/gemm.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/flows/unmqr.hpp"
#include "tandem/linalg/kernels/geqrt.hpp"

namespace tandem::linalg::geqrf_test {
namespace {

using test::Tiled;

/// A matrix that is factorised, the triangular factors, and the matrix as it was.
template <class T>
struct Factorised {
  Factorised(Runtime& rt, TileShape shape, std::size_t ib = 32)
      : before(rt, shape, RandomGeneral{shape.rows}),
        a(rt, shape, RandomGeneral{shape.rows}),
        t(rt, geqrf_factors_shape(shape, ib)) {}
  Tiled<T> before, a, t;
};

template <class T>
class GeqrfFlow : public testing::Test {};
TYPED_TEST_SUITE(GeqrfFlow, test::Scalars, test::Letters);

struct Size {
  std::size_t m, n, nb, ib = 32;
};
constexpr Size sizes[] = {{0, 0, 8},     {0, 5, 8},         {5, 0, 8},        {1, 1, 8},        {7, 7, 8},
                          {8, 8, 8},     {9, 9, 8},         {65, 65, 16, 5},  {150, 40, 16, 4}, {40, 150, 16},
                          {40, 150, 40}, {150, 40, 40, 32}, {50, 47, 16, 16}, {47, 50, 16, 3},  {1, 30, 8},
                          {30, 1, 8},    {64, 64, 64},      {90, 90, 100}};

TYPED_TEST(GeqrfFlow, FactorsEveryShapeInEverySchedule) {
  using T = TypeParam;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (const auto [m, n, nb, ib] : sizes) {
      Factorised<T> f(rt, {.rows = m, .cols = n, .tile = nb}, ib);
      geqrf(rt, f.a.data, f.t.data);
      EXPECT_LE(geqrf_residual(rt, f.before.data, f.a.data, f.t.data), residual_limit)
          << m << " x " << n << ", nb " << nb;
      EXPECT_LE(geqrf_orthogonality(rt, f.a.data, f.t.data), residual_limit) << m << " x " << n << ", nb " << nb;
    }
  }
}

TYPED_TEST(GeqrfFlow, GivesTheFactorOfTheWholeMatrix) {
  using T = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  for (auto [m, n] : {std::pair<std::size_t, std::size_t>{90, 50}, {40, 70}}) {
    Factorised<T> f(rt, {.rows = m, .cols = n, .tile = 16}, 8);
    auto whole = f.before.dense();
    std::vector<T> t(32 * n);
    kernels::geqrt<T>({whole.data(), m, n, m}, {t.data(), 32, n, 32});
    geqrf(rt, f.a.data, f.t.data);
    const auto factor = f.a.dense();
    // R is unique but for the signs of its rows, which the two choose differently.
    for (std::size_t i = 0; i < std::min(m, n); ++i) {
      const T sign =
          std::signbit(real_part(factor[i + i * m])) == std::signbit(real_part(whole[i + i * m])) ? T(1) : T(-1);
      for (std::size_t j = i; j < n; ++j)
        EXPECT_LE(std::abs(sign * factor[i + j * m] - whole[i + j * m]), 2000 * epsilon<T>) << i << ", " << j;
    }
  }
}

TYPED_TEST(GeqrfFlow, EveryScheduleGivesTheSameBits) {
  using T = TypeParam;
  std::vector<T> factor, solution;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    Factorised<T> f(rt, {.rows = 130, .cols = 100, .tile = 24}, 8);
    Tiled<T> b(rt, {.rows = 130, .cols = 30, .tile = 24}, RandomGeneral{3});
    gels(rt, Op::no_trans, f.a.data, f.t.data, b.data);
    if (factor.empty()) {
      factor = f.a.dense();
      solution = b.dense();
    }
    EXPECT_EQ(f.a.dense(), factor) << setting.workers << " workers, " << setting.sched;
    EXPECT_EQ(b.dense(), solution) << setting.workers << " workers, " << setting.sched;
  }
}

TYPED_TEST(GeqrfFlow, UnmqrIsUnitaryOnTheIdentity) {
  using T = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  for (auto [m, n] : {std::pair<std::size_t, std::size_t>{50, 20}, {33, 33}, {20, 50}}) {
    Factorised<T> f(rt, {.rows = m, .cols = n, .tile = 16}, 6);
    geqrf(rt, f.a.data, f.t.data);
    Tiled<T> q(rt, {.rows = m, .cols = m, .tile = 16}, Kms{.rho = 0}), product(rt, {.rows = m, .cols = m, .tile = 16});
    unmqr(rt, Op::no_trans, f.a.data, f.t.data, q.data);
    gemm(rt, Op::conj_trans, Op::no_trans, T(1), q.data, q.data, T(0), product.data);
    const auto dense = product.dense();
    for (std::size_t j = 0; j < m; ++j)
      for (std::size_t i = 0; i < m; ++i) EXPECT_LE(std::abs(dense[i + j * m] - T(i == j ? 1 : 0)), 100 * epsilon<T>);
  }
}

TYPED_TEST(GeqrfFlow, GelsFindsTheLeastSquares) {
  using T = TypeParam;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (auto [m, n, rhs] : {std::array<std::size_t, 3>{0, 0, 1}, {1, 1, 1}, {9, 0, 2}, {50, 50, 1}, {150, 40, 3},
                              {61, 60, 20}}) {
      Factorised<T> f(rt, {.rows = m, .cols = n, .tile = 16}, 8);
      const TileShape side{.rows = m, .cols = rhs, .tile = 16};
      Tiled<T> b(rt, side, RandomGeneral{6}), x(rt, side, RandomGeneral{6});
      gels(rt, Op::no_trans, f.a.data, f.t.data, x.data);
      EXPECT_LE(gels_residual(rt, Op::no_trans, f.before.data, x.data, b.data), residual_limit) << m << " x " << n;
    }
  }
}

TYPED_TEST(GeqrfFlow, GelsLeavesTheNormOfTheResidualBeneathTheSolution) {
  using T = TypeParam;
  const std::size_t m = 60, n = 25;
  Runtime rt(test::options({2, "lws"}));
  Factorised<T> f(rt, {.rows = m, .cols = n, .tile = 16});
  const TileShape side{.rows = m, .cols = 1, .tile = 16};
  Tiled<T> b(rt, side, RandomGeneral{6}), x(rt, side, RandomGeneral{6});
  gels(rt, Op::no_trans, f.a.data, f.t.data, x.data);
  const auto a = f.before.dense(), solved = x.dense();
  auto residual = b.dense();
  Real<T> direct = 0, from_solution = 0;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) residual[i] -= a[i + j * m] * solved[j];
    direct += std::norm(residual[i]);
    if (i >= n) from_solution += std::norm(solved[i]);
  }
  EXPECT_NEAR(std::sqrt(direct), std::sqrt(from_solution), 200 * epsilon<T>);
}

TYPED_TEST(GeqrfFlow, GelsFindsTheSolutionOfLeastNorm) {
  using T = TypeParam;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (auto [m, n, rhs] :
         {std::array<std::size_t, 3>{1, 1, 1}, {50, 50, 1}, {48, 32, 2}, {150, 40, 3}, {61, 60, 20}}) {
      Factorised<T> f(rt, {.rows = m, .cols = n, .tile = 16}, 8);
      const TileShape side{.rows = m, .cols = rhs, .tile = 16};
      Tiled<T> b(rt, side, RandomGeneral{6}), x(rt, side, RandomGeneral{6});
      gels(rt, Op::conj_trans, f.a.data, f.t.data, x.data);
      EXPECT_LE(gels_residual(rt, Op::conj_trans, f.before.data, x.data, b.data), residual_limit) << m << " x " << n;
      // It is the shortest when it lies in the space of A's columns: Q^H X ends with zeros.
      unmqr(rt, Op::conj_trans, f.a.data, f.t.data, x.data);
      const auto rotated = x.dense();
      for (std::size_t j = 0; j < rhs; ++j)
        for (std::size_t i = n; i < m; ++i) EXPECT_LE(std::abs(rotated[i + j * m]), 500 * epsilon<T>);
    }
  }
}

TYPED_TEST(GeqrfFlow, ResidualsSeeOneWrongElement) {
  using T = TypeParam;
  const std::size_t m = 40, n = 24, nb = 8;
  Runtime rt(test::options({2, "lws"}));
  const auto disturb = [&](const TiledData<T>& data, std::size_t i, std::size_t j) {
    auto tile = rt.acquire(read_write(data(i, j)));
    (*tile)(1, 2) += T(Real<T>(20000) * epsilon<T>);
  };
  Factorised<T> f(rt, {.rows = m, .cols = n, .tile = nb}, 4), again(rt, {.rows = m, .cols = n, .tile = nb}, 4);
  geqrf(rt, f.a.data, f.t.data);
  EXPECT_LE(geqrf_residual(rt, f.before.data, f.a.data, f.t.data), 3);
  disturb(f.a.data, 1, 2);
  EXPECT_GT(geqrf_residual(rt, again.before.data, f.a.data, f.t.data), residual_limit);
  EXPECT_LE(geqrf_orthogonality(rt, f.a.data, f.t.data), 3);
  disturb(f.t.data, 2, 0);
  EXPECT_GT(geqrf_orthogonality(rt, f.a.data, f.t.data), residual_limit);

  for (const Op op : {Op::no_trans, Op::conj_trans}) {
    Factorised<T> g(rt, {.rows = m, .cols = n, .tile = nb});
    const TileShape side{.rows = m, .cols = 3, .tile = nb};
    Tiled<T> b(rt, side, RandomGeneral{6}), b2(rt, side, RandomGeneral{6}), x(rt, side, RandomGeneral{6});
    gels(rt, op, g.a.data, g.t.data, x.data);
    EXPECT_LE(gels_residual(rt, op, g.before.data, x.data, b.data), 3);
    auto tile = rt.acquire(read_write(x.data(1, 0)));
    (*tile)(2, 1) += T(Real<T>(0.25));
    tile.release();
    EXPECT_GT(gels_residual(rt, op, g.before.data, x.data, b2.data), residual_limit);
  }
}

TEST(GeqrfFlow, RefusesMatricesThatDoNotFit) {
  Runtime rt(test::options({1, "lws"}));
  const TileShape tall{.rows = 10, .cols = 6, .tile = 4}, wide{.rows = 6, .cols = 10, .tile = 4};
  Tiled<double> a(rt, tall), t(rt, geqrf_factors_shape(tall)), w(rt, wide), tw(rt, geqrf_factors_shape(wide));
  Tiled<double> lower(rt, {.rows = 10, .cols = 10, .tile = 4, .uplo = Uplo::lower}),
      b(rt, {.rows = 9, .cols = 1, .tile = 4}), other_tile(rt, {.rows = 10, .cols = 1, .tile = 5}),
      right(rt, {.rows = 10, .cols = 1, .tile = 4}, RandomGeneral{1});
  EXPECT_THROW(geqrf(rt, a.data, tw.data), UsageError);
  EXPECT_THROW(geqrf(rt, a.data, a.data), UsageError);
  EXPECT_THROW(geqrf(rt, lower.data, t.data), UsageError);
  EXPECT_THROW(unmqr(rt, Op::no_trans, a.data, t.data, b.data), UsageError);
  EXPECT_THROW(unmqr(rt, Op::no_trans, a.data, t.data, other_tile.data), UsageError);
  EXPECT_THROW(gels(rt, Op::no_trans, a.data, t.data, b.data), UsageError);
  EXPECT_THROW(submit_geqrs(rt, Op::no_trans, w.data, tw.data, right.data), UsageError);
  Tiled<std::complex<double>> ca(rt, tall), ct(rt, geqrf_factors_shape(tall)), cc(rt, tall);
  EXPECT_THROW(unmqr(rt, Op::trans, ca.data, ct.data, cc.data), UsageError);
}

}  // namespace
}  // namespace tandem::linalg::geqrf_test
