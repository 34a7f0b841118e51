// tests/cuda/linalg_test.cpp: flows on CUDA devices, which are those of the driver in this folder: results, where tasks
// run, little memory, and libraries that are missing.
#include <cmath>
#include <complex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/flows/gather.hpp"
#include "tandem/linalg/flows/gemm.hpp"
#include "tandem/linalg/flows/geqrf.hpp"
#include "tandem/linalg/flows/getrf.hpp"
#include "tandem/linalg/flows/getrf_nopiv.hpp"
#include "tandem/linalg/flows/herk.hpp"
#include "tandem/linalg/flows/lu_codelets.hpp"
#include "tandem/linalg/flows/potrf.hpp"
#include "tandem/linalg/flows/qr_codelets.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tests/cuda/fake_cuda.hpp"

namespace tandem::linalg::linalg_test {
namespace {

using test::Tiled;

template <class T>
class CudaFlow : public testing::Test {
 protected:
  void SetUp() override { control.reset(); }
  /// Whose tasks devices run where they can.
  Options devices(const std::string& memory = "0") const {
    return {.workers = 2,
            .sched = "lws",
            .more = {{"cuda", "1"},
                     {"cuda.libraries", TANDEM_FAKE_CUDA},
                     {"cuda.memory", memory},
                     {"ranks", "alone"},
                     {"bind", "false"},
                     {"log", "error"}}};
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
    Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo}, generator),
        factor(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo}, generator);
    this->control.kernels = 0;
    ASSERT_EQ(potrf(rt, uplo, factor.data), 0u);
    EXPECT_EQ(this->control.kernels, static_cast<int>(tiles * (tiles + 1) * (tiles + 2) / 6))
        << "one kernel for each task";
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
    Tiled<T> a(rt, {.rows = n, .cols = n, .tile = nb, .uplo = Uplo::lower},
               RandomPositiveDefinite{.seed = 2, .order = n});
    {
      auto tile = rt.acquire(read_write(a.data(bad / nb, bad / nb)));
      (*tile)(bad % nb, bad % nb) = T(-1);
    }
    EXPECT_EQ(potrf(rt, Uplo::lower, a.data), bad + 1);
  }
}

/// What `compute` gives on cores and on the device, which has run it.
template <class T, class Compute>
void expect_alike(const Options& devices, fake_cuda::Control& control, const Compute& compute,
                  const std::string& what) {
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
          expect_alike<T>(
              this->devices(), this->control,
              [&](Runtime& rt) {
                // Of one tile each, since what flows make of several is for their own tests.
                Tiled<T> a(rt, {.rows = 12, .cols = 12, .tile = 20}, RandomPositiveDefinite{.seed = 1, .order = 12});
                Tiled<T> b(rt,
                           {.rows = side == Side::left ? 12U : 7U, .cols = side == Side::left ? 7U : 12U, .tile = 20},
                           RandomGeneral{.seed = 2});
                rt.submit(internal::trsm_codelet<T>(), side, uplo, op, diag, T(2), read(a.data(0, 0)),
                          read_write(b.data(0, 0)), internal::no_info);
                return gathered(rt, b);
              },
              std::string{static_cast<char>(side), static_cast<char>(uplo), static_cast<char>(op),
                          static_cast<char>(diag)});
}

TYPED_TEST(CudaFlow, RankUpdatesAreThoseOfCores) {
  using T = TypeParam;
  for (const Uplo uplo : {Uplo::lower, Uplo::upper})
    for (const bool hermitian : {false, true})
      for (const bool transposed : {false, true})
        expect_alike<T>(
            this->devices(), this->control,
            [&](Runtime& rt) {
              Tiled<T> a(rt, {.rows = transposed ? 30U : 40U, .cols = transposed ? 40U : 30U, .tile = 16},
                         RandomGeneral{.seed = 1});
              Tiled<T> c(rt, {.rows = 40, .cols = 40, .tile = 16, .uplo = uplo}, Kms{.rho = 0.5});
              const Op op = !transposed ? Op::no_trans : hermitian ? Op::conj_trans : Op::trans;
              if (hermitian)
                herk(rt, uplo, op, Real<T>(2), a.data, Real<T>(-1), c.data);
              else
                syrk(rt, uplo, op, T(2), a.data, T(-1), c.data);
              return gathered(rt, c);
            },
            std::string{static_cast<char>(uplo), hermitian ? 'h' : 's', transposed ? 'T' : 'N'});
}

