// tandem/runtime/memory/seen_by_copier.hpp: a copy, as the copier of a device or of storage sees it.
#pragma once

#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::runtime {

/// To a copier of another node, the memory of a NUMA node is main memory. `is_numa(node)`: it is such a memory, and not
/// main memory.
template <class IsNuma>
CopyRequest seen_by_copier(CopyRequest request, const IsNuma& is_numa) noexcept {
  if (is_numa(request.to_node) && request.from_node != 0) request.to_node = 0;
  else if (is_numa(request.from_node) && request.to_node != 0) request.from_node = 0;
  return request;
}

}  // namespace tandem::runtime
