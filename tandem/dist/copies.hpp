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

/// Received copies of this rank, and what this rank knows of the copies that others have of its data.
///
/// Protocol. Without a budget a copy stays until the data is written, moved or flushed. With one, each pair of sender and
/// receiver keeps a part of it (`KeptCopies`): both apply the same rule to the same uses in the order of the flow, so both know
/// what the receiver has, and no message is needed. A copy that is not kept is dropped after the task that used it was
/// submitted
/// (`drop_unkept`). Memory is reserved in the order of the flow (`CopyBudget`), and a task's copies must fit at once
/// (`check_budget`); so the earliest task always gets its memory.
///
/// Threads: the submitting thread; `lift_budget`: any. Dropped copies return their memory on the thread that ends their last
/// reader.
class Copies {
 public:
  Copies(runtime::RuntimeCore& core, DataTable& table, std::uint32_t ranks);

  /// `bytes`: equal on all ranks; SIZE_MAX: no budget. Before anything is received.
  void set_budget(std::size_t bytes);
  /// The job has failed: nothing waits for memory any more.
  void lift_budget() { budget_.lift(); }
  /// There is no budget.
  bool keeps_all() const noexcept { return kept_bytes_ == SIZE_MAX; }
  std::size_t most_reserved() const { return budget_.most_reserved(); }

  // --- of the sender
  /// The recipient has the current version of what this rank holds, or will: true if it had before this call.
  bool recipient_has(Datum& datum, const Place& place, std::uint32_t recipient);
  /// The version ends: no rank has the next one.
  void forget_recipients(Datum& datum, const Place& place);

  // --- of the receiver
  /// A task here sees data that another rank holds. True: its copy is here. Else it is to be received, and is kept from now on.
  bool is_here(runtime::Handle& handle);
  /// Reserves memory for a copy. Returns a node that ends once there is room; none: there is.
  runtime::TaskRef reserve(runtime::Handle& handle);
  /// Throws UsageError when the copies that a task sees do not fit beside those that are kept.
  void check_budget(std::span<const Need> needs, const Wish& wish);
  /// A task here writes the data: our copy becomes the value itself, and counts no more as a copy.
  void become_value(runtime::Handle& handle);
  /// The copy is not needed any more.
  void drop_copy(runtime::Handle& handle);
  /// The same, if `drop_unkept` would drop it.
  void drop_overwritten(runtime::Handle& handle);
  /// What this rank has of the data is not needed: its memory is freed once all tasks that see it have ended, unless it is the
  /// user's.
  void drop(runtime::Handle& handle);

  /// A task begins to be entered, or a wait: drops what a task left that was refused between `is_here` and `drop_unkept`.
  void drop_refused() {
    if (!to_drop_.empty()) drop_unkept();
  }
  /// The task is about to be submitted, and may need the memory of copies that wait to be dropped: submission does not wait for
  /// room before `drop_unkept`.
  void before_submit();
  /// The task was submitted: drops copies that are not kept beyond it.
  void drop_unkept();

  /// The runtime forgets the data.
  void forget(runtime::Handle& handle);
  /// At a wait, when all tasks have ended: false, if what is reserved and kept does not agree with the data.
  bool check_invariants(std::uint32_t rank) const;

 private:
  /// Copies that are kept between tasks take at most one part in so many of the budget; the rest is for running tasks.
  static constexpr std::size_t kKeptPart = 2;

  using KeptByRank = std::unordered_map<std::uint32_t, KeptCopies>;
  KeptCopies& kept(KeptByRank& by_rank, std::uint32_t rank) { return by_rank.try_emplace(rank, kept_bytes_).first->second; }

  runtime::RuntimeCore& core_;
  DataTable& table_;
  const std::uint32_t ranks_;
  CopyBudget budget_;
  std::size_t kept_bytes_ = SIZE_MAX;  ///< of each pair of ranks
  KeptByRank kept_from_;               ///< here, by sender
  KeptByRank kept_at_;                 ///< of this rank's data, by receiver
  std::vector<runtime::Handle*> to_drop_;  ///< by the task that is entered
};

}  // namespace tandem::dist
