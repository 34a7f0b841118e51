// tandem/api/device_test.cpp: devices of a program: depth, sleep, failures and fallbacks, measurements and traces.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/card_device.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/device.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/runtime/task/call_count.hpp"

namespace tandem::device_test {
namespace {

using test::Card;
using test::CardDevice;
using test::CardMemory;
using test::on_device;
using test::OwnMemory;
using test::runtime_with;
using test::thrown_by;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A codelet that adds 1 on a core and 100 on a device.
const auto kAdd = Codelet("add", [](double& v) { v += 1; }).also(DeviceKind::user, [](double& v) { v += 100; });
const auto kAddOnDevice = kAdd.can_run(on_device);

/// Several data of one number each.
class Numbers {
 public:
  Numbers(Runtime& rt, std::size_t count) : rt_(rt), values_(count) {
    for (double& value : values_) data.push_back(rt.data(value));
  }
  template <class Codelet>
  void submit_each(const Codelet& codelet) {
    for (const auto& x : data) rt_.submit(codelet, read_write(x));
  }
  /// The numbers once all tasks have ended.
  std::vector<double> values() {
    for (auto& x : data) rt_.wait(x);
    return values_;
  }

 private:
  Runtime& rt_;
  std::vector<double> values_;

 public:
  std::vector<Data<double>> data;  // destroyed before the memory, to which it brings its values
};

void refuse(const DeviceTask&) { throw DeviceError(DeviceEffect::refused, "queue full"); }

TEST(Devices, HaveSeveralTasksInFlightAndNotMoreThanTheirDepth) {
  Card card{.depth = 3};
  auto rt = runtime_with({&card});
  Numbers numbers(*rt, 20);
  numbers.submit_each(kAddOnDevice);
  rt->wait();
  EXPECT_EQ(numbers.values(), std::vector<double>(20, 100));
  EXPECT_EQ(card.most_in_flight, 3U);
  EXPECT_LE(rt->resources().loop->now_ns(), 7'100) << "three at a time";
}

TEST(Devices, RunTasksOfOneDatumOneAfterTheOther) {
  Card card{.depth = 4};
  auto rt = runtime_with({&card});
  double value = 0;
  auto x = rt->data("x", value);
  for (int i = 0; i < 10; ++i) rt->submit(kAddOnDevice, read_write(x));
  rt->submit(Codelet("halve", [](double& v) { v /= 2; }), read_write(x));
  rt->wait();
  EXPECT_EQ(value, 500);
  EXPECT_EQ(card.most_in_flight, 1U);
}

TEST(Devices, AreNotPolledWhileTheySleepUntilTheyWakeTheirWorker) {
  Card card{.depth = 2, .task_ns = 1'000'000'000};
  auto rt = runtime_with({&card});
  double value = 0;
  auto x = rt->data("x", value);
  for (int i = 0; i < 5; ++i) rt->submit(kAddOnDevice, read_write(x));
  rt->wait(x);
  EXPECT_EQ(value, 500);
  EXPECT_LE(card.polls, 4 * 5U);
}

TEST(Devices, ArePolledWhenTheySaidSo) {
  Card card{.depth = 2, .task_ns = 1'000'000'000, .wakes = false};
  auto rt = runtime_with({&card});
  Numbers numbers(*rt, 6);
  numbers.submit_each(kAddOnDevice);
  rt->wait();
  EXPECT_EQ(numbers.values(), std::vector<double>(6, 100));
  EXPECT_LE(card.polls, 4 * 6U);
}

TEST(Devices, FetchTheDataOfLaterTasksWhileAllTheirPlacesAreTaken) {
  // Copies take as long as kernels: without overlap they would take twice the time.
  Card card{.depth = 1, .task_ns = 1'000};
  auto resources = test::test_resources();
  runtime::World world = make_test_world({.workers = 1}, *resources);
  card.loop = resources->loop;
  struct SteadyCopier final : runtime::Copier {
    base::EventLoop& loop;
    std::int64_t free_ns = 0;
    explicit SteadyCopier(base::EventLoop& event_loop) : loop(event_loop) {}
    runtime::CopyState start(const CopyRequest& request, runtime::CopyEnded ended) override {
      free_ns = std::max(free_ns, loop.now_ns()) + 1'000;
      loop.at(free_ns, [request, ended] {
        runtime::copy_matrix(request);
        ended(nullptr);
      });
      return runtime::CopyState::posted;
    }
  };
  world.add_device({.device = std::make_unique<CardDevice>(card),
                    .memory = std::make_unique<OwnMemory>(1'000'000),
                    .copier = std::make_unique<SteadyCopier>(*resources->loop)});
  Runtime rt(std::move(resources), std::move(world), {});
  std::vector<double> values(50);
  std::vector<Data<double>> data;
  for (double& value : values) data.push_back(rt.data(value));
  const auto look = Codelet("look", [](const double&) {}).also(DeviceKind::user,
                                                               [](const double&) {}).can_run(on_device);
  for (const auto& x : data) rt.submit(look, read(x));
  const std::int64_t began_ns = rt.resources().loop->now_ns();
  rt.wait();
  EXPECT_LE(rt.resources().loop->now_ns() - began_ns, 55'000);
}

TEST(Devices, AKernelThatThrowsThereFailsItsTask) {
  Card card;
  auto rt = runtime_with({&card});
  double value = 0, other = 0;
  auto x = rt->data("x", value), y = rt->data("y", other);
  const auto bad = Codelet("bad", [](double& v) { v = 1; }).also(DeviceKind::user, [](double&) {
    throw std::runtime_error("bad kernel");
  });
  rt->submit(bad.can_run(on_device), read_write(x));
  rt->submit(kAddOnDevice, read_write(x));
  rt->submit(kAddOnDevice, read_write(y));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->wait(); }), "bad kernel");
  rt->wait(y);
  EXPECT_EQ(other, 100);
  EXPECT_EQ(card.launches, 2U);
}

TEST(FailingDevices, GiveTheirTasksToCoresThatHaveAnImplementation) {
  for (const bool later : {false, true}) {
    Card card;
    (later ? card.at_end : card.at_launch) = refuse;
    test::LogLines lines;
    auto rt = runtime_with({&card}, {}, {}, 2, &lines);
    Numbers numbers(*rt, 20);
    numbers.submit_each(kAdd);
    rt->wait();
    EXPECT_EQ(numbers.values(), std::vector<double>(20, 1));
    ASSERT_GT(card.launches, 0U);
    EXPECT_EQ(rt->statistics().workers[2].fallbacks, card.launches);
    EXPECT_THAT(lines.all(), AllOf(HasSubstr("'add'"), HasSubstr("card could not run it"), HasSubstr("queue full")));
  }
}

TEST(FailingDevices, FailTasksThatNobodyElseCanRun) {
  Card card;
  card.at_launch = refuse;
  auto rt = runtime_with({&card});
  double value = 0;
  auto x = rt->data("x", value);
  rt->submit(kAddOnDevice, read_write(x));
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }),
              AllOf(HasSubstr("'add'"), HasSubstr("device_test.cpp"), HasSubstr("on card: queue full")));
  card.at_launch = [](const DeviceTask&) {};
  Numbers others(*rt, 1);
  others.submit_each(kAddOnDevice);
  EXPECT_EQ(others.values(), std::vector<double>(1, 100)) << "the device goes on";
}

TEST(FailingDevices, GiveTheirTasksToAnotherDevice) {
  Card first, second;
  first.at_launch = refuse;
  auto rt = runtime_with({&first, &second});
  Numbers numbers(*rt, 10);
  numbers.submit_each(kAddOnDevice);
  rt->wait();
  EXPECT_EQ(numbers.values(), std::vector<double>(10, 100));
  EXPECT_GT(first.launches, 0U);
  EXPECT_EQ(second.launches, 10U);
}

TEST(FailingDevices, RepeatWhatHadBegunFromAnotherCopyOfTheData) {
  Card card;
  card.at_end = [](const DeviceTask& task) {
    *static_cast<double*>(task.memory(0).pointer) = -1;
    throw DeviceError(DeviceEffect::broken, "bit flip");
  };
  auto rt = runtime_with({&card});
  Numbers numbers(*rt, 20);
  numbers.submit_each(kAdd);
  rt->wait();
  EXPECT_EQ(numbers.values(), std::vector<double>(20, 1));
  EXPECT_GT(card.launches, 0U);
}

TEST(FailingDevices, FailWhatHadBegunWithTheOnlyCopy) {
  unsigned failed = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Card card;
    auto rt = runtime_with({&card}, {}, {}, 2, nullptr, seed);
    double value = 0;
    auto x = rt->data("x", value);
    rt->wait(rt->submit(kAddOnDevice, read_write(x)));
    card.at_end = [](const DeviceTask& task) {
      *static_cast<double*>(task.memory(0).pointer) = -1;
      throw DeviceError(DeviceEffect::broken, "bit flip");
    };
    rt->submit(kAdd, read_write(x));
    // Now it may be the device's turn; a wait begins on a core.
    if (card.launches == 1) rt->resources().loop->step_some(100);
    const std::string said = thrown_by<DeviceError>([&] { rt->wait(x); });
    if (card.launches == 1) {  // a core was first
      EXPECT_EQ(value, 101);
      continue;
    }
    EXPECT_THAT(said, HasSubstr("on card: bit flip")) << "seed " << seed;
    ++failed;
  }
  EXPECT_GT(failed, 0U);
}

