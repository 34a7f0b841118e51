// tandem/runtime/exec/failure_test.cpp: the failure that a wait throws does not depend on the order in which failures
// came.
#include "tandem/runtime/exec/failure.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace tandem::runtime::failure_test {
namespace {

FlowFailure& fail(FailureLog& log, TaskId id) {
  return *log.add(id, std::make_exception_ptr(std::runtime_error("x")), "task " + std::to_string(id));
}

TEST(FailureLog, ReportsTheEarliestInTheFlowOnce) {
  FailureLog log;
  EXPECT_FALSE(log.any());
  fail(log, 9);
  FlowFailure& earliest = fail(log, 4);
  fail(log, 6);
  EXPECT_TRUE(log.any());
  const FailureLog::Report report = log.take_report(20);
  EXPECT_EQ(report.failure, &earliest);
  EXPECT_EQ(report.failed, 3U);
  EXPECT_FALSE(log.any());
  EXPECT_EQ(log.take_report(21).failure, nullptr);
}

TEST(FailureLog, TheTextCountsInSingularAndPlural) {
  FailureLog log;
  FlowFailure& failure = fail(log, 4);
  EXPECT_EQ(log.take_report(5).text(), "task 4");
  log.cancelled(6, failure);
  EXPECT_EQ(log.take_report(7).text(), "task 4; 1 task that depends on it was cancelled");
  FlowFailure& another = fail(log, 8);
  fail(log, 9);
  log.cancelled(10, another);
  log.cancelled(11, another);
  EXPECT_EQ(log.take_report(12).text(), "task 8; 2 tasks failed; 2 tasks that depend on them were cancelled");
}

TEST(FailureLog, AFailureIsThrownAgainOnlyWhenItCancelsSomethingLater) {
  FailureLog log;
  FlowFailure& failure = fail(log, 4);
  log.cancelled(7, failure);
  log.note_thrown(failure, 10);
  log.cancelled(8, failure);  // submitted before that wait, and cancelled after it: already reported
  EXPECT_EQ(log.take_report(11).failure, nullptr);
  log.cancelled(12, failure);
  const FailureLog::Report report = log.take_report(13);
  EXPECT_EQ(report.failure, &failure);
  EXPECT_EQ(report.failed, 0U);
  EXPECT_EQ(report.cancelled, 1U);
}

TEST(FailureLog, WhatTurnsOutToLieBehindTheEndOfTheFlowDoesNotCount) {
  FailureLog log;
  log.cancelled_in_doubt(17, log.lost());
  EXPECT_TRUE(log.any());
  log.settle(8);
  const FailureLog::Report none = log.take_report(25);
  EXPECT_EQ(none.failure, nullptr);
  EXPECT_EQ(none.cancelled, 0U);
  // Cases: of two failures, one lies before the end; and without an end, all count.
  for (const TaskId end : {TaskId{31}, TaskId{0}}) {
    log.cancelled_in_doubt(30, log.lost());
    log.cancelled_in_doubt(32, log.lost());
    if (end != 0) log.settle(end);
    const FailureLog::Report report = log.take_report(40);
    EXPECT_EQ(report.failure, end != 0 ? &log.lost() : nullptr) << "thrown once, up to position 40";
    EXPECT_EQ(report.cancelled, end != 0 ? 1U : 2U);
  }
}

TEST(FailureLog, OfSeveralCausesTheEarliestIsKeptUntilTheReport) {
  FailureLog log;
  FlowFailure& late = fail(log, 5);
  FlowFailure& early = fail(log, 2);
  log.note_cause(8, late);
  log.note_cause(8, early);
  log.note_cause(8, late);
  EXPECT_EQ(log.cause_of(8), &early);
  EXPECT_EQ(log.cause_of(9), nullptr);
  log.take_report(10);
  EXPECT_EQ(log.cause_of(8), nullptr);
}

TEST(Poison, NeighboursInAGroupDoNotSeeEachOthersFailures) {
  FlowFailure late{.id = 5, .exception = {}, .description = {}};
  FlowFailure early{.id = 3, .exception = {}, .description = {}};
  Poison poison;
  EXPECT_FALSE(poison.any());
  poison.add(&late);
  EXPECT_TRUE(poison.any());
  EXPECT_EQ(poison.seen_in_group(), nullptr);
  poison.add(&early);
  poison.add(&late);
  EXPECT_EQ(poison.settle(), &early) << "the earliest in the flow, in whatever order they came";
  EXPECT_EQ(poison.seen_in_group(), &early) << "the next group comes after it";
}

TEST(Poison, WhatAGroupFoundItLeaves) {
  FlowFailure before{.id = 5, .exception = {}, .description = {}};
  FlowFailure inside{.id = 3, .exception = {}, .description = {}};
  Poison poison;
  poison.set(&before);
  poison.add(&inside);
  EXPECT_EQ(poison.settle(), &before);
  poison.clear();
  EXPECT_EQ(poison.settle(), nullptr);
}

}  // namespace
}  // namespace tandem::runtime::failure_test
