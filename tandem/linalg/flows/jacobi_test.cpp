// tandem/linalg/flows/jacobi_test.cpp: Jacobi steps in blocks against a sequential sweep, bit by bit, and Laplace's
// equation.
#include "tandem/linalg/flows/jacobi.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/kernels/jacobi.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::linalg::jacobi_test {
namespace {

using test::Tiled;

/// x^2 - y^2, which solves the discrete equation too, on a grid of 19 x 15 points; or only its values at the edges.
struct Harmonic {
  bool edges_only;

  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    const bool edge = i == 0 || j == 0 || i == 18 || j == 14;
    const double x = double(i) / 18, y = double(j) / 18;
    return edge || !edges_only ? T(Real<T>(x * x - y * y)) : T(0);
  }
};

template <class R>
class JacobiFlow : public testing::Test {
 protected:
  /// The grid in one block, one step after the other.
  static std::vector<R> sweep(std::vector<R> u, std::size_t rows, std::size_t cols, std::size_t steps) {
    std::vector<R> v(u.size());
    for (std::size_t step = 0; step < steps; ++step) {
      kernels::jacobi<R>({u.data(), rows, cols, rows}, {}, {v.data(), rows, cols, rows});
      std::swap(u, v);
    }
    return u;
  }
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(JacobiFlow, Reals, test::Letters);

TYPED_TEST(JacobiFlow, BlocksGiveTheBitsOfASequentialSweep) {
  using R = TypeParam;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (const auto& [rows, cols, tile] : {std::array<std::size_t, 3>{21, 13, 4},
                                           {16, 16, 8},
                                           {5, 33, 3},
                                           {9, 9, 16},
                                           {7, 8, 1},
                                           {2, 6, 4},
                                           {1, 9, 4},
                                           {1, 1, 1}})
      for (const std::size_t steps : {0, 1, 2, 7}) {
        const TileShape shape{.rows = rows, .cols = cols, .tile = tile};
        Tiled<R> u(rt, shape, RandomGeneral{5}), work(rt, shape, RandomGeneral{6});
        const auto expected = this->sweep(u.dense(), rows, cols, steps);
        const JacobiOutcome outcome = jacobi(rt, u.data, work.data, {.steps = steps});
        EXPECT_EQ(outcome.steps, steps);
        EXPECT_FALSE(outcome.converged);
        EXPECT_FALSE(outcome.change.has_value());
        EXPECT_EQ(u.dense(), expected) << rows << " x " << cols << " in tiles of " << tile << ", " << steps << " steps";
      }
  }
}

TYPED_TEST(JacobiFlow, BlocksNeedNotBeSquare) {
  using R = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  const TileShape shape{.rows = 23, .cols = 17, .tile = 5, .tile_rows = 9};
  Tiled<R> u(rt, shape, RandomGeneral{5}), work(rt, shape);
  const auto expected = this->sweep(u.dense(), 23, 17, 9);
  jacobi(rt, u.data, work.data, {.steps = 9});
  EXPECT_EQ(u.dense(), expected);
}

TYPED_TEST(JacobiFlow, ModesDecayAsTheyShouldAndAResidualThatIsWrongIsLarge) {
  using R = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  const TileShape shape{.rows = 61, .cols = 47, .tile = 16};
  const JacobiModes modes({.rows = 61, .cols = 47}, 0);
  Tiled<R> u(rt, shape, modes), work(rt, shape);
  jacobi(rt, u.data, work.data, {.steps = 50});
  EXPECT_LT(jacobi_residual(rt, u.data, 50, work.data), R(5));
  EXPECT_GT(jacobi_residual(rt, u.data, 49, work.data), R(1000));
  (*rt.acquire(read_write(u.data(2, 1))))(3, 3) += R(0.01);
  EXPECT_GT(jacobi_residual(rt, u.data, 50, work.data), R(1000));
}

