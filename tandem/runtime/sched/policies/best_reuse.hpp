// tandem/runtime/sched/policies/best_reuse.hpp: chooses the ready task that reuses the data in a memory best. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "tandem/runtime/sched/policies/pulling_policy.hpp"

namespace tandem::runtime {

/// The rule of DARTS (Gonthier, Marchal, Thibault 2023: memory-aware scheduling of tasks sharing data on multiple
/// GPUs): a task that needs no copy to memory `node`; else one of the tasks that lack only one datum, for the datum
/// that the most tasks lack; else the task that needs the fewest bytes. Among equals, the one that was added first.
class BestReuse {
 public:
  /// `ready` outlives this.
  BestReuse(NodeIndex node, const ReadyView& ready) : node_(node), ready_(ready) {}

  /// Considers a further task, which outlives this. Costs a load per datum.
  void add(const OpenTask& task) {
    std::size_t missing = 0;
    unsigned data = 0;
    const void* last = nullptr;
    for (const AccessView& access : ready_.accesses(task)) {
      if (!access.is_missing(node_) || access.is_coming(node_)) continue;
      missing += access.bytes;
      if (access.datum != last) ++data;
      last = access.datum;
    }
    if (data == 1) count(task, last);
    if (nearest_ != nullptr && missing >= fewest_) return;
    nearest_ = &task;
    fewest_ = missing;
  }
  /// Whether the best task needs no copy, so that no other is better.
  bool needs_nothing() const noexcept { return nearest_ != nullptr && fewest_ == 0; }
  /// The best task; null: none was added.
  const OpenTask* task() const noexcept {
    if (count_ == 0 || needs_nothing()) return nearest_;
    return std::max_element(freed_.begin(), freed_.begin() + count_,
                            [](const Freed& a, const Freed& b) { return a.tasks < b.tasks; })->first;
  }

 private:
  struct Freed {
    const void* by;         ///< the missing datum
    const OpenTask* first;  ///< first task that misses this datum alone
    unsigned tasks;         ///< number of such tasks
  };

  /// Counts a task that misses only `by`; without a place for a further datum, nothing.
  void count(const OpenTask& task, const void* by) noexcept {
    const auto end = freed_.begin() + count_;
    const auto known = std::find_if(freed_.begin(), end, [&](const Freed& freed) { return freed.by == by; });
    if (known != end) ++known->tasks;
    else if (count_ < freed_.size()) freed_[count_++] = {by, &task, 1};
  }

  const NodeIndex node_;
  const ReadyView& ready_;
  std::array<Freed, 64> freed_;
  std::size_t count_ = 0;
  const OpenTask* nearest_ = nullptr;
  std::size_t fewest_ = 0;
};

}  // namespace tandem::runtime
