// tandem/runtime/worker/in_flight.hpp: the tasks in flight on a worker's device, by place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/sched/placing/durations.hpp"

namespace tandem::runtime {

/// The places of one device. A place is taken from a launch to the task's end, and then free for another task.
///
/// A lane has one task, or a stretch: tasks posted one behind the other, each of which waits only for the one before
/// it. The first of them is the running one. They end in this order, whatever the device reports first.
///
/// Threads: the worker's thread, except for `visit`.
class InFlight {
 public:
  struct Run {
    std::int64_t launched_ns = 0;
    bool is_traced = false;  ///< the trace has the start of the task
    bool is_behind = false;  ///< it was posted behind another task
    bool is_alone = true;    ///< it is not behind another task, and none was posted behind it
    Durations::Choice choice;
    std::optional<Device::Ended> ended = {};  ///< what the device has reported
  };

  /// Makes up to `depth` lanes of up to `stretch` tasks.
  InFlight(unsigned depth, unsigned stretch, unsigned worker, NodeIndex node)
      : tasks_(std::make_unique<std::atomic<const Task*>[]>(std::size_t{depth} * stretch)),
        runs_(std::size_t{depth} * stretch),
        lanes_(depth),
        stretch_(stretch) {
    TANDEM_ASSERT(depth > 0 && stretch > 0);
    places_.reserve(runs_.size());
    for (unsigned place = 0; place < runs_.size(); ++place) places_.emplace_back(place, place % depth, worker, node);
    for (unsigned lane = depth; lane > 0; --lane) free_.push_back(lane - 1);
  }

  bool empty() const noexcept { return order_.empty(); }
  /// Whether no lane is free.
  bool full() const noexcept { return free_.empty(); }
  unsigned lane_count() const noexcept { return static_cast<unsigned>(lanes_.size()); }
  /// Whether `place` has a task.
  bool has(unsigned place) const noexcept {
    return place < places_.size() && tasks_[place].load(std::memory_order_relaxed) != nullptr;
  }
  DeviceTask& at(unsigned place) noexcept { return places_[place]; }
  Run& run(unsigned place) noexcept { return runs_[place]; }
  /// The place of the task that was launched before all others.
  unsigned oldest() const noexcept { return order_.front(); }
  /// Places of a lane's tasks, in their order.
  const std::vector<unsigned>& lane(unsigned lane) const noexcept { return lanes_[lane]; }
  bool has_behind(unsigned place) const noexcept { return lanes_[place % lane_count()].back() != place; }

  /// Takes a free place in a free lane for `task`.
  DeviceTask& take(Task& task, const Durations::Choice& choice, Memory& memory, std::int64_t now_ns) {
    const unsigned lane = free_.back();
    free_.pop_back();
    return take(lane, {.launched_ns = now_ns, .choice = choice}, task, memory);
  }
  /// Takes a place for `task` behind the last task of a lane that has less than `stretch`.
  DeviceTask& take_behind(unsigned lane, Task& task, const Durations::Choice& choice, Memory& memory,
                          std::int64_t now_ns) {
    TANDEM_ASSERT(!lanes_[lane].empty() && lanes_[lane].size() < stretch_);
    runs_[lanes_[lane].back()].is_alone = false;
    unsigned place = lane;
    while (has(place)) place += lane_count();
    return take(place, {.launched_ns = now_ns, .is_behind = true, .is_alone = false, .choice = choice}, task, memory);
  }
  /// Frees a place, whose task is no longer in flight.
  Run leave(unsigned place) {
    const unsigned at = place % lane_count();
    std::erase(order_, place);
    std::erase(lanes_[at], place);
    if (lanes_[at].empty()) free_.push_back(at);
    tasks_[place].store(nullptr, std::memory_order_relaxed);
    return std::move(runs_[place]);
  }

  /// Calls `visit(task)` for each task in flight; it may have ended meanwhile. Any thread.
  template <class Visit>
  void visit(const Visit& visit) const {
    for (unsigned place = 0; place < places_.size(); ++place)
      if (const Task* const task = tasks_[place].load(std::memory_order_acquire)) visit(*task);
  }

 private:
  DeviceTask& take(unsigned place, Run run, Task& task, Memory& memory) {
    order_.push_back(place);
    lanes_[place % lane_count()].push_back(place);
    places_[place].set(task, run.choice.implementation, memory);
    runs_[place] = std::move(run);
    tasks_[place].store(&task, std::memory_order_release);
    return places_[place];
  }

  std::vector<DeviceTask> places_;  ///< places of lane l: l, l + depth, l + 2 depth, ...
  std::unique_ptr<std::atomic<const Task*>[]> tasks_;  ///< by place; null: free
  std::vector<Run> runs_;                              ///< by place
  std::vector<std::vector<unsigned>> lanes_;           ///< places of the tasks of each lane
  std::vector<unsigned> order_;                        ///< order of launches
  std::vector<unsigned> free_;                         ///< free lanes
  const unsigned stretch_;
};

}  // namespace tandem::runtime