/// Sizes in tiles, the last of which are narrower, and matrices that are wider or taller.
const TileShape kShapes[] = {{.rows = 90, .cols = 90, .tile = 24},
                             {.rows = 100, .cols = 47, .tile = 20},
                             {.rows = 47, .cols = 100, .tile = 20},
                             {.rows = 33, .cols = 33, .tile = 40}};

TYPED_TEST(CudaFlow, QrIsRightWithUpdatesOnTheDevice) {
  using T = TypeParam;
  Runtime rt(this->devices());
  for (const TileShape& shape : kShapes)
    for (const std::size_t ib : {std::size_t(7), std::size_t(32)}) {
      Tiled<T> a(rt, shape, RandomGeneral{.seed = 1}), factor(rt, shape, RandomGeneral{.seed = 1}),
          t(rt, geqrf_factors_shape(shape, ib));
      this->control.kernels = 0;
      geqrf(rt, factor.data, t.data);
      EXPECT_GT(this->control.kernels, shape.cols > shape.tile ? 0 : -1);
      EXPECT_LE(geqrf_residual(rt, a.data, factor.data, t.data), residual_limit)
          << shape.rows << " x " << shape.cols << ", ib " << ib;
      EXPECT_LE(geqrf_orthogonality(rt, factor.data, t.data), residual_limit)
          << shape.rows << " x " << shape.cols << ", ib " << ib;
    }
}

TYPED_TEST(CudaFlow, LuIsRightWithUpdatesOnTheDevice) {
  using T = TypeParam;
  for (const char* const memory : {"0", "20KiB"}) {
    Runtime rt(this->devices(memory));
    for (const TileShape& shape : kShapes) {
      Tiled<T> a(rt, shape, RandomGeneral{.seed = 5}), factors(rt, shape, RandomGeneral{.seed = 5});
      TiledPivots pivots(rt, factors.data);
      this->control.kernels = 0;
      ASSERT_EQ(getrf(rt, factors.data, pivots), 0u);
      EXPECT_GT(this->control.kernels, 0);
      EXPECT_LE(getrf_residual(rt, a.data, factors.data, pivots), residual_limit) << shape.rows << " x " << shape.cols;
    }
  }
}

TYPED_TEST(CudaFlow, LuWithoutPivotingRunsOnTheDeviceAlone) {
  using T = TypeParam;
  constexpr std::size_t n = 90, nb = 24, tiles = 4;
  Runtime rt(this->devices());
  const RandomDominant generator{.seed = 2, .order = n};
  const TileShape shape{.rows = n, .cols = n, .tile = nb};
  Tiled<T> a(rt, shape, generator), factors(rt, shape, generator);
  this->control.kernels = 0;
  ASSERT_EQ(getrf_nopiv(rt, factors.data), 0u);
  EXPECT_EQ(this->control.kernels, static_cast<int>(tiles * (tiles + 1) * (2 * tiles + 1) / 6))
      << "one kernel for each task";
  EXPECT_LE(getrf_nopiv_residual(rt, a.data, factors.data), residual_limit);

  // The matrix of zeros but for the first pivots fails at the next one.
  Tiled<T> singular(rt, shape, RandomDominant{.seed = 2, .order = n});
  for (const std::size_t bad : {std::size_t(0), std::size_t(30), n - 1}) {
    generate(rt, Kms{.rho = 0}, singular.data);
    {
      auto tile = rt.acquire(read_write(singular.data(bad / nb, bad / nb)));
      (*tile)(bad % nb, bad % nb) = T(0);
    }
    EXPECT_EQ(getrf_nopiv(rt, singular.data), bad + 1);
  }
}

