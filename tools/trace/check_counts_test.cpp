// tools/trace/check_counts_test.cpp: unbalanced counts are found, each under its own promise.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/trace/check_test_support.hpp"
#include "tandem/analysis/history/small_run.hpp"

namespace tandem::tools::trace_check_counts_test {

using namespace analysis;
namespace {

using analysis::test::at;
using test::checked;
using test::counted;
using analysis::test::SmallRun;
using testing::ElementsAre;
using testing::IsEmpty;
using trace::Type;

/// The broken promises; the counts in the small run's rank.json are not checked.
std::vector<std::string> broken(const TraceCheck& result) {
  std::vector<std::string> promises;
  for (const Violation& violation : result.violations)
    if (!violation.promise.starts_with("rank.json counts")) promises.push_back(violation.promise);
  return promises;
}

std::string why_skipped(const TraceCheck& result, const std::string& account) {
  for (const Account& one : result.accounts)
    if (one.name == account && !one.skipped.empty()) return one.skipped.front().why;
  return "it was not";
}

/// Actor 1 submits, 2 and 3 work, 4 communicates; sites 0 and 1 belong to codelets, 2 to joins.
class TraceCheckCounts : public ::testing::Test {
 public:
  TraceCheckCounts() {
    run_.usual();
    run_.catalogue().add(Type::site, at(0), {2, 0, "(join)", ""});
  }

  trace::test::PacketWriter& submitter() { return run_.stream(0, 1); }
  trace::test::PacketWriter& worker(std::uint32_t index = 0) { return run_.stream(0, 2 + index); }
  trace::test::PacketWriter& engine() { return run_.stream(0, 4); }
  TraceCheckCounts& submit(std::int64_t ns, std::uint32_t task, std::vector<std::uint32_t> before = {},
                           std::uint16_t site = 0) {
    for (std::uint32_t& predecessor : before) predecessor = task - predecessor;
    submitter().add(Type::task_submitted_wide, at(ns),
                    {task, 0, site, 0, before.size(), std::vector<std::uint32_t>{}, before});
    return *this;
  }
  TraceCheckCounts& execute(std::uint32_t task, std::int64_t start_ns, std::int64_t end_ns, std::uint32_t index = 0) {
    run_.execute(0, 2 + index, task, start_ns, end_ns);
    return *this;
  }
  TraceCheck result() { return checked(run_.write()); }
  void expect_sound() { EXPECT_THAT(broken(result()), IsEmpty()); }
  /// Expects this promise only to be broken, with this first example.
  void expect_broken(const std::string& promise, const std::string& example) {
    const TraceCheck found = result();
    ASSERT_THAT(broken(found), ElementsAre(promise));
    const auto violation = std::ranges::find(found.violations, promise, &Violation::promise);
    EXPECT_THAT(violation->examples.front(), testing::HasSubstr(example));
  }
  void rewrite_manifest(trace::test::RankFacts facts) {
    trace::test::write_rank(run_.folder() / trace::rank_folder_name(0), facts);
  }

