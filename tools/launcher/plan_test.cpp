// tools/launcher/plan_test.cpp: host lists, and which rank goes where.
#include "tools/launcher/plan.hpp"

#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/core.h>

namespace tandem::tools::launcher_plan_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// "a 0-2, b 3-3": or the error.
std::string placed(std::optional<std::uint32_t> ranks, const std::string& hosts) {
  const auto parsed = parse_hosts(hosts);
  if (!parsed) return parsed.error().message;
  const auto places = place_ranks(ranks, parsed.value());
  if (!places) return places.error().message;
  std::string text;
  for (const HostRanks& place : places.value())
    text += fmt::format("{}{} {}-{}", text.empty() ? "" : ", ", place.host, place.first, place.first + place.count - 1);
  return text;
}

TEST(LauncherPlan, HostsWithoutANumberShareTheRanksEqually) {
  EXPECT_EQ(placed(4, "a,b"), "a 0-1, b 2-3");
  EXPECT_EQ(placed(5, "a,b,c"), "a 0-1, b 2-3, c 4-4");
  EXPECT_EQ(placed(1, "a,b"), "a 0-0");
}

TEST(LauncherPlan, HostsWithANumberTakeThatManyAndTheOthersTheRest) {
  EXPECT_EQ(placed(7, "a:2,b,c"), "a 0-1, b 2-4, c 5-6");
  EXPECT_EQ(placed(3, "a:2,b:2"), "a 0-1, b 2-2");
  EXPECT_EQ(placed(2, "a:2,b"), "a 0-1");
  EXPECT_EQ(placed(4, "a:1,b:1,a:2"), "a 0-0, b 1-1, a 2-3");
}

TEST(LauncherPlan, WithoutANumberOfRanksTheHostsSayHowMany) {
  EXPECT_EQ(placed({}, "a:2,b:3"), "a 0-1, b 2-4");
  EXPECT_EQ(placed({}, "a,b:3"), "a 0-0, b 1-3");
}

TEST(LauncherPlan, MoreRanksThanTheHostsTakeAreRefusedWithBothNumbers) {
  EXPECT_THAT(placed(5, "a:2,b:2"), HasSubstr("the hosts take 4 ranks, not 5"));
  EXPECT_THAT(placed(0, "a"), HasSubstr("0 ranks cannot be started"));
}

TEST(LauncherPlan, AddressesWithColonsKeepThem) {
  EXPECT_EQ(placed({}, "[::1]:2,fe80::1"), "::1 0-1, fe80::1 2-2");
}

TEST(LauncherPlan, WhatIsNoHostIsQuoted) {
  for (const char* text : {"", "a,,b", "a:", "a:0", "a:x", "-oProxyCommand=x", "a b", "a;b", "a:99999999"})
    EXPECT_THAT(placed(2, text), HasSubstr("is no host")) << text;
}

class HostFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& content) {
    path_ = std::filesystem::path(testing::TempDir()) / fmt::format("tandem_hostfile_{}", getpid());
    std::ofstream(path_) << content;
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::filesystem::path path_;
};

TEST_F(HostFile, HoldsOneHostPerLineInEitherFormAndComments) {
  const auto hosts = read_hostfile(write("# all of them\na:2\n\n  b slots=3  # the big one\nc\r\n"));
  ASSERT_TRUE(hosts) << hosts.error().message;
  ASSERT_EQ(hosts.value().size(), 3u);
  EXPECT_EQ(hosts.value()[0].ranks, 2u);
  EXPECT_EQ(hosts.value()[1].host, "b");
  EXPECT_EQ(hosts.value()[1].ranks, 3u);
  EXPECT_EQ(hosts.value()[2].host, "c");
  EXPECT_FALSE(hosts.value()[2].ranks);
}

TEST_F(HostFile, IsRefusedWithTheLineThatIsWrong) {
  EXPECT_THAT(read_hostfile(write("a\nb slots=none\n")).error().message, HasSubstr(":2: "));
  EXPECT_THAT(read_hostfile(write("# nobody\n")).error().message, HasSubstr("names no host"));
  EXPECT_THAT(read_hostfile("/nowhere/at/all").error().message, HasSubstr("/nowhere/at/all cannot be read"));
}

}  // namespace
}  // namespace tandem::tools::launcher_plan_test
