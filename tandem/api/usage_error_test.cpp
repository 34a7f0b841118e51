// tandem/api/usage_error_test.cpp: wrong programs get an error that names the task, the data, the line, and the remedy.
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::usage_error_test {
namespace {

using test::loop_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

const Codelet kSee("see", [](const double&) {});
const Codelet kChange("change", [](double&) {});
const Codelet kBoth("both", [](const double&, double&) {});

struct UsageErrors : testing::Test {
  std::unique_ptr<Runtime> owner = loop_runtime();
  Runtime& rt = *owner;
  double value = 1;
  double second = 2;
  std::string line;  ///< line of the refused call
  std::string said;

  std::string refused(const std::function<void()>& action) { return thrown_by<UsageError>(action); }
  /// Checks that the runtime is as usable as before.
  ~UsageErrors() override {
    double other = 0;
    auto data = rt.data("afterwards", other);
    rt.submit(Codelet("set", [](double& v) { v = 5; }), write(data));
    rt.wait();
    EXPECT_EQ(other, 5);
  }
};

TEST_F(UsageErrors, ARankThatDoesNotExist) {
  auto x = rt.data("x", value);
  said = refused([&] { line = TANDEM_HERE; rt.submit({.on = 17}, kChange, read_write(x)); });
  EXPECT_THAT(said, AllOf(HasSubstr(line), HasSubstr("rank 17"), HasSubstr("one rank only")));
  said = refused([&] { line = TANDEM_HERE; rt.submit({.on = 1}, "no data", [] {}); });
  EXPECT_THAT(said, AllOf(HasSubstr(line), HasSubstr("rank 1,")));
  rt.submit({.on = 0}, kChange, read_write(x));
  rt.wait();
}

TEST_F(UsageErrors, UseAfterUnregister) {
  const std::string registered = TANDEM_HERE; auto x = rt.data("x", value);
  x.unregister();
  said = refused([&] { line = TANDEM_HERE; rt.submit(kSee, read(x)); });
  EXPECT_THAT(said, AllOf(HasSubstr("'see'"), HasSubstr("'x'"), HasSubstr("after it was unregistered"), HasSubstr(line),
                          HasSubstr(registered)));
  EXPECT_THAT(refused([&] { x.unregister(); }), AllOf(HasSubstr("'x'"), HasSubstr("unregistered")));
  EXPECT_THAT(refused([&] { rt.wait(x); }), AllOf(HasSubstr("'x'"), HasSubstr("unregistered")));
  said = refused([&] { line = TANDEM_HERE; static_cast<void>(rt.acquire(read(x))); });
  EXPECT_THAT(said, AllOf(HasSubstr("'x'"), HasSubstr("unregistered"), HasSubstr(line)));
}

TEST_F(UsageErrors, ReadingWhatNobodyWrote) {
  auto x = rt.scalar<double>("x");
  said = refused([&] { line = TANDEM_HERE; rt.submit(kSee, read(x)); });
  EXPECT_THAT(said, AllOf(HasSubstr("'see'"), HasSubstr("'x'"), HasSubstr("nobody has written"), HasSubstr(line)));
  EXPECT_THAT(refused([&] { rt.submit(kChange, read_write(x)); }), HasSubstr("read_write"));
  EXPECT_THAT(refused([&] { rt.submit(kChange, commute(x)); }), HasSubstr("commute"));
  said = refused([&] { line = TANDEM_HERE; static_cast<void>(rt.acquire(read(x))); });
  EXPECT_THAT(said,
              AllOf(testing::StartsWith("acquire (at " + line + ") sees data 'x'"), HasSubstr("nobody has written")));
  rt.wait(x);
  EXPECT_THAT(refused([&] { rt.submit(kSee, read(x)); }), HasSubstr("nobody has written")) << "waiting writes nothing";
  rt.submit(kChange, write(x));
  rt.submit(kSee, read(x));
}

TEST_F(UsageErrors, ATaskThatCouldNotBeSubmittedHasWrittenNothing) {
  auto x = rt.scalar<double>("x");
  auto y = rt.scalar<double>("y");
  EXPECT_THAT(refused([&] { rt.submit(kBoth, read(y), write(x)); }), HasSubstr("'y'"));
  EXPECT_THAT(refused([&] { rt.submit(kSee, read(x)); }), HasSubstr("'x'"));
  const auto nowhere = kChange.can_run([](const WorkerDescription&) { return false; });
  EXPECT_THAT(refused([&] { rt.submit(nowhere, write(x)); }), HasSubstr("no worker"));
  EXPECT_THAT(refused([&] { rt.submit(kSee, read(x)); }), HasSubstr("'x'"));
}

TEST_F(UsageErrors, NameTheLinesOfTasksWithoutData) {
  const Codelet none = Codelet("no data", [](double) {}).can_run([](const WorkerDescription&) { return false; });
  const Codelet nothing = Codelet("nothing", [] {}).can_run([](const WorkerDescription&) { return false; });
  said = refused([&] { line = TANDEM_HERE; rt.submit(nothing); });
  EXPECT_THAT(said, HasSubstr("(submitted at " + line + ")"));
  said = refused([&] { line = TANDEM_HERE; rt.submit(none, 1.0, TaskOptions{}); });
  EXPECT_THAT(said, HasSubstr("(submitted at " + line + ")"));
  const auto line_of = [](const TaskRef& task) { return runtime::describe(task.task->where); };
  TaskRef task;
  line = TANDEM_HERE; task = rt.submit("named", [](double) {}, 1.0);
  EXPECT_EQ(line_of(task), line);
  line = TANDEM_HERE; task = rt.submit([] {});
  EXPECT_EQ(line_of(task), line);
  line = TANDEM_HERE; task = rt.submit({.priority = 1}, [](double) {}, 1.0);
  EXPECT_EQ(line_of(task), line);
  const auto named = [](double, const double&) {};
  line = TANDEM_HERE; task = rt.submit(std::string("named"), named, 1.0, read(rt.data("x", value)));
  EXPECT_EQ(line_of(task), line) << "that of its access";
  rt.wait();
}

TEST_F(UsageErrors, FromAnotherThread) {
  auto x = rt.data("x", value);
  std::string submit;
  std::string wait;
  std::string add;
  std::thread other([&] {
    submit = refused([&] { rt.submit(kSee, read(x)); });
    wait = refused([&] { rt.wait(); });
    add = refused([&] { auto y = rt.data("y", second); });
  });
  other.join();
  EXPECT_THAT(submit, AllOf(HasSubstr("cannot submit from this thread"), HasSubstr("thread that made the runtime")));
  EXPECT_THAT(wait, HasSubstr("cannot wait from this thread"));
  EXPECT_THAT(add, HasSubstr("cannot register data from this thread"));
}

TEST_F(UsageErrors, FromAnotherThreadWhileTheOwnerWaits) {
  auto threads = test::thread_runtime();
  std::promise<void> refusal;
  std::string message;
  threads->submit(Codelet("hold", [&] { refusal.get_future().wait(); }));
  std::thread other([&] {
    message = refused([&] { threads->submit(Codelet("nothing", [] {})); });
    refusal.set_value();
  });
  threads->wait();
  other.join();
  EXPECT_THAT(message, HasSubstr("cannot submit from this thread"));
}

TEST_F(UsageErrors, FromInsideAKernel) {
  auto x = rt.data("x", value);
  rt.submit(Codelet("outer", [&](double&) { rt.submit(kSee, read(x)); }), read_write(x));
  EXPECT_THAT(refused([&] { rt.wait(); }),
              AllOf(HasSubstr("cannot submit from inside a kernel"), HasSubstr("submit the following")));
  rt.submit(Codelet("outer", [&](double&) { rt.wait(); }), write(x));
  EXPECT_THAT(refused([&] { rt.wait(); }), HasSubstr("cannot wait from inside a kernel"));
}

TEST_F(UsageErrors, DataOfAnotherRuntime) {
  auto other = loop_runtime();
  auto x = other->data("x", value);
  said = refused([&] { line = TANDEM_HERE; rt.submit(kSee, read(x)); });
  EXPECT_THAT(said, AllOf(HasSubstr("'see'"), HasSubstr("'x'"), HasSubstr("another runtime"), HasSubstr(line)));
  EXPECT_THAT(refused([&] { rt.wait(x); }), AllOf(HasSubstr("'x'"), HasSubstr("another runtime")));
  EXPECT_THAT(refused([&] { static_cast<void>(rt.acquire(read(x))); }), HasSubstr("another runtime"));
}

TEST_F(UsageErrors, ACodeletThatNoWorkerCanRun) {
  auto x = rt.data("x", value);
  const auto nowhere = kChange.can_run([](const WorkerDescription&) { return false; });
  said = refused([&] { line = TANDEM_HERE; rt.submit(nowhere, read_write(x)); });
  EXPECT_THAT(said, AllOf(HasSubstr("'change'"), HasSubstr("can run on no worker"), HasSubstr(line)));
}

TEST_F(UsageErrors, ReadAndWriteOfOneDatumInOneTaskAreReadWrite) {
  auto x = rt.data("x", value);
  const Codelet add("add", [](const double& from, double& to) { to = from + 1; });
  for (int i = 0; i < 10; ++i) rt.submit(add, read(x), write(x));
  rt.submit(add, read(x), read_write(x));
  rt.submit(Codelet("twice", [](const double& a, const double& b) { EXPECT_EQ(a, b); }), read(x), read(x));
  rt.wait();
  EXPECT_EQ(value, 12);
}

TEST_F(UsageErrors, OneDatumTwiceWithAnotherMode) {
  auto x = rt.data("x", value);
  const Codelet two("two", [](double&, double&) {});
  said = refused([&] { line = TANDEM_HERE; rt.submit(two, commute(x), commute(x)); });
  EXPECT_THAT(said, AllOf(HasSubstr("'two'"), HasSubstr("'x'"), HasSubstr("twice"), HasSubstr(line)));
  EXPECT_THAT(refused([&] { rt.submit(two, scratch(x), write(x)); }), HasSubstr("twice"));
  EXPECT_THAT(refused([&] { rt.submit(two, write(x), commute(x)); }), HasSubstr("twice"));
}

TEST_F(UsageErrors, AnEmptyDataObject) {
  Data<double> nothing;
  said = refused([&] { line = TANDEM_HERE; rt.submit(kSee, read(nothing)); });
  EXPECT_THAT(said, AllOf(HasSubstr("'see'"), HasSubstr("empty Data"), HasSubstr(line)));
  EXPECT_THAT(refused([&] { rt.wait(nothing); }), HasSubstr("empty Data"));
  EXPECT_THAT(refused([&] { static_cast<void>(rt.acquire(read(nothing))); }), HasSubstr("empty Data"));
  EXPECT_THAT(refused([&] { nothing.unregister(); }), HasSubstr("empty Data"));
  EXPECT_THAT(refused([&] { nothing.reduction([](double&) {}, [](double&, const double&) {}); }),
              HasSubstr("empty Data"));
}

TEST_F(UsageErrors, MemoryThatIsNotThere) {
  EXPECT_THAT(refused([&] { auto x = rt.data("x", std::span<double>(static_cast<double*>(nullptr), 3)); }),
              AllOf(HasSubstr("'x'"), HasSubstr("null"), HasSubstr("usage_error_test.cpp")));
  EXPECT_THAT(refused([&] { auto m = rt.data("m", MatrixView<double>{nullptr, 2, 2, 2}); }),
              AllOf(HasSubstr("'m'"), HasSubstr("null")));
}

TEST_F(UsageErrors, ALeadingDimensionBelowTheRows) {
  std::vector<double> memory(20);
  EXPECT_THAT(refused([&] {
                auto m = rt.data("m", MatrixView<double>{memory.data(), 4, 3, 3});
              }),
              AllOf(HasSubstr("'m'"), HasSubstr("leading dimension 3"), HasSubstr("4 rows"),
                    HasSubstr("usage_error_test.cpp")));
}

TEST_F(UsageErrors, ReduceWithoutAReduction) {
  auto x = rt.data("x", value);
  said = refused([&] { line = TANDEM_HERE; rt.submit(kChange, reduce(x)); });
  EXPECT_THAT(said, AllOf(HasSubstr("'change'"), HasSubstr("'x'"), HasSubstr("no reduction"),
                          HasSubstr(".reduction(init, combine)"), HasSubstr(line)));
  auto y = rt.scalar<double>("y").reduction([](double& v) { v = 0; },
                                            [](double& into, const double& from) { into += from; });
  EXPECT_THAT(refused([&] { rt.submit(kChange, reduce(y)); }), AllOf(HasSubstr("'y'"), HasSubstr("write it first")));
}

TEST_F(UsageErrors, AnUnknownSchedulerNamesTheKnownOnes) {
  EXPECT_THAT(refused([] { Runtime wrong(Options{.sched = "lsw"}); }),
              AllOf(HasSubstr("'lsw'"), HasSubstr("lws"), HasSubstr("eager"), HasSubstr("prio"), HasSubstr("random")));
}

TEST_F(UsageErrors, AnUnknownOptionSuggestsTheNearest) {
  EXPECT_THAT(refused([] { Runtime wrong(Options{.more = {{"windwo", "3"}}}); }),
              AllOf(HasSubstr("windwo"), HasSubstr("window")));
  char name[] = "program";
  char wrong_argument[] = "--tandem.wokers=2";
  char* arguments[] = {name, wrong_argument, nullptr};
  int count = 2;
  EXPECT_THAT(refused([&] { Runtime wrong(count, arguments); }), AllOf(HasSubstr("wokers"), HasSubstr("workers")));
  EXPECT_THAT(refused([] { Runtime wrong(Options{.more = {{"window", "0"}}}); }), HasSubstr("window"));
  EXPECT_THAT(refused([] { Runtime wrong(Options{.more = {{"window", "many"}}}); }), HasSubstr("window"));
}

TEST_F(UsageErrors, WhatCannotBeRecorded) {
  auto x = rt.data("x", value);
  const auto inside = [&](const std::function<void()>& action) {
    return refused([&] { auto graph = rt.record([&] { action(); }); });
  };
  EXPECT_THAT(inside([&] { rt.wait(); }), HasSubstr("cannot wait while a graph is recorded"));
  EXPECT_THAT(inside([&] { static_cast<void>(rt.acquire(read(x))); }),
              AllOf(HasSubstr("'x'"), HasSubstr("while a graph is recorded")));
  EXPECT_THAT(inside([&] { static_cast<void>(rt.event("e", Release::with_readable, {})); }),
              HasSubstr("events cannot be recorded"));
  EXPECT_THAT(inside([&] { auto nested = rt.record([] {}); }), HasSubstr("while another is recorded"));
  const Codelet take("take", [](const std::unique_ptr<int>&) {});
  EXPECT_THAT(inside([&] { rt.submit(take, std::make_unique<int>(1)); }),
              AllOf(HasSubstr("'take'"), HasSubstr("cannot be copied")));
  const TaskRef live = rt.submit(kSee, read(x));
  EXPECT_THAT(inside([&] { rt.submit({.after = {live}}, kSee, read(x)); }),
              AllOf(HasSubstr("'see'"), HasSubstr("not of the same recording")));
  rt.submit(kSee, read(x));
}

TEST_F(UsageErrors, ChangesThatDoNotFitARecording) {
  auto x = rt.data("x", value);
  auto y = rt.data("y", second);
  auto v = rt.vector<double>("v", 3);
  TaskRef task;
  auto graph = rt.record([&] { task = rt.submit(Codelet("scale", [](double, double&) {}), 2.0, read_write(x)); });
  EXPECT_THAT(refused([&] { graph.set_values(task, 2); }), AllOf(HasSubstr("(double)"), HasSubstr("(int)")));
  EXPECT_THAT(refused([&] { graph.set_values(task, 2.0, 3.0); }),
              AllOf(HasSubstr("(double)"), HasSubstr("(double, double)")));
  EXPECT_THAT(refused([&] { graph.set_priority(rt.submit(kSee, read(x)), 3); }), HasSubstr("not of its recording"));
  EXPECT_THAT(refused([&] { graph.rebind(y, x); }), AllOf(HasSubstr("'y'"), HasSubstr("does not use it")));
  auto other = rt.record([&] { rt.submit(kBoth, read(x), write(y)); });
  EXPECT_THAT(refused([&] { other.rebind(x, y); }),
              AllOf(HasSubstr("'x'"), HasSubstr("'y'"), HasSubstr("uses that one too")));
  x.unregister();
  EXPECT_THAT(refused([&] { rt.replay(graph); }), AllOf(HasSubstr("'x'"), HasSubstr("rebind")));
  graph.rebind(x, y);
  graph.set_values(task, 4.0);
  rt.replay(graph);
  rt.wait();
}

TEST_F(UsageErrors, RebindWantsTheSameShape) {
  std::vector<double> three(3);
  std::vector<double> four(4);
  auto x = rt.data("three", three);
  auto y = rt.data("four", four);
  auto graph = rt.record([&] { rt.submit(Codelet("v", [](std::span<double>) {}), read_write(x)); });
  EXPECT_THAT(refused([&] { graph.rebind(x, y); }),
              AllOf(HasSubstr("'three'"), HasSubstr("'four'"), HasSubstr("sizes differ")));
}

TEST_F(UsageErrors, ANameGivenToATaskIsTheOneInMessages) {
  auto x = rt.scalar<double>("x");
  EXPECT_THAT(refused([&] { rt.submit({.name = "my own name"}, kSee, read(x)); }),
              AllOf(HasSubstr("'my own name'"), HasSubstr("'x'")));
  rt.submit({.name = "my own name"}, Codelet("throws", [](double&) { throw std::runtime_error("reason"); }), write(x));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.wait(); }), "reason");
}

