// tandem/linalg/kernels/cuda.cpp: calls of cuBLAS and cuSOLVER, whose functions the device finds, and kernels that
// NVRTC compiles.
#include "tandem/linalg/kernels/cuda.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/block_reflector.hpp"
#include "tandem/linalg/kernels/cuda_functions.hpp"
#include "tandem/runtime/memory/device_error.hpp"

namespace tandem::linalg::kernels::cuda {
namespace {

using namespace internal;

int cublas_op(Op op) { return op == Op::no_trans ? kCublasNoTrans : op == Op::trans ? kCublasTrans : kCublasConjTrans; }
int cublas_uplo(Uplo uplo) { return uplo == Uplo::lower ? kCublasLower : kCublasUpper; }
int cublas_diag(Diag diag) { return diag == Diag::unit ? kCublasUnit : kCublasNonUnit; }

void check(int status, const char* symbol) {
  if (status != 0)
    throw DeviceError(DeviceEffect::refused, fmt::format("{} has refused its work: its status is {}", symbol, status));
}

/// Calls a function of cuBLAS with its handle and `arguments`.
template <class Function, class... Arguments>
void call_blas(CudaQueue& queue, const char* symbol, Arguments... arguments) {
  check(reinterpret_cast<Function*>(queue.blas_function(symbol))(queue.blas(), arguments...), symbol);
}

/// Calls a function of cuSOLVER likewise.
template <class Function, class... Arguments>
void call_solver(CudaQueue& queue, const char* symbol, Arguments... arguments) {
  check(reinterpret_cast<Function*>(queue.solver_function(symbol))(queue.solver(), arguments...), symbol);
}

/// Memory of the device for a factorisation that needs `count` elements, and for its `info`.
template <Scalar T>
struct Workspace {
  Workspace(CudaQueue& queue, int count) {
    // `info` first, then the workspace, which is aligned as memory of the device is.
    constexpr std::size_t before = 256;
    char* const scratch = static_cast<char*>(queue.scratch(before + static_cast<std::size_t>(count) * sizeof(T)));
    info = reinterpret_cast<int*>(scratch);
    elements = reinterpret_cast<T*>(scratch + before);
  }
  int* info;
  T* elements;
};

void report(CudaQueue& queue, const int* info, std::function<void(std::size_t)> failed) {
  queue.read_int(info, [failed = std::move(failed)](int order) {
    if (order > 0) failed(static_cast<std::size_t>(order));
  });
}

/// C := op(A) B with a triangular A.
template <Scalar T>
void multiply_triangle(CudaQueue& queue, Uplo uplo, Op op, Diag diag, MatrixView<const T> a, MatrixView<const T> b,
                       MatrixView<T> c) {
  const T one(1);
  call_blas<CublasTrmm<T>>(queue, CudaSymbols<T>::trmm, kCublasLeft, cublas_uplo(uplo), cublas_op(op),
                           cublas_diag(diag), blas_int(c.rows), blas_int(c.cols), &one, a.data, blas_ld(a.ld), b.data,
                           blas_ld(b.ld), c.data, blas_ld(c.ld));
}

/// C := A + beta B.
template <Scalar T>
void add(CudaQueue& queue, MatrixView<const T> a, T beta, MatrixView<const T> b, MatrixView<T> c) {
  const T one(1);
  call_blas<CublasGeam<T>>(queue, CudaSymbols<T>::geam, kCublasNoTrans, kCublasNoTrans, blas_int(c.rows),
                           blas_int(c.cols), &one, a.data, blas_ld(a.ld), &beta, b.data, blas_ld(b.ld), c.data,
                           blas_ld(c.ld));
}

/// Memory for two products of a block of at most `ib` reflectors with the columns that it is applied to, side by side.
template <Scalar T>
MatrixView<T> products(CudaQueue& queue, std::size_t ib, std::size_t cols) {
  return {static_cast<T*>(queue.scratch(2 * ib * cols * sizeof(T))), ib, 2 * cols, ib};
}

/// [C0; C1] := op(1 - V T V^H) [C0; C1] (block_reflector.hpp); V = [V0; V1], V0 being the identity, or for a trapezoid
/// unit lower triangular.
template <Scalar T>
void apply_reflectors(CudaQueue& queue, Op op, const Panel<const T>& v, MatrixView<const T> t, MatrixView<T> space,
                      MatrixView<T> c0, MatrixView<T> c1) {
  const MatrixView<T> w = space.block(0, 0, c0.rows, c0.cols), tw = space.block(0, c0.cols, c0.rows, c0.cols);
  if (v.trapezoid) multiply_triangle<T>(queue, Uplo::lower, Op::conj_trans, Diag::unit, v.r, c0, w);
  else add<T>(queue, c0, T(0), c0, w);
  if (!c1.empty()) gemm<T>(queue, Op::conj_trans, Op::no_trans, T(1), v.below, c1, T(1), w);
  multiply_triangle<T>(queue, Uplo::upper, op, Diag::non_unit, t, w, tw);
  gemm<T>(queue, Op::no_trans, Op::no_trans, T(-1), v.below, tw, T(1), c1);
  if (v.trapezoid) multiply_triangle<T>(queue, Uplo::lower, Op::no_trans, Diag::unit, v.r, tw, w);
  add<T>(queue, c0, T(-1), v.trapezoid ? w : tw, c0);
}

#define TANDEM_CUDA_KERNELS(...) #__VA_ARGS__
constexpr const char* kRows =
#include "tandem/linalg/kernels/cuda_rows.inc"
    ;
#undef TANDEM_CUDA_KERNELS

/// Posts one of our own kernels. Data is memory of the device, all else a number of 64 bits.
class RowsLaunch {
 public:
  RowsLaunch& data(const void* address) { return arguments_[count_++] = {address, 0}, *this; }
  RowsLaunch& number(std::size_t value) {
    numbers_[count_] = value;
    arguments_[count_] = {&numbers_[count_], sizeof(std::uint64_t)};
    return ++count_, *this;
  }
  template <Scalar T>
  RowsLaunch& matrix(MatrixView<T> a) { return data(a.data).number(a.ld); }
  void post(CudaQueue& queue, const char* kernel, const CudaRange& range) {
    queue.launch({kRows, kernel, ""}, {arguments_.data(), count_}, range);
  }

