// tandem/analysis/history/history_test.cpp: histories reconstruct the tasks, states, messages and clocks of runs.
#include "tandem/analysis/history/history.hpp"

#include <algorithm>
#include <tuple>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::history_test {
namespace {

using test::at;
using test::SmallRun;
using trace::access_word;
using trace::Type;

TaskRow task(const History& history, std::uint32_t rank, std::uint64_t id) {
  const auto row = history.find_task(rank, id);
  if (!row) throw std::runtime_error("there is no such task");
  return history.tasks[*row];
}

TEST(History, ATaskHasItsWholeLife) {
  SmallRun run;
  run.usual();
  run.catalogue().add(Type::task_name, at(0), {8, "the second"});
  run.submit(0, 0, 7, 0, {access_word(0, 2)}, {}, -3).submit(0, 100, 8, 1, {access_word(0, 0), access_word(1, 3)}, {7});
  run.stream(0, 1).add(Type::task_accesses, at(100), {8, access_word(5, 1)}).add(Type::task_deps, at(100), {8, 3});
  run.stream(0, 1).add(Type::task_ready, at(120), {7}).add(Type::task_pushed, at(130), {7, 1});
  run.stream(0, 3).add(Type::task_stolen, at(140), {7, 1});
  run.execute(0, 3, 7, 150, 450);
  const auto history = run.read();
  ASSERT_EQ(history->tasks.size(), 2u);
  const TaskRow& first = task(*history, 0, 7);
  EXPECT_EQ(history->texts[first.name], "potrf");
  EXPECT_EQ(history->texts[first.file], "app.cpp");
  EXPECT_EQ(first.line, 42u);
  EXPECT_EQ(first.priority, -3);
  EXPECT_EQ(first.worker, 1);
  EXPECT_TRUE(first.stolen);
  EXPECT_EQ(first.stolen_from, 1);
  EXPECT_EQ(first.pushed_to, 1);
  EXPECT_EQ(first.status, TaskStatus::done);
  EXPECT_EQ(first.submit_ns, 0);
  EXPECT_EQ(first.ready_ns, 120);
  EXPECT_EQ(first.pushed_ns, 130);
  EXPECT_EQ(first.popped_ns, 140);
  EXPECT_EQ(first.start_ns, 150);
  EXPECT_EQ(first.end_ns, 450);
  const TaskRow& second = task(*history, 0, 8);
  EXPECT_EQ(history->texts[second.name], "the second");
  EXPECT_EQ(history->texts[second.codelet], "gemm");
  EXPECT_EQ(second.submit_order, 1u);
  EXPECT_EQ(second.status, TaskStatus::submitted);
  EXPECT_EQ(second.start_ns, no_time);
  ASSERT_EQ(history->accesses.size(), 4u);
  EXPECT_EQ(history->accesses[2].data, 1u);
  EXPECT_EQ(name_of_mode(history->accesses[2].mode), "commute");
  EXPECT_EQ(history->accesses[3].data, 5u);
  ASSERT_EQ(history->dependencies.size(), 2u);
  EXPECT_EQ(history->dependencies[0].predecessor, 7u);
  EXPECT_EQ(history->dependencies[1].predecessor, 3u);
  EXPECT_EQ(history->duration_ns, 450);
}

TEST(History, FailedAndCancelledTasksSayIt) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).submit(0, 10, 2, 0, {}, {1});
  run.stream(0, 2)
      .add(Type::task_started, at(20), {1})
      .add(Type::task_failed, at(30), {1})
      .add(Type::task_ended, at(40), {1});
  run.stream(0, 2)
      .add(Type::task_cancelled, at(50), {2})
      .add(Type::task_ready, at(50), {3})
      .add(Type::task_started, at(60), {3});
  const auto history = run.read();
  EXPECT_EQ(task(*history, 0, 1).status, TaskStatus::failed);
  EXPECT_TRUE(task(*history, 0, 1).has_run());
  EXPECT_EQ(task(*history, 0, 2).status, TaskStatus::cancelled);
  EXPECT_EQ(task(*history, 0, 2).end_ns, 50);
  EXPECT_FALSE(task(*history, 0, 2).has_run());
  EXPECT_EQ(task(*history, 0, 3).status, TaskStatus::running);
}

