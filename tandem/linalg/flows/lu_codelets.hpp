// tandem/linalg/flows/lu_codelets.hpp: the tile kernels of LU factorisations as codelets. Private to the flows.
#pragma once

#include <numeric>
#include <span>

#include "tandem/api/codelet.hpp"
#include "tandem/api/cuda_kernel.hpp"
#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/flows/row_exchanges.hpp"
#include "tandem/linalg/kernels/cuda.hpp"
#include "tandem/linalg/kernels/getrf_nopiv.hpp"
#include "tandem/linalg/kernels/laset.hpp"
#include "tandem/linalg/kernels/laswp.hpp"
#include "tandem/linalg/kernels/tournament.hpp"
#include "tandem/linalg/types.hpp"

namespace tandem::linalg::internal {

using Indices = std::span<std::size_t>;
using ConstIndices = std::span<const std::size_t>;

/// Factorises the diagonal tile whose first row is row `first` of the matrix.
template <Scalar T>
const auto& getrf_nopiv_codelet() {
  static const auto codelet = counted<T>("getrf", [](std::size_t first, MatrixView<T> a, Info* info) {
    if (skipped(info)) return;
    if (const std::size_t order = kernels::getrf_nopiv(a); order != 0) info->fail(first + order);
  }).cuda([](CudaQueue& queue, std::size_t first, MatrixView<T> a, Info* info) {
    if (!skipped(info)) kernels::cuda::getrf_nopiv(queue, a, [first, info](std::size_t order) { info->fail(first + order); });
  }).prefer_devices();
  return codelet;
}

// Matches. Their scratch memory is one matrix and one vector: MatchMemory has the size, and match_space divides them.

/// With as many rows as a match has candidates, columns would lie at distances of a power of two, all in one set of a
/// cache.
inline constexpr std::size_t match_padding = 8;

template <Scalar T>
kernels::MatchSpace<T> match_space(std::size_t count, MatrixView<T> values, Indices numbers) noexcept {
  return {values, numbers.first(count), numbers.subspan(count)};
}

/// Returns at once after a failure, but leaves valid candidates, with distinct rows of the panel, for later tasks.
template <Scalar T>
void forfeit(std::size_t first, MatrixView<T> winners, Indices rows) noexcept {
  kernels::laset(Uplo::general, T(0), T(0), winners);
  std::iota(rows.begin(), rows.end(), first);
}

/// Rows `first`, ... of the panel are those of tile a and then of tile b.
template <Scalar T>
const auto& first_match_codelet() {
  static const Codelet codelet(
      "tournament", [](std::size_t first, MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> winners,
                       Indices rows, MatrixView<T> values, Indices numbers, const Info* info) {
        if (skipped(info)) return forfeit(first, winners, rows);
        kernels::play_first_match<T>({a, first}, {b, first + a.rows}, {winners, rows},
                                     match_space(a.rows + b.rows, values, numbers));
      });
  return codelet;
}

/// A match for the last tile of an odd number.
template <Scalar T>
const auto& lone_match_codelet() {
  static const Codelet codelet("tournament", [](std::size_t first, MatrixView<const T> a, MatrixView<T> winners,
                                                Indices rows, MatrixView<T> values, Indices numbers, const Info* info) {
    if (skipped(info)) return forfeit(first, winners, rows);
    kernels::play_first_match<T>({a, first}, {}, {winners, rows}, match_space(a.rows, values, numbers));
  });
  return codelet;
}

template <Scalar T>
const auto& match_codelet() {
  static const Codelet codelet("tournament", [](MatrixView<T> a, Indices rows_a, MatrixView<const T> b,
                                                ConstIndices rows_b,
                                                MatrixView<T> values, Indices numbers, const Info* info) {
    if (!skipped(info))
      kernels::play_match<T>({a, rows_a}, {b, rows_b}, match_space(rows_a.size() + rows_b.size(), values, numbers));
  });
  return codelet;
}

/// Converts the root's winners to the form of TiledPivots.
inline const auto& pivots_codelet() {
  static const Codelet codelet("pivots", [](ConstIndices winners, Indices interchanges, Indices exchanges) {
    interchanges_of(winners, interchanges);
    split_interchanges(interchanges, exchanges.first(exchanges.size() / 2), exchanges.last(exchanges.size() / 2));
  });
  return codelet;
}

/// Exchanges rows of tile a, the panel's first, and tile b, whose first row is the panel's row `first`.
template <Scalar T>
const auto& exchange_codelet() {
  static const auto codelet = Codelet("laswp", [](ConstIndices exchanges, std::size_t first, MatrixView<T> a,
                                                  MatrixView<T> b, const Info* info) {
    if (!skipped(info)) kernels::exchange_rows(exchanges.first(exchanges.size() / 2), first, a, b);
  }).cuda([](CudaQueue& queue, ConstIndices exchanges, std::size_t first, MatrixView<T> a, MatrixView<T> b, const Info* info) {
    if (!skipped(info)) kernels::cuda::exchange_rows(queue, exchanges.first(exchanges.size() / 2), first, a, b);
  }).prefer_devices();
  return codelet;
}

/// Interchanges rows within the panel's first tile, which remains to be done.
template <Scalar T>
const auto& interchange_codelet() {
  static const auto codelet = Codelet("laswp", [](ConstIndices exchanges, MatrixView<T> a, const Info* info) {
    if (!skipped(info)) kernels::laswp(exchanges.last(exchanges.size() / 2), a);
  }).cuda([](CudaQueue& queue, ConstIndices exchanges, MatrixView<T> a, const Info* info) {
    if (!skipped(info)) kernels::cuda::laswp(queue, exchanges.last(exchanges.size() / 2), a);
  }).prefer_devices();
  return codelet;
}

}  // namespace tandem::linalg::internal