  SmallRun run_;
};

TEST_F(TraceCheckCounts, TasksThatRunOnceAfterWhatComesBeforeThemAreSound) {
  submit(0, 1).submit(10, 2, {1}).execute(1, 1'000, 5'000).execute(2, 6'000, 7'000, 1);
  expect_sound();
  EXPECT_EQ(counted(result(), "tasks", "submitted"), 2u);
  EXPECT_EQ(counted(result(), "tasks", "ended"), 2u);
}

TEST_F(TraceCheckCounts, ATaskThatNeverRunsIsReported) {
  submit(0, 1);
  expect_broken("each task that was submitted runs or is cancelled", "rank 0: task 1 ");
}

TEST_F(TraceCheckCounts, OfAProgramThatWasKilledNoTaskMustRun) {
  submit(0, 1).submit(1, 2);
  worker().add(Type::task_started, at(5'000), {1});
  run_.write();
  rewrite_manifest({.complete = false, .recovered = true});
  EXPECT_THAT(broken(checked(run_.folder())), IsEmpty());
  // A recorded event still requires its causes.
  worker().add(Type::task_started, at(6'000), {7});
  run_.write();
  rewrite_manifest({.complete = false, .recovered = true});
  EXPECT_THAT(broken(checked(run_.folder())), ElementsAre("whatever a task's events name was submitted"));
}

TEST_F(TraceCheckCounts, WhatWasNotSubmittedDoesNotRun) {
  execute(3, 1'000, 2'000);
  expect_broken("whatever a task's events name was submitted", "task 3 ");
}

TEST_F(TraceCheckCounts, ATaskIsSubmittedOnce) {
  submit(0, 1).submit(100, 1).execute(1, 5'000, 6'000);
  expect_broken("each task is submitted once", "task 1 ");
}

TEST_F(TraceCheckCounts, ATaskIsStartedOnce) {
  submit(0, 1).execute(1, 5'000, 6'000).execute(1, 7'000, 8'000);
  expect_broken("each task is started once", "2 times");
}

TEST_F(TraceCheckCounts, ATaskDoesNotRunBeforeItWasSubmitted) {
  submit(9'000, 1).execute(1, 5'000, 6'000);
  expect_broken("no task begins before it was submitted", "begins 4000 ns before");
}

TEST_F(TraceCheckCounts, ATaskDoesNotRunBeforeWhatComesBeforeItHasEnded) {
  submit(0, 1).submit(0, 2, {1}).execute(1, 5'000, 9'000).execute(2, 6'000, 7'000, 1);
  expect_broken("no task begins before what comes before it has ended",
                "task 2 begins before the end of task 1, by 3000 ns");
}

TEST_F(TraceCheckCounts, AJoinEndsNotBeforeAllThatComesBeforeIt) {
  submit(0, 1)
      .submit(0, 2, {1}, 2)
      .submit(0, 3, {2}, 2)
      .submit(0, 4, {3})
      .execute(1, 5'000, 9'000)
      .execute(4, 6'000, 7'000, 1);
  expect_broken("no task begins before what comes before it has ended", "task 4 begins before the end of task 3");
}

TEST_F(TraceCheckCounts, AJoinMayHaveAGreaterNumberThanTheTaskThatItPrecedes) {
  submit(0, 1).submit(0, 3, {1}, 2).submit(0, 2, {3}).execute(1, 5'000, 9'000).execute(2, 10'000, 11'000, 1);
  expect_sound();
  const auto history = run_.read();
  EXPECT_EQ(history->dependencies.at(1).predecessor, 3u);
}

TEST_F(TraceCheckCounts, AStampThatWasReadForAnEarlierEventRefutesNothing) {
  // Worker 1 takes task 2 right after the end of task 3, whose stamp its start has; task 1 has ended in between.
  submit(0, 1)
      .submit(0, 2, {1})
      .submit(0, 3)
      .execute(1, 1'000, 9'000)
      .execute(3, 2'000, 5'000, 1)
      .execute(2, 5'000, 12'000, 1);
  expect_sound();
}

TEST_F(TraceCheckCounts, PredecessorsWereSubmitted) {
  submit(0, 5, {4}).execute(5, 5'000, 6'000);
  expect_broken("whatever comes before a task was submitted", "task 5 comes after task 4");
}

TEST_F(TraceCheckCounts, ATaskDoesNotRunBeforeItIsReadyOrQueued) {
  submit(0, 1).execute(1, 5'000, 6'000);
  submitter().add(Type::task_ready, at(8'000), {1});
  expect_broken("no task begins before it is ready", "3000 ns");
}

TEST_F(TraceCheckCounts, ATaskIsQueuedBeforeItIsTaken) {
  submit(0, 1);
  submitter().add(Type::task_pushed, at(8'000), {1, 0});
  worker().add(Type::task_popped, at(5'000), {1});
  execute(1, 9'000, 9'500);
  expect_broken("no task begins before it was put into a queue", "3000 ns");
}

TEST_F(TraceCheckCounts, ATaskIsTakenBeforeItIsStarted) {
  submit(0, 1).execute(1, 5'000, 6'000);
  worker().add(Type::task_popped, at(8'000), {1});
  expect_broken("no task is taken from a queue after it was started", "3000 ns");
}

TEST_F(TraceCheckCounts, ATaskBecomesReadyOnce) {
  submit(0, 1);
  submitter().add(Type::task_ready, at(1'000), {1}).add(Type::task_ready, at(1'100), {1});
  execute(1, 5'000, 6'000);
  expect_broken("each task becomes ready once", "2 times");
}

TEST_F(TraceCheckCounts, ATaskThatIsCancelledDoesNotRun) {
  submit(0, 1).submit(0, 2);
  worker().add(Type::task_cancelled, at(5'000), {1});
  execute(2, 6'000, 7'000);
  expect_sound();
  EXPECT_EQ(counted(result(), "tasks", "cancelled"), 1u);
  execute(1, 8'000, 9'000);
  expect_broken("no task both runs and is cancelled", "task 1 ");
}

TEST_F(TraceCheckCounts, ATaskIsCancelledOnce) {
  submit(0, 1);
  worker().add(Type::task_cancelled, at(5'000), {1}).add(Type::task_cancelled, at(6'000), {1});
  expect_broken("each task is cancelled once", "2 times");
}

TEST_F(TraceCheckCounts, OnlyWhatRunsOrIsCancelledFails) {
  submit(0, 1);
  worker()
      .add(Type::task_started, at(5'000), {1})
      .add(Type::task_failed, at(5'500), {1})
      .add(Type::task_ended, at(6'000), {1});
  expect_sound();
  worker().add(Type::task_failed, at(7'000), {1});
  expect_broken("a task fails once, when it runs or is cancelled", "fails 2 times");
}

TEST_F(TraceCheckCounts, JoinsAreNotExecuted) {
  submit(0, 1, {}, 2);
  expect_sound();
  EXPECT_EQ(counted(result(), "tasks", "joins and events"), 1u);
  execute(1, 5'000, 6'000);
  expect_broken("joins, events and accesses of the program are not executed", "task 1 ");
}

TEST_F(TraceCheckCounts, EachReplayOfAGraphRunsItsTasksInTheirOrder) {
  submit(0, 1).submit(0, 2, {1});
  submitter().add(Type::task_replayed, at(0), {1, 1, 2}).add(Type::task_replayed, at(100), {1, 3, 2});
  execute(1, 5'000, 6'000).execute(2, 7'000, 8'000).execute(3, 9'000, 10'000);
  expect_broken("each task that was submitted runs or is cancelled", "task 4 ");
  execute(4, 11'000, 12'000);
  expect_sound();
  EXPECT_EQ(counted(result(), "tasks", "replayed"), 2u);
}

TEST_F(TraceCheckCounts, TheTasksOfAReplayWaitForEachOther) {
  submit(0, 1).submit(0, 2, {1});
  submitter().add(Type::task_replayed, at(0), {1, 1, 2}).add(Type::task_replayed, at(100), {1, 3, 2});
  execute(1, 5'000, 6'000).execute(2, 7'000, 8'000).execute(3, 9'000, 20'000).execute(4, 11'000, 12'000, 1);
  expect_broken("no task begins before what comes before it has ended", "task 4 begins before the end of task 3");
}

TEST_F(TraceCheckCounts, AGraphHasTheSameTasksInEachReplay) {
  submit(0, 1).execute(1, 5'000, 6'000);
  submitter().add(Type::task_replayed, at(0), {1, 1, 1}).add(Type::task_replayed, at(100), {1, 2, 2'000'000'000});
  expect_broken("a graph is replayed with as many tasks as at first", "2000000000 tasks, and 1 at first");
}

TEST_F(TraceCheckCounts, AGraphHasNoMoreTasksThanWereDescribed) {
  submit(0, 1).execute(1, 5'000, 6'000);
  submitter()
      .add(Type::task_replayed, at(0), {1, 1, 2'000'000'000})
      .add(Type::task_replayed, at(100), {1, 2, 2'000'000'000});
  expect_broken("a graph's tasks are described before its first replay", "2000000000 tasks, of 1 ");
}

TEST_F(TraceCheckCounts, NodesThatWaitForEachOtherEndTheCheckToo) {
  submit(0, 1, {2}, 2).submit(0, 2, {1}, 2).submit(0, 3, {1}).execute(3, 5'000, 6'000);
  expect_sound();
}

TEST_F(TraceCheckCounts, WhatIsSentIsReleasedOrFailsOnce) {
  engine().add(Type::send_posted, at(1'000), {1, 1, 7, 0, 5, 8}).add(Type::message_sent, at(2'000), {1});
  expect_broken("each request that is posted is released or fails", "request 1, one of the sends");
  engine().add(Type::message_released, at(3'000), {1});
  expect_sound();
  engine().add(Type::message_released, at(4'000), {1});
  expect_broken("each request is released once, or fails once", "comm.message_released");
}

TEST_F(TraceCheckCounts, WhatWasReleasedWasSent) {
  engine().add(Type::send_posted, at(1'000), {1, 1, 7, 0, 5, 8}).add(Type::message_released, at(2'000), {1});
  expect_broken("each send that is posted is sent or fails", "request 1");
  engine().add(Type::message_sent, at(3'000), {1});
  expect_sound();
  engine().add(Type::message_sent, at(3'000), {1});
  expect_broken("each message is sent once, and arrives once", "comm.message_sent");
}

TEST_F(TraceCheckCounts, OneNumberIsOneRequest) {
  engine().add(Type::send_posted, at(1'000), {1, 1, 7, 0, 5, 8}).add(Type::send_posted, at(1'000), {1, 1, 7, 0, 5, 8});
  engine().add(Type::message_failed, at(2'000), {1, 1});
  expect_broken("no two requests that are under way have one number", "request 1");
}

TEST_F(TraceCheckCounts, WhatMessagesDoWasPosted) {
  engine().add(Type::message_sent, at(1'000), {4});
  expect_broken("what a message's events name was posted", "request 4: comm.message_sent");
}

TEST_F(TraceCheckCounts, AReceiveIsReleasedWithItsMessage) {
  engine().add(Type::receive_posted, at(1'000), {1, 1, 7, 5}).add(Type::message_released, at(2'000), {1});
  expect_broken("a receive is released after its message has arrived", "request 1");
}

TEST_F(TraceCheckCounts, ReceivesAreNotSent) {
  engine().add(Type::receive_posted, at(1'000), {1, 1, 7, 5}).add(Type::message_sent, at(2'000), {1});
  engine().add(Type::message_failed, at(3'000), {1, 1});
  expect_broken("sends are sent, and receives receive", "request 1");
  EXPECT_EQ(counted(result(), "receives", "failed"), 1u);
}

TEST_F(TraceCheckCounts, OnlyAllocatedMemoryIsFreed) {
  engine().add(Type::data_allocated, at(1'000), {0, 0, 64}).add(Type::data_allocated, at(1'000), {1, 0, 32});
  engine().add(Type::data_freed, at(2'000), {0, 0, 64});
  expect_sound();
  EXPECT_EQ(counted(result(), "memory", "bytes left"), 32u);
  engine().add(Type::data_freed, at(3'000), {0, 0, 64});
  expect_broken("no memory is freed that was not allocated", "64 bytes of data 0 on node 0, while 0 are allocated");
}

TEST_F(TraceCheckCounts, TransfersEnd) {
  engine().add(Type::transfer_started, at(1'000), {0, 0, 1, 64});
  expect_broken("each transfer that was started ends", "data 0 from node 0 to node 1: 1 have not");
  engine().add(Type::transfer_ended, at(2'000), {0, 0, 1});
  expect_sound();
  engine().add(Type::transfer_ended, at(3'000), {0, 0, 1});
  expect_broken("no transfer ends that was not started", "data 0 from node 0 to node 1");
}

TEST_F(TraceCheckCounts, BagsAreClosedOnce) {
  engine().add(Type::bag_opened, at(1'000), {1, 0, 0}).add(Type::bag_joined, at(1'000), {1, 1, 0});
  expect_broken("each bag that was opened is closed", "bag 1");
  engine().add(Type::bag_closed, at(2'000), {1, 1, 4});
  expect_sound();
  engine().add(Type::bag_joined, at(3'000), {1, 2, 0});  // its broadcast has not left yet
  expect_sound();
  engine().add(Type::bag_closed, at(4'000), {1, 1, 4});
  expect_broken("recipients join bags that were opened, and bags are closed once", "bag 1");
}

TEST_F(TraceCheckCounts, BagsAreOpenedOnceInAnyReadingOrder) {
  // At equal times, the events of actors with smaller numbers are read first.
  submitter().add(Type::bag_closed, at(1'000), {1, 1, 4});
  engine().add(Type::bag_opened, at(1'000), {1, 0, 0}).add(Type::bag_joined, at(1'000), {1, 1, 0});
  expect_sound();
  engine().add(Type::bag_opened, at(2'000), {1, 0, 0});
  expect_broken("a bag is opened once", "bag 1");
}

TEST_F(TraceCheckCounts, NobodyJoinsABagThatWasNeverOpened) {
  engine().add(Type::bag_joined, at(1'000), {1, 1, 0});
  expect_broken("recipients join bags that were opened, and bags are closed once", "bag 1");
}

TEST_F(TraceCheckCounts, WhatWasNotRecordedIsNotCheckedAndTheReasonIsReported) {
  execute(3, 1'000, 2'000);  // a task without a submission
  const auto& folder = run_.write();
  const auto reason = [&] {
    const TraceCheck found = checked(folder);
    EXPECT_THAT(broken(found), IsEmpty());
    return why_skipped(found, "tasks");
  };
  rewrite_manifest({.selection = "-task.submitted,-task.cancelled"});
  EXPECT_EQ(reason(), "task.submitted, task.cancelled not recorded");
  rewrite_manifest({.selection = ""});
  EXPECT_EQ(reason(), "rank.json does not say what was recorded");
  rewrite_manifest({.selection = "task,hovercraft"});
  EXPECT_EQ(reason(), "rank.json names recorded events that this version does not know");
  rewrite_manifest({});
  const auto other = trace::test::stream_path(folder / trace::rank_folder_name(0), 3);
  trace::test::write_file(other, trace::test::PacketWriter(3, 0, at(0), 4).add(Type::events_lost, at(0), {4}).bytes());
  EXPECT_EQ(reason(), "4 events of worker 1 were lost");
  trace::test::write_file(other,
                          trace::test::PacketWriter(3, 0, at(0)).add(Type::selection_changed, at(0), {0, 0}).bytes());
  EXPECT_EQ(reason(), "the selection was changed while the program ran");
}

}  // namespace
}  // namespace tandem::tools::trace_check_counts_test