TYPED_TEST(CudaFlow, ReflectorsAreAppliedAsOnCores) {
  using T = TypeParam;
  for (const Op op : {Op::no_trans, Op::conj_trans})
    for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{40, 40}, {40, 17}, {17, 40}})
      for (const std::size_t ib : {std::size_t(5), std::size_t(32)})
        expect_alike<T>(
            this->devices(), this->control,
            [&](Runtime& rt) {
              const TileShape shape{.rows = rows, .cols = cols, .tile = 40};
              Tiled<T> v(rt, shape, RandomGeneral{.seed = 1}), t(rt, geqrf_factors_shape(shape, ib)),
                  c(rt, {.rows = rows, .cols = 30, .tile = 40}, RandomGeneral{.seed = 2});
              rt.submit(internal::geqrt_codelet<T>(), read_write(v.data(0, 0)), write(t.data(0, 0)));
              rt.submit(internal::unmqr_codelet<T>(), op, read(v.data(0, 0)), read(t.data(0, 0)),
                        read_write(c.data(0, 0)));
              return gathered(rt, c);
            },
            std::string(1, static_cast<char>(op)) + " " + std::to_string(rows) + " x " + std::to_string(cols));
}

TYPED_TEST(CudaFlow, RowsAreExchangedAsOnCores) {
  using T = TypeParam;
  constexpr std::size_t nb = 70, cols = 33;
  std::vector<std::size_t> exchanges(2 * nb);
  // Rows of A with rows 0, 3, 6, ... of B, whose first row is the panel's row nb, and of a tile behind it; then within
  // A, in an order.
  for (std::size_t t = 0; t < nb; ++t) {
    exchanges[t] = t % 3 == 0 ? nb + t : t % 3 == 1 ? 2 * nb + t : t;
    exchanges[nb + t] = t + (7 * t) % (nb - t);
  }
  expect_alike<T>(this->devices(), this->control,
                  [&](Runtime& rt) {
                    Tiled<T> a(rt, {.rows = 2 * nb, .cols = cols, .tile = nb}, RandomGeneral{.seed = 1});
                    const auto list = rt.data("exchanges", exchanges);
                    rt.submit(internal::exchange_codelet<T>(), read(list), nb, read_write(a.data(0, 0)),
                              read_write(a.data(1, 0)), internal::no_info);
                    rt.submit(internal::interchange_codelet<T>(), read(list), read_write(a.data(0, 0)),
                              internal::no_info);
                    return gathered(rt, a);
                  },
                  "rows");
}

/// Each kernel of the device takes 5 ms, so cores are far faster, which the default scheduler finds out.
TYPED_TEST(CudaFlow, CoresHelpSlowDevices) {
  using T = TypeParam;
  Options options = this->devices();
  options.sched = "plan";
  Runtime rt(options);
  constexpr std::size_t n = 200, nb = 20;
  const TileShape shape{.rows = n, .cols = n, .tile = nb};
  Tiled<T> a(rt, shape, RandomGeneral{.seed = 1}), b(rt, shape, RandomGeneral{.seed = 2}),
      c(rt, shape, RandomGeneral{.seed = 3});
  gemm(rt, Op::no_trans, Op::no_trans, T(1), a.data, b.data, T(0), c.data);  // 1000 products
  this->control.kernels = 0;
  this->control.kernel_ns = 5'000'000;
  for (int again = 0; again < 2; ++again) gemm(rt, Op::no_trans, Op::no_trans, T(1), a.data, b.data, T(0), c.data);
  EXPECT_LT(this->control.kernels, 1000) << "half of what there was to do";
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
}  // namespace tandem::linalg::linalg_test
