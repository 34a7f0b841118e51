// tests/devices/devices_test.cpp: random flows on cores and failing devices of several depths give what sequential
// execution gives.
//
// DEVICES_SEED=n plays the flow of that seed alone.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <typeinfo>
#include <vector>

#include <gtest/gtest.h>

#include "../random_flow/fake_device.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/base/thread_driver.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::runtime::devices_test {
namespace {

using random_flow::DeviceFault;
using random_flow::DeviceManner;
using random_flow::FakeDevice;
using random_flow::FakeNetwork;
using random_flow::NetworkCopier;

constexpr std::size_t kWords = 6;
using Words = std::array<std::uint64_t, kWords>;

struct Spec {
  unsigned number = 0;
  std::vector<std::pair<unsigned, AccessMode>> uses;
  unsigned where = 0;  ///< codelet
  DeviceFault fault = DeviceFault::none;
};
using Values = std::tuple<const Spec*>;

/// Order shows: what is written depends on all that is read, and on the task.
void compute(const Spec& spec, std::span<std::uint64_t* const> data) {
  std::uint64_t seen = spec.number * 1'000'003 + 7;
  for (std::size_t i = 0; i < spec.uses.size(); ++i)
    if (sees_value(spec.uses[i].second))
      for (std::size_t word = 0; word < kWords; ++word) seen = seen * 31 + data[i][word];
  for (std::size_t i = 0; i < spec.uses.size(); ++i) {
    for (std::size_t word = 0; word < kWords; ++word) {
      if (makes_value(spec.uses[i].second)) data[i][word] = seen * (word + 1) + i;
      if (spec.uses[i].second == AccessMode::reduce) data[i][word] += seen * (word + 1) + i;
    }
  }
}

/// Sums of words, which are the same in any order.
Reduction sum() {
  return {.init = [](void* partial, std::size_t,
                     const Shape&) { std::fill_n(static_cast<std::uint64_t*>(partial), kWords, 0); },
          .combine =
              [](void* into, std::size_t, const void* from, std::size_t, const Shape&) {
                for (std::size_t word = 0; word < kWords; ++word)
                  static_cast<std::uint64_t*>(into)[word] += static_cast<const std::uint64_t*>(from)[word];
              }};
}

const Spec& spec_of(Task& task) { return *std::get<0>(*static_cast<Values*>(task.values())); }

const TaskOps kOps{.invoke =
                       [](KernelCall& call) {
                         std::vector<std::uint64_t*> data;
                         for (unsigned i = 0; i < call.task.access_count; ++i)
                           data.push_back(static_cast<std::uint64_t*>(call.memory(i).pointer));
                         compute(spec_of(call.task), data);
                       },
                   .value_types = &typeid(Values),
                   .value_bytes = sizeof(Values),
                   .value_alignment = alignof(Values)};

struct LoopClock final : clock::Clock {
  base::EventLoop* loop = nullptr;
  std::int64_t now_ns() const noexcept override { return loop->now_ns(); }
};
struct SteadyClock final : clock::Clock {
  std::int64_t now_ns() const noexcept override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

/// One flow. Everything is drawn from the seed.
class Flow {
 public:
  Flow(std::uint64_t seed, bool threads) : random_(seed) {
    World world;
    if (threads) {
      network_ = std::make_unique<random_flow::ThreadNetwork>(seed);
      world.driver = std::make_unique<base::ThreadDriver>([this] { return steady_.now_ns(); }, nullptr);
      world.clock = &steady_;
    } else {
      auto loop = std::make_unique<base::EventLoop>(seed);
      loop_clock_.loop = loop.get();
      network_ = std::make_unique<random_flow::LoopNetwork>(*loop);
      world.driver = std::move(loop);
      world.clock = &loop_clock_;
    }
    has_chains_ = draw(3) == 0;
    const unsigned cores = 1 + draw(3);
    world.policy = draw(2) == 0 ? make_lws() : make_prio();
    world.log = &log_;
    world.add_cpu_workers(cores);
    const unsigned devices = 1 + draw(2);
    for (unsigned i = 0; i < devices; ++i) {
      const bool has_fallback = i + 1 < devices;
      const DeviceManner manner{.depth = 1 + draw(4),
                                .wakes = draw(2) == 0,
                                .lost_after = has_fallback && draw(3) == 0 ? 1 + draw(10) : 0,
                                .in_order = draw(3) != 0,
                                .times = draw(2) == 0};
      DeviceUnit unit{.device =
                          std::make_unique<FakeDevice>(*network_, i, manner, random_(), [](const DeviceTask& task) {
                            static std::atomic<unsigned> unused{0};
                            return FakeDevice::Plan{
                                .fault = spec_of(task.task()).fault, .label = "fault", .runs_behind_broken = &unused};
                          })};
      if (draw(4) != 0) {
        unit.memory = make_main_memory();
        unit.copier = std::make_unique<NetworkCopier>(*network_);
        if (draw(2) == 0) unit.budget = sizeof(Words) * (3 + draw(3));
      }
      world.add_device(std::move(unit));
    }
    CoreOptions options;
    options.watchdog_ns = 60'000'000'000;
    options.watchdog_throws = true;
    options.timeline = draw(2) == 0;
    options.tasks_per_step = 1 + draw(20);
    options.device_stretch = 1 + draw(8);
    options.seed = seed;
    core_ = std::make_unique<RuntimeCore>(std::move(world), options);
    for (const char* name : {"core", "any", "device"}) {
      auto& codelet = *codelets_.emplace_back(std::make_shared<CodeletCore>(name));
      if (codelets_.size() != 3) codelet.devices.push_back(DeviceKind::cpu);
      if (codelets_.size() != 1) codelet.devices.push_back(DeviceKind::user);
      codelet.plain = codelets_.size() == 1;
    }
  }

