// tandem/runtime/sched/estimates.hpp: expected durations of kernels, for policies that look ahead.
#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/model/tasks/footprint.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

/// Estimate of a duration.
struct Estimate {
  double mean_ns = 0;       ///< 0 when nothing is known
  double deviation_ns = 0;  ///< standard deviation of a single kernel
  bool known = false;       ///< measured often enough for decisions
  unsigned missing = 0;     ///< kernels until it is known; 0: it is known, or the number is not
};

/// Estimates durations of kernels. Any thread, several at a time.
class Estimates {
 public:
  virtual ~Estimates() = default;
  /// Estimate for a kernel of `codelet` on a worker of `kind`, with data of this `footprint` (`footprint_of`).
  virtual Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const = 0;
  /// As `expected_ns`, by one of the codelet's implementations; nothing is known unless this is overridden.
  virtual Estimate expected_ns_by([[maybe_unused]] unsigned implementation, [[maybe_unused]] std::string_view codelet,
                                  [[maybe_unused]] model::Footprint footprint, [[maybe_unused]] DeviceKind kind) const {
    return {};
  }
};

}  // namespace tandem::runtime
