// tests/dist_flow/linalg_test.cpp: linear algebra on several ranks gives the bits that one rank gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "distributed_matrix.hpp"
#include "ranks.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/linalg.hpp"
#include "tandem/linalg/scalar_test_support.hpp"

namespace tandem::dist_test::linalg_test {
namespace {

using namespace linalg;

/// What one rank has at the end: matrices in LAPACK's layout, and numbers.
template <class T>
struct Outcome {
  std::vector<T> values;
  std::vector<double> numbers;
};

template <class T>
class DistLinalg : public testing::Test {
 protected:
  using Program = std::function<void(Runtime&, const Distribution&, Outcome<T>&)>;

  /// `program` on one rank without distribution, then on several with each distribution: all ranks get the same bits.
  static void expect_same_on_all(const Program& program) {
    Outcome<T> alone;
    for (const Ending& ending : run_job({.ranks = 1}, [&](Runtime& rt) { program(rt, {}, alone); }))
      ASSERT_EQ(ending.error, "");
    // A sanitizer takes ten times as long.
    const std::vector<std::uint32_t> counts =
        base::under_sanitizer ? std::vector{2U, 6U, 16U} : std::vector{2U, 3U, 4U, 6U, 8U, 16U};
    for (const std::uint32_t ranks : counts) {
      const auto grid = Distribution::squarest(ranks);
      for (const auto& distribution :
           {Distribution::block_cyclic(grid), Distribution::block_cyclic_by_columns({grid.q, grid.p}),
            Distribution::block_cyclic({1, ranks})}) {
        std::vector<Outcome<T>> outcomes(ranks);
        const auto endings =
            run_job({.ranks = ranks}, [&](Runtime& rt) { program(rt, distribution, outcomes[rt.rank()]); });
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          ASSERT_EQ(endings[rank].error, "") << ranks << " ranks, rank " << rank;
          ASSERT_EQ(outcomes[rank].values.size(), alone.values.size());
          EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(outcomes[rank].values)),
                                         std::as_bytes(std::span(alone.values))))
              << ranks << " ranks, rank " << rank;
          EXPECT_EQ(outcomes[rank].numbers, alone.numbers) << ranks << " ranks, rank " << rank;
        }
      }
    }
  }

  using Distributed = DistributedMatrix<T>;
};

TYPED_TEST_SUITE(DistLinalg, linalg::test::Scalars, linalg::test::Letters);

TYPED_TEST(DistLinalg, Cholesky) {
  using T = TypeParam;
  using Tiled = typename DistLinalg<T>::Distributed;
  this->expect_same_on_all([](Runtime& rt, const Distribution& distribution, Outcome<T>& outcome) {
    const std::size_t n = 77;
    const RandomPositiveDefinite generator{.seed = 3, .order = n};
    for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
      const TileShape square{.rows = n, .cols = n, .tile = 12, .uplo = uplo}, tall{.rows = n, .cols = 5, .tile = 12};
      Tiled factor(rt, square, distribution, generator), a(rt, square, distribution, generator);
      Tiled x(rt, tall, distribution, RandomGeneral{4}), b(rt, tall, distribution, RandomGeneral{4});
      outcome.numbers.push_back(static_cast<double>(posv(rt, uplo, factor.data, x.data)));
      factor.keep(rt, outcome.values);
      x.keep(rt, outcome.values);
      const auto residual = posv_residual(rt, uplo, a.data, x.data, b.data);
      EXPECT_LE(residual, residual_limit);
      outcome.numbers.push_back(static_cast<double>(residual));
      EXPECT_LE(potrf_residual(rt, uplo, a.data, factor.data), residual_limit);
    }
  });
}

