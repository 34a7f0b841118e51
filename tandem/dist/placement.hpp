// tandem/dist/placement.hpp: chooses the rank that runs a task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tandem/dist/use.hpp"
#include "tandem/runtime/data/access.hpp"

namespace tandem::dist {

class Recording;

/// One access of a task in the view of a placement policy.
struct PlacementUse {
  std::uint32_t owner = 0;             ///< rank that owns the data
  AccessMode mode = AccessMode::read;  ///< how the task uses it
  std::size_t bytes = 0;               ///< bytes that would travel; for an object, an estimate
};

/// Returns the rank that runs a task which writes data of several owners; the same on all ranks.
using PlacementPolicy = std::function<std::uint32_t(std::span<const PlacementUse>)>;

/// The rule by which every rank finds the executor of a task. It depends only on owners and sizes, which all ranks
/// know:
///
/// 1. the rank that the program names (`Wish::on`);
/// 2. the owner of the data that the task writes; data without an owner: every rank;
/// 3. of several owners the one that the policy chooses, or the one for which the fewest bytes move. A sum (`reduce`)
/// moves no bytes: the task adds to a share where it runs (`Reductions`). A task that writes nothing but sums may also
/// run on an owner of what it reads; if as many bytes move, on the owner of the sum;
/// 4. a task that only reads: the owner of the first datum.
///
/// Threads: the submitting thread. Cost: linear in the number of accesses.
class Placement {
 public:
  explicit Placement(std::uint32_t ranks) : ranks_(ranks), bytes_at_(ranks) {}

  void set_policy(PlacementPolicy policy) { policy_ = std::move(policy); }
  bool has_policy() const noexcept { return policy_ != nullptr; }

  /// The rank that runs the task, or `kEverywhere`. `recording`: the recording that takes the task, which knows future
  /// owners; or null. Throws UsageError.
  std::uint32_t executor_of(std::span<const Use> uses, const Wish& wish, const Recording* recording) const;

 private:
  std::uint32_t by_policy(std::span<const Use> uses, const Recording* recording) const;
  std::uint32_t among_owners(std::span<const Use> uses, const Recording* recording, bool only_adds) const;

  const std::uint32_t ranks_;
  PlacementPolicy policy_;
  /// By rank: bytes of a task's data that need not move if the task runs there. All 0 between two tasks.
  mutable std::vector<std::size_t> bytes_at_;
};

/// The present owner of the data; with a `recording`, the owner at this point of its replays.
std::uint32_t owner_of(runtime::Handle& handle, const Recording* recording);

}  // namespace tandem::dist
