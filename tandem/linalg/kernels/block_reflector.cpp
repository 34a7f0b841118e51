// tandem/linalg/kernels/block_reflector.cpp: recursive factorisation of a panel, and the application of its reflectors
// by gemm.
//
// Halves of a panel are factorised and joined (Elmroth, Gustavson: Applying recursion to serial and parallel QR
// factorization leads to better performance, IBM J. Res. Dev. 44, 2000):
//   Q_1^H [A_1 A_2] = [R_11 R_12; 0 A'_2],   Q_2^H A'_2 = [R_22; 0],   T = [T_1  -T_1 (V_1^H V_2) T_2; 0  T_2].
#include "tandem/linalg/kernels/block_reflector.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/norms.hpp"

namespace tandem::linalg::internal {
namespace {

using kernels::gemm;

constexpr Op no_trans = Op::no_trans, conj_trans = Op::conj_trans;

/// Columns of C that are processed at once, so that W = V^H C stays in the near caches. Fewer in real types, where V
/// and C are multiplied in place (gemm_blocking.hpp); in complex types each product packs V anew.
template <Scalar T>
constexpr std::size_t strip = is_complex<T> ? 128 : 48;

// Level 2 of the BLAS, which only the leaf needs: y := A^H x, and A := A - x y^T.
void multiply_conj_trans(int m, int n, const float* a, int lda, const float* x, float* y) {
  cblas_sgemv(CblasColMajor, CblasTrans, m, n, 1, a, lda, x, 1, 0, y, 1);
}
void multiply_conj_trans(int m, int n, const double* a, int lda, const double* x, double* y) {
  cblas_dgemv(CblasColMajor, CblasTrans, m, n, 1, a, lda, x, 1, 0, y, 1);
}
void multiply_conj_trans(int m, int n, const std::complex<float>* a, int lda, const std::complex<float>* x,
                         std::complex<float>* y) {
  const std::complex<float> one = 1, zero = 0;
  cblas_cgemv(CblasColMajor, CblasConjTrans, m, n, &one, a, lda, x, 1, &zero, y, 1);
}
void multiply_conj_trans(int m, int n, const std::complex<double>* a, int lda, const std::complex<double>* x,
                         std::complex<double>* y) {
  const std::complex<double> one = 1, zero = 0;
  cblas_zgemv(CblasColMajor, CblasConjTrans, m, n, &one, a, lda, x, 1, &zero, y, 1);
}

void subtract_outer(int m, int n, const float* x, const float* y, float* a, int lda) {
  cblas_sger(CblasColMajor, m, n, -1, x, 1, y, 1, a, lda);
}
void subtract_outer(int m, int n, const double* x, const double* y, double* a, int lda) {
  cblas_dger(CblasColMajor, m, n, -1, x, 1, y, 1, a, lda);
}
void subtract_outer(int m, int n, const std::complex<float>* x, const std::complex<float>* y, std::complex<float>* a,
                    int lda) {
  const std::complex<float> minus_one = -1;
  cblas_cgeru(CblasColMajor, m, n, &minus_one, x, 1, y, 1, a, lda);
}
void subtract_outer(int m, int n, const std::complex<double>* x, const std::complex<double>* y, std::complex<double>* a,
                    int lda) {
  const std::complex<double> minus_one = -1;
  cblas_zgeru(CblasColMajor, m, n, &minus_one, x, 1, y, 1, a, lda);
}

float sum_of_squares(int n, const float* x) { return cblas_sdot(n, x, 1, x, 1); }
double sum_of_squares(int n, const double* x) { return cblas_ddot(n, x, 1, x, 1); }

/// A small matrix on the stack.
template <Scalar T, std::size_t max_rows, std::size_t max_cols>
class Local {
 public:
  Local(std::size_t rows, std::size_t cols) noexcept : view_{reinterpret_cast<T*>(storage_), rows, cols, max_rows} {
    TANDEM_DEBUG_ASSERT(rows <= max_rows && cols <= max_cols);
  }
  operator MatrixView<T>() noexcept { return view_; }
  MatrixView<T> view() noexcept { return view_; }