TYPED_TEST(DistLinalg, TheFirstBadMinorIsKnownOnEveryRank) {
  using T = TypeParam;
  using Tiled = typename DistLinalg<T>::Distributed;
  this->expect_same_on_all([](Runtime& rt, const Distribution& distribution, Outcome<T>& outcome) {
    const std::size_t n = 50, bad = 37;
    Tiled a(rt, {.rows = n, .cols = n, .tile = 8, .uplo = Uplo::lower}, distribution,
            RandomPositiveDefinite{.seed = 2, .order = n});
    if (auto tile = rt.acquire_at_owner(read_write(a.data(bad / 8, bad / 8)))) (**tile)(bad % 8, bad % 8) = T(-1);
    outcome.numbers.push_back(static_cast<double>(potrf(rt, Uplo::lower, a.data)));
    EXPECT_EQ(outcome.numbers.back(), bad + 1);
  });
}

TYPED_TEST(DistLinalg, LuWithAndWithoutPivoting) {
  using T = TypeParam;
  using Tiled = typename DistLinalg<T>::Distributed;
  this->expect_same_on_all([](Runtime& rt, const Distribution& distribution, Outcome<T>& outcome) {
    const std::size_t n = 53, nb = 9;
    const TileShape square{.rows = n, .cols = n, .tile = nb}, tall{.rows = n, .cols = 4, .tile = nb};
    Tiled a(rt, square, distribution, RandomGeneral{5}), factors(rt, square, distribution, RandomGeneral{5});
    Tiled b(rt, tall, distribution, RandomGeneral{6}), x(rt, tall, distribution, RandomGeneral{6});
    TiledPivots pivots(rt, factors.data);
    outcome.numbers.push_back(static_cast<double>(gesv(rt, factors.data, pivots, x.data)));
    factors.keep(rt, outcome.values);
    x.keep(rt, outcome.values);
    for (const std::size_t pivot : pivots.ipiv(rt)) outcome.numbers.push_back(static_cast<double>(pivot));
    EXPECT_LE(gesv_residual(rt, a.data, x.data, b.data), residual_limit);
    Tiled dominant(rt, square, distribution, RandomDominant{.seed = 7, .order = n}),
        again(rt, square, distribution, RandomDominant{.seed = 7, .order = n});
    outcome.numbers.push_back(static_cast<double>(getrf_nopiv(rt, dominant.data)));
    dominant.keep(rt, outcome.values);
    EXPECT_LE(getrf_nopiv_residual(rt, again.data, dominant.data), residual_limit);
  });
}

TYPED_TEST(DistLinalg, ProductsAndSolves) {
  using T = TypeParam;
  using Tiled = typename DistLinalg<T>::Distributed;
  this->expect_same_on_all([](Runtime& rt, const Distribution& distribution, Outcome<T>& outcome) {
    const std::size_t m = 33, n = 21, k = 27, nb = 8;
    Tiled a(rt, {.rows = m, .cols = k, .tile = nb}, distribution, RandomGeneral{1}),
        b(rt, {.rows = n, .cols = k, .tile = nb}, distribution, RandomGeneral{2}),
        c(rt, {.rows = m, .cols = n, .tile = nb}, distribution, RandomGeneral{3}),
        before(rt, {.rows = m, .cols = n, .tile = nb}, distribution, RandomGeneral{3});
    gemm(rt, Op::no_trans, Op::conj_trans, T(2), a.data, b.data, T(-1), c.data);
    c.keep(rt, outcome.values);
    const Product<T> product{.op_b = Op::conj_trans, .alpha = T(2), .a = a.data, .b = b.data, .beta = T(-1)};
    EXPECT_LE(gemm_residual(rt, product, before.data, c.data), residual_limit);
    outcome.numbers.push_back(static_cast<double>(norm_one(rt, c.data)));
    outcome.numbers.push_back(static_cast<double>(norm_max(rt, c.data)));
    Tiled s(rt, {.rows = m, .cols = m, .tile = nb, .uplo = Uplo::upper}, distribution, Kms{.rho = 0.5});
    submit_syrk(rt, Uplo::upper, Op::no_trans, T(1), a.data, T(1), s.data);
    s.keep(rt, outcome.values);
    Tiled triangle(rt, {.rows = m, .cols = m, .tile = nb, .uplo = Uplo::lower}, distribution, Kms{.rho = 0.3});
    submit_trsm(rt, Side::left, Uplo::lower, Op::trans, Diag::non_unit, T(3), triangle.data, c.data);
    c.keep(rt, outcome.values);
  });
}

