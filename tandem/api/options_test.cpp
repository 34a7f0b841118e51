// tandem/api/options_test.cpp: effects of options: statistics, timeline, pictures, callers that do not work, idle
// workers.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/config.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::options_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using testing::HasSubstr;

const Codelet kAdd("add", [](double& v) { v += 1; });

TEST(Options, TheProgramsOwnGoBeforeTheEnvironment) {
  setenv("TANDEM_WORKERS", "3", 1);
  setenv("TANDEM_SCHED", "eager", 1);
  {
    Runtime rt(Options{.workers = 2});
    EXPECT_EQ(rt.worker_count(), 2U);
    EXPECT_EQ(rt.config().get_string("sched"), "eager");
  }
  unsetenv("TANDEM_WORKERS");
  unsetenv("TANDEM_SCHED");
}

TEST(Options, AUsersOwnPolicyIsAskedWhereTasksGo) {
  struct OnlyTheLast final : runtime::Policy {
    std::string_view name() const noexcept override { return "last"; }
    std::string_view help() const noexcept override { return "everything to the last worker"; }
    bool queue_per_worker() const noexcept override { return true; }
    bool by_priority() const noexcept override { return true; }
    bool keeps_released() const noexcept override { return false; }
    unsigned place(const runtime::ReadyTask&, const runtime::Situation& now) const noexcept override {
      return now.worker_count - 1;
    }
    std::vector<unsigned> victims(unsigned, std::span<const unsigned>) const override { return {}; }
  };
  auto resources = std::make_unique<WorldResources>();
  resources->policies.add("last", [] { return std::make_unique<OnlyTheLast>(); });
  auto world = make_test_world({.workers = 3, .sched = "last"}, *resources);
  Runtime rt(std::move(resources), std::move(world), {});
  std::set<unsigned> workers;
  const Codelet where("where", [&](const Context& context) { workers.insert(context.worker); });
  for (int i = 0; i < 20; ++i) rt.submit(where);
  rt.wait();
  EXPECT_EQ(workers, (std::set<unsigned>{2}));
}

TEST(Options, StatisticsCountEachCodelet) {
  runtime::CoreOptions options;
  options.statistics = true;
  auto rt = loop_runtime({.workers = 2}, options);
  double value = 0;
  auto x = rt->data("x", value);
  for (int i = 0; i < 10; ++i) rt->submit(kAdd, read_write(x));
  rt->submit(Codelet("other", [] {}));
  rt->wait();
  const StatisticsReport report = rt->statistics();
  ASSERT_EQ(report.codelets.size(), 2U);
  std::uint64_t tasks = 0;
  for (const auto& worker : report.workers) tasks += worker.tasks;
  EXPECT_EQ(tasks, 11U);
  for (const auto& codelet : report.codelets) EXPECT_EQ(codelet.durations.count, codelet.name == "add" ? 10U : 1U);
}

TEST(Options, TheTimelineHasEachRunInOrder) {
  auto rt = thread_runtime({.workers = 2, .more = {{"timeline", "true"}}});
  double value = 0;
  auto x = rt->data("x", value);
  for (int i = 0; i < 50; ++i) rt->submit(kAdd, read_write(x));
  rt->wait();
  const std::vector<TimelineEvent> events = rt->timeline();
  ASSERT_EQ(events.size(), 50U);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(*events[i].codelet, "add");
    EXPECT_LE(events[i].start_ns, events[i].end_ns);
    EXPECT_LT(events[i].worker, 2U);
    if (i == 0) continue;
    EXPECT_LE(events[i - 1].end_ns, events[i].start_ns) << "a chain";
    EXPECT_LT(events[i - 1].task, events[i].task);
  }
}

