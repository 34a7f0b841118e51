// tandem/api/cancel_test.cpp: a flow that is cancelled on one rank: which tasks run, which values data has, and that
// another flow follows.
#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::cancel_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using test::thrown_by;
using testing::HasSubstr;

const Codelet kAdd("add", [](double more, double& v) { v += more; });
const Codelet kSet("set", [](double value, double& v) { v = value; });
const Codelet kCopy("copy", [](const double& from, double& to) { to = from; });
const Codelet kCancelAt("cancel at", [](Runtime* rt, double limit, double& v) {
  v += 1;
  if (v == limit) rt->cancel();
});

/// Options under which each task counts as begun by itself.
runtime::CoreOptions exact() {
  runtime::CoreOptions options;
  options.begin_ahead_ns = 0;
  return options;
}

struct Cancelling : testing::Test {
  std::unique_ptr<Runtime> owner = loop_runtime({.workers = 2}, exact());
  Runtime& rt = *owner;
  std::array<double, 3> values{1, 2, 3};
  std::array<Data<double>, 3> data{rt.data("a", values[0]), rt.data("b", values[1]), rt.data("c", values[2])};
};

TEST_F(Cancelling, AKernelEndsTheFlowBehindIt) {
  for (int i = 0; i < 20; ++i) rt.submit(kCancelAt, &rt, 8.0, read_write(data[0]));
  rt.wait();
  EXPECT_EQ(values[0], 8) << "it began with 1: seven tasks have run";
  EXPECT_TRUE(rt.cancelled_at().has_value());
  EXPECT_FALSE(rt.cancelled());
}

TEST_F(Cancelling, AFlowThatIsNotCancelledSaysSo) {
  rt.submit(kAdd, 1.0, read_write(data[0]));
  EXPECT_FALSE(rt.cancelled());
  rt.wait();
  EXPECT_FALSE(rt.cancelled_at().has_value());
}

TEST_F(Cancelling, TheTasksUpToThePositionRun) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    auto loop = loop_runtime({.seed = seed, .workers = 4, .sched = seed % 2 == 0 ? "random" : "lws"}, exact());
    std::array<double, 5> v{};
    std::vector<Data<double>> d;
    for (double& value : v) d.push_back(loop->data("v", value));
    struct Submitted {
      TaskRef task;
      std::uint64_t before, after;
    };
    std::vector<Submitted> tasks;
    std::vector<char> ran(60, 0);
    const Codelet note("note", [](char* did, Runtime* to_cancel, double&) {
      *did = 1;
      if (to_cancel != nullptr) to_cancel->cancel();
    });
    for (std::size_t i = 0; i < ran.size(); ++i) {
      const std::uint64_t before = loop->position();
      const TaskRef task =
          loop->submit(note, &ran[i], i == 20 ? loop.get() : nullptr, read_write(d[(i * seed) % d.size()]));
      tasks.push_back({task, before, loop->position()});
    }
    loop->wait();
    const std::uint64_t end = loop->cancelled_at().value();
    EXPECT_GT(end, tasks[20].before);
    for (std::size_t i = 0; i < ran.size(); ++i) {
      EXPECT_EQ(ran[i] != 0, tasks[i].task.id <= end) << "seed " << seed << ", task " << i;
      if (tasks[i].after <= end) { EXPECT_EQ(ran[i], 1) << "seed " << seed << ", task " << i; }
      if (tasks[i].before >= end) { EXPECT_EQ(ran[i], 0) << "seed " << seed << ", task " << i; }
    }
  }
}

TEST_F(Cancelling, WhatIsSubmittedBehindTheEndIsNothing) {
  rt.submit(kAdd, 1.0, read_write(data[0]));
  rt.cancel();
  EXPECT_TRUE(rt.cancelled()) << "nothing had begun";
  EXPECT_EQ(rt.submit(kAdd, 1.0, read_write(data[1])).task, nullptr);
  EXPECT_EQ(rt.submit({.priority = 1}, kAdd, 1.0, read_write(data[1])).task, nullptr);
  EXPECT_EQ(*rt.acquire(read(data[1])), 2) << "what is here can be looked at";
  rt.wait();
  EXPECT_EQ(values, (std::array<double, 3>{1, 2, 3}));
  EXPECT_EQ(rt.cancelled_at(), 0U);
}

