// tests/environment.hpp: numbers that whoever runs a test may give it.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace tandem::test {

/// The value of the environment's `variable`, or `otherwise` where it is not set or empty.
inline std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given != nullptr && *given != '\0' ? std::strtoull(given, nullptr, 10) : otherwise;
}

}  // namespace tandem::test
