// tandem/runtime/memory/page_locked_report.hpp: how much page-locked memory a runtime has used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::runtime {

/// Page-locked memory for copies from and to devices. All zero without such devices.
struct PageLockedReport {
  std::size_t bound = 0;             ///< bytes that may be locked
  std::size_t locked = 0;            ///< bytes that are locked
  std::size_t used = 0;              ///< locked bytes that data or copies use
  std::size_t most_used = 0;         ///< the largest value of `used`
  std::uint64_t allocations = 0;     ///< allocations that the pool has served
  std::uint64_t from_driver = 0;     ///< slow calls of the driver for memory
  std::uint64_t refused = 0;         ///< allocations that got other memory for lack of room
  std::size_t refused_bytes = 0;     ///< bytes of these allocations
};

}  // namespace tandem::runtime
