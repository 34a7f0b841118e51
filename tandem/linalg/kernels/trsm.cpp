// tandem/linalg/kernels/trsm.cpp: recursive trsm: halves of the triangle joined by gemm, down to strips in registers.
//
// For X L^H = B, with L = [L11 0; L21 L22] and B = [B1 B2]:
//   X1 L11^H = B1,   B2 := B2 - X1 L21^H,   X2 L22^H = B2,
// and likewise for every side, triangle and op. All but a part b/n of the work is then gemm's.
//
// Why not the library's trsm at the leaves: OpenBLAS 0.3.21 solves order-32 triangles at a quarter of gemm's rate on
// Zen 4. Why not inverses of diagonal blocks: the error would grow with the condition of the block (Higham, Accuracy
// and Stability of Numerical Algorithms, 2nd ed., section 14.2), and Gaussian-process matrices are badly conditioned.
// The leaf substitutes.
#include "tandem/linalg/kernels/trsm.hpp"

#include <algorithm>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/strip_solve.hpp"

namespace tandem::linalg::kernels {
namespace {

using namespace internal;

template <Scalar T>
struct Problem {
  Side side;
  Uplo uplo;
  Op op;
  Diag diag;
  MatrixView<const T> a;

  /// Whether op(A) is lower triangular.
  bool op_is_lower() const noexcept { return (uplo == Uplo::lower) == (op == Op::no_trans); }
  /// Whether unknown 0 is found first: op(A) X = B goes down a lower triangle, X op(A) = B goes right along an upper
  /// one.
  bool forward() const noexcept { return op_is_lower() == (side == Side::left); }

  Problem diagonal_block(std::size_t at, std::size_t order) const noexcept {
    return {side, uplo, op, diag, a.block(at, at, order, order)};
  }
};

/// Elements of op(A) in the order of elimination: every problem becomes X W = B with W upper triangular, where X is
/// transposed for Side::left and its unknowns are reversed when the last one is found first.
template <Scalar T>
struct PackedTriangle {
  static constexpr std::size_t planes = is_complex<T> ? 2 : 1;
  alignas(64) Real<T> w[planes][strip_columns_max * strip_columns_max];
  std::size_t order = 0;
  std::size_t columns = 0;

  explicit PackedTriangle(const Problem<T>& p) noexcept {
    order = p.a.rows;
    columns = (order + strip_column_step - 1) / strip_column_step * strip_column_step;
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t k = 0; k <= j; ++k) set(k, j, j < order ? coefficient(p, k, j) : T(k == j ? 1 : 0));
    }
  }

 private:
  void set(std::size_t k, std::size_t j, T value) noexcept {
    w[0][k + j * columns] = real_part(value);
    if constexpr (is_complex<T>) w[1][k + j * columns] = value.imag();
  }

  /// w_kj for k < j; for k = j its reciprocal.
  T coefficient(const Problem<T>& p, std::size_t k, std::size_t j) const noexcept {
    if (k == j && p.diag == Diag::unit) return T(1);
    const std::size_t from = p.forward() ? k : order - 1 - k;
    const std::size_t to = p.forward() ? j : order - 1 - j;
    // X op(A) = B needs op(A)(from, to); op(A) X = B, transposed, needs op(A)(to, from).
    const bool stored_as_is = (p.op == Op::no_trans) == (p.side == Side::right);
    const T stored = stored_as_is ? p.a(from, to) : p.a(to, from);
    const T value = p.op == Op::conj_trans ? conj(stored) : stored;
    return k == j ? T(1) / value : value;
  }
};

/// One strip of B, in planes, with its unknowns in the order of elimination.
template <Scalar T>
class Strip {
 public:
  Strip(const Problem<T>& p, const PackedTriangle<T>& triangle, MatrixView<T> b) noexcept
      : b_(b), order_(triangle.order), columns_(triangle.columns), left_(p.side == Side::left), forward_(p.forward()) {}

  /// Solves for the right-hand sides [first, first + count).
  void solve(const PackedTriangle<T>& triangle, std::size_t first, std::size_t count) noexcept {
    load(first, count);
    StripSolve<Real<T>> strip{columns_, {triangle.w[0]}, {x_[0]}};
    if constexpr (is_complex<T>) {
      strip.w[1] = triangle.w[1];
      strip.x[1] = x_[1];
      strip_solve_complex(strip);
    } else {
      strip_solve_real(strip);
    }
    store(first, count);
  }

 private:
  static constexpr std::size_t ld = strip_rows<Real<T>>;

