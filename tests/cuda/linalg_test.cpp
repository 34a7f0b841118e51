// tests/cuda/linalg_test.cpp: flows on CUDA devices, which are those of the driver in this folder: results, where tasks run, little memory, and
// libraries that are missing.
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/flows/gather.hpp"
#include "tandem/linalg/flows/gemm.hpp"
#include "tandem/linalg/flows/herk.hpp"
#include "tandem/linalg/flows/potrf.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tests/cuda/fake_cuda.hpp"

namespace tandem::linalg {
namespace {

using test::Tiled;

template <class T>
class CudaFlow : public testing::Test {
 protected:
  void SetUp() override { control.reset(); }
  Options devices(const std::string& memory = "0") const {
    return {.workers = 2, .more = {{"cuda", "1"}, {"cuda.libraries", TANDEM_FAKE_CUDA}, {"cuda.memory", memory}, {"ranks", "alone"}, {"bind", "false"}, {"log", "error"}}};
  }
  fake_cuda::Control& control = fake_cuda::control(TANDEM_FAKE_CUDA);
};
TYPED_TEST_SUITE(CudaFlow, test::Scalars, test::Letters);

TYPED_TEST(CudaFlow, CholeskyRunsOnTheDeviceAlone) {
  using T = TypeParam;
  Runtime rt(this->devices());
  for (Uplo uplo : {Uplo::lower, Uplo::upper}) {
    constexpr std::size_t n = 130, nb = 24, tiles = 6;
    const RandomPositiveDefinite generator{.seed = 3, .order = n};
    Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo}, generator), factor(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo}, generator);
    this->control.kernels = 0;
    ASSERT_EQ(potrf(rt, uplo, factor.data), 0u);
    EXPECT_EQ(this->control.kernels, static_cast<int>(tiles * (tiles + 1) * (tiles + 2) / 6)) << "one kernel for each task";
    EXPECT_LE(potrf_residual(rt, uplo, a.data, factor.data), residual_limit) << char(uplo);
  }
}

TYPED_TEST(CudaFlow, CholeskyIsRightInMemoryForAFewTiles) {
  using T = TypeParam;
  constexpr std::size_t n = 120, nb = 20;
  Runtime rt(this->devices(std::to_string(5 * nb * nb * sizeof(T))));
  const RandomPositiveDefinite generator{.seed = 4, .order = n};
  const TileShape shape{.rows = n, .cols = n, .tile = nb, .uplo = Uplo::lower};
  Tiled<T> a(rt, shape, generator), factor(rt, shape, generator);
  ASSERT_EQ(potrf(rt, Uplo::lower, factor.data), 0u);
  EXPECT_LE(potrf_residual(rt, Uplo::lower, a.data, factor.data), residual_limit);
  EXPECT_GE(this->control.kernels, 56);
}

TYPED_TEST(CudaFlow, CholeskyReturnsTheOrderOfTheFirstBadMinor) {
  using T = TypeParam;
  constexpr std::size_t n = 60, nb = 16;
  Runtime rt(this->devices());
  for (std::size_t bad : {std::size_t(0), std::size_t(21), n - 1}) {
    Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb, .uplo = Uplo::lower}, RandomPositiveDefinite{.seed = 2, .order = n});
    {
      auto tile = rt.acquire(read_write(a.data(bad / nb, bad / nb)));
      (*tile)(bad % nb, bad % nb) = T(-1);
    }
    EXPECT_EQ(potrf(rt, Uplo::lower, a.data), bad + 1);
  }
}

/// What `compute` gives on cores and on the device, which has run it.
template <class T, class Compute>
void expect_alike(const Options& devices, fake_cuda::Control& control, const Compute& compute, const std::string& what) {
  std::vector<T> here, there;
  {
    Runtime rt(Options{.workers = 2, .more = {{"ranks", "alone"}, {"bind", "false"}}});
    here = compute(rt);
  }
  {
    Runtime rt(devices);
    control.kernels = 0;
    there = compute(rt);
    EXPECT_GT(control.kernels, 0);
  }
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    ASSERT_LE(std::abs(here[i] - there[i]), 1000 * epsilon<T> * (1 + std::abs(here[i]))) << what << ", element " << i;
}

template <class T>
std::vector<T> gathered(Runtime& rt, const Tiled<T>& a) {
  const std::size_t rows = a.matrix.rows();
  std::vector<T> dense(rows * a.matrix.cols());
  gather(rt, a.data, MatrixView<T>{dense.data(), rows, a.matrix.cols(), rows});
  return dense;
}

