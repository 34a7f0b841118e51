// tandem/linalg/flows/flows_test.cpp: gemm, trsm, herk, syrk, lacpy and the generator on tiled matrices, against the
// tile kernels applied to the whole matrix at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/flows/gemm.hpp"
#include "tandem/linalg/flows/hemm.hpp"
#include "tandem/linalg/flows/herk.hpp"
#include "tandem/linalg/flows/lacpy.hpp"
#include "tandem/linalg/flows/norms.hpp"
#include "tandem/linalg/flows/trsm.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/hemm.hpp"
#include "tandem/linalg/kernels/herk.hpp"
#include "tandem/linalg/kernels/norms.hpp"
#include "tandem/linalg/kernels/trsm.hpp"

namespace tandem::linalg::flows_test {
namespace {

using test::Tiled;

template <class T>
class Flows : public testing::Test {
 protected:
  static MatrixView<T> whole(std::vector<T>& values, std::size_t rows, std::size_t cols) {
    return {values.data(), rows, cols, rows};
  }

  static void expect_close(const std::vector<T>& a, const std::vector<T>& b, const std::string& what) {
    Real<T> worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    EXPECT_LE(worst, 200 * epsilon<T>) << what;
  }
};
TYPED_TEST_SUITE(Flows, test::Scalars, test::Letters);

constexpr Op ops[] = {Op::no_trans, Op::trans, Op::conj_trans};

TYPED_TEST(Flows, GemmOfAllOps) {
  using T = TypeParam;
  const std::size_t m = 21, n = 10, nb = 8;
  const T alpha = T(Real<T>(0.5)), beta = T(Real<T>(-2));
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (Op op_a : ops)
      for (Op op_b : ops)
        for (std::size_t k : {std::size_t(0), std::size_t(13)}) {
          const bool ta = op_a != Op::no_trans, tb = op_b != Op::no_trans;
          Tiled<T> a(rt, {.rows = ta ? k : m, .cols = ta ? m : k, .tile = nb}, RandomGeneral{1});
          Tiled<T> b(rt, {.rows = tb ? n : k, .cols = tb ? k : n, .tile = nb}, RandomGeneral{2});
          Tiled<T> c(rt, {.rows = m, .cols = n, .tile = nb}, RandomGeneral{3});
          auto da = a.dense(), db = b.dense(), dc = c.dense();
          gemm(rt, op_a, op_b, alpha, a.data, b.data, beta, c.data);
          kernels::gemm(op_a, op_b, alpha, this->whole(da, ta ? k : m, ta ? m : k),
                        this->whole(db, tb ? n : k, tb ? k : n), beta, this->whole(dc, m, n));
          this->expect_close(c.dense(), dc, std::string("gemm ") + char(op_a) + char(op_b));
        }
  }
}

TYPED_TEST(Flows, TrsmOfAllForms) {
  using T = TypeParam;
  const std::size_t n = 21, rhs = 10, nb = 8;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (Side side : {Side::left, Side::right})
      for (Uplo uplo : {Uplo::lower, Uplo::upper})
        for (Op op : ops)
          for (Diag diag : {Diag::non_unit, Diag::unit}) {
            const std::size_t rows = side == Side::left ? n : rhs, cols = side == Side::left ? rhs : n;
            // Scaled so that the triangle is well conditioned, with a unit diagonal too.
            Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo}, Kms{.rho = 0.3});
            Tiled<T> b(rt, {.rows = rows, .cols = cols, .tile = nb}, RandomGeneral{2});
            auto da = a.dense(), db = b.dense();
            trsm(rt, side, uplo, op, diag, T(Real<T>(-0.5)), a.data, b.data);
            kernels::trsm(side, uplo, op, diag, T(Real<T>(-0.5)), this->whole(da, n, n), this->whole(db, rows, cols));
            this->expect_close(b.dense(), db, std::string("trsm ") + char(side) + char(uplo) + char(op) + char(diag));
          }
  }
}

