// tandem/api/convenience_test.cpp: loops over ranges.
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::convenience_test {
namespace {

using test::thread_runtime;

TEST(ParallelFor, CallsTheBodyOnceForEachIndex) {
  auto rt = thread_runtime({.workers = 3});
  for (const std::size_t grain : {0, 1, 7, 1'000, 5'000}) {
    std::vector<std::atomic<int>> seen(1'003);
    rt->parallel_for(3, 1'003, [&](std::size_t i) { ++seen[i]; }, {.grain = grain});
    for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i < 3 ? 0 : 1) << i << " with grain " << grain;
  }
}

TEST(ParallelFor, AnEmptyRangeCallsNothing) {
  auto rt = thread_runtime();
  rt->parallel_for(5, 5, [](std::size_t) { FAIL(); });
  rt->parallel_for(5, 3, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, TheEndOfTheIndexRangeDoesNotOverflow) {
  auto rt = thread_runtime();
  std::atomic<int> count = 0;
  rt->parallel_for(SIZE_MAX - 5, SIZE_MAX, [&](std::size_t) { ++count; }, {.grain = 4});
  EXPECT_EQ(count, 5);
}

TEST(ParallelFor, ThrowsWhatTheBodyThrewForTheLowestChunkOnce) {
  auto rt = thread_runtime({.workers = 4});
  std::atomic<int> others = 0;
  const auto body = [&](std::size_t i) {
    if (i == 37 || i == 80) throw std::runtime_error(std::to_string(i));
    ++others;
  };
  EXPECT_EQ(test::thrown_by<std::runtime_error>([&] { rt->parallel_for(0, 100, body, {.grain = 1}); }), "37");
  EXPECT_EQ(others, 98) << "the body's references are not used any more";
}

TEST(ParallelFor, AnExceptionThatWasThrownThereIsNotThrownAgain) {
  auto rt = thread_runtime();
  EXPECT_THROW(rt->parallel_for(0, 1, [](std::size_t) { throw std::runtime_error("once"); }), std::runtime_error);
  rt->wait();
}

TEST(ParallelFor, WorksAmongTheTasksOfAFlow) {
  auto rt = thread_runtime();
  double value = 1;
  auto x = rt->data("x", value);
  rt->submit(Codelet("add", [](double& v) { v += 1; }), read_write(x));
  std::atomic<int> count = 0;
  rt->parallel_for(0, 10, [&](std::size_t) { ++count; });
  EXPECT_EQ(count, 10);
  rt->wait();
  EXPECT_EQ(value, 2);
}

TEST(MapReduce, CombinesInOrder) {
  auto rt = thread_runtime({.workers = 4});
  const auto text = [](std::size_t i) { return std::to_string(i) + ","; };
  const auto join = [](const std::string& a, const std::string& b) { return a + b; };
  std::string expected;
  for (std::size_t i = 2; i < 60; ++i) expected += text(i);
  for (const std::size_t grain : {0, 1, 7, 100})
    EXPECT_EQ(rt->map_reduce(2, 60, std::string(), text, join, {.grain = grain}), expected) << grain;
}

TEST(MapReduce, AnEmptyRangeIsNeutral) {
  auto rt = thread_runtime();
  EXPECT_EQ(rt->map_reduce(3, 3, 7, [](std::size_t) { return 1; }, [](int a, int b) { return a + b; }), 7);
  EXPECT_EQ(rt->map_reduce(4, 3, 7, [](std::size_t) { return 1; }, [](int a, int b) { return a + b; }), 7);
}

TEST(MapReduce, ThrowsWhatAKernelThrew) {
  auto rt = thread_runtime();
  const auto map = [](std::size_t i) -> int {
    if (i == 5) throw std::runtime_error("five");
    return 1;
  };
  const auto add = [](int a, int b) { return a + b; };
  EXPECT_EQ(test::thrown_by<std::runtime_error>([&] { rt->map_reduce(0, 10, 0, map, add); }), "five");
}

TEST(ParallelFor, CallsOfOneNameAreOneCodelet) {
  auto rt = thread_runtime({.workers = 2, .more = {{"stats", "true"}}});
  for (int step = 0; step < 20; ++step) {
    rt->parallel_for(0, 4, [](std::size_t) {}, {.grain = 2, .name = "loop"});
    EXPECT_EQ(rt->map_reduce(0, 4, 0, [](std::size_t) { return 1; }, [](int a, int b) { return a + b; },
                             {.grain = 2, .name = "sum"}), 4);
  }
  EXPECT_EQ(rt->core().submission().codelet_count(), 2U)
      << "a codelet that each call leaves behind would live as long as the runtime";
  ASSERT_EQ(rt->statistics().codelets.size(), 2U);
  for (const runtime::CodeletReport& codelet : rt->statistics().codelets)
    EXPECT_EQ(codelet.durations.count, 40U) << codelet.name;
}

}  // namespace
}  // namespace tandem::convenience_test
