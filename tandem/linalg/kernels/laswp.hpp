// tandem/linalg/kernels/laswp.hpp: exchanges of rows.
#pragma once

#include <cstddef>
#include <span>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// For t = 0, 1, ...: exchanges rows t and interchanges[t] of A (LAPACK's laswp, counted from 0). Sequential, allocates
/// nothing.
template <Scalar T>
void laswp(std::span<const std::size_t> interchanges, MatrixView<T> a);

/// For each t: exchanges row t of A with row partners[t] - first of B, if B has that row. A and B have as many columns;
/// no two partners are the same row of B. Without partners in B it returns at once. Sequential, allocates nothing.
template <Scalar T>
void exchange_rows(std::span<const std::size_t> partners, std::size_t first, MatrixView<T> a, MatrixView<T> b);

}  // namespace tandem::linalg::kernels