TEST(FailingDevices, WithoutMemoryGiveTheirTasksToCores) {
  // The memory is full at once, or has a budget that is too small for any task.
  for (const CardMemory& memory : {CardMemory{.most_bytes = 16}, CardMemory{.budget = 16}}) {
    Card card;
    auto rt = runtime_with({&card}, memory);
    std::vector<std::vector<double>> values(20, std::vector<double>(100));
    const auto add = Codelet("add", [](std::span<double> v) {
                       v[99] += 1;
                     }).also(DeviceKind::user, [](std::span<double> v) { v[99] += 100; });
    std::vector<Data<Vector<double>>> data;
    for (auto& value : values) rt->submit(add, read_write(data.emplace_back(rt->data(value))));
    rt->wait();
    for (const auto& value : values) EXPECT_EQ(value[99], 1);
    EXPECT_EQ(card.launches, 0U);
    EXPECT_GT(rt->statistics().workers[2].fallbacks, 0U);
    EXPECT_THAT(thrown_by<OutOfMemory>([&] {
                  rt->submit(add.can_run(on_device), read_write(data[0]));
                  rt->wait();
                }),
                HasSubstr("card memory"));
  }
}

/// A link that never reaches the device, and fails at once.
struct BrokenLink final : Copier {
  runtime::CopyState start(const runtime::CopyRequest&, runtime::CopyEnded) override {
    throw DeviceError(DeviceEffect::refused, "no link");
  }
};

