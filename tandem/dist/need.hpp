// tandem/dist/need.hpp: what a task needs of each piece of data.
#pragma once

#include <span>
#include <vector>

#include "tandem/dist/use.hpp"

namespace tandem::dist {

/// All accesses of one task to one piece of data, in one entry.
struct Need {
  runtime::Handle* handle;
  bool sees;
  bool makes;
};

/// Fills `needs` with one entry per piece of data in `uses`, in the order of the first access. Scratch accesses need nothing.
void gather_needs(std::span<const Use> uses, std::vector<Need>& needs);

}  // namespace tandem::dist
