// tandem/api/exit_status.hpp: the exit status of a program whose flow ended with a failure that it has not seen.
#pragma once

namespace tandem::internal {

/// A program's interest in how its runtime ends; runtimes in worlds that a test made have none. Thread-safe.
class ExitStatus {
 public:
  ExitStatus() noexcept;

  /// Makes the process end with status 1 instead of 0, so that launchers and scripts see a failure, on one rank as on
  /// many. Called when a runtime was destroyed with a failure that no wait could throw, or when statistics or the chart
  /// of the flow, which were asked for, could not be written.
  void fail() noexcept;
};

}  // namespace tandem::internal
