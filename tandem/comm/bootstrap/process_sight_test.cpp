// tandem/comm/bootstrap/process_sight_test.cpp: made-up process tables, and what they say about a rank.
#include "tandem/comm/bootstrap/process_sight.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include <fmt/core.h>

namespace tandem::comm::internal::process_sight_test {
namespace {

/// A folder like /proc: a launcher (10) that has started ranks 0 (11) and 1 (12).
class ProcessSight : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "sight-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    proc_ = name;
    add(1, 0, 'S', "HOME=/");
    add(10, 1, 'S', "HOME=/");
    add(11, 10, 'R', "JOB=a|RANK=0");
    add(12, 10, 'R', "JOB=a|RANK=1");
  }
  void TearDown() override { std::filesystem::remove_all(proc_); }

  void add(int pid, int parent, char state, std::string variables, bool hidden = false) {
    const auto folder = proc_ / std::to_string(pid);
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "stat") << fmt::format("{} (a) b) {} {} 1 1", pid, state, parent);
    for (char& letter : variables) letter = letter == '|' ? '\0' : letter;
    if (!hidden)
      std::ofstream(folder / "environ", std::ios::binary)
          << variables << (variables.empty() ? "" : std::string(1, '\0'));
  }
  void remove(int pid) { std::filesystem::remove_all(proc_ / std::to_string(pid)); }
  Sight look(const std::string& rank) {
    return look_for_process(proc_, 11, {"JOB=a", "RANK=0"}, {"JOB=a", "RANK=" + rank});
  }

  std::filesystem::path proc_;
};

TEST_F(ProcessSight, SeesARankThatRuns) { EXPECT_EQ(look("1"), Sight::present); }

TEST_F(ProcessSight, SeesThatARankHasEnded) {
  remove(12);
  EXPECT_EQ(look("1"), Sight::absent);
  EXPECT_EQ(look("10"), Sight::absent);
}

TEST_F(ProcessSight, AZombieHasEnded) {
  add(12, 10, 'Z', "JOB=a|RANK=1");
  EXPECT_EQ(look("1"), Sight::absent);
}

TEST_F(ProcessSight, ARankMayRunBelowAWrapperThatClearedItsOwnVariables) {
  remove(12);
  add(13, 10, 'S', "JOB=a|RANK=1");
  add(14, 13, 'S', "PATH=/bin");
  EXPECT_EQ(look("1"), Sight::present);
}

TEST_F(ProcessSight, AChildOfTheLauncherThatHidesItsVariablesMayBeTheRank) {
  remove(12);
  add(12, 10, 'R', "JOB=a|RANK=1", true);
  EXPECT_EQ(look("1"), Sight::unknown);
  add(12, 10, 'R', "a title that the program wrote over its variables");
  std::ofstream(proc_ / "12" / "environ") << "a title";
  EXPECT_EQ(look("1"), Sight::unknown);
}

TEST_F(ProcessSight, InAContainerOfItsOwnARankKnowsNothingOfOthers) {
  remove(10), remove(12), remove(11);
  add(1, 0, 'S', "JOB=a|RANK=0");
  add(11, 1, 'R', "JOB=a|RANK=0");
  EXPECT_EQ(look("1"), Sight::unknown);
}

TEST_F(ProcessSight, AnotherJobsRankDoesNotCount) {
  add(12, 10, 'R', "JOB=ab|RANK=1");
  EXPECT_EQ(look("1"), Sight::absent);
}

TEST_F(ProcessSight, ThisHostShowsThisProcess) {
  EXPECT_NE(look_for_process("/proc", getpid(), {"NO_SUCH_VARIABLE=1"}, {"NO_SUCH_VARIABLE=2"}), Sight::present);
}

}  // namespace
}  // namespace tandem::comm::internal::process_sight_test
