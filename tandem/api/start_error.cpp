// tandem/api/start_error.cpp: a terminate handler for a StartError that the program does not catch.
#include "tandem/api/start_error.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tandem/base/exceptions.hpp"

namespace tandem::internal {

namespace {

std::terminate_handler others_handler = nullptr;

[[noreturn]] void end_process() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const StartError& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "tandem: %s\n", error.what());
    std::_Exit(2);
  } catch (...) {
    // The exception is no StartError, so the former handler decides.
  }
  if (others_handler != nullptr) others_handler();
  std::abort();
}

}  // namespace

void end_cleanly_on_start_errors() noexcept {
  static const bool installed = [] {
    others_handler = std::set_terminate(&end_process);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace tandem::internal
