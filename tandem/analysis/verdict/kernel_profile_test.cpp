// tandem/analysis/verdict/kernel_profile_test.cpp: quartiles and outliers of known durations.
#include "tandem/analysis/verdict/kernel_profile.hpp"

#include "tandem/analysis/history/small_run.hpp"
#include "tandem/analysis/verdict/worker_kinds.hpp"

namespace tandem::analysis::kernel_profile_test {
namespace {

TEST(KernelProfile, QuartilesAndOutliersAreTukeys) {
  test::SmallRun run;
  run.usual();
  std::int64_t ns = 0;
  std::uint32_t task = 0;
  for (const std::int64_t duration : {100, 110, 120, 130, 140, 150, 160, 170, 1000}) {
    run.submit(0, ns, task, 1).execute(0, 2, task, ns + 2, ns + 2 + duration);
    ns += 2 + duration;
    ++task;
  }
  run.submit(0, ns, task, 0).execute(0, 2, task, ns, ns + 40);
  run.submit(0, ns, task + 1, 0);  // has not run
  const auto history = run.read();
  const auto kernels = profile_kernels(*history);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(history->texts[kernels[0].codelet], "gemm");
  EXPECT_EQ(kernels[0].tasks, 9u);
  EXPECT_EQ(kernels[0].total_ns, 2080);
  EXPECT_EQ(kernels[0].min_ns, 100);
  EXPECT_EQ(kernels[0].first_quartile_ns, 120);
  EXPECT_EQ(kernels[0].median_ns, 140);
  EXPECT_EQ(kernels[0].third_quartile_ns, 160);
  EXPECT_EQ(kernels[0].max_ns, 1000);
  EXPECT_EQ(kernels[0].outliers, 1u);
  EXPECT_EQ(kernels[0].outlier_excess_ns, 860);
  EXPECT_EQ(kernels[1].tasks, 1u);
  EXPECT_EQ(kernels[1].median_ns, 40);
  EXPECT_EQ(kernels[1].outliers, 0u);
}

TEST(KernelProfile, EachKindOfWorkerHasOutliersOfItsOwn) {
  test::SmallRun run;
  run.usual().actor(0, 5, trace::ActorKind::worker, 2, "gpu worker 2");
  std::uint32_t task = 0;
  const auto execute = [&](std::uint32_t actor, std::int64_t start_ns, std::int64_t duration_ns) {
    run.submit(0, 0, task, 1).execute(0, actor, task, start_ns, start_ns + duration_ns);
    ++task;
  };
  // The device is much faster, and runs more tasks: a task on a core is no outlier, a task on the device that takes
  // half as long is one.
  for (std::int64_t i = 0; i < 3; ++i) execute(2, 2000 * i, 1000 + 10 * i);
  for (std::int64_t i = 0; i < 12; ++i) execute(5, 1000 * i, 100 + i % 3 * 10);
  execute(5, 13'000, 500);
  const auto history = run.read();
  const auto kernels = profile_kernels(*history);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].tasks, 16u);
  EXPECT_EQ(kernels[0].outliers, 1u);
  EXPECT_EQ(kernels[0].outlier_excess_ns, 390);
  const WorkerKinds kinds(*history);
  ASSERT_EQ(kinds.names(), (std::vector<std::string_view>{"cpu", "gpu"}));
  ASSERT_EQ(kernels[0].kinds.size(), 2u);
  EXPECT_EQ(kernels[0].on(kinds.of(0, 0)).tasks, 3u);
  EXPECT_EQ(kernels[0].on(kinds.of(0, 0)).median_ns, 1010);
  EXPECT_EQ(kernels[0].on(kinds.of(0, 0)).outliers, 0u);
  EXPECT_EQ(kernels[0].on(kinds.of(0, 2)).median_ns, 110);
  EXPECT_EQ(kernels[0].on(kinds.of(0, 2)).outliers, 1u);
}

TEST(KernelProfile, CountsOfTheProcessorAreAdded) {
  test::SmallRun run;
  run.usual();
  constexpr std::uint64_t none = CountsRow::not_counted;
  run.submit(0, 0, 1, 1)
      .execute(0, 2, 1, 10, 20)
      .submit(0, 0, 2, 1)
      .execute(0, 2, 2, 30, 40)
      .submit(0, 0, 3, 0)
      .execute(0, 2, 3, 50, 60);
  run.stream(0, 2)
      .add(trace::Type::task_counters, test::at(60), {1, 100, 250, 10, 4})
      .add(trace::Type::task_counters, test::at(60), {2, 300, 350, none, 6});
  const auto history = run.read();
  const auto kernels = profile_kernels(*history);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(history->texts[kernels[0].codelet], "gemm");
  EXPECT_EQ(kernels[0].counted_tasks, 2u);
  EXPECT_DOUBLE_EQ(kernels[0].instructions_per_cycle().value(), 1.5);
  EXPECT_EQ(kernels[0].misses, 10);
  EXPECT_EQ(kernels[0].stalled, std::nullopt) << "it was not counted for one of them";
  EXPECT_EQ(kernels[1].instructions_per_cycle(), std::nullopt);
}

TEST(KernelProfile, ComparesWhatTheSchedulerExpectedWithWhatCame) {
  test::SmallRun run;
  run.usual();
  std::uint32_t task = 0;
  std::int64_t at_ns = 0;
  const auto execute = [&](std::int64_t expected_ns, std::int64_t took_ns) {
    run.submit(0, at_ns, task, 1);
    if (expected_ns != 0)
      run.stream(0, 1).add(trace::Type::task_expected, test::at(at_ns + 1),
                           {task, static_cast<std::uint64_t>(expected_ns), 5});
    run.execute(0, 2, task++, at_ns + 2, at_ns + 2 + took_ns);
    at_ns += 2 + took_ns;
  };
  execute(0, 5000);  // before any expectation
  for (const std::int64_t took_ns : {50, 90, 100, 120, 300}) execute(100, took_ns);
  // The task is assigned again: the later expectation counts.
  run.stream(0, 1).add(trace::Type::task_expected, test::at(at_ns), {task - 1, 200, 0});
  const auto history = run.read();
  const auto kernels = profile_kernels(*history);
  ASSERT_EQ(kernels.size(), 1u);
  ASSERT_EQ(kernels[0].expectations.size(), 1u);
  const Expectations& seen = kernels[0].expectations[0];
  EXPECT_EQ(seen.tasks, 5u);
  EXPECT_DOUBLE_EQ(seen.first_quartile, 0.9);
  EXPECT_DOUBLE_EQ(seen.median, 1.0);
  EXPECT_DOUBLE_EQ(seen.third_quartile, 1.2);
  EXPECT_DOUBLE_EQ(seen.error, (50 + 10 + 0 + 20 + 100) / 600.0);
}

}  // namespace
}  // namespace tandem::analysis::kernel_profile_test
