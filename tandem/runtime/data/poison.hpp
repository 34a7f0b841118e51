// tandem/runtime/data/poison.hpp: a kernel that threw, and the mark of a version that does not exist because of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// A kernel that threw. The data that it should have written points to it; see `FailureLog` for how long it lives.
struct FlowFailure {
  TaskId id = 0;                 ///< position in the flow
  std::exception_ptr exception;
  std::string description;       ///< the task, its line, and what() of the exception
  TaskId last_cancelled = 0;     ///< position of the last task cancelled because of it; written by the log
  TaskId thrown_until = 0;       ///< position of the last wait that threw it; written by the log
  bool is_new = false;           ///< it was added, or cancelled a task, since the last report; written by the log
  bool is_named = false;         ///< mark of the log while it looks for failures that nothing names
  bool stays = false;            ///< the log never forgets it
};

/// Marks the present version of some data as missing, with the reason.
///
/// A failed task of a commuting or reducing group does not stop its neighbours in the group: which of them come after
/// it depends on the schedule, and what is cancelled must not. So the mark of a member of a group has a bit of its own
/// (`add`): neighbours do not see it (`seen_in_group`), and the first task after the group settles it (`settle`). Of
/// several members' failures the earliest in the flow stays.
///
/// Threads: the graph's order separates writers from all others; members of one group, and readers of one version, may
/// call concurrently.
class Poison {
 public:
  bool any() const noexcept { return bits_.load(std::memory_order_acquire) != 0; }

  /// For a member of a group: the failure before the group, or null.
  FlowFailure* seen_in_group() const noexcept {
    const std::uintptr_t bits = bits_.load(std::memory_order_acquire);
    return (bits & kInGroup) != 0 ? nullptr : reinterpret_cast<FlowFailure*>(bits);
  }

  /// For a task that sees the version: why it does not exist, or null.
  FlowFailure* settle() noexcept {
    std::uintptr_t bits = bits_.load(std::memory_order_acquire);
    // Several readers may store this concurrently; all store the same value.
    if ((bits & kInGroup) != 0) bits_.store(bits & ~kInGroup, std::memory_order_release);
    return reinterpret_cast<FlowFailure*>(bits & ~kInGroup);
  }

  /// Marks the version that a failed task should have written alone.
  void set(FlowFailure* failure) noexcept {
    bits_.store(reinterpret_cast<std::uintptr_t>(failure), std::memory_order_release);
  }

  /// Marks the version that a failed member of a group should have contributed to.
  void add(FlowFailure* failure) noexcept {
    std::uintptr_t bits = bits_.load(std::memory_order_acquire);
    do {
      if (bits != 0 && (bits & kInGroup) == 0) return;
      if (bits != 0 && reinterpret_cast<FlowFailure*>(bits & ~kInGroup)->id <= failure->id) return;
    } while (!bits_.compare_exchange_weak(bits, reinterpret_cast<std::uintptr_t>(failure) | kInGroup,
                                          std::memory_order_acq_rel, std::memory_order_acquire));
  }

  /// The failure, settled or not. For a thread that is alone with the data.
  FlowFailure* named() const noexcept {
    return reinterpret_cast<FlowFailure*>(bits_.load(std::memory_order_acquire) & ~kInGroup);
  }

  void clear() noexcept { bits_.store(0, std::memory_order_release); }

 private:
  static constexpr std::uintptr_t kInGroup = 1;
  std::atomic<std::uintptr_t> bits_{0};
};

}  // namespace tandem::runtime
