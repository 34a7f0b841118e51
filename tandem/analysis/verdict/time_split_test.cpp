// tandem/analysis/verdict/time_split_test.cpp: the time of workers is divided completely, and idle workers have the
// right reason.
#include "tandem/analysis/verdict/time_split.hpp"

#include <numeric>
#include <random>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::time_split_test {
namespace {

using test::at;
using test::SmallRun;
using trace::Type;
using trace::WorkerState;

void set_state(SmallRun& run, std::uint32_t rank, std::uint32_t actor, std::int64_t ns, WorkerState state) {
  run.stream(rank, actor).add(Type::worker_state, at(ns), {static_cast<std::uint8_t>(state)});
}

std::int64_t of(const WorkerTimes& worker, Spent spent) { return worker.ns[static_cast<std::size_t>(spent)]; }

std::int64_t sum(const WorkerTimes& worker) {
  return std::accumulate(worker.ns.begin(), worker.ns.end(), std::int64_t{0});
}

TEST(TimeSplit, AnIdleWorkerHasTheReasonOfEachInstant) {
  SmallRun run;
  run.usual();
  set_state(run, 0, 3, 0, WorkerState::polling);
  // Task 1 is submitted at 100, task 2, which needs it, at 200; task 3 at 800, when nothing is left to do.
  run.submit(0, 100, 1, 0).submit(0, 200, 2, 0, {}, {1});
  run.stream(0, 2).add(Type::worker_state, at(100), {static_cast<std::uint8_t>(WorkerState::scheduling)});
  run.stream(0, 2)
      .add(Type::task_started, at(140), {1})
      .add(Type::task_ended, at(400), {1})
      .add(Type::task_ready, at(400), {2});
  set_state(run, 0, 2, 410, WorkerState::sleeping);
  run.stream(0, 3).add(Type::task_started, at(450), {2}).add(Type::task_ended, at(600), {2});
  run.submit(0, 800, 3, 0);
  run.stream(0, 3).add(Type::task_started, at(820), {3}).add(Type::task_ended, at(900), {3});
  run.stream(0, 2).add(Type::worker_state, at(1000), {static_cast<std::uint8_t>(WorkerState::polling)});
  const auto history = run.read();
  const TimeSplit split = split_time(*history);
  EXPECT_EQ(split.begin_ns, 100);
  EXPECT_EQ(split.makespan_ns, 800);
  ASSERT_EQ(split.workers.size(), 2u);
  const WorkerTimes &first = split.workers[0], &second = split.workers[1];
  EXPECT_EQ(sum(first), 800);
  EXPECT_EQ(sum(second), 800);
  EXPECT_EQ(of(first, Spent::executing), 260);
  EXPECT_EQ(of(second, Spent::executing), 230);
  EXPECT_EQ(of(first, Spent::scheduling), 50);  // 100 to 140, 400 to 410
  // Worker 1: task 1 is ready from 100 to 140, and runs alone until 200; task 2 waits for it until 400, and is ready
  // until 450.
  EXPECT_EQ(of(second, Spent::ready_elsewhere), 40 + 50 + 20);  // and task 3 from 800 to 820
  EXPECT_EQ(of(second, Spent::no_ready_task), 200);
  EXPECT_EQ(of(second, Spent::awaiting_submission), 60 + 200);
  // Worker 0: task 2 runs from 450 to 600, and nothing waits for it; task 3 is the last one.
  EXPECT_EQ(of(first, Spent::no_ready_task), 80);
  EXPECT_EQ(of(first, Spent::awaiting_submission), 150 + 200);
}

TEST(TimeSplit, AWorkerWhoseThreadBeginsLateWasIdleUntilThen) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).submit(0, 0, 2, 0).execute(0, 2, 1, 10, 50);
  set_state(run, 0, 3, 30, WorkerState::scheduling);
  run.execute(0, 3, 2, 40, 50);
  const auto history = run.read();
  const TimeSplit split = split_time(*history);
  ASSERT_EQ(split.workers.size(), 2u);
  EXPECT_EQ(of(split.workers[1], Spent::unknown), 0);
  EXPECT_EQ(of(split.workers[1], Spent::scheduling), 10);
  EXPECT_EQ(of(split.workers[1], Spent::executing), 10);
  EXPECT_EQ(of(split.workers[0], Spent::unknown), 10) << "its first event is no state";
}

TEST(TimeSplit, WithoutStatesTimeIsUnknown) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).execute(0, 2, 1, 10, 50);
  const TimeSplit split = split_time(*run.read());
  ASSERT_EQ(split.workers.size(), 1u) << "a worker that recorded nothing has no stream";
  EXPECT_EQ(of(split.workers[0], Spent::executing), 40);
  EXPECT_EQ(of(split.workers[0], Spent::unknown), 10);
}

