// tests/sim/plain_options.hpp: options of the simulated programs of tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/tandem.hpp"

namespace tandem::sim {

/// Options that no file or variable of this machine changes.
inline Options plain(std::vector<std::pair<std::string, std::string>> more = {}) {
  more.insert(more.end(), {{"trace", ""}, {"models", "off"}, {"log", "error"}});
  return {.more = std::move(more)};
}

}  // namespace tandem::sim
