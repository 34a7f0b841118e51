// tools/launcher/wire_test.cpp: plans survive encoding and decoding, and damaged ones are refused.
#include "tools/launcher/wire.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/comm/bootstrap/bytes.hpp"

namespace tandem::tools::launcher_wire_test {
namespace {

using testing::HasSubstr;

GroupPlan example() {
  GroupPlan plan;
  plan.words = {"./app", "", "two words", std::string("zero\0byte", 9)};
  plan.folder = "/home/user";
  plan.environment = {{"A", "1"}, {"B", ""}};
  plan.first_rank = 2;
  plan.count = 3;
  plan.first_local = 1;
  plan.local_size = 5;
  plan.size = 8;
  plan.job_id = "run-1";
  plan.server = "10.0.0.1:4711";
  plan.secret = "s";
  plan.input = Input::fed;
  plan.bind = base::BindTo::package;
  plan.map = base::MapBy::numa;
  return plan;
}

TEST(LauncherWire, APlanIsReadBackAsItWasWritten) {
  const GroupPlan plan = example();
  const auto read = wire::decode_plan(wire::encode(plan));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value().words, plan.words);
  EXPECT_EQ(read.value().environment, plan.environment);
  EXPECT_EQ(read.value().folder, plan.folder);
  EXPECT_EQ(read.value().first_rank, 2u);
  EXPECT_EQ(read.value().count, 3u);
  EXPECT_EQ(read.value().first_local, 1u);
  EXPECT_EQ(read.value().local_size, 5u);
  EXPECT_EQ(read.value().size, 8u);
  EXPECT_EQ(read.value().server, plan.server);
  EXPECT_EQ(read.value().input, Input::fed);
  EXPECT_EQ(read.value().bind, base::BindTo::package);
  EXPECT_EQ(read.value().map, base::MapBy::numa);
  EXPECT_FALSE(read.value().secret_in_environment);
}

TEST(LauncherWire, AnotherVersionIsRefusedWithBothNamed) {
  const std::string other = comm::internal::ByteWriter().u32(wire::version + 1).text("9.9.9").text("whatever").take();
  const auto read = wire::decode_plan(other);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, base::ErrorCode::unsupported);
  EXPECT_THAT(read.error().message,
              HasSubstr("Tandem 9.9.9 (launcher format " + std::to_string(wire::version + 1) + ")"));
  EXPECT_THAT(read.error().message, HasSubstr("(launcher format " + std::to_string(wire::version) + ")"));
}

TEST(LauncherWire, DamagedPlansAreRefusedAndNeverCrash) {
  const std::string whole = wire::encode(example());
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(wire::decode_plan(whole.substr(0, bytes))) << bytes;
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = whole;
    for (int j = 0; j < 4; ++j) damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)wire::decode_plan(damaged).ok();
  }
}

}  // namespace
}  // namespace tandem::tools::launcher_wire_test
