// tandem/dist/placement.hpp: the program's own choice of the rank that runs a task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "tandem/runtime/data/access.hpp"

namespace tandem::dist {

/// One access of a task, as a placement policy sees it.
struct PlacementUse {
  std::uint32_t owner = 0;             ///< rank that owns the data
  AccessMode mode = AccessMode::read;  ///< how the task uses it
  std::size_t bytes = 0;               ///< that would travel; of an object, as estimated
};

/// Returns the rank that runs a task which writes data of several owners. The same on all ranks.
using PlacementPolicy = std::function<std::uint32_t(std::span<const PlacementUse>)>;

}  // namespace tandem::dist
