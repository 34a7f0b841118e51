// tools/json/json_report_test.cpp: the envelope has the fields that programs rely on, in order, and the value is the
// median.
#include "tools/json/json_report.hpp"

#include <gtest/gtest.h>

namespace tandem::tools::json_report_test {
namespace {

TEST(JsonReport, MedianIsTheMiddleOrTheMeanOfTheTwoMiddles) {
  EXPECT_DOUBLE_EQ(median({7}), 7);
  EXPECT_DOUBLE_EQ(median({9, 1, 5}), 5);
  EXPECT_DOUBLE_EQ(median({9, 1, 5, 4}), 4.5);
}

TEST(JsonReport, HasTheFieldsOfTheEnvelopeInOrder) {
  const auto topology = base::Topology::synthetic("package:1 l2:2 core:1 pu:2").value();
  const Json json =
      report("tasks", topology, {{"chain", {{"workers", 2}}, "ns per task", {110, 90, 100}, {{"starpu", 3400.0}}}});
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.members()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"tandem", "commit", "machine", "benchmark", "results"}));
  EXPECT_EQ(
      json["results"].dump(),
      R"([{"name":"chain","params":{"workers":2},"value":100.0,"unit":"ns per task","min":90.0,"max":110.0,"n":3,)"
      R"("peers":{"starpu":3400.0}}])");
  EXPECT_EQ(json["machine"]["core_count"], 2);
  EXPECT_EQ(json["machine"]["cores"].at(1)["pus"], Json({2, 3}));
}

TEST(JsonReport, ResultsAreAnArrayEvenWhenThereAreNone) {
  const auto topology = base::Topology::synthetic("core:1 pu:1").value();
  EXPECT_EQ(report("tasks", topology, {})["results"].dump(), "[]");
  EXPECT_EQ(machine_json(topology)["caches"].dump(), "[]");
}

}  // namespace
}  // namespace tandem::tools::json_report_test