TYPED_TEST(DistLinalg, LeastSquares) {
  using T = TypeParam;
  using Tiled = typename DistLinalg<T>::Distributed;
  this->expect_same_on_all([](Runtime& rt, const Distribution& distribution, Outcome<T>& outcome) {
    for (const Op op : {Op::no_trans, Op::conj_trans}) {
      const TileShape shape{.rows = 53, .cols = 29, .tile = 8}, side{.rows = 53, .cols = 5, .tile = 8};
      Tiled factor(rt, shape, distribution, RandomGeneral{1}), a(rt, shape, distribution, RandomGeneral{1});
      Tiled x(rt, side, distribution, RandomGeneral{2}), b(rt, side, distribution, RandomGeneral{2});
      Tiled t(rt, geqrf_factors_shape(shape, 4), distribution);
      gels(rt, op, factor.data, t.data, x.data);
      factor.keep(rt, outcome.values);
      x.keep(rt, outcome.values);
      for (const auto residual :
           {gels_residual(rt, op, a.data, x.data, b.data), geqrf_residual(rt, a.data, factor.data, t.data),
            geqrf_orthogonality(rt, factor.data, t.data)}) {
        EXPECT_LE(residual, residual_limit);
        outcome.numbers.push_back(static_cast<double>(residual));
      }
    }
    const TileShape wide{.rows = 29, .cols = 53, .tile = 8};
    Tiled a(rt, wide, distribution, RandomGeneral{3}), t(rt, geqrf_factors_shape(wide), distribution);
    geqrf(rt, a.data, t.data);
    a.keep(rt, outcome.values);
  });
}

TYPED_TEST(DistLinalg, CopiesBetweenDistributions) {
  using T = TypeParam;
  using Tiled = typename DistLinalg<T>::Distributed;
  this->expect_same_on_all([](Runtime& rt, const Distribution& distribution, Outcome<T>& outcome) {
    const TileShape shape{.rows = 41, .cols = 27, .tile = 7},
        square{.rows = 30, .cols = 30, .tile = 7, .uplo = Uplo::lower};
    std::vector<Distribution> others{distribution};
    if (distribution.several()) {
      others.push_back(Distribution::block_cyclic({rt.size(), 1}));
      others.push_back(Distribution::parse(std::to_string(rt.size() - 1)).value());
    }
    std::vector<T> expected(41 * 27);
    generate_tile(RandomGeneral{1}, {}, MatrixView<T>{expected.data(), 41, 27, 41});
    for (const Distribution& other : others) {
      Tiled a(rt, shape, distribution, RandomGeneral{1}), b(rt, shape, other, RandomGeneral{2});
      const std::uint64_t before = rt.flow_statistics().received_bytes;
      lacpy(rt, Uplo::general, a.data, b.data);
      std::size_t moved = 0;
      for (std::size_t j = 0; j < b.data.col_tiles(); ++j)
        for (std::size_t i = 0; i < b.data.row_tiles(); ++i)
          if (b.matrix.is_here(i, j) && !a.matrix.is_here(i, j))
            moved += b.matrix.tile_rows(i) * b.matrix.tile_cols(j) * sizeof(T);
      EXPECT_EQ(rt.flow_statistics().received_bytes - before, moved);
      Outcome<T> copied, half;
      b.keep(rt, copied.values);
      EXPECT_EQ(copied.values, expected);
      // A triangle, beside which B stays.
      Tiled triangle(rt, square, distribution, RandomGeneral{3}),
          whole(rt, {.rows = 30, .cols = 30, .tile = 7}, other, RandomGeneral{4});
      lacpy(rt, Uplo::lower, triangle.data, whole.data);
      whole.keep(rt, half.values);
      if (outcome.values.empty()) outcome = half;
      EXPECT_EQ(half.values, outcome.values);
    }
  });
}

