// tandem/runtime/memory/numa_memory.hpp: the memory of one NUMA node.
#pragma once

#include <cstddef>
#include <memory>

#include "tandem/base/topology.hpp"
#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::runtime {

/// Makes the memory of the node at `numa_place` of `topology.numa_nodes()`, whichever thread touches it first. The
/// processor addresses it, so `make_processor_copier` copies to and from it. The topology outlives it.
///
/// Blocks below 256 KiB are cut from mappings of 2 MiB and kept by size when they are released; larger ones are
/// mappings of their own, which return to the system. Thread-safe. Errors: those of `Topology::bind_memory`, when the
/// system refuses to bind memory.
base::Result<std::unique_ptr<MemoryNode>> make_numa_memory(const base::Topology& topology, std::size_t numa_place);

}  // namespace tandem::runtime
