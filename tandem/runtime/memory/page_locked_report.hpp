// tandem/runtime/memory/page_locked_report.hpp: how much page-locked memory a runtime has used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::runtime {

/// Page-locked memory for copies from and to devices. All zero without such devices.
struct PageLockedReport {
  std::size_t bound = 0;             ///< bytes that may be locked
  std::size_t locked = 0;            ///< bytes that are
  std::size_t used = 0;              ///< bytes of these that data or copies have
  std::size_t most_used = 0;         ///< at one moment
  std::uint64_t allocations = 0;     ///< that the pool has served
  std::uint64_t from_driver = 0;     ///< times that it had to ask the driver for memory, which is slow
  std::uint64_t refused = 0;         ///< allocations for which it had no room, which got other memory
  std::size_t refused_bytes = 0;     ///< of these
};

}  // namespace tandem::runtime
