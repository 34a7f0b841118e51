// tandem/base/process_stat_test.cpp: lines of /proc/PID/stat.
#include "tandem/base/process_stat.hpp"

#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace tandem::base::process_stat_test {
namespace {

TEST(ProcessStat, TheNameMayHoldAnything) {
  const auto stat = parse_process_stat("42 (a) Z (1 2\n b)) S 17 42 42 0 -1 4194560 1 2 3 4 250 75 0 0 20");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 17);
  EXPECT_EQ(stat->user_ticks, 250u);
  EXPECT_EQ(stat->system_ticks, 75u);
  EXPECT_FALSE(stat->has_ended());
}

TEST(ProcessStat, ALineMayEndEarly) {
  const auto stat = parse_process_stat("42 (sh) Z 1 42");
  ASSERT_TRUE(stat);
  EXPECT_TRUE(stat->has_ended());
  EXPECT_EQ(stat->user_ticks, 0u);
  EXPECT_FALSE(parse_process_stat(""));
  EXPECT_FALSE(parse_process_stat("42 sh S 1"));
  EXPECT_FALSE(parse_process_stat("42 (sh) S"));
}

TEST(ProcessStat, OfThisProcess) {
  const auto stat = process_stat(static_cast<std::uint32_t>(::getpid()));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_FALSE(stat->has_ended());
}

TEST(ProcessStat, AZombieHasEndedAndThenIsGone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_GT(child, 0);
  std::optional<ProcessStat> stat;
  for (int i = 0; i < 5000; ++i) {
    stat = process_stat(static_cast<std::uint32_t>(child));
    if (!stat || stat->has_ended()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(stat);
  EXPECT_TRUE(stat->has_ended());
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(process_stat(static_cast<std::uint32_t>(child)));
}

}  // namespace
}  // namespace tandem::base::process_stat_test
