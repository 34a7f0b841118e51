// tandem/base/assert.cpp: what happens when an assertion fails.
#include "tandem/base/assert.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tandem::base {

void assertion_failed(const char* file, int line, const char* what) noexcept {
  // stdio is used because the heap and all our objects may be broken by now.
  std::fprintf(stderr, "tandem: assertion failed at %s:%d: %s\ntandem: this is a bug in Tandem; please report it\n",
               file, line, what);
  std::fflush(stderr);
  std::abort();
}

const bool audits = [] {
  const char* value = std::getenv("TANDEM_AUDIT");
  return value != nullptr && std::strcmp(value, "1") == 0;
}();

}  // namespace tandem::base
