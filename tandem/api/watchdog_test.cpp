// tandem/api/watchdog_test.cpp: the report on a stuck program: which task waits for which, and what never came.
#include <chrono>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::watchdog_test {
namespace {

using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Codelet kAdd("add", [](double& v) { v += 1; });

const Options kImpatient{.workers = 2, .more = {{"watchdog", "50ms"}, {"watchdog_throws", "true"}}};

void stuck_on_an_access(Runtime& rt) {
  double value = 0;
  auto x = rt.data("my data", value);
  const std::string line = TANDEM_HERE; auto held = rt.acquire(write(x));
  rt.submit({.name = "the waiting one"}, kAdd, read_write(x));
  EXPECT_THAT(thrown_by<StuckError>([&] { rt.wait(); }),
              AllOf(HasSubstr("'the waiting one'"), HasSubstr("waits for"), HasSubstr("the application has acquired"),
                    HasSubstr("has acquired this data and not released it"), HasSubstr("my data"), HasSubstr(line)));
  held.release();
  rt.wait();
  EXPECT_EQ(value, 1);
}

void stuck_on_an_event(Runtime& rt) {
  double value = 0;
  auto x = rt.data("my data", value);
  Event event = rt.event("receive from 3", Release::separate, {}, write(x));
  rt.submit({.name = "reader"}, Codelet("see", [](const double&) {}), read(x));
  rt.submit({.name = "writer"}, kAdd, read_write(x));
  EXPECT_THAT(
      thrown_by<StuckError>([&] { rt.wait(); }),
      AllOf(HasSubstr("'reader'"), HasSubstr("'writer'"), HasSubstr("'receive from 3'"),
            HasSubstr("'receive from 3 (released)'"), HasSubstr("nobody has completed it"), HasSubstr("my data")));
  event.readable();
  EXPECT_THAT(thrown_by<StuckError>([&] { rt.wait(); }), AllOf(HasSubstr("'writer'"), HasSubstr("(released)")));
  event.released();
  rt.wait();
  EXPECT_EQ(value, 1);
}

TEST(Watchdog, AnAccessThatWasNotReleasedOnTheEventLoop) { stuck_on_an_access(*test::loop_runtime()); }
TEST(Watchdog, AnAccessThatWasNotReleasedOnThreads) { stuck_on_an_access(*test::thread_runtime(kImpatient)); }
TEST(Watchdog, AnEventThatNeverEndsOnTheEventLoop) { stuck_on_an_event(*test::loop_runtime()); }
TEST(Watchdog, AnEventThatNeverEndsOnThreads) { stuck_on_an_event(*test::thread_runtime(kImpatient)); }

TEST(Watchdog, AWindowFullOfTasksThatWaitForTheApplicationIsExplained) {
  runtime::CoreOptions options;
  options.window = 4;
  auto rt = test::loop_runtime({}, options);
  double value = 0;
  auto x = rt->data("x", value);
  auto held = rt->acquire(write(x));
  EXPECT_THAT(thrown_by<StuckError>([&] {
                for (int i = 0; i < 10; ++i) rt->submit(kAdd, read_write(x));
              }),
              HasSubstr("not released it"));
  held.release();
  rt->wait();
}

/// The links of tasks that become ready have other uses at once, so the explanation must not follow them.
TEST(Watchdog, TasksMayEndWhileItExplains) {
  if (base::under_thread_sanitizer)
    GTEST_SKIP() << "it reads links that others change, and drops what it has read then";
  auto rt = test::thread_runtime({.workers = 3});
  double value = 0, second = 0;
  auto x = rt->data("x", value), y = rt->data("y", second);
  const Codelet both("both", [](double& a, double& b) { a += 1, b += 1; });
  int expected = 0;
  for (int round = 0; round < 50; ++round) {
    rt->submit(both, read_write(x), read_write(y));
    for (int i = 0; i < 100; ++i) rt->submit(both, commute(y), commute(x));
    expected += 101;
    while (rt->core().executor().finished() < rt->core().submission().submitted())
      EXPECT_THAT(rt->core().loop().explain_stuck(), HasSubstr("not ended"));
  }
  rt->wait();
  EXPECT_EQ(value, expected);
}

TEST(Watchdog, ALongListIsCut) {
  auto rt = test::loop_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  auto held = rt->acquire(write(x));
  for (int i = 0; i < 100; ++i) rt->submit(kAdd, read_write(x));
  const std::string message = thrown_by<StuckError>([&] { rt->wait(); });
  EXPECT_THAT(message, AllOf(HasSubstr("101 tasks have not ended\n"), HasSubstr("more")));
  EXPECT_THAT(message, Not(HasSubstr("recorded"))) << "nothing was";
  EXPECT_LT(message.size(), 4'000U);
}

TEST(Watchdog, WithoutLeaveToThrowItSpeaksOnceAndWaitsOn) {
  test::LogLines lines;
  auto rt = test::thread_runtime({.workers = 2, .more = {{"watchdog", "30ms"}}}, &lines);
  double value = 0;
  auto x = rt->data("x", value);
  Event event = rt->event("late", Release::with_readable, {}, write(x));
  std::thread network([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    event.readable();
  });
  rt->wait();
  network.join();
  const std::string text = lines.all();
  EXPECT_THAT(text, AllOf(HasSubstr("no task has ended for"), HasSubstr("'late'")));
  EXPECT_EQ(text.find("no task has ended for"), text.rfind("no task has ended for"));
  EXPECT_THAT(text, Not(HasSubstr("\\n"))) << "each line is a message of its own";
}

TEST(Watchdog, AKernelThatTakesLongIsNamedAsRunning) {
  test::LogLines lines;
  auto rt = test::thread_runtime({.workers = 2, .more = {{"watchdog", "30ms"}, {"caller", "false"}}}, &lines);
  rt->submit({.name = "slow one"},
             Codelet("slow", [] { std::this_thread::sleep_for(std::chrono::milliseconds(150)); }));
  rt->wait();
  EXPECT_THAT(lines.all(), AllOf(HasSubstr("'slow one'"), HasSubstr("its kernel is running")));
}

TEST(Watchdog, AKernelOfTheThreadThatWaitsIsNamedWhileItRuns) {
  test::LogLines lines;
  auto rt = test::thread_runtime({.workers = 1, .more = {{"watchdog", "30ms"}}}, &lines);
  std::string while_it_ran;
  rt->submit({.name = "endless one"}, Codelet("endless", [&] {
    // The loop lasts until the report, or so long that there will be none.
    for (int i = 0; i < 1'000 && while_it_ran.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      while_it_ran = lines.all();
    }
  }));
  rt->wait();
  EXPECT_THAT(while_it_ran, AllOf(HasSubstr("no task has ended for"), HasSubstr("worker 0"), HasSubstr("'endless one'"),
                                  HasSubstr("its kernel is running")));
}

TEST(Watchdog, ARuntimeThatIsStuckCanStillGo) {
  test::LogLines lines;
  double value = 0;
  {
    auto rt = test::loop_runtime({}, {}, &lines);
    auto x = rt->data("x", value);
    static_cast<void>(rt->event("never", Release::with_readable, {}, write(x)));
    rt->submit(kAdd, read_write(x));
    rt.reset();
  }
  EXPECT_THAT(lines.all(), HasSubstr("'never'"));
}

}  // namespace
}  // namespace tandem::watchdog_test
