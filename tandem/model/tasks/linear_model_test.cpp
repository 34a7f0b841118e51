// tandem/model/tasks/linear_model_test.cpp: several parameters are learnt, accidents weigh nothing, and changes are
// followed.
#include "tandem/model/tasks/linear_model.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "tandem/model/tasks/random_durations.hpp"

namespace tandem::model::linear_model_test {
namespace {

using Shape = std::array<double, 3>;

Shape random_shape(RandomDurations& random) {
  return {random.between(50, 500), random.between(50, 500), random.between(50, 500)};
}
double gemm(const Shape& p) { return 0.1 * p[0] * p[1] * p[2]; }
double linear(const Shape& p) { return 2000 + 30 * p[0] + 7 * p[1]; }

TEST(LinearModel, AProductFindsTheExponents) {
  LinearModel model(LinearForm::product, 3);
  RandomDurations random(1);
  for (int i = 0; i < 200; ++i) {
    const Shape p = random_shape(random);
    model.add(p, random.around(gemm(p), 0.03));
  }
  const auto b = model.coefficients();
  EXPECT_NEAR(std::exp(b[0]), 0.1, 0.06);
  for (int i = 1; i <= 3; ++i) EXPECT_NEAR(b[i], 1, 0.1);
  const Shape other{640, 100, 300};
  EXPECT_TRUE(model.estimate(other).known);
  EXPECT_NEAR(model.estimate(other).mean_ns / gemm(other), 1, 0.08);
}

TEST(LinearModel, ASumFindsTheCosts) {
  LinearModel model(LinearForm::sum, 3);
  RandomDurations random(2);
  for (int i = 0; i < 200; ++i) {
    const Shape p = random_shape(random);
    model.add(p, random.around(linear(p), 0.01));
  }
  const auto b = model.coefficients();
  EXPECT_NEAR(b[1], 30, 1.5);
  EXPECT_NEAR(b[2], 7, 1.5);
  EXPECT_NEAR(b[3], 0, 1.5);
}

TEST(LinearModel, AnAccidentMovesAnEstimateByLessThanItsDeviation) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomDurations random(seed);
    LinearModel model(seed % 2 == 0 ? LinearForm::product : LinearForm::sum, 3);
    const auto truth = seed % 2 == 0 ? gemm : linear;
    for (int i = 0; i < 20; ++i) {
      const Shape p = random_shape(random);
      model.add(p, random.around(truth(p), 0.05));
    }
    const Shape probe = random_shape(random), accident = random_shape(random);
    const Estimate before = model.estimate(probe);
    model.add(accident, 100 * truth(accident));
    ASSERT_NEAR(model.estimate(probe).mean_ns, before.mean_ns, before.deviation_ns) << "seed " << seed;
  }
}

TEST(LinearModel, ASpeedThatChangesByTwoIsLearntWithinAHundred) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomDurations random(seed);
    LinearModel model(seed % 4 < 2 ? LinearForm::product : LinearForm::sum, 3);
    const auto truth = seed % 4 < 2 ? gemm : linear;
    const double speed = seed % 2 == 0 ? 2 : 0.5;
    for (int i = 0; i < 300; ++i) {
      const Shape p = random_shape(random);
      model.add(p, random.around(truth(p) / (i < 200 ? 1 : speed), 0.05));
    }
    const Shape probe{200, 200, 200};
    ASSERT_NEAR(model.estimate(probe).mean_ns / (truth(probe) / speed), 1, 0.1) << "seed " << seed;
  }
}

TEST(LinearModel, WithoutEnoughNothingIsKnown) {
  LinearModel model(LinearForm::product, 2);
  const std::array<double, 2> p{10, 20}, none{0, 20};
  EXPECT_FALSE(model.estimate(p).known);
  model.add(none, 100);
  model.add(p, -1);
  model.add(p, std::nan(""));
  EXPECT_EQ(model.estimate(p).samples, 0U);
  for (int i = 0; i < 5; ++i) model.add(p, 100);
  EXPECT_FALSE(model.estimate(p).known);
  model.add(p, 100);
  EXPECT_TRUE(model.estimate(p).known) << "one and the same task";
  EXPECT_NEAR(model.estimate(p).mean_ns, 100, 1);
  const std::array<double, 2> far{1000, 1};
  EXPECT_GT(model.estimate(far).deviation_ns / model.estimate(far).mean_ns, 10 * model.estimate(p).deviation_ns / 100);
}

}  // namespace
}  // namespace tandem::model::linear_model_test