  /// What is wrong with the results, or nothing.
  std::string play(unsigned length) {
    const unsigned count = 2 + draw(5);
    std::vector<Words> values(count), expected(count);
    std::vector<Handle*> handles;
    for (unsigned i = 0; i < count; ++i) {
      for (std::size_t word = 0; word < kWords; ++word) values[i][word] = expected[i][word] = random_();
      handles.push_back(core_->data().add("d" + std::to_string(i), {kWords, 1, sizeof(std::uint64_t)}, values[i].data(),
                                          kWords, typeid(Words), {}));
      handles.back()->reduction = std::make_unique<Reduction>(sum());
    }
    specs_.resize(length);
    for (Spec& spec : specs_) {
      draw_task(spec, count);
      std::vector<std::uint64_t*> data;
      for (const auto& [datum, mode] : spec.uses) data.push_back(expected[datum].data());
      compute(spec, data);
      Task& task = core_->submission().begin(codelets_[spec.where], kOps, static_cast<unsigned>(spec.uses.size()));
      new (task.values()) Values(&spec);
      for (unsigned i = 0; i < spec.uses.size(); ++i)
        task.accesses()[i].set(handles[spec.uses[i].first], spec.uses[i].second);
      task.priority = static_cast<int>(draw(5));
      core_->submission().submit(task);
      if (draw(20) == 0) core_->waits().wait_all();
    }
    core_->waits().wait_all();
    std::uint64_t tasks = 0;
    const StatisticsReport statistics = core_->workers().statistics();
    for (const WorkerReport& worker : statistics.workers) {
      tasks += worker.tasks;
      posted_behind_ += worker.posted_behind;
    }
    for (const CodeletReport& codelet : statistics.codelets)
      if (codelet.name == "combine") tasks -= codelet.durations.count;
    for (Handle* const handle : handles) DataRegistry::drop_owner(handle);
    core_.reset();
    if (tasks != 0 && tasks != length)
      return std::to_string(tasks) + " tasks were counted, and " + std::to_string(length) + " ran";
    for (unsigned i = 0; i < count; ++i)
      if (values[i] != expected[i]) return "datum " + std::to_string(i) + " has another value";
    return "";
  }

  /// Tasks that were posted behind others.
  std::uint64_t posted_behind() const { return posted_behind_; }

 private:
  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  void draw_task(Spec& spec, unsigned data) {
    static constexpr AccessMode modes[] = {AccessMode::read, AccessMode::read_write, AccessMode::write,
                                           AccessMode::reduce, AccessMode::reduce};
    spec.number = static_cast<unsigned>(&spec - specs_.data());
    std::vector<unsigned> left(data);
    for (unsigned i = 0; i < data; ++i) left[i] = i;
    for (unsigned uses = 1 + draw(std::min(3U, data)); uses > 0; --uses) {
      const unsigned at = draw(static_cast<unsigned>(left.size()));
      spec.uses.emplace_back(left[at], modes[draw(has_chains_ ? 3 : 5)]);
      left.erase(left.begin() + at);
    }
    spec.where = has_chains_ && draw(8) != 0 ? 2 : draw(3);
    if (spec.where == 1 && draw(3) == 0) spec.fault = static_cast<DeviceFault>(1 + draw(3));
  }

  std::mt19937_64 random_;
  bool has_chains_ = false;  ///< most tasks run on devices, and add to nothing
  base::Log log_{base::LogLevel::error, [](base::LogLevel, std::string_view) {}};
  LoopClock loop_clock_;
  SteadyClock steady_;
  std::unique_ptr<FakeNetwork> network_;
  std::vector<std::shared_ptr<CodeletCore>> codelets_;
  std::vector<Spec> specs_;
  std::uint64_t posted_behind_ = 0;
  std::unique_ptr<RuntimeCore> core_;
};

void play(std::uint64_t first, std::uint64_t count, bool threads) {
  if (const char* const only = std::getenv("DEVICES_SEED")) {
    first = std::strtoull(only, nullptr, 10);
    count = 1;
  }
  std::uint64_t posted_behind = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Flow flow(seed, threads);
    ASSERT_EQ(flow.play(10 + static_cast<unsigned>(seed * 37 % 90)), "") << "DEVICES_SEED=" << seed;
    posted_behind += flow.posted_behind();
  }
  EXPECT_TRUE(posted_behind != 0 || count == 1);  // else the flows say nothing of stretches
  testing::Test::RecordProperty("posted_behind", std::to_string(posted_behind));
}

TEST(RandomFlowsOnDevices, InTheEventLoopGiveWhatSequentialExecutionGives) { play(1, 4'000, false); }
TEST(RandomFlowsOnDevices, OnThreadsGiveWhatSequentialExecutionGives) { play(100'001, 60, true); }

}  // namespace
}  // namespace tandem::runtime::devices_test
