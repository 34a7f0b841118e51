// tandem/analysis/verdict/task_waits_test.cpp: what tasks waited for, in runs of a few events.
#include "tandem/analysis/verdict/task_waits.hpp"

#include "tandem/analysis/history/random_run.hpp"

namespace tandem::analysis::task_waits_test {
namespace {

using test::at;
using test::SmallRun;
using trace::StagingState;
using trace::Type;

std::uint32_t row(const History& history, std::uint32_t rank, std::uint64_t task) {
  return history.find_task(rank, task).value();
}

TEST(TaskWaits, ATaskWaitsForItsLastPredecessorThenForAWorker) {
  SmallRun run;
  run.usual();
  run.submit(0, 0, 1, 0).submit(0, 0, 2, 0).submit(0, 10, 3, 0, {}, {1, 2});
  run.execute(0, 2, 1, 20, 60).execute(0, 3, 2, 20, 100);
  run.stream(0, 3).add(Type::task_ready, at(100), {3});
  run.execute(0, 2, 3, 110, 200);
  const auto history = run.read();
  const auto waits = task_waits(*history, TaskGraph(*history));
  const TaskWait& wait = waits[row(*history, 0, 3)];
  EXPECT_EQ(wait.last, row(*history, 0, 2));
  EXPECT_EQ(wait.message, no_number);
  EXPECT_EQ(wait.graph_ns, 90);
  EXPECT_EQ(wait.worker_ns, 10);
  EXPECT_EQ(wait.total_ns(), 100);
  EXPECT_EQ(wait.cause(), WaitCause::predecessors);
  const TaskWait& first = waits[row(*history, 0, 1)];
  EXPECT_EQ(first.last, no_number);
  EXPECT_EQ(first.worker_ns, 20);
  EXPECT_EQ(first.cause(), WaitCause::worker);
}

TEST(TaskWaits, DataOfAnotherRankIsNamedWithTheTaskThatMadeIt) {
  SmallRun run(2);
  test::add_message(run);
  run.stream(1, 4).add(Type::task_ready, at(300), {4});
  const auto history = run.read();
  const auto waits = task_waits(*history, TaskGraph(*history));
  const TaskWait& wait = waits[row(*history, 1, 4)];
  EXPECT_EQ(wait.message, 0u);
  EXPECT_EQ(wait.last, row(*history, 0, 1));
  EXPECT_EQ(wait.graph_ns, 290);
  EXPECT_EQ(wait.worker_ns, 20);
  EXPECT_EQ(wait.cause(), WaitCause::message);
}

TEST(TaskWaits, TasksThatCommuteWaitForTheirTurn) {
  SmallRun run;
  run.usual();
  const std::uint32_t commutes = trace::access_word(0, 3);
  run.submit(0, 0, 1, 0, {commutes}).submit(0, 0, 2, 0, {commutes});
  run.execute(0, 2, 1, 10, 90).execute(0, 3, 2, 96, 120);
  run.stream(0, 2).add(Type::task_ready, at(120), {7});  // so that it is told when tasks are ready
  const auto history = run.read();
  const auto waits = task_waits(*history, TaskGraph(*history));
  EXPECT_EQ(waits[row(*history, 0, 2)].turn_ns, 90);
  EXPECT_EQ(waits[row(*history, 0, 2)].worker_ns, 6);
  EXPECT_EQ(waits[row(*history, 0, 2)].cause(), WaitCause::turn);
  EXPECT_EQ(waits[row(*history, 0, 1)].turn_ns, 0);
}

TEST(TaskWaits, RoomInMemoryAndCopiesAreParts) {
  SmallRun run;
  run.usual();
  run.submit(0, 0, 1, 0);
  run.stream(0, 2).add(Type::data_staging, at(10), {1, static_cast<std::uint8_t>(StagingState::memory)});
  run.stream(0, 4).add(Type::data_staging, at(70), {1, static_cast<std::uint8_t>(StagingState::data)});
  run.stream(0, 4).add(Type::data_staging, at(90), {1, static_cast<std::uint8_t>(StagingState::done)});
  run.execute(0, 2, 1, 96, 120);
  const auto history = run.read();
  ASSERT_EQ(history->stagings.size(), 2u);
  EXPECT_EQ(history->stagings[0].end_ns, 70);
  const auto waits = task_waits(*history, TaskGraph(*history));
  const TaskWait& wait = waits[0];
  EXPECT_EQ(wait.memory_ns, 60);
  EXPECT_EQ(wait.copies_ns, 20);
  EXPECT_EQ(wait.worker_ns, 16);
  EXPECT_EQ(wait.cause(), WaitCause::memory);
}

TEST(TaskWaits, OfRandomRunsThePartsAddUp) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    test::RandomRun run(seed, 1 + seed % 3);
    const auto history = run.read();
    const auto waits = task_waits(*history, TaskGraph(*history));
    for (const test::RandomRun::Task& task : run.tasks) {
      const TaskWait& wait = waits[row(*history, task.rank, task.id)];
      EXPECT_EQ(wait.total_ns(), task.start_ns - task.submit_ns) << "seed " << seed;
      EXPECT_EQ(wait.graph_ns, task.ready_ns - task.submit_ns) << "seed " << seed;
      std::int64_t last_ns = task.submit_ns;
      for (const std::size_t before : task.after) last_ns = std::max(last_ns, run.tasks[before].end_ns);
      const bool by_message = task.message && run.messages[*task.message].arrived_ns > last_ns;
      EXPECT_EQ(wait.message != no_number, by_message) << "seed " << seed;
      if (by_message)
        EXPECT_EQ(wait.last, row(*history, run.tasks[run.messages[*task.message].of_task].rank,
                                 run.tasks[run.messages[*task.message].of_task].id));
      else if (wait.last != no_number) EXPECT_EQ(history->tasks[wait.last].end_ns, last_ns) << "seed " << seed;
      else EXPECT_EQ(task.ready_ns, task.submit_ns) << "seed " << seed;
    }
  }
}