TEST_F(Cancelling, AnotherFlowFollows) {
  for (int round = 0; round < 3; ++round) {
    values[0] = 1;
    for (int i = 0; i < 20 && !rt.cancelled(); ++i) rt.submit(kCancelAt, &rt, 4.0, read_write(data[0]));
    rt.wait();
    EXPECT_EQ(values[0], 4) << round;
    EXPECT_TRUE(rt.cancelled_at().has_value());
    rt.submit(kCopy, read(data[0]), write(data[1]));
    rt.wait();
    EXPECT_EQ(values[1], 4) << round;
    EXPECT_FALSE(rt.cancelled_at().has_value());
  }
}

TEST_F(Cancelling, TwiceIsOnceAndWithNothingLeftItIsNothing) {
  rt.submit(kAdd, 1.0, read_write(data[0]));
  rt.wait();
  rt.cancel();
  rt.cancel();
  rt.wait();
  EXPECT_TRUE(rt.cancelled_at().has_value());
  rt.submit(kAdd, 1.0, read_write(data[0]));
  rt.wait();
  EXPECT_EQ(values[0], 3);
  EXPECT_FALSE(rt.cancelled_at().has_value());
}

TEST_F(Cancelling, DataThatNobodyHadWrittenHasNoValue) {
  auto fresh = rt.scalar<double>("fresh");
  rt.submit(kCancelAt, &rt, 2.0, read_write(data[0]));
  rt.submit(kCopy, read(data[0]), write(fresh));
  rt.submit(kAdd, 1.0, read_write(fresh));
  rt.wait();
  rt.submit(kCopy, read(fresh), write(data[1]));
  EXPECT_THAT(thrown_by<FlowCancelled>([&] { rt.wait(); }), HasSubstr("has no value"));
  EXPECT_THAT(thrown_by<FlowCancelled>([&] { rt.acquire(read(fresh)); }), HasSubstr("has no value"));
  rt.submit(kSet, 5.0, write(fresh));
  rt.submit(kCopy, read(fresh), write(data[1]));
  rt.wait();
  EXPECT_EQ(values[1], 5);
}

TEST_F(Cancelling, GroupsKeepWhatTheirTasksThatRanHaveAdded) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    auto loop = loop_runtime({.seed = seed, .workers = 3, .sched = "random"}, exact());
    double commuted = 0, reduced = 0;
    auto c = loop->data("commuted", commuted), r = loop->data("reduced", reduced);
    r.reduction([](double& copy) { copy = 0; }, [](double& into, double from) { into += from; });
    std::vector<TaskRef> tasks;
    std::atomic<int> calls{0};
    const Codelet both("both", [&](double value, double& x, double& y) {
      x += value;
      y += value;
      if (++calls == 9) loop->cancel();
    });
    for (int i = 0; i < 30; ++i) tasks.push_back(loop->submit(both, i + 1.0, commute(c), reduce(r)));
    loop->submit(kAdd, 1000.0, read_write(r));
    loop->wait();
    double expected = 0;
    for (int i = 0; i < 30; ++i)
      if (tasks[static_cast<std::size_t>(i)].id <= *loop->cancelled_at()) expected += i + 1;
    EXPECT_EQ(commuted, expected) << seed;
    EXPECT_EQ(reduced, expected) << seed;
  }
}

TEST_F(Cancelling, AReplayIsCutLikeAnyFlow) {
  Graph graph = rt.record([&] {
    rt.submit(kCancelAt, &rt, 6.0, read_write(data[0]));
    rt.submit(kCopy, read(data[0]), write(data[1]));
  });
  for (int i = 0; i < 20; ++i) rt.replay(graph);
  rt.wait();
  EXPECT_EQ(values[0], 6);
  EXPECT_GE(values[1], 5) << "of the last replay the copy may have been behind the end";
  EXPECT_LE(values[1], 6);
  values[0] = 7;
  rt.replay(graph);
  rt.wait();
  EXPECT_EQ(values[0], 8);
  EXPECT_EQ(values[1], 8) << "nothing is left of the other flow";
}

TEST_F(Cancelling, WaitsForWhatDidNotRunThrow) {
  const TaskRef first = rt.submit(kCancelAt, &rt, 2.0, read_write(data[0]));
  const TaskRef second = rt.submit(kAdd, 1.0, read_write(data[0]));
  rt.wait(first);
  EXPECT_THAT(thrown_by<FlowCancelled>([&] { rt.wait(second); }), HasSubstr("did not run"));
  EXPECT_THAT(thrown_by<FlowCancelled>([&] { rt.parallel_for(0, 10, [](std::size_t) {}); }), HasSubstr("did not run"));
  rt.wait();
  rt.wait(second);
  EXPECT_EQ(values[0], 2);
}

