// tandem/dist/placement.cpp: owner computes, and the rank among several owners.
#include "tandem/dist/placement.hpp"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "tandem/dist/place.hpp"
#include "tandem/dist/recording.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::dist {

using runtime::Handle;

std::uint32_t owner_of(Handle& handle, const Recording* recording) {
  return recording != nullptr ? recording->owner_of(handle) : place_of(handle).owner;
}

std::uint32_t Placement::executor_of(std::span<const Use> uses, const Wish& wish, const Recording* recording) const {
  if (wish.on) {
    if (*wish.on < ranks_ || *wish.on == kEverywhere) return *wish.on;
    throw UsageError(fmt::format("a task{} is to run on rank {}, but there are {} ranks",
                                 wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "", *wish.on, ranks_));
  }
  std::uint32_t owner = kNobody;
  std::uint32_t read_at = kEverywhere;
  bool several = false;
  const Handle* own = nullptr;
  const Handle* shared = nullptr;
  for (const Use& use : uses) {
    if (use.mode == AccessMode::scratch) continue;
    const std::uint32_t owned_by = owner_of(*use.handle, recording);
    if (use.mode == AccessMode::read) {
      if (read_at == kEverywhere) read_at = owned_by;
      continue;
    }
    (owned_by == kEverywhere ? own : shared) = use.handle;
    several |= owner != kNobody && owner != owned_by;
    owner = owned_by;
  }
  if (owner == kNobody) return read_at;
  if (!several) return owner;
  if (own != nullptr)
    throw UsageError(fmt::format("a task{} writes {}, which each rank has for itself, and {}, which rank {} owns: it can run "
                                 "neither everywhere nor on one rank; say where with TaskOptions{{.on = rank}}",
                                 wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "", own->described(),
                                 shared->described(), owner_of(const_cast<Handle&>(*shared), recording)));
  return among_owners(uses, recording);
}

/// The owner for which the fewest bytes move, to it and back. Of equal ones the owner of the last datum that is written.
std::uint32_t Placement::among_owners(std::span<const Use> uses, const Recording* recording) const {
  if (policy_) {
    std::vector<PlacementUse> asked;
    for (const Use& use : uses) asked.push_back({owner_of(*use.handle, recording), use.mode, use.handle->travel_bytes()});
    const std::uint32_t chosen = policy_(asked);
    if (chosen >= ranks_) throw UsageError(fmt::format("the placement policy chose rank {} of {}", chosen, ranks_));
    return chosen;
  }
  std::uint32_t best = kNobody;
  std::size_t best_bytes = std::numeric_limits<std::size_t>::max();
  for (const Use& candidate : uses) {
    if (candidate.mode == AccessMode::read || candidate.mode == AccessMode::scratch) continue;
    const std::uint32_t rank = owner_of(*candidate.handle, recording);
    std::size_t moved = 0;
    for (const Use& use : uses) {
      const std::uint32_t owner = owner_of(*use.handle, recording);
      if (use.mode == AccessMode::scratch || owner == rank || owner == kEverywhere) continue;
      moved += use.handle->travel_bytes() * (use.mode == AccessMode::read || use.mode == AccessMode::write ? 1 : 2);
    }
    if (moved <= best_bytes) {
      best = rank;
      best_bytes = moved;
    }
  }
  return best;
}

}  // namespace tandem::dist
