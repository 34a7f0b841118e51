// tandem/linalg/kernels/norms.cpp: norms by their definitions.
#include "tandem/linalg/kernels/norms.hpp"

#include <cmath>
#include <vector>

#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg::kernels {
namespace {

using namespace internal;

/// A larger of two that keeps a NaN, which std::max loses.
template <class R>
R larger(R a, R b) noexcept {
  return a > b || std::isnan(a) ? a : b;
}

template <class R>
R largest(std::span<const R> values) noexcept {
  R result = 0;
  for (const R value : values) result = larger(result, value);
  return result;
}

/// sqrt(sum x^2) as scale * sqrt(sum (x / scale)^2), with the largest |x| so far as the scale (LAPACK's lassq).
template <class R>
class SumOfSquares {
 public:
  void add(R x, R times = 1) noexcept {
    const R size = std::abs(x);
    if (size == 0) return;
    if (scale_ < size) {
      sum_ = times + sum_ * (scale_ / size) * (scale_ / size);
      scale_ = size;
    } else {
      // A NaN is added here, too, and stays in the sum.
      sum_ += times * (size / scale_) * (size / scale_);
    }
  }
  template <class T>
  void add_element(T x, R times = 1) noexcept {
    add(real_part(x), times);
    if constexpr (is_complex<T>) add(x.imag(), times);
  }
  R root() const noexcept { return scale_ * std::sqrt(sum_); }

 private:
  R scale_ = 0;
  R sum_ = 0;
};

}  // namespace

template <Scalar T>
void add_column_sums(std::type_identity_t<MatrixView<const T>> a, std::span<Real<T>> sums) {
  TANDEM_DEBUG_ASSERT(sums.size() == a.cols);
  for (std::size_t j = 0; j < a.cols; ++j)
    for (std::size_t i = 0; i < a.rows; ++i) sums[j] += std::abs(a(i, j));
}

template <Scalar T>
void add_row_sums(std::type_identity_t<MatrixView<const T>> a, std::span<Real<T>> sums) {
  TANDEM_DEBUG_ASSERT(sums.size() == a.rows);
  for (std::size_t j = 0; j < a.cols; ++j)
    for (std::size_t i = 0; i < a.rows; ++i) sums[i] += std::abs(a(i, j));
}

template <Scalar T>
void add_hermitian_sums(Uplo uplo, std::type_identity_t<MatrixView<const T>> a, std::span<Real<T>> sums) {
  TANDEM_DEBUG_ASSERT(sums.size() == a.cols && a.rows == a.cols && uplo != Uplo::general);
  for (std::size_t j = 0; j < a.cols; ++j) {
    const std::size_t first = uplo == Uplo::lower ? j + 1 : 0;
    const std::size_t last = uplo == Uplo::lower ? a.rows : j;
    for (std::size_t i = first; i < last; ++i) {
      const Real<T> size = std::abs(a(i, j));
      sums[i] += size;
      sums[j] += size;
    }
    sums[j] += std::abs(real_part(a(j, j)));
  }
}

template <Scalar T>
Real<T> lange(Norm norm, MatrixView<const T> a) {
  using R = Real<T>;
  R result = 0;
  switch (norm) {
    case Norm::max:
      for (std::size_t j = 0; j < a.cols; ++j)
        for (std::size_t i = 0; i < a.rows; ++i) result = larger(result, R(std::abs(a(i, j))));
      return result;
    case Norm::one:
      for (std::size_t j = 0; j < a.cols; ++j) {
        R sum = 0;
        add_column_sums<T>(a.block(0, j, a.rows, 1), std::span(&sum, 1));
        result = larger(result, sum);
      }
      return result;
    case Norm::inf: {
      std::vector<R> sums(a.rows);
      add_row_sums<T>(a, sums);
      return largest<R>(sums);
    }
    case Norm::frobenius: {
      SumOfSquares<R> squares;
      for (std::size_t j = 0; j < a.cols; ++j)
        for (std::size_t i = 0; i < a.rows; ++i) squares.add_element(a(i, j));
      return squares.root();
    }
  }
  return result;
}

template <Scalar T>
Real<T> lanhe(Norm norm, Uplo uplo, MatrixView<const T> a) {
  using R = Real<T>;
  TANDEM_DEBUG_ASSERT(a.rows == a.cols && uplo != Uplo::general);
  if (norm == Norm::one || norm == Norm::inf) {
    std::vector<R> sums(a.cols);
    add_hermitian_sums<T>(uplo, a, sums);
    return largest<R>(sums);
  }
  R maximum = 0;
  SumOfSquares<R> squares;
  for (std::size_t j = 0; j < a.cols; ++j) {
    const std::size_t first = uplo == Uplo::lower ? j + 1 : 0;
    const std::size_t last = uplo == Uplo::lower ? a.rows : j;
    for (std::size_t i = first; i < last; ++i) {
      maximum = larger(maximum, R(std::abs(a(i, j))));
      squares.add_element(a(i, j), R(2));
    }
    maximum = larger(maximum, std::abs(real_part(a(j, j))));
    squares.add(real_part(a(j, j)));
  }
  return norm == Norm::max ? maximum : squares.root();
}

#define INSTANTIATE(T)                                                                  \
  template Real<T> lange<T>(Norm, MatrixView<const T>);                                 \
  template Real<T> lanhe<T>(Norm, Uplo, MatrixView<const T>);                           \
  template void add_column_sums<T>(MatrixView<const T>, std::span<Real<T>>);            \
  template void add_row_sums<T>(MatrixView<const T>, std::span<Real<T>>);               \
  template void add_hermitian_sums<T>(Uplo, MatrixView<const T>, std::span<Real<T>>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
