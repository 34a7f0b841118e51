// tandem/analysis/verdict/iterations_test.cpp: passes through the iterations of a loop.
#include "tandem/analysis/verdict/iterations.hpp"

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::iterations_test {
namespace {

using test::at;
using test::SmallRun;
using trace::Type;

void begin(SmallRun& run, std::uint32_t rank, std::int64_t ns, std::int64_t iteration) {
  run.stream(rank, 1).add(Type::task_iteration, at(ns), {iteration});
}

TEST(Iterations, APassLastsFromItsFirstTaskToItsLastOnAllRanks) {
  SmallRun run(2);
  for (const std::uint32_t rank : {0u, 1u}) {
    run.usual(rank);
    begin(run, rank, 0, 4);
    run.submit(rank, 0, 1, 0).submit(rank, 2, 2, 0);
    begin(run, rank, 4, 5);
    run.submit(rank, 4, 3, 0);
  }
  run.execute(0, 2, 1, 20, 40).execute(0, 2, 2, 60, 80).execute(0, 3, 3, 50, 70);
  run.execute(1, 2, 1, 30, 90).execute(1, 3, 3, 100, 120);  // its second task never runs
  const auto history = run.read();
  const auto passes = iterations(*history);
  ASSERT_EQ(passes.size(), 2u);
  EXPECT_EQ(passes[0].iteration, 4);
  EXPECT_EQ(passes[0].begin_ns, 20);
  EXPECT_EQ(passes[0].end_ns, 90);
  EXPECT_EQ(passes[1].iteration, 5);
  EXPECT_EQ(passes[1].begin_ns, 50);
  EXPECT_EQ(passes[1].end_ns, 120);
}

TEST(Iterations, ALoopThatRunsAgainHasPassesOfItsOwn) {
  SmallRun run;
  run.usual();
  std::uint32_t task = 0;
  for (const std::int64_t iteration : {0, 1, 0, 1}) {
    begin(run, 0, 2 * task, iteration);
    run.submit(0, 2 * task, task, 0).execute(0, 2, task, 100 + 20 * task, 110 + 20 * task);
    ++task;
  }
  const auto history = run.read();
  const auto passes = iterations(*history);
  ASSERT_EQ(passes.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(passes[i].iteration, static_cast<std::int32_t>(i % 2));
    EXPECT_EQ(passes[i].end_ns - passes[i].begin_ns, 10);
  }
}

TEST(Iterations, ANegativeNumberIsNone) {
  SmallRun run;
  run.usual();
  run.submit(0, 0, 1, 0).execute(0, 2, 1, 10, 20);
  begin(run, 0, 30, -3);
  run.submit(0, 30, 2, 0).execute(0, 2, 2, 40, 50);
  EXPECT_TRUE(iterations(*run.read()).empty());
}

}  // namespace
}  // namespace tandem::analysis::iterations_test
