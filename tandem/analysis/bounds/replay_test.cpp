// tandem/analysis/bounds/replay_test.cpp: replays of runs whose causes are known, and of random ones.
#include "tandem/analysis/bounds/replay.hpp"

#include <map>

#include "tandem/analysis/history/random_run.hpp"
#include "tandem/analysis/verdict/time_split.hpp"

namespace tandem::analysis::replay_test {
namespace {

using test::add_message;
using test::at;
using test::RandomRun;
using test::SmallRun;
using trace::Type;

TEST(Replay, AFreeMessageArrivesWhenItIsPosted) {
  SmallRun run(2);
  const auto history = add_message(run).read();
  EXPECT_EQ(replay_end_ns(*history, TaskGraph(*history), Messages::measured), 400);
  EXPECT_EQ(replay_end_ns(*history, TaskGraph(*history), Messages::free), 120 + 20 + 80);
}

TEST(Replay, AMessageIsFreeOnlyWhereItWasWaitedFor) {
  SmallRun run(2);
  add_message(run);
  // Task 5 of rank 1 runs until 310 on the worker that task 4 runs on: without the message task 4 begins 10 ns after
  // it.
  run.submit(1, 20, 5, 0).execute(1, 3, 5, 20, 310);
  run.submit(1, 30, 6, 0, {}, {4, 5}).execute(1, 2, 6, 410, 500);
  const auto history = run.read();
  EXPECT_EQ(replay_end_ns(*history, TaskGraph(*history), Messages::free), 310 + 10 + 90);
}

TEST(Replay, WhatWasSubmittedAfterAWaitMovesWithIt) {
  SmallRun run(2);
  add_message(run);
  run.stream(1, 1).add(Type::wait_began, at(30), {}).add(Type::wait_ended, at(410), {});
  run.submit(1, 430, 5, 0).execute(1, 2, 5, 450, 500);
  const auto history = run.read();
  EXPECT_EQ(replay_end_ns(*history, TaskGraph(*history), Messages::free), 500 - 180);
}

TEST(Replay, NothingHasRun) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0);
  const auto history = run.read();
  EXPECT_EQ(replay_end_ns(*history, TaskGraph(*history), Messages::free), 0);
}

TEST(Replay, MessagesThatWaitForEachOtherEnd) {
  SmallRun run(2);
  const auto history = add_messages_in_a_circle(run).read();
  EXPECT_LE(replay_end_ns(*history, TaskGraph(*history), Messages::free), 200);
  EXPECT_EQ(replay_end_ns(*history, TaskGraph(*history), Messages::measured), 200);
}

TEST(Replay, RandomRunsAreReplayedExactlyAndFreeMessagesNeverDelay) {
  int shorter = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    RandomRun run(seed, 1 + seed % 3);
    const auto history = run.read();
    const TaskGraph graph(*history);
    const TimeSplit split = split_time(*history);
    EXPECT_EQ(replay_end_ns(*history, graph, Messages::measured), split.end_ns()) << "seed " << seed;
    const std::int64_t free_ns = replay_end_ns(*history, graph, Messages::free);
    EXPECT_LE(free_ns, split.end_ns()) << "seed " << seed;
    // No schedule with these durations is shorter than its bounds.
    EXPECT_GE(free_ns, critical_path(*history, graph, Messages::free).length_ns) << "seed " << seed;
    for (const WorkerTimes& worker : split.workers)
      EXPECT_GE(free_ns - split.begin_ns, worker.ns[static_cast<std::size_t>(Spent::executing)]) << "seed " << seed;
    // Computed by hand, in the order of submission: each task begins as long after its last cause as measured.
    std::map<std::pair<std::uint32_t, unsigned>, std::pair<std::int64_t, std::int64_t>>
        worker;  // when its last task ended: measured, replayed
    std::vector<std::int64_t> end_ns;
    for (const RandomRun::Task& task : run.tasks) {
      std::int64_t measured_ns = task.submit_ns, replayed_ns = task.submit_ns;
      const auto offer = [&](std::int64_t measured, std::int64_t replayed) {
        measured_ns = std::max(measured_ns, measured);
        replayed_ns = std::max(replayed_ns, replayed);
      };
      for (const std::size_t i : task.after) offer(run.tasks[i].end_ns, end_ns[i]);
      if (task.message) {
        // The send was submitted with the task: it moves as far as its submission.
        const RandomRun::Message& message = run.messages[*task.message];
        const std::int64_t made_ns = run.tasks[message.of_task].end_ns;
        const std::int64_t earlier_ns =
            std::max(made_ns, task.submit_ns) - std::max(end_ns[message.of_task], task.submit_ns);
        offer(message.arrived_ns, message.posted_ns - earlier_ns);
      }
      auto& [was_ns, is_ns] = worker[{task.rank, task.worker}];
      offer(was_ns, is_ns);
      end_ns.push_back(replayed_ns + task.end_ns - measured_ns);
      was_ns = task.end_ns;
      is_ns = end_ns.back();
    }
    EXPECT_EQ(free_ns, *std::ranges::max_element(end_ns)) << "seed " << seed;
    shorter += free_ns < split.end_ns();
  }
  EXPECT_GT(shorter, 20) << "messages matter in these runs";
}

}  // namespace
}  // namespace tandem::analysis::replay_test