TEST(History, NumbersOfTasksGoOnBeyond32Bits) {
  SmallRun run;
  run.usual();
  run.submit(0, 0, UINT32_MAX - 1, 0)
      .submit(0, 10, UINT32_MAX, 0)
      .submit(0, 20, 0, 1, {}, {UINT32_MAX})
      .submit(0, 30, 1, 1);
  run.execute(0, 2, UINT32_MAX, 40, 50).execute(0, 2, 1, 60, 70);
  const auto history = run.read();
  constexpr std::uint64_t wrap = std::uint64_t{1} << 32;
  EXPECT_EQ(history->tasks.size(), 4u);
  EXPECT_TRUE(task(*history, 0, wrap - 1).has_run());
  EXPECT_TRUE(task(*history, 0, wrap + 1).has_run());
  EXPECT_EQ(history->dependencies.at(0).predecessor, wrap - 1);
}

TEST(History, AnOlderTaskBehindTheWrapIsOlder) {
  SmallRun run;
  run.usual().submit(0, 0, 5, 0);
  run.execute(0, 2, UINT32_MAX, 10, 20);
  const auto history = run.read();
  EXPECT_TRUE(history->find_task(0, UINT32_MAX));
  EXPECT_TRUE(history->find_task(0, (std::uint64_t{1} << 32) + 5));
}

TEST(History, IdsThatAreFarFromEachOtherAreTold) {
  constexpr std::uint64_t far = std::uint64_t{5} << 32, farther = (std::uint64_t{7} << 32) + 9;
  SmallRun run;
  run.usual().submit(0, 0, 7, 0).submit(0, 1, 8, 0);
  run.stream(0, 1).add(Type::task_id, at(5), {far + 100});
  run.submit(0, 5, 100, 1).submit(0, 6, 101, 1, {}, {100});
  run.stream(0, 1).add(Type::task_id, at(50), {farther});
  run.submit(0, 50, 9, 1);
  run.execute(0, 2, 100, 20, 30).execute(0, 2, 101, 40, 45).execute(0, 2, 9, 60, 70);
  run.execute(0, 3, 7, 10, 65);  // ends long after its number
  run.execute(0, 2, 8, 80, 90);  // and begins long after it
  const auto history = run.read();
  EXPECT_EQ(history->tasks.size(), 5u);
  for (const std::uint64_t id : {std::uint64_t{7}, std::uint64_t{8}, far + 100, far + 101, farther})
    EXPECT_TRUE(task(*history, 0, id).has_run()) << id;
  EXPECT_EQ(history->dependencies.at(0).predecessor, far + 100);
  EXPECT_EQ(history->number_of(farther), farther) << "of a rank alone";
}

TEST(History, OnSeveralRanksPeopleKnowTasksByTheirPositions) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.submit(0, 0, 3 * 1024 + 2, 0).submit(1, 0, 3 * 1024 + 5, 1);
  const auto history = run.read();
  ASSERT_EQ(history->tasks.size(), 2u);
  for (const TaskRow& row : history->tasks) EXPECT_EQ(history->number_of(row.id), 3u);
}

TEST(History, AReplayedGraphHasItsTasksAgain) {
  SmallRun run;
  run.usual();
  run.submit(0, 0, 100, 0, {access_word(0, 1)}, {}, 4)
      .submit(0, 0, 101, 1, {access_word(0, 0), access_word(1, 2)}, {100});
  run.stream(0, 1).add(Type::task_replayed, at(0), {1, 100, 2});
  run.submit(0, 10, 102, 1);
  run.stream(0, 1).add(Type::task_replayed, at(200), {1, 103, 2});
  run.execute(0, 2, 100, 20, 40).execute(0, 2, 101, 50, 60).execute(0, 2, 103, 210, 220).execute(0, 2, 104, 230, 250);
  const auto history = run.read();
  ASSERT_EQ(history->tasks.size(), 5u);
  const TaskRow& again = task(*history, 0, 104);
  EXPECT_EQ(history->texts[again.name], "gemm");
  EXPECT_EQ(again.submit_ns, 200);
  EXPECT_EQ(again.submit_order, 4u);
  EXPECT_EQ(again.graph, 1u);
  EXPECT_EQ(task(*history, 0, 102).graph, 0u);
  EXPECT_EQ(task(*history, 0, 103).priority, 4);
  EXPECT_EQ(again.end_ns - again.start_ns, 20);
  EXPECT_EQ(history->accesses.size(), 6u);
  ASSERT_EQ(history->dependencies.size(), 2u);
  EXPECT_EQ(history->dependencies[1].predecessor, 103u);
  EXPECT_EQ(history->tasks[history->dependencies[1].task].id, 104u);
}