TEST(FailingDevices, GiveATaskToACoreWhenACopyForItFailsAtOnce) {
  Card card;
  test::LogLines lines;
  auto rt = runtime_with({&card}, {.copier = [] { return std::make_unique<BrokenLink>(); }}, {}, 2, &lines);
  Numbers numbers(*rt, 20);
  numbers.submit_each(kAdd);
  rt->wait();
  EXPECT_EQ(numbers.values(), std::vector<double>(20, 1));
  EXPECT_EQ(card.launches, 0U) << "nothing ran without its data";
  EXPECT_GT(rt->statistics().workers[2].fallbacks, 0U);
  EXPECT_THAT(lines.all(), HasSubstr("no link"));
}

TEST(LostDevices, LeaveTheirTasksToOthersAndTakeNoMore) {
  Card card{.depth = 3};
  card.at_end = [&](const DeviceTask&) { throw DeviceError(DeviceEffect::lost, "fell off the bus"); };
  test::LogLines lines;
  auto rt = runtime_with({&card}, {}, {}, 2, &lines);
  Numbers numbers(*rt, 50);
  numbers.submit_each(kAdd);
  rt->wait();
  EXPECT_EQ(numbers.values(), std::vector<double>(50, 1));
  EXPECT_LE(card.launches, 3U);
  EXPECT_GT(card.launches, 0U);
  EXPECT_THAT(lines.all(), HasSubstr("card is lost, and runs no further tasks: fell off the bus"));
}

