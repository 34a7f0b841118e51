// tandem/api/recorded_parts.hpp: which partitions a recording finds split, and which it leaves split.
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

/// The partitions of the data that a recording uses: the state of each when the recording began and when it ended. Splits and gathers in between are
/// tasks of the recording. So a replay begins with the former states, for which it splits and gathers what differs, and leaves the latter ones.
///
/// While the recording is made, partitions change their states as if its tasks ran. `finish` puts them back.
///
/// On several ranks what `prepare` splits and gathers are operations of the flow: in the order of the partitions' numbers, which all ranks give alike.
///
/// Of the submitting thread. Partitions may end before this does.
class RecordedParts {
 public:
  /// Calls a function for each datum of the recording.
  using ForEachDatum = std::function<void(const std::function<void(runtime::Handle&)>&)>;

  // --- while the recording is made
  /// `plan` is used, and may be about to change its state.
  void note(PartPlan& plan);
  /// At its end. Throws UsageError when a replay would leave parts without values.
  void check() const;
  /// The recording has ended, and uses `all` data; null: it was given up. The partitions are as they were before it, of which `plan_count` were made.
  void finish(const ForEachDatum* all, std::uint64_t plan_count);

  // --- replays
  /// Splits and gathers before a replay. `plan_count`: as many partitions have been made so far. Throws UsageError when one has ended.
  void prepare(const ForEachDatum& all, std::uint64_t plan_count) const;
  /// After the replay was submitted, or, with `is_replayed` false, was refused.
  void leave(bool is_replayed) const;

 private:
  struct Known {
    std::weak_ptr<PartPlan*> plan;
    std::string name;  ///< of the whole
    PartPlan::State first = PartPlan::State::idle;
    PartPlan::State last = PartPlan::State::idle;
    unsigned depth = 0;  ///< so many partitions it is in
    std::uint64_t number = 0;
  };

  void gather_others(const ForEachDatum& all) const;
  static PartPlan* alive(const Known& known);

  std::vector<Known> plans_;  ///< the outer ones first, once it is finished
  std::unordered_set<const void*> known_;  ///< their `itself_`
  std::uint64_t plan_count_ = 0;  ///< as many partitions had been made when the recording ended
};

}  // namespace tandem::internal
