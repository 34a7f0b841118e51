// tandem/api/exit_status.hpp: the exit status of a rank whose flow ended with a failure that its program has not seen.
#pragma once

namespace tandem::internal {

/// This process is a rank of a job. From now on `fail_exit_status` has an effect. Thread-safe.
void watch_exit_status() noexcept;

/// A flow has ended, when its runtime was destroyed, with a failure that no wait could throw: the process will end with status 1 if
/// it would end with 0. So launchers and scripts see it. No effect in processes that are no ranks. Thread-safe.
void fail_exit_status() noexcept;

}  // namespace tandem::internal
