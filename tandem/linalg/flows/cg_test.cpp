// tandem/linalg/flows/cg_test.cpp: conjugate gradients against the textbook's loops and the Cholesky solution, and how
// they end.
#include "tandem/linalg/flows/cg.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/flows/posv.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/kernels/gemv.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::linalg::cg_test {
namespace {

using test::Tiled;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Zeros {
  template <Scalar T>
  T element(std::size_t, std::size_t) const noexcept {
    return T(0);
  }
};

template <class T>
class Cg : public testing::Test {
 protected:
  using R = Real<T>;

  static TileShape square(std::size_t n, std::size_t nb, Uplo uplo) {
    return {.rows = n, .cols = n, .tile = nb, .uplo = uplo};
  }
  static TileShape column(std::size_t n, std::size_t nb) { return {.rows = n, .cols = 1, .tile = nb}; }

  /// The algorithm on the whole matrix, from x = 0. Returns the iterations, and x in `x`.
  static std::size_t textbook(std::vector<T>& a, const std::vector<T>& b, double tolerance, std::vector<T>& x) {
    const std::size_t n = b.size();
    x.assign(n, T(0));
    std::vector<T> r = b, p = b, q(n);
    double rho = kernels::real_dot<T>(r, r);
    const double limit = tolerance * tolerance * rho;
    std::size_t iterations = 0;
    for (; rho > limit && iterations < n; ++iterations) {
      kernels::hemv<T>(Uplo::lower, MatrixView<T>{a.data(), n, n, n}, p, q);
      const R alpha = static_cast<R>(rho / kernels::real_dot<T>(p, q));
      for (std::size_t i = 0; i < n; ++i) x[i] += alpha * p[i], r[i] -= alpha * q[i];
      const double next = kernels::real_dot<T>(r, r);
      for (std::size_t i = 0; i < n; ++i) p[i] = r[i] + static_cast<R>(next / rho) * p[i];
      rho = next;
    }
    return iterations;
  }
};
TYPED_TEST_SUITE(Cg, test::Scalars, test::Letters);

TYPED_TEST(Cg, GoesAsTheTextbookWithTheSameBitsInEverySchedule) {
  using T = TypeParam;
  const std::size_t n = 77, nb = 12;
  const RandomPositiveDefinite generator{.seed = 3, .order = n, .dominance = 0.3};
  const double tolerance = 100 * double(epsilon<T>);
  for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
    std::vector<T> first;
    CgOutcome outcome;
    for (const auto& setting : test::settings) {
      Runtime rt(test::options(setting));
      Tiled<T> a(rt, this->square(n, nb, uplo), generator), b(rt, this->column(n, nb), RandomGeneral{4}),
          x(rt, this->column(n, nb), Zeros{}), factor(rt, this->square(n, nb, uplo), generator),
          solution(rt, this->column(n, nb), RandomGeneral{4}), whole(rt, this->square(n, n, Uplo::general), generator);
      const auto before = a.dense();
      outcome = cg(rt, uplo, a.data, b.data, x.data, {.tolerance = tolerance});
      EXPECT_TRUE(outcome.converged);
      EXPECT_EQ(outcome.info, 0u);
      EXPECT_LE(outcome.residual, tolerance);
      if (first.empty()) first = x.dense();
      EXPECT_EQ(x.dense(), first) << setting.workers << " workers, " << setting.sched;
      EXPECT_EQ(a.dense(), before);
      if (setting.workers > 1) continue;
      std::vector<T> dense = whole.dense(), expected;
      const std::size_t iterations = this->textbook(dense, b.dense(), tolerance, expected);
      EXPECT_GT(iterations, 5u);
      EXPECT_LE(outcome.iterations, iterations + 1);
      EXPECT_GE(outcome.iterations + 1, iterations);
      ASSERT_EQ(posv(rt, uplo, factor.data, solution.data), 0u);
      const auto exact = solution.dense();
      const Real<T> bound = 2000 * epsilon<T>;
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_LE(std::abs(first[i] - expected[i]), bound);
        EXPECT_LE(std::abs(first[i] - exact[i]), bound);
      }
      EXPECT_LE(cg_residual(rt, uplo, a.data, x.data, b.data, outcome.residual), 1);
    }
  }
}

