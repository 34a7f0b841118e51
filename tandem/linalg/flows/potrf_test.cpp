// tandem/linalg/flows/potrf_test.cpp: factorisations and solutions of every size, triangle, precision and schedule.
#include "tandem/linalg/flows/potrf.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/flows/posv.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/kernels/potrf.hpp"

namespace tandem::linalg::potrf_test {
namespace {

using test::Tiled;

template <class T>
class PotrfFlow : public testing::Test {};
TYPED_TEST_SUITE(PotrfFlow, test::Scalars, test::Letters);

TYPED_TEST(PotrfFlow, FactorsEverySizeInEverySchedule) {
  using T = TypeParam;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (Uplo uplo : {Uplo::lower, Uplo::upper}) {
      for (auto [n, nb] :
           {std::pair<std::size_t, std::size_t>{0, 8}, {1, 8}, {7, 8}, {8, 8}, {65, 16}, {150, 40}, {90, 90}}) {
        const RandomPositiveDefinite generator{.seed = n, .order = n};
        const TileShape shape{.rows = n, .cols = n, .tile = nb, .uplo = uplo};
        Tiled<T> a(rt, shape, generator), factor(rt, shape, generator);
        ASSERT_EQ(potrf(rt, uplo, factor.data), 0u);
        EXPECT_LE(potrf_residual(rt, uplo, a.data, factor.data), residual_limit)
            << "n=" << n << " nb=" << nb << " " << char(uplo);
      }
    }
  }
}

TYPED_TEST(PotrfFlow, EveryScheduleGivesTheSameBits) {
  using T = TypeParam;
  std::vector<T> first;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    Tiled<T> a(rt, {.rows = 130, .cols = 130, .tile = 24, .uplo = Uplo::lower},
               RandomPositiveDefinite{.seed = 1, .order = 130});
    ASSERT_EQ(potrf(rt, Uplo::lower, a.data), 0u);
    if (first.empty()) first = a.dense();
    EXPECT_EQ(a.dense(), first) << setting.workers << " workers, " << setting.sched;
  }
}

TYPED_TEST(PotrfFlow, ReturnsTheOrderOfTheFirstBadMinor) {
  using T = TypeParam;
  const std::size_t n = 100, nb = 16;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (std::size_t bad : {std::size_t(0), std::size_t(15), std::size_t(16), std::size_t(55), n - 1}) {
      for (Uplo uplo : {Uplo::lower, Uplo::upper}) {
        Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo}, RandomPositiveDefinite{.seed = 2, .order = n});
        {
          auto tile = rt.acquire(read_write(a.data(bad / nb, bad / nb)));
          (*tile)(bad % nb, bad % nb) = T(-1);
        }
        EXPECT_EQ(potrf(rt, uplo, a.data), bad + 1);
      }
    }
  }
}

TYPED_TEST(PotrfFlow, LeavesTheSolutionAloneAfterAFailure) {
  using T = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  const std::size_t n = 40, nb = 8;
  // The first tile fails, so that no right-hand side is touched.
  Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb}, RandomPositiveDefinite{.seed = 2, .order = n, .dominance = -1});
  Tiled<T> b(rt, {.rows = n, .cols = 3, .tile = nb}, RandomGeneral{3});
  const auto before = b.dense();
  EXPECT_EQ(posv(rt, Uplo::lower, a.data, b.data), 1u);
  EXPECT_EQ(b.dense(), before);
}

TYPED_TEST(PotrfFlow, PosvSolvesTheSystem) {
  using T = TypeParam;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (Uplo uplo : {Uplo::lower, Uplo::upper}) {
      for (auto [n, rhs] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 1}, {50, 0}, {50, 1}, {61, 30}}) {
        const RandomPositiveDefinite generator{.seed = 5, .order = n};
        const TileShape square{.rows = n, .cols = n, .tile = 16, .uplo = uplo},
            tall{.rows = n, .cols = rhs, .tile = 16};
        Tiled<T> a(rt, square, generator), factor(rt, square, generator);
        Tiled<T> b(rt, tall, RandomGeneral{6}), x(rt, tall, RandomGeneral{6});
        ASSERT_EQ(posv(rt, uplo, factor.data, x.data), 0u);
        EXPECT_LE(posv_residual(rt, uplo, a.data, x.data, b.data), residual_limit) << "n=" << n << " rhs=" << rhs;
      }
    }
  }
}

