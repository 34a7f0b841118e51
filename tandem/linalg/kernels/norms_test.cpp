// tandem/linalg/kernels/norms_test.cpp: norms by example, and where overflow and NaN could spoil them.
#include "tandem/linalg/kernels/norms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tandem::linalg::norms_test {
namespace {

TEST(Norms, FollowTheirDefinitions) {
  // [ 1 -4 ]
  // [-2  5 ]
  // [ 3  6 ]
  const std::vector<double> values{1, -2, 3, -4, 5, 6};
  const MatrixView<const double> a{values.data(), 3, 2, 3};
  EXPECT_EQ(kernels::lange(Norm::max, a), 6);
  EXPECT_EQ(kernels::lange(Norm::one, a), 15);
  EXPECT_EQ(kernels::lange(Norm::inf, a), 9);
  EXPECT_NEAR(kernels::lange(Norm::frobenius, a), std::sqrt(91.0), 1e-14);
}

TEST(Norms, OfHermitianMatricesReadOneTriangle) {
  using Z = std::complex<double>;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // [ 2      3-4i ]
  // [ 3+4i  -1    ]
  const std::vector<Z> lower{{2, 0}, {3, 4}, {nan, nan}, {-1, 0}}, upper{{2, 0}, {nan, nan}, {3, -4}, {-1, 0}};
  for (auto [uplo, values] : {std::pair{Uplo::lower, &lower}, {Uplo::upper, &upper}}) {
    const MatrixView<const Z> a{values->data(), 2, 2, 2};
    EXPECT_EQ(kernels::lanhe(Norm::max, uplo, a), 5);
    EXPECT_EQ(kernels::lanhe(Norm::one, uplo, a), 7);
    EXPECT_EQ(kernels::lanhe(Norm::inf, uplo, a), 7);
    EXPECT_NEAR(kernels::lanhe(Norm::frobenius, uplo, a), std::sqrt(55.0), 1e-14);
  }
}

TEST(Norms, FrobeniusNeitherOverflowsNorUnderflows) {
  for (float size : {1e30f, 1e-30f}) {
    const std::vector<float> values{3 * size, 4 * size};
    EXPECT_FLOAT_EQ(kernels::lange(Norm::frobenius, MatrixView<const float>{values.data(), 2, 1, 2}), 5 * size);
  }
}

TEST(Norms, KeepNotANumber) {
  const std::vector<double> values{1, std::numeric_limits<double>::quiet_NaN(), 2, 3};
  const MatrixView<const double> a{values.data(), 2, 2, 2};
  for (Norm norm : {Norm::max, Norm::one, Norm::inf, Norm::frobenius}) {
    EXPECT_TRUE(std::isnan(kernels::lange(norm, a)));
    EXPECT_TRUE(std::isnan(kernels::lanhe(norm, Uplo::lower, a)));
  }
}

TEST(Norms, OfNothingAreZero) {
  for (Norm norm : {Norm::max, Norm::one, Norm::inf, Norm::frobenius})
    EXPECT_EQ(kernels::lange(norm, MatrixView<const double>{}), 0);
}

}  // namespace
}  // namespace tandem::linalg::norms_test
