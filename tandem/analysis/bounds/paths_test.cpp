// tandem/analysis/bounds/paths_test.cpp: bounds against brute force, and realised paths of runs with known causes.
#include "tandem/analysis/bounds/paths.hpp"

#include <functional>
#include <random>

#include "tandem/analysis/bounds/area_bound.hpp"
#include "tandem/analysis/history/small_run.hpp"
#include "tandem/analysis/verdict/time_split.hpp"

namespace tandem::analysis::paths_test {
namespace {

using test::add_message;
using test::at;
using test::SmallRun;
using trace::Type;

std::vector<std::uint64_t> ids(const History& history, const std::vector<std::uint32_t>& rows) {
  std::vector<std::uint64_t> result;
  for (const std::uint32_t row : rows) result.push_back(history.tasks[row].id);
  return result;
}

/// "kind of task N, start to end", for comparisons that a person can read.
std::vector<std::string> texts(const History& history, const RealisedPath& path) {
  std::vector<std::string> result;
  for (const PathStep& step : path.steps) {
    result.push_back(std::string(name_of(step.kind)) + " " + std::to_string(history.tasks[step.task].id) + ": " +
                     std::to_string(step.start_ns) + " " + std::to_string(step.end_ns));
  }
  return result;
}

TEST(Paths, TheLongestChainIsTheCriticalPath) {
  SmallRun run;
  run.usual();
  // 1 (100) -> 3 (50); 2 (120) -> 3; 2 -> 4 (20)
  run.submit(0, 0, 1, 0).submit(0, 0, 2, 0).submit(0, 0, 3, 0, {}, {1, 2}).submit(0, 0, 4, 0, {}, {2});
  run.execute(0, 2, 1, 10, 110).execute(0, 3, 2, 10, 130).execute(0, 2, 3, 140, 190).execute(0, 3, 4, 140, 160);
  const auto history = run.read();
  const CriticalPath path = critical_path(*history, TaskGraph(*history), Messages::free);
  EXPECT_EQ(path.length_ns, 170);
  EXPECT_EQ(ids(*history, path.tasks), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(area_bound(*history).ns, (100 + 120 + 50 + 20) / 2);
}

TEST(Paths, TheRealisedPathFollowsWhatWasWaitedFor) {
  SmallRun run;
  run.usual();
  // Worker 0 runs 1, then 3, which depends on nothing: only 1 delayed it. 4 depends on 3, and is submitted late.
  run.submit(0, 0, 1, 0).submit(0, 10, 3, 0);
  run.execute(0, 2, 1, 20, 120).execute(0, 2, 3, 130, 230);
  run.submit(0, 300, 4, 0, {}, {3}).execute(0, 2, 4, 320, 400);
  const auto history = run.read();
  const RealisedPath path = realised_path(*history, TaskGraph(*history), 0);
  EXPECT_EQ(texts(*history, path),
            (std::vector<std::string>{"submission 4: 0 300", "overhead 4: 300 320", "execution 4: 320 400"}));

  SmallRun other;
  other.usual();
  other.submit(0, 0, 1, 0).submit(0, 10, 3, 0).submit(0, 20, 4, 0, {}, {3});
  other.execute(0, 2, 1, 20, 120).execute(0, 2, 3, 130, 230).execute(0, 3, 4, 250, 400);
  const auto second = other.read();
  EXPECT_EQ(texts(*second, realised_path(*second, TaskGraph(*second), 0)),
            (std::vector<std::string>{"overhead 1: 0 20", "busy 1: 20 120", "overhead 3: 120 130",
                                      "execution 3: 130 230", "overhead 4: 230 250", "execution 4: 250 400"}));
}

TEST(Paths, AProgramThatWaitedCouldNotSubmit) {
  SmallRun run;
  run.usual();
  run.submit(0, 0, 1, 0).execute(0, 2, 1, 20, 120);
  run.stream(0, 1).add(Type::wait_began, at(30), {}).add(Type::wait_ended, at(140), {});
  run.submit(0, 200, 2, 0).execute(0, 2, 2, 210, 300);
  const auto history = run.read();
  EXPECT_EQ(texts(*history, realised_path(*history, TaskGraph(*history), 0)),
            (std::vector<std::string>{"overhead 1: 0 20", "execution 1: 20 120", "submission 2: 120 200",
                                      "overhead 2: 200 210", "execution 2: 210 300"}));
}

TEST(Paths, MessagesJoinTheGraphsOfRanks) {
  SmallRun run(2);
  const auto history = add_message(run).read();
  EXPECT_EQ(critical_path(*history, TaskGraph(*history), Messages::free).length_ns, 100 + 80);
  const CriticalPath measured = critical_path(*history, TaskGraph(*history), Messages::measured);
  EXPECT_EQ(measured.length_ns, 100 + 180 + 80);
  EXPECT_EQ(ids(*history, measured.tasks), (std::vector<std::uint64_t>{1, 4}));
  EXPECT_EQ(texts(*history, realised_path(*history, TaskGraph(*history), 0)),
            (std::vector<std::string>{"overhead 1: 0 10", "execution 1: 10 110", "message 4: 110 300",
                                      "overhead 4: 300 320", "execution 4: 320 400"}));
}

TEST(Paths, MessagesThatWaitForEachOtherEndThePath) {
  SmallRun run(2);
  const auto history = add_messages_in_a_circle(run).read();
  const RealisedPath path = realised_path(*history, TaskGraph(*history), 0);
  ASSERT_FALSE(path.steps.empty());
  EXPECT_EQ(path.steps.front().start_ns, 0);
  EXPECT_EQ(path.steps.back().end_ns, 200);
}

TEST(Paths, NothingHasRun) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0);
  const auto history = run.read();
  EXPECT_EQ(critical_path(*history, TaskGraph(*history), Messages::free).length_ns, 0);
  EXPECT_TRUE(realised_path(*history, TaskGraph(*history), 0).steps.empty());
  EXPECT_EQ(area_bound(*history).ns, 0);
}

TEST(Paths, RandomRunsAgreeWithBruteForceAndLieWithinTheMakespan) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    SmallRun run;
    run.usual();
    const auto count = static_cast<std::uint32_t>(2 + random() % 12);
    std::vector<std::vector<std::uint32_t>> deps(count);
    std::vector<std::int64_t> duration(count), end(count);
    std::int64_t free_ns[2] = {0, 0};
    for (std::uint32_t task = 0; task < count; ++task) {
      const auto submit = static_cast<std::int64_t>(4 * task);
      std::int64_t start = submit;
      for (std::uint32_t before = 0; before < task; ++before) {
        if (random() % 4 != 0) continue;
        deps[task].push_back(before);
        start = std::max(start, end[before]);
      }
      const unsigned worker = random() % 2;
      start = std::max(start, free_ns[worker]) + 2 * static_cast<std::int64_t>(random() % 5);
      duration[task] = 2 + 2 * static_cast<std::int64_t>(random() % 50);
      free_ns[worker] = end[task] = start + duration[task];
      run.submit(0, submit, task, 0, {}, deps[task]).execute(0, 2 + worker, task, start, end[task]);
    }
    const auto history = run.read();
    // Enumerates every chain.
    std::int64_t longest_ns = 0;
    const std::function<void(std::uint32_t, std::int64_t)> walk = [&](std::uint32_t task, std::int64_t before_ns) {
      longest_ns = std::max(longest_ns, before_ns + duration[task]);
      for (const std::uint32_t before : deps[task]) walk(before, before_ns + duration[task]);
    };
    for (std::uint32_t task = 0; task < count; ++task) walk(task, 0);
    const TimeSplit split = split_time(*history);
    const CriticalPath path = critical_path(*history, TaskGraph(*history), Messages::measured);
    EXPECT_EQ(path.length_ns, longest_ns) << "seed " << seed;
    EXPECT_LE(path.length_ns, split.makespan_ns) << "seed " << seed;
    EXPECT_LE(area_bound(*history).ns, split.makespan_ns) << "seed " << seed;
    // The realised path covers the makespan without gaps.
    const RealisedPath realised = realised_path(*history, TaskGraph(*history), split.begin_ns);
    ASSERT_FALSE(realised.steps.empty());
    std::int64_t at_ns = split.begin_ns;
    for (const PathStep& step : realised.steps) {
      EXPECT_EQ(step.start_ns, at_ns) << "seed " << seed;
      at_ns = step.end_ns;
    }
    EXPECT_EQ(at_ns, split.begin_ns + split.makespan_ns) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem::analysis::paths_test