TEST(History, StatesOfAnActorFollowEachOtherAndNestedTasksInterrupt) {
  SmallRun run;
  run.usual();
  run.stream(0, 2)
      .add(Type::worker_state, at(0), {1})
      .add(Type::task_started, at(100), {1})
      .add(Type::task_started, at(150), {2});
  run.stream(0, 2)
      .add(Type::task_ended, at(180), {2})
      .add(Type::task_ended, at(200), {1})
      .add(Type::worker_state, at(260), {3});
  run.stream(0, 4)
      .add(Type::progress_state, at(20), {0})
      .add(Type::progress_state, at(60), {1})
      .add(Type::progress_state, at(400), {2});
  const auto history = run.read();
  std::vector<std::tuple<std::int64_t, std::int64_t, std::string, int>> seen;
  for (const StateRow& row : history->states)
    if (row.actor == 2) seen.emplace_back(row.start_ns, row.end_ns, name_of(row.state), row.depth);
  const decltype(seen) expected{{0, 100, "scheduling", 0},  {100, 150, "executing", 0},  {150, 180, "executing", 1},
                                {180, 200, "executing", 0}, {200, 260, "scheduling", 0}, {260, 400, "sleeping", 0}};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(history->states.size(), 8u) << "and two of the engine, which sleeps when the trace ends";
}

TEST(History, BehindALossNothingIsSaidOfWhatNobodyKnows) {
  SmallRun run;
  run.usual();
  run.stream(0, 2)
      .add(Type::worker_state, at(0), {1})
      .add(Type::task_started, at(100), {1})
      .add(Type::mark, at(120), {0, 1.0});
  run.stream(0, 2)
      .add(Type::events_lost, at(500), {9})
      .add(Type::worker_state, at(600), {2})
      .add(Type::task_started, at(700), {2});
  run.stream(0, 2).add(Type::task_ended, at(800), {2});
  const auto history = run.read();
  ASSERT_EQ(history->states.size(), 4u);
  EXPECT_EQ(history->states[1].end_ns, 120);
  EXPECT_EQ(history->states[2].start_ns, 600);
  EXPECT_EQ(history->states[3].depth, 0);
  ASSERT_EQ(history->tracer.size(), 1u);
  EXPECT_EQ(history->tracer[0].amount, 9u);
  EXPECT_EQ(task(*history, 0, 1).end_ns, no_time);
}

TEST(History, ACodeletHasTheColourThatWasGivenFirst) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.catalogue(0).add(Type::codelet_colour, at(0), {"gemm", 0xcc79a7}).add(Type::codelet_colour, at(0), {"gemm", 1});
  run.submit(0, 0, 1, 1).execute(0, 2, 1, 10, 20);
  const auto history = run.read();
  ASSERT_EQ(history->colours.size(), 1u);
  EXPECT_EQ(history->colours.at(history->texts.add("gemm")), 0xcc79a7u);
}

TEST(History, AWaitForMemoryEndsWhereItsTaskBeginsOrTheRecordsDo) {
  SmallRun run;
  run.usual();
  run.submit(0, 0, 1, 1).submit(0, 0, 2, 1);
  run.stream(0, 2).add(Type::data_staging, at(10), {1, 0}).add(Type::data_staging, at(12), {2, 1});
  run.execute(0, 2, 1, 40, 60);
  const auto history = run.read();
  ASSERT_EQ(history->stagings.size(), 2u);
  EXPECT_EQ(history->stagings[0].end_ns, 40);
  EXPECT_EQ(history->stagings[1].stage, trace::StagingState::data);
  EXPECT_EQ(history->stagings[1].end_ns, 60);
}

TEST(History, TasksHaveTheFactsThatWereToldBeforeThem) {
  SmallRun run;
  run.usual();
  auto& submitter = run.stream(0, 1);
  const auto submit = [&](std::uint32_t task) { run.submit(0, task, task, 0); };
  submit(1);
  submitter.add(Type::task_iteration, at(1), {-3}).add(Type::task_flops, at(1), {0, 1.5});
  submitter.add(Type::task_note, at(1), {2, 77, "k=1"});
  submit(2);
  submit(3);
  submitter.add(Type::events_lost, at(3), {9});
  submit(20);
  const auto history = run.read();
  const auto facts = [&](std::uint64_t id) {
    const TaskRow& row = task(*history, 0, id);
    return std::tuple(row.iteration, row.flops, row.tag, history->texts[row.parameters]);
  };
  EXPECT_EQ(facts(1), std::tuple(no_iteration, 0.0, 0U, ""));
  EXPECT_EQ(facts(2), std::tuple(-3, 1.5, 77U, "k=1"));
  EXPECT_EQ(facts(3), std::tuple(-3, 1.5, 0U, ""));
  EXPECT_EQ(facts(20), std::tuple(no_iteration, 0.0, 0U, "")) << "what was told may have changed in the loss";
}

