// tandem/linalg/generators_test.cpp: elements depend on position and seed only.
#include "tandem/linalg/generators.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <vector>

namespace tandem::linalg::generators_test {
namespace {

TEST(Generators, GiveTheSameMatrixInAnyTiling) {
  const std::size_t n = 23;
  std::vector<double> whole(n * n), tiled(n * n);
  const MatrixView<double> a{whole.data(), n, n, n}, b{tiled.data(), n, n, n};
  generate_tile(RandomGeneral{.seed = 42}, {}, a);
  for (std::size_t col = 0; col < n; col += 5)
    for (std::size_t row = 0; row < n; row += 5)
      generate_tile(RandomGeneral{.seed = 42}, {row, col},
                    b.block(row, col, std::min(n - row, 5ul), std::min(n - col, 5ul)));
  EXPECT_EQ(whole, tiled);
}

TEST(Generators, SeedsGiveDifferentMatrices) {
  EXPECT_NE(RandomGeneral{1}.element<double>(3, 4), RandomGeneral{2}.element<double>(3, 4));
  EXPECT_NE(RandomGeneral{1}.element<double>(3, 4), RandomGeneral{1}.element<double>(4, 3));
}

TEST(Generators, RandomElementsFillTheirIntervalEvenly) {
  double sum = 0, squares = 0, least = 1, most = -1;
  const std::size_t n = 300;
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i < n; ++i) {
      const double x = RandomGeneral{7}.element<double>(i, j);
      sum += x;
      squares += x * x;
      least = std::min(least, x);
      most = std::max(most, x);
    }
  const double count = double(n * n);
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.01);
  EXPECT_GE(least, -1);
  EXPECT_LT(most, 1);
}

TEST(Generators, FloatIsDoubleRounded) {
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_NEAR(RandomGeneral{3}.element<float>(i, 2), RandomGeneral{3}.element<double>(i, 2), 1.2e-7);
}

TEST(Generators, PositiveDefiniteMatricesAreHermitianAndDominant) {
  using Z = std::complex<double>;
  const RandomPositiveDefinite generator{.seed = 9, .order = 50, .dominance = 1};
  for (std::size_t i = 0; i < 50; ++i) {
    double others = 0;
    for (std::size_t j = 0; j < 50; ++j) {
      EXPECT_EQ(generator.element<Z>(i, j), std::conj(generator.element<Z>(j, i)));
      if (i != j) others += std::abs(generator.element<Z>(i, j));
    }
    EXPECT_GT(generator.element<Z>(i, i).real(), others);
  }
}

TEST(Generators, DominantMatricesNeedNoPivoting) {
  using Complex = std::complex<double>;
  const std::size_t n = 40;
  const RandomDominant generator{.seed = 5, .order = n};
  EXPECT_NE(generator.element<Complex>(1, 2), std::conj(generator.element<Complex>(2, 1)));
  for (std::size_t j = 0; j < n; ++j) {
    double beside = 0;
    for (std::size_t i = 0; i < n; ++i) beside += i == j ? 0 : std::abs(generator.element<Complex>(i, j));
    EXPECT_GT(std::abs(generator.element<Complex>(j, j)), beside);
  }
}

TEST(Generators, NamedMatricesFollowTheirFormulas) {
  EXPECT_EQ(Hilbert{}.element<double>(2, 3), 1.0 / 6);
  EXPECT_EQ(MinIj{}.element<float>(4, 2), 3.0f);
  EXPECT_EQ(Kms{0.5}.element<double>(1, 4), 0.125);
}

}  // namespace
}  // namespace tandem::linalg::generators_test