  // The loops follow the columns of B, whichever of its dimensions the unknowns are: along the rows of a tile whose ld
  // is a power of two all lines would fall into one cache set.
  template <class Visit>
  void for_each_element(std::size_t first, std::size_t count, Visit visit) noexcept {
    if (left_) {
      for (std::size_t i = 0; i < count; ++i) {
        T* const column = &b_(0, first + i);
        if (forward_) {
          for (std::size_t j = 0; j < order_; ++j) visit(column[j], i + j * ld);
        } else {
          for (std::size_t j = 0; j < order_; ++j) visit(column[order_ - 1 - j], i + j * ld);
        }
      }
    } else {
      for (std::size_t j = 0; j < order_; ++j) {
        T* const column = &b_(first, forward_ ? j : order_ - 1 - j);
        for (std::size_t i = 0; i < count; ++i) visit(column[i], i + j * ld);
      }
    }
  }

  void load(std::size_t first, std::size_t count) noexcept {
    for_each_element(first, count, [this](const T& value, std::size_t at) {
      x_[0][at] = real_part(value);
      if constexpr (is_complex<T>) x_[1][at] = value.imag();
    });
    // The padding takes part in the arithmetic: it must be finite.
    for (std::size_t j = 0; j < columns_; ++j) {
      for (auto& plane : x_) std::fill(plane + (j < order_ ? count : 0) + j * ld, plane + (j + 1) * ld, Real<T>(0));
    }
  }

  void store(std::size_t first, std::size_t count) noexcept {
    for_each_element(first, count, [this](T& value, std::size_t at) {
      if constexpr (is_complex<T>) {
        value = T(x_[0][at], x_[1][at]);
      } else {
        value = x_[0][at];
      }
    });
  }

  alignas(64) Real<T> x_[PackedTriangle<T>::planes][ld * strip_columns_max];
  MatrixView<T> b_;
  std::size_t order_;
  std::size_t columns_;
  bool left_;
  bool forward_;
};

template <Scalar T>
void solve_leaf(const Problem<T>& p, MatrixView<T> b) {
  const PackedTriangle<T> triangle(p);
  Strip<T> strip(p, triangle, b);
  const std::size_t count = p.side == Side::left ? b.cols : b.rows;
  constexpr std::size_t step = strip_rows<Real<T>>;
  for (std::size_t first = 0; first < count; first += step) strip.solve(triangle, first, std::min(step, count - first));
}

/// B_to := B_to - (the solved part of X) times the off-diagonal block of op(A) that joins them.
template <Scalar T>
void update(const Problem<T>& p, MatrixView<T> solved, std::size_t solved_at, MatrixView<T> to, std::size_t to_at) {
  if (p.side == Side::left) {
    const auto joining = op_block(p.op, p.a, to_at, solved_at, to.rows, solved.rows);
    gemm<T>(p.op, Op::no_trans, T(-1), joining, solved, T(1), to);
  } else {
    const auto joining = op_block(p.op, p.a, solved_at, to_at, solved.cols, to.cols);
    gemm<T>(Op::no_trans, p.op, T(-1), solved, joining, T(1), to);
  }
}

template <Scalar T>
void solve(const Problem<T>& p, MatrixView<T> b) {
  const std::size_t n = p.a.rows;
  if (n <= strip_columns_max) return solve_leaf(p, b);
  // The cut is a multiple of the leaf, so that odd sizes leave one small leaf and not two.
  const std::size_t n1 = (n / 2 + strip_columns_max - 1) / strip_columns_max * strip_columns_max;
  const std::size_t n2 = n - n1;
  const bool left = p.side == Side::left;
  const MatrixView<T> b1 = left ? b.block(0, 0, n1, b.cols) : b.block(0, 0, b.rows, n1);
  const MatrixView<T> b2 = left ? b.block(n1, 0, n2, b.cols) : b.block(0, n1, b.rows, n2);
  const Problem<T> p1 = p.diagonal_block(0, n1), p2 = p.diagonal_block(n1, n2);
  if (p.forward()) {
    solve(p1, b1);
    update(p, b1, 0, b2, n1);
    solve(p2, b2);
  } else {
    solve(p2, b2);
    update(p, b2, n1, b1, 0);
    solve(p1, b1);
  }
}

}  // namespace

template <Scalar T>
void trsm(Side side, Uplo uplo, Op op, Diag diag, std::type_identity_t<T> alpha,
          std::type_identity_t<MatrixView<const T>> a, MatrixView<T> b) {
  TANDEM_DEBUG_ASSERT(uplo != Uplo::general);
  const std::size_t order = side == Side::left ? b.rows : b.cols;
  TANDEM_DEBUG_ASSERT(a.rows >= order && a.cols >= order);
  if (b.empty()) return;
  if (alpha != T(1)) {
    for (std::size_t j = 0; j < b.cols; ++j)
      for (std::size_t i = 0; i < b.rows; ++i) b(i, j) = multiply(alpha, b(i, j));
  }
  solve(Problem<T>{side, uplo, op, diag, a.block(0, 0, order, order)}, b);
}

#define INSTANTIATE(T) template void trsm<T>(Side, Uplo, Op, Diag, T, MatrixView<const T>, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