TEST(History, TasksOfAReplayBelongToItsIterationUnlessTheyWereRecordedInOne) {
  SmallRun run;
  run.usual();
  auto& submitter = run.stream(0, 1);
  submitter.add(Type::task_iteration, at(0), {50});
  run.submit(0, 0, 1, 0);
  submitter.add(Type::task_iteration, at(0), {7});
  run.submit(0, 0, 2, 0);
  submitter.add(Type::task_replayed, at(0), {1, 1, 2});  // the first replay, in iteration 7
  submitter.add(Type::task_iteration, at(10), {8}).add(Type::task_replayed, at(10), {1, 3, 2});
  const auto history = run.read();
  const auto iteration = [&](std::uint64_t id) { return task(*history, 0, id).iteration; };
  EXPECT_EQ(iteration(1), 50);
  EXPECT_EQ(iteration(2), 7);
  EXPECT_EQ(iteration(3), 50);
  EXPECT_EQ(iteration(4), 8);
}

TEST(History, MessagesMeetInTheOrderInWhichReceivesWerePosted) {
  SmallRun run(2);
  run.usual(0).usual(1);
  auto& from = run.stream(0, 4);
  from.add(Type::send_posted, at(100), {1, 1, 7, 5, 99, 1000}).add(Type::send_posted, at(110), {2, 1, 7, 5, 99, 2000});
  from.add(Type::send_announced, at(120), {2})
      .add(Type::send_granted, at(140), {2})
      .add(Type::message_sent, at(150), {1});
  from.add(Type::message_released, at(160), {1}).add(Type::send_posted, at(170), {3, 1, 8, 5, 99, 3000});
  auto& to = run.stream(1, 4);
  to.add(Type::receive_posted, at(10), {11, 0, 7, 99}).add(Type::receive_posted, at(20), {12, UINT32_MAX, 7, 99});
  // The second message arrives first, by a shorter way; it is still the second.
  to.add(Type::message_arrived, at(300), {12, 0, 7, 99, 2000})
      .add(Type::message_arrived, at(400), {11, 0, 7, 99, 1000});
  to.add(Type::message_released, at(420), {11});
  const auto history = run.read();
  ASSERT_EQ(history->communications.size(), 3u);
  const CommunicationRow &first = history->communications[0], &second = history->communications[1],
                         &third = history->communications[2];
  EXPECT_EQ(first.receive_request, 11u);
  EXPECT_EQ(first.arrived_ns - first.posted_ns, 300);
  EXPECT_EQ(first.sent_ns - first.posted_ns, 50);
  EXPECT_EQ(first.receive_released_ns - first.arrived_ns, 20);
  EXPECT_EQ(second.receive_request, 12u);
  EXPECT_EQ(second.bytes, 2000u);
  EXPECT_EQ(second.granted_ns - second.announced_ns, 20);
  EXPECT_EQ(second.receive_posted_ns, 10) << "since the first event, which is 10 ns after the clocks' beginning";
  EXPECT_FALSE(third.has_receive());
  EXPECT_EQ(third.destination, 1u);
}