TEST_F(Cancelling, EventsBehindTheEndDoNotStart) {
  std::vector<Event> started;
  rt.submit(kCancelAt, &rt, 2.0, read_write(data[0]));
  const auto start = [&](Event event) { started.push_back(event); };
  rt.event("behind", Release::separate, start, read_write(data[0]));
  rt.submit(kCopy, read(data[0]), write(data[1]));
  rt.wait();
  EXPECT_TRUE(started.empty());
  EXPECT_EQ(values[0], 2);
  rt.event("before", Release::separate, start, read_write(data[0]));
  rt.submit(kCopy, read(data[0]), write(data[1]));
  EXPECT_EQ(started.size(), 1U);
  rt.cancel();
  EXPECT_FALSE(rt.event("ignored", Release::separate, start, read_write(data[0])).is_here());
  values[0] = 9;
  started.at(0).readable();
  started.at(0).released();
  rt.wait();
  EXPECT_EQ(values[0], 9);
  EXPECT_EQ(values[1], 2) << "the copy was behind the end";
}

TEST_F(Cancelling, AFailureBeforeTheEndIsThrown) {
  const Codelet fail("fail", [](double&) { throw std::runtime_error("failed"); });
  rt.submit(fail, read_write(data[1]));
  rt.submit({.after = {}}, kCancelAt, &rt, 2.0, read_write(data[0]));
  const TaskRef behind = rt.submit(kAdd, 1.0, read_write(data[0]));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.wait(); }), "failed");
  EXPECT_LE(rt.cancelled_at().value(), behind.id);
  rt.submit(kSet, 1.0, write(data[1]));
  rt.wait();
  EXPECT_EQ(values[1], 1);
}

TEST(CancellingOnThreads, TheTasksUpToThePositionRan) {
  for (int round = 0; round < 30; ++round) {
    auto rt = thread_runtime({.workers = 3});
    std::array<double, 8> v{};
    std::vector<Data<double>> d;
    for (double& value : v) d.push_back(rt->data("v", value));
    std::atomic<int> calls{0};
    const Codelet count("count", [&](double& x) {
      x += 1;
      if (calls.fetch_add(1) == 1000) rt->cancel();
    });
    std::array<std::vector<TaskRef>, 8> tasks;
    for (std::size_t i = 0; i < 20'000 && !rt->cancelled(); ++i)
      tasks[i % 8].push_back(rt->submit(count, read_write(d[i % 8])));
    rt->wait();
    ASSERT_TRUE(rt->cancelled_at().has_value());
    for (std::size_t i = 0; i < 8; ++i) {
      double expected = 0;
      for (const TaskRef& task : tasks[i])
        if (task.task != nullptr && task.id <= *rt->cancelled_at()) expected += 1;
      EXPECT_EQ(v[i], expected) << round;
    }
  }
}

TEST(CancellingOnThreads, AnotherThreadMayCancel) {
  auto rt = thread_runtime({.workers = 2});
  double value = 0;
  auto data = rt->data("value", value);
  std::thread other([&] { rt->cancel(); });
  long submitted = 0;
  for (; !rt->cancelled(); ++submitted) rt->submit(kAdd, 1.0, read_write(data));
  other.join();
  rt->wait();
  EXPECT_LE(value, submitted);
  EXPECT_EQ(rt->cancelled_at().has_value(), true);
}

TEST(CancellingFromOtherThreads, NeverCutsAFlowBeforeWhatHasRun) {
  auto rt = thread_runtime({.workers = 2});
  std::atomic<bool> over{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i)
    others.emplace_back([&] {
      while (!over) {
        rt->cancel();
        std::this_thread::yield();
      }
    });
  double value = 0;
  auto x = rt->data("x", value);
  for (int round = 0; round < 200; ++round) {
    value = 0;
    const std::uint64_t before = rt->position();
    double submitted = 0;
    for (int i = 0; i < 20 && !rt->cancelled(); ++i, ++submitted) rt->submit(kAdd, 1.0, read_write(x));
    rt->wait();
    const std::uint64_t end = rt->cancelled_at().value_or(rt->position());
    ASSERT_EQ(value, std::min(submitted, static_cast<double>(end > before ? end - before : 0))) << "round " << round;
  }
  over = true;
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace tandem::cancel_test
