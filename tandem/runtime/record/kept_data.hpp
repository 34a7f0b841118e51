// tandem/runtime/record/kept_data.hpp: the data of a recording, which stays known while the recording lives.
#pragma once

#include <unordered_set>
#include <utility>

#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime {

class DataRegistry;

/// A set of data. Handles stay valid; data that Tandem allocated is not let go either, data over the user's memory may be
/// unregistered. Of the submitting thread.
class KeptData {
 public:
  KeptData() = default;
  KeptData(KeptData&& other) noexcept : handles_(std::exchange(other.handles_, {})) {}
  KeptData(const KeptData&) = delete;
  KeptData& operator=(const KeptData&) = delete;
  ~KeptData();

  void keep(Handle& handle);
  void drop(Handle& handle) noexcept;
  bool holds(Handle& handle) const { return handles_.contains(&handle); }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (Handle* const handle : handles_) visit(*handle);
  }
  /// Throws UsageError when some of it is no longer registered.
  void check(const DataRegistry& registry) const;

 private:
  std::unordered_set<Handle*> handles_;
};

}  // namespace tandem::runtime
