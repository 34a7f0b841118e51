// tandem/dist/need.hpp: the needs of a task for each piece of data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/dist/use.hpp"

namespace tandem::dist {

/// All accesses of one task to one piece of data, in one entry.
struct Need {
  runtime::Handle* handle;
  bool sees = false;
  /// One for each access that writes, as counted by ranks that skip the task (`Flow::try_skip`).
  std::uint32_t new_versions = 0;

  bool makes() const noexcept { return new_versions > 0; }
};

/// Fills `needs` with one entry per piece of data in `uses`, in the order of the first access. Scratch accesses need
/// nothing.
void gather_needs(std::span<const Use> uses, std::vector<Need>& needs);

}  // namespace tandem::dist
