// tandem/linalg/kernels/lu_kernels_test.cpp: the tile kernels of LU factorisations against their definitions, in all
// precisions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "tandem/base/blas_threads.hpp"
#include "tandem/linalg/generators.hpp"
#include "tandem/linalg/kernels/getrf.hpp"
#include "tandem/linalg/kernels/getrf_nopiv.hpp"
#include "tandem/linalg/kernels/kernel_test_support.hpp"
#include "tandem/linalg/kernels/lacpy.hpp"
#include "tandem/linalg/kernels/laswp.hpp"
#include "tandem/linalg/kernels/tournament.hpp"

namespace tandem::linalg::lu_kernels_test {
namespace {

using test::Padded;

/// max |a_ij - (L U)_ij|
template <class T>
Real<T> distance(MatrixView<T> a, MatrixView<T> lu) {
  Real<T> worst = 0;
  for (std::size_t j = 0; j < a.cols; ++j)
    for (std::size_t i = 0; i < a.rows; ++i) {
      T sum = i <= j ? lu(i, j) : T(0);
      for (std::size_t k = 0; k < std::min({i, j + 1, a.cols, a.rows}); ++k) sum += lu(i, k) * lu(k, j);
      const Real<T> difference = std::abs(sum - a(i, j));
      worst = worst > difference || std::isnan(worst) ? worst : difference;
    }
  return worst;
}

template <class T>
class LuKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() { base::restrict_blas_threads(); }
  static Real<T> tolerance(std::size_t n) { return Real<T>(n + 1) * 8 * epsilon<T>; }
};

TYPED_TEST_SUITE(LuKernels, test::Scalars, test::Letters);

/// Squares around the leaves (8 and 32), tall and wide ones.
const std::pair<std::size_t, std::size_t> shapes[] = {
    {0, 0},   {0, 3},     {3, 0}, {1, 1}, {2, 2},    {7, 7},    {8, 8},   {9, 9},   {32, 32}, {33, 33},
    {64, 64}, {150, 150}, {1, 5}, {5, 1}, {100, 40}, {40, 100}, {33, 32}, {32, 33}, {90, 8},  {8, 90}};

TYPED_TEST(LuKernels, GetrfNopivFactorsEveryShape) {
  using T = TypeParam;
  for (auto [m, n] : shapes) {
    const RandomDominant generator{.seed = 3, .order = std::max(m, n)};
    Padded<T> a(m, n, generator), lu(m, n, generator);
    ASSERT_EQ(kernels::getrf_nopiv(lu.view()), 0u);
    EXPECT_LE(distance(a.view(), lu.view()), this->tolerance(std::max(m, n)) * Real<T>(std::max(m, n)))
        << m << " x " << n;
    EXPECT_TRUE(lu.guards_intact());
  }
}

TYPED_TEST(LuKernels, GetrfNopivReturnsTheFirstZeroPivot) {
  using T = TypeParam;
  const std::size_t n = 100;
  for (std::size_t bad : {std::size_t(0), std::size_t(31), std::size_t(32), std::size_t(70), n - 1}) {
    for (auto [rows, cols] : {std::pair{n, n}, std::pair{n + 20, n}, std::pair{n, n + 20}}) {
      // MinIj is eliminated without rounding, and all its pivots are 1.
      Padded<T> a(rows, cols, MinIj{});
      a.view()(bad, bad) -= T(1);
      EXPECT_EQ(kernels::getrf_nopiv(a.view()), bad + 1);
    }
  }
}

TYPED_TEST(LuKernels, GetrfFactorsEveryShapeWithSmallMultipliers) {
  using T = TypeParam;
  for (auto [m, n] : shapes) {
    Padded<T> a(m, n, RandomGeneral{4}), lu(m, n, RandomGeneral{4});
    std::vector<std::size_t> interchanges(std::min(m, n));
    ASSERT_EQ(kernels::getrf(lu.view(), std::span(interchanges)), 0u);
    for (std::size_t t = 0; t < interchanges.size(); ++t) EXPECT_TRUE(interchanges[t] >= t && interchanges[t] < m);
    kernels::laswp<T>(interchanges, a.view());
    EXPECT_LE(distance(a.view(), lu.view()), this->tolerance(std::max(m, n)) * 8) << m << " x " << n;
    // By modulus: LAPACK's comparison lets complex multipliers exceed 1 a little.
    for (std::size_t j = 0; j < interchanges.size(); ++j)
      for (std::size_t i = j + 1; i < m; ++i) ASSERT_LE(std::abs(lu.view()(i, j)), Real<T>(1.5));
    EXPECT_TRUE(lu.guards_intact());
  }
}

TYPED_TEST(LuKernels, GetrfGoesOnAfterAZeroColumn) {
  using T = TypeParam;
  for (std::size_t n : {5, 40, 70}) {
    for (std::size_t zero : {std::size_t(0), n / 2, n - 1}) {
      Padded<T> a(n, n, RandomGeneral{5}), lu(n, n, RandomGeneral{5});
      for (std::size_t i = 0; i < n; ++i) a.view()(i, zero) = lu.view()(i, zero) = T(0);
      std::vector<std::size_t> interchanges(n);
      EXPECT_EQ(kernels::getrf(lu.view(), std::span(interchanges)), zero + 1);
      kernels::laswp<T>(interchanges, a.view());
      EXPECT_LE(distance(a.view(), lu.view()), this->tolerance(n) * 8);
    }
  }
}

TYPED_TEST(LuKernels, GetrfStaysInsideAMatrixOfNaNs) {
  using T = TypeParam;
  const std::size_t n = 20;
  Padded<T> a(n, n, RandomGeneral{6});
  for (std::size_t i = 0; i < n; ++i) a.view()(i, i) = T(std::numeric_limits<Real<T>>::quiet_NaN());
  std::vector<std::size_t> interchanges(n);
  kernels::getrf(a.view(), std::span(interchanges));
  for (std::size_t t = 0; t < n; ++t) EXPECT_TRUE(interchanges[t] >= t && interchanges[t] < n);
}

TYPED_TEST(LuKernels, TinyPivotsDoNotOverflow) {
  using T = TypeParam;
  const Real<T> tiny = std::numeric_limits<Real<T>>::denorm_min() * 8;
  for (bool pivoting : {false, true}) {
    Padded<T> a(2, 2, MinIj{});
    a.view()(0, 0) = a.view()(1, 0) = T(tiny);
    std::vector<std::size_t> interchanges(2);
    EXPECT_EQ(pivoting ? kernels::getrf(a.view(), std::span(interchanges)) : kernels::getrf_nopiv(a.view()), 0u);
    EXPECT_EQ(a.view()(1, 0), T(1));
  }
}

TYPED_TEST(LuKernels, ExchangesOfRowsTouchWhatTheyName) {
  using T = TypeParam;
  const std::size_t n = 6;
  Padded<T> a(4, n, RandomGeneral{1}), b(5, n, RandomGeneral{2}), old_a(4, n, RandomGeneral{1}),
      old_b(5, n, RandomGeneral{2});
  // B's rows are 10 to 14 of the panel.
  const std::vector<std::size_t> partners{0, 12, 9, 14};
  kernels::exchange_rows<T>(partners, 10, a.view(), b.view());
  for (std::size_t j = 0; j < n; ++j) {
    EXPECT_EQ(a.view()(0, j), old_a.view()(0, j));
    EXPECT_EQ(a.view()(1, j), old_b.view()(2, j));
    EXPECT_EQ(a.view()(2, j), old_a.view()(2, j));
    EXPECT_EQ(a.view()(3, j), old_b.view()(4, j));
    EXPECT_EQ(b.view()(0, j), old_b.view()(0, j));
    EXPECT_EQ(b.view()(2, j), old_a.view()(1, j));
    EXPECT_EQ(b.view()(4, j), old_a.view()(3, j));
  }
  EXPECT_TRUE(a.guards_intact() && b.guards_intact());
}

TYPED_TEST(LuKernels, MoreExchangesThanOneBatch) {
  using T = TypeParam;
  const std::size_t n = 300;
  Padded<T> a(n, 3, RandomGeneral{1}), b(n, 3, RandomGeneral{2}), old_a(n, 3, RandomGeneral{1}),
      old_b(n, 3, RandomGeneral{2});
  std::vector<std::size_t> partners(n);
  for (std::size_t t = 0; t < n; ++t) partners[t] = n + (n - 1 - t);
  kernels::exchange_rows<T>(partners, n, a.view(), b.view());
  for (std::size_t j = 0; j < 3; ++j)
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(a.view()(i, j), old_b.view()(n - 1 - i, j));
      ASSERT_EQ(b.view()(i, j), old_a.view()(n - 1 - i, j));
    }
}

