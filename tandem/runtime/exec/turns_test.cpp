// tandem/runtime/exec/turns_test.cpp: the order in which a task enters turnstiles, and its cost.
#include "tandem/runtime/exec/turns.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/runtime/task/pool.hpp"

namespace tandem::runtime::turns_test {
namespace {

/// A task with one access to each of some data, whose numbers are in no order.
struct Fixture {
  TaskPool pool;
  std::deque<Handle> handles;
  Task* task = nullptr;
  std::uint64_t comparisons = 0;

  explicit Fixture(unsigned count, AccessMode other = AccessMode::commute) {
    task = pool.take(Task::value_offset(count, 1));
    task->access_count = static_cast<std::uint16_t>(count);
    for (unsigned i = 0; i < count; ++i) {
      Handle& handle = handles.emplace_back();
      handle.number = i * 2'654'435'769U;
      task->accesses()[i].set(&handle, i % 3 == 1 ? other : AccessMode::commute);
    }
  }
  /// The accesses in the order of the chain.
  std::vector<unsigned> chain() {
    std::vector<unsigned> found;
    const auto before = [this](const Handle& a, const Handle& b) {
      ++comparisons;
      return RegisteredBefore{}(a, b);
    };
    for (unsigned next = chain_turns(*task, before); next != 0; next = task->accesses()[next - 1].turn.next)
      found.push_back(next - 1);
    return found;
  }
};

TEST(Turns, ChainAllCommutingAccessesInTheOrderOfTheData) {
  for (const unsigned count : {0U, 1U, 2U, 3U, 7U, 8U, 100U, kMaxAccesses}) {
    Fixture f(count, AccessMode::read);
    const std::vector<unsigned> chain = f.chain();
    std::vector<unsigned> expected;
    for (unsigned i = 0; i < count; ++i)
      if (i % 3 != 1) expected.push_back(i);
    std::ranges::sort(expected, [&](unsigned a, unsigned b) { return f.handles[a].number < f.handles[b].number; });
    EXPECT_EQ(chain, expected) << count;
  }
}

TEST(Turns, OfDataWithOneNumberTheAddressesDecide) {
  Fixture f(4);
  for (Handle& handle : f.handles) handle.number = 5;
  std::vector<unsigned> expected{0, 1, 2, 3};
  std::ranges::sort(expected, std::less<>(), [&](unsigned i) { return &f.handles[i]; });
  EXPECT_EQ(f.chain(), expected);
}

TEST(Turns, TakeAsManyComparisonsOfEachAccessAsTheLogarithmOfTheirNumber) {
  for (const unsigned count : {500U, kMaxAccesses}) {
    Fixture f(count);
    f.chain();
    const auto most = static_cast<std::uint64_t>(count) * static_cast<unsigned>(std::bit_width(count));
    EXPECT_LE(f.comparisons, most) << count << " accesses";
  }
}

}  // namespace
}  // namespace tandem::runtime::turns_test
