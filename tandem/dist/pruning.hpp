// tandem/dist/pruning.hpp: tasks that a rank skips, what it does not know because of that, and whether it may skip them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tandem/dist/need.hpp"
#include "tandem/dist/place.hpp"

namespace tandem::dist {

/// A rank may skip tasks of the flow: its position goes on, and nothing else happens. It must submit
/// (a) tasks that it runs,
/// (b) tasks that see data which it owns or holds, and that write such data or data of which it has a copy,
/// (c) before it sees data, the last task that wrote it,
/// (d) tasks with `reduce` accesses, and the next one that uses their data otherwise.
///
/// By (b) a sender knows all recipients, and a rank drops its copy where the sender counts it as dropped; by (c) a receiver knows
/// who holds the data. Each rank chooses alone what it skips: that changes nothing on other ranks. Of other ranks' data, a rank
/// that has skipped tasks knows a lower bound of the version, and messages say so.
///
/// Threads: the submitting thread.
class Pruning {
 public:
  explicit Pruning(std::uint32_t rank) : rank_(rank) {}

  /// So many tasks are skipped.
  void count_skipped(std::uint64_t tasks) noexcept {
    skipped_ += tasks;
    since_wait_ = ever_ = true;
  }
  std::uint64_t skipped() const noexcept { return skipped_; }
  /// This rank has skipped tasks since the last wait; or ever.
  bool since_wait() const noexcept { return since_wait_; }
  bool ever() const noexcept { return ever_; }
  void end_flow() noexcept { since_wait_ = false; }

  /// A task that this rank has skipped may have written the data.
  bool may_have_missed(const Place& place) const noexcept { return ever_ && place.owner != rank_; }
  /// This rank has seen all versions of the data so far.
  bool knows_version(const Place& place) const noexcept { return !ever_ || place.always_here; }

  /// By rules (a), (b) and (d) this rank must submit a task with these accesses now. `policy`: a policy places tasks that write
  /// data of several owners.
  bool concerns(std::span<const Use> uses, bool policy) const;

  // --- option `check_pruning`: all tasks are submitted, and those that this rank would have skipped are checked
  /// The tasks that follow are such, or not.
  void set_skipping(bool skipping) noexcept { skipping_ = skipping; }
  bool is_skipping() const noexcept { return skipping_; }
  /// Of each task that is entered. Throws UsageError when it breaks rule (a), (b) or (c).
  void check_task(std::uint32_t executor, std::span<const Need> needs, const Wish& wish);
  /// A task here sees the data. Throws UsageError when rule (c) is broken.
  void check_known(runtime::Handle& handle, const SourceLine& where) const;
  /// Throws UsageError: the task that is entered does `what` to the data.
  [[noreturn]] void refuse_skip(const std::string& what, const runtime::Handle& handle, const SourceLine& where) const;

 private:
  const std::uint32_t rank_;
  std::uint64_t skipped_ = 0;
  bool since_wait_ = false;
  bool ever_ = false;
  bool skipping_ = false;
};

}  // namespace tandem::dist
