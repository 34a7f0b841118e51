// tandem/dist/need.cpp: merges the accesses of a task to the same data.
#include "tandem/dist/need.hpp"

#include <algorithm>

namespace tandem::dist {

void gather_needs(std::span<const Use> uses, std::vector<Need>& needs) {
  needs.clear();
  for (const Use& use : uses) {
    if (use.mode == AccessMode::scratch) continue;
    const bool reduces = use.mode == AccessMode::reduce;
    auto at = std::find_if(needs.begin(), needs.end(), [&](const Need& need) { return need.handle == use.handle; });
    if (at == needs.end()) at = needs.insert(at, {use.handle});
    at->sees |= sees_value(use.mode) || reduces;
    if (makes_value(use.mode) || reduces) ++at->new_versions;
  }
}

}  // namespace tandem::dist