TYPED_TEST(Cg, AnySizeWillDo) {
  using T = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  using Size = std::pair<std::size_t, std::size_t>;
  for (const auto& [n, nb] : {Size{0, 4}, {1, 4}, {1, 1}, {2, 1}, {5, 5}, {9, 4}, {12, 4}, {7, 50}}) {
    const RandomPositiveDefinite generator{.seed = 5, .order = n};
    Tiled<T> a(rt, this->square(n, nb, Uplo::lower), generator), b(rt, this->column(n, nb), RandomGeneral{4}),
        x(rt, this->column(n, nb), Zeros{});
    // Rounding may ask for some more than n.
    const CgOutcome outcome = cg(rt, Uplo::lower, a.data, b.data, x.data, {.iterations = 2 * n + 2});
    EXPECT_TRUE(outcome.converged) << n;
    EXPECT_EQ(outcome.info, 0u) << n;
    EXPECT_LE(cg_residual(rt, Uplo::lower, a.data, x.data, b.data, outcome.residual), residual_limit) << n;
  }
}

TYPED_TEST(Cg, StartsFromTheGuess) {
  using T = TypeParam;
  const std::size_t n = 40, nb = 9;
  const RandomPositiveDefinite generator{.seed = 3, .order = n};
  Runtime rt(test::options({2, "lws"}));
  Tiled<T> a(rt, this->square(n, nb, Uplo::upper), generator), b(rt, this->column(n, nb), RandomGeneral{4}),
      x(rt, this->column(n, nb), RandomGeneral{6});
  const CgOutcome far = cg(rt, Uplo::upper, a.data, b.data, x.data, {.tolerance = 1000 * double(epsilon<T>)});
  EXPECT_TRUE(far.converged);
  EXPECT_GT(far.iterations, 2u);
  const auto solution = x.dense();
  const CgOutcome again = cg(rt, Uplo::upper, a.data, b.data, x.data, {.tolerance = 5000 * double(epsilon<T>)});
  EXPECT_TRUE(again.converged);
  EXPECT_EQ(again.iterations, 0u);
  EXPECT_EQ(x.dense(), solution);
  // For zeros the solution is zero, and known.
  Tiled<T> none(rt, this->column(n, nb), Zeros{}), y(rt, this->column(n, nb), Zeros{});
  const CgOutcome zero = cg(rt, Uplo::upper, a.data, none.data, y.data);
  EXPECT_TRUE(zero.converged);
  EXPECT_EQ(zero.iterations, 0u);
  EXPECT_EQ(zero.residual, 0);
  EXPECT_EQ(y.dense(), std::vector<T>(n, T(0)));
}

TYPED_TEST(Cg, EndsAfterItsIterations) {
  using T = TypeParam;
  const std::size_t n = 60, nb = 16;
  const RandomPositiveDefinite generator{.seed = 3, .order = n, .dominance = 0.3};
  Runtime rt(test::options({2, "lws"}));
  double last = 1;
  for (const std::size_t iterations : {0, 1, 2, 3, 6}) {
    Tiled<T> a(rt, this->square(n, nb, Uplo::lower), generator), b(rt, this->column(n, nb), RandomGeneral{4}),
        x(rt, this->column(n, nb), Zeros{});
    const CgOutcome outcome = cg(rt, Uplo::lower, a.data, b.data, x.data, {.iterations = iterations, .tolerance = 0});
    EXPECT_EQ(outcome.iterations, iterations);
    EXPECT_FALSE(outcome.converged);
    EXPECT_EQ(outcome.info, 0u);
    if (iterations == 0) EXPECT_EQ(outcome.residual, 1);
    else EXPECT_LT(outcome.residual, last);
    last = outcome.residual;
    EXPECT_LE(cg_residual(rt, Uplo::lower, a.data, x.data, b.data, outcome.residual), 1);
  }
}

