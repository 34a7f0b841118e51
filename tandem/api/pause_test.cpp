// tandem/api/pause_test.cpp: workers that are paused run nothing, and lose nothing.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::pause_test {
namespace {

using namespace std::chrono_literals;
using test::loop_runtime;
using test::thread_runtime;
using test::thrown_by;
using testing::HasSubstr;

TEST(Pause, NoTaskRunsUntilTheWorkersGoOn) {
  auto rt = thread_runtime(Options{.workers = 3});
  std::atomic<int> run{0};
  const auto submit = [&] {
    for (int i = 0; i < 100; ++i) rt->submit("count", [&] { run.fetch_add(1); });
  };
  submit();
  rt->pause();
  EXPECT_TRUE(rt->is_paused());
  const int before = run.load();
  submit();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(run.load(), before);
  rt->resume();
  EXPECT_FALSE(rt->is_paused());
  rt->wait();
  EXPECT_EQ(run.load(), 200);
}

TEST(Pause, ReturnsWhenTheKernelsThatRunHaveEnded) {
  auto rt = thread_runtime(Options{.workers = 3});
  std::atomic<int> begun{0}, ended{0};
  for (int i = 0; i < 2; ++i)
    rt->submit("slow", [&] {
      begun.fetch_add(1);
      std::this_thread::sleep_for(30ms);
      ended.fetch_add(1);
    });
  while (begun.load() == 0) std::this_thread::yield();
  rt->pause();
  EXPECT_EQ(begun.load(), ended.load());
}

TEST(Pause, WhatWouldWaitIsRefused) {
  auto rt = thread_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  rt->wait();
  rt->pause();
  const TaskRef task = rt->submit("add", [](double& v) { v += 1; }, read_write(x));
  const std::string why = "the workers are paused: call resume() first";
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->wait(); }), HasSubstr(why));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->wait(task); }), HasSubstr(why));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->acquire(read(x)); }), HasSubstr(why));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parallel_for(0, 10, [](std::size_t) {}); }), HasSubstr(why));
  rt->resume();
  rt->wait();
  EXPECT_EQ(value, 1);
  rt->pause();
  EXPECT_EQ(*rt->acquire(read(x)), 1) << "nothing is to be waited for";
}

/// Calls `submit` until it is refused. Returns the number of accepted calls.
template <class Submit>
int submit_until_refused(const Submit& submit) {
  for (int taken = 0; taken < 100; ++taken)
    if (const std::string refused = thrown_by<UsageError>(submit); refused != "nothing was thrown") {
      EXPECT_THAT(refused, HasSubstr("call resume() first"));
      return taken;
    }
  return 100;
}

TEST(Pause, ASubmitThatWouldWaitForTheWindowIsRefusedAndHasNoEffect) {
  auto rt = thread_runtime(Options{.workers = 2, .more = {{"window", "4"}}});
  double value = 0;
  auto x = rt->data("x", value);
  rt->pause();
  const auto submit = [&] { rt->submit("add", [](double& v) { v += 1; }, read_write(x)); };
  EXPECT_EQ(submit_until_refused(submit), 4);
  auto y = rt->scalar<double>("y");
  EXPECT_EQ(submit_until_refused([&] { rt->submit([](double& v) { v = 1; }, write(y)); }), 0);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->acquire(read(y)); }), HasSubstr("nobody has written it"));
  rt->resume();
  rt->wait();
  EXPECT_EQ(value, 4) << "the refused task has no effect";
  submit();
  rt->wait();
  EXPECT_EQ(value, 5);
}

TEST(Pause, AReplayThatWouldWaitForTheWindowIsRefusedAndHasNoEffect) {
  auto rt = thread_runtime(Options{.workers = 2, .more = {{"window", "4"}}});
  double value = 0;
  auto x = rt->data("x", value);
  Graph graph = rt->record([&] {
    for (int i = 0; i < 3; ++i) rt->submit("add", [](double& v) { v += 1; }, read_write(x));
  });
  rt->pause();
  const int taken = submit_until_refused([&] { rt->replay(graph); });
  EXPECT_GE(taken, 1);
  rt->resume();
  rt->wait();
  EXPECT_EQ(value, 3 * taken);
}

