// examples/co2_forecast/options_test.cpp: what the command line sets, and what it refuses.
#include "options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace co2_forecast::options_test {
namespace {

std::variant<Options, ExitStatus> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "co2_forecast");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

/// What is written to standard error when the arguments are refused.
std::string complaint_about(std::vector<const char*> arguments) {
  testing::internal::CaptureStderr();
  const auto parsed = parse(std::move(arguments));
  const auto* status = std::get_if<ExitStatus>(&parsed);
  EXPECT_TRUE(status != nullptr && status->value != 0);
  return testing::internal::GetCapturedStderr();
}

TEST(Options, WithoutArgumentsAreTheBookAndTheYears1997To2001) {
  const auto parsed = parse({});
  const auto& options = std::get<Options>(parsed);
  EXPECT_EQ(options.years.split_year, 1997);
  EXPECT_EQ(options.years.last_year, 2001);
  EXPECT_EQ(options.theta.trend_amplitude_ppm, 66);
  EXPECT_FALSE(options.fit);
}

TEST(Options, HyperparametersAreSetByName) {
  const auto parsed = parse({"--hyper", "trend_length=70.5", "--hyper", "white_noise=1e-1", "--json"});
  const auto& options = std::get<Options>(parsed);
  EXPECT_EQ(options.theta.trend_length_years, 70.5);
  EXPECT_EQ(options.theta.white_noise_ppm, 0.1);
  EXPECT_TRUE(options.json);
}

TEST(Options, AMistypedHyperparameterIsRefusedWithTheNearestName) {
  EXPECT_NE(complaint_about({"--hyper", "trend_lenght=70"})
                .find("there is no hyperparameter \"trend_lenght\"; did you mean "
                      "trend_length?"),
            std::string::npos);
}

TEST(Options, AHyperparameterThatIsNoPositiveNumberIsRefused) {
  for (const char* assignment :
       {"white_noise=-1", "white_noise=0", "white_noise=nan", "white_noise=1x", "white_noise"}) {
    EXPECT_NE(complaint_about({"--hyper", assignment}).find("expected white_noise=VALUE with a positive number"),
              std::string::npos)
        << assignment;
  }
}

TEST(Options, YearsThatEndBeforeTheyBeginAreRefused) {
  EXPECT_NE(
      complaint_about({"--split-year", "1997", "--last-year", "1996"}).find("--last-year 1996: expected a year from"),
      std::string::npos);
  EXPECT_NE(complaint_about({"--last-year", "2500"}).find("100 years at most"), std::string::npos);
}

}  // namespace
}  // namespace co2_forecast::options_test
