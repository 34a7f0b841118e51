// tools/simulate/prediction.cpp: an interval by Student's t.
#include "tools/simulate/prediction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "tools/json/json.hpp"
#include "tools/json/json_report.hpp"
#include "tools/subprocess.hpp"

namespace tandem::tools {
namespace {

/// The 95 % quantile of Student's t, by degrees of freedom from 1 on; further ones are near enough to the last.
constexpr std::array student_95 = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812,
                                   1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725,
                                   1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697};

}  // namespace

Prediction predict(const std::vector<double>& makespans) {
  Prediction prediction;
  prediction.median = prediction.low = prediction.high = median(makespans);
  const std::size_t count = makespans.size();
  if (count < 2) return prediction;
  const auto number = static_cast<double>(count);
  double mean = 0, variance = 0;
  for (const double makespan : makespans) mean += makespan / number;
  for (const double makespan : makespans) variance += (makespan - mean) * (makespan - mean) / (number - 1);
  const double t = student_95[std::min(count - 2, student_95.size() - 1)];
  const double half = t * std::sqrt(variance * (1 + 1 / number));
  prediction.low = std::max(0.0, mean - half);
  prediction.high = mean + half;
  return prediction;
}

base::Result<Prediction> predict_by_command(std::vector<std::string> words,
                                            const std::vector<std::pair<std::string, std::string>>& environment,
                                            std::chrono::milliseconds limit) {
  std::error_code unknown;
  const auto ran = run_program({.file = std::filesystem::read_symlink("/proc/self/exe", unknown),
                                .arguments = std::move(words),
                                .environment = environment,
                                .explains = true},
                               limit);
  if (!ran.ok()) return ran.error();
  const auto report = Json::parse(ran.value().output);
  if (!report) return base::Error{base::ErrorCode::malformed, "tandem simulate --json has printed no JSON"};
  const Json& details = (*report)["results"].at(0)["details"];
  const double makespan = details["makespan"].number();
  const auto bound = [&](std::string_view name) {
    const Json* const value = details.find(name);
    return value != nullptr ? value->number() : makespan;
  };
  return Prediction{.median = makespan, .low = bound("low"), .high = bound("high")};
}

}  // namespace tandem::tools