/// A link at whose first copy the device is lost.
struct LostLink final : Copier {
  explicit LostLink(unsigned& all_tries) : tries(all_tries) {}
  runtime::CopyState start(const runtime::CopyRequest&, runtime::CopyEnded) override {
    ++tries;
    throw DeviceError(DeviceEffect::lost, "fell off the bus");
  }
  unsigned& tries;
};

TEST(LostDevices, AreFoundByTheFirstCopy) {
  Card card;
  unsigned tries = 0;
  test::LogLines lines;
  auto rt = runtime_with({&card}, {.copier = [&] { return std::make_unique<LostLink>(tries); }}, {}, 2, &lines);
  Numbers numbers(*rt, 50);
  numbers.submit_each(kAdd);
  rt->wait();
  EXPECT_EQ(numbers.values(), std::vector<double>(50, 1));
  EXPECT_EQ(tries, 1U) << "no further task tries it";
  EXPECT_EQ(card.launches, 0U);
  EXPECT_THAT(lines.all(), HasSubstr("card is lost, and runs no further tasks: fell off the bus"));
  rt->submit(kAddOnDevice, read_write(numbers.data[0]));
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }), HasSubstr("fell off the bus"));
  EXPECT_EQ(tries, 1U);
}

TEST(LostDevices, FailTheTasksThatWaitForThem) {
  Card card;
  card.at_launch = [&](const DeviceTask&) { throw DeviceError(DeviceEffect::lost, "fell off the bus"); };
  auto rt = runtime_with({&card});
  Numbers numbers(*rt, 10);
  numbers.submit_each(kAddOnDevice);
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }),
              AllOf(HasSubstr("'add'"), HasSubstr("on card"), HasSubstr("fell off the bus")));
  EXPECT_EQ(card.launches, 1U);
  rt->submit(kAddOnDevice, write(numbers.data[0]));
  EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }), HasSubstr("fell off the bus"))
      << "also those submitted later";
}

TEST(LostDevices, LeaveTheQueueToTheDevicesThatWork) {
  Card first, second;
  first.at_launch = [&](const DeviceTask&) { throw DeviceError(DeviceEffect::lost, "fell off the bus"); };
  auto rt = runtime_with({&first, &second});
  Numbers numbers(*rt, 30);
  for (int round = 0; round < 3; ++round) {
    numbers.submit_each(kAddOnDevice);
    rt->wait();
  }
  EXPECT_EQ(numbers.values(), std::vector<double>(30, 300));
  EXPECT_EQ(first.launches, 1U);
  EXPECT_EQ(second.launches, 90U);
}

