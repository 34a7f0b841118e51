// tandem/runtime/data/node_index.hpp: the numbers of memory nodes.
#pragma once

namespace tandem::runtime {

/// Index of a memory node: 0 is main memory, where the application's pointers live.
using NodeIndex = unsigned;
inline constexpr unsigned kMaxNodes = 16;

}  // namespace tandem::runtime
