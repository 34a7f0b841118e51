// tandem/api/exit_status.cpp: a handler that runs at the end of the process.
#include "tandem/api/exit_status.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace tandem::internal {

namespace {

std::atomic<bool> failed{false};

/// Ends the process without calling `exit` again. Handlers run in the reverse order of their registration, so those of
/// objects that were made after the first runtime have run.
void end_process(int status, void*) {
  if (status != 0 || !failed.load()) return;
  std::fflush(nullptr);
  ::_exit(1);
}

}  // namespace

ExitStatus::ExitStatus() noexcept {
  static const bool registered = ::on_exit(&end_process, nullptr) == 0;
  static_cast<void>(registered);
}

void ExitStatus::fail() noexcept { failed.store(true); }

}  // namespace tandem::internal
