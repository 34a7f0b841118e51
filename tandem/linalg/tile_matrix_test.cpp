// tandem/linalg/tile_matrix_test.cpp: the layout of tiles, and what goes in comes out.
#include "tandem/linalg/tile_matrix.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <vector>

#include "tandem/linalg/generators.hpp"

namespace tandem::linalg::tile_matrix_test {
namespace {

TEST(TileMatrix, LastTilesAreSmaller) {
  TileMatrix<double> a({.rows = 10, .cols = 7, .tile = 4});
  EXPECT_EQ(a.row_tiles(), 3u);
  EXPECT_EQ(a.col_tiles(), 2u);
  EXPECT_EQ(a.tile(2, 1).rows, 2u);
  EXPECT_EQ(a.tile(2, 1).cols, 3u);
  EXPECT_EQ(a.tile(2, 1).ld, 2u);
}

TEST(TileMatrix, TilesNeedNotBeSquare) {
  TileMatrix<double> t({.rows = 6, .cols = 7, .tile = 4, .tile_rows = 2});
  EXPECT_FALSE(t.has_square_tiles());
  EXPECT_EQ(t.row_tiles(), 3u);
  EXPECT_EQ(t.col_tiles(), 2u);
  EXPECT_EQ(t.tile(2, 1).rows, 2u);
  EXPECT_EQ(t.tile(2, 1).cols, 3u);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 2; ++j) generate_tile(MinIj{}, {i * 2, j * 4}, t.tile(i, j));
  std::vector<double> dense(6 * 7);
  t.to_lapack({dense.data(), 6, 7, 6});
  for (std::size_t j = 0; j < 7; ++j)
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(dense[i + j * 6], MinIj{}.element<double>(i, j));
}

TEST(TileMatrix, MayBeEmptyOrOneElement) {
  TileMatrix<float> none({.rows = 0, .cols = 0});
  EXPECT_EQ(none.row_tiles(), 0u);
  EXPECT_EQ(none.bytes(), 0u);
  TileMatrix<float> wide({.rows = 0, .cols = 5});
  EXPECT_EQ(wide.col_tiles(), 1u);
  EXPECT_FALSE(wide.stores(0, 0));
  TileMatrix<float> one({.rows = 1, .cols = 1});
  one.tile(0, 0)(0, 0) = 3;
  EXPECT_EQ(one.tile(0, 0).rows, 1u);
}

TEST(TileMatrix, TilesAreAlignedAndDoNotOverlap) {
  TileMatrix<double> a({.rows = 33, .cols = 33, .tile = 5});
  std::uintptr_t previous_end = 0;
  for (std::size_t j = 0; j < a.col_tiles(); ++j)
    for (std::size_t i = 0; i < a.row_tiles(); ++i) {
      const auto tile = a.tile(i, j);
      const auto address = reinterpret_cast<std::uintptr_t>(tile.data);
      EXPECT_EQ(address % 64, 0u);
      EXPECT_GE(address, previous_end);
      previous_end = address + tile.rows * tile.cols * sizeof(double);
    }
}

TEST(TileMatrix, ATriangleStoresAboutHalf) {
  TileMatrix<double> full({.rows = 100, .cols = 100, .tile = 10});
  TileMatrix<double> half({.rows = 100, .cols = 100, .tile = 10, .uplo = Uplo::lower});
  EXPECT_EQ(half.bytes() * 100, full.bytes() * 55);
  EXPECT_TRUE(half.stores(3, 3) && half.stores(4, 3));
  EXPECT_FALSE(half.stores(3, 4));
  TileMatrix<double> upper({.rows = 100, .cols = 100, .tile = 10, .uplo = Uplo::upper});
  EXPECT_TRUE(upper.stores(3, 4));
  EXPECT_FALSE(upper.stores(4, 3));
}

template <class T>
void check_round_trip(std::size_t rows, std::size_t cols, std::size_t tile, Uplo uplo) {
  const std::size_t ld = rows + 2;
  std::vector<T> in(ld * cols + 1), out(ld * cols + 1, T(7));
  generate_tile(RandomGeneral{1}, {}, MatrixView<T>{in.data(), rows, cols, ld});
  const auto tiled = TileMatrix<T>::from_lapack({in.data(), rows, cols, ld}, {.tile = tile, .uplo = uplo});
  tiled.to_lapack({out.data(), rows, cols, ld});
  for (std::size_t j = 0; j < cols; ++j)
    for (std::size_t i = 0; i < ld; ++i) {
      const bool inside = i < rows && (uplo == Uplo::general || (uplo == Uplo::lower ? i >= j : i <= j));
      ASSERT_EQ(out[i + j * ld], inside ? in[i + j * ld] : T(7));
    }
}

TEST(TileMatrix, ReturnsWhatItWasGiven) {
  for (std::size_t n : {0, 1, 4, 5, 17}) {
    for (Uplo uplo : {Uplo::general, Uplo::lower, Uplo::upper}) {
      check_round_trip<double>(n, n, 4, uplo);
      check_round_trip<std::complex<float>>(n, n, 100, uplo);
    }
    check_round_trip<float>(n, 9, 4, Uplo::general);
  }
}

TEST(TileMatrix, MovingDoesNotMoveTiles) {
  TileMatrix<double> a({.rows = 10, .cols = 10, .tile = 4});
  const double* const before = a.tile(1, 1).data;
  TileMatrix<double> b = std::move(a);
  EXPECT_EQ(b.tile(1, 1).data, before);
}

}  // namespace
}  // namespace tandem::linalg::tile_matrix_test
