// tandem/model/cholesky.hpp: small symmetric systems of linear equations. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tandem::model {

/// Cholesky's factor of a symmetric matrix of order n, in place in the lower triangle. A pivot below `least_pivot` is
/// replaced by it, for matrices that are positive definite but for rounding. False: it is not positive definite.
inline bool factor(std::vector<double>& a, std::size_t n, double least_pivot = 0) {
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k)
      for (std::size_t i = j; i < n; ++i) a[i * n + j] -= a[i * n + k] * a[j * n + k];
    const double pivot = std::max(a[j * n + j], least_pivot);
    if (!(pivot > 0)) return false;
    const double root = std::sqrt(pivot);
    a[j * n + j] = root;
    for (std::size_t i = j + 1; i < n; ++i) a[i * n + j] /= root;
  }
  return true;
}

/// Solves l l^T x = x, with `l` from `factor`.
inline void solve(const std::vector<double>& l, std::size_t n, std::vector<double>& x) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) x[i] -= l[i * n + k] * x[k];
    x[i] /= l[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= l[k * n + i] * x[k];
    x[i] /= l[i * n + i];
  }
}

}  // namespace tandem::model