/// The times are virtual, and exactly those of the model.
TEST(Options, EmulatedTasksTakeTheirTimeAndComputeNothing) {
  runtime::CoreOptions options;
  options.emulation = [](const runtime::EmulatedTask& task) -> std::optional<std::int64_t> {
    if (task.codelet != "add") return std::nullopt;
    return static_cast<std::int64_t>(task.data[0].bytes()) * 1'000;
  };
  options.timeline = true;
  auto rt = loop_runtime({.workers = 2}, options);
  double chain = 1, other = 1, real = 1;
  auto x = rt->data("x", chain), y = rt->data("y", other), z = rt->data("z", real);
  unsigned called = 0;
  for (int i = 0; i < 3; ++i) rt->submit({.callback = [&] { ++called; }}, kAdd, read_write(x));
  for (int i = 0; i < 2; ++i) rt->submit(kAdd, read_write(y));
  rt->submit(Codelet("copy", [](double from, double& to) { to = from; }), read(x), read_write(z));
  rt->wait();
  EXPECT_EQ(chain, 1.0);
  EXPECT_EQ(real, 1.0);
  EXPECT_EQ(called, 3U);
  std::int64_t begin_ns = INT64_MAX, end_ns = 0;
  for (const TimelineEvent& event : rt->timeline()) {
    if (*event.codelet != "add") continue;
    EXPECT_GE(event.end_ns - event.start_ns, 8'000);
    EXPECT_LT(event.end_ns - event.start_ns, 9'000);
    begin_ns = std::min(begin_ns, event.start_ns);
    end_ns = std::max(end_ns, event.end_ns);
  }
  EXPECT_GE(end_ns - begin_ns, 24'000);
  EXPECT_LT(end_ns - begin_ns, 32'000) << "the chains run side by side";
}

TEST(Options, EmulatedTasksTakeTheirTimeOnThreads) {
  runtime::Emulation emulation = [](const runtime::EmulatedTask&) { return std::optional<std::int64_t>(20'000'000); };
  Runtime rt(
      Options{.workers = 16, .more = {{"bind", "false"}, {"ranks", "alone"}}, .emulation = std::move(emulation)});
  std::vector<double> values(16, 1.0);
  std::vector<Data<double>> data;
  for (double& value : values) data.push_back(rt.data("x", value));
  const auto begin = std::chrono::steady_clock::now();
  for (auto& x : data) rt.submit(kAdd, read_write(x));
  rt.wait();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(elapsed.count(), 0.020);
  EXPECT_EQ(values, std::vector<double>(16, 1.0));
}

TEST(Options, TheGraphOfTheFlowIsWrittenAtTheEnd) {
  const std::string path = testing::TempDir() + "tandem_options_test.dot";
  {
    runtime::CoreOptions options;
    options.graphviz = path;
    auto rt = loop_runtime({}, options);
    double value = 0;
    auto x = rt->data("my data", value);
    rt->submit({.priority = 3, .name = "first"}, kAdd, read_write(x));
    rt->submit(kAdd, read_write(x));
    rt->wait();
  }
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr("digraph"));
  EXPECT_THAT(text, HasSubstr("priority 3"));
  EXPECT_THAT(text, HasSubstr("t1 -> t2 [label=\"my data\"]"));
  std::remove(path.c_str());
}

TEST(Options, ACallerThatDoesNotWorkLeavesTheTasksToTheOthers) {
  auto rt = thread_runtime({.workers = 2, .more = {{"caller", "false"}}});
  const auto caller = std::this_thread::get_id();
  const Codelet check("check", [caller] { EXPECT_NE(std::this_thread::get_id(), caller); });
  for (int i = 0; i < 100; ++i) rt->submit(check);
  rt->wait();
}

TEST(Options, OneWorkerIsEnoughForEverything) {
  auto rt = thread_runtime({.workers = 1});
  double value = 0;
  auto x = rt->data("x", value);
  for (int i = 0; i < 1'000; ++i) rt->submit(kAdd, commute(x));
  rt->wait();
  EXPECT_EQ(value, 1'000);
}

TEST(Options, ATinyWindowOnlySlowsDown) {
  for (const char* window : {"1", "2", "7"}) {
    auto rt = thread_runtime({.workers = 3, .more = {{"window", window}}});
    double value = 0;
    auto x = rt->data("x", value);
    for (int i = 0; i < 300; ++i) rt->submit(kAdd, read_write(x));
    rt->wait();
    EXPECT_EQ(value, 300) << window;
  }
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST(Options, IdleWorkersAdaptTheirPollingUnlessToldNotTo) {
  EXPECT_TRUE(core_options(test::test_config({})).adaptive_polling);
  EXPECT_FALSE(core_options(test::test_config({.more = {{"polling", "fixed"}}})).adaptive_polling);
}

TEST(Options, IdleWorkersSleep) {
  auto rt = thread_runtime({.workers = 4});
  rt->parallel_for(0, 100, [](std::size_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double before = processor_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double used = processor_seconds() - before;
  std::printf("idle workers used %.2f %% of a core\n", used / 0.5 * 100);
  // The promise is 1 %; only a worker that polls without end fails the test, whatever else the machine does.
  EXPECT_LT(used, 0.25);
  double value = 0;
  auto x = rt->data("x", value);
  rt->submit(kAdd, read_write(x));
  rt->wait();
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace tandem::options_test