TYPED_TEST(Flows, RankUpdatesOfBothTriangles) {
  using T = TypeParam;
  const std::size_t n = 21, nb = 8;
  for (const auto& setting : test::settings) {
    Runtime rt(test::options(setting));
    for (Uplo uplo : {Uplo::lower, Uplo::upper})
      for (bool hermitian : {false, true})
        for (bool plain : {false, true})
          for (std::size_t k : {std::size_t(0), std::size_t(13)}) {
            const Op op = plain ? Op::no_trans : hermitian ? Op::conj_trans : Op::trans;
            const std::size_t rows = plain ? n : k, cols = plain ? k : n;
            Tiled<T> a(rt, {.rows = rows, .cols = cols, .tile = nb}, RandomGeneral{1});
            Tiled<T> c(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo},
                       RandomPositiveDefinite{.seed = 2, .order = 1});
            auto da = a.dense(), dc = c.dense();
            if (hermitian) {
              herk(rt, uplo, op, Real<T>(0.5), a.data, Real<T>(2), c.data);
              kernels::herk(uplo, op, Real<T>(0.5), this->whole(da, rows, cols), Real<T>(2), this->whole(dc, n, n));
            } else {
              syrk(rt, uplo, op, T(Real<T>(0.5)), a.data, T(2), c.data);
              kernels::syrk(uplo, op, T(Real<T>(0.5)), this->whole(da, rows, cols), T(2), this->whole(dc, n, n));
            }
            this->expect_close(c.dense(), dc, std::string(hermitian ? "herk " : "syrk ") + char(uplo) + char(op));
          }
  }
}

TYPED_TEST(Flows, HemmReadsOneTriangle) {
  using T = TypeParam;
  const std::size_t n = 21, rhs = 10, nb = 8;
  Runtime rt(test::options({2, "lws"}));
  for (Uplo uplo : {Uplo::lower, Uplo::upper}) {
    Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo}, RandomPositiveDefinite{.seed = 2, .order = n});
    Tiled<T> b(rt, {.rows = n, .cols = rhs, .tile = nb}, RandomGeneral{1}),
        c(rt, {.rows = n, .cols = rhs, .tile = nb}, RandomGeneral{3});
    auto da = a.dense(), db = b.dense(), dc = c.dense();
    submit_hemm(rt, uplo, T(2), a.data, b.data, T(-1), c.data);
    rt.wait();
    kernels::hemm(uplo, T(2), this->whole(da, n, n), this->whole(db, n, rhs), T(-1), this->whole(dc, n, rhs));
    this->expect_close(c.dense(), dc, "hemm");
    const Real<T> norm = kernels::lanhe(Norm::one, uplo, this->whole(da, n, n));
    EXPECT_NEAR(norm_one_hermitian(rt, uplo, a.data), norm, norm * 100 * epsilon<T>);
    EXPECT_NEAR(norm_one(rt, b.data), kernels::lange(Norm::one, this->whole(db, n, rhs)),
                100 * epsilon<T> * Real<T>(n));
  }
}

TYPED_TEST(Flows, LacpyCopiesItsPart) {
  using T = TypeParam;
  const std::size_t n = 13;
  Runtime rt(test::options({2, "lws"}));
  for (Uplo uplo : {Uplo::general, Uplo::lower, Uplo::upper}) {
    Tiled<T> a(rt, {.rows = n, .cols = n, .tile = 5}, RandomGeneral{1}),
        b(rt, {.rows = n, .cols = n, .tile = 5}, RandomGeneral{2});
    const auto da = a.dense(), before = b.dense();
    lacpy(rt, uplo, a.data, b.data);
    const auto after = b.dense();
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < n; ++i) {
        const bool inside = uplo == Uplo::general || (uplo == Uplo::lower ? i >= j : i <= j);
        EXPECT_EQ(after[i + j * n], inside ? da[i + j * n] : before[i + j * n]);
      }
  }
}

TEST(Flows, RefuseShapesThatDoNotFit) {
  Runtime rt(test::options({1, "lws"}));
  Tiled<double> a(rt, {.rows = 8, .cols = 8, .tile = 4}), b(rt, {.rows = 7, .cols = 8, .tile = 4}),
      c(rt, {.rows = 8, .cols = 8, .tile = 8});
  EXPECT_THROW(gemm(rt, Op::no_trans, Op::no_trans, 1.0, a.data, b.data, 0.0, a.data), UsageError);
  EXPECT_THROW(gemm(rt, Op::no_trans, Op::no_trans, 1.0, a.data, a.data, 0.0, c.data), UsageError);
  EXPECT_THROW(lacpy(rt, Uplo::general, a.data, b.data), UsageError);
  EXPECT_THROW(herk(rt, Uplo::lower, Op::no_trans, 1.0, b.data, 0.0, a.data), UsageError);
}

}  // namespace
}  // namespace tandem::linalg::flows_test
