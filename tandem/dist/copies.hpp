// tandem/dist/copies.hpp: the copies of data that ranks keep, and the memory that they take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tandem/dist/copy_budget.hpp"
#include "tandem/dist/kept_copies.hpp"
#include "tandem/dist/need.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {
class RuntimeCore;
}

namespace tandem::dist {

class DataTable;
class Datum;
struct Place;

/// Received copies of this rank, and its knowledge of the copies that others have of its data.
///
/// Protocol. Without a budget a copy stays until the data is written, moved or flushed. With one, each pair of sender
/// and receiver keeps a part of it (`KeptCopies`): both apply the same rule to the same uses in the order of the flow,
/// so both know what the receiver has, and no message is needed. A copy that is not kept is dropped after the task that
/// used it was submitted (`drop_unkept`). Memory is reserved in the order of the flow (`CopyBudget`), and a task's
/// copies must fit at once (`check_budget`); so the earliest task always gets its memory.
/// Threads: the submitting thread; any may call `lift_budget`. The thread that ends the last reader of a dropped copy
/// returns its memory.
class Copies {
 public:
  Copies(runtime::RuntimeCore& core, DataTable& table, std::uint32_t ranks);

  /// Sets the budget, `bytes`, equal on all ranks; SIZE_MAX: no budget. Before anything is received.
  void set_budget(std::size_t bytes);
  /// Called when the job has failed: no receive waits for memory any more.
  void lift_budget() { budget_.lift(); }
  /// Whether there is no budget.
  bool keeps_all() const noexcept { return kept_bytes_ == SIZE_MAX; }
  std::size_t most_reserved() const { return budget_.most_reserved(); }

  // --- the sender
  /// Counts that the recipient has the current version of data that this rank holds, or will have it: true if it had it
  /// before this call.
  bool recipient_has(Datum& datum, const Place& place, std::uint32_t recipient);
  /// Ends a version: no rank has the next one.
  void forget_recipients(Datum& datum, const Place& place);

  // --- the receiver
  /// Notes that a task here sees data of another rank. True: its copy is here. False: it must be received, and is kept
  /// from now on.
  bool is_here(runtime::Handle& handle);
  /// Reserves memory for a copy. Returns a node that ends once there is room; an empty reference: there is room now.
  runtime::TaskRef reserve(runtime::Handle& handle);
  /// Throws UsageError if the copies that a task sees do not fit beside those that are kept.
  void check_budget(std::span<const Need> needs, const Wish& wish);
  /// A task here writes the data: the copy becomes the value itself, and no longer counts as a copy.
  void become_value(runtime::Handle& handle);
  /// Drops a copy.
  void drop_copy(runtime::Handle& handle);
  /// Drops a copy that `drop_unkept` would drop.
  void drop_overwritten(runtime::Handle& handle);
  /// Drops this rank's data: its memory is freed once all tasks that see it have ended, unless it is the user's.
  void drop(runtime::Handle& handle);

  /// Called before a task is entered, or a wait: drops copies of a task that was refused between `is_here` and
  /// `drop_unkept`.
  void drop_refused() {
    if (!to_drop_.empty()) drop_unkept();
  }
  /// Called before the submission of a task that may need the memory of copies to be dropped: submission does not wait
  /// for room before `drop_unkept`.
  void before_submit();
  /// Called after the submission of a task: drops copies that are not kept beyond it.
  void drop_unkept();

  /// Called when the runtime forgets the data.
  void forget(runtime::Handle& handle);
  /// At a wait, when all tasks have ended: false, if reserved and kept bytes do not agree with the data.
  bool check_invariants(std::uint32_t rank) const;

 private:
  /// Kept copies take at most the budget divided by this; the rest is for running tasks.
  static constexpr std::size_t kKeptPart = 2;

  using KeptByRank = std::unordered_map<std::uint32_t, KeptCopies>;
  KeptCopies& kept(KeptByRank& by_rank, std::uint32_t rank) {
    return by_rank.try_emplace(rank, kept_bytes_).first->second;
  }

  runtime::RuntimeCore& core_;
  DataTable& table_;
  const std::uint32_t ranks_;
  CopyBudget budget_;
  std::size_t kept_bytes_ = SIZE_MAX;  ///< bytes for each pair of ranks
  KeptByRank kept_from_;               ///< copies kept here, by sender
  KeptByRank kept_at_;                 ///< copies of this rank's data that are kept elsewhere, by receiver
  std::vector<runtime::Handle*> to_drop_;  ///< copies that the entered task drops
};

}  // namespace tandem::dist
