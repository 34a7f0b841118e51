// tandem/dist/pruning.hpp: tasks that a rank skips, what it then does not know, and whether it may skip them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tandem/dist/need.hpp"
#include "tandem/dist/place.hpp"

namespace tandem::dist {

/// A rank may skip tasks of the flow: only its position advances. It must submit
/// (a) tasks that it runs,
/// (b) tasks that see data which it owns or holds, and that write such data or data of which it has a copy,
/// (c) before it sees data, the last task that wrote it,
/// (d) tasks with `reduce` accesses, and the next one that uses their data otherwise.
///
/// By (b) a sender knows all recipients, and a rank drops its copy where the sender counts it as dropped; by (c) a
/// receiver knows the holder of the data. Each rank alone chooses what it skips, which changes nothing on other ranks.
/// A rank that has skipped tasks knows a lower bound of the version of other ranks' data, and messages say so.
///
/// Threads: the submitting thread.
class Pruning {
 public:
  explicit Pruning(std::uint32_t rank) : rank_(rank) {}

  /// Counts skipped tasks.
  void count_skipped(std::uint64_t tasks) noexcept {
    skipped_ += tasks;
    since_wait_ = ever_ = true;
  }
  std::uint64_t skipped() const noexcept { return skipped_; }
  /// Whether this rank has skipped tasks: since the last wait (`since_wait`), or ever (`ever`).
  bool since_wait() const noexcept { return since_wait_; }
  bool ever() const noexcept { return ever_; }
  void end_flow() noexcept { since_wait_ = false; }

  /// Whether a task that this rank has skipped may have written the data.
  bool may_have_missed(const Place& place) const noexcept { return ever_ && place.owner != rank_; }
  /// Whether this rank has seen all versions of the data so far.
  bool knows_version(const Place& place) const noexcept { return !ever_ || place.always_here; }

  /// Whether this rank must submit a task with these accesses now, by rules (a), (b) and (d). `policy`: a policy places
  /// tasks that write data of several owners.
  bool concerns(std::span<const Use> uses, bool policy) const;

  // --- option `check_pruning`: all tasks are submitted, and those that this rank would have skipped are checked
  /// Sets whether this rank would have skipped the next tasks.
  void set_skipping(bool skipping) noexcept { skipping_ = skipping; }
  bool is_skipping() const noexcept { return skipping_; }
  /// Checks each entered task. Throws UsageError when it breaks rule (a), (b) or (c).
  void check_task(std::uint32_t executor, std::span<const Need> needs, const Wish& wish);
  /// Called when a task here sees the data. Throws UsageError when rule (c) is broken.
  void check_known(runtime::Handle& handle, const SourceLine& where) const;
  /// Throws UsageError: the entered task does `what` to the data.
  [[noreturn]] void refuse_skip(const std::string& what, const runtime::Handle& handle, const SourceLine& where) const;

 private:
  const std::uint32_t rank_;
  std::uint64_t skipped_ = 0;
  bool since_wait_ = false;
  bool ever_ = false;
  bool skipping_ = false;
};

}  // namespace tandem::dist
