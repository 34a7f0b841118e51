// tandem/base/affinity.hpp: the hardware threads that a thread may run on, by number. Without a topology.
#pragma once

#include <span>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::base {

/// The calling thread's hardware threads, ascending. Empty when the system does not say.
std::vector<unsigned> affinity_of_this_thread();

/// Lets the calling thread run on these from now on; threads that it makes inherit that. Errors: invalid_argument (none
/// of them exists or is allowed), io.
Result<void> set_affinity_of_this_thread(std::span<const unsigned> pus);

/// Sets the affinity of the calling thread, and restores the former one at the end. Constructed and destroyed on one
/// thread.
class ScopedAffinity {
 public:
  explicit ScopedAffinity(std::span<const unsigned> pus);
  ~ScopedAffinity();
  ScopedAffinity(const ScopedAffinity&) = delete;
  ScopedAffinity& operator=(const ScopedAffinity&) = delete;

  /// Success, or why the affinity could not be set.
  const Result<void>& result() const noexcept { return result_; }

 private:
  std::vector<unsigned> former_;
  Result<void> result_;
};

}  // namespace tandem::base
