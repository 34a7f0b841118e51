// tandem/runtime/exec/cutoff_test.cpp: the limit of a flow moves until it is frozen, and then says where the flow ends.
#include "tandem/runtime/exec/cutoff.hpp"

#include <gtest/gtest.h>

namespace tandem::runtime::cutoff_test {
namespace {

using Answer = Cutoff::Answer;

TEST(Cutoff, WhoComesFirstMovesTheLimit) {
  Cutoff cutoff;
  EXPECT_FALSE(cutoff.within(1));
  EXPECT_EQ(cutoff.ask(5, 8), Answer::go);
  EXPECT_TRUE(cutoff.within(8));
  EXPECT_FALSE(cutoff.within(9));
  EXPECT_EQ(cutoff.ask(3, 100), Answer::go);
  EXPECT_FALSE(cutoff.within(9)) << "who is within the limit leaves it";
}

TEST(Cutoff, BehindAFrozenLimitTheAnswerWaitsForTheDecision) {
  Cutoff cutoff;
  EXPECT_EQ(cutoff.ask(5, 8), Answer::go);
  EXPECT_EQ(cutoff.freeze(), 8U);
  EXPECT_EQ(cutoff.ask(7, 7), Answer::go);
  EXPECT_EQ(cutoff.ask(9, 20), Answer::hold);
  EXPECT_FALSE(cutoff.passed(UINT64_MAX)) << "the end is not known yet";
  cutoff.decide(10);
  EXPECT_EQ(cutoff.ask(10, 20), Answer::go);
  EXPECT_EQ(cutoff.ask(11, 20), Answer::over);
  EXPECT_FALSE(cutoff.passed(10));
  EXPECT_TRUE(cutoff.passed(11));
}

TEST(Cutoff, AfterTheEndAnotherFlowGoesOn) {
  Cutoff cutoff;
  cutoff.decide(cutoff.freeze());
  EXPECT_EQ(cutoff.ask(1, 1), Answer::over);
  cutoff.reopen();
  EXPECT_FALSE(cutoff.passed(1));
  EXPECT_EQ(cutoff.ask(1, 1), Answer::go);
}

}  // namespace
}  // namespace tandem::runtime::cutoff_test