TEST(RegisteredMemory, BelongsToOneDatum) {
  auto rt = test::loop_runtime();
  std::vector<double> values(100);
  const std::string line = TANDEM_HERE; auto all = rt->data("all", values);
  const auto is_refused =
      AllOf(HasSubstr("'part'"), HasSubstr("data 'all'"), HasSubstr(line), HasSubstr("one piece of data at a time"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->data("part", std::span<double>(values).subspan(50, 10)); }), is_refused);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->data("part", values); }), AllOf(is_refused, HasSubstr("the memory of")));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->data("part", values[99]); }), is_refused);
  all.unregister();
  auto part = rt->data("part", std::span<double>(values).subspan(50, 10));
  auto other = rt->data("other", std::span<double>(values).first(50));
  {
    std::thread elsewhere([mine = std::move(other)]() mutable { mine = {}; });
    elsewhere.join();
  }
  EXPECT_NO_THROW(rt->data("again", std::span<double>(values).first(50))) << "dropped on another thread";
}

TEST(RegisteredMemory, ThatIsConstMayBeRead) {
  auto rt = test::loop_runtime({.workers = 2, .devices = 1});
  const std::vector<double> values{1, 2, 3};
  const double factor = 10;
  double sum = 0;
  auto hvalues = rt->data("values", values);
  auto hfactor = rt->data("factor", factor);
  auto hmatrix = rt->data("matrix", MatrixView<const double>{values.data(), 0, 1, 1});
  auto hsum = rt->data("sum", sum);
  const auto add = [](std::span<const double> v, const double& f, double& to) {
    for (const double x : v) to += f * x;
  };
  const auto codelet = Codelet("add", add).also(DeviceKind::user, add);
  rt->submit(codelet, read(hvalues), read(hfactor), read_write(hsum));
  rt->submit(codelet.can_run([](const WorkerDescription& w) { return w.device == DeviceKind::user; }), read(hvalues),
             read(hfactor), read_write(hsum));
  rt->wait();
  EXPECT_EQ((*rt->acquire(read(hvalues)))[2], 3);
  hsum.unregister();
  EXPECT_EQ(sum, 120);
}

TEST(SubmittingThread, AKernelOnAnyWorkerIsToldThatItIsOne) {
  auto rt = test::thread_runtime({.workers = 3});
  std::vector<std::string> said(64);
  const Codelet inside("inside", [&](std::size_t i) {
    said[i] = thrown_by<UsageError>([&] { rt->submit(kSee, Access<AccessMode::read, double>{}); });
  });
  for (std::size_t i = 0; i < said.size(); ++i) rt->submit(inside, i);
  rt->wait();
  for (const std::string& message : said) EXPECT_THAT(message, HasSubstr("from inside a kernel"));
}

}  // namespace
}  // namespace tandem::usage_error_test
