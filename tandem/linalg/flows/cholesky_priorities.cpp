// tandem/linalg/flows/cholesky_priorities.cpp: the recursion, from the last step back.
#include "tandem/linalg/flows/cholesky_priorities.hpp"

#include <algorithm>

namespace tandem::linalg {

CholeskyPriorities::CholeskyPriorities(std::size_t tiles) : tiles_(tiles), potrf_(tiles, 1), trsm_(tiles * tiles, 0) {
  for (std::size_t k = tiles; k-- > 0;) {
    for (std::size_t m = k + 1; m < tiles; ++m) {
      int after = herk(k, m);
      for (std::size_t n = k + 1; n < m; ++n) after = std::max(after, gemm(k, m, n));
      for (std::size_t i = m + 1; i < tiles; ++i) after = std::max(after, gemm(k, i, m));
      trsm_[k * tiles_ + m] = 3 + after;
      potrf_[k] = std::max(potrf_[k], 1 + 3 + after);
    }
  }
}

}  // namespace tandem::linalg
