// tandem/linalg/flows/getrf_singular_test.cpp: LU factorisations of singular matrices, of NaNs, and replayed with other
// values.
#include "tandem/linalg/flows/getrf.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "tandem/linalg/flows/getrf_nopiv.hpp"
#include "tandem/linalg/flows/getrf_test_support.hpp"
#include "tandem/linalg/flows/residuals.hpp"

namespace tandem::linalg::test::getrf_singular_test {
namespace {

/// A matrix of equal elements.
struct Constant {
  double value = 0;
  template <Scalar T>
  T element(std::size_t, std::size_t) const noexcept {
    return T(static_cast<Real<T>>(value));
  }
};

TYPED_TEST(GetrfFlow, ReturnsTheFirstZeroPivot) {
  using T = TypeParam;
  const std::size_t n = 100, nb = 16;
  for (const auto& setting : settings) {
    Runtime rt(options(setting));
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
  for (const auto& setting : settings) {
    Runtime rt(options(setting));
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
  Runtime rt(options({3, "random"}));
  Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb}, RandomGeneral{1});
  {
    auto tile = rt.acquire(read_write(a.data(3, 1)));
    (*tile)(1, 1) = T(std::numeric_limits<Real<T>>::quiet_NaN());
  }
  TiledPivots pivots(rt, a.data);
  EXPECT_EQ(getrf(rt, a.data, pivots), 0u);
  for (const std::size_t row : pivots.ipiv(rt)) EXPECT_TRUE(row >= 1 && row <= n);
}

TYPED_TEST(GetrfFlow, SubmitsTheSameTasksWhateverTheValues) {
  using T = TypeParam;
  Runtime rt(options({2, "lws"}));
  const TileShape square{.rows = 60, .cols = 60, .tile = 16};
  Tiled<T> factors(rt, square, RandomDominant{.seed = 1, .order = 60});
  TiledPivots pivots(rt, factors.data);
  Info info;
  // The flow, recorded with one matrix, factorises others, which need other pivots.
  Graph graph = rt.record([&] { submit_getrf(rt, factors.data, pivots, info); });
  for (std::uint64_t seed : {1, 2, 3}) {
    Tiled<T> a(rt, square, RandomGeneral{seed});
    generate(rt, RandomGeneral{seed}, factors.data);
    rt.wait(rt.replay(graph));
    EXPECT_LE(getrf_residual(rt, a.data, factors.data, pivots), residual_limit);
  }
}

}  // namespace
}  // namespace tandem::linalg::test::getrf_singular_test
