// tools/bench/stability.hpp: whether the machine is in its usual state, so that programs are compared fairly.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tandem/base/result.hpp"
#include "tools/subprocess.hpp"

namespace tandem::tools {

/// A quick program whose result, one number, depends on the present state of the machine. The processors of a virtual
/// machine move: two of them may share a core for some tenths of a second and be far apart afterwards. A message
/// between them then takes a third of the usual time, or three times as long.
struct StabilityProbe {
  Command command;          ///< its first result is the number
  std::string what;         ///< meaning of the number, for people: "a flag from processor to processor"
  double tolerance = 1.35;  ///< the machine is as usual while the number is within this factor of the usual one
};

/// How the machine behaved during a suite.
struct StabilityReport {
  double usual = 0;
  std::string unit;
  unsigned runs = 0;      ///< of programs
  unsigned repeated = 0;  ///< repeated because the probe was not at its usual value before or after them
  unsigned unusual = 0;   ///< that count although the probe did not return to its usual value
};

/// Measures the stability probe before and after runs. Single-threaded.
class StabilityMonitor {
 public:
  /// Returns the number, or an error.
  using Probe = std::function<base::Result<double>()>;

  /// Runs the probe several times; the median is the usual value. Errors: the first one of the probe.
  static base::Result<StabilityMonitor> begin(Probe probe, double tolerance);

  /// Ends repetitions and waits while `is_late` returns true.
  void repeat_unless(std::function<bool()> is_late) { is_late_ = std::move(is_late); }

  /// Calls `run`, which may be repeated; the last call counts. `run` returns false when it fails; then it is not
  /// repeated.
  void around(const std::function<bool()>& run);

  const StabilityReport& report() const noexcept { return report_; }

 private:
  StabilityMonitor(Probe probe, double tolerance, double usual) : probe_(std::move(probe)), tolerance_(tolerance) {
    report_.usual = usual;
  }
  bool as_usual();
  bool wait_until_usual();

  Probe probe_;
  std::function<bool()> is_late_ = [] { return false; };
  double tolerance_;
  StabilityReport report_;
};

}  // namespace tandem::tools
