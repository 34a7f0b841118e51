// tandem/dist/reductions.hpp: `reduce` accesses on several ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "tandem/dist/place.hpp"
#include "tandem/dist/use.hpp"

namespace tandem::runtime {
class CodeletCore;
class RuntimeCore;
struct TaskOps;
}

namespace tandem::dist {

class Flow;
class Placement;
class Pruning;
class Recording;

/// Partial sums of `reduce` accesses.
///
/// Protocol. A task that adds to data of another rank adds to a *share* instead: hidden data of the rank that runs it,
/// which starts neutral. When the data is used otherwise, moves, or is waited for, tasks of the flow gather the shares
/// by a binomial tree whose root is the data itself: log2 of the number of ranks steps, each on the rank that keeps the
/// sum. The ranks with shares follow from the flow, so all ranks know them. `Place::reducing` marks data that has
/// shares.
///
/// A recording has its own object while it is made: there the tasks that start and gather shares are recorded, and the
/// shares belong to the recording. Its last operations gather all open sums.
///
/// Threads: the submitting thread. Cost of finding or closing a sum: logarithmic in the number of open sums and of
/// ranks.
class Reductions {
 public:
  /// `recording`: takes the tasks; null: they are submitted now.
  Reductions(runtime::RuntimeCore& core, Flow& flow, const Placement& placement, const Pruning& pruning,
             Recording* recording);
  ~Reductions();
  Reductions(const Reductions&) = delete;
  Reductions& operator=(const Reductions&) = delete;

  /// Called before a task with `reduce` accesses is entered: shares replace other ranks' data in `uses`. Sets
  /// `wish.on`. Throws UsageError when the task also uses one of its sums otherwise.
  void share(std::span<Use> uses, Wish& wish);
  /// Whether the data has shares that are not gathered yet.
  bool is_open(runtime::Handle& handle) const {
    return recording_ != nullptr ? sums_.contains(place_of(handle).id) : place_of(handle).reducing;
  }
  /// Submits the tasks that gather the shares of the data, if it has some.
  void settle(runtime::Handle& handle) {
    if (is_open(handle)) gather(handle);
  }
  void gather_all();
  /// Forgets data that is gone, and its shares.
  void forget(runtime::Handle& handle);

 private:
  struct DropOwner {
    void operator()(runtime::Handle* handle) const noexcept;
  };
  using OwnedHandle = std::unique_ptr<runtime::Handle, DropOwner>;
  struct Sum {
    runtime::Handle* handle = nullptr;
    std::map<std::uint32_t, OwnedHandle> shares;  ///< shares by the rank that owns them
    int priority = 0;                             ///< priority of the most urgent task that added to one
    SourceLine where = {};                        ///< line of the first such task
  };

  runtime::Handle& share_of(runtime::Handle& handle, std::uint32_t rank, const Wish& wish);
  OwnedHandle take_share(runtime::Handle& handle, std::uint32_t rank);
  OwnedHandle make_share(runtime::Handle& handle, std::uint32_t rank);
  void gather(runtime::Handle& handle);
  void submit(const std::shared_ptr<runtime::CodeletCore>& codelet, const runtime::TaskOps& ops,
              std::span<const Use> uses, const Wish& wish);

  runtime::RuntimeCore& core_;
  Flow& flow_;
  const Placement& placement_;
  const Pruning& pruning_;
  Recording* const recording_;
  std::map<std::uint32_t, Sum> sums_;  ///< sums with open shares, by `Place::id`: the same order on all ranks
  /// Gathered shares of a recording, by `Place::id` of the data and rank, for further use.
  std::map<std::pair<std::uint32_t, std::uint32_t>, OwnedHandle> spare_;
};

}  // namespace tandem::dist
