// tools/simulate/prediction_test.cpp: intervals of known samples.
#include "tools/simulate/prediction.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/base/splitmix64.hpp"

namespace tandem::tools::prediction_test {
namespace {

TEST(Prediction, OfOneSimulationHasNoWidth) {
  const Prediction one = predict({3});
  EXPECT_EQ(one.median, 3);
  EXPECT_EQ(one.low, 3);
  EXPECT_EQ(one.high, 3);
}

TEST(Prediction, UsesStudentsT) {
  const Prediction three = predict({1, 2, 3});  // deviation 1, t = 2.920 with two degrees of freedom
  EXPECT_EQ(three.median, 2);
  EXPECT_NEAR(three.high - 2, 2.920 * std::sqrt(1 + 1.0 / 3), 1e-9);
  EXPECT_EQ(three.low, 0) << "no negative time";
  const Prediction wide = predict({10, 12, 14});
  EXPECT_NEAR(wide.high - wide.low, 2 * 2.920 * 2 * std::sqrt(1 + 1.0 / 3), 1e-9);
}

TEST(Prediction, CoversTheNextValueNineTimesInTen) {
  std::uint64_t state = 5;
  const auto normal = [&state] {  // twelve uniform numbers
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(base::splitmix64(state) >> 11) * 0x1p-53;
    return 100 + sum;
  };
  for (const int count : {2, 5, 10, 60}) {
    int covered = 0;
    for (int trial = 0; trial < 4'000; ++trial) {
      std::vector<double> makespans(static_cast<std::size_t>(count));
      for (double& makespan : makespans) makespan = normal();
      const Prediction prediction = predict(makespans);
      const double next = normal();
      covered += next >= prediction.low && next <= prediction.high ? 1 : 0;
    }
    EXPECT_NEAR(covered / 4'000.0, 0.9, 0.02) << count << " simulations";
  }
}

}  // namespace
}  // namespace tandem::tools::prediction_test
