// tandem/api/exit_status.hpp: the exit status of a program whose flow ended with a failure that it has not seen.
#pragma once

namespace tandem::internal {

/// A program's interest in how its runtime ends; runtimes in worlds that a test made have none. Thread-safe.
class ExitStatus {
 public:
  ExitStatus() noexcept;

  /// A flow has ended, when its runtime was destroyed, with a failure that no wait could throw: the process will end with status 1
  /// if it would end with 0. So launchers and scripts see it, on one rank as on many. The same when statistics or the chart of the
  /// flow, which were asked for, could not be written.
  void fail() noexcept;
};

}  // namespace tandem::internal
