// tools/bench/suite_test.cpp: ratios are taken within a round, before their median; reports are read or refused.
#include "tools/bench/suite.hpp"

#include <gtest/gtest.h>

namespace tandem::tools::bench_suite_test {
namespace {

BenchRound round_of(double ours, double theirs) {
  return {{"tandem", {"", {{"chain", {ours, "ns/task"}}}}}, {"tbb", {"", {{"chain", {theirs, "ns/task"}}}}}};
}

TEST(BenchSuite, RatioIsTheMedianOfRatiosAndNotTheRatioOfMedians) {
  // A machine that becomes slower and slower: within each round ours takes half as long, but the medians say 2 / 3.
  auto rounds = std::vector{round_of(10, 20), round_of(20, 40), round_of(30, 60), round_of(50, 100)};
  rounds[1].erase("tbb");
  const auto rows = summarise({"tandem", "tbb"}, rounds);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].peer, "tandem");
  EXPECT_EQ(rows[0].ours_over_peer, std::nullopt);
  EXPECT_EQ(rows[1].samples, (std::vector<double>{20, 60, 100}));
  EXPECT_EQ(rows[1].ours_over_peer, 0.5);
}

TEST(BenchSuite, NoRoundWithBothOrAPeerAtZeroGivesNoRatio) {
  EXPECT_EQ(summarise({"tandem", "tbb"}, {round_of(1, 0)})[1].ours_over_peer, std::nullopt);
  auto apart = std::vector{round_of(1, 2), round_of(1, 2)};
  apart[0].erase("tbb");
  apart[1].erase("tandem");
  EXPECT_EQ(summarise({"tandem", "tbb"}, apart)[1].ours_over_peer, std::nullopt);
}

TEST(BenchSuite, BoundIsHeldAgainstTheFactorisation) {
  const std::vector<BenchRound> rounds{
      {{"tandem", {"", {{"potrf", {90, "GFlop/s"}}}}}, {"kernels", {"", {{"bound", {100, "GFlop/s"}}}}}}};
  const auto rows = summarise({"tandem", "kernels"}, rounds);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].name, "bound");
  EXPECT_EQ(rows[1].ours_over_peer, 0.9);
}

TEST(BenchSuite, ReadsMedianOrValueAndNamesWhatIsWrong) {
  const auto run =
      parse_bench_run(R"({"tandem": "0.1", "results": [{"name": "potrf", "unit": "GFlop/s", "value": 3}]})");
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().version, "0.1");
  EXPECT_EQ(run.value().values.front().second.value, 3);
  EXPECT_TRUE(parse_bench_run(R"({"results": []})").ok());
  EXPECT_EQ(parse_bench_run(" \n").error().message, "its output is empty");
  EXPECT_EQ(parse_bench_run("{").error().message, "its output is no JSON");
  EXPECT_EQ(parse_bench_run(R"({"results": [{"name": "a", "median": null}]})").error().message,
            "its result a has no median");
}

}  // namespace
}  // namespace tandem::tools::bench_suite_test
