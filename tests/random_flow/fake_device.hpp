// tests/random_flow/fake_device.hpp: a device that a fake network drives: tasks end later and in any order, and some
// never run.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "arithmetic.hpp"
#include "fake_network.hpp"
#include "tandem/device.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/call_count.hpp"

namespace tandem::random_flow {

/// How a fake device behaves.
struct DeviceManner {
  unsigned depth = 1;
  bool wakes = true;             ///< wakes its worker; else it says when to poll next
  std::uint64_t lost_after = 0;  ///< it is lost at a launch after so many; 0: never
  bool in_order = false;  ///< tasks may be posted behind others; kernels run in `launch`, and their ends and faults are
                          ///< reported later, in any order
  bool times = false;            ///< it says how long kernels ran
  bool main_memory_is_limited = false;  ///< a value that is there, too, may leave it while the task runs
};

/// Runs kernels on the thread of `network`. What fails says the label of the task.
class FakeDevice final : public Device {
 public:
  /// What is to happen to a task.
  struct Plan {
    DeviceFault fault = DeviceFault::none;
    std::string label;
    bool fails_anyway = false;  ///< with a fault it runs nowhere
    std::atomic<unsigned>* runs_behind_broken = nullptr;
  };
  using PlanOf = std::function<Plan(const DeviceTask&)>;

  FakeDevice(FakeNetwork& network, unsigned number, const DeviceManner& manner, std::uint64_t seed, PlanOf plan_of)
      : network_(network),
        number_(number),
        manner_(manner),
        random_(seed),
        plan_of_(std::move(plan_of)),
        lanes_(manner.depth) {}

  std::string name() const override { return "fake " + std::to_string(number_); }
  unsigned depth() const noexcept override { return manner_.depth; }
  void connect(base::Waker& waker) override { waker_ = &waker; }

  Launched launch(DeviceTask& task, std::int64_t) override {
    const Plan plan = plan_of_(task);
    const std::string& label = plan.label;
    DeviceFault fault = plan.fault;
    ++launches_;
    if (manner_.lost_after != 0 && launches_ > manner_.lost_after && in_flight_ == 0 && fault == DeviceFault::none &&
        inputs_are_elsewhere(task)) {
      damage(task);
      throw DeviceError(DeviceEffect::lost, label);
    }
    Lane& lane = lanes_[task.lane()];
    const bool is_behind = lane.in_flight != 0;
    if (!is_behind) lane.is_broken = false;
    // Its inputs are valid elsewhere if it is to run there; in a stretch it may fail for good, too.
    const bool may_fail = manner_.in_order && plan.fails_anyway;
    if (fault == DeviceFault::broken && !may_fail && (is_behind || !inputs_are_elsewhere(task)))
      fault = DeviceFault::refused;
    if (fault == DeviceFault::refused_later && manner_.in_order) fault = DeviceFault::refused;
    if (fault == DeviceFault::refused) throw DeviceError(DeviceEffect::refused, label);
    if (fault == DeviceFault::none && lane.is_broken) plan.runs_behind_broken->fetch_add(1, std::memory_order_relaxed);
    if (fault == DeviceFault::none && random_() % 8 == 0) {
      task.run();
      return Launched::done;
    }
    if (manner_.in_order && fault == DeviceFault::none) task.run();
    if (manner_.in_order && fault == DeviceFault::broken) {  // reported later: until then tasks behind it run
      damage(task);
      lane.is_broken = true;
    }
    ++in_flight_;
    ++lane.in_flight;
    network_.post([this, &task, fault, label, has_run = manner_.in_order] {
      const runtime::CallCount::Guard guard_of_call(calls_);
      std::exception_ptr failure;
      try {
        if (fault == DeviceFault::none && !has_run) task.run();
        if (fault == DeviceFault::broken && !has_run) damage(task);
        if (fault != DeviceFault::none)
          throw DeviceError(fault == DeviceFault::broken ? DeviceEffect::broken : DeviceEffect::refused, label);
      } catch (...) {
        failure = std::current_exception();
      }
      {
        const std::lock_guard guard(mutex_);
        ended_.push_back({.place = task.place(), .failure = std::move(failure), .kernel_ns = manner_.times ? 100 : 0});
      }
      if (manner_.wakes) waker_->wake();
    });
    return Launched::posted;
  }

  std::int64_t poll(std::int64_t now_ns, std::vector<Ended>& ended) override {
    const std::lock_guard guard(mutex_);
    std::shuffle(ended_.begin(), ended_.end(), random_);
    // Not all at once: what stays is reported later.
    const std::size_t stay = manner_.wakes || ended_.empty() ? 0 : random_() % ended_.size();
    while (ended_.size() > stay) {
      ended.push_back(std::move(ended_.back()));
      ended_.pop_back();
      --in_flight_;
      --lanes_[ended.back().place % lanes_.size()].in_flight;
    }
    return manner_.wakes ? base::kNever : now_ns + 1 + static_cast<std::int64_t>(random_() % 3'000);
  }

  void finish() noexcept override { calls_.drain(); }
  bool runs_behind(const DeviceTask&, const runtime::Task&) const override { return manner_.in_order; }

 private:
  static bool writes(const DeviceTask& task, unsigned access) {
    return makes_value(task.mode(access)) || task.mode(access) == AccessMode::reduce;
  }
  /// What the task sees and writes is valid in main memory, too, and stays there, or can begin anew.
  bool inputs_are_elsewhere(const DeviceTask& task) const {
    for (unsigned i = 0; i < task.access_count(); ++i) {
      const runtime::AccessSlot& slot = task.task().accesses()[i];
      if (slot.alias() || !writes(task, i) || !sees_value(slot.mode())) continue;
      if (slot.handle()->private_copy != nullptr && !slot.handle()->private_copy->filled) continue;
      if (task.node() == 0 || manner_.main_memory_is_limited || (slot.handle()->valid.load() & 1U) == 0) return false;
    }
    return true;
  }
  static void damage(const DeviceTask& task) {
    for (unsigned i = 0; i < task.access_count(); ++i) {
      if (!writes(task, i)) continue;
      const runtime::Replica replica = task.memory(i);
      for (std::size_t column = 0; column < task.shape(i).cols; ++column)
        for (std::size_t row = 0; row < task.shape(i).rows; ++row)
          static_cast<std::uint64_t*>(replica.pointer)[row + column * replica.ld] = 0xDEAD;
    }
  }

  FakeNetwork& network_;
  const unsigned number_;
  const DeviceManner manner_;
  std::mt19937_64 random_;
  const PlanOf plan_of_;
  struct Lane {
    unsigned in_flight = 0;
    bool is_broken = false;  ///< a task there was, and what came behind it may have seen that
  };
  std::vector<Lane> lanes_;
  base::Waker* waker_ = nullptr;
  std::uint64_t launches_ = 0;
  unsigned in_flight_ = 0;
  runtime::CallCount calls_;  ///< of the network
  std::mutex mutex_;
  std::vector<Ended> ended_;  ///< under the mutex
};

}  // namespace tandem::random_flow
