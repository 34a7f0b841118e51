// tandem/api/lambda_test.cpp: tasks with their own kernels, and data without a name.
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::lambda_test {
namespace {

using test::thread_runtime;
using testing::AllOf;
using testing::HasSubstr;

void double_it(double& x) { x *= 2; }
void add_one(double& x) { x += 1; }

TEST(TasksFromLambdas, RunWithValuesAndData) {
  auto rt = thread_runtime();
  std::vector<double> values(10, 1.0);
  auto x = rt->data("x", values);
  rt->submit("scale", [](double a, std::span<double> to) { for (double& v : to) v *= a; }, 3.0, read_write(x));
  rt->submit([](std::span<double> to) { for (double& v : to) v += 1; }, read_write(x));
  rt->wait();
  EXPECT_EQ(values, std::vector<double>(10, 4.0));
}

TEST(TasksFromLambdas, KeepWhatTheyCapture) {
  auto rt = thread_runtime();
  std::vector<double> values(100, 0.0);
  auto x = rt->data(values);
  for (int i = 0; i < 100; ++i)
    rt->submit("set", [i, owned = std::make_unique<int>(i)](std::span<double> to) { to[i] += *owned; }, read_write(x));
  rt->wait();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[i], i);
}

TEST(TasksFromLambdas, DestroyWhatTheyCapture) {
  const auto shared = std::make_shared<int>(7);
  {
    auto rt = thread_runtime();
    int sum = 0;
    auto s = rt->data("sum", sum);
    for (int i = 0; i < 10; ++i) rt->submit([shared](int& to) { to += *shared; }, read_write(s));
    rt->wait();
    EXPECT_EQ(sum, 70);
  }
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(TasksFromLambdas, MayBeFunctions) {
  auto rt = thread_runtime();
  double value = 3;
  auto x = rt->data("x", value);
  rt->submit("double", double_it, read_write(x));
  rt->submit("increment", &add_one, read_write(x));
  rt->wait();
  EXPECT_EQ(value, 7);
}

TEST(TasksFromLambdas, MayAskWhereTheyRun) {
  auto rt = thread_runtime({.workers = 2});
  unsigned worker = 9;
  auto w = rt->data("worker", worker);
  rt->submit([](const Context& context, unsigned& to) { to = context.worker; }, write(w));
  rt->wait();
  EXPECT_LT(worker, 2U);
}

TEST(TasksFromLambdas, TakeOptionsFirstOrLast) {
  auto rt = thread_runtime();
  double value = 1;
  auto x = rt->data("x", value);
  int called = 0;
  const TaskOptions options{.callback = [&] { ++called; }};
  const Codelet codelet("double", [](double& to) { to *= 2; });
  rt->submit(options, codelet, read_write(x));
  rt->submit(codelet, read_write(x), options);
  rt->submit("add", [](double a, double& to) { to += a; }, 1.0, read_write(x), options);
  rt->submit(options, "add", [](double a, double& to) { to += a; }, 1.0, read_write(x));
  rt->submit([](double& to) { to += 1; }, read_write(x), TaskOptions{.callback = [&] { ++called; }});
  rt->submit({.callback = [&] { ++called; }}, [](double& to) { to += 1; }, read_write(x));
  rt->wait();
  EXPECT_EQ(value, 8);
  EXPECT_EQ(called, 6);
}

TEST(TasksFromLambdas, AreNamedInFailures) {
  auto rt = thread_runtime();
  double value = 1;
  auto x = rt->data("x", value);
  const auto fail_as = [&](std::string_view name) {
    return test::thrown_by<std::runtime_error>([&] {
      rt->submit(name, [](double&) { throw std::runtime_error("no"); }, write(x));
      rt->wait();
    });
  };
  EXPECT_EQ(fail_as("first"), "no");
  rt->submit("source", [](double& to) { to = 1; }, write(x));
  rt->wait();
}

/// Number of tasks in the statistics, by name.
std::map<std::string, std::uint64_t> counted(Runtime& rt) {
  rt.wait();
  std::map<std::string, std::uint64_t> tasks;
  for (const auto& codelet : rt.statistics().codelets) tasks[codelet.name] += codelet.durations.count;
  return tasks;
}

TEST(TasksFromLambdas, AreCountedUnderTheirNameOrTheirLine) {
  auto rt = thread_runtime({.more = {{"stats", "true"}}});
  double value = 1;
  auto x = rt->data("x", value);
  const std::string here = TANDEM_HERE; rt->submit([](double& to) { to += 1; }, read_write(x));
  for (int i = 0; i < 3; ++i) rt->submit("step", [](double& to) { to += 1; }, read_write(x));
  const auto twice = [](double& to) { to *= 2; };
  rt->submit("first", twice, read_write(x));
  for (int i = 0; i < 2; ++i) rt->submit("second", twice, read_write(x));
  rt->submit("first", twice, read_write(x), TaskOptions{.name = "its own"});
  rt->submit({.priority = 1}, "third", twice, read_write(x));
  const std::string there = TANDEM_HERE; rt->submit(twice, read_write(x));
  const std::string elsewhere = TANDEM_HERE; rt->submit(twice, read_write(x));
  rt->submit("function", double_it, read_write(x));
  rt->submit("another", add_one, read_write(x));
  const std::map<std::string, std::uint64_t> expected{
      {"task at " + here, 1},      {"step", 3},     {"first", 2},  {"second", 2}, {"third", 1}, {"task at " + there, 1},
      {"task at " + elsewhere, 1}, {"function", 1}, {"another", 1}};
  EXPECT_EQ(counted(*rt), expected);
}

TEST(TasksFromLambdas, OfAnyNumberOfNamesHaveABoundedNumberOfCodelets) {
  auto rt = thread_runtime({.more = {{"stats", "true"}}});
  double value = 0;
  auto x = rt->data("x", value);
  const auto add = [](double& to) { to += 1; };
  rt->submit("all others", add, read_write(x));
  constexpr std::uint64_t kNames = 3 * internal::OwnCodelets::kMostNames;
  for (std::uint64_t i = 0; i < kNames; ++i) rt->submit("step " + std::to_string(i), add, read_write(x));
  const auto tasks = counted(*rt);
  EXPECT_LE(tasks.size(), internal::OwnCodelets::kMostNames + 1);
  EXPECT_LE(rt->core().submission().codelet_count(), internal::OwnCodelets::kMostNames + 1);
  EXPECT_EQ(tasks.at("step 0"), 1U);
  EXPECT_GT(tasks.at("all others"), kNames - internal::OwnCodelets::kMostNames);
  EXPECT_EQ(value, kNames + 1);
  rt->submit("beyond", [](double&) { throw std::runtime_error("no"); }, write(x));
  EXPECT_EQ(test::thrown_by<std::runtime_error>([&] { rt->wait(); }), "no");
}

TEST(TasksFromLambdas, AreRecordedAndTakeNewValues) {
  auto rt = thread_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  TaskRef task;
  const double factor = 10;
  Graph graph = rt->record([&] {
    task = rt->submit(
        "add", [factor](double a, double& to) { to += factor * a; }, 1.0, read_write(x));
  });
  rt->replay(graph);
  graph.set_values(task, 2.0);
  rt->replay(graph);
  rt->wait();
  EXPECT_EQ(value, 30);
  EXPECT_THAT(test::thrown_by<UsageError>([&] { graph.set_values(task, 2); }),
              AllOf(HasSubstr("(double)"), HasSubstr("(int)")));
}

TEST(DataWithoutANameIsCalledByItsNumber, InMessages) {
  auto rt = thread_runtime();
  std::vector<double> values(3);
  double one = 1;
  auto x = rt->data(values);
  auto y = rt->data(one);
  std::vector<double> more(3);
  auto part = rt->data(std::span<double>(more).first(2));
  auto z = rt->data("z", more[2]);
  EXPECT_EQ(x.name(), "data 0");
  EXPECT_EQ(y.name(), "data 1");
  EXPECT_EQ(part.name(), "data 2");
  EXPECT_EQ(z.name(), "z");
}

}  // namespace
}  // namespace tandem::lambda_test
