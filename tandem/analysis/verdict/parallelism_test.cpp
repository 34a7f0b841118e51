// tandem/analysis/verdict/parallelism_test.cpp: tasks over time, against counts at each nanosecond.
#include "tandem/analysis/verdict/parallelism.hpp"

#include <algorithm>

#include "tandem/analysis/history/random_run.hpp"

namespace tandem::analysis::parallelism_test {
namespace {

using test::at;
using test::RandomRun;
using test::SmallRun;
using trace::Type;

TEST(Parallelism, TasksAreSubmittedThenReadyThenRunning) {
  SmallRun run;
  run.usual();
  for (const std::uint32_t actor : {2u, 3u})
    run.stream(0, actor).add(Type::worker_state, at(0), {static_cast<std::uint8_t>(trace::WorkerState::polling)});
  run.submit(0, 0, 1, 0).submit(0, 10, 2, 0, {}, {1}).submit(0, 10, 3, 0, {}, {1}).submit(0, 20, 4, 0);  // 4 never runs
  run.execute(0, 2, 1, 20, 100);
  run.stream(0, 2).add(Type::task_ready, at(100), {2}).add(Type::task_ready, at(100), {3});
  run.execute(0, 2, 2, 100, 200).execute(0, 3, 3, 140, 160);
  const auto history = run.read();
  const Parallelism result = parallelism(*history, split_time(*history)).all;
  EXPECT_EQ(result.makespan.begin_ns, 0);
  EXPECT_EQ(result.makespan.end_ns, 200);
  EXPECT_EQ(result.submitted.max(result.makespan), 3);
  EXPECT_EQ(result.submitted.at(150), 2);
  EXPECT_EQ(result.ready.at(10), 1);
  EXPECT_EQ(result.ready.at(120), 1);
  EXPECT_DOUBLE_EQ(result.ready.mean(result.makespan), (20 + 40) / 200.0);
  EXPECT_DOUBLE_EQ(result.running.mean(result.makespan), 200 / 200.0);
  // Idle: both until 20, worker 1 until 140 and from 160 on; no task is ready from 20 to 100 and from 140 on.
  EXPECT_EQ(result.idle_ns, 180);
  EXPECT_EQ(result.starved_ns, 80 + 40);
}

TEST(Parallelism, NothingHasRun) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0);
  const auto history = run.read();
  const Parallelism result = parallelism(*history, split_time(*history)).all;
  EXPECT_EQ(result.starved_ns, 0);
  EXPECT_EQ(result.submitted.mean(result.makespan), 0);
}

TEST(Parallelism, RandomRunsAgreeWithBruteForce) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const std::uint32_t ranks = 1 + seed % 3;
    RandomRun run(seed, ranks);
    const auto history = run.read();
    const TimeSplit split = split_time(*history);
    const RunParallelism both = parallelism(*history, split);
    ASSERT_EQ(both.ranks.size(), ranks);
    std::vector<Parallelism> results = both.ranks;
    results.push_back(both.all);
    for (const Parallelism& result : results) {
      const bool is_all = result.rank == no_number;
      const auto is_of = [&](const RandomRun::Task& task) { return is_all || task.rank == result.rank; };
      std::int64_t starved_ns = 0, idle_ns = 0;
      for (std::int64_t ns = split.begin_ns; ns < split.end_ns(); ++ns) {
        std::int64_t submitted = 0, ready = 0, running = 0;
        for (const RandomRun::Task& task : run.tasks) {
          if (!is_of(task)) continue;
          submitted += task.submit_ns <= ns && ns < task.end_ns;
          ready += task.ready_ns <= ns && ns < task.start_ns;
          running += task.start_ns <= ns && ns < task.end_ns;
        }
        ASSERT_EQ(result.submitted.at(ns), submitted) << "seed " << seed << " at " << ns;
        ASSERT_EQ(result.ready.at(ns), ready) << "seed " << seed << " at " << ns;
        ASSERT_EQ(result.running.at(ns), running) << "seed " << seed << " at " << ns;
        // A state ends with its rank's last event, so that idle workers are known until then only.
        const std::int64_t idle = result.idle_workers.at(ns);
        ASSERT_LE(idle + running, 2 * (is_all ? ranks : 1)) << "seed " << seed << " at " << ns;
        idle_ns += idle > 0;
        starved_ns += idle > 0 && ready == 0;
      }
      EXPECT_EQ(result.idle_ns, idle_ns) << "seed " << seed;
      EXPECT_EQ(result.starved_ns, starved_ns) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tandem::analysis::parallelism_test
