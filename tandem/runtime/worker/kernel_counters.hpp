// tandem/runtime/worker/kernel_counters.hpp: processor counters around a worker's kernels.
#pragma once

#include <memory>

#include "tandem/base/hardware_counters.hpp"
#include "tandem/runtime/task/task.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::runtime {

/// The processor counters of a worker's thread around each kernel. Only for the trace: two reads for each kernel while
/// `task.counters` is recorded. Used by the worker's thread, which is the same at each step.
class KernelCounters {
 public:
  /// `open` outlives this. It is called at the worker's first kernel.
  explicit KernelCounters(const base::OpenCounters& open) : open_(open) {}

  void begin(const trace::Stream& stream);
  void end() noexcept;
  /// Writes the record of a counted kernel, with the stamp of the stream's last event. `stream`: as at the beginning.
  void write(const Task& task, trace::Stream& stream) noexcept;

 private:
  const base::OpenCounters& open_;
  std::unique_ptr<base::HardwareCounters> counters_;
  bool is_open_ = false;     ///< true also if opening was refused
  bool is_counting_ = false;
  base::HardwareCounts before_, counts_;
};

}  // namespace tandem::runtime
