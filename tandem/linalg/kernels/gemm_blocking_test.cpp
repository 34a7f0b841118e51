// tandem/linalg/kernels/gemm_blocking_test.cpp: which libraries are recognised, and that blocks add up.
#include "tandem/linalg/kernels/gemm_blocking.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tandem/linalg/generators.hpp"
#include "tandem/linalg/kernels/gemm.hpp"

namespace tandem::linalg::gemm_blocking_test {
namespace {

using internal::choose_gemm_blocking;

constexpr const char* debian_12 = "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Cooperlake MAX_THREADS=64";

TEST(GemmBlocking, IsForTheSmallKernelsOfOpenBlasOnly) {
  EXPECT_FALSE(choose_gemm_blocking<double>("Cooperlake", debian_12, Op::no_trans, Op::trans).whole());
  EXPECT_FALSE(choose_gemm_blocking<float>("SkylakeX", "OpenBLAS 0.4.1 X", Op::conj_trans, Op::no_trans).whole());
  EXPECT_TRUE(choose_gemm_blocking<double>("Haswell", debian_12, Op::no_trans, Op::trans).whole());
  EXPECT_TRUE(choose_gemm_blocking<double>("SkylakeX", "OpenBLAS 0.3.10 X", Op::no_trans, Op::trans).whole());
  EXPECT_TRUE(choose_gemm_blocking<double>("", "", Op::no_trans, Op::trans).whole());
  EXPECT_TRUE(choose_gemm_blocking<std::complex<double>>("SkylakeX", debian_12, Op::no_trans, Op::trans).whole());
}

TEST(GemmBlocking, BlocksStayBelowTheLimitOfTheSmallKernels) {
  for (Op op_a : {Op::no_trans, Op::trans})
    for (Op op_b : {Op::no_trans, Op::trans}) {
      const auto blocking = choose_gemm_blocking<double>("SkylakeX", debian_12, op_a, op_b);
      EXPECT_LE(blocking.m * blocking.n * blocking.k, 1000000u);
    }
}

// Sizes beyond one block in each dimension, and not multiples of it; too few rows for our own kernels.
TEST(GemmBlocking, LargeProductsEqualTheirDefinition) {
  const std::size_t m = 40, n = 201, k = 530;
  for (Op op_a : {Op::no_trans, Op::trans})
    for (Op op_b : {Op::no_trans, Op::trans}) {
      std::vector<double> a(m * k), b(k * n), c(m * n), before;
      generate_tile(RandomGeneral{1}, {}, MatrixView<double>{a.data(), m * k, 1, m * k});
      generate_tile(RandomGeneral{2}, {}, MatrixView<double>{b.data(), k * n, 1, k * n});
      generate_tile(RandomGeneral{3}, {}, MatrixView<double>{c.data(), m * n, 1, m * n});
      before = c;
      const bool ta = op_a == Op::trans, tb = op_b == Op::trans;
      const MatrixView<double> va{a.data(), ta ? k : m, ta ? m : k, ta ? k : m},
          vb{b.data(), tb ? n : k, tb ? k : n, tb ? n : k};
      kernels::gemm(op_a, op_b, 2.0, va, vb, -1.0, MatrixView<double>{c.data(), m, n, m});
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < m; ++i) {
          double sum = 0;
          for (std::size_t l = 0; l < k; ++l) sum += (ta ? va(l, i) : va(i, l)) * (tb ? vb(j, l) : vb(l, j));
          ASSERT_NEAR(c[i + j * m], 2 * sum - before[i + j * m], 1e-12);
        }
    }
}

}  // namespace
}  // namespace tandem::linalg::gemm_blocking_test
