// tests/interleave/turnstile_interleave_test.cpp: visitors of one and of two turnstiles, under every order of their
// steps.
#include "tandem/base/turnstile.hpp"

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::turnstile_interleave_test {
namespace {

struct Visitor {
  /// Of the visitor inside, from the moment when it has acquired the stack of those that came.
  struct Place {
    ModelPlain<Visitor*> child{nullptr};
    ModelPlain<std::uint64_t> number{0};
  };

  ModelPlain<Visitor*> next{nullptr};
  ModelPlain<int> priority{
      0};  ///< written by the visitor before it enters, read by the one that chooses among the waiting
  unsigned first = 0;           ///< the turnstiles that it needs: [first, last)
  unsigned last = 0;
  unsigned at = 0;              ///< the one that it stands before; those from `first` to here are its own
  bool passed = false;
  Place place = {};

  Place& place_at_turnstile() { return place; }
};

/// Each thread brings a visitor. Visitor v needs the turnstiles that `Needs` has as bits at 4 v, in order. A visitor
/// that is handed a turnstile goes on in the thread that left it, as a task goes on in the worker that made it ready.
template <unsigned Visitors, unsigned Needs>
struct Visit : Program {
  static constexpr unsigned kTurnstiles = 2;
  std::array<base::Turnstile<Visitor, ModelAtomic>, kTurnstiles> turnstiles;
  std::array<ModelPlain<int>, kTurnstiles> guarded;  ///< touched by who is inside
  std::array<Visitor, Visitors> visitors;
  std::array<const Visitor*, kTurnstiles> inside{};

  unsigned threads() const override { return Visitors; }
  void run(unsigned thread) override {
    const unsigned needs = Needs >> (4 * thread) & 0xf;
    Visitor& visitor = visitors[thread];
    visitor.first = (needs & 1) != 0 ? 0 : 1;
    visitor.last = (needs & 2) != 0 ? 2 : 1;
    visitor.at = visitor.first;
    visitor.priority = static_cast<int>(thread == 2 ? 1 : 0);
    std::array<Visitor*, 8> going{};  // visitors that this thread has to take further
    unsigned count = 0;
    if (turnstiles[visitor.at].enter(&visitor)) going[count++] = &visitor;
    while (count > 0) {
      Visitor& now = *going[--count];
      step_inside(now);
      bool waits = false;
      while (now.at < now.last && !waits) {
        if (turnstiles[now.at].enter(&now)) step_inside(now);
        else waits = true;
      }
      if (waits) continue;
      now.passed = true;
      for (unsigned t = now.last; t-- > now.first;)
        if (Visitor* next = leave(t, now)) going[count++] = next;
    }
  }
  void step_inside(Visitor& visitor) {
    const unsigned t = visitor.at++;
    require(inside[t] == nullptr, "two are inside");
    inside[t] = &visitor;
    guarded[t] = guarded[t] + 1;
  }
  Visitor* leave(unsigned t, const Visitor& visitor) {
    require(inside[t] == &visitor, "somebody else was inside");
    inside[t] = nullptr;
    return turnstiles[t].leave([](const Visitor& a, const Visitor& b) { return a.priority > b.priority; });
  }
  void check() override {
    for (const Visitor& visitor : visitors) require(visitor.passed, "a visitor has not passed");
    for (const auto& turnstile : turnstiles) require(turnstile.free(), "a turnstile is not free in the end");
  }
};

TEST(TurnstileUnderEveryOrder, TwoVisitorsPassOneAtATime) {
  expect_holds<Visit<2, 0x11>>({.most_failures = 2, .store_buffers = true});
  expect_holds<Visit<2, 0x33>>();
}

TEST(TurnstileUnderEveryOrder, ThreeVisitorsPassOneAtATime) { expect_holds<Visit<3, 0x111>>({.most_failures = 0}); }

TEST(TurnstileUnderEveryOrder, VisitorsOfTwoTurnstilesPassOneAtATime) {
  expect_holds<Visit<3, 0x213>>({.most_failures = 0});
  expect_holds<Visit<3, 0x333>>({.most_preemptions = 3, .most_failures = 0});
  expect_holds<Visit<3, 0x123>>({.most_preemptions = 3});
}

/// One is inside and leaves while two others come: who is better goes first, if both had come before.
struct BetterFirst : Program {
  base::Turnstile<Visitor, ModelAtomic> turnstile;
  std::array<Visitor, 3> visitors;
  ModelAtomic<int> waiting{0};
  std::array<int, 3> position{-1, -1, -1};
  int before_leave = 0;

  BetterFirst() { turnstile.enter(&visitors[0]); }
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    const auto better = [](const Visitor& a, const Visitor& b) { return a.priority > b.priority; };
    Visitor* inside = &visitors[0];
    if (thread > 0) {
      visitors[thread].priority = static_cast<int>(thread);
      const bool entered = turnstile.enter(&visitors[thread]);
      if (!entered) waiting.fetch_add(1, std::memory_order_relaxed);
      inside = entered ? &visitors[thread] : nullptr;
    } else {
      before_leave = waiting.load(std::memory_order_relaxed);
    }
    while (inside != nullptr) {
      position[static_cast<std::size_t>(inside - visitors.data())] = passed++;
      inside = turnstile.leave(better);
    }
  }
  void check() override {
    for (const int p : position) require(p >= 0, "a visitor has not passed");
    require(before_leave < 2 || position[2] < position[1], "the better visitor waited, and another went first");
  }
  int passed = 0;
};

TEST(TurnstileUnderEveryOrder, TheBetterOfThoseWhoWaitGoesFirst) { expect_holds<BetterFirst>({.most_failures = 0}); }

/// One is inside, and three come while it leaves: the heap of those that wait is built and taken apart by several
/// threads.
struct ThreeWait : Program {
  base::Turnstile<Visitor, ModelAtomic> turnstile;
  std::array<Visitor, 4> visitors;
  ModelPlain<int> guarded{0};

  ThreeWait() { turnstile.enter(&visitors[0]); }
  unsigned threads() const override { return 4; }
  void run(unsigned thread) override {
    visitors[thread].priority = static_cast<int>(thread % 2);
    Visitor* inside = thread == 0 || turnstile.enter(&visitors[thread]) ? &visitors[thread] : nullptr;
    while (inside != nullptr) {
      guarded = guarded + 1;
      inside = turnstile.leave([](const Visitor& a, const Visitor& b) { return a.priority > b.priority; });
    }
  }
  void check() override {
    require(turnstile.free(), "the turnstile is not free in the end");
    require(guarded == 4, "a visitor has not passed");
  }
};

TEST(TurnstileUnderEveryOrder, ThoseThatWaitAreTakenOneByOneByWhoeverIsInside) {
  expect_holds<ThreeWait>({.most_preemptions = 3, .most_failures = 0});
}

/// As base::Turnstile without a queue, entered without acquiring or left without releasing.
template <std::memory_order Enter, std::memory_order Leave>
struct WeakerTurnstile : Program {
  ModelAtomic<bool> taken{false};
  ModelPlain<int> guarded{0};
  unsigned threads() const override { return 2; }
  void run(unsigned) override {
    if (taken.exchange(true, Enter)) return;
    guarded = guarded + 1;
    taken.store(false, Leave);
  }
};

TEST(TurnstileUnderEveryOrder, EnteringAcquiresAndLeavingReleases) {
  expect_holds<WeakerTurnstile<std::memory_order_acquire, std::memory_order_release>>();
  expect_found<WeakerTurnstile<std::memory_order_relaxed, std::memory_order_release>>("race");
  expect_found<WeakerTurnstile<std::memory_order_acquire, std::memory_order_relaxed>>("race");
}

}  // namespace
}  // namespace tandem::interleave::turnstile_interleave_test
