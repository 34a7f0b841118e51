// tandem/runtime/worker/in_flight.hpp: the tasks that a worker's device has, by their places.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/sched/implementations.hpp"

namespace tandem::runtime {

/// The places of one device. A place is taken from a launch to the task's end, and then free for another task.
///
/// Threads: the worker's thread, except for `visit`.
class InFlight {
 public:
  struct Run {
    std::int64_t launched_ns = 0;
    bool is_traced = false;  ///< the trace has its start
    Implementations::Choice choice;
  };

  InFlight(unsigned depth, unsigned worker, NodeIndex node) : tasks_(std::make_unique<std::atomic<const Task*>[]>(depth)), runs_(depth) {
    TANDEM_ASSERT(depth > 0);
    places_.reserve(depth);
    for (unsigned place = 0; place < depth; ++place) {
      places_.emplace_back(place, worker, node);
      free_.push_back(depth - 1 - place);
    }
  }

  bool empty() const noexcept { return order_.empty(); }
  bool full() const noexcept { return free_.empty(); }
  unsigned depth() const noexcept { return static_cast<unsigned>(places_.size()); }
  /// Whether a task is there.
  bool has(unsigned place) const noexcept { return place < depth() && tasks_[place].load(std::memory_order_relaxed) != nullptr; }
  DeviceTask& at(unsigned place) noexcept { return places_[place]; }
  Run& run(unsigned place) noexcept { return runs_[place]; }
  /// The place of the task that was launched before all others.
  unsigned oldest() const noexcept { return order_.front(); }

  /// A free place for `task`.
  DeviceTask& take(Task& task, const Implementations::Choice& choice, Memory& memory, std::int64_t now_ns) {
    const unsigned place = free_.back();
    free_.pop_back();
    order_.push_back(place);
    runs_[place] = {now_ns, false, choice};
    places_[place].set(task, choice.implementation, memory);
    tasks_[place].store(&task, std::memory_order_release);
    return places_[place];
  }
  /// The task there is no longer in flight.
  Run leave(unsigned place) {
    std::erase(order_, place);
    free_.push_back(place);
    tasks_[place].store(nullptr, std::memory_order_relaxed);
    return runs_[place];
  }

  /// Calls `visit(task)` for each task in flight; it may have ended meanwhile. Any thread.
  template <class Visit>
  void visit(const Visit& visit) const {
    for (unsigned place = 0; place < depth(); ++place)
      if (const Task* const task = tasks_[place].load(std::memory_order_acquire)) visit(*task);
  }

 private:
  std::vector<DeviceTask> places_;
  std::unique_ptr<std::atomic<const Task*>[]> tasks_;  ///< by place; null: free
  std::vector<Run> runs_;                              ///< by place
  std::vector<unsigned> order_;                        ///< of launches
  std::vector<unsigned> free_;
};

}  // namespace tandem::runtime
