// tandem/runtime/memory/numa_memory.hpp: the memory of one NUMA node.
#pragma once

#include <cstddef>
#include <memory>

#include "tandem/base/topology.hpp"
#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::runtime {

/// Memory that lies on the node at `numa_place` of `topology.numa_nodes()`, whoever touches it first. The processor addresses it, so that
/// `make_processor_copier` copies to and from it. The topology outlives it.
///
/// Blocks of less than 256 KiB are cut from mappings of 2 MiB, and kept by size when they come back; larger ones are mappings of their own,
/// which go back to the system. Thread-safe. Errors: what `Topology::bind_memory` says, when the system refuses to bind memory.
base::Result<std::unique_ptr<MemoryNode>> make_numa_memory(const base::Topology& topology, std::size_t numa_place);

}  // namespace tandem::runtime
