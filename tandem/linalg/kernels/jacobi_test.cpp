// tandem/linalg/kernels/jacobi_test.cpp: a Jacobi step on a block that is cut out of a grid, against the definition on
// the grid.
#include "tandem/linalg/kernels/jacobi.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tandem/linalg/kernels/kernel_test_support.hpp"

namespace tandem::linalg::jacobi_test {
namespace {

template <class R>
class JacobiKernel : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(JacobiKernel, Reals, test::Letters);

constexpr std::size_t n = 12;

/// The definition, where all of the grid is at hand.
template <class R>
R expected(MatrixView<R> u, std::size_t i, std::size_t j) {
  if (i == 0 || j == 0 || i + 1 == n || j + 1 == n) return u(i, j);
  return R(0.25) * ((u(i - 1, j) + u(i + 1, j)) + (u(i, j - 1) + u(i, j + 1)));
}

template <class R>
struct Edge {
  explicit Edge(std::size_t rows, std::size_t cols)
      : top(cols, R(7)), bottom(cols, R(7)), left(rows, R(7)), right(rows, R(7)) {}
  kernels::Borders<R> spans() { return {top, bottom, left, right}; }
  std::vector<R> top, bottom, left, right;
};

TYPED_TEST(JacobiKernel, EveryBlockOfAGridGetsTheNewPointsAndItsBordersAloneGetThemToo) {
  using R = TypeParam;
  auto grid = test::random<R>(3, n, n);
  const MatrixView<R> u = grid.view();
  for (std::size_t row = 0; row < n; ++row)
    for (std::size_t col = 0; col < n; ++col)
      for (std::size_t rows = 1; row + rows <= n; rows += rows < 3 ? 1 : 4)
        for (std::size_t cols = 1; col + cols <= n; cols += cols < 3 ? 1 : 4) {
          Edge<R> around(rows, cols), edge(rows, cols);
          kernels::Halo<R> halo;
          if (row > 0) {
            for (std::size_t j = 0; j < cols; ++j) around.top[j] = u(row - 1, col + j);
            halo.above = around.top.data();
          }
          if (row + rows < n) {
            for (std::size_t j = 0; j < cols; ++j) around.bottom[j] = u(row + rows, col + j);
            halo.below = around.bottom.data();
          }
          if (col > 0) {
            for (std::size_t i = 0; i < rows; ++i) around.left[i] = u(row + i, col - 1);
            halo.left = around.left.data();
          }
          if (col + cols < n) {
            for (std::size_t i = 0; i < rows; ++i) around.right[i] = u(row + i, col + cols);
            halo.right = around.right.data();
          }
          const MatrixView<const R> block = u.block(row, col, rows, cols);
          test::Padded<R> next(rows, cols);
          kernels::jacobi(block, halo, next.view());
          ASSERT_TRUE(next.guards_intact());
          for (std::size_t j = 0; j < cols; ++j)
            for (std::size_t i = 0; i < rows; ++i)
              ASSERT_EQ(next.view()(i, j), expected(u, row + i, col + j))
                  << "block of " << rows << " x " << cols << " at " << row << ", " << col << ": point " << i << ", "
                  << j;
          const auto expect_borders = [&](MatrixView<const R> of) {
            for (std::size_t j = 0; j < cols; ++j) {
              ASSERT_EQ(edge.top[j], of(0, j));
              ASSERT_EQ(edge.bottom[j], of(rows - 1, j));
            }
            for (std::size_t i = 0; i < rows; ++i) {
              ASSERT_EQ(edge.left[i], of(i, 0));
              ASSERT_EQ(edge.right[i], of(i, cols - 1));
            }
          };
          kernels::jacobi_borders(block, halo, edge.spans());
          expect_borders(next.view());
          kernels::copy_borders(block, edge.spans());
          expect_borders(block);
        }
}

TYPED_TEST(JacobiKernel, TheLargestDifferenceIsFoundAndNotANumberIsKept) {
  using R = TypeParam;
  auto a = test::random<R>(1, 5, 7), b = test::random<R>(1, 5, 7);
  const auto difference = [&] { return kernels::largest_difference(MatrixView<const R>(a.view()), b.view()); };
  EXPECT_EQ(difference(), R(0));
  a.view()(4, 6) += R(-3);
  b.view()(2, 2) += R(1);
  EXPECT_NEAR(difference(), R(3), R(1e-5));
  a.view()(1, 1) = std::numeric_limits<R>::quiet_NaN();
  EXPECT_TRUE(std::isnan(difference()));
}

}  // namespace
}  // namespace tandem::linalg::jacobi_test
