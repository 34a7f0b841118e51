// tandem/runtime/record/graph_test.cpp: recorded flows: their place among live tasks, their instances and changes.
#include "tandem/runtime/record/graph.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/base/event_loop.hpp"
#include "tandem/clock/loop_clock.hpp"
#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/record/recorder.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::runtime::graph_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The value of a task: its kernel notes it when it runs.
using Number = std::tuple<int>;

struct Fixture {
  std::unique_ptr<base::EventLoop> loop = std::make_unique<base::EventLoop>(1);  // the runtime takes it
  clock::LoopClock loop_clock{*loop};
  base::Log log{base::LogLevel::error, [](base::LogLevel, std::string_view) {}};
  std::vector<int> order;
  std::shared_ptr<CodeletCore> codelet;
  std::unique_ptr<RuntimeCore> core;
  // They end before their runtime, as in programs.
  std::vector<std::unique_ptr<Handle, void (*)(Handle*) noexcept>> owned;

  struct NotingCore final : CodeletCore {
    explicit NotingCore(std::vector<int>& where) : CodeletCore("note"), order(where) {}
    std::vector<int>& order;
  };

  Fixture() {
    World world;
    world.driver = std::move(loop);
    world.policy = make_prio();
    world.clock = &loop_clock;
    world.log = &log;
    world.add_cpu_workers(1);
    core = std::make_unique<RuntimeCore>(std::move(world), CoreOptions{});
    codelet = std::make_shared<NotingCore>(order);
    codelet->devices.push_back(DeviceKind::cpu);
  }
  static const TaskOps& ops() {
    static const TaskOps result{
        .invoke =
            [](KernelCall& call) {
              static_cast<NotingCore&>(*call.task.codelet)
                  .order.push_back(std::get<0>(*static_cast<Number*>(call.task.values())));
            },
        .copy_values = [](Task& from, Task& to,
                          bool) { new (to.values()) Number(*static_cast<Number*>(from.values())); },
        .value_types = &typeid(Number),
        .value_bytes = sizeof(Number),
        .value_alignment = alignof(Number)};
    return result;
  }
  Handle& data(const char* name, double& value) {
    return keep(core->data().add(name, {1, 1, sizeof(double)}, &value, 1, typeid(double), {}));
  }
  Handle& unwritten(const char* name) {
    return keep(core->data().add(name, {1, 1, sizeof(double)}, nullptr, 1, typeid(double), {}));
  }
  Handle& keep(Handle* handle) { return *owned.emplace_back(handle, &DataRegistry::drop_owner); }
  TaskRef submit(int number, std::initializer_list<std::pair<Handle*, AccessMode>> uses, int priority = 0) {
    Task& task = core->submission().begin(codelet, ops(), static_cast<unsigned>(uses.size()));
    new (task.values()) Number(number);
    unsigned i = 0;
    for (const auto& [handle, mode] : uses) task.accesses()[i++].set(handle, mode);
    task.priority = priority;
    return core->submission().submit(task);
  }
  std::unique_ptr<RecordedGraph> record(const std::function<void()>& flow) { return record_graph(*core, flow); }
};

TEST(RecordedGraph, NothingRunsUntilItIsReplayed) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  const auto graph = f.record([&] { f.submit(1, {{&x, AccessMode::read_write}}); });
  f.core->waits().wait_all();
  EXPECT_TRUE(f.order.empty());
  graph->replay();
  f.core->waits().wait_all();
  EXPECT_THAT(f.order, ElementsAre(1));
}

TEST(RecordedGraph, AReplayStandsWhereItWasCalled) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  const auto graph = f.record([&] {
    f.submit(10, {{&x, AccessMode::read_write}});
    f.submit(11, {{&x, AccessMode::read}});
    f.submit(12, {{&x, AccessMode::read_write}});
  });
  f.submit(1, {{&x, AccessMode::write}});
  f.submit(2, {{&x, AccessMode::read}});
  graph->replay();
  f.submit(3, {{&x, AccessMode::read_write}}, 100);
  graph->replay();
  f.submit(4, {{&x, AccessMode::read}}, 100);
  f.core->waits().wait_all();
  EXPECT_THAT(f.order, ElementsAre(1, 2, 10, 11, 12, 3, 10, 11, 12, 4));
}