/// Plays a panel of three tiles: the winners of the first two against those of the third.
template <class T>
struct Panel {
  Panel(std::size_t rows, std::size_t cols, std::uint64_t seed)
      : nb(rows), all(3 * rows, cols, RandomGeneral{seed}), values(2 * rows * cols), numbers(3 * rows) {}

  std::vector<std::size_t> winners() {
    const std::size_t w = all.view().cols, count = std::min(nb, w);
    const kernels::MatchSpace<T> space{{values.data(), 2 * nb, w, 2 * nb}, std::span(numbers).first(2 * nb),
                                       std::span(numbers).last(nb)};
    std::vector<T> first_values(count * w), second_values(count * w);
    std::vector<std::size_t> first_rows(count), second_rows(count);
    const MatrixView<T> first{first_values.data(), count, w, count}, second{second_values.data(), count, w, count};
    kernels::play_first_match<T>({tile(0), 0}, {tile(1), nb}, {first, first_rows}, space);
    kernels::play_first_match<T>({tile(2), 2 * nb}, {}, {second, second_rows}, space);
    kernels::play_match<T>({first, first_rows}, {second, second_rows}, space);
    for (std::size_t t = 0; t < count; ++t)
      for (std::size_t j = 0; j < w; ++j)
        EXPECT_EQ(first(t, j), all.view()(first_rows[t], j)) << "values of another row";
    return first_rows;
  }

