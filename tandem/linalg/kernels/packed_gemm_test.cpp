// tandem/linalg/kernels/packed_gemm_test.cpp: products through copies, against their definition, in sizes around their
// blocks.
#include "tandem/linalg/kernels/packed_gemm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tandem/linalg/kernels/kernel_test_support.hpp"

namespace tandem::linalg::packed_gemm_test {
namespace {

using internal::has_packed_gemm;
using internal::packed_gemm;
using internal::packed_syrk;
using test::Padded;
using test::random;

template <class R>
class PackedGemm : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_packed_gemm()) GTEST_SKIP() << "not for this processor";
  }
  static R at(Op op, MatrixView<R> a, std::size_t i, std::size_t j) { return op == Op::no_trans ? a(i, j) : a(j, i); }
  static Padded<R> operand(std::uint64_t seed, Op op, std::size_t rows, std::size_t cols) {
    return op == Op::no_trans ? random<R>(seed, rows, cols) : random<R>(seed, cols, rows);
  }
  static R dot(Op op_a, MatrixView<R> a, std::size_t i, Op op_b, MatrixView<R> b, std::size_t j, std::size_t k) {
    R sum{};
    for (std::size_t l = 0; l < k; ++l) sum += at(op_a, a, i, l) * at(op_b, b, l, j);
    return sum;
  }
  static R tolerance(std::size_t k, R expected) {
    return R(k + 1) * 8 * epsilon<R> * std::max(R(1), std::abs(expected));
  }
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(PackedGemm, Reals, test::Letters);

constexpr Op ops[] = {Op::no_trans, Op::trans};

// Less than a vector and a strip; panels of 1, 2 and 3 vectors; more than one block of rows, columns and terms, none
// whole.
struct Sizes {
  std::size_t m, n, k;
};
constexpr Sizes sizes[] = {{1, 1, 1},    {7, 9, 5},      {16, 8, 17},   {33, 23, 100},
                           {96, 48, 64}, {203, 519, 41}, {50, 20, 1301}};

TYPED_TEST(PackedGemm, EqualsItsDefinition) {
  using R = TypeParam;
  for (const auto [m, n, k] : sizes)
    for (Op op_a : ops)
      for (Op op_b : ops)
        for (R beta : {R(0), R(1), R(0.5)}) {
          auto a = this->operand(1, op_a, m, k), b = this->operand(2, op_b, k, n), c = random<R>(3, m, n), before = c;
          packed_gemm<R>(op_a, op_b, R(-1.5), a.view(), b.view(), beta, c.view());
          for (std::size_t j = 0; j < n; ++j)
            for (std::size_t i = 0; i < m; ++i) {
              const R sum = this->dot(op_a, a.view(), i, op_b, b.view(), j, k);
              const R expected = R(-1.5) * sum + beta * before.view()(i, j);
              ASSERT_NEAR(c.view()(i, j), expected, this->tolerance(k, expected)) << m << " " << n << " " << k;
            }
          ASSERT_TRUE(c.guards_intact());
        }
}

TYPED_TEST(PackedGemm, SyrkUpdatesOneTriangleAndLeavesTheOther) {
  using R = TypeParam;
  for (const auto [n, ignored, k] : sizes)
    for (Uplo uplo : {Uplo::lower, Uplo::upper})
      for (Op op : ops)
        for (R beta : {R(0), R(1), R(0.5)}) {
          const Op other = op == Op::no_trans ? Op::trans : Op::no_trans;
          auto a = this->operand(1, op, n, k), c = random<R>(3, n, n);
          const auto outside = [&](std::size_t i, std::size_t j) { return uplo == Uplo::lower ? i < j : i > j; };
          for (std::size_t j = 0; j < n; ++j)
            for (std::size_t i = 0; i < n; ++i)
              if (outside(i, j)) c.view()(i, j) = std::numeric_limits<R>::quiet_NaN();
          auto before = c;
          packed_syrk<R>(uplo, op, R(-1.5), a.view(), beta, c.view());
          for (std::size_t j = 0; j < n; ++j)
            for (std::size_t i = 0; i < n; ++i) {
              if (outside(i, j)) {
                ASSERT_TRUE(std::isnan(c.view()(i, j)));
              } else {
                const R sum = this->dot(op, a.view(), i, other, a.view(), j, k);
                const R expected = R(-1.5) * sum + beta * before.view()(i, j);
                ASSERT_NEAR(c.view()(i, j), expected, this->tolerance(k, expected)) << n << " " << k;
              }
            }
          ASSERT_TRUE(c.guards_intact());
        }
}

TYPED_TEST(PackedGemm, WithBetaZeroTheResultIsNotRead) {
  using R = TypeParam;
  const std::size_t m = 40, n = 20, k = 20;
  auto a = random<R>(1, m, k), b = random<R>(2, k, n), c = random<R>(3, m, n);
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i < m; ++i) c.view()(i, j) = std::numeric_limits<R>::quiet_NaN();
  packed_gemm<R>(Op::no_trans, Op::no_trans, R(1), a.view(), b.view(), R(0), c.view());
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i < m; ++i) ASSERT_FALSE(std::isnan(c.view()(i, j)));
}

// Neither alignment nor earlier work is a size: tiles of ranks have arbitrary addresses.
TYPED_TEST(PackedGemm, BitsDoNotDependOnWhereTheOperandsAre) {
  using R = TypeParam;
  const std::size_t m = 77, n = 53, k = 401;
  auto a = random<R>(1, m, k), b = random<R>(2, n, k), c = random<R>(3, m, n);
  std::vector<R> from(m * k + 1), to(m * n + 1);
  const MatrixView<R> moved_a{from.data() + 1, m, k, m}, moved_c{to.data() + 1, m, n, m};
  for (std::size_t l = 0; l < k; ++l)
    for (std::size_t i = 0; i < m; ++i) moved_a(i, l) = a.view()(i, l);
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i < m; ++i) moved_c(i, j) = c.view()(i, j);
  packed_gemm<R>(Op::no_trans, Op::trans, R(-1), a.view(), b.view(), R(1), c.view());
  packed_syrk<R>(Uplo::lower, Op::trans, R(1), a.view(), R(0), random<R>(4, k, k).view());
  packed_gemm<R>(Op::no_trans, Op::trans, R(-1), moved_a, b.view(), R(1), moved_c);
  for (std::size_t j = 0; j < n; ++j) ASSERT_EQ(std::memcmp(&moved_c(0, j), &c.view()(0, j), m * sizeof(R)), 0);
}

}  // namespace
}  // namespace tandem::linalg::packed_gemm_test
