// tandem/api/recorded_parts.hpp: states of partitions before and after a recording.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "tandem/api/parts.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::internal {

/// The partitions of the data that a recording uses, with the state of each at its beginning and end. Splits and
/// gathers in between are tasks of the recording. So a replay first splits and gathers partitions into the former
/// states, and leaves the latter ones.
///
/// While the recording is made, partitions change their states as if its tasks ran. `finish` restores them.
///
/// On several ranks the splits and gathers of `prepare` are operations of the flow, in the order of the partitions'
/// numbers, which are equal on all ranks.
///
/// Used by the submitting thread. Partitions may end before this does.
class RecordedParts {
 public:
  /// Calls a function for each datum of the recording.
  using ForEachDatum = std::function<void(const std::function<void(runtime::Handle&)>&)>;

  // --- while the recording is made
  /// Notes that `plan` is used, and may be about to change its state.
  void note(PartPlan& plan);
  /// Checks the end of a recording. Throws UsageError when a replay would leave parts without values.
  void check() const;
  /// Ends the recording, which uses `all` data; empty: it was abandoned. Restores the partitions as they were before
  /// it. `plan_count`: number of partitions made so far.
  void finish(const ForEachDatum& all, std::uint64_t plan_count);

  // --- replays
  /// Splits and gathers before a replay. `plan_count`: number of partitions made so far. Throws UsageError when one has
  /// ended.
  void prepare(const ForEachDatum& all, std::uint64_t plan_count) const;
  /// Called after the replay was submitted, or, with `is_replayed` false, was refused.
  void leave(bool is_replayed) const;

 private:
  struct Known {
    std::weak_ptr<PartPlan*> plan;
    std::string name;  ///< name of the whole
    PartPlan::State first = PartPlan::State::idle;
    PartPlan::State last = PartPlan::State::idle;
    unsigned depth = 0;  ///< number of partitions that contain it
    std::uint64_t number = 0;
  };

  void gather_others(const ForEachDatum& all) const;
  static PartPlan* alive(const Known& known);

  std::vector<Known> plans_;  ///< once it is finished, the outer ones come first
  std::unordered_set<const void*> known_;  ///< their `itself_`
  std::uint64_t plan_count_ = 0;  ///< number of partitions made when the recording ended
};

}  // namespace tandem::internal
