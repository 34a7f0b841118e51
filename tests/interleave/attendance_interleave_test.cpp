// tests/interleave/attendance_interleave_test.cpp: who attends and who takes the work away, under every order of their
// steps.
#include "tandem/base/attendance.hpp"

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::attendance_interleave_test {
namespace {

using ModelParker = base::BasicParker<ModelAtomic, ModelFutex>;
using ModelAttendance = base::BasicAttendance<ModelAtomic, ModelParker>;

/// Finds nothing, and keeps IdleWork's promise: a sleeper looks whether it is done after it has said that it sleeps.
struct Nothing : base::IdleWork {
  void enter() override { require(!gone.load() && ++attendants == 1, "two attend, or to what is gone"); }
  Found look() override { return Found::nothing_for_long; }
  void sleep(bool (*done)(void*), void* context, std::int64_t) override {
    require(!gone.load(), "sleeps where nothing is");
    if (!done(context)) parker.park();
  }
  void leave() override { require(!gone.load() && --attendants == 0, "left what is gone"); }
  void wake() noexcept override {
    require(!gone.load(), "woken where nothing is");
    parker.unpark();
  }
  void tend() override { require(!gone.load(), "tended to what is gone"); }

  ModelParker parker;
  ModelAtomic<bool> gone{false};
  int attendants = 0;
};

/// Thread 0 takes the work away and destroys it; the others attend until it is over, or wake and tend.
template <class Attendance, class Work, unsigned Attendants, bool Visitor>
struct TakenAway : Program {
  Attendance attendance;
  Work work;

  TakenAway() { attendance.set(&work); }
  unsigned threads() const override { return 1 + Attendants + (Visitor ? 1 : 0); }
  void run(unsigned thread) override {
    if (thread == 0) {
      attendance.set(nullptr);
      require(work.attendants == 0, "taken away from who attends");
      work.gone.store(true);
    } else if (thread <= Attendants) {
      if (!attendance.enter()) return;
      while (!attendance.over()) attendance.sleep([](void*) { return false; }, nullptr, INT64_MAX);
      attendance.leave();
    } else {
      attendance.wake();
      attendance.tend();
    }
  }
  void check() override { require(work.gone.peek(), "never taken away"); }
};

TEST(AttendanceUnderEveryOrder, NobodyLooksAtWhatWasTakenAway) {
  expect_holds<TakenAway<ModelAttendance, Nothing, 1, false>>({.most_failures = 0, .store_buffers = true});
  expect_holds<TakenAway<ModelAttendance, Nothing, 2, false>>({.most_preemptions = 3, .most_failures = 0});
  expect_holds<TakenAway<ModelAttendance, Nothing, 1, true>>({.most_preemptions = 3, .most_failures = 0});
}

/// Without IdleWork's promise, or without the count of those inside, this test would say so.
struct Silent final : Nothing {
  void wake() noexcept override {}
};
struct Uncounted : ModelAttendance {
  void wake() noexcept {
    if (const base::IdleWork* const found = work()) const_cast<base::IdleWork*>(found)->wake();
  }
};

TEST(AttendanceUnderEveryOrder, MistakesAreFound) {
  expect_found<TakenAway<ModelAttendance, Silent, 1, false>>("deadlock", {.most_failures = 0});
  expect_found<TakenAway<Uncounted, Nothing, 1, true>>("woken where nothing is", {.most_failures = 0});
}

}  // namespace
}  // namespace tandem::interleave::attendance_interleave_test
