// tests/interleave/index_stack_interleave_test.cpp: takers and putters of a stack of indices, under every order of
// their steps.
#include "tandem/base/index_stack.hpp"

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::index_stack_interleave_test {
namespace {

/// Two indices are inside. One thread takes one; another takes both and puts them back in the other order, which is
/// what a stack without a count of changes cannot distinguish from no change.
struct TakeWhileOthersTurnItRound : Program {
  base::IndexStack<ModelAtomic> stack{2};
  std::array<ModelPlain<int>, 2> things{ModelPlain<int>(0), ModelPlain<int>(0)};
  std::array<int, 2> held{};

  TakeWhileOthersTurnItRound() {
    stack.put(0);
    stack.put(1);
  }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      if (const auto index = stack.take()) use(*index);
      return;
    }
    const auto first = stack.take(), second = stack.take();
    if (first) {
      things[*first] = 1;
      stack.put(*first);
    }
    if (second) {
      things[*second] = 1;
      stack.put(*second);
    }
  }
  void use(std::uint32_t index) {
    things[index] = 2;  // a race, if another thread has it as well
    ++held[index];
  }
  void check() override {
    for (std::size_t left = 0; left < 3; ++left) {
      const auto index = stack.take();
      if (!index) break;
      ++held[*index];
    }
    require(held[0] == 1 && held[1] == 1, "an index was lost, or is there twice");
  }
};

TEST(IndexStackUnderEveryOrder, NothingIsLostOrTakenTwice) {
  expect_holds<TakeWhileOthersTurnItRound>();
  expect_holds<TakeWhileOthersTurnItRound>({.store_buffers = true});
}

/// The same with a stack that counts nothing: the test can fail.
template <template <class> class Atomic>
class Uncounted {
 public:
  explicit Uncounted(std::uint32_t) {}
  void put(std::uint32_t index) {
    std::uint32_t head = head_.load(std::memory_order_relaxed);
    do next_[index].store(head, std::memory_order_relaxed);
    while (!head_.compare_exchange_weak(head, index + 1, std::memory_order_release, std::memory_order_relaxed));
  }
  std::optional<std::uint32_t> take() {
    std::uint32_t head = head_.load(std::memory_order_acquire);
    while (head != 0)
      if (head_.compare_exchange_weak(head, next_[head - 1].load(std::memory_order_relaxed), std::memory_order_acquire,
                                      std::memory_order_acquire))
        return head - 1;
    return {};
  }

 private:
  Atomic<std::uint32_t> head_{0};
  std::array<Atomic<std::uint32_t>, 3> next_{};
};

struct UncountedFails : Program {
  Uncounted<ModelAtomic> stack{3};
  std::array<int, 3> held{};

  UncountedFails() {
    for (const std::uint32_t index : {0u, 1u, 2u}) stack.put(index);
  }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      if (const auto index = stack.take()) ++held[*index];
      return;
    }
    const auto top = stack.take(), below = stack.take();
    if (below) ++held[*below];  // kept
    if (top) stack.put(*top);
  }
  void check() override {
    for (std::size_t left = 0; left < 4; ++left)
      if (const auto index = stack.take()) ++held[*index];
    require(held[0] == 1 && held[1] == 1 && held[2] == 1, "an index was lost, or is there twice");
  }
};

TEST(IndexStackUnderEveryOrder, WithoutACountTheOrderIsFoundThatBreaksIt) {
  expect_found<UncountedFails>("lost, or is there twice");
}

}  // namespace
}  // namespace tandem::interleave::index_stack_interleave_test
