// tandem/api/record_test.cpp: recordings: permitted calls, references to tasks, and graphs that are destroyed early.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::record_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

const Codelet kAdd("add", [](int by, int& value) { value += by; });

TEST(Record, AWaitInsideARecordingIsRefusedInsteadOfHanging) {
  auto rt = loop_runtime();
  int value = 0;
  auto x = rt->data("x", value);
  const TaskRef before = rt->submit(kAdd, 1, read_write(x));
  Graph other = rt->record([&] { rt->submit(kAdd, 10, read_write(x)); });
  const auto inside = [&](const std::function<void()>& action) {
    return thrown_by<UsageError>([&] { const Graph graph = rt->record(action); });
  };
  EXPECT_THAT(inside([&] { rt->wait(before); }), HasSubstr("while a graph is recorded"));
  EXPECT_THAT(inside([&] { rt->wait(rt->submit(kAdd, 1, read_write(x))); }), HasSubstr("while a graph is recorded"));
  EXPECT_THAT(inside([&] { rt->wait(x); }), HasSubstr("while a graph is recorded"));
  EXPECT_THAT(inside([&] { rt->parallel_for(0, 10, [](std::size_t) {}); }),
              AllOf(HasSubstr("parallel_for"), HasSubstr("while a graph is recorded")));
  EXPECT_THAT(inside([&] {
                rt->map_reduce(0, 10, 0, [](std::size_t i) { return static_cast<int>(i); }, std::plus<>());
              }),
              AllOf(HasSubstr("map_reduce"), HasSubstr("while a graph is recorded")));
  EXPECT_THAT(inside([&] { rt->replay(other); }), HasSubstr("while another is recorded"));
  rt->wait();
  EXPECT_EQ(value, 1);
}

TEST(Record, AReferenceToARecordedTaskIsRefusedOutsideItsRecording) {
  auto rt = loop_runtime();
  int value = 0;
  auto x = rt->data("x", value);
  TaskRef recorded;
  std::optional<Graph> graph = rt->record([&] { recorded = rt->submit(kAdd, 1, read_write(x)); });
  const auto refused = [&] {
    EXPECT_THAT(thrown_by<UsageError>([&] { rt->wait(recorded); }), HasSubstr("rt.wait(replay, task)"));
    EXPECT_THAT(thrown_by<UsageError>([&] { rt->submit({.after = {recorded}}, kAdd, 5, read_write(x)); }),
                AllOf(HasSubstr("'add'"), HasSubstr("recorded task")));
    EXPECT_THAT(thrown_by<UsageError>([&] {
                  const Graph other = rt->record([&] { rt->submit({.after = {recorded}}, kAdd, 5, read_write(x)); });
                }),
                HasSubstr("not of the same recording"));
  };
  refused();
  rt->replay(*graph);
  refused();
  rt->wait();
  graph.reset();
  refused();
  rt->wait();
  EXPECT_EQ(value, 1) << "what is refused leaves no task";
}

void wait_for_one_task(Runtime& rt) {
  int x = 0;
  int y = 0;
  auto hx = rt.data("x", x);
  auto hy = rt.data("y", y);
  TaskRef first, last;
  std::optional<Graph> graph = rt.record([&] {
    first = rt.submit(kAdd, 1, read_write(hx));
    last = rt.submit(kAdd, 10, read_write(hx));
    rt.submit(kAdd, 100, read_write(hy));
  });
  Replay replay = rt.replay(*graph);
  rt.wait(replay, first);
  EXPECT_GE(x, 1);
  {
    // From now on live tasks can follow `first`: the third task cannot run, and need not.
    const auto held = rt.acquire(write(hy));
    replay = rt.replay(*graph);
    rt.wait(replay, first);
    EXPECT_GE(x, 12);
    rt.wait(replay, last);
    EXPECT_EQ(x, 22);
    EXPECT_EQ(y, 100);
  }
  rt.wait(replay);
  rt.wait(replay, first);
  graph.reset();
  rt.wait(replay, first);
  EXPECT_EQ(y, 200);
}