TYPED_TEST(DistLinalg, ConjugateGradients) {
  using T = TypeParam;
  using Tiled = typename DistLinalg<T>::Distributed;
  this->expect_same_on_all([](Runtime& rt, const Distribution& distribution, Outcome<T>& outcome) {
    const std::size_t n = 45, nb = 7;
    const auto keep = [&](const CgOutcome& ended) {
      for (const double number :
           {double(ended.iterations), ended.residual, double(ended.converged), double(ended.info)})
        outcome.numbers.push_back(number);
    };
    const RandomPositiveDefinite good{.seed = 3, .order = n, .dominance = 0.5},
        bad{.seed = 3, .order = n, .dominance = 0};
    for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
      const TileShape square{.rows = n, .cols = n, .tile = nb, .uplo = uplo}, column{.rows = n, .cols = 1, .tile = nb};
      Tiled a(rt, square, distribution, good), b(rt, column, distribution, RandomGeneral{4}),
          x(rt, column, distribution, RandomGeneral{5});
      const CgOutcome ended = cg(rt, uplo, a.data, b.data, x.data, {.tolerance = 1e-4});
      EXPECT_TRUE(ended.converged);
      EXPECT_GT(ended.iterations, 3u);
      keep(ended);
      x.keep(rt, outcome.values);
      const auto residual = cg_residual(rt, uplo, a.data, x.data, b.data, ended.residual);
      EXPECT_LE(residual, residual_limit);
      outcome.numbers.push_back(double(residual));
      // Every rank hears of a matrix that is not positive definite, and of iterations that are spent.
      Tiled indefinite(rt, square, distribution, bad), y(rt, column, distribution, RandomGeneral{5});
      keep(cg(rt, uplo, indefinite.data, b.data, y.data));
      EXPECT_GT(outcome.numbers.back(), 0);
      keep(cg(rt, uplo, a.data, b.data, y.data, {.iterations = 2}));
      y.keep(rt, outcome.values);
    }
  });
}

TYPED_TEST(DistLinalg, JacobiSteps) {
  using T = TypeParam;
  using Tiled = typename DistLinalg<T>::Distributed;
  if constexpr (!is_complex<T>) {
    this->expect_same_on_all([](Runtime& rt, const Distribution& distribution, Outcome<T>& outcome) {
      // Neighbouring blocks together, and dealt out in turn.
      const Distribution together = Distribution::contiguous(Distribution::squarest(rt.size()), {.rows = 8, .cols = 6});
      for (const Distribution& places : {distribution, distribution.several() ? together : distribution}) {
        const TileShape shape{.rows = 31, .cols = 22, .tile = 4};
        Tiled u(rt, shape, places, JacobiModes({.rows = 31, .cols = 22}, 0)), work(rt, shape, places);
        jacobi(rt, u.data, work.data, {.steps = 7});
        u.keep(rt, outcome.values);
        const T residual = jacobi_residual(rt, u.data, 7, work.data);
        EXPECT_LE(residual, residual_limit);
        const JacobiOutcome ended = jacobi(rt, u.data, work.data, {.steps = 60, .tolerance = 0.02, .interval = 3});
        EXPECT_TRUE(ended.converged);
        EXPECT_LT(ended.steps, 60u);
        outcome.numbers.insert(outcome.numbers.end(), {static_cast<double>(residual), static_cast<double>(ended.steps),
                                                       ended.change.value()});
        u.keep(rt, outcome.values);
      }
    });
  }
}

}  // namespace
}  // namespace tandem::dist_test::linalg_test