TEST(RecordedGraph, ReadersOfARecordingDelayTheWritersAfterIt) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  for (const int readers : {3, 20}) {  // held one by one, and by the end of the replay
    const auto graph = f.record([&] {
      for (int i = 0; i < readers; ++i) f.submit(10, {{&x, AccessMode::read}});
    });
    f.order.clear();
    graph->replay();
    f.submit(1, {{&x, AccessMode::write}}, 100);
    f.core->waits().wait_all();
    EXPECT_EQ(f.order.size(), static_cast<std::size_t>(readers) + 1);
    EXPECT_EQ(f.order.back(), 1);
  }
}

TEST(RecordedGraph, AnInstanceWhoseReplayHasEndedIsUsedAgain) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  const auto graph = f.record([&] { f.submit(1, {{&x, AccessMode::read_write}}); });
  for (int i = 0; i < 5; ++i) {
    graph->replay();
    f.core->waits().wait_all();
  }
  EXPECT_EQ(graph->instance_count(), 1U);
  for (int i = 0; i < 3; ++i) graph->replay();
  EXPECT_EQ(graph->instance_count(), 3U) << "three replays at a time";
  f.core->waits().wait_all();
  EXPECT_EQ(f.order.size(), 8U);
}

TEST(RecordedGraph, TheSteadyStateOfReplaysTakesNoTasksFromThePool) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  const auto graph = f.record([&] {
    for (int i = 0; i < 50; ++i) f.submit(1, {{&x, i % 3 == 0 ? AccessMode::read_write : AccessMode::read}});
  });
  for (int i = 0; i < 10; ++i) graph->replay();
  f.core->waits().wait_all();
  const std::size_t bytes = f.core->submission().pool().bytes();
  for (int i = 0; i < 100; ++i) {
    graph->replay();
    f.core->waits().wait_all();
  }
  EXPECT_EQ(f.core->submission().pool().bytes(), bytes);
}

TEST(RecordedGraph, ChangesReachTheReplaysAfterThemInEveryInstance) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  TaskRef task;
  const auto graph = f.record([&] { task = f.submit(1, {{&x, AccessMode::read_write}}); });
  const auto change = [&](int number) { std::get<0>(*static_cast<Number*>(graph->change(task)->values())) = number; };
  graph->replay();
  change(2);
  graph->replay();
  change(3);
  graph->replay();
  f.core->waits().wait_all();
  graph->replay();
  f.core->waits().wait_all();
  EXPECT_THAT(f.order, ElementsAre(1, 2, 3, 3));
}

TEST(RecordedGraph, OtherDataTakesThePlaceOfTheRecorded) {
  Fixture f;
  double a = 0;
  double b = 0;
  Handle& x = f.data("x", a);
  Handle& y = f.data("y", b);
  const auto graph = f.record([&] { f.submit(1, {{&x, AccessMode::read_write}}); });
  graph->rebind(x, y);
  f.submit(2, {{&y, AccessMode::write}});
  graph->replay();
  f.submit(3, {{&y, AccessMode::read}}, 5);
  f.core->data().unregister(x);
  graph->replay();
  f.core->waits().wait_all();
  EXPECT_THAT(f.order, ElementsAre(2, 1, 3, 1));
}

TEST(RecordedGraph, WhatWasOnlyRecordedHasWrittenNothing) {
  Fixture f;
  Handle& x = f.unwritten("x");
  const auto graph = f.record([&] {
    f.submit(1, {{&x, AccessMode::write}});
    f.submit(2, {{&x, AccessMode::read}});
  });
  EXPECT_THROW(f.submit(3, {{&x, AccessMode::read}}), UsageError);
  graph->replay();
  f.submit(4, {{&x, AccessMode::read}});
  f.core->waits().wait_all();
  EXPECT_THAT(f.order, ElementsAre(1, 2, 4));
}