TEST(Record, OneTaskOfAReplayCanBeWaitedForOnTheEventLoop) { wait_for_one_task(*loop_runtime()); }
TEST(Record, OneTaskOfAReplayCanBeWaitedForOnThreads) { wait_for_one_task(*thread_runtime()); }

TEST(Record, AWaitForATaskOfAReplayThrowsTheFailureOfThatTask) {
  auto rt = loop_runtime();
  int x = 0;
  int y = 0;
  auto hx = rt->data("x", x);
  auto hy = rt->data("y", y);
  TaskRef fails, cancelled, good;
  Graph graph = rt->record([&] {
    fails = rt->submit("fails", [](int&) { throw std::runtime_error("no"); }, read_write(hx));
    cancelled = rt->submit(kAdd, 1, read_write(hx));
    good = rt->submit(kAdd, 1, read_write(hy));
  });
  const Replay replay = rt->replay(graph);
  rt->wait(replay, good);
  EXPECT_THROW(rt->wait(replay, fails), std::runtime_error);
  EXPECT_THROW(rt->wait(replay, cancelled), std::runtime_error);
  EXPECT_EQ(y, 1);
}

TEST(Record, ATaskOfAnotherRecordingIsNotOfThisReplay) {
  auto rt = loop_runtime();
  int x = 0;
  auto hx = rt->data("x", x);
  TaskRef one, two;
  Graph a = rt->record([&] { one = rt->submit(kAdd, 1, read_write(hx)); });
  Graph b = rt->record([&] { two = rt->submit(kAdd, 1, read_write(hx)); });
  const Replay replay = rt->replay(a);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->wait(replay, two); }),
              HasSubstr("not of the recording that was replayed"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->wait(replay, replay); }),
              HasSubstr("not of the recording that was replayed"));
  EXPECT_THAT(thrown_by<UsageError>([&] { a.set_values(two, 5); }), HasSubstr("not of its recording"));
  rt->wait(replay, one);
  EXPECT_EQ(x, 1);
}

TEST(Record, AGraphMayBeDestroyedWhileAnotherIsRecorded) {
  auto rt = loop_runtime();
  int x = 0;
  auto hx = rt->data("x", x);
  std::optional<Graph> old = rt->record([&] {
    for (int i = 0; i < 10; ++i) rt->submit(kAdd, 1, read_write(hx));
  });
  rt->replay(*old);
  rt->replay(*old);
  Graph graph = rt->record([&] {
    rt->submit(kAdd, 100, read_write(hx));
    old.reset();
    EXPECT_EQ(x, 20) << "it has waited for its replays";
    rt->submit(kAdd, 100, read_write(hx));
  });
  EXPECT_EQ(graph.task_count(), 2U);
  rt->replay(graph);
  rt->wait();
  EXPECT_EQ(x, 220);
}

TEST(Record, AGraphWhoseReplaysCannotBeWaitedForLeavesThemTheirMemory) {
  auto rt = loop_runtime();
  int x = 0;
  auto hx = rt->data("x", x);
  auto token = std::make_shared<int>(5);
  const std::weak_ptr<int> alive = token;
  auto own = rt->scalar<int>("own");
  std::optional<Graph> graph = rt->record([&] {
    rt->submit("set", [](int& value) { value = 2; }, write(own));
    rt->submit("add token", [token](const int& more, int& value) { value += *token + more; }, read(own),
               read_write(hx));
  });
  token.reset();
  {
    auto held = rt->acquire(write(hx));
    rt->replay(*graph);
    own = {};
    graph.reset();  // the event loop knows that the replay cannot end, and the destructor only logs that
    EXPECT_FALSE(alive.expired()) << "a task that will run uses it";
  }
  rt->wait();
  EXPECT_EQ(x, 7);
  graph = rt->record([&] { rt->submit(kAdd, 1, read_write(hx)); });
  rt->replay(*graph);
  graph.reset();
  EXPECT_EQ(x, 8);
}