TEST(Devices, AreBusyWhileSomethingIsInFlight) {
  Card card{.depth = 4};
  runtime::CoreOptions options;
  options.timeline = true;
  auto rt = runtime_with({&card}, {}, options);
  Numbers numbers(*rt, 8);
  numbers.submit_each(kAddOnDevice);
  rt->wait();
  const StatisticsReport report = rt->statistics();
  ASSERT_EQ(report.workers.size(), 3U);
  EXPECT_EQ(report.workers[2].tasks, 8U);
  EXPECT_EQ(report.workers[2].busy_ns, 2'000) << "two times four at a time";
  ASSERT_EQ(report.codelets.size(), 1U);
  EXPECT_EQ(report.codelets[0].durations.count, 8U);
  EXPECT_LE(report.codelets[0].durations.total_ns(), 2'000) << "no time counts twice";
}

TEST(Devices, KeepScratchMemoryOfEachTaskApart) {
  Card card{.depth = 3};
  auto rt = runtime_with({&card});
  Numbers numbers(*rt, 9);
  auto workspace = rt->vector<double>("workspace", 50);
  std::map<const double*, int> seen;
  const auto kernel =
      Codelet("k", [](double&, std::span<double>) {}).also(DeviceKind::user, [&](double& v, std::span<double> work) {
        ++seen[work.data()];
        std::fill(work.begin(), work.end(), v = 3);
      });
  for (const auto& x : numbers.data) rt->submit(kernel.can_run(on_device), read_write(x), scratch(workspace));
  rt->wait();
  EXPECT_EQ(numbers.values(), std::vector<double>(9, 3));
  EXPECT_EQ(seen.size(), 3U) << "one for each place";
}

TEST(Devices, TakeAModelledTimeUnderAnEmulation) {
  Card card{.depth = 2};
  runtime::CoreOptions options;
  options.emulation = [](const runtime::EmulatedTask& task) -> std::optional<std::int64_t> {
    if (task.codelet == "real") return {};
    return 50'000;
  };
  auto rt = runtime_with({&card}, {}, options);
  double value = 0;
  auto x = rt->data("x", value);
  for (int i = 0; i < 4; ++i) rt->submit(kAddOnDevice, read_write(x));
  rt->wait();
  EXPECT_EQ(card.launches, 0U);
  EXPECT_GE(rt->resources().loop->now_ns(), 200'000) << "one after the other";
  const auto real = Codelet("real", [](double& v) { v += 1; }).also(DeviceKind::user, [](double& v) { v += 100; });
  rt->submit(real.can_run(on_device), read_write(x));
  rt->wait(x);
  EXPECT_EQ(card.launches, 1U);
  EXPECT_EQ(value, 100);
}

TEST(Devices, ThatMakeNoSenseAreRefused) {
  auto resources = test::test_resources();
  runtime::World world = make_test_world({}, *resources);
  EXPECT_THAT(thrown_by<UsageError>([&] { world.add_device({}); }), HasSubstr("null"));
  Card card;
  EXPECT_THAT(thrown_by<UsageError>(
                  [&] { world.add_device({.kind = DeviceKind::cpu, .device = std::make_unique<CardDevice>(card)}); }),
              HasSubstr("'card' has kind cpu"));
  card.depth = 0;
  EXPECT_THAT(thrown_by<UsageError>([&] { world.add_device({.device = std::make_unique<CardDevice>(card)}); }),
              HasSubstr("no task may be in flight"));
}

/// A device that runs kernels on a thread of its own.
class ThreadDevice final : public Device {
 public:
  std::string name() const override { return "thread"; }
  unsigned depth() const noexcept override { return 2; }
  void connect(base::Waker& waker) override { waker_ = &waker; }
  Launched launch(DeviceTask& task, std::int64_t) override {
    const std::lock_guard guard(mutex_);
    threads_.emplace_back([this, &task] {
      task.run();
      const std::lock_guard end(mutex_);
      ended_.push_back({.place = task.place()});
      waker_->wake();
    });
    return Launched::posted;
  }
  std::int64_t poll(std::int64_t, std::vector<Ended>& ended) override {
    const std::lock_guard guard(mutex_);
    ended.insert(ended.end(), ended_.begin(), ended_.end());
    ended_.clear();
    return base::kNever;
  }
  void finish() noexcept override {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  base::Waker* waker_ = nullptr;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::vector<Ended> ended_;
};

TEST(Devices, OfAProgramAreGivenByItsOptions) {
  for (const bool own_memory : {false, true}) {
    Options options{.workers = 2};
    options.devices.push_back([own_memory] {
      DeviceUnit unit{.device = std::make_unique<ThreadDevice>()};
      if (own_memory) unit.memory = std::make_unique<OwnMemory>(1'000'000);
      return unit;
    });
    options.more = {{"ranks", "alone"}};
    Runtime rt(options);
    std::vector<double> values(20);
    std::atomic<int> on_cores{0};
    const auto add = Codelet("add", [&](double& v) { ++on_cores; v += 1; }).also(DeviceKind::user,
                                                                                 [](double& v) { v += 1; });
    for (int round = 0; round < 5; ++round)
      for (double& value : values) {
        auto x = rt.data(value);
        rt.submit(round % 2 == 0 ? add : add.can_run(on_device), read_write(x));
        rt.wait(x);
      }
    rt.wait();
    EXPECT_EQ(values, std::vector<double>(20, 5));
    EXPECT_LE(on_cores, 60);
  }
}

}  // namespace
}  // namespace tandem::device_test
