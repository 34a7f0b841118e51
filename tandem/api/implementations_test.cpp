// tandem/api/implementations_test.cpp: codelets with several implementations for one kind of worker.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::implementations_test {
namespace {

using test::loop_runtime;

/// Durations: for small vectors implementation 0 takes 1 us and 1 takes 5; for large ones 100 and 20. On devices number
/// 2 takes 50 us and 3 takes 1.
runtime::CoreOptions options_counting(std::array<std::atomic<int>, 8>& begun) {
  runtime::CoreOptions options;
  options.tasks_per_step = 1;
  options.emulation = [&begun](const runtime::EmulatedTask& task) {
    const bool is_large = task.data[0].rows > 100;
    ++begun[task.implementation + (is_large ? 4 : 0)];
    static constexpr std::array<std::int64_t, 8> kTakes{1'000, 5'000, 50'000, 1'000, 100'000, 20'000, 50'000, 1'000};
    return std::optional(kTakes[task.implementation + (is_large ? 4 : 0)]);
  };
  return options;
}

const auto kWork = Codelet("work", [](std::span<double>) {}).also([](std::span<double>) {});

void submit_both(Runtime& rt, const auto& codelet, int count) {
  auto small = rt.vector<double>("small", 10), large = rt.vector<double>("large", 1'000);
  for (int i = 0; i < count; ++i) {
    rt.submit(codelet, write(small));
    rt.submit(codelet, write(large));
  }
  rt.wait();
}

TEST(SeveralImplementations, TheFastestRunsForEachSize) {
  std::array<std::atomic<int>, 8> begun{};
  const auto rt = loop_runtime({.workers = 2}, options_counting(begun));
  submit_both(*rt, kWork, 1'000);
  EXPECT_GT(begun[0], 960);
  EXPECT_GE(begun[1], 3);
  EXPECT_GT(begun[5], 960);
  EXPECT_GE(begun[4], 3);
}

TEST(SeveralImplementations, EachKindOfWorkerHasItsOwn) {
  const auto codelet = kWork.also(DeviceKind::user, [](std::span<double>) {}).also(DeviceKind::user,
                                                                                   [](std::span<double>) {});
  for (const char* const sched : {"lws", "dmda", "plan"}) {
    std::array<std::atomic<int>, 8> begun{};
    const auto rt = loop_runtime({.workers = 2, .sched = sched, .devices = 1, .copy_ns = 0}, options_counting(begun));
    submit_both(*rt, codelet, 1'000);
    for (const int slow : {1, 2, 4, 6}) EXPECT_LT(begun[slow], 60) << sched << ' ' << slow;
    EXPECT_GT(begun[3] + begun[7], 100) << sched;
  }
}

TEST(SeveralImplementations, AreExplained) {
  std::array<std::atomic<int>, 8> begun{};
  runtime::CoreOptions options = options_counting(begun);
  std::vector<std::string> said;
  options.explain = "work";
  options.explain_to = [&](std::string_view text) { said.emplace_back(text); };
  {
    const auto rt = loop_runtime({.workers = 1}, options);
    submit_both(*rt, kWork, 10);
  }
  std::string all;
  for (const std::string& text : said) all += text + "\n";
  EXPECT_THAT(all, testing::HasSubstr("'work'"));
  EXPECT_THAT(all, testing::HasSubstr("runs implementation 1, to learn it; of those for such workers 0 takes an "
                                      "unknown time, 1 takes an unknown time"));
  EXPECT_THAT(all, testing::HasSubstr("0 takes 1 us, 1 takes 5 us"));
}

TEST(SeveralImplementations, KernelsAndRecordedGraphsRunThem) {
  const auto rt = test::thread_runtime({.workers = 2});
  std::atomic<int> first{0}, second{0};
  const auto add =
      Codelet("add", [&](int by, int& x) { x += by, ++first; }).also([&](int by, int& x) { x += by, ++second; });
  int value = 0;
  auto x = rt->data("x", value);
  for (int i = 0; i < 100; ++i) rt->submit(add, 1, read_write(x));
  auto graph = rt->record([&] { rt->submit(add, 10, read_write(x)); });
  for (int i = 0; i < 10; ++i) rt->replay(graph);
  rt->wait();
  EXPECT_EQ(value, 200);
  EXPECT_EQ(first + second, 110);
  EXPECT_GE(first, 3);
  EXPECT_GE(second, 3);
}

TEST(SeveralImplementations, AKernelThatThrowsIsNoMeasurement) {
  const auto rt = test::thread_runtime({.workers = 1});
  const auto fail = Codelet("fail", [](int&) { throw std::runtime_error("on purpose"); }).also([](int& x) { ++x; });
  int value = 0;
  auto x = rt->data("x", value);
  rt->submit(fail, write(x));
  EXPECT_THROW(rt->wait(), std::runtime_error);
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    int other = 0;
    auto y = rt->data("y", other);
    rt->submit(fail, read_write(y));
    try {
      rt->wait();
      good += other;
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_GT(good, 15);
}

}  // namespace
}  // namespace tandem::implementations_test
