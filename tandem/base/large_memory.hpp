// tandem/base/large_memory.hpp: blocks of memory, on huge pages if they are large enough to fill one.
#pragma once

#include <cstddef>
#include <memory>

namespace tandem::base {

/// Frees what `allocate_large` returned.
struct FreeLarge {
  void operator()(void* memory) const noexcept;
};

/// Memory for `bytes` (not 0), aligned to a cache line; blocks from 2 MiB on are aligned to huge pages, and the system
/// is advised to use them, since walks through many small objects or large tiles otherwise miss the TLB at each step.
/// Null when there is none. Any thread.
std::unique_ptr<std::byte, FreeLarge> allocate_large(std::size_t bytes) noexcept;

}  // namespace tandem::base