TEST(TimeSplit, ARunWithoutTasksHasNoMakespan) {
  SmallRun run;
  run.usual();
  set_state(run, 0, 2, 5, WorkerState::sleeping);
  const TimeSplit split = split_time(*run.read());
  EXPECT_EQ(split.makespan_ns, 0);
  for (const WorkerTimes& worker : split.workers) EXPECT_EQ(sum(worker), 0);
}

TEST(TimeSplit, WhoAwaitsAMessageIsSaidToDoSo) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.stream(0, 4).add(Type::send_posted, at(100), {1, 1, 0, 0, 7, 64});
  run.stream(1, 4)
      .add(Type::receive_posted, at(20), {1, 0, 0, 7})
      .add(Type::message_arrived, at(300), {1, 0, 0, 7, 64});
  set_state(run, 1, 2, 0, WorkerState::progressing);
  run.submit(1, 0, 1, 0);
  run.stream(1, 4).add(Type::task_ready, at(300), {1});
  run.execute(1, 2, 1, 310, 400);
  run.submit(0, 0, 1, 0).execute(0, 2, 1, 10, 90);
  const TimeSplit split = split_time(*run.read());
  ASSERT_EQ(split.workers.size(), 2u);
  EXPECT_EQ(split.workers[1].rank, 1u);
  EXPECT_EQ(of(split.workers[1], Spent::awaiting_message), 280);
  EXPECT_EQ(of(split.workers[1], Spent::no_ready_task), 20);
  EXPECT_EQ(of(split.workers[1], Spent::ready_elsewhere), 10);
}

TEST(TimeSplit, WhoWaitsForMemoryIsSaidToDoSo) {
  SmallRun run;
  run.usual();
  for (const std::uint32_t actor : {2u, 3u}) set_state(run, 0, actor, 0, WorkerState::polling);
  run.submit(0, 0, 1, 0).submit(0, 0, 2, 0).submit(0, 0, 3, 0).submit(0, 0, 4, 0, {}, {2});
  run.execute(0, 2, 1, 10, 100);
  // Worker 1 has taken task 2, which gets room when task 1 ends, and its data 40 ns later; task 3 waits in a queue
  // meanwhile.
  run.stream(0, 3).add(Type::data_staging, at(20), {2, static_cast<std::uint8_t>(trace::StagingState::memory)});
  run.stream(0, 4).add(Type::data_staging, at(100), {2, static_cast<std::uint8_t>(trace::StagingState::data)});
  run.stream(0, 4).add(Type::data_staging, at(140), {2, static_cast<std::uint8_t>(trace::StagingState::done)});
  run.execute(0, 3, 2, 146, 200).execute(0, 2, 3, 150, 200);
  run.stream(0, 3).add(Type::task_ready, at(200), {4});
  run.execute(0, 3, 4, 200, 210);
  const TimeSplit split = split_time(*run.read());
  ASSERT_EQ(split.workers.size(), 2u);
  EXPECT_EQ(of(split.workers[0], Spent::awaiting_memory), 40);
  EXPECT_EQ(of(split.workers[1], Spent::awaiting_memory), 120);
  EXPECT_EQ(of(split.workers[0], Spent::ready_elsewhere), 10 + 10);
  EXPECT_EQ(of(split.workers[1], Spent::ready_elsewhere), 20 + 6);
}

TEST(TimeSplit, RandomRunsAreDividedCompletely) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    SmallRun run;
    run.usual();
    std::int64_t ns[2] = {0, 0};
    for (std::uint32_t task = 1; task < 40; ++task) {
      const unsigned worker = random() % 2;
      run.submit(0, 10 * task, task, 0);
      if (random() % 3 == 0)
        set_state(run, 0, 2 + worker, ns[worker], static_cast<WorkerState>(random() % trace::kWorkerStates));
      const std::int64_t start =
          std::max<std::int64_t>(ns[worker], 10 * task) + 2 * static_cast<std::int64_t>(random() % 50);
      ns[worker] = start + 2 + 2 * static_cast<std::int64_t>(random() % 100);
      run.execute(0, 2 + worker, task, start, ns[worker]);
    }
    const TimeSplit split = split_time(*run.read());
    for (const WorkerTimes& worker : split.workers) {
      EXPECT_EQ(sum(worker), split.makespan_ns) << "seed " << seed;
      for (const std::int64_t part : worker.ns) EXPECT_GE(part, 0) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tandem::analysis::time_split_test
