// tandem/api/parts_end_test.cpp: parts of flows that are cancelled, and of scopes that an exception leaves.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::parts_end_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr auto kAdd = [](int by, std::span<int> x) {
  for (int& value : x) value += by;
};

/// Place of the parts of `whole`: in it, also while devices have newer values, or in memory of their own.
struct Place {
  std::string name;
  std::unique_ptr<Runtime> rt;
  bool has_device = false;

  /// Codelet that adds on a device, if there is one.
  auto add() const {
    const auto both = Codelet("add", kAdd).also(DeviceKind::user, kAdd);
    return has_device ? both.can_run([](const WorkerDescription& worker) { return worker.device == DeviceKind::user; })
                      : both;
  }
  std::vector<int> values(const Data<Vector<int>>& data) const {
    auto view = rt->acquire(read(data));
    return {view->begin(), view->end()};
  }
};

/// Options under which each task asks before it begins, so that a flow ends with the last task that had begun when it
/// was cancelled.
runtime::CoreOptions exact() {
  runtime::CoreOptions options;
  options.begin_ahead_ns = 0;
  return options;
}

std::vector<Place> places() {
  std::vector<Place> all;
  all.push_back({"in the whole", loop_runtime({}, exact())});
  all.push_back({"with a device", loop_runtime({.devices = 1}, exact()), true});
  all.push_back({"with a budget", loop_runtime({.main_bytes = 4'000}, exact())});
  all.push_back({"with a device and a budget", loop_runtime({.devices = 1, .main_bytes = 4'000}, exact()), true});
  return all;
}

Data<Vector<int>> filled(Runtime& rt, std::size_t count, int value) {
  const auto data = rt.vector<int>("x", count);
  rt.submit("fill", [value](std::span<int> x) { std::fill(x.begin(), x.end(), value); }, write(data));
  return data;
}

TEST(PartsInACancelledFlow, AreGatheredForWhoReadsTheWhole) {
  for (const Place& place : places()) {
    Runtime& rt = *place.rt;
    const auto whole = filled(rt, 4, 1);
    const auto parts = rt.parts(whole, {.rows = 2});
    rt.submit(place.add(), 4, read_write(parts(0)));
    rt.wait();
    rt.cancel();
    EXPECT_THAT(place.values(whole), ElementsAre(5, 5, 1, 1)) << place.name;
    rt.submit(place.add(), 100, read_write(whole));
    rt.submit(place.add(), 100, read_write(parts(1)));
    rt.wait();
    EXPECT_THAT(place.values(whole), ElementsAre(5, 5, 1, 1)) << place.name << ": the tasks came behind the end";
    rt.submit(place.add(), 1, read_write(parts(1)));
    EXPECT_THAT(place.values(whole), ElementsAre(5, 5, 2, 2)) << place.name;
  }
}

TEST(PartsInACancelledFlow, GetWhatTheWholeHas) {
  for (const Place& place : places()) {
    Runtime& rt = *place.rt;
    const auto whole = filled(rt, 4, 1);
    const auto parts = rt.parts(whole, {.rows = 2});
    rt.submit(place.add(), 1, read_write(parts(0)));  // this makes copies, if parts have memory of their own
    rt.submit(place.add(), 1, read_write(whole));
    rt.wait();
    rt.cancel();
    EXPECT_THAT(place.values(parts(0)), ElementsAre(3, 3)) << place.name;
    rt.submit(place.add(), 100, read_write(parts(0)));
    rt.wait();
    rt.submit(place.add(), 1, read_write(parts(1)));
    EXPECT_THAT(place.values(parts(1)), ElementsAre(3, 3)) << place.name;
    EXPECT_THAT(place.values(whole), ElementsAre(3, 3, 3, 3)) << place.name;
  }
}

TEST(PartsInACancelledFlow, FollowWhereTheFlowEndsAmongTheirTasks) {
  // The flow is cancelled at each place in turn: splits and gathers submitted before that was known still run.
  constexpr int kTasks = 9;
  for (int end = 0; end < kTasks; ++end)
    for (const Place& place : places()) {
      Runtime& rt = *place.rt;
      const auto whole = filled(rt, 6, 1);
      const auto halves = rt.parts(whole, {.rows = 3}), thirds = rt.parts(whole, {.rows = 2});
      const auto inner = rt.parts(halves(1), {.rows = 1});
      const Data<Vector<int>>* const used[] = {&whole, &halves(0), &thirds(1), &inner(2), &halves(1),
                                               &whole, &inner(0),  &thirds(2), &halves(0)};
      const std::size_t first[] = {0, 0, 2, 5, 3, 0, 3, 4, 0};
      std::uint64_t positions[kTasks];
      for (int i = 0; i < kTasks; ++i) {
        const TaskRef task = rt.submit(place.add(), i + 1, read_write(*used[i]));
        positions[i] = task.task != nullptr ? task.id : UINT64_MAX;
        if (i == end) rt.submit("end", [&rt](std::span<const int>) { rt.cancel(); }, read(*used[i]));
      }
      rt.wait();
      ASSERT_TRUE(rt.cancelled_at().has_value());
      ASSERT_LT(*rt.cancelled_at(), end + 1 < kTasks ? positions[kTasks - 1] : UINT64_MAX);
      std::vector<int> expected(6, 1);
      for (int i = 0; i < kTasks; ++i)
        for (std::size_t k = 0; positions[i] <= *rt.cancelled_at() && k < used[i]->rows(); ++k)
          expected[first[i] + k] += i + 1;
      EXPECT_THAT(place.values(whole), ElementsAreArray(expected)) << place.name << ", end " << end;
      for (const std::size_t i : {0U, 1U, 2U})
        EXPECT_EQ(place.values(thirds(i))[1], expected[2 * i + 1]) << place.name << ", end " << end;
      rt.submit(place.add(), 10, read_write(inner(1)));
      expected[4] += 10;
      EXPECT_THAT(place.values(whole), ElementsAreArray(expected)) << place.name << ", end " << end;
    }
}

TEST(PartsInACancelledFlow, MayEndInIt) {
  for (const Place& place : places()) {
    Runtime& rt = *place.rt;
    const auto whole = filled(rt, 4, 1);
    {
      const auto parts = rt.parts(whole, {.rows = 2});
      const auto inner = rt.parts(parts(1), {.rows = 1});
      rt.submit(place.add(), 4, read_write(parts(0)));
      rt.submit(place.add(), 2, read_write(inner(1)));
      rt.wait();
      rt.cancel();
    }
    EXPECT_THAT(place.values(whole), ElementsAre(5, 5, 1, 3)) << place.name;
    rt.wait();
    EXPECT_THAT(place.values(whole), ElementsAre(5, 5, 1, 3)) << place.name;
  }
}

TEST(PartsInACancelledFlow, HaveNoValueWhenTheirFirstWriterDidNotRun) {
  for (const Place& place : places()) {
    Runtime& rt = *place.rt;
    const auto whole = rt.vector<int>("x", 4);
    const auto parts = rt.parts(whole, {.rows = 2});
    int order = 0;
    const auto before = rt.data("order", order);
    rt.submit("end", [&rt](int&) { rt.cancel(); }, write(before));
    for (const std::size_t i : {0U, 1U})
      rt.submit(
          "fill", [](const int&, std::span<int> x) { std::fill(x.begin(), x.end(), 1); }, read(before),
          write(parts(i)));
    rt.submit("see", [](std::span<const int>) {}, read(whole));
    rt.wait();
    EXPECT_THROW(place.values(whole), FlowCancelled) << place.name;
    for (const std::size_t i : {0U, 1U})
      rt.submit(
          "fill", [](std::span<int> x) { std::fill(x.begin(), x.end(), 7); }, write(parts(i)));
    EXPECT_THAT(place.values(whole), ElementsAre(7, 7, 7, 7)) << place.name;
  }
}

TEST(PartsInACancelledFlow, OfGraphsThatAreNotReplayedStayAsTheyAre) {
  for (const Place& place : places()) {
    Runtime& rt = *place.rt;
    const auto whole = filled(rt, 4, 1);
    const auto parts = rt.parts(whole, {.rows = 2});
    Graph graph = rt.record([&] {
      rt.submit(place.add(), 1, read_write(whole));
      rt.submit(place.add(), 2, read_write(parts(1)));
    });
    rt.replay(graph);
    rt.submit("end", [&rt](std::span<const int>) { rt.cancel(); }, read(whole));
    rt.replay(graph);
    rt.wait();
    EXPECT_THAT(place.values(whole), ElementsAre(2, 2, 4, 4)) << place.name;
    rt.cancel();
    rt.replay(graph);
    EXPECT_THAT(place.values(whole), ElementsAre(2, 2, 4, 4)) << place.name;
    rt.wait();
    rt.replay(graph);
    EXPECT_THAT(place.values(whole), ElementsAre(3, 3, 7, 7)) << place.name;
  }
}

TEST(Parts, AreGatheredWhenAnExceptionLeavesTheirScope) {
  for (const Place& place : places()) {
    Runtime& rt = *place.rt;
    const auto whole = filled(rt, 4, 1), other = filled(rt, 4, 1);
    try {
      const auto parts = rt.parts(whole, {.rows = 2});
      rt.submit(place.add(), 4, read_write(parts(0)));
      rt.submit("fail", [](std::span<int>) { throw std::runtime_error("no"); }, read_write(other));
      rt.wait();
      FAIL() << "the wait throws";
    } catch (const std::runtime_error&) {
    }
    EXPECT_THAT(place.values(whole), ElementsAre(5, 5, 1, 1)) << place.name;
  }
}

TEST(Parts, AreGatheredByADestructorThatAnExceptionRuns) {
  struct Late {
    std::function<void()> call;
    ~Late() { call(); }
  };
  for (const Place& place : places()) {
    Runtime& rt = *place.rt;
    const auto whole = filled(rt, 4, 1);
    try {
      const Late late{[&] {
        const auto parts = rt.parts(whole, {.rows = 2});
        rt.submit(place.add(), 4, read_write(parts(1)));
      }};
      throw std::runtime_error("of the program");
    } catch (const std::runtime_error&) {
    }
    EXPECT_THAT(place.values(whole), ElementsAre(1, 1, 5, 5)) << place.name;
  }
}

TEST(Parts, GiveTheWholeAValueAgainThatAFailureTook) {
  for (const Place& place : places()) {
    Runtime& rt = *place.rt;
    const auto whole = filled(rt, 4, 1);
    rt.submit("fail", [](std::span<int>) { throw std::runtime_error("no"); }, read_write(whole));
    EXPECT_THROW(rt.wait(), std::runtime_error);
    const auto parts = rt.parts(whole, {.rows = 2});
    for (const std::size_t i : {0U, 1U})
      rt.submit(
          "fill", [i](std::span<int> x) { std::fill(x.begin(), x.end(), int(i)); }, write(parts(i)));
    EXPECT_THAT(place.values(whole), ElementsAre(0, 0, 1, 1)) << place.name;
  }
}

TEST(Parts, OfCancelledFlowsOnThreadsHaveTheValuesOfTheirEnd) {
  for (int turn = 0; turn < 60; ++turn) {
    const auto rt =
        turn % 2 == 0
            ? thread_runtime({.workers = 3})
            : thread_runtime(
                  {.workers = 3, .more = {{"memory", "64KiB"}, {"spill", testing::TempDir()}, {"bind", "false"}}});
    const auto whole = filled(*rt, 8, 0);
    const auto halves = rt->parts(whole, {.rows = 4}), quarters = rt->parts(whole, {.rows = 2});
    std::vector<std::uint64_t> positions;
    std::vector<std::pair<std::size_t, std::size_t>> changed;
    for (int i = 0; i < 60; ++i) {
      const auto place = static_cast<std::size_t>(i * 7 % 3);
      const Data<Vector<int>>& data = place == 0   ? whole
                                      : place == 1 ? halves(static_cast<std::size_t>(i) % 2)
                                                   : quarters(static_cast<std::size_t>(i) % 4);
      changed.emplace_back(place == 0 ? 0 : (place == 1 ? i % 2 * 4 : i % 4 * 2), data.rows());
      const TaskRef task = rt->submit("add", kAdd, 1, read_write(data));
      positions.push_back(task.task != nullptr ? task.id : UINT64_MAX);
      if (i == 20) rt->submit("end", [&rt] { rt->cancel(); });
    }
    rt->wait();
    ASSERT_TRUE(rt->cancelled_at().has_value());
    std::vector<int> expected(8, 0);
    for (std::size_t i = 0; i < changed.size(); ++i)
      for (std::size_t k = 0; positions[i] <= *rt->cancelled_at() && k < changed[i].second; ++k)
        ++expected[changed[i].first + k];
    auto view = rt->acquire(read(whole));
    ASSERT_THAT(*view, ElementsAreArray(expected)) << turn;
  }
}

}  // namespace
}  // namespace tandem::parts_end_test
