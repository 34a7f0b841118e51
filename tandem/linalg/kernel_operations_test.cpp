// tandem/linalg/kernel_operations_test.cpp: the kernels of an algorithm take the operations that LAPACK counts for the
// whole.
#include "tandem/linalg/kernel_operations.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace tandem::linalg::kernel_operations_test {
namespace {

using runtime::Shape;

constexpr std::size_t nb = 100, nt = 50;
constexpr double n = nb * nt;
const Shape tile{.rows = nb, .cols = nb, .element_bytes = 8}, factor{.rows = 32, .cols = nb, .element_bytes = 8};

double operations(std::string_view codelet, std::initializer_list<Shape> data) {
  const std::vector<Shape> shapes(data);
  return kernel_operations(codelet, shapes).value();
}

TEST(KernelOperations, AddUpToThoseOfCholesky) {
  double sum = 0;
  for (std::size_t k = 0; k < nt; ++k) {
    const double below = static_cast<double>(nt - k - 1);
    sum += operations("potrf", {tile}) + below * (operations("trsm", {tile, tile}) + operations("herk", {tile, tile})) +
           below * (below - 1) / 2 * operations("gemm", {tile, tile, tile});
  }
  EXPECT_NEAR(sum / (n * n * n / 3), 1, 0.01);
}

TEST(KernelOperations, AddUpToThoseOfLu) {
  double sum = 0;
  for (std::size_t k = 0; k < nt; ++k) {
    const double below = static_cast<double>(nt - k - 1);
    sum += operations("getrf", {tile}) + 2 * below * operations("trsm", {tile, tile}) +
           below * below * operations("gemm", {tile, tile, tile});
  }
  EXPECT_NEAR(sum / (2 * n * n * n / 3), 1, 0.01);
}

TEST(KernelOperations, AddUpToThoseOfQrButForTheReflectorsOfTriangles) {
  double sum = 0;
  for (std::size_t k = 0; k < nt; ++k) {
    const double below = static_cast<double>(nt - k - 1);
    sum += operations("geqrt", {tile, factor}) + below * operations("unmqr", {tile, factor, tile}) +
           below * operations("tpqrt", {tile, tile, factor}) +
           below * below * operations("tpmqrt", {tile, factor, tile, tile});
  }
  EXPECT_NEAR(sum / (4 * n * n * n / 3), 1, 0.02);
}

TEST(KernelOperations, KnowTransposedAndSmallerTiles) {
  const Shape a{.rows = 7, .cols = 5, .element_bytes = 4}, b{.rows = 7, .cols = 3, .element_bytes = 4},
      c{.rows = 5, .cols = 3, .element_bytes = 4};
  EXPECT_EQ(operations("gemm", {a, b, c}), 2 * 5 * 3 * 7);
  EXPECT_EQ(operations("trsm", {tile, Shape{.rows = nb, .cols = 3, .element_bytes = 4}}), 3.0 * nb * nb);
}

TEST(KernelOperations, AreNotGuessedForOthers) {
  EXPECT_FALSE(kernel_operations("laswp", std::vector{tile}));
  EXPECT_FALSE(kernel_operations("gemm", std::vector{tile}));
}

}  // namespace
}  // namespace tandem::linalg::kernel_operations_test
