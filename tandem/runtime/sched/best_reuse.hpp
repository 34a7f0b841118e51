// tandem/runtime/sched/best_reuse.hpp: of some ready tasks, the one that makes the best use of the data in a memory. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "tandem/runtime/sched/pulling_policy.hpp"

namespace tandem::runtime {

/// The rule of DARTS (Gonthier, Marchal, Thibault 2023: memory-aware scheduling of tasks sharing data on multiple GPUs): a task that needs no copy to
/// memory `node`; if there is none, one of those that the datum frees with which most tasks need no other; if no single datum frees a task, the one that
/// needs the fewest bytes. Among equals the one that was added first.
class BestReuse {
 public:
  /// `ready` outlives this.
  BestReuse(NodeIndex node, const ReadyView& ready) : node_(node), ready_(ready) {}

  /// Looks at a further task, which outlives this. A load per datum.
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
  /// The task of the rule needs no copy, so that no other is better.
  bool needs_nothing() const noexcept { return nearest_ != nullptr && fewest_ == 0; }
  /// Null: none was added.
  const OpenTask* task() const noexcept {
    if (count_ == 0 || needs_nothing()) return nearest_;
    return std::max_element(freed_.begin(), freed_.begin() + count_, [](const Freed& a, const Freed& b) { return a.tasks < b.tasks; })->first;
  }

 private:
  struct Freed {
    const void* by;         ///< a datum
    const OpenTask* first;  ///< that misses it, and no other
    unsigned tasks;         ///< how many there are
  };

  /// When there is no place for a further datum, it is left out.
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
