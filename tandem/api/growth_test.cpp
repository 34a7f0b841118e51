// tandem/api/growth_test.cpp: the cost of a call, and what it leaves, do not grow with earlier calls.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::growth_test {
namespace {

using test::loop_runtime;
using test::thrown_by;

const Codelet kSet("set", [](double& v) { v = 1; });
const Codelet kAdd("add", [](double& v) { v += 1; });
const Codelet kThrow("throw", [](double&) { throw std::runtime_error("no"); });

/// Makes data that submitted tasks use, and drops it: on the event loop, none of the tasks runs before a wait.
void drop_used(Runtime& rt, int count) {
  for (int i = 0; i < count; ++i) rt.submit(kSet, write(rt.scalar<double>("used")));
}

// --- registrations

std::uint64_t looks_of_registrations(int used) {
  auto rt = loop_runtime();
  drop_used(*rt, used);
  const std::uint64_t before = rt->core().data().looked_at();
  for (int i = 0; i < 100; ++i) rt->scalar<double>("unused");
  return rt->core().data().looked_at() - before;
}

TEST(Growth, ARegistrationLooksAtAFewDroppedDataHoweverManyAreInUse) {
  EXPECT_LE(looks_of_registrations(1'000), 400U);
  EXPECT_LE(looks_of_registrations(16'000), 400U);
}

TEST(Growth, WhatNobodyUsesGoesThoughOtherDroppedDataIsInUse) {
  auto rt = loop_runtime();
  drop_used(*rt, 1'000);
  for (int i = 0; i < 10'000; ++i) rt->scalar<double>("unused");
  EXPECT_LT(rt->core().data().count(), 1'000U + 500U);
  rt->wait();
  EXPECT_EQ(rt->core().data().count(), 0U);
}

TEST(Growth, WhatOtherThreadsDropGoesWithoutAWait) {
  auto rt = loop_runtime();
  for (int i = 0; i < 1'000; ++i) {
    auto x = rt->scalar<double>("x");
    std::thread([&x] { x = {}; }).join();
  }
  EXPECT_LT(rt->core().data().count(), 100U);
}

TEST(Growth, UserMemoryThatAnotherThreadHasDroppedIsFreeAgainForTheNextRegistration) {
  auto rt = loop_runtime();
  std::vector<double> memory(4);
  for (int i = 0; i < 100; ++i) {
    auto x = rt->data("x", memory);
    rt->submit([](std::span<double> v) { v[0] += 1; }, read_write(x));
    std::thread([&x] { x = {}; }).join();
  }
  rt->wait();
  EXPECT_EQ(memory[0], 100);
}

// --- recorded graphs

std::uint64_t looks_of_a_graph(int data) {
  auto rt = loop_runtime();
  std::vector<Data<double>> others;
  for (int i = 0; i < data; ++i) others.push_back(rt->scalar<double>("other"));
  auto x = rt->scalar<double>("x");
  const std::uint64_t before = rt->core().data().looked_at();
  {
    Graph graph = rt->record([&] {
      rt->submit(kSet, write(x));
      rt->submit(kAdd, read_write(x));
    });
    rt->replay(graph);
    rt->submit(kAdd, read_write(x));
  }
  return rt->core().data().looked_at() - before;
}

TEST(Growth, AGraphLooksAtItsOwnDataAlone) {
  EXPECT_LE(looks_of_a_graph(100), 4U);
  EXPECT_LE(looks_of_a_graph(10'000), 4U);
}

TEST(Growth, AGraphThatIsReboundAgainAndAgainForgetsItsFormerData) {
  auto rt = loop_runtime();
  auto x = rt->scalar<double>("x");
  Graph graph = rt->record([&] { rt->submit(kSet, write(x)); });
  std::vector<Data<double>> kept;  // no later task writes them, so the flow would name the graph's tasks for ever
  for (const unsigned count : {500U, 4'000U}) {
    const std::uint64_t before = rt->core().data().looked_at();
    for (unsigned i = 0; i < count; ++i) {
      rt->replay(graph);
      auto next = rt->scalar<double>("next");
      graph.rebind(x, next);
      kept.push_back(x);
      x = next;
      if (i % 50 == 0) rt->wait();
    }
    EXPECT_LE(rt->core().data().looked_at() - before, 3U * count);
  }
  rt->wait();
  const std::uint64_t before = rt->core().data().looked_at();
  graph = {};
  EXPECT_LE(rt->core().data().looked_at() - before, 200U);
  for (auto& data : kept) {
    rt->submit(kAdd, read_write(data));
    EXPECT_EQ(*rt->acquire(read(data)), 2);
  }
}

// --- uses of data in a memory with a budget

/// Runs rounds of tasks that reduce into `total`, and then ends that group; afterwards `total` leaves main memory on
/// request.
void expect_uses_end(const std::function<void(Runtime&, Data<Vector<double>>&, Graph&)>& end_group) {
  auto rt = test::thread_runtime(
      {.workers = 2, .more = {{"memory", "1MiB"}, {"spill", testing::TempDir()}, {"bind", "false"}}});
  auto total = rt->vector<double>("total", 4'096);
  total.reduction([](std::span<double> v) { std::fill(v.begin(), v.end(), 0); },
                  [](std::span<double> into, std::span<const double> from) {
                    for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
                  });
  rt->submit([](std::span<double> v) { std::fill(v.begin(), v.end(), 0); }, write(total));
  Graph graph;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 3; ++i) rt->submit([](std::span<double> v) { v[0] += 1; }, reduce(total));
    end_group(*rt, total, graph);
  }
  rt->wait();
  const runtime::UpcomingUses& uses = total.handle()->residence->uses;
  EXPECT_EQ(uses.next(), runtime::UpcomingUses::kNone);
  EXPECT_EQ(uses.size(), 0U);
  rt->evict(total);
  rt->submit([] {});
  rt->wait();
  for (int i = 0; i < 5'000 && total.handle()->valid_on(0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(total.handle()->valid_on(0)) << "nobody uses it";
  EXPECT_EQ((*rt->acquire(read(total)))[0], 150);
}

TEST(Growth, AReplayThatEndsAGroupOfReductionsLeavesNoUses) {
  expect_uses_end([](Runtime& rt, Data<Vector<double>>& total, Graph& graph) {
    if (graph.task_count() == 0) {
      graph = rt.record([&] {
        rt.submit([](std::span<double> v) { v[1] += 1; }, read_write(total));
        rt.submit([](std::span<const double>) {}, read(total));
      });
    }
    rt.replay(graph);
  });
}

TEST(Growth, AnAccessThatEndsAGroupOfReductionsLeavesNoUses) {
  expect_uses_end([](Runtime& rt, Data<Vector<double>>& total, Graph&) { rt.acquire(read(total)); });
}

// --- failures

struct Failing {
  std::unique_ptr<Runtime> rt = loop_runtime();
  Data<double> x = rt->scalar<double>("x");

  void wait(Data<double> data) {
    rt->submit(kThrow, write(data));
    EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->wait(); }), "no");
  }
  const runtime::FailureLog& log() { return rt->core().executor().failures(); }
};

TEST(Growth, AFailureIsForgottenOnceItsDataIsWrittenAgain) {
  Failing f;
  for (const int waits : {500, 4'000}) {
    const std::uint64_t before = f.log().looked_at();
    for (int i = 0; i < waits; ++i) f.wait(f.x);
    EXPECT_LE(f.log().size(), 128U);
    EXPECT_LE(f.log().looked_at() - before, 4U * static_cast<unsigned>(waits));
  }
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { f.rt->wait(f.x); }), "no") << "the last one is known";
}

TEST(Growth, AWaitLooksAtNewFailuresAloneThoughOldOnesAreKnownForTheirData) {
  Failing f;
  std::vector<Data<double>> failed;
  for (const std::size_t count : {500U, 4'000U}) {
    while (failed.size() < count) {
      failed.push_back(f.rt->scalar<double>("failed"));
      f.rt->submit(kThrow, write(failed.back()));
    }
    EXPECT_EQ(thrown_by<std::runtime_error>([&] { f.rt->wait(); }), "no");
    const std::uint64_t before = f.log().looked_at();
    for (int i = 0; i < 50; ++i) f.wait(f.x);
    EXPECT_LE(f.log().looked_at() - before, 100U) << count << " failures are known";
    EXPECT_GE(f.log().size(), count);
  }
  for (auto& data : failed) EXPECT_EQ(thrown_by<std::runtime_error>([&] { f.rt->wait(data); }), "no");
}

}  // namespace
}  // namespace tandem::growth_test
