// tandem/comm/bed.hpp: the one place where a thread may sleep for all that waits, and how the others wait for that place.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tandem/base/parking.hpp"

namespace tandem::comm::internal {

/// Protocol. At most one thread has the bed. Who does not get it rests: it is entered in the list, then looks whether the bed is
/// still taken, and parks. Who leaves the bed sets it free first; from then on it makes progress itself, or looks for those that
/// rest and wakes them, so that one of them takes the bed. Either the leaver's look finds the one that rests, or that one finds
/// the bed free (both sequentially consistent). Without the look, callers to whom the progress thread left the bed rested for
/// 2 ms with nobody in it, in about every other broadcast on a fast network (`docs/performance.md`).
///
/// `Atomic`, `Parker` and `Mutex` are replaced by models where every order of steps is tried (tests/interleave).
template <template <class> class Atomic, class Parker, class Mutex>
class BasicBed {
 public:
  bool take() noexcept { return !taken_.exchange(true); }
  void leave() noexcept { taken_.store(false); }
  bool taken() const noexcept { return taken_.load(); }

  /// Somebody else has it: waits until woken, unless it is free by now or `done()`; for `most_ns` at most.
  template <class Done>
  void rest(Done done, std::int64_t most_ns) {
    Parker parker;
    {
      const std::lock_guard guard(mutex_);
      resting_.push_back(&parker);
      resting_count_.fetch_add(1);
    }
    if (!done() && taken()) parker.park(most_ns);
    const std::lock_guard guard(mutex_);
    std::erase(resting_, &parker);
    resting_count_.fetch_sub(1);
  }

  bool somebody_rests() const noexcept { return resting_count_.load() != 0; }
  void wake_resting() {
    if (!somebody_rests()) return;
    const std::lock_guard guard(mutex_);
    for (Parker* parker : resting_) parker->unpark();
  }

 private:
  Atomic<bool> taken_{false};
  Atomic<int> resting_count_{0};  ///< as many as there are in `resting_`
  Mutex mutex_;
  std::vector<Parker*> resting_;  ///< guarded by the mutex
};

using Bed = BasicBed<std::atomic, base::Parker, std::mutex>;

}  // namespace tandem::comm::internal
