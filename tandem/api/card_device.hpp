// tandem/api/card_device.hpp: a device for tests, which runs tasks in the time of an event loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/device.hpp"

namespace tandem::test {

/// Counters of a memory for a test. Outlives the memory.
struct MemoryUse {
  std::set<const void*> blocks;
  std::size_t bytes = 0;
  std::size_t most_bytes = 0;
};

/// A separate memory, which can be full.
class OwnMemory final : public MemoryNode {
 public:
  explicit OwnMemory(std::size_t most_bytes, MemoryUse* use = nullptr) : left_(most_bytes), use_(use) {}
  std::string name() const override { return "card memory"; }
  void* allocate(std::size_t bytes) override {
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    void* const memory = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (use_ != nullptr) {
      use_->blocks.insert(memory);
      use_->most_bytes = std::max(use_->most_bytes, use_->bytes += bytes);
    }
    return memory;
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    left_ += bytes;
    if (use_ != nullptr) {
      use_->blocks.erase(memory);
      use_->bytes -= bytes;
    }
    std::free(memory);
  }

 private:
  std::size_t left_;
  MemoryUse* use_;
};

/// Settings and counters of a test's device.
struct Card {
  unsigned depth = 2;
  std::int64_t task_ns = 1'000;
  bool wakes = true;
  bool in_order = false;     ///< each lane runs one task after the other, and calls its kernel at its launch
  bool times = false;        ///< it reports how long kernels ran
  std::int64_t way_ns = 0;   ///< delay of the report of an end
  std::function<void(const DeviceTask&)> at_launch = [](const DeviceTask&) {};  ///< may throw
  std::function<void(const DeviceTask&)> at_end = [](const DeviceTask&) {};  ///< may throw, is called before the kernel
  base::EventLoop* loop = nullptr;

  unsigned launches = 0;
  unsigned in_flight = 0;
  unsigned most_in_flight = 0;
  unsigned polls = 0;
};

/// Runs each task for `task_ns` of the loop's time; tasks in flight overlap, except those of one lane.
class CardDevice final : public Device {
 public:
  explicit CardDevice(Card& card) : card_(card) {}
  std::string name() const override { return "card"; }
  unsigned depth() const noexcept override { return card_.depth; }
  void connect(base::Waker& waker) override { waker_ = &waker; }
  Launched launch(DeviceTask& task, std::int64_t now_ns) override {
    ++card_.launches;
    card_.at_launch(task);
    if (card_.in_order) task.run();
    card_.most_in_flight = std::max(card_.most_in_flight, ++card_.in_flight);
    std::int64_t start_ns = now_ns;
    if (card_.in_order) {
      lanes_until_ns_.resize(depth());
      start_ns = std::max(start_ns, lanes_until_ns_[task.lane()]);
      lanes_until_ns_[task.lane()] = start_ns + card_.task_ns;
    }
    until_ns_ = start_ns + card_.task_ns + card_.way_ns;
    card_.loop->at(until_ns_, [this, &task, has_run = card_.in_order] {
      Ended ended{.place = task.place(), .kernel_ns = card_.times ? card_.task_ns : 0};
      try {
        card_.at_end(task);
        if (!has_run) task.run();
      } catch (...) {
        ended.failure = std::current_exception();
      }
      ended_.push_back(std::move(ended));
      if (card_.wakes) waker_->wake();
    });
    return Launched::posted;
  }
  std::int64_t poll(std::int64_t now_ns, std::vector<Ended>& ended) override {
    ++card_.polls;
    card_.in_flight -= static_cast<unsigned>(ended_.size());
    for (Ended& one : ended_) ended.push_back(std::move(one));
    ended_.clear();
    return card_.wakes ? base::kNever : std::max(now_ns + 1, until_ns_);
  }
  bool runs_behind(const DeviceTask&, const runtime::Task&) const override { return card_.in_order; }

 private:
  Card& card_;
  base::Waker* waker_ = nullptr;
  std::int64_t until_ns_ = 0;
  std::vector<std::int64_t> lanes_until_ns_;
  std::vector<Ended> ended_;
};

/// The memory of each device.
struct CardMemory {
  bool own = true;
  std::size_t most_bytes = std::size_t{1} << 30;
  std::size_t budget = 0;
  MemoryUse* use = nullptr;                                 ///< null: no counters are needed
  std::function<std::unique_ptr<Copier>()> copier = nullptr;  ///< null: the processor copies
};

/// Makes a runtime on an event loop, with `workers` cores and one worker for each device.
inline std::unique_ptr<Runtime> runtime_with(const std::vector<Card*>& cards, const CardMemory& memory = {},
                                             runtime::CoreOptions options = {}, unsigned workers = 2,
                                             LogLines* lines = nullptr, std::uint64_t seed = 1) {
  options.tasks_per_step = 1;  // otherwise one core may take all tasks before the device takes any
  auto resources = test_resources(lines);
  runtime::World world = make_test_world({.seed = seed, .workers = workers}, *resources);
  for (Card* card : cards) {
    card->loop = resources->loop;
    DeviceUnit unit{.kind = DeviceKind::user, .device = std::make_unique<CardDevice>(*card)};
    if (memory.own) unit.memory = std::make_unique<OwnMemory>(memory.most_bytes, memory.use);
    if (memory.copier) unit.copier = memory.copier();
    unit.budget = memory.budget;
    world.add_device(std::move(unit));
  }
  return std::make_unique<Runtime>(std::move(resources), std::move(world), options);
}

inline bool on_device(const WorkerDescription& worker) { return worker.device == DeviceKind::user; }

}  // namespace tandem::test