TEST(Deliveries, AMessageBringsWhatNoTaskOfTheRankHasWrittenSince) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.stream(0, 4).add(Type::send_posted, at(20), {1, 1, 0, 0, 7, 64}).add(Type::data_sent, at(20), {0, 1, 2, 1});
  run.stream(1, 4)
      .add(Type::receive_posted, at(20), {1, 0, 0, 7})
      .add(Type::message_arrived, at(100), {1, 0, 0, 7, 64});
  run.stream(1, 4).add(Type::data_received, at(100), {0, 1, 3, 1});
  run.submit(1, 0, 4, 0, {trace::access_word(0, 0), trace::access_word(1, 0)}).execute(1, 2, 4, 120, 140);
  run.submit(1, 0, 5, 0, {trace::access_word(0, 2)}).execute(1, 2, 5, 150, 160);  // writes it
  run.submit(1, 0, 6, 0, {trace::access_word(0, 0)}).execute(1, 2, 6, 170, 180);
  const auto history = run.read();
  const auto brought = deliveries(*history);
  ASSERT_EQ(brought.size(), 4u);
  EXPECT_EQ(brought[0].message, 0u);
  EXPECT_EQ(brought[1].message, no_number) << "another datum";
  EXPECT_EQ(brought[2].message, 0u);
  EXPECT_EQ(brought[3].message, no_number) << "task 5 wrote it here";
}

TEST(Deliveries, ACopyThatEndsWhileATaskWaitsIsForIt) {
  SmallRun run;
  run.usual();
  run.submit(0, 0, 1, 0, {trace::access_word(0, 0)}).submit(0, 0, 2, 0, {trace::access_word(0, 0)});
  run.stream(0, 4).add(Type::transfer_started, at(10), {0, 1, 0, 8192}).add(Type::transfer_ended, at(40), {0, 1, 0});
  run.execute(0, 2, 1, 50, 60);
  run.stream(0, 2).add(Type::task_ready, at(60), {2});
  run.execute(0, 2, 2, 70, 80);
  const auto history = run.read();
  const auto brought = deliveries(*history);
  ASSERT_EQ(brought.size(), 2u);
  EXPECT_EQ(brought[0].transfer, 0u);
  EXPECT_EQ(brought[1].transfer, no_number) << "it had come before the task was ready";
}

}  // namespace
}  // namespace tandem::analysis::task_waits_test