 private:
  std::array<CudaArgument, 9> arguments_;
  std::array<std::uint64_t, 9> numbers_{};
  std::size_t count_ = 0;
};

}  // namespace

template <Scalar T>
void gemm(CudaQueue& queue, Op op_a, Op op_b, std::type_identity_t<T> alpha,
          std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<MatrixView<const T>> b,
          std::type_identity_t<T> beta, MatrixView<T> c) {
  if (c.empty()) return;
  call_blas<CublasGemm<T>>(queue, CudaSymbols<T>::gemm, cublas_op(op_a), cublas_op(op_b), blas_int(c.rows),
                           blas_int(c.cols), blas_int(op_cols(op_a, a.rows, a.cols)), &alpha, a.data, blas_ld(a.ld),
                           b.data, blas_ld(b.ld), &beta, c.data, blas_ld(c.ld));
}

template <Scalar T>
void herk(CudaQueue& queue, Uplo uplo, Op op, Real<T> alpha, std::type_identity_t<MatrixView<const T>> a, Real<T> beta,
          MatrixView<T> c) {
  if (c.empty()) return;
  call_blas<CublasHerk<T>>(queue, CudaSymbols<T>::herk, cublas_uplo(uplo), cublas_op(op), blas_int(c.rows),
                           blas_int(op_cols(op, a.rows, a.cols)), &alpha, a.data, blas_ld(a.ld), &beta, c.data,
                           blas_ld(c.ld));
}

template <Scalar T>
void syrk(CudaQueue& queue, Uplo uplo, Op op, std::type_identity_t<T> alpha,
          std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<T> beta, MatrixView<T> c) {
  if (c.empty()) return;
  call_blas<CublasSyrk<T>>(queue, CudaSymbols<T>::syrk, cublas_uplo(uplo), cublas_op(op), blas_int(c.rows),
                           blas_int(op_cols(op, a.rows, a.cols)), &alpha, a.data, blas_ld(a.ld), &beta, c.data,
                           blas_ld(c.ld));
}

template <Scalar T>
void trsm(CudaQueue& queue, Side side, Uplo uplo, Op op, Diag diag, std::type_identity_t<T> alpha,
          std::type_identity_t<MatrixView<const T>> a, MatrixView<T> b) {
  if (b.empty()) return;
  call_blas<CublasTrsm<T>>(queue, CudaSymbols<T>::trsm, side == Side::left ? kCublasLeft : kCublasRight,
                           cublas_uplo(uplo), cublas_op(op), cublas_diag(diag), blas_int(b.rows), blas_int(b.cols),
                           &alpha, a.data, blas_ld(a.ld), b.data, blas_ld(b.ld));
}

template <Scalar T>
void potrf(CudaQueue& queue, Uplo uplo, MatrixView<T> a, std::function<void(std::size_t)> failed) {
  if (a.empty()) return;
  const int n = blas_int(a.rows), ld = blas_ld(a.ld);
  int count = 0;
  call_solver<CusolverPotrfSize<T>>(queue, CudaSymbols<T>::potrf_size, cublas_uplo(uplo), n, a.data, ld, &count);
  const Workspace<T> space(queue, count);
  call_solver<CusolverPotrf<T>>(queue, CudaSymbols<T>::potrf, cublas_uplo(uplo), n, a.data, ld, space.elements, count,
                                space.info);
  report(queue, space.info, std::move(failed));
}

template <Scalar T>
void getrf_nopiv(CudaQueue& queue, MatrixView<T> a, std::function<void(std::size_t)> failed) {
  if (a.empty()) return;
  const int m = blas_int(a.rows), n = blas_int(a.cols), ld = blas_ld(a.ld);
  int count = 0;
  call_solver<CusolverGetrfSize<T>>(queue, CudaSymbols<T>::getrf_size, m, n, a.data, ld, &count);
  const Workspace<T> space(queue, count);
  call_solver<CusolverGetrf<T>>(queue, CudaSymbols<T>::getrf, m, n, a.data, ld, space.elements, nullptr, space.info);
  report(queue, space.info, std::move(failed));
}

template <Scalar T>
void laswp(CudaQueue& queue, std::span<const std::size_t> interchanges, MatrixView<T> a) {
  if (a.empty() || interchanges.empty()) return;
  constexpr std::size_t threads = 128, most_shared = 48 << 10;  // bytes that every device gives a block
  const std::size_t bytes = a.rows * sizeof(T);
  const bool is_shared = bytes <= most_shared;
  CudaRange range(threads * a.cols);
  range.block = {threads, 1, 1};
  range.shared_bytes = is_shared ? static_cast<unsigned>(bytes) : 0;
  RowsLaunch().data(interchanges.data()).number(interchanges.size()).matrix(a).number(is_shared ? a.rows : 0).post(queue, CudaSymbols<T>::laswp, range);
}

template <Scalar T>
void exchange_rows(CudaQueue& queue, std::span<const std::size_t> partners, std::size_t first, MatrixView<T> a,
                   MatrixView<T> b) {
  if (a.empty() || b.empty() || partners.empty()) return;
  CudaRange range(partners.size(), a.cols);
  range.block = {32, 8, 1};
  RowsLaunch()
      .data(partners.data())
      .number(partners.size())
      .number(first)
      .matrix(a)
      .data(b.data)
      .number(b.rows)
      .number(b.ld)
      .number(a.cols)
      .post(queue, CudaSymbols<T>::exchange_rows, range);
}

template <Scalar T>
void unmqr(CudaQueue& queue, Op op, std::type_identity_t<MatrixView<const T>> v,
           std::type_identity_t<MatrixView<const T>> t, MatrixView<T> c) {
  const std::size_t reflectors = std::min(v.rows, v.cols);
  if (c.empty() || reflectors == 0) return;
  const MatrixView<T> space = products<T>(queue, t.rows, c.cols);
  for_each_block(op, reflectors, t.rows, [&](std::size_t p, std::size_t k) {
    apply_reflectors<T>(queue, op, trapezoid_panel(v, p, k), t.block(0, p, k, k), space, c.block(p, 0, k, c.cols),
                        c.block(p + k, 0, c.rows - p - k, c.cols));
  });
}

template <Scalar T>
void tpmqrt(CudaQueue& queue, Op op, std::type_identity_t<MatrixView<const T>> v,
            std::type_identity_t<MatrixView<const T>> t, MatrixView<T> a, MatrixView<T> b) {
  if (a.empty() || v.cols == 0) return;
  const MatrixView<T> space = products<T>(queue, t.rows, a.cols);
  for_each_block(op, v.cols, t.rows, [&](std::size_t p, std::size_t k) {
    const Panel<const T> panel{.r = {nullptr, k, k, k}, .below = v.block(0, p, v.rows, k)};
    apply_reflectors<T>(queue, op, panel, t.block(0, p, k, k), space, a.block(p, 0, k, a.cols), b);
  });
}

#define INSTANTIATE(T)                                                                                                 \
  template void gemm<T>(CudaQueue&, Op, Op, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>);            \
  template void herk<T>(CudaQueue&, Uplo, Op, Real<T>, MatrixView<const T>, Real<T>, MatrixView<T>);                   \
  template void syrk<T>(CudaQueue&, Uplo, Op, T, MatrixView<const T>, T, MatrixView<T>);                               \
  template void trsm<T>(CudaQueue&, Side, Uplo, Op, Diag, T, MatrixView<const T>, MatrixView<T>);                      \
  template void potrf<T>(CudaQueue&, Uplo, MatrixView<T>, std::function<void(std::size_t)>);                           \
  template void getrf_nopiv<T>(CudaQueue&, MatrixView<T>, std::function<void(std::size_t)>);                           \
  template void laswp<T>(CudaQueue&, std::span<const std::size_t>, MatrixView<T>);                                     \
  template void exchange_rows<T>(CudaQueue&, std::span<const std::size_t>, std::size_t, MatrixView<T>, MatrixView<T>); \
  template void unmqr<T>(CudaQueue&, Op, MatrixView<const T>, MatrixView<const T>, MatrixView<T>);                     \
  template void tpmqrt<T>(CudaQueue&, Op, MatrixView<const T>, MatrixView<const T>, MatrixView<T>, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels::cuda
