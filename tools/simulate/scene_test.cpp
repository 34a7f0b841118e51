// tools/simulate/scene_test.cpp: durations for simulations, from what was measured.
#include "tools/simulate/scene.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/model/tasks/size_model.hpp"

namespace tandem::tools::scene_test {
namespace {

/// Durations of 1 ns a byte, 10 % more or less, at three sizes.
model::SizeModel learnt() {
  model::SizeModel sizes;
  for (int i = 0; i < 20; ++i)
    for (const std::uint64_t bytes : {100'000U, 200'000U, 400'000U})
      sizes.add(bytes, static_cast<double>(bytes) * (i % 2 == 0 ? 0.9 : 1.1));
  return sizes;
}

TEST(Scene, AMeasuredSizeHasItsOwnDurations) {
  const auto time = time_of(learnt().estimate(200'000U));
  ASSERT_TRUE(time.has_value());
  EXPECT_NEAR(time->mean_ns, 200'000, 2'000);
  EXPECT_NEAR(time->deviation_ns, 20'000, 4'000);
  EXPECT_LT(time->mean_error_ns, 6'000);
}

TEST(Scene, OtherSizesAreLessCertainAndFarOnesUnknown) {
  model::SizeModel sizes = learnt();
  const auto between = time_of(sizes.estimate(300'000U)), beyond = time_of(sizes.estimate(1'500'000U));
  ASSERT_TRUE(between.has_value() && beyond.has_value());
  EXPECT_NEAR(between->mean_ns, 300'000, 30'000);
  EXPECT_LT(between->deviation_ns, 0.2 * between->mean_ns);
  EXPECT_GT(beyond->mean_error_ns / beyond->mean_ns, 2 * between->mean_error_ns / between->mean_ns);
  EXPECT_FALSE(time_of(sizes.estimate(1'700'000U)).has_value());
  EXPECT_FALSE(time_of(sizes.estimate(24'000U)).has_value());
  EXPECT_FALSE(time_of(model::Estimate()).has_value());
}

TEST(Scene, TasksDifferAsTheLastOnesAroundTheMeanOfAll) {
  model::SizeModel sizes;
  for (int i = 0; i < 300; ++i) {
    const double slow = i < 100 ? 4 : 1;  // for a while the whole machine was
    sizes.add(200'000U, slow * (i % 2 == 0 ? 90'000 : 110'000));
  }
  const model::Estimate all = sizes.overall(200'000U);
  ASSERT_NEAR(all.mean_ns, 200'000, 4'000);
  ASSERT_GT(all.deviation_ns, 100'000);
  const auto time = time_of(all, sizes.estimate(200'000U));
  ASSERT_TRUE(time.has_value());
  EXPECT_NEAR(time->mean_ns, 200'000, 4'000);
  EXPECT_NEAR(time->deviation_ns, 20'000, 4'000);
  EXPECT_GT(time->mean_error_ns, 100'000 / std::sqrt(300));
}

}  // namespace
}  // namespace tandem::tools::scene_test
