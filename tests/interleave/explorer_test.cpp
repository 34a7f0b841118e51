// tests/interleave/explorer_test.cpp: the explorer finds what it is there to find, and counts schedules as
// combinatorics does.
#include <atomic>

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::explorer_test {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kSeqCst = std::memory_order_seq_cst;

/// Each of two threads adds one, in two steps or in one.
template <bool AtOnce>
struct Count : Program {
  ModelAtomic<int> count{0};
  unsigned threads() const override { return 2; }
  void run(unsigned) override {
    if (AtOnce) count.fetch_add(1, kRelaxed);
    else count.store(count.load(kRelaxed) + 1, kRelaxed);
  }
  void check() override { require(count.peek() == 2, "an increment was lost"); }
};

TEST(Explorer, FindsALostUpdate) {
  expect_found<Count<false>>("lost");
  expect_holds<Count<true>>();
}

/// Two threads of three steps each. On one location all 6! / (3! 3!) = 20 orders differ; on two, one order stands for
/// all.
template <bool OneLocation>
struct Orders : Program {
  std::array<ModelAtomic<int>, 2> at;
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    for (int i = 0; i < 3; ++i) at[OneLocation ? 0 : thread].fetch_add(1, kRelaxed);
  }
};

TEST(Explorer, RunsEachOrderOnceAndOneOfEquivalentOnes) {
  EXPECT_EQ(expect_holds<Orders<true>>().schedules, 20U);
  // One complete schedule; the others are cut where they can only repeat it.
  EXPECT_LE(expect_holds<Orders<false>>().schedules, 7U);
  // With at most one interruption: each thread may be interrupted once, after 1 or 2 of its steps, or not at all.
  EXPECT_EQ(expect_holds<Orders<true>>({.most_preemptions = 1}).schedules, 2U + 4U);
  EXPECT_EQ(expect_holds<Orders<true>>({.most_preemptions = 0}).schedules, 2U);
}

/// One thread writes a plain field and sets a flag; another that sees the flag reads the field.
template <std::memory_order Set, std::memory_order Look>
struct Publish : Program {
  ModelPlain<int> field{0};
  ModelAtomic<bool> flag{false};
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      field = 7;
      flag.store(true, Set);
    } else if (flag.load(Look)) {
      require(field == 7, "old value");
    }
  }
};

TEST(Explorer, FindsRacesThatOrdersDoNotPrevent) {
  expect_holds<Publish<kRelease, kAcquire>>();
  expect_holds<Publish<kSeqCst, kSeqCst>>();
  expect_found<Publish<kRelaxed, kAcquire>>("race");
  expect_found<Publish<kRelease, kRelaxed>>("race");
}

/// The field is written after the flag is set: seen or not, it is a race.
struct PublishTooEarly : Program {
  ModelPlain<int> field{0};
  ModelAtomic<bool> flag{false};
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      flag.store(true, kRelease);
      field = 7;
    } else if (flag.load(kAcquire)) {
      static_cast<void>(static_cast<int>(field));
    }
  }
};

TEST(Explorer, FindsAWriteAfterTheRelease) { expect_found<PublishTooEarly>("race"); }

/// A relaxed read-modify-write in between goes on with the release sequence; a relaxed store ends it.
template <bool Modify>
struct ReleaseSequence : Program {
  ModelPlain<int> field{0};
  ModelAtomic<int> stage{0};
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread == 0) {
      field = 7;
      stage.store(1, kRelease);
    } else if (thread == 1) {
      if (Modify) stage.fetch_add(1, kRelaxed);
      else if (stage.load(kRelaxed) == 1) stage.store(2, kRelaxed);
    } else if (stage.load(kAcquire) == 2) {
      static_cast<void>(static_cast<int>(field));
    }
  }
};

TEST(Explorer, KnowsReleaseSequences) {
  expect_holds<ReleaseSequence<true>>();
  expect_found<ReleaseSequence<false>>("race");
}

/// Each of two threads raises its flag and looks at the other's (Dekker): at least one must see the other.
template <std::memory_order Order>
struct RaiseAndLook : Program {
  std::array<ModelAtomic<int>, 2> flag;
  std::array<bool, 2> sees{};
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    flag[thread].store(1, Order);
    sees[thread] = flag[1 - thread].load(kSeqCst) == 1;
  }
  void check() override { require(sees[0] || sees[1], "neither sees the other"); }
};

TEST(Explorer, FindsWhatStoreBuffersBreak) {
  expect_holds<RaiseAndLook<kRelease>>();  // one memory: cannot be seen
  expect_found<RaiseAndLook<kRelease>>("neither", {.store_buffers = true});
  expect_holds<RaiseAndLook<kSeqCst>>({.store_buffers = true});
}

/// A weak exchange that is tried once.
template <bool Weak>
struct TryOnce : Program {
  ModelAtomic<int> word{0};
  bool done = false;
  unsigned threads() const override { return 1; }
  void run(unsigned) override {
    int expected = 0;
    done = Weak ? word.compare_exchange_weak(expected, 1, kSeqCst, kSeqCst)
                : word.compare_exchange_strong(expected, 1, kSeqCst, kSeqCst);
  }
  void check() override { require(done, "failed for no reason"); }
};

TEST(Explorer, LetsWeakExchangesFailForNoReason) {
  expect_found<TryOnce<true>>("no reason");
  expect_holds<TryOnce<false>>();
}

constexpr bool is_one(int value) noexcept { return value == 1; }

/// Two threads that wait for each other, or the second sets what the first waits for.
template <bool Deadlock>
struct Wait : Program {
  std::array<ModelAtomic<int>, 2> flag;
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (Deadlock || thread == 0) flag[thread].await<is_one>();
    flag[1 - thread].store(1, kRelease);
  }
};

TEST(Explorer, FindsDeadlocks) {
  expect_found<Wait<true>>("deadlock");
  expect_holds<Wait<false>>();
}

TEST(Explorer, RefusesSchedulesThatDoNotFit) {
  const Outcome outcome = explore<Count<true>>({.replay = "000"});
  EXPECT_TRUE(outcome.failed);
  EXPECT_NE(outcome.what.find("does not fit"), std::string::npos);
  EXPECT_TRUE(explore<Count<true>>({.replay = "x"}).failed);
}

}  // namespace
}  // namespace tandem::interleave::explorer_test
