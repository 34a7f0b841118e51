// tandem/base/standard_streams.cpp: takes the lowest free numbers.
#include "tandem/base/standard_streams.hpp"

#include <fcntl.h>

namespace tandem::base {

void hold_standard_streams() noexcept {
  for (int standard = 0; standard < 3; ++standard)
    if (::fcntl(standard, F_GETFD) < 0)
      (void)!::open("/dev/null", O_RDONLY);  // inherited; takes the lowest free number
}

}  // namespace tandem::base
