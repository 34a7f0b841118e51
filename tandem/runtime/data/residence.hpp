// tandem/runtime/data/residence.hpp: what decides how long a replica stays in a memory that is limited.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tandem::runtime {

/// The tasks that use a piece of data, from their submission to their end, by their positions in the flow.
///
/// Most are submitted in ascending order, and they end in any order, so an ended one may stay as a mark until those
/// before it have ended. Both operations take O(log n), amortised; a late one is inserted before those behind it.
class UpcomingUses {
 public:
  static constexpr std::uint64_t kNone = UINT64_MAX;

  /// Adds the task at `position`. A task that names the data twice is added twice and counts once.
  void add(std::uint64_t position) {
    auto at = uses_.end();
    const auto first = uses_.begin() + static_cast<std::ptrdiff_t>(first_);
    while (at != first && at[-1] >> 1 > position) --at;
    if (at != first && at[-1] >> 1 == position) return;
    uses_.insert(at, position << 1);
  }
  /// The task at `position` has ended; without effect when it was not added.
  void end(std::uint64_t position) {
    const auto at = std::lower_bound(uses_.begin() + static_cast<std::ptrdiff_t>(first_), uses_.end(), position << 1);
    if (at == uses_.end() || *at >> 1 != position) return;
    *at |= 1;
    while (first_ < uses_.size() && (uses_[first_] & 1) != 0) ++first_;
    if (first_ < uses_.size() / 2 + 1 && first_ < uses_.size()) return;
    uses_.erase(uses_.begin(), uses_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  /// Position of the next task, or `kNone`.
  std::uint64_t next() const noexcept { return first_ < uses_.size() ? uses_[first_] >> 1 : kNone; }
  /// Number of entries, marks of ended tasks included.
  std::size_t size() const noexcept { return uses_.size(); }

 private:
  std::vector<std::uint64_t> uses_;  ///< position and whether it has ended, from `first_` on
  std::size_t first_ = 0;
};

struct Task;

/// A task that waits for memory on a node. Belongs to `Room`, under its mutex.
struct WaitingTask {
  Task* task = nullptr;
  std::size_t missing = 0;    ///< bytes of its data without memory there
  std::uint64_t number = 0;   ///< number of tasks that came there before it
  std::uint64_t granted = 0;  ///< number of tasks that had got memory there when it came
};

/// State of a piece of data in a runtime with a limited memory. Belongs to `Room`, under its mutex.
struct Residence {
  static constexpr unsigned kNowhere = UINT32_MAX;

  /// State of the replica on one node.
  struct Stay {
    std::uint32_t pins = 0;      ///< tasks and transfers that need the replica as it is
    bool charged = false;        ///< its bytes count in the node's budget
    /// Its bytes count beside the budget: a message comes or came into it, and no task has used it since.
    bool beside = false;
    bool settles = false;        ///< `Room::Orders::settled` reports when its bytes stop counting beside the budget
    bool is_hinted = false;      ///< a hint brought it, and no task has used it yet: only for a task it leaves
    bool may_leave = false;      ///< it is in the list of replicas that may leave, by the two numbers below
    std::uint64_t next_use = 0;
    std::uint64_t last_use = 0;
    std::vector<WaitingTask*> wanted_by;  ///< tasks that wait for memory there and use the data
  };

  explicit Residence(unsigned node_count) : stays(std::make_unique<Stay[]>(node_count)) {}

  std::unique_ptr<Stay[]> stays;
  UpcomingUses uses;
  std::uint64_t last_use = 0;    ///< number of accesses that had ended at its last use
  unsigned leaves = kNowhere;    ///< the node whose only valid replica is being moved away
  unsigned goes_to = kNowhere;
  bool unwanted = false;         ///< the program will not use it soon, except in submitted tasks
  bool evicted = false;          ///< it leaves as soon as no submitted task uses it
  bool abandoned = false;        ///< the program has dropped it: only submitted tasks see its value
  bool passing = false;          ///< its bytes count in `Room::passing_bytes`
  bool stuck = false;            ///< moving it away failed, and is not tried again
  bool freed = false;            ///< the data is gone; its memory goes when the move has ended
};

}  // namespace tandem::runtime
