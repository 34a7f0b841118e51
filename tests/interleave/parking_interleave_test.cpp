// tests/interleave/parking_interleave_test.cpp: one sleeper and those who wake it, under every order of their steps.
#include "tandem/base/parking.hpp"

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::parking_interleave_test {
namespace {

using ModelParker = base::BasicParker<ModelAtomic, ModelFutex>;

/// Each waker says what it wants and wakes the owner, who sleeps until it has seen what all want.
template <class Parker, unsigned Wakers, std::int64_t TimeoutNs>
struct ParkUntilAll : Program {
  Parker parker;
  std::array<ModelAtomic<bool>, Wakers> wanted;
  std::array<ModelPlain<int>, Wakers> payload;

  unsigned threads() const override { return 1 + Wakers; }
  void run(unsigned thread) override {
    if (thread > 0) {
      payload[thread - 1] = 7;
      wanted[thread - 1].store(true, std::memory_order_relaxed);  // the permit carries the order
      parker.unpark();
      return;
    }
    std::array<bool, Wakers> seen{};
    for (unsigned count = 0; count < Wakers;) {
      const bool permit = parker.park(TimeoutNs);
      if (!permit) continue;
      for (unsigned w = 0; w < Wakers; ++w) {
        if (seen[w] || !wanted[w].load(std::memory_order_relaxed)) continue;
        seen[w] = true;
        ++count;
      }
    }
  }
};

TEST(ParkerUnderEveryOrder, NoWakeUpIsLost) {
  expect_holds<ParkUntilAll<ModelParker, 1, INT64_MAX>>({.most_failures = 3, .store_buffers = true});
  expect_holds<ParkUntilAll<ModelParker, 2, INT64_MAX>>({.store_buffers = true});
  expect_holds<ParkUntilAll<ModelParker, 2, 1000>>();
}

/// The waker writes, wakes; the owner, once it has the permit, reads.
template <class Parker>
struct PermitCarriesOrder : Program {
  Parker parker;
  ModelPlain<int> payload{0};
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 1) {
      payload = 7;
      parker.unpark();
    } else {
      while (!parker.park()) {
      }
      require(payload == 7, "woken, but what the waker wrote is not seen");
    }
  }
};

TEST(ParkerUnderEveryOrder, WhatTheWakerWroteIsSeen) {
  expect_holds<PermitCarriesOrder<ModelParker>>({.most_failures = 2});
}

/// A second wake-up finds the permit of the first, or the owner asleep again: it is never left asleep with a permit.
struct PermitsCountAsOne : Program {
  ModelParker parker;
  ModelAtomic<int> unparked{0};
  int taken = 0;
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread == 0) {
      while (!parker.park()) {
      }
      ++taken;
      if (parker.try_take()) ++taken;
    } else {
      parker.unpark();
      unparked.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void check() override {
    if (parker.try_take()) ++taken;
    require(taken == 1 || taken == 2, "more permits than wake-ups, or none");
  }
};

TEST(ParkerUnderEveryOrder, WakeUpsThatMeetCountAsOne) { expect_holds<PermitsCountAsOne>(); }

/// As base::BasicParker, with one mistake.
enum class Mistake { relaxed_permit, stores_parked, relaxed_park };
template <Mistake What>
struct WrongParker {
  bool park(std::int64_t timeout_ns = INT64_MAX) noexcept {
    constexpr auto acquire = What == Mistake::relaxed_park ? std::memory_order_relaxed : std::memory_order_acquire;
    if (state.load(std::memory_order_relaxed) == 2) return state.exchange(0, acquire) == 2;
    std::uint32_t expected = 0;
    if constexpr (What == Mistake::stores_parked) state.store(1, std::memory_order_seq_cst);
    else if (!state.compare_exchange_strong(expected, 1, acquire, acquire)) return state.exchange(0, acquire) == 2;
    ModelFutex::wait(state, 1, timeout_ns);
    return state.exchange(0, acquire) == 2;
  }
  void unpark() noexcept {
    if (state.exchange(2, What == Mistake::relaxed_permit ? std::memory_order_relaxed : std::memory_order_seq_cst) == 1)
      ModelFutex::wake_one(state);
  }
  ModelAtomic<std::uint32_t> state{0};
};

TEST(ParkerUnderEveryOrder, MistakesAreFound) {
  expect_found<PermitCarriesOrder<WrongParker<Mistake::relaxed_permit>>>("race");
  expect_found<PermitCarriesOrder<WrongParker<Mistake::relaxed_park>>>("race");
  expect_found<PermitCarriesOrder<WrongParker<Mistake::stores_parked>>>("deadlock");
}

}  // namespace
}  // namespace tandem::interleave::parking_interleave_test
