// tandem/runtime/record/kept_data.hpp: the data of a recording, which stays known while the recording lives.
#pragma once

#include <cstddef>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime {

class DataRegistry;

/// A set of data. Handles stay valid; data that Tandem allocated is not let go either, data over the user's memory may be
/// unregistered. Of the submitting thread.
///
/// Data that was replaced is no longer in the set, but its handle stays valid as long as the flow names a recorded task that has used it: so whoever
/// frees recorded tasks knows where references to them may stand.
class KeptData {
 public:
  KeptData() = default;
  KeptData(KeptData&& other) noexcept
      : handles_(std::exchange(other.handles_, {})), replaced_(std::exchange(other.replaced_, {})) {}
  KeptData(const KeptData&) = delete;
  KeptData& operator=(const KeptData&) = delete;
  ~KeptData();

  void keep(Handle& handle);
  void drop(Handle& handle) noexcept;
  /// `to` takes the place of `from`, whose last recorded tasks may still run.
  void replace(Handle& from, Handle& to, DataRegistry& registry);
  /// The flow no longer names recorded tasks that have ended as users of this data; with `all`, no recorded tasks.
  void forget_recorded_tasks(DataRegistry& registry, bool all = false) noexcept;
  bool holds(Handle& handle) const { return handles_.contains(&handle); }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (Handle* const handle : handles_) visit(*handle);
  }
  /// Throws UsageError when some of it is no longer registered.
  void check(const DataRegistry& registry) const;

 private:
  void forget_replaced(DataRegistry& registry, bool all = false) noexcept;

  std::unordered_set<Handle*> handles_;
  std::vector<Handle*> replaced_;  ///< each with a reference
  std::size_t most_replaced_ = 8;  ///< then those are forgotten that need not be known
};

}  // namespace tandem::runtime
