// tandem/runtime/sched/estimates.hpp: how long kernels will take, for policies that look ahead.
#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/model/tasks/footprint.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

/// What is known of a duration.
struct Estimate {
  double mean_ns = 0;       ///< 0 when nothing is known
  double deviation_ns = 0;  ///< standard deviation of a single kernel
  bool known = false;       ///< enough was measured to decide by it
  unsigned missing = 0;     ///< after so many more kernels it will be known; 0: it is, or that is not said
};

/// Says how long kernels take. Any thread, several at a time.
class Estimates {
 public:
  virtual ~Estimates() = default;
  /// Of a kernel of `codelet` on a worker of `kind`, with data of this `footprint` (`footprint_of`).
  virtual Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const = 0;
  /// Such a kernel took `duration_ns`. For those that learn.
  virtual void add(std::string_view codelet, model::Footprint footprint, DeviceKind kind, double duration_ns) {
    static_cast<void>(codelet), static_cast<void>(footprint), static_cast<void>(kind), static_cast<void>(duration_ns);
  }
};

}  // namespace tandem::runtime
