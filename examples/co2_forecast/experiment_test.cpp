// examples/co2_forecast/experiment_test.cpp: what is learnt from and what is forecast, on a few weeks.
#include "experiment.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace co2_forecast::experiment_test {
namespace {

Measurements weeks(const std::string& rows) {
  std::istringstream stream("date,co2_ppm\n" + rows);
  auto measurements = parse_measurements(stream, "weeks.csv");
  EXPECT_TRUE(measurements) << measurements.error().message;
  return measurements.value();
}

TEST(Experiment, TrainsBeforeTheSplitAndForecastsEveryWeekAfterIt) {
  const auto experiment = make_experiment(
      weeks("1996-12-21,360\n1996-12-28,362\n1997-01-04,363\n1997-01-18,364\n1998-02-03,365\n"), {1997, 1997});
  ASSERT_TRUE(experiment) << experiment.error().message;
  const auto& e = experiment.value();
  EXPECT_EQ(e.training.size(), 2u);
  EXPECT_DOUBLE_EQ(e.training_mean_ppm, 361);
  EXPECT_EQ(e.held_out_count, 2u) << "the measurement of 1998 is after the last year";
  ASSERT_EQ(e.weeks.size(), 52u);
  EXPECT_EQ(to_string(e.weeks[0].date), "1997-01-04");
  EXPECT_EQ(e.weeks[0].measured_ppm, 363);
  EXPECT_EQ(to_string(e.weeks[1].date), "1997-01-11");
  EXPECT_FALSE(e.weeks[1].measured_ppm);
  EXPECT_EQ(to_string(e.weeks.back().date), "1997-12-27");
}

TEST(Experiment, ADateOffTheWeeklyGridIsForecastToo) {
  const auto experiment = make_experiment(weeks("1996-12-28,362\n1997-01-06,363\n"), {1997, 1997});
  ASSERT_TRUE(experiment);
  ASSERT_EQ(experiment.value().weeks.size(), 53u);
  EXPECT_EQ(to_string(experiment.value().weeks[1].date), "1997-01-06");
  EXPECT_EQ(experiment.value().weeks[1].measured_ppm, 363);
}

TEST(Experiment, NothingToTrainOnIsAnErrorThatSaysWhy) {
  const auto early = make_experiment(weeks("1997-01-06,363\n"), {1997, 1997});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().message,
            "nothing was measured before 1997: the data begin on 1997-01-06; choose a later --split-year");
  const auto empty = make_experiment(weeks(""), {1997, 1997});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "the data hold no measurement");
}

}  // namespace
}  // namespace co2_forecast::experiment_test
