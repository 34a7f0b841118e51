// tandem/api/lifetime_test.cpp: the order in which objects may end, on which thread, and in how many runtimes.
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::lifetime_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;

const Codelet kAdd("add", [](double& v) { v += 1; });
const Codelet kSet("set", [](double& v) { v = 1; });

TEST(Lifetime, ACodeletAndItsValuesMayGoBeforeTheirTasksRun) {
  auto rt = loop_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  const auto counted = std::make_shared<int>(7);
  {
    const auto captured = std::make_shared<int>(3);
    Codelet codelet("dies early", [captured](const std::shared_ptr<int>& by_value, const std::string& text, double& v) {
      v += *captured + *by_value + static_cast<double>(text.size());
    });
    for (int i = 0; i < 10; ++i) rt->submit(codelet, counted, std::string(100, 'x'), read_write(x));
  }
  EXPECT_GT(counted.use_count(), 1);
  rt->wait();
  EXPECT_EQ(value, 1100);
  EXPECT_EQ(counted.use_count(), 1) << "values go with their tasks";
}

TEST(Lifetime, ValuesOfTasksThatDoNotRunGoToo) {
  auto rt = loop_runtime();
  double value = 0;
  const auto counted = std::make_shared<int>(7);
  auto x = rt->data("x", value);
  const Codelet throws("throws", [](const std::shared_ptr<int>&, double&) { throw std::runtime_error("no"); });
  rt->submit(throws, counted, read_write(x));
  rt->submit(throws, counted, read_write(x));
  EXPECT_THROW(rt->wait(), std::runtime_error);
  auto unwritten = rt->scalar<double>("u");
  EXPECT_THROW(rt->submit(throws, counted, read_write(unwritten)), UsageError);
  EXPECT_THROW(auto graph = rt->record([&] { rt->submit(throws, counted, read_write(unwritten)); }), UsageError);
  { auto graph = rt->record([&] { rt->submit(throws, counted, write(x)); }); }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(Lifetime, DataOfTheUserIsUnregisteredWithItsLastHandle) {
  auto rt = loop_runtime({.workers = 2, .devices = 1});
  double value = 0;
  {
    auto x = rt->data("x", value);
    auto copy = x;
    Data<double> moved = std::move(x);
    const auto device = Codelet("set", [](double& v) { v = 1; }).also(DeviceKind::user, [](double& v) { v = 2; });
    rt->submit(device.can_run([](const WorkerDescription& w) { return w.device == DeviceKind::user; }), write(moved));
    moved = copy;
    rt->submit(kAdd, read_write(moved));
  }
  EXPECT_EQ(value, 3) << "its tasks were waited for, and the value is at home";
}

TEST(Lifetime, DataOfTandemMayGoBeforeTheTasksThatUseIt) {
  auto rt = loop_runtime();
  std::vector<double> result(1, 0.0);
  auto out = rt->data("out", result);
  for (int i = 0; i < 300; ++i) {
    auto temporary = rt->vector<double>("temporary", 50);
    auto workspace = rt->vector<double>("workspace", 50);
    rt->submit(Codelet("fill", [](std::span<double> v, std::span<double> work) {
                 std::fill(work.begin(), work.end(), 1.0);
                 std::copy(work.begin(), work.end(), v.begin());
               }),
               write(temporary), scratch(workspace));
    rt->submit(Codelet("sum", [](std::span<const double> v,
                                 std::span<double> to) { to[0] += std::accumulate(v.begin(), v.end(), 0.0); }),
               read(temporary), read_write(out));
  }
  rt->wait();
  EXPECT_EQ(result[0], 15'000);
}

TEST(Lifetime, ARecordedGraphKeepsDataOfTandem) {
  auto rt = loop_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  Graph graph = rt->record([&] {
    auto temporary = rt->scalar<double>("temporary");
    auto workspace = rt->vector<double>("workspace", 8);
    rt->submit(Codelet("set", [](double& v, std::span<double> work) { v = work[0] = 2; }), write(temporary),
               scratch(workspace));
    rt->submit(Codelet("add", [](const double& from, double& to) { to += from; }), read(temporary), read_write(x));
  });
  for (int i = 0; i < 100; ++i) {
    auto other = rt->scalar<double>("other");
    rt->submit(kSet, write(other));
    rt->replay(graph);
    rt->wait();
  }
  EXPECT_EQ(value, 200);
}

TEST(Lifetime, DataMayBeRegisteredAndGoWhileAGraphIsRecorded) {
  auto rt = loop_runtime();
  double value = 0;
  double other = 0;
  auto x = rt->data("x", value);
  rt->submit(kAdd, read_write(x));
  Graph graph = rt->record([&] {
    for (int i = 0; i < 200; ++i) auto nothing = rt->scalar<double>("nothing");
    { auto y = rt->data("y", other); }
    rt->submit(kAdd, read_write(x));
  });
  rt->replay(graph);
  rt->wait();
  EXPECT_EQ(value, 2);
}

TEST(Lifetime, HandlesMayOutliveTheRuntime) {
  double value = 0;
  Data<double> x;
  Data<Vector<double>> v;
  {
    auto rt = loop_runtime();
    x = rt->data("x", value);
    v = rt->vector<double>("v", 3);
    rt->submit(kAdd, read_write(x));
  }
  EXPECT_EQ(value, 1);
  EXPECT_THROW(x.unregister(), UsageError);
}

TEST(Lifetime, HandlesMayGoOnOtherThreads) {
  auto rt = thread_runtime({.workers = 2});
  for (int round = 0; round < 30; ++round) {
    double value = 0;
    auto x = rt->data("x", value);
    auto owned = rt->vector<double>("owned", 10);
    rt->submit(Codelet("fill", [](std::span<double> w) { w[0] = 1; }), write(owned));
    rt->submit(kAdd, read_write(x));
    std::thread other([copy = x, mine = owned, moved = std::move(owned)]() mutable {
      auto second = copy;
      second = copy;
    });
    rt->submit(kAdd, read_write(x));
    rt->wait();
    other.join();
    EXPECT_EQ(value, 2);
  }
}

TEST(Lifetime, TheLastHandleMayGoInAKernelOrOnAnotherThread) {
  auto rt = thread_runtime({.workers = 3});
  std::vector<double> values(60, 0.0);
  for (std::size_t i = 0; i < values.size(); i += 3) {
    auto x = rt->data("x", values[i]);
    rt->submit(kAdd, read_write(x));
    rt->submit(Codelet("holds", [](const Data<double>&) {}), std::move(x));
    auto y = rt->data("y", values[i + 1]);
    rt->submit(kAdd, read_write(y));
    std::thread([last = std::move(y)] {}).join();
    auto z = rt->data("z", values[i + 2]);
    rt->submit(kAdd, read_write(z));
    std::thread racing([last = z] {});
    z.unregister();
    z = {};
    racing.join();
  }
  rt->wait();
  EXPECT_EQ(values, std::vector<double>(60, 1.0));
}

TEST(Lifetime, TwoRuntimesOnTwoThreadsShareOneCodelet) {
  const Codelet axpy("axpy", [](double a, std::span<const double> x, std::span<double> y) {
    for (std::size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
  });
  const auto work = [&](double a, double& result) {
    auto rt = thread_runtime({.workers = 2});
    std::vector<double> x(64, 1.0);
    std::vector<double> y(64, 0.0);
    auto hx = rt->data("x", x);
    auto hy = rt->data("y", y);
    for (int i = 0; i < 200; ++i) rt->submit(axpy, a, read(hx), read_write(hy));
    rt->wait();
    result = std::accumulate(y.begin(), y.end(), 0.0);
  };
  double first = 0;
  double second = 0;
  std::thread other([&] { work(2.0, first); });
  work(3.0, second);
  other.join();
  EXPECT_EQ(first, 64 * 400);
  EXPECT_EQ(second, 64 * 600);
}

TEST(Lifetime, OneThreadMayHaveSeveralRuntimes) {
  auto a = loop_runtime();
  auto b = loop_runtime();
  double value = 0;
  auto x = a->data("x", value);
  a->submit(kAdd, read_write(x));
  x.unregister();
  auto y = b->data("y", value);
  b->submit(kAdd, read_write(y));
  b->wait();
  EXPECT_EQ(value, 2);
}

TEST(Lifetime, EmptyVectorsAndMatricesAreOrdinaryData) {
  auto rt = loop_runtime({.workers = 2, .devices = 1});
  std::vector<double> nothing;
  auto v = rt->data("v", nothing);
  auto w = rt->vector<double>("w", 0);
  auto m = rt->matrix<double>("m", 0, 4);
  auto n = rt->data("n", MatrixView<double>{nullptr, 3, 0, 3});
  v.reduction([](std::span<double>) {}, [](std::span<double>, std::span<const double>) {});
  int runs = 0;
  using V = std::span<double>;
  using M = MatrixView<double>;
  const auto look = Codelet("look", [&runs](V a, V b, M c, M d) {
    EXPECT_TRUE(a.empty() && b.empty() && c.empty() && d.empty());
    ++runs;
  });
  const auto anywhere = look.also(DeviceKind::user, [&runs](V, V, M, M) { ++runs; });
  rt->submit(look, read_write(v), write(w), write(m), read_write(n));
  rt->submit(anywhere.can_run([](const WorkerDescription& worker) { return worker.device == DeviceKind::user; }),
             read_write(v), read_write(w), read_write(m), read_write(n));
  rt->submit(look, reduce(v), scratch(w), commute(m), commute(n));
  rt->wait();
  EXPECT_EQ(runs, 3);
  auto view = rt->acquire(read(m));
  EXPECT_EQ(view->cols, 4U);
}

TEST(Lifetime, ARuntimeWithoutTasksStartsAndStops) {
  for (int i = 0; i < 20; ++i) {
    auto rt = thread_runtime({.workers = 3});
    if (i % 2 == 0) rt->wait();
  }
}

TEST(Lifetime, DataMayBeDroppedOnAnotherThreadWhileTheRuntimeEnds) {
  for (int round = 0; round < 50; ++round) {
    auto rt = loop_runtime();
    std::vector<Data<double>> data;
    for (int i = 0; i < 20; ++i) data.push_back(rt->scalar<double>("x"));
    std::atomic<bool> go{false};
    std::thread other([&] {
      go = true;
      for (Data<double>& datum : data) datum = {};
    });
    while (!go) std::this_thread::yield();
    rt.reset();
    other.join();
  }
}

}  // namespace
}  // namespace tandem::lifetime_test