TYPED_TEST(Cg, AMatrixThatIsNotPositiveDefiniteEndsItWithTheIterationAndTheLastGoodX) {
  using T = TypeParam;
  const std::size_t n = 50, nb = 8;
  Runtime rt(test::options({2, "lws"}));
  // The diagonal is too small: there are eigenvalues of both signs.
  const RandomPositiveDefinite indefinite{.seed = 2, .order = n, .dominance = 0.05};
  Tiled<T> a(rt, this->square(n, nb, Uplo::lower), indefinite), b(rt, this->column(n, nb), RandomGeneral{4}),
      x(rt, this->column(n, nb), Zeros{}), before(rt, this->column(n, nb), Zeros{});
  const CgOutcome outcome = cg(rt, Uplo::lower, a.data, b.data, x.data);
  EXPECT_FALSE(outcome.converged);
  ASSERT_GT(outcome.info, 0u);
  EXPECT_LT(outcome.info, n);
  EXPECT_EQ(outcome.iterations + 1, outcome.info);
  cg(rt, Uplo::lower, a.data, b.data, before.data, {.iterations = outcome.info - 1, .tolerance = 0});
  EXPECT_EQ(x.dense(), before.dense());
  // The method finds at once that -A is not positive definite.
  const RandomPositiveDefinite below{.seed = 2, .order = n, .dominance = -1};
  Tiled<T> negative(rt, this->square(n, nb, Uplo::lower), below), y(rt, this->column(n, nb), Zeros{});
  EXPECT_EQ(cg(rt, Uplo::lower, negative.data, b.data, y.data).info, 1u);
  EXPECT_EQ(y.dense(), std::vector<T>(n, T(0)));
}

TYPED_TEST(Cg, WhatIsNotANumberEndsToo) {
  using T = TypeParam;
  const std::size_t n = 20, nb = 8;
  Runtime rt(test::options({2, "lws"}));
  for (const bool in_matrix : {false, true}) {
    Tiled<T> a(rt, this->square(n, nb, Uplo::lower), RandomPositiveDefinite{.seed = 2, .order = n}),
        b(rt, this->column(n, nb), RandomGeneral{4}), x(rt, this->column(n, nb), Zeros{});
    (*rt.acquire(read_write(in_matrix ? a.data(2, 1) : b.data(1, 0))))(0, 0) = T(Real<T>(not_a_number));
    const CgOutcome outcome = cg(rt, Uplo::lower, a.data, b.data, x.data);
    EXPECT_FALSE(outcome.converged);
    EXPECT_EQ(outcome.info, 1u);
  }
}

TYPED_TEST(Cg, TheResidualOfAWrongSolutionIsLarge) {
  using T = TypeParam;
  const std::size_t n = 30, nb = 8;
  Runtime rt(test::options({2, "lws"}));
  const RandomPositiveDefinite generator{.seed = 3, .order = n};
  Tiled<T> a(rt, this->square(n, nb, Uplo::lower), generator), b(rt, this->column(n, nb), RandomGeneral{4}),
      x(rt, this->column(n, nb), Zeros{});
  const CgOutcome outcome = cg(rt, Uplo::lower, a.data, b.data, x.data);
  (*rt.acquire(read_write(x.data(2, 0))))(3, 0) *= Real<T>(1.1);
  EXPECT_GT(cg_residual(rt, Uplo::lower, a.data, x.data, b.data, outcome.residual), residual_limit);
}

TYPED_TEST(Cg, RefusesWhatDoesNotFit) {
  using T = TypeParam;
  Runtime rt(test::options({1, "lws"}));
  Tiled<T> lower(rt, this->square(8, 4, Uplo::lower)), wide(rt, {.rows = 8, .cols = 9, .tile = 4}),
      b(rt, this->column(8, 4), RandomGeneral{1}), x(rt, this->column(8, 4), Zeros{}),
      two(rt, {.rows = 8, .cols = 2, .tile = 4}), tiles(rt, this->column(8, 8)), shorter(rt, this->column(7, 4));
  EXPECT_THROW(cg(rt, Uplo::upper, lower.data, b.data, x.data), UsageError);
  EXPECT_THROW(cg(rt, Uplo::lower, wide.data, b.data, x.data), UsageError);
  EXPECT_THROW(cg(rt, Uplo::lower, lower.data, two.data, x.data), UsageError);
  EXPECT_THROW(cg(rt, Uplo::lower, lower.data, b.data, two.data), UsageError);
  EXPECT_THROW(cg(rt, Uplo::lower, lower.data, tiles.data, x.data), UsageError);
  EXPECT_THROW(cg(rt, Uplo::lower, lower.data, b.data, shorter.data), UsageError);
  EXPECT_THROW(cg(rt, Uplo::lower, lower.data, b.data, x.data, {.tolerance = -1}), UsageError);
  EXPECT_THROW(cg(rt, Uplo::lower, lower.data, b.data, x.data, {.tolerance = not_a_number}), UsageError);
}

}  // namespace
}  // namespace tandem::linalg::cg_test
