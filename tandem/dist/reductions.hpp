// tandem/dist/reductions.hpp: `reduce` accesses on several ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/dist/use.hpp"

namespace tandem::runtime {
class RuntimeCore;
}

namespace tandem::dist {

class Flow;
class Placement;
class Pruning;

/// Partial sums of `reduce` accesses.
///
/// Protocol. A task that adds to data of another rank adds to a *share* instead: hidden data of the rank that runs it, which
/// starts neutral. When the data is used otherwise, moves, or is waited for, tasks of the flow gather the shares by a binomial
/// tree whose root is the data itself: log2 of the number of ranks steps, each on the rank that keeps the sum. Which ranks have
/// shares follows from the flow, so all ranks know it. `Place::reducing` says that data has shares.
///
/// Threads: the submitting thread.
class Reductions {
 public:
  Reductions(runtime::RuntimeCore& core, Flow& flow, const Placement& placement, const Pruning& pruning);
  ~Reductions();
  Reductions(const Reductions&) = delete;
  Reductions& operator=(const Reductions&) = delete;

  /// Before a task with `reduce` accesses is entered: shares replace other ranks' data in `uses`. Sets `wish.on`.
  void share(std::span<Use> uses, Wish& wish);
  /// Submits the tasks that gather the shares of the data, which has some.
  void gather(runtime::Handle& handle);
  void gather_all();
  /// The data is gone, and its shares with it.
  void forget(runtime::Handle& handle);

 private:
  struct DropOwner {
    void operator()(runtime::Handle* handle) const noexcept;
  };
  using OwnedHandle = std::unique_ptr<runtime::Handle, DropOwner>;
  struct Shares {
    runtime::Handle* handle = nullptr;
    std::vector<OwnedHandle> of_ranks;  ///< each owned by its rank
    int priority = 0;                   ///< of the most urgent task that added to one
  };

  runtime::Handle& share_of(runtime::Handle& handle, std::uint32_t rank, const Wish& wish);
  std::vector<Shares>::iterator find(const runtime::Handle& handle);

  runtime::RuntimeCore& core_;
  Flow& flow_;
  const Placement& placement_;
  const Pruning& pruning_;
  std::vector<Shares> shares_;  ///< in the order of the flow
};

}  // namespace tandem::dist
