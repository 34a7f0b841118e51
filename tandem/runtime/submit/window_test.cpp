// tandem/runtime/submit/window_test.cpp: the conditions under which submission waits.
#include "tandem/runtime/submit/window.hpp"

#include <gtest/gtest.h>

namespace tandem::runtime::window_test {
namespace {

TEST(Window, IsFullWithSoManyTasksAndTheHeldAccesses) {
  Window window(8);
  EXPECT_FALSE(window.looks_full(7));
  EXPECT_TRUE(window.looks_full(8));
  EXPECT_EQ(window.resume_at(8), 2U);
  window.begin_hold();
  EXPECT_FALSE(window.looks_full(8));
  window.end_hold();
  window.note_finished(3);
  EXPECT_FALSE(window.looks_full(10));
  EXPECT_TRUE(window.looks_full(11));
}

TEST(Window, LooksFullWhileTooMuchDataPasses) {
  Window window(8);
  window.note_passing(1'000'000);
  EXPECT_FALSE(window.looks_full(0)) << "without a budget any amount may pass";
  window.set_budget(400);
  window.note_passing(300);
  EXPECT_FALSE(window.looks_full(0));
  window.note_passing(301);
  EXPECT_TRUE(window.looks_full(0));
  EXPECT_TRUE(window.is_crowded());
  EXPECT_FALSE(window.is_full(0));
  window.begin_hold();
  EXPECT_TRUE(window.looks_full(0)) << "whatever the application holds";
  window.end_hold();
  EXPECT_EQ(window.resume_below(), 200U);
  window.end_crowded(false, 200);
  EXPECT_FALSE(window.looks_full(0));
  EXPECT_TRUE(window.looks_full(8)) << "the bound on tasks is as before";
}

TEST(Window, AWaitInVainRaisesTheBoundUntilLessPasses) {
  Window window(8);
  window.set_budget(400);
  window.note_passing(350);
  window.end_crowded(true, 350);
  window.note_passing(700);
  EXPECT_FALSE(window.looks_full(0));
  window.note_passing(701);
  EXPECT_TRUE(window.looks_full(0));
  window.note_passing(100);
  EXPECT_FALSE(window.looks_full(0));
  window.note_passing(301);
  EXPECT_TRUE(window.looks_full(0));
}

}  // namespace
}  // namespace tandem::runtime::window_test
