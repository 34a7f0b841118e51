// tandem/analysis/kernel_profile_test.cpp: quartiles and outliers of known durations.
#include "tandem/analysis/kernel_profile.hpp"

#include "tandem/analysis/small_run.hpp"

namespace tandem::analysis {
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

}  // namespace
}  // namespace tandem::analysis