  MatrixView<const T> tile(std::size_t i) { return all.view().block(i * nb, 0, nb, all.view().cols); }

  std::size_t nb;
  Padded<T> all;
  std::vector<T> values;
  std::vector<std::size_t> numbers;
};

TYPED_TEST(LuKernels, TournamentWinnersAreRowsThatEliminateWithoutFurtherPivoting) {
  using T = TypeParam;
  for (auto [nb, w] : {std::pair<std::size_t, std::size_t>{16, 16}, {16, 5}, {40, 40}, {1, 1}}) {
    Panel<T> panel(nb, w, 7);
    const auto rows = panel.winners();
    EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), rows.size());
    Padded<T> top(rows.size(), w, RandomGeneral{0});
    for (std::size_t t = 0; t < rows.size(); ++t)
      for (std::size_t j = 0; j < w; ++j) top.view()(t, j) = panel.all.view()(rows[t], j);
    ASSERT_EQ(kernels::getrf_nopiv(top.view()), 0u);
    for (std::size_t j = 0; j < w; ++j)
      for (std::size_t i = j + 1; i < rows.size(); ++i) EXPECT_LE(std::abs(top.view()(i, j)), Real<T>(1.5));
  }
}

TYPED_TEST(LuKernels, TournamentOfOneColumnFindsItsLargestElement) {
  using T = TypeParam;
  Panel<T> panel(20, 1, 8);
  for (std::size_t where : {0, 13, 39, 40, 59}) {
    panel.all.view()(where, 0) = T(10);
    EXPECT_EQ(panel.winners()[0], where);
    panel.all.view()(where, 0) = T(Real<T>(0.5));
  }
}

}  // namespace
}  // namespace tandem::linalg::lu_kernels_test
