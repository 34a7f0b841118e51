// tandem/api/example_test.cpp: what a user writes: access modes, kinds of data, devices, order, recorded iterations.
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"

namespace tandem::example_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;

TEST(Example, TheFirstProgram) {
  // DESIGN section 3.
  char name[] = "program";
  char option[] = "--tandem.workers=2";
  char own[] = "own-argument";
  char* argv[] = {name, option, own, nullptr};
  int argc = 3;
  Runtime rt(argc, argv);
  EXPECT_EQ(argc, 2);
  EXPECT_STREQ(argv[1], "own-argument");
  EXPECT_EQ(rt.worker_count(), 2U);

  const std::size_t n = 1'000;
  std::vector<double> x(n, 1.0), y(n, 2.0);
  auto hx = rt.data("x", x), hy = rt.data("y", y);
  Codelet axpy("axpy", [](double a, std::span<const double> x_, std::span<double> y_) {
    for (std::size_t i = 0; i < x_.size(); ++i) y_[i] += a * x_[i];
  });
  rt.submit(axpy, 3.0, read(hx), read_write(hy));
  rt.wait();
  EXPECT_EQ(y, std::vector<double>(n, 5.0));
}

TEST(Example, EveryKindOfDataReachesTheKernelAsItsView) {
  auto rt = loop_runtime();
  struct Particle {
    float position[3];
    int charge;
  };
  Particle particle{{1, 2, 3}, -1};
  std::vector<float> vector{1, 2};
  std::vector<float> other{3, 4};
  std::vector<double> memory(5 * 3, 0.0);
  auto p = rt->data("p", particle);
  auto v = rt->data("v", vector);
  auto m = rt->data("m", MatrixView<double>{memory.data(), 4, 3, 5});
  auto s = rt->data("s", std::span<float>(other).subspan(1));
  EXPECT_EQ(m.rows(), 4U);
  EXPECT_EQ(m.cols(), 3U);
  EXPECT_EQ(s.rows(), 1U);
  EXPECT_EQ(v.name(), "v");
  rt->submit(Codelet("fill", [](const Particle& from, std::span<const float> x, MatrixView<double> to) {
               EXPECT_EQ(to.ld, 5U);
               const double base = static_cast<double>(from.charge) + x[1];
               for (std::size_t j = 0; j < to.cols; ++j)
                 for (std::size_t i = 0; i < to.rows; ++i) to(i, j) = base + static_cast<double>(10 * i + j);
             }),
             read(p), read(v), write(m));
  rt->submit(Codelet("move", [](Particle& one) { one.position[0] += 1; }), read_write(p));
  rt->wait();
  EXPECT_EQ(memory[2 + 5 * 1], 22.0);
  EXPECT_EQ(memory[4], 0.0) << "below the matrix";
  EXPECT_EQ(particle.position[0], 2);
}

TEST(Example, MemoryOfTandemsOwn) {
  auto rt = loop_runtime();
  auto scalar = rt->scalar<int>("s");
  auto vector = rt->vector<int>("v", 3);
  auto matrix = rt->matrix<int>("m", 2, 2);
  rt->submit(Codelet("fill", [](int& s, std::span<int> v, MatrixView<int> m) {
               s = 1;
               std::iota(v.begin(), v.end(), 10);
               m(0, 0) = m(1, 0) = m(0, 1) = m(1, 1) = 5;
             }),
             write(scalar), write(vector), write(matrix));
  EXPECT_EQ(*rt->acquire(read(scalar)), 1);
  {
    auto view = rt->acquire(read(vector));
    EXPECT_EQ((*view)[2], 12);
    EXPECT_EQ(view->size(), 3U);
  }
  {
    auto view = rt->acquire(read_write(matrix));
    (*view)(1, 1) = 6;
  }
  rt->submit(Codelet("see", [](MatrixView<const int> m) { EXPECT_EQ(m(1, 1), 6); }), read(matrix));
  rt->wait();
}

TEST(Example, WhatIsAcquiredStaysAsItIsUntilItIsReleased) {
  auto rt = loop_runtime();
  double value = 1;
  auto x = rt->data("x", value);
  const Codelet add("add", [](double& v) { v += 1; });
  rt->submit(add, read_write(x));
  {
    auto view = rt->acquire(read(x));
    EXPECT_EQ(*view, 2);
    rt->submit(add, read_write(x));
    for (int i = 0; i < 100; ++i) rt->resources().loop->step_some(10);
    EXPECT_EQ(*view, 2);
  }
  rt->wait(x);
  EXPECT_EQ(value, 3);
}

TEST(Example, ReductionsAndCommutingUpdatesAddUp) {
  for (const char* sched : {"lws", "eager", "prio", "random"}) {
    auto rt = thread_runtime({.workers = 4, .sched = sched});
    long sum = 100;
    long product_free = 0;
    std::vector<long> histogram(4, 0);
    auto total = rt->data("sum", sum).reduction([](long& v) { v = 0; },
                                                [](long& into, const long& from) { into += from; });
    auto bins = rt->data("bins", histogram);
    bins.reduction([](std::span<long> v) { std::fill(v.begin(), v.end(), 0); },
                   [](std::span<long> into, std::span<const long> from) {
                     for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
                   });
    auto other = rt->data("other", product_free);
    const Codelet add("add", [](long k, long& v, std::span<long> b, long& c) {
      v += k;
      b[static_cast<std::size_t>(k) % b.size()] += 1;
      c += k;
    });
    for (long k = 0; k < 400; ++k) rt->submit(add, k, reduce(total), reduce(bins), commute(other));
    rt->wait();
    EXPECT_EQ(sum, 100 + 399 * 400 / 2);
    EXPECT_EQ(product_free, 399 * 400 / 2);
    EXPECT_EQ(histogram, std::vector<long>(4, 100));
  }
}

