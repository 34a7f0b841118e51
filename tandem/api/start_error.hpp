// tandem/api/start_error.hpp: handles a StartError that the program does not catch.
#pragma once

namespace tandem::internal {

/// Makes an uncaught `StartError` print one line to standard error and end the process with exit status 2; other
/// exceptions end it as before. Thread-safe; only the first call counts.
void end_cleanly_on_start_errors() noexcept;

}  // namespace tandem::internal
