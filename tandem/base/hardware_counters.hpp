// tandem/base/hardware_counters.hpp: the processor's counters of one thread: cycles, instructions, stalls, misses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tandem/base/result.hpp"

namespace tandem::base {

/// Counts of one thread in user mode. `kNotCounted`: this processor, or its kernel, does not count it.
struct HardwareCounts {
  static constexpr std::uint64_t kNotCounted = UINT64_MAX;

  std::uint64_t cycles = kNotCounted;
  std::uint64_t instructions = kNotCounted;
  std::uint64_t stalled = kNotCounted;  ///< cycles in which the core waited for memory, or for other resources
  std::uint64_t misses = kNotCounted;   ///< of the last cache

  /// The counts since `before`.
  HardwareCounts since(const HardwareCounts& before) const noexcept;
};

/// The counters of a thread, which opens, reads and closes them.
class HardwareCounters {
 public:
  virtual ~HardwareCounters() = default;
  /// The counts since it was opened.
  virtual HardwareCounts read() noexcept = 0;
};

/// Makes counters of the calling thread. Thread-safe.
using OpenCounters = std::function<Result<std::unique_ptr<HardwareCounters>>()>;

/// Linux's counters (perf_event_open), cycles and instructions at least; a read is one system call. Error: unsupported,
/// with the reason.
Result<std::unique_ptr<HardwareCounters>> open_hardware_counters();

}  // namespace tandem::base
