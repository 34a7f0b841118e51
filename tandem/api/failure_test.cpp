// tandem/api/failure_test.cpp: kernels that throw: what is cancelled, what recovers, and what waits throw.
#include <array>
#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/base/sanitizers.hpp"

namespace tandem::failure_test {
namespace {

using test::loop_runtime;
using test::thrown_by;
using testing::HasSubstr;

const Codelet kAdd("add", [](int, double& v) { v += 1; });
const Codelet kCopy("copy", [](const double& from, double& to) { to = from; });
const Codelet kThrow("throw", [](const std::string& what, double&) { throw std::runtime_error(what); });

struct Failures : testing::Test {
  std::unique_ptr<Runtime> owner = loop_runtime();
  Runtime& rt = *owner;
  std::array<double, 4> values{1, 2, 3, 4};
  std::array<Data<double>, 4> data{rt.data("a", values[0]), rt.data("b", values[1]), rt.data("c", values[2]),
                                   rt.data("d", values[3])};
  std::string waited() {
    return thrown_by<std::runtime_error>([&] { rt.wait(); });
  }
};

TEST_F(Failures, WhatDependsIsCancelledAndTheRestRuns) {
  rt.submit(kThrow, "first", read_write(data[0]));
  rt.submit(kCopy, read(data[0]), write(data[1]));
  rt.submit(kCopy, read(data[1]), write(data[2]));
  rt.submit(kAdd, 0, read_write(data[3]));
  EXPECT_EQ(waited(), "first");
  EXPECT_EQ(values[1], 2);
  EXPECT_EQ(values[3], 5);
  EXPECT_EQ(waited(), "nothing was thrown") << "it was said";
}

TEST_F(Failures, TheEarliestInTheFlowIsThrownOnEverySchedule) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    auto loop = loop_runtime({.seed = seed, .workers = 3, .sched = "random"});
    std::array<double, 6> v{};
    std::vector<Data<double>> d;
    for (double& value : v) d.push_back(loop->data("v", value));
    for (std::size_t i = 0; i < v.size(); ++i)
      loop->submit({.priority = static_cast<int>(i)}, kThrow, "task " + std::to_string(i), read_write(d[i]));
    EXPECT_EQ(thrown_by<std::runtime_error>([&] { loop->wait(); }), "task 0") << seed;
  }
}

TEST_F(Failures, AFreshWriteRecovers) {
  rt.submit(kThrow, "once", read_write(data[0]));
  rt.submit(kCopy, read(data[3]), write(data[0]));
  rt.submit(kAdd, 0, read_write(data[0]));
  EXPECT_EQ(waited(), "once");
  EXPECT_EQ(values[0], 5);
}

TEST_F(Failures, APoisonedVersionIsThrownAgainWhenItCancelsSomethingLater) {
  rt.submit(kThrow, "old", read_write(data[0]));
  EXPECT_EQ(waited(), "old");
  rt.submit(kCopy, read(data[0]), write(data[1]));
  EXPECT_EQ(waited(), "old") << "else the program would believe that its task had run";
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { static_cast<void>(rt.acquire(read(data[1]))); }), "old");
}

TEST_F(Failures, WaitForATaskThrowsWhatFailedThatTask) {
  rt.submit(kThrow, "early and elsewhere", read_write(data[0]));
  const TaskRef failed = rt.submit(kThrow, "mine", read_write(data[1]));
  const TaskRef cancelled = rt.submit(kAdd, 0, read_write(data[1]));
  const TaskRef fine = rt.submit(kAdd, 0, read_write(data[2]));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.wait(cancelled); }), "mine");
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.wait(failed); }), "mine");
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.wait(fine); }), "nothing was thrown");
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.wait(data[1]); }), "mine");
  EXPECT_EQ(waited(), "early and elsewhere");
}

TEST_F(Failures, ExplicitOrderCancelsEvenWhenThePredecessorHasLongEnded) {
  const TaskRef failed = rt.submit(kThrow, "reason", read_write(data[0]));
  for (int i = 0; i < 100; ++i) rt.wait(rt.submit(kAdd, 0, read_write(data[1])));
  bool ran = false;
  const TaskRef after = rt.submit({.after = {failed}}, Codelet("note", [&ran] { ran = true; }));
  rt.submit({.after = {after}}, Codelet("note", [&ran] { ran = true; }));
  EXPECT_EQ(waited(), "reason");
  EXPECT_FALSE(ran);
}

TEST_F(Failures, OneOfACommutingGroupDoesNotStopTheOthers) {
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    auto loop = loop_runtime({.seed = seed, .workers = 3});
    double sum = 0;
    double side = 0;
    auto x = loop->data("x", sum);
    auto y = loop->data("y", side);
    int ran = 0;
    const Codelet count("count", [&ran](double&) { ++ran; });
    loop->submit(count, commute(x));
    loop->submit(kThrow, "first", commute(x));
    loop->submit(count, commute(x));
    loop->submit(kThrow, "second", commute(x));
    loop->submit(kCopy, read(x), write(y));
    EXPECT_EQ(thrown_by<std::runtime_error>([&] { loop->wait(); }), "first") << seed;
    EXPECT_EQ(ran, 2) << seed;
  }
}