TYPED_TEST(CudaFlow, ProductsAreThoseOfCores) {
  using T = TypeParam;
  const TileShape a_shape{.rows = 50, .cols = 40, .tile = 16}, b_shape{.rows = 30, .cols = 50, .tile = 16};
  for (const Op op : {Op::trans, Op::conj_trans})
    expect_alike<T>(this->devices(), this->control,
                    [&](Runtime& rt) {
                      Tiled<T> a(rt, a_shape, RandomGeneral{.seed = 1}), b(rt, b_shape, RandomGeneral{.seed = 2}),
                          c(rt, {.rows = 40, .cols = 30, .tile = 16}, RandomGeneral{.seed = 3});
                      gemm(rt, op, op, T(2), a.data, b.data, T(-1), c.data);
                      return gathered(rt, c);
                    },
                    std::string(1, static_cast<char>(op)));
  expect_alike<T>(this->devices(), this->control,
                  [&](Runtime& rt) {
                    Tiled<T> a(rt, a_shape, RandomGeneral{.seed = 1}), b(rt, b_shape, RandomGeneral{.seed = 2}),
                        c(rt, {.rows = 30, .cols = 40, .tile = 16}, RandomGeneral{.seed = 3});
                    gemm(rt, Op::no_trans, Op::no_trans, T(2), b.data, a.data, T(0), c.data);
                    return gathered(rt, c);
                  },
                  "N");
}

TYPED_TEST(CudaFlow, SolvesAreThoseOfCores) {
  using T = TypeParam;
  for (const Side side : {Side::left, Side::right})
    for (const Uplo uplo : {Uplo::lower, Uplo::upper})
      for (const Op op : {Op::no_trans, Op::trans, Op::conj_trans})
        for (const Diag diag : {Diag::unit, Diag::non_unit})
          expect_alike<T>(this->devices(), this->control,
                          [&](Runtime& rt) {
                            // Of one tile each, since what flows make of several is for their own tests.
                            Tiled<T> a(rt, {.rows = 12, .cols = 12, .tile = 20}, RandomPositiveDefinite{.seed = 1, .order = 12});
                            Tiled<T> b(rt, {.rows = side == Side::left ? 12U : 7U, .cols = side == Side::left ? 7U : 12U, .tile = 20},
                                       RandomGeneral{.seed = 2});
                            rt.submit(internal::trsm_codelet<T>(), side, uplo, op, diag, T(2), read(a.data(0, 0)), read_write(b.data(0, 0)),
                                      internal::no_info);
                            return gathered(rt, b);
                          },
                          std::string{static_cast<char>(side), static_cast<char>(uplo), static_cast<char>(op), static_cast<char>(diag)});
}

TYPED_TEST(CudaFlow, RankUpdatesAreThoseOfCores) {
  using T = TypeParam;
  for (const Uplo uplo : {Uplo::lower, Uplo::upper})
    for (const bool hermitian : {false, true})
      for (const bool transposed : {false, true})
        expect_alike<T>(this->devices(), this->control,
                        [&](Runtime& rt) {
                          Tiled<T> a(rt, {.rows = transposed ? 30U : 40U, .cols = transposed ? 40U : 30U, .tile = 16}, RandomGeneral{.seed = 1});
                          Tiled<T> c(rt, {.rows = 40, .cols = 40, .tile = 16, .uplo = uplo}, Kms{.rho = 0.5});
                          const Op op = !transposed ? Op::no_trans : hermitian ? Op::conj_trans : Op::trans;
                          if (hermitian) herk(rt, uplo, op, Real<T>(2), a.data, Real<T>(-1), c.data);
                          else syrk(rt, uplo, op, T(2), a.data, T(-1), c.data);
                          return gathered(rt, c);
                        },
                        std::string{static_cast<char>(uplo), hermitian ? 'h' : 's', transposed ? 'T' : 'N'});
}

TYPED_TEST(CudaFlow, CoresDoWhatTheLibrariesCannot) {
  using T = TypeParam;
  this->control.has_blas = false;
  Runtime rt(this->devices());
  constexpr std::size_t n = 50, nb = 16;
  const RandomPositiveDefinite generator{.seed = 4, .order = n};
  const TileShape shape{.rows = n, .cols = n, .tile = nb, .uplo = Uplo::lower};
  Tiled<T> a(rt, shape, generator), factor(rt, shape, generator);
  ASSERT_EQ(potrf(rt, Uplo::lower, factor.data), 0u);
  EXPECT_LE(potrf_residual(rt, Uplo::lower, a.data, factor.data), residual_limit);
  EXPECT_EQ(this->control.kernels, 0);
}

}  // namespace
}  // namespace tandem::linalg
