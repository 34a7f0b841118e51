// tandem/comm/poll_set_ownership.hpp: which thread sleeps at the poll set, and how the other threads wait for their
// turn.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tandem/base/parking.hpp"

namespace tandem::comm::internal {

/// At most one thread owns the poll set: the leader of the leader/followers pattern. The owner sleeps at the poll set
/// for all threads that wait. The other threads park here. Thread-safe.
///
/// Protocol. A thread that cannot acquire the poll set enters the list of parked threads, then checks whether the poll
/// set is still owned, and parks. An owner that releases the poll set stores that first. Then it either makes progress
/// itself, or looks for parked threads and wakes them, so that one of them acquires the poll set. So either the
/// releasing thread finds the parked thread, or the parking thread finds the poll set free (both steps are sequentially
/// consistent).
///
/// `Atomic`, `Parker` and `Mutex` are replaced by models that try every order of steps (tests/interleave).
template <template <class> class Atomic, class Parker, class Mutex>
class BasicPollSetOwnership {
 public:
  /// Acquires the poll set. False: another thread owns it.
  bool try_acquire() noexcept { return !owned_.exchange(true); }
  void release() noexcept { owned_.store(false); }
  bool owned() const noexcept { return owned_.load(); }

  /// Waits until `wake_parked`, for `most_ns` nanoseconds at most. Returns at once when the poll set is free or
  /// `done()` is true.
  template <class Done>
  void park(Done done, std::int64_t most_ns) {
    Parker parker;
    {
      const std::lock_guard guard(mutex_);
      parked_.push_back(&parker);
      parked_count_.fetch_add(1);
    }
    if (!done() && owned()) parker.park(most_ns);
    const std::lock_guard guard(mutex_);
    std::erase(parked_, &parker);
    parked_count_.fetch_sub(1);
  }

  bool has_parked() const noexcept { return parked_count_.load() != 0; }
  void wake_parked() {
    if (!has_parked()) return;
    const std::lock_guard guard(mutex_);
    for (Parker* parker : parked_) parker->unpark();
  }

 private:
  Atomic<bool> owned_{false};
  Atomic<int> parked_count_{0};  ///< the size of `parked_`
  Mutex mutex_;
  std::vector<Parker*> parked_;  ///< guarded by the mutex
};

using PollSetOwnership = BasicPollSetOwnership<std::atomic, base::Parker, std::mutex>;

}  // namespace tandem::comm::internal
