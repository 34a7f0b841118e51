// tests/dist_flow/environment.hpp: numbers that whoever runs a test may give it.
#pragma once

#include <cstdlib>

namespace tandem::dist_test {

/// The value of the environment's `variable`, or `otherwise` where it is not set.
inline unsigned number_of(const char* variable, unsigned otherwise) {
  const char* const given = std::getenv(variable);
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : otherwise;
}

}  // namespace tandem::dist_test
