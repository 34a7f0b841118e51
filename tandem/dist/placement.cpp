// tandem/dist/placement.cpp: the owner computes, and one of several owners is chosen.
#include "tandem/dist/placement.hpp"

#include <fmt/format.h>

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
                                 wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "", *wish.on,
                                 ranks_));
  }
  std::uint32_t owner = kNobody;
  std::uint32_t read_at = kEverywhere;
  bool several = false, only_adds = true;
  const Handle* own = nullptr;
  const Handle* shared = nullptr;
  for (const Use& use : uses) {
    if (use.mode == AccessMode::scratch) continue;
    if (use.handle == nullptr) return kEverywhere;  // refused on every rank
    const std::uint32_t owned_by = owner_of(*use.handle, recording);
    if (use.mode == AccessMode::read) {
      if (read_at == kEverywhere) read_at = owned_by;
      continue;
    }
    (owned_by == kEverywhere ? own : shared) = use.handle;
    several |= owner != kNobody && owner != owned_by;
    only_adds &= use.mode == AccessMode::reduce;
    owner = owned_by;
  }
  if (owner == kNobody) return read_at;
  if (own != nullptr && !several) return kEverywhere;
  if (own != nullptr)
    throw UsageError(
        fmt::format("a task{} writes {}, which each rank has for itself, and {}, which rank {} owns: it can run "
                    "neither everywhere nor on one rank; say where with TaskOptions{{.on = rank}}",
                    wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "", own->described(),
                    shared->described(), owner_of(const_cast<Handle&>(*shared), recording)));
  if (several && policy_) return by_policy(uses, recording);
  if (several || only_adds) return among_owners(uses, recording, only_adds);
  return owner;
}

std::uint32_t Placement::by_policy(std::span<const Use> uses, const Recording* recording) const {
  std::vector<PlacementUse> asked;
  for (const Use& use : uses) asked.push_back({owner_of(*use.handle, recording), use.mode, use.handle->travel_bytes()});
  const std::uint32_t chosen = policy_(asked);
  if (chosen >= ranks_) throw UsageError(fmt::format("the placement policy chose rank {} of {}", chosen, ranks_));
  return chosen;
}

/// The owner to which, and from which, the fewest bytes move: the one that has most of them. Among equal ones the owner
/// of the last datum that is written. `only_adds`: owners of data that is read count, too.
std::uint32_t Placement::among_owners(std::span<const Use> uses, const Recording* recording, bool only_adds) const {
  for (const Use& use : uses) {
    if (use.mode == AccessMode::scratch || use.mode == AccessMode::reduce) continue;
    const std::uint32_t owner = owner_of(*use.handle, recording);
    const std::size_t ways = use.mode == AccessMode::read || use.mode == AccessMode::write ? 1 : 2;
    if (owner != kEverywhere) bytes_at_[owner] += ways * use.handle->travel_bytes();
  }
  std::uint32_t best = kNobody;
  const auto consider = [&](const Use& use) {
    const std::uint32_t owner = owner_of(*use.handle, recording);
    if (owner != kEverywhere && (best == kNobody || bytes_at_[owner] >= bytes_at_[best])) best = owner;
  };
  for (const Use& use : uses)
    if (only_adds ? use.mode == AccessMode::read : makes_value(use.mode)) consider(use);
  for (const Use& use : uses)
    if (only_adds && use.mode == AccessMode::reduce) consider(use);
  for (const Use& use : uses)
    if (const std::uint32_t owner = owner_of(*use.handle, recording); owner != kEverywhere) bytes_at_[owner] = 0;
  return best;
}

}  // namespace tandem::dist
