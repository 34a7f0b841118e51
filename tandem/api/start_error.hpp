// tandem/api/start_error.hpp: what happens to a StartError that the program does not catch.
#pragma once

namespace tandem::internal {

/// From now on a `StartError` that nobody catches prints one line to standard error and ends the process with exit status 2;
/// other exceptions end it as before. Thread-safe; the first call counts.
void end_cleanly_on_start_errors() noexcept;

}  // namespace tandem::internal