TEST(Example, ScratchIsMemoryForTheTimeOfAKernel) {
  auto rt = loop_runtime({.workers = 3});
  std::vector<double> data{3, 1, 2};
  auto x = rt->data("x", data);
  auto workspace = rt->vector<double>("workspace", 3);
  const Codelet reverse("reverse", [](std::span<double> v, std::span<double> work) {
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(work.data()) % 64, 0U);
    std::copy(v.rbegin(), v.rend(), work.begin());
    std::copy(work.begin(), work.end(), v.begin());
  });
  for (int i = 0; i < 3; ++i) rt->submit(reverse, read_write(x), scratch(workspace));
  rt->wait();
  EXPECT_EQ(data, (std::vector<double>{2, 1, 3}));
}

TEST(Example, AKernelMayAskWhereItRuns) {
  auto rt = loop_runtime({.workers = 2, .devices = 1});
  double value = 0;
  auto x = rt->data("x", value);
  const auto both = Codelet("both", [](double& v) { v = 1; }).also(DeviceKind::user, [](const Context& where,
                                                                                        double& v) {
    EXPECT_EQ(where.worker, 2U);
    EXPECT_EQ(where.memory_node, 1U);
    v = 2;
  });
  const auto on_device =
      both.can_run([](const WorkerDescription& worker) { return worker.device == DeviceKind::user; });
  rt->submit(on_device, write(x));
  rt->wait(x);
  EXPECT_EQ(value, 2) << "the value came home";
  const auto on_cpu = both.can_run([](const WorkerDescription& worker) { return worker.device == DeviceKind::cpu; });
  rt->submit(on_cpu, write(x));
  rt->wait(x);
  EXPECT_EQ(value, 1);
}

TEST(Example, PrioritiesAndExplicitOrder) {
  auto rt = loop_runtime({.workers = 1, .sched = "prio"});
  std::vector<int> order;
  const Codelet note("note", [&order](int i) { order.push_back(i); });
  rt->submit(note, 1);
  rt->submit({.priority = 5}, note, 2);
  const TaskRef last = rt->submit({.priority = -5}, note, 3);
  rt->submit({.priority = 100, .after = {last}}, note, 4);
  rt->submit({.priority = 9}, note, 5);
  rt->wait();
  EXPECT_EQ(order, (std::vector<int>{5, 2, 1, 3, 4}));
}

TEST(Example, WaitingForATaskOrForDataLeavesTheRestAlone) {
  auto rt = loop_runtime({.workers = 1, .sched = "eager"});
  double a = 0;
  double b = 0;
  auto x = rt->data("x", a);
  auto y = rt->data("y", b);
  const Codelet add("add", [](double& v) { v += 1; });
  const TaskRef first = rt->submit(add, read_write(x));
  for (int i = 0; i < 500; ++i) rt->submit(add, read_write(y));
  rt->wait(first);
  EXPECT_EQ(a, 1);
  EXPECT_LT(b, 500);
  rt->wait(y);
  EXPECT_EQ(b, 500);
  rt->wait(TaskRef{});
  rt->wait(first);
}

TEST(Example, ASolversIterationRecordedOnce) {
  auto rt = thread_runtime({.workers = 2});
  std::vector<double> x(100, 1.0);
  double norm = 0;
  auto hx = rt->data("x", x);
  auto hn = rt->data("norm", norm);
  const Codelet scale("scale", [](double a, std::span<double> v) {
    for (double& value : v) value *= a;
  });
  const Codelet sum("sum", [](std::span<const double> v, double& s) { s = std::accumulate(v.begin(), v.end(), 0.0); });
  TaskRef scaling;
  auto graph = rt->record([&] {
    scaling = rt->submit(scale, 2.0, read_write(hx));
    rt->submit(sum, read(hx), write(hn));
  });
  EXPECT_EQ(graph.task_count(), 2U);
  for (int i = 0; i < 3; ++i) rt->replay(graph);
  EXPECT_EQ(*rt->acquire(read(hn)), 800);
  graph.set_values(scaling, 0.5);
  rt->wait(rt->replay(graph));
  EXPECT_EQ(norm, 400);
}

TEST(Example, AnEventJoinsTheFlowToSomethingOutside) {
  auto rt = loop_runtime();
  double received = 0;
  double sum = 0;
  auto x = rt->data("x", received);
  auto s = rt->data("s", sum);
  base::EventLoop& loop = *rt->resources().loop;
  bool is_released = false;
  static_cast<void>(rt->event("receive", Release::separate,
                              [&](Event event) {
                                loop.at(loop.now_ns() + 1'000, [&, event]() mutable {
                                  received = 42;
                                  event.readable();
                                });
                                loop.at(loop.now_ns() + 9'000, [&, event]() mutable {
                                  is_released = true;
                                  event.released();
                                });
                              },
                              write(x)));
  rt->submit(Codelet("use", [&](const double& v, double& total) {
               total += v;
               EXPECT_FALSE(is_released) << "readers need not wait for the release";
             }),
             read(x), read_write(s));
  rt->submit(Codelet("overwrite", [&](double& v) {
               EXPECT_TRUE(is_released);
               v = 0;
             }),
             write(x));
  rt->wait();
  EXPECT_EQ(sum, 42);
}

}  // namespace
}  // namespace tandem::example_test