 private:
  alignas(
      64) std::byte storage_[max_rows * max_cols * sizeof(T)];  // an array of std::complex would be filled with zeros
  MatrixView<T> view_;
};

/// A square with ones on the diagonal, zeros above it, and the elements of `stored` below it.
template <Scalar T>
void copy_unit_lower(MatrixView<const T> stored, MatrixView<T> v0) noexcept {
  for (std::size_t j = 0; j < v0.cols; ++j) {
    for (std::size_t i = 0; i < j; ++i) v0(i, j) = T(0);
    v0(j, j) = T(1);
    for (std::size_t i = j + 1; i < v0.rows; ++i) v0(i, j) = stored(i, j);
  }
}

/// ||x||_2 of a column. The plain sum of squares is right while it is finite and far above what its terms lose by underflow.
template <Scalar T>
Real<T> column_norm(MatrixView<const T> x) {
  using R = Real<T>;
  constexpr R least =
      std::numeric_limits<R>::min() / (std::numeric_limits<R>::epsilon() * std::numeric_limits<R>::epsilon());
  const std::size_t parts = x.rows * (is_complex<T> ? 2 : 1);
  const R sum = sum_of_squares(blas_int(parts), reinterpret_cast<const R*>(x.data));
  return sum >= least && sum <= std::numeric_limits<R>::max() ? std::sqrt(sum) : kernels::lange(Norm::frobenius, x);
}

template <Scalar T>
void scale(T factor, MatrixView<T> x) noexcept {
  for (std::size_t i = 0; i < x.rows; ++i) x(i, 0) = multiply(factor, x(i, 0));
}

/// LAPACK's larfg: H^H [alpha; x] = [beta; 0] with real beta, H = 1 - tau [1; v] [1; v]^H. v replaces x, beta alpha.
/// Returns tau.
template <Scalar T>
T make_reflector(T& alpha, MatrixView<T> x) {
  using R = Real<T>;
  R norm = column_norm<T>(x);
  if (norm == 0 && alpha == T(real_part(alpha))) return T(0);
  // 1 / least is finite, and least has all its digits left.
  constexpr R least = std::numeric_limits<R>::min() / epsilon<T>;
  const auto signed_norm = [&] { return -std::copysign(std::hypot(std::abs(alpha), norm), real_part(alpha)); };
  R beta = signed_norm();
  int scalings = 0;
  for (; std::abs(beta) < least && scalings < 20; ++scalings) {
    scale(T(1 / least), x);
    alpha *= T(1 / least);
    norm = column_norm<T>(x);
    beta = signed_norm();
  }
  const T tau = (T(beta) - alpha) / beta;
  scale(T(1) / (alpha - T(beta)), x);
  for (; scalings > 0; --scalings) beta *= least;
  alpha = T(beta);
  return tau;
}

/// Panels of at most this many columns are factorised column by column: products of smaller matrices cost more than
/// they save.
constexpr std::size_t leaf = 8;

/// LAPACK's geqr2 and larft in one: column j of T comes from the same product V^H v_j that updates the columns to the
/// right.
template <Scalar T>
void factorise_leaf(const Panel<T>& panel, MatrixView<T> t) {
  const std::size_t k = panel.count();
  T products[leaf], w[leaf];
  for (std::size_t j = 0; j < k; ++j) {
    // Row j of R is the one of v_j that holds 1; `rows` is all that follows.
    const MatrixView<T> rows = panel.rest(0, k, j + 1), v = rows.block(0, j, rows.rows, 1);
    const int m = blas_int(rows.rows), ld = blas_ld(rows.ld);
    const T tau = make_reflector(panel.r(j, j), v);
    std::fill_n(products, k, T(0));
    if (m > 0) multiply_conj_trans(m, blas_int(k), rows.data, ld, v.data, products);
    // a_l := a_l - v_j conj(tau) (v_j^H a_l) for the columns that follow
    for (std::size_t l = j + 1; l < k; ++l) {
      w[l] = multiply(conj(tau), panel.r(j, l) + conj(products[l]));
      panel.r(j, l) -= w[l];
    }
    if (m > 0 && j + 1 < k) subtract_outer(m, blas_int(k - j - 1), v.data, w + j + 1, &rows(0, j + 1), ld);
    // t_j := -tau T (V^H v_j) for the columns before
    if (panel.trapezoid)
      for (std::size_t i = 0; i < j; ++i) products[i] += conj(panel.r(j, i));
    for (std::size_t i = 0; i < j; ++i) {
      T sum{};
      for (std::size_t l = i; l < j; ++l) sum += multiply(t(i, l), products[l]);
      t(i, j) = -multiply(tau, sum);
    }
    t(j, j) = tau;
    std::fill_n(&t(j, j) + 1, k - j - 1, T(0));
  }
}

/// T_12 := -T_1 (V_1^H V_2) T_2 for the parts of a panel, of which the first has k1 columns.
template <Scalar T>
void join(const Panel<T>& panel, std::size_t k1, MatrixView<T> t) {
  const std::size_t k2 = panel.count() - k1, m = panel.below.rows;
  constexpr std::size_t half = block_reflector_max / 2;
  Local<T, half, half> product(k1, k2), times_t2(k1, k2);
  T beta = T(0);
  if (panel.trapezoid) {
    Local<T, half, half> v0(k2, k2);
    copy_unit_lower<T>(panel.r.block(k1, k1, k2, k2), v0);
    gemm<T>(conj_trans, no_trans, T(1), panel.r.block(k1, 0, k2, k1), v0.view(), T(0), product.view());
    beta = T(1);
  }
  gemm<T>(conj_trans, no_trans, T(1), panel.below.block(0, 0, m, k1), panel.below.block(0, k1, m, k2), beta,
          product.view());
  gemm<T>(no_trans, no_trans, T(1), product.view(), t.block(k1, k1, k2, k2), T(0), times_t2.view());
  gemm<T>(no_trans, no_trans, T(-1), t.block(0, 0, k1, k1), times_t2.view(), T(0), t.block(0, k1, k1, k2));
}

}  // namespace

template <Scalar T>
void factorise_panel(const Panel<T>& panel, MatrixView<T> t) {
  const std::size_t k = panel.count();
  TANDEM_DEBUG_ASSERT(k <= block_reflector_max && t.rows == k && t.cols == k);
  if (k == 0) return;
  if (k <= leaf) return factorise_leaf(panel, t);
  const std::size_t k1 = k / 2, k2 = k - k1;
  const Panel<T> first = panel.left(k1), second = panel.right(k1);
  const auto t1 = t.block(0, 0, k1, k1), t2 = t.block(k1, k1, k2, k2);
  factorise_panel(first, t1);
  apply_reflectors<T>(conj_trans, first, t1, panel.r.block(0, k1, k1, k2), panel.rest(k1, k2, k1));
  factorise_panel(second, t2);
  join(panel, k1, t);
  for (std::size_t j = 0; j < k1; ++j) std::fill_n(&t(k1, j), k2, T(0));
}

template <Scalar T>
void apply_reflectors(Op op, const Panel<const T>& v, MatrixView<const T> t, MatrixView<T> c0, MatrixView<T> c1) {
  const std::size_t k = v.count();
  TANDEM_DEBUG_ASSERT(k <= block_reflector_max && c0.rows == k && c1.rows == v.below.rows && c0.cols == c1.cols);
  if (k == 0 || c0.cols == 0) return;
  Local<T, block_reflector_max, block_reflector_max> v0(k, k);
  if (v.trapezoid) copy_unit_lower<T>(v.r, v0);
  for (std::size_t j = 0; j < c0.cols; j += strip<T>) {
    const std::size_t n = std::min(strip<T>, c0.cols - j);
    const MatrixView<T> top = c0.block(0, j, k, n), rest = c1.block(0, j, c1.rows, n);
    Local<T, block_reflector_max, strip<T>> w(k, n), tw(k, n);
    // W := V^H C
    if (v.trapezoid) {
      gemm<T>(conj_trans, no_trans, T(1), v0.view(), top, T(0), w.view());
    } else {
      for (std::size_t l = 0; l < n; ++l) std::copy_n(&top(0, l), k, &w.view()(0, l));
    }
    gemm<T>(conj_trans, no_trans, T(1), v.below, rest, T(1), w.view());
    // C := C - V op(T) W
    gemm<T>(op, no_trans, T(1), t, w.view(), T(0), tw.view());
    if (v.trapezoid) {
      gemm<T>(no_trans, no_trans, T(-1), v0.view(), tw.view(), T(1), top);
    } else {
      for (std::size_t l = 0; l < n; ++l)
        for (std::size_t i = 0; i < k; ++i) top(i, l) -= tw.view()(i, l);
    }
    // Not in gemm's blocks: for so few columns and terms the BLAS is faster when it gets all rows at once.
    if (rest.rows > 0) {
      blas_gemm(CblasNoTrans, CblasNoTrans, blas_int(rest.rows), blas_int(n), blas_int(k), T(-1), v.below.data,
                blas_ld(v.below.ld), tw.view().data, blas_ld(tw.view().ld), T(1), rest.data, blas_ld(rest.ld));
    }
  }
}

#define INSTANTIATE(T)                                                      \
  template void factorise_panel<T>(const Panel<T>&, MatrixView<T>);         \
  template void apply_reflectors<T>(Op, const Panel<const T>&, MatrixView<const T>, MatrixView<T>, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::internal