TEST_F(Failures, AFailedReductionLeavesNothingForTheNextOne) {
  data[0].reduction([](double& v) { v = 0; }, [](double& into, const double& from) { into += from; });
  rt.submit(kAdd, 0, reduce(data[0]));
  rt.submit(kThrow, "one of them", reduce(data[0]));
  rt.submit(kAdd, 0, reduce(data[0]));
  rt.submit(kCopy, read(data[0]), write(data[1]));
  EXPECT_EQ(waited(), "one of them");
  rt.submit(kCopy, read(data[3]), write(data[0]));
  rt.submit(kAdd, 0, reduce(data[0]));
  EXPECT_EQ(waited(), "nothing was thrown");
  EXPECT_EQ(values[0], 5);
  EXPECT_EQ(values[1], 2);
}

TEST_F(Failures, ACallbackIsCalledForSuccessOnlyAndMayThrow) {
  int called = 0;
  rt.submit({.callback = [&] { ++called; }}, kAdd, 0, read_write(data[0]));
  rt.submit({.callback = [&] { ++called; }}, kThrow, "kernel", read_write(data[1]));
  rt.submit({.callback = [&] { ++called; }}, kAdd, 0, read_write(data[1]));
  rt.submit({.callback = [] { throw std::runtime_error("callback"); }}, kAdd, 0, read_write(data[2]));
  rt.submit(kAdd, 0, read_write(data[2]));
  EXPECT_EQ(waited(), "kernel");
  EXPECT_EQ(called, 1);
  EXPECT_EQ(values[2], 4) << "the kernel before the callback ran, the task after it did not";
}

TEST_F(Failures, TheLogNamesTheTaskItsLineAndTheCounts) {
  test::LogLines lines;
  auto loop = loop_runtime({}, {}, &lines);
  auto x = loop->data("x", values[0]);
  const std::string line = TANDEM_HERE; loop->submit(kThrow, "the reason", read_write(x));
  loop->submit(kAdd, 0, read_write(x));
  loop->submit(kAdd, 0, read_write(x));
  EXPECT_THROW(loop->wait(), std::runtime_error);
  EXPECT_THAT(lines.all(), testing::AllOf(HasSubstr("'throw'"), HasSubstr(line), HasSubstr("the reason"),
                                          HasSubstr("2 tasks that depend on it were cancelled")));
}

TEST_F(Failures, WhatIsThrownNeedNotBeAStandardException) {
  rt.submit(Codelet("odd", [](double&) { throw 42; }), read_write(data[0]));
  EXPECT_THROW(rt.wait(), int);
}

TEST_F(Failures, ARuntimeThatGoesSaysWhatNobodyWaitedFor) {
  test::LogLines lines;
  {
    auto loop = loop_runtime({}, {}, &lines);
    auto x = loop->data("x", values[0]);
    loop->submit(kThrow, "unheard", read_write(x));
  }
  EXPECT_THAT(lines.all(), HasSubstr("unheard"));
}

TEST_F(Failures, AnEventThatFailsCancelsWhatReadsIt) {
  static_cast<void>(rt.event("receive", Release::with_readable, [](Event started) {
    started.readable(std::make_exception_ptr(std::runtime_error("peer is dead")));
  }, write(data[0])));
  rt.submit(kCopy, read(data[0]), write(data[1]));
  EXPECT_EQ(waited(), "peer is dead");
  EXPECT_EQ(values[1], 2);
}

TEST_F(Failures, AnEventWhoseDataDoNotExistDoesNotStart) {
  bool started = false;
  rt.submit(kThrow, "before", read_write(data[0]));
  static_cast<void>(rt.event("send", Release::separate, [&](Event) { started = true; }, read_write(data[0])));
  rt.submit(kCopy, read(data[0]), write(data[1]));
  EXPECT_EQ(waited(), "before");
  EXPECT_FALSE(started);
}

TEST_F(Failures, AFailureInAReplayIsThatOfTheReplay) {
  bool throws = true;
  const Codelet maybe("maybe", [&](double& v) {
    if (throws) throw std::runtime_error("in the replay");
    v += 1;
  });
  auto graph = rt.record([&] {
    rt.submit(maybe, read_write(data[0]));
    rt.submit(kCopy, read(data[3]), write(data[1]));
  });
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.wait(rt.replay(graph)); }), "in the replay");
  EXPECT_EQ(values[1], 4);
  throws = false;
  rt.submit(kCopy, read(data[3]), write(data[0]));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.wait(rt.replay(graph)); }), "nothing was thrown");
  EXPECT_EQ(waited(), "nothing was thrown");
  EXPECT_EQ(values[0], 5);
}