TEST(Pause, TwiceIsOnce) {
  auto rt = thread_runtime();
  rt->resume();
  rt->pause();
  rt->pause();
  rt->resume();
  std::atomic<bool> run{false};
  rt->submit("run", [&] { run = true; });
  rt->wait();
  EXPECT_TRUE(run);
}

TEST(Pause, IsOfTheSubmittingThread) {
  auto rt = thread_runtime();
  std::string why;
  rt->submit("pause", [&] { why = thrown_by<UsageError>([&] { rt->pause(); }); });
  rt->wait();
  EXPECT_THAT(why, HasSubstr("cannot pause workers"));
}

TEST(Pause, ARuntimeThatEndsRunsWhatWasSubmitted) {
  std::atomic<int> run{0};
  auto rt = thread_runtime();
  rt->pause();
  for (int i = 0; i < 10; ++i) rt->submit("count", [&] { run.fetch_add(1); });
  rt.reset();
  EXPECT_EQ(run.load(), 10);
}

TEST(Pause, OfWorkersWithoutTheCaller) {
  auto rt = thread_runtime(Options{.workers = 2, .more = {{"caller", "false"}}});
  std::atomic<int> run{0};
  for (int round = 0; round < 20; ++round) {
    rt->submit("count", [&] { run.fetch_add(1); });
    rt->pause();
    const int before = run.load();
    rt->submit("count", [&] { run.fetch_add(1); });
    EXPECT_EQ(run.load(), before);
    rt->resume();
  }
  rt->wait();
  EXPECT_EQ(run.load(), 40);
}

TEST(Pause, OnTheEventLoopDevicesEndWhatTheyHave) {
  auto rt = loop_runtime({.workers = 2, .devices = 1});
  std::atomic<int> run{0};
  const auto count = Codelet("count", [&](double& v) { v += 1, ++run; }).also(DeviceKind::user,
                                                                              [&](double& v) { v += 1, ++run; });
  std::vector<double> values(20);
  std::vector<Data<double>> data;
  for (double& value : values) data.push_back(rt->data(value));
  for (const auto& x : data) rt->submit(count, read_write(x));
  rt->pause();
  const int before = run.load();
  for (const auto& x : data) rt->submit(count, read_write(x));
  EXPECT_EQ(run.load(), before);
  rt->resume();
  rt->wait();
  EXPECT_EQ(run.load(), 40);
}

// The test pauses at all moments: with tasks that wake others, chains, and workers that fall asleep.
TEST(Pause, LosesNothingInRandomFlows) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    auto rt = thread_runtime(
        Options{.workers = 1 + static_cast<unsigned>(seed % 4), .more = {{"poll_for", seed % 2 == 0 ? "0" : "20us"}}});
    std::vector<std::uint64_t> values(4), expected(4);  // the values wrap around
    std::vector<Data<std::uint64_t>> data;
    for (auto& value : values) data.push_back(rt->data(value));
    std::atomic<int> running{0};
    for (int step = 0; step < 300; ++step) {
      const std::size_t to = random() % 4, from = (to + 1) % 4;
      rt->submit("add", [&](const std::uint64_t& a, std::uint64_t& b) {
        running.fetch_add(1);
        b += a + 1;
        running.fetch_sub(1);
      }, read(data[from]), read_write(data[to]));
      expected[to] += expected[from] + 1;
      switch (random() % 12) {
        case 0:
          rt->pause();
          EXPECT_EQ(running.load(), 0);
          break;
        case 1:
        case 2: rt->resume(); break;
        case 3:
          if (!rt->is_paused()) rt->wait(data[to]);
          break;
        default: break;
      }
    }
    rt->resume();
    rt->wait();
    EXPECT_EQ(values, expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem::pause_test
