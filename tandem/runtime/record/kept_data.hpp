// tandem/runtime/record/kept_data.hpp: the data of a recording, kept while the recording lives.
#pragma once

#include <cstddef>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime {

class DataRegistry;

/// A set of data. Handles stay valid. Data that Tandem allocated stays, too; data over the user's memory may be
/// unregistered. Used by the submitting thread.
///
/// Data that was replaced leaves the set, but its handle stays valid as long as the flow names a recorded task that
/// used it. So the code that frees recorded tasks knows where references to them may be.
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
  /// Puts `to` in the place of `from`, whose last recorded tasks may still run.
  void replace(Handle& from, Handle& to, DataRegistry& registry);
  /// Makes the flow forget ended recorded tasks as users of this data; with `all`, all recorded tasks.
  void forget_recorded_tasks(DataRegistry& registry, bool all = false) noexcept;
  bool holds(Handle& handle) const { return handles_.contains(&handle); }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (Handle* const handle : handles_) visit(*handle);
  }
  /// Throws UsageError if some of the data is no longer registered.
  void check(const DataRegistry& registry) const;

 private:
  void forget_replaced(DataRegistry& registry, bool all = false) noexcept;

  std::unordered_set<Handle*> handles_;
  std::vector<Handle*> replaced_;  ///< replaced data, each with a reference
  std::size_t most_replaced_ = 8;  ///< size of `replaced_` at which unneeded ones are forgotten
};

}  // namespace tandem::runtime
