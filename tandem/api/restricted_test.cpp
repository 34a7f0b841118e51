// tandem/api/restricted_test.cpp: tasks that only some workers can run: priorities, distribution, and a can_run that
// throws.
#include <atomic>
#include <optional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::restricted_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using test::thrown_by;
using testing::ElementsAre;
using testing::Each;
using testing::Le;

bool on_device(const WorkerDescription& worker) { return worker.device == DeviceKind::user; }

runtime::CoreOptions each_takes(std::int64_t ns) {
  runtime::CoreOptions options;
  options.emulation = [ns](const runtime::EmulatedTask&) { return std::optional<std::int64_t>(ns); };
  return options;
}

std::vector<std::uint64_t> tasks_of(Runtime& rt, unsigned first) {
  std::vector<std::uint64_t> counts;
  for (const runtime::WorkerReport& worker : rt.statistics().workers) counts.push_back(worker.tasks);
  return {counts.begin() + first, counts.end()};
}

TEST(RestrictedTasks, SpreadOverTheDevicesThatAreFree) {
  auto rt = loop_runtime({.workers = 30, .devices = 4}, each_takes(1'000'000));
  const auto codelet = Codelet("k", [](int) {}).also(DeviceKind::user, [](int) {}).can_run(on_device);
  for (int i = 0; i < 34; ++i) rt->submit(codelet, i);
  rt->wait();
  const std::vector<std::uint64_t> counts = tasks_of(*rt, 30);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), 34U);
  EXPECT_THAT(counts, Each(Le(10U)));
}

TEST(RestrictedTasks, SpreadAlsoWhenTheirDataMustBeBrought) {
  auto rt = loop_runtime({.workers = 2, .devices = 4, .copy_ns = 100'000}, each_takes(10'000));
  const auto codelet = Codelet("k", [](double&) {}).also(DeviceKind::user, [](double&) {}).can_run(on_device);
  std::vector<double> values(80);
  std::vector<Data<double>> data;
  for (double& value : values) data.push_back(rt->data("x", value));
  for (const auto& x : data) rt->submit(codelet, read_write(x));
  rt->wait();
  EXPECT_THAT(tasks_of(*rt, 2), Each(Le(40U)));
}

TEST(RestrictedTasks, ThatPreferDevicesLeaveCoresAlone) {
  const auto codelet = Codelet("k", [](int) {}).also(DeviceKind::user, [](int) {}).prefer_devices();
  auto rt = loop_runtime({.workers = 6, .devices = 2}, each_takes(1'000'000));
  for (int i = 0; i < 20; ++i) rt->submit(codelet, i);
  rt->wait();
  const std::vector<std::uint64_t> counts = tasks_of(*rt, 6);
  EXPECT_EQ(counts[0] + counts[1], 20U);
  auto cores = loop_runtime({.workers = 2}, each_takes(1'000'000));
  for (int i = 0; i < 20; ++i) cores->submit(codelet, i);
  cores->wait();
  EXPECT_THAT(tasks_of(*cores, 0), ElementsAre(10U, 10U)) << "there are none";
}

TEST(RestrictedTasks, OfAllDevicesAndCoresAreSharedByAll) {
  auto rt = loop_runtime({.workers = 6, .devices = 2}, each_takes(1'000'000));
  const auto codelet = Codelet("k", [](int) {}).also(DeviceKind::user, [](int) {});
  for (int i = 0; i < 80; ++i) rt->submit(codelet, i);
  rt->wait();
  EXPECT_THAT(tasks_of(*rt, 0), Each(Le(12U)));
}

TEST(RestrictedTasks, RunByPriority) {
  auto rt = loop_runtime({.workers = 1});
  std::vector<int> order;
  const Codelet plain("plain", [&](int number) { order.push_back(number); });
  const auto restricted = plain.can_run([](const WorkerDescription&) { return true; });
  rt->submit({.priority = 1}, restricted, 1);
  rt->submit({.priority = 3}, restricted, 3);
  rt->submit({.priority = 2}, plain, 2);
  rt->submit({.priority = 5}, restricted, 5);
  rt->submit({.priority = 4}, plain, 4);
  rt->wait();
  EXPECT_THAT(order, ElementsAre(5, 4, 3, 2, 1));
}

TEST(RestrictedTasks, AreRecordedAndReplayed) {
  auto rt = thread_runtime({.workers = 3});
  int sum = 0;
  auto x = rt->data("x", sum);
  const auto codelet = Codelet("add", [](const Context& context, int& v) { v += context.worker == 1 ? 1 : 100; })
                           .can_run([](const WorkerDescription& worker) { return worker.worker == 1; });
  Graph graph = rt->record([&] { rt->submit(codelet, read_write(x)); });
  for (int i = 0; i < 10; ++i) rt->replay(graph);
  rt->submit(codelet, read_write(x));
  rt->wait();
  EXPECT_EQ(sum, 11);
}

TEST(RestrictedTasks, ManyOnThreadsAllRun) {
  auto rt = thread_runtime({.workers = 4});
  std::atomic<int> count{0};
  const Codelet plain("plain", [&](int) { ++count; });
  std::vector<decltype(plain.can_run({}))> some;
  for (unsigned i = 0; i < 4; ++i)
    some.push_back(
        plain.can_run([i](const WorkerDescription& worker) { return worker.worker == i || worker.worker == i / 2; }));
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 200; ++i) i % 3 == 0 ? rt->submit(plain, i) : rt->submit(some[static_cast<unsigned>(i) % 4], i);
    rt->wait();
  }
  EXPECT_EQ(count, 4'000);
}

TEST(RestrictedTasks, ACanRunThatThrowsDoesSoAtSubmit) {
  auto rt = thread_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  const auto codelet = Codelet("add", [](double& v) { v += 1; }).can_run([](const WorkerDescription& worker) -> bool {
    if (worker.worker == 1) throw std::runtime_error("no idea");
    return true;
  });
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->submit(codelet, read_write(x)); }), "no idea");
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->submit(codelet, read_write(x)); }), "no idea");
  rt->wait();
  EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace tandem::restricted_test