TEST(History, ABroadcastIsAMessageToEachRecipient) {
  SmallRun run(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) run.usual(rank);
  auto& root = run.stream(0, 4);
  root.add(Type::bag_opened, at(50), {4, 1, 9})
      .add(Type::bag_joined, at(60), {4, 1, 2})
      .add(Type::bag_joined, at(70), {4, 2, 3});
  root.add(Type::bag_closed, at(80), {4, 2, 21}).add(Type::mcast_posted, at(100), {21, 7, 5, 4096, 2});
  root.add(Type::mcast_routed, at(110), {21, 1, 65536, 1, std::vector<std::uint32_t>{1}});
  run.stream(1, 4)
      .add(Type::message_arrived, at(200), {1, 0, 7, 5, 4096})
      .add(Type::mcast_forwarded, at(210), {0, 2, 5, 4096});
  run.stream(1, 4).add(Type::data_received, at(220), {0, 9, 33, 1});
  run.stream(2, 4).add(Type::message_arrived, at(300), {1, 0, 7, 5, 4096});
  run.submit(1, 0, 33, 0);
  const auto history = run.read();
  ASSERT_EQ(history->broadcasts.size(), 1u);
  const BroadcastRow& broadcast = history->broadcasts[0];
  EXPECT_EQ(broadcast.data, 1u);
  EXPECT_EQ(broadcast.version, 9u);
  EXPECT_EQ(broadcast.tree, 1u);
  EXPECT_EQ(history->texts[broadcast.children], "1");
  EXPECT_EQ(history->bags.at(0).recipients, 2u);
  EXPECT_EQ(history->bag_recipients.size(), 2u);
  ASSERT_EQ(history->communications.size(), 2u);
  for (const CommunicationRow& row : history->communications) {
    EXPECT_EQ(row.broadcast, 0u);
    EXPECT_TRUE(row.is_whole());
    EXPECT_EQ(row.send_data, 1u);
  }
  EXPECT_EQ(history->communications[0].destination, 1u);
  EXPECT_EQ(history->tasks.at(history->communications[0].receive_task).id, 33u);
  EXPECT_EQ(history->forwards.size(), 1u);
}

TEST(History, RecordedRecipientsCountAmongTheMessagesInTheirOrder) {
  SmallRun run(2);
  run.usual(0).usual(1);
  auto& root = run.stream(0, 4);
  root.add(Type::mcast_posted, at(100), {21, 7, 5, 4096, 1}).add(Type::mcast_recipient, at(100), {21, 1});
  root.add(Type::send_posted, at(110), {22, 1, 7, 0, 5, 64});
  run.stream(1, 4)
      .add(Type::message_arrived, at(200), {1, 0, 7, 5, 4096})
      .add(Type::message_arrived, at(210), {2, 0, 7, 5, 64});
  const auto history = run.read();
  ASSERT_EQ(history->communications.size(), 2u);
  EXPECT_EQ(history->communications[0].broadcast, 0u);
  EXPECT_EQ(history->communications[0].receive_request, 1u);
  EXPECT_EQ(history->communications[1].broadcast, no_number);
  EXPECT_EQ(history->communications[1].receive_request, 2u);
}

TEST(History, WhatWaitsForNobodyIsReadyWhenItIsSubmitted) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).submit(0, 10, 2, 0, {}, {1});
  run.stream(0, 2)
      .add(Type::task_started, at(20), {1})
      .add(Type::task_ended, at(30), {1})
      .add(Type::task_ready, at(30), {2});
  const auto history = run.read();
  EXPECT_EQ(task(*history, 0, 1).ready_ns, 0);
  EXPECT_EQ(task(*history, 0, 2).ready_ns, 30);
}

TEST(History, WhatIsPushedWhenItIsSubmittedWaitedForNobody) {
  SmallRun run;
  run.usual().submit(0, 10, 1, 0).submit(0, 10, 2, 0);  // at the same time, as submissions that share a stamp
  run.stream(0, 1).add(Type::task_pushed, at(10), {1, 0}).add(Type::task_pushed, at(12), {2, 0});
  const auto history = run.read();
  EXPECT_EQ(task(*history, 0, 1).ready_ns, task(*history, 0, 1).submit_ns)
      << "although no task of the rank became ready later";
  EXPECT_EQ(task(*history, 0, 2).ready_ns, no_time);
}

TEST(History, ImplementationsAreKernelsOfTheirOwn) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).submit(0, 1, 2, 0).submit(0, 2, 3, 0);
  run.stream(0, 2)
      .add(Type::task_implementation, at(10), {1, 0})
      .add(Type::task_started, at(10), {1})
      .add(Type::task_ended, at(20), {1})
      .add(Type::task_implementation, at(20), {2, 1})
      .add(Type::task_started, at(20), {2})
      .add(Type::task_ended, at(30), {2})
      .add(Type::task_implementation, at(30), {2, 0});
  const auto history = run.read();
  const auto name_of = [&](unsigned id) { return history->texts[task(*history, 0, id).name]; };
  const std::string base = name_of(3);
  EXPECT_EQ(name_of(1), base + " #0");
  EXPECT_EQ(name_of(2), base + " #0") << "the last one counts, and its place has one number";
}

