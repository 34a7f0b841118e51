// tandem/runtime/usage_error.hpp: what a wrong program gets.
#pragma once

#include <stdexcept>

namespace tandem {

/// The program uses Tandem in a way that cannot work. The message names the task, the data, the source line, and the remedy.
class UsageError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Nothing can go on: found by the event loop, when everybody sleeps, or by `wait` after the watchdog's time when so asked.
class StuckError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tandem
