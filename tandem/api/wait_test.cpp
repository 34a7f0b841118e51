// tandem/api/wait_test.cpp: waits that throw leave nothing behind, and waits that can never end are refused at once.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::wait_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

const Codelet kAdd("add", [](double& v) { v += 1; });
const Codelet kCopy("copy", [](const double& from, double& to) { to = from; });
const Options kImpatient{.workers = 2, .more = {{"watchdog", "20ms"}, {"watchdog_throws", "true"}}};

/// Leaves waits by StuckError, since an event has not come.
void left_waits(Runtime& rt) {
  double value = 0;
  auto x = rt.data("x", value);
  Event event = rt.event("late", Release::with_readable, {}, write(x));
  const TaskRef task = rt.submit(kAdd, read_write(x));
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(rt.wait(task), StuckError);
    EXPECT_THROW(rt.wait(x), StuckError);
    EXPECT_THROW(rt.acquire(read(x)), StuckError);
    EXPECT_THROW(rt.acquire(read_write(x)), StuckError);
    EXPECT_THROW(rt.acquire(write(x)), StuckError);
  }
  rt.submit(kAdd, read_write(x));
  event.readable();
  rt.wait();
  EXPECT_EQ(value, 2) << "accesses that nobody waits for end when it is their turn";
  EXPECT_EQ(*rt.acquire(read(x)), 2);
}

TEST(Wait, AWaitThatThrewEndsWhenItIsItsTurnOnTheEventLoop) { left_waits(*loop_runtime()); }
TEST(Wait, AWaitThatThrewEndsWhenItIsItsTurnOnThreads) { left_waits(*thread_runtime(kImpatient)); }

TEST(Wait, AnAccessThatThrewHasWrittenNothing) {
  auto rt = loop_runtime();
  auto fresh = rt->scalar<double>("fresh");
  Event event = rt->event("late", Release::with_readable, {});
  const TaskRef user = rt->submit({.after = {event.task()}}, Codelet("use", [](double&) {}), scratch(fresh));
  EXPECT_THROW(rt->wait(user), StuckError);
  Event writer = rt->event("writer", Release::separate, {}, write(fresh));
  EXPECT_THROW(rt->acquire(write(fresh)), StuckError);
  event.readable();
  writer.readable();
  writer.released();
  rt->wait();
  EXPECT_NO_THROW(rt->acquire(read(fresh)));
}

void refused_at_once(Runtime& rt) {
  double a = 0;
  double b = 0;
  double c = 0;
  auto x = rt.data("x", a);
  auto y = rt.data("y", b);
  auto z = rt.data("z", c);
  Graph graph = rt.record([&] {
    rt.submit(kAdd, read_write(z));
    rt.submit(kCopy, read(x), write(y));
    rt.submit(kCopy, read(y), write(z));
  });
  const std::string line = TANDEM_HERE; auto held = rt.acquire(write(x));
  const TaskRef task = rt.submit(kAdd, read_write(x));
  const TaskRef free_task = rt.submit(kAdd, read_write(z));
  const TaskRef indirect = rt.submit(kCopy, read(x), write(y));
  const auto is_refused = AllOf(HasSubstr("data 'x'"), HasSubstr(line), HasSubstr("release that access first"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.wait(task); }), is_refused);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.wait(indirect); }), is_refused);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.wait(x); }), is_refused);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.wait(y); }), is_refused);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.acquire(read(x)); }), is_refused);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.acquire(write(y)); }), is_refused);
  rt.wait(free_task);
  rt.wait(z);
  const Replay replay = rt.replay(graph);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.wait(replay); }), is_refused);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.wait(z); }), is_refused);
  EXPECT_THAT(thrown_by<StuckError>([&] { rt.wait(); }), HasSubstr("access that the application holds"));
  *held = 10;
  held.release();
  rt.wait(replay);
  rt.wait();
  EXPECT_EQ(c, 11);
}

TEST(Wait, ForWhatComesAfterAHeldAccessIsRefusedAtOnceOnTheEventLoop) { refused_at_once(*loop_runtime()); }
TEST(Wait, ForWhatComesAfterAHeldAccessIsRefusedAtOnceOnThreads) { refused_at_once(*thread_runtime()); }

TEST(Wait, ReadersBesideAHeldReadMayBeWaitedFor) {
  auto rt = thread_runtime();
  double a = 3;
  double b = 0;
  auto x = rt->data("x", a);
  auto y = rt->data("y", b);
  const auto held = rt->acquire(read(x));
  rt->wait(rt->submit(kCopy, read(x), write(y)));
  EXPECT_EQ(*rt->acquire(read(y)), 3);
}

TEST(RangeCall, EndsWhenNoChunkRunsAndLetsNoneBegin) {
  internal::RangeCall call;
  std::atomic<bool> inside{false}, go{false}, closing{false};
  bool ended = false;
  std::thread chunk([&] {
    const internal::RangeCall::Chunk running(call);
    EXPECT_TRUE(running.may_run());
    inside = true;
    inside.notify_one();
    go.wait(false);
    ended = true;
  });
  inside.wait(false);
  std::thread opener([&] {
    closing.wait(false);
    go = true;
    go.notify_one();
  });
  {
    const internal::RangeCall::Guard guard(call);
    closing = true;
    closing.notify_one();
  }
  EXPECT_TRUE(ended);
  EXPECT_FALSE(internal::RangeCall::Chunk(call).may_run());
  chunk.join();
  opener.join();
}

TEST(RangeCall, NoBodyRunsOnceParallelForHasThrown) {
  auto rt = thread_runtime(kImpatient);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> go{false};
  std::atomic<int> running{0};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that the watchdog usually reports first
    go = true;
    go.notify_all();
  });
  try {
    rt->parallel_for(0, 100, [&](std::size_t) {
      ++running;
      if (std::this_thread::get_id() != caller) go.wait(false);
      --running;
    }, {.grain = 1});
  } catch (const StuckError&) {
  }
  EXPECT_EQ(running, 0);
  const int after = running;
  opener.join();
  rt->wait();
  EXPECT_EQ(running, after);
}

}  // namespace
}  // namespace tandem::wait_test