TEST(OutOfMemory, NamesTheDataTheBytesAndTheNode) {
  if constexpr (base::under_sanitizer) GTEST_SKIP() << "sanitizers end the program at such a size";
  auto rt = test::loop_runtime();
  auto kept = rt->vector<double>("kept", 1'000);
  auto huge = rt->vector<double>("huge", std::size_t{1} << 46);
  rt->submit(Codelet("fill", [](std::span<double>) {}), write(kept));
  rt->wait();
  rt->submit(Codelet("touch", [](std::span<double>) {}), write(huge));
  std::string said;
  try {
    rt->wait();
  } catch (const std::bad_alloc& error) {
    said = error.what();
  }
  const std::string bytes = std::to_string(std::size_t{8} << 46);
  EXPECT_THAT(said, testing::AllOf(testing::HasSubstr("no memory for data 'huge'"), testing::HasSubstr(bytes),
                                   testing::HasSubstr("main memory"), testing::HasSubstr("8000 bytes for other data")));
  EXPECT_THROW(rt->acquire(write(huge)), std::bad_alloc);
}

TEST(OutOfMemory, OfScratchNamesTheData) {
  if constexpr (base::under_sanitizer) GTEST_SKIP() << "sanitizers end the program at such a size";
  auto rt = test::loop_runtime();
  auto huge = rt->vector<double>("huge", std::size_t{1} << 46);
  rt->submit(Codelet("touch", [](std::span<double>) {}), scratch(huge));
  EXPECT_THAT(test::thrown_by<std::bad_alloc>([&] { rt->wait(); }),
              testing::HasSubstr("no scratch memory for data 'huge'"));
}

TEST(FailingParts, AModelOfDurationsThatThrowsFailsTheTask) {
  runtime::CoreOptions options;
  options.emulation = [](const runtime::EmulatedTask& task) -> std::optional<std::int64_t> {
    if (task.codelet == "bad") throw std::runtime_error("no model");
    return 1'000;
  };
  auto rt = test::loop_runtime({}, options);
  double value = 0;
  auto x = rt->data("x", value);
  rt->submit(Codelet("bad", [](double&) {}), read_write(x));
  rt->submit(Codelet("good", [](double&) {}), read_write(x));
  EXPECT_EQ(test::thrown_by<std::runtime_error>([&] { rt->wait(); }), "no model");
}

/// Throws at its `fails_at`th copy.
struct FailingCopier final : runtime::Copier {
  explicit FailingCopier(int copy) : fails_at(copy) {}
  int fails_at;
  std::atomic<int> copies{0};
  runtime::CopyState start(const runtime::CopyRequest& request, runtime::CopyEnded) override {
    if (++copies == fails_at) throw std::runtime_error("copy failed");
    runtime::copy_matrix(request);
    return runtime::CopyState::done;
  }
};

TEST(FailingParts, ACopyThatThrowsFailsTheTaskThatNeedsIt) {
  for (int fails_at = 1; fails_at <= 4; ++fails_at) {
    auto resources = test::test_resources();
    runtime::World world = make_test_world({.workers = 2, .devices = 1}, *resources);
    world.nodes[0].second = std::make_unique<FailingCopier>(fails_at);
    Runtime rt(std::move(resources), std::move(world), {});
    double a = 1, b = 2, sum = 0;
    auto x = rt.data("x", a), y = rt.data("y", b), z = rt.data("z", sum);
    const auto add = [](const double& from, const double& more, double& to) { to += from + more; };
    const auto codelet = Codelet("add", add).also(DeviceKind::user, add);
    rt.submit(codelet.can_run([](const WorkerDescription& w) { return w.device == DeviceKind::user; }), read(x),
              read(y), read_write(z));
    rt.submit(codelet.can_run([](const WorkerDescription& w) { return w.device == DeviceKind::cpu; }), read(x), read(y),
              read_write(z));
    EXPECT_EQ(test::thrown_by<std::runtime_error>([&] { rt.wait(); }), "copy failed") << fails_at;
    rt.submit(Codelet("set", [](double& v) { v = 5; }), write(z));
    rt.wait();
    EXPECT_EQ(*rt.acquire(read(z)), 5);
    EXPECT_EQ(*rt.acquire(read(x)), 1);
  }
}

TEST(FailingParts, StatisticsMayBeAskedForWhileTasksRun) {
  auto rt = test::thread_runtime({.workers = 3, .more = {{"timeline", "true"}}});
  std::vector<Codelet<void (*)(int)>> codelets;
  for (int i = 0; i < 100; ++i) codelets.emplace_back("codelet " + std::to_string(i), +[](int) {});
  for (int i = 0; i < 2'000; ++i) {
    rt->submit(codelets[static_cast<std::size_t>(i) % codelets.size()], i);
    if (i % 100 == 0) static_cast<void>(rt->statistics().codelets.size() + rt->timeline().size());
  }
  rt->wait();
  std::uint64_t count = 0;
  for (const runtime::CodeletReport& codelet : rt->statistics().codelets) count += codelet.durations.count;
  EXPECT_EQ(count, 2'000U);
  EXPECT_EQ(rt->timeline().size(), 2'000U);
}

}  // namespace
}  // namespace tandem::failure_test