TEST(RecordedGraph, AReplayThatWouldSeeWhatNobodyWroteIsRefused) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  Handle& y = f.unwritten("y");
  const auto graph = f.record([&] { f.submit(1, {{&x, AccessMode::read}}); });
  graph->rebind(x, y);
  try {
    graph->replay();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'y'"));
  }
}

TEST(RecordedGraph, ItsEndCanBeWaitedForAfterItIsGone) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  auto graph = f.record([&] { f.submit(1, {{&x, AccessMode::read_write}}); });
  const TaskRef end = graph->replay();
  graph.reset();
  EXPECT_THAT(f.order, ElementsAre(1)) << "it waits for its replays";
  f.core->accesses().wait(end);
  f.submit(2, {{&x, AccessMode::read}});
  f.core->waits().wait_all();
  EXPECT_EQ(f.order.size(), 2U);
}

TEST(RecordedGraph, ChangesOfManyStepsDoNotGather) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  TaskRef one;
  TaskRef two;
  const auto graph = f.record([&] {
    one = f.submit(1, {{&x, AccessMode::read_write}});
    two = f.submit(2, {{&x, AccessMode::read_write}});
  });
  const auto change = [&](const TaskRef& task, int number) {
    std::get<0>(*static_cast<Number*>(graph->change(task)->values())) = number;
  };
  graph->replay();
  graph->replay();  // makes a second instance, which is then unused
  f.core->waits().wait_all();
  for (int step = 0; step < 1'000; ++step) {
    change(one, step);
    if (step == 500) change(two, 7);
    graph->replay();
    f.core->waits().wait_all();
    ASSERT_LE(graph->change_count(), 2 * (graph->task_count() + 1));
  }
  f.order.clear();
  graph->replay();
  graph->replay();
  f.core->waits().wait_all();
  EXPECT_THAT(f.order, ElementsAre(999, 7, 999, 7)) << "the one that has rested has missed nothing";
}

TEST(RecordedGraph, AProgramThatRecordsEachStepDoesNotGrow) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  const auto step = [&] {
    const auto graph = f.record([&] {
      for (int i = 0; i < 30; ++i) {
        Task& task = f.core->submission().begin(f.codelet, Fixture::ops(), 1);
        new (task.values()) Number(1);
        task.accesses()[0].set(&x, i % 3 == 0 ? AccessMode::read_write : AccessMode::read);
        f.core->submission().extra_of(task).name = "named, so that it has an extra part";
        f.core->submission().submit(task);
      }
    });
    graph->replay();
    graph->replay();
    f.core->waits().wait_all();
  };
  for (int i = 0; i < 5; ++i) step();
  const std::size_t bytes = f.core->submission().pool().bytes();
  const std::size_t extras = f.core->submission().pool().extra_count();
  for (int i = 0; i < 50; ++i) step();
  EXPECT_EQ(f.core->submission().pool().bytes(), bytes);
  EXPECT_EQ(f.core->submission().pool().extra_count(), extras);
}

TEST(DataRegistry, ItsCheckFindsDataThatNamesATaskOfTheFuture) {
  Fixture f;
  double value = 0;
  Handle& x = f.data("x", value);
  f.submit(1, {{&x, AccessMode::read_write}});
  f.core->waits().wait_all();
  const TaskId last = f.core->submission().last_id();
  EXPECT_TRUE(f.core->data().check_invariants(last));
  EXPECT_FALSE(f.core->data().check_invariants(0));
  x.home.owned = true;
  EXPECT_FALSE(f.core->data().check_invariants(last)) << "memory of the user's that Tandem would free";
  x.home.owned = false;
  EXPECT_TRUE(f.core->data().check_invariants(last));
  EXPECT_TRUE(f.core->submission().check_invariants());
  EXPECT_TRUE(f.core->executor().queues().check_invariants());
}

}  // namespace
}  // namespace tandem::runtime::graph_test