TYPED_TEST(JacobiFlow, ConvergesToTheSolutionOfLaplacesEquation) {
  using R = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  const TileShape shape{.rows = 19, .cols = 15, .tile = 6};
  const double tolerance = 20 * static_cast<double>(epsilon<R>);
  Tiled<R> u(rt, shape, Harmonic{true}), work(rt, shape), exact(rt, shape, Harmonic{false});
  const JacobiOutcome outcome =
      jacobi(rt, u.data, work.data, {.steps = 100'000, .tolerance = tolerance, .interval = 25});
  EXPECT_TRUE(outcome.converged);
  EXPECT_LT(outcome.steps, 10'000u);
  EXPECT_EQ(outcome.steps % 25, 0u);
  ASSERT_TRUE(outcome.change.has_value());
  EXPECT_LE(*outcome.change, tolerance);
  const auto found = u.dense(), wanted = exact.dense();
  for (std::size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], wanted[k], R(100) * R(tolerance));
}

TYPED_TEST(JacobiFlow, StopsSoonAfterNothingChangesAndNotBeforeItsSteps) {
  using R = TypeParam;
  Runtime rt(test::options({2, "lws"}));
  const TileShape shape{.rows = 12, .cols = 12, .tile = 5};
  Tiled<R> u(rt, shape, MinIj{}), work(rt, shape);
  const auto expected = this->sweep(u.dense(), 12, 12, 7);
  const JacobiOutcome few = jacobi(rt, u.data, work.data, {.steps = 7, .tolerance = 1e-9, .interval = 3});
  EXPECT_EQ(few.steps, 7u);
  EXPECT_FALSE(few.converged);
  EXPECT_EQ(u.dense(), expected);
  // The largest change is that of the last step.
  const auto before = this->sweep(Tiled<R>(rt, shape, MinIj{}).dense(), 12, 12, 6);
  EXPECT_EQ(*few.change,
            double(kernels::largest_difference<R>({before.data(), 12, 12, 12}, {expected.data(), 12, 12, 12})));
  // A constant does not change: the first test shows that, while the next steps go on.
  Tiled<R> flat(rt, shape, Kms{.rho = 1});
  const JacobiOutcome none = jacobi(rt, flat.data, work.data, {.steps = 1000, .tolerance = 1e-9, .interval = 3});
  EXPECT_EQ(none.steps, 6u);
  EXPECT_TRUE(none.converged);
  EXPECT_EQ(*none.change, 0);
}

TYPED_TEST(JacobiFlow, GridsWithoutPointsEnd) {
  using R = TypeParam;
  Runtime rt(test::options({1, "lws"}));
  for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{0, 0}, {0, 5}, {5, 0}}) {
    Tiled<R> u(rt, {.rows = rows, .cols = cols, .tile = 2}), work(rt, {.rows = rows, .cols = cols, .tile = 2});
    EXPECT_EQ(jacobi(rt, u.data, work.data, {.steps = 5}).steps, 0u);
    EXPECT_TRUE(jacobi(rt, u.data, work.data, {.steps = 5, .tolerance = 1}).converged);
    EXPECT_EQ(jacobi_residual(rt, u.data, 5, work.data), R(0));
  }
}

TYPED_TEST(JacobiFlow, RefusesWhatDoesNotFit) {
  using R = TypeParam;
  Runtime rt(test::options({1, "lws"}));
  const TileShape shape{.rows = 8, .cols = 8, .tile = 4};
  Tiled<R> u(rt, shape, RandomGeneral{1}), work(rt, shape), other(rt, {.rows = 8, .cols = 9, .tile = 4}),
      tiles(rt, {.rows = 8, .cols = 8, .tile = 8}), half(rt, {.rows = 8, .cols = 8, .tile = 4, .uplo = Uplo::lower}),
      elsewhere(rt, {.rows = 8, .cols = 8, .tile = 4, .distribution = Distribution::block_cyclic({})});
  EXPECT_THROW(jacobi(rt, u.data, other.data), UsageError);
  EXPECT_THROW(jacobi(rt, u.data, tiles.data), UsageError);
  EXPECT_THROW(jacobi(rt, u.data, half.data), UsageError);
  EXPECT_THROW(jacobi(rt, u.data, elsewhere.data), UsageError);
  EXPECT_THROW(jacobi(rt, u.data, work.data, {.tolerance = -1e-9}), UsageError);
  EXPECT_THROW(jacobi(rt, u.data, work.data, {.tolerance = std::numeric_limits<double>::quiet_NaN()}), UsageError);
  EXPECT_THROW(jacobi(rt, u.data, work.data, {.interval = 0}), UsageError);
}

}  // namespace
}  // namespace tandem::linalg::jacobi_test