TEST(Record, AnEmptyGraphHasNoTasksAndNoReplay) {
  auto rt = loop_runtime();
  Graph graph;
  EXPECT_EQ(graph.task_count(), 0U);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->replay(graph); }), HasSubstr("empty Graph"));
}

void recorded_events(Runtime& rt) {
  int x = 0;
  int y = 0;
  auto hx = rt.data("x", x);
  auto hy = rt.data("y", y);
  std::atomic<int> starts{0};
  Event recorded;
  Graph graph = rt.record([&] {
    rt.submit(kAdd, 1, read_write(hx));
    recorded = rt.event("device", Release::separate, [&](Event event) {
      ++starts;
      x *= 2;
      event.readable();
      event.released();
    }, read_write(hx));
    rt.submit("copy", [](const int& from, int& to) { to += from; }, read(hx), read_write(hy));
    rt.submit(kAdd, 1, read_write(hx));
  });
  EXPECT_EQ(graph.task_count(), 5U) << "an event with a released half counts twice";
  EXPECT_THAT(thrown_by<UsageError>([&] { recorded.readable(); }), HasSubstr("was recorded"));
  Replay replay;
  int expected = 0;
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    replay = rt.replay(graph);
    expected = (expected + 1) * 2;
    sum += expected++;
    if (i == 5) rt.wait(replay, recorded.task());
  }
  rt.wait();
  EXPECT_EQ(starts, 10);
  EXPECT_EQ(x, expected);
  EXPECT_EQ(y, sum);
}
TEST(Record, EventsWithAStartAreRecordedOnTheEventLoop) { recorded_events(*loop_runtime()); }
TEST(Record, EventsWithAStartAreRecordedOnThreads) { recorded_events(*thread_runtime({.workers = 3})); }

TEST(Record, TheHalvesOfARecordedEventAreCompletedByTheProgram) {
  auto rt = loop_runtime();
  int x = 0;
  auto hx = rt->data("x", x);
  int seen = 0;
  std::vector<Event> started;
  Graph graph = rt->record([&] {
    rt->event("receive", Release::separate, [&](Event event) { started.push_back(event); }, write(hx));
    rt->submit("see", [&seen](const int& value) { seen = value; }, read(hx));
  });
  for (int round = 1; round <= 3; ++round) {
    const Replay replay = rt->replay(graph);
    rt->submit(kAdd, 100, read_write(hx));
    EXPECT_THROW(rt->wait(), StuckError);
    ASSERT_EQ(started.size(), static_cast<std::size_t>(round));
    x = round;
    started.back().readable();
    EXPECT_THROW(started.back().readable(), UsageError);
    EXPECT_THROW(rt->wait(), StuckError) << "the writer waits for the released half";
    EXPECT_EQ(seen, round);
    EXPECT_EQ(x, round);
    started.back().released();
    rt->wait();
    rt->wait(replay);
    EXPECT_EQ(x, round + 100);
  }
}

TEST(Record, ARecordedEventThatFailsFailsItsReplay) {
  auto rt = loop_runtime();
  int x = 0;
  auto hx = rt->data("x", x);
  bool fails = true;
  Graph graph = rt->record([&] {
    rt->event("start", Release::with_readable, [&](Event event) {
      if (fails) throw std::runtime_error("no device");
      x = 1;
      event.readable();
    }, write(hx));
    rt->submit(kAdd, 1, read_write(hx));
  });
  rt->replay(graph);
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->wait(); }), "no device");
  fails = false;
  rt->replay(graph);
  rt->wait();
  EXPECT_EQ(x, 2);
  EXPECT_THAT(thrown_by<UsageError>([&] {
                const Graph other = rt->record([&] { rt->event("nobody", Release::with_readable, {}, write(hx)); });
              }),
              HasSubstr("without a start"));
  EXPECT_THAT(thrown_by<UsageError>([&] { const Graph other = rt->record([&] { rt->acquire(read(hx)); }); }),
              HasSubstr("submit a task with a lambda instead"));
}

}  // namespace
}  // namespace tandem::record_test