TEST(History, WideRecordsSayTheSame) {
  SmallRun run;
  run.usual();
  run.stream(0, 1).add(
      Type::task_submitted_wide, at(0),
      {70'001, 2, 1, 1, 1, std::vector<std::uint32_t>{access_word(9'000, 1)}, std::vector<std::uint32_t>{70'000}});
  const auto history = run.read();
  EXPECT_EQ(history->texts[task(*history, 0, 70'001).name], "gemm");
  EXPECT_EQ(history->accesses.at(0).data, 9'000u);
  EXPECT_EQ(history->dependencies.at(0).predecessor, 1u);
}

/// Compares clocks: rank 1's is 200 ns behind at first, and 400 ns behind a millisecond later.
void compare_clocks(SmallRun& run) {
  run.catalogue(1).add(Type::clock_point, at(0), {0, 5'000, 5'200, 20, 0});
  run.catalogue(1).add(Type::clock_point, at(0), {0, 1'005'000, 1'005'400, 20, 0});
}

TEST(History, ClocksAreSetRightByTheirComparisons) {
  SmallRun run(2);
  run.usual(0).usual(1);
  compare_clocks(run);
  run.stream(0, 4).add(Type::send_posted, at(500'100), {1, 1, 7, 0, 99, 1000});
  run.stream(1, 4)
      .add(Type::message_arrived, at(500'000), {1, 0, 7, 99, 1000})
      .add(Type::progress_state, at(1'000'000), {0});
  const auto linear = run.read();
  EXPECT_EQ(linear->method, clock::CorrectionMethod::linear);
  EXPECT_NEAR(static_cast<double>(linear->communications[0].arrived_ns - linear->communications[0].posted_ns), 200, 1);
  EXPECT_EQ(linear->clock_report.message_count, 1u);
  EXPECT_EQ(linear->clock_report.after.count, 0u);
  EXPECT_EQ(linear->communications[0].posted_ns, 0) << "the first event of the run";
  EXPECT_NEAR(static_cast<double>(linear->clocks[1].last_offset_ns), 400, 1);
  const auto none = run.read({.method = clock::CorrectionMethod::none});
  EXPECT_EQ(none->communications[0].arrived_ns - none->communications[0].posted_ns, 100);
  const auto piecewise = run.read({.method = clock::CorrectionMethod::piecewise});
  EXPECT_NEAR(static_cast<double>(piecewise->communications[0].arrived_ns - piecewise->communications[0].posted_ns),
              200, 50);
}

TEST(History, WithoutComparisonsClocksStand) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.stream(0, 4).add(Type::send_posted, at(100), {1, 1, 7, 0, 99, 1000});
  run.stream(1, 4).add(Type::message_arrived, at(50), {1, 0, 7, 99, 1000});
  const auto history = run.read();
  EXPECT_EQ(history->method, clock::CorrectionMethod::none);
  EXPECT_FALSE(history->clocks[1].corrected);
  EXPECT_EQ(history->clock_report.after.count, 1u) << "and the violation is reported";
  EXPECT_EQ(history->clock_report.after.worst_ns, 50);
}

TEST(History, EventsOfKernelsBelongToTheirTask) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).submit(0, 0, 2, 1);
  auto& worker = run.stream(0, 2);
  worker.add(Type::task_started, at(10), {1})
      .add(Type::span_began, at(20), {0})
      .add(Type::mark, at(30), {1, 1.0})
      .add(Type::task_started, at(40), {2})
      .add(Type::counter, at(50), {2, 2.0})
      .add(Type::task_ended, at(60), {2})
      .add(Type::span_ended, at(70), {0})
      .add(Type::task_ended, at(80), {1})
      .add(Type::span_began, at(90), {0})
      .add(Type::span_ended, at(100), {0});
  const auto history = run.read();
  ASSERT_EQ(history->spans.size(), 2u);
  EXPECT_EQ(history->tasks.at(history->spans[0].task).id, 1u);
  EXPECT_EQ(history->spans[0].end_ns, 70);
  EXPECT_EQ(history->spans[1].task, no_number);
  EXPECT_EQ(history->tasks.at(history->marks.at(0).task).id, 1u);
  EXPECT_EQ(history->tasks.at(history->counters.at(0).task).id, 2u);
}

TEST(History, WhatBeginsAndEndsIsPaired) {
  SmallRun run;
  run.usual();
  run.catalogue().add(Type::name, at(0), {0, 2, "phase"}).add(Type::name, at(0), {1, 1, "residual"});
  run.catalogue()
      .add(Type::name, at(0), {2, 3, "1 the memory of a card"})
      .add(Type::name, at(0), {3, 3, "2"})
      .add(Type::name, at(0), {4, 3, "none 3"});
  auto& all = run.stream(0, 2);
  all.add(Type::span_began, at(0), {0})
      .add(Type::counter, at(10), {1, 0.5})
      .add(Type::mark, at(20), {7, 2.0})
      .add(Type::wait_began, at(30));
  all.add(Type::submission_throttled, at(40))
      .add(Type::submission_resumed, at(50))
      .add(Type::wait_ended, at(60))
      .add(Type::span_ended, at(70), {0});
  all.add(Type::data_allocated, at(80), {0, 1, 100})
      .add(Type::data_allocated, at(82), {1, 1, 50})
      .add(Type::data_freed, at(84), {0, 1, 100});
  all.add(Type::data_page_locked, at(85), {30, 90, 200, 400, 7, 3, 1, 50})
      .add(Type::data_page_locked, at(85), {20, 80, 220, 400, 8, 3, 1, 50});
  all.add(Type::data_numa, at(86), {1, 3}).add(Type::data_numa, at(88), {9'999, 1});
  all.add(Type::transfer_started, at(90), {0, 0, 1, 64}).add(Type::transfer_started, at(92), {0, 0, 1, 65});
  all.add(Type::transfer_ended, at(94), {0, 0, 1})
      .add(Type::flush_began, at(100), {3, 4096})
      .add(Type::flush_ended, at(110), {3});
  const auto history = run.read();
  EXPECT_EQ(history->texts[history->spans.at(0).name], "phase");
  EXPECT_EQ(history->spans[0].end_ns, 70);
  EXPECT_EQ(history->texts[history->counters.at(0).name], "residual");
  EXPECT_EQ(history->texts[history->marks.at(0).name], "(name 7)");
  ASSERT_EQ(history->waits.size(), 2u);
  EXPECT_EQ(history->waits[0].end_ns, 60);
  EXPECT_EQ(history->waits[1].kind, WaitKind::throttled);
  ASSERT_EQ(history->memory.size(), 3u);
  EXPECT_EQ(history->memory[2].used_bytes, 50);
  ASSERT_EQ(history->page_locked.size(), 1u);
  EXPECT_EQ(history->page_locked[0].most_used, 90u);
  EXPECT_EQ(history->page_locked[0].most_locked, 220u);
  EXPECT_EQ(history->page_locked[0].bound, 400u);
  EXPECT_EQ(history->page_locked[0].allocations, 8u);
  EXPECT_EQ(history->page_locked[0].from_driver, 3u);
  EXPECT_EQ(history->page_locked[0].refused, 1u);
  EXPECT_EQ(history->page_locked[0].refused_bytes, 50u);
  EXPECT_EQ(history->memory_name(0, 1), "the memory of a card");
  EXPECT_EQ(history->memory_name(0, 2), "memory 2") << "a text that names nothing";
  EXPECT_EQ(history->memories.size(), 1u);
  EXPECT_EQ(history->find_data(0, 0)->numa_node, no_number);
  EXPECT_EQ(history->find_data(0, 1)->numa_node, 3u);
  ASSERT_EQ(history->transfers.size(), 2u);
  EXPECT_EQ(history->transfers[0].end_ns, 94);
  EXPECT_EQ(history->transfers[1].end_ns, no_time);
  EXPECT_EQ(history->tracer.at(0).of_actor, 3u);
  EXPECT_EQ(history->tracer[0].end_ns, 110);
}

TEST(History, TheSampleRunIsReadWhole) {
  const auto read = test::read_sample_run();
  History& history = *read;
  EXPECT_EQ(history.events, 2 * trace::test::sample_events);
  EXPECT_EQ(history.tasks.size(), 2u * trace::test::sample_tasks);
  EXPECT_EQ(std::ranges::count_if(history.tasks, &TaskRow::has_run), 2 * trace::test::sample_tasks);
  EXPECT_EQ(std::ranges::count_if(history.communications, &CommunicationRow::is_whole), 6);
  EXPECT_EQ(history.clock_report.after.count, 0u);
}

}  // namespace
}  // namespace tandem::analysis::history_test
