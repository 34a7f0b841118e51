// tandem/runtime/memory/spill_file.hpp: a file as a memory node, for data that does not fit into main memory.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tandem/base/result.hpp"
#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::runtime {

/// A file without a name in `folder`, so that it is gone with the process, and the thread that reads and writes it
/// while the processor computes. Its "addresses" are places in the file; only its copier reaches them, from and to main
/// memory. Data is packed there. The file takes at most one and a half times its live data on the disk, and some MiB. A
/// failed read or write is a `std::system_error` with the folder's name.
///
/// Errors: the folder cannot be written to.
base::Result<std::pair<std::unique_ptr<MemoryNode>, std::unique_ptr<Copier>>> make_spill_file(
    const std::string& folder);

}  // namespace tandem::runtime
