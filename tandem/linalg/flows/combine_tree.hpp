// tandem/linalg/flows/combine_tree.hpp: many pieces of data combined into the first, by a tree of tasks. Private to the
// flows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "tandem/api/runtime.hpp"

namespace tandem::linalg::internal {

/// Submits part(0) := part(0) + part(1) + ... + part(count - 1), with `combine(from, into)` for the addition, in
/// ceil(log2(count)) rounds: with h the largest power of two below count, part(i) takes part(i + h) for all i < count -
/// h at once; then with h / 2, and so on to 1. Each task runs on the rank of the piece that it adds to. The other
/// pieces are left with partial sums.
///
/// The order depends only on count, so the sum has the same bits on every number of ranks. If the pieces are dealt out
/// in turn to P ranks and P is a power of two, pieces a multiple of P apart are on one rank, so that all rounds except
/// the last log2(P) are local.
template <class Part, class Combine>
void submit_combine_tree(Runtime& rt, const TaskOptions& options, std::size_t count, const Part& part,
                         const Combine& combine) {
  for (std::size_t distance = std::bit_ceil(count) / 2; distance > 0; distance /= 2)
    for (std::size_t i = 0; i < distance && i + distance < count; ++i)
      rt.submit(options, combine, read(part(i + distance)), read_write(part(i)));
}

}  // namespace tandem::linalg::internal