TEST(PotrfFlow, MeetsTheKnownFactorExactly) {
  Runtime rt(test::options({2, "lws"}));
  Tiled<double> a(rt, {.rows = 75, .cols = 75, .tile = 20, .uplo = Uplo::lower}, MinIj{});
  ASSERT_EQ(potrf(rt, Uplo::lower, a.data), 0u);
  const auto factor = a.dense();
  for (std::size_t j = 0; j < 75; ++j)
    for (std::size_t i = j; i < 75; ++i) EXPECT_EQ(factor[i + j * 75], 1.0);
}

TEST(PotrfFlow, IllConditionedSystemsHaveSmallBackwardErrors) {
  Runtime rt(test::options({2, "lws"}));
  // The condition of this matrix is near 1.6e7.
  const Kms generator{.rho = 0.9995};
  const TileShape shape{.rows = 300, .cols = 300, .tile = 64, .uplo = Uplo::lower};
  Tiled<double> a(rt, shape, generator), factor(rt, shape, generator);
  Tiled<double> b(rt, {.rows = 300, .cols = 2, .tile = 64}, RandomGeneral{1}),
      x(rt, {.rows = 300, .cols = 2, .tile = 64}, RandomGeneral{1});
  ASSERT_EQ(posv(rt, Uplo::lower, factor.data, x.data), 0u);
  EXPECT_LE(posv_residual(rt, Uplo::lower, a.data, x.data, b.data), residual_limit);
  EXPECT_LE(potrf_residual(rt, Uplo::lower, a.data, factor.data), residual_limit);
}

TEST(PotrfFlow, ASystemWhosePartsDoNotFitIsRefusedBeforeAnythingIsFactorised) {
  Runtime rt(test::options({2, "lws"}));
  Tiled<double> a(rt, {.rows = 40, .cols = 40, .tile = 8, .uplo = Uplo::lower}, MinIj{});
  const auto before = a.dense();
  for (const TileShape& shape :
       {TileShape{.rows = 39, .cols = 2, .tile = 8}, TileShape{.rows = 40, .cols = 2, .tile = 10},
        TileShape{.rows = 40, .cols = 40, .tile = 8, .uplo = Uplo::lower}}) {
    Tiled<double> b(rt, shape, RandomGeneral{1});
    EXPECT_THROW(posv(rt, Uplo::lower, a.data, b.data), UsageError);
  }
  rt.wait();
  EXPECT_EQ(a.dense(), before);
}

TEST(PotrfFlow, RefusesMatricesThatDoNotFit) {
  Runtime rt(test::options({1, "lws"}));
  Tiled<double> lower(rt, {.rows = 10, .cols = 10, .tile = 4, .uplo = Uplo::lower}),
      wide(rt, {.rows = 4, .cols = 10, .tile = 4});
  Tiled<double> b(rt, {.rows = 9, .cols = 1, .tile = 4}), other_tile(rt, {.rows = 10, .cols = 1, .tile = 5});
  EXPECT_THROW(potrf(rt, Uplo::upper, lower.data), UsageError);
  EXPECT_THROW(potrf(rt, Uplo::lower, wide.data), UsageError);
  EXPECT_THROW(potrs(rt, Uplo::lower, lower.data, b.data), UsageError);
  EXPECT_THROW(potrs(rt, Uplo::lower, lower.data, other_tile.data), UsageError);
}

}  // namespace
}  // namespace tandem::linalg::potrf_test
