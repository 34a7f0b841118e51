// tools/launcher/traces_test.cpp: which files in shared memory are those of a rank that has died.
#include "tools/launcher/traces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tandem/base/host.hpp"
#include "tandem/trace/live.hpp"
#include "tandem/trace/read/sample_trace.hpp"

namespace tandem::tools::launcher_traces_test {
namespace {

/// A process number that Linux never uses.
constexpr pid_t kNobody = 0x7FFF0000;

TEST(LauncherTraces, FilesOfAnEarlierProcessOfTheSameNumberAreLeftAlone) {
  const std::filesystem::path live =
      std::filesystem::path(trace::live_folder) / (trace::live_prefix + std::to_string(kNobody) + ".test");
  {
    trace::LivePage page;
    page.process = kNobody;
    page.buffer_bytes = 65536;
    std::strcpy(page.folder, "/there-is-no-such-trace/rank-0000");
    std::ofstream(live, std::ios::binary).write(reinterpret_cast<const char*>(&page), sizeof page);
  }
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(live, now - std::chrono::minutes(5));
  EXPECT_EQ(recover_traces_of(kNobody, now), "");
  EXPECT_TRUE(std::filesystem::exists(live));
  EXPECT_THAT(recover_traces_of(kNobody, now - std::chrono::minutes(6)),
              testing::HasSubstr("was not ended by its program"));
  std::filesystem::remove(live);
}

/// Another user of the host has planted a live file that names a folder of his, whose streams link to files of the user
/// of `tandem run`, and a packet whose records hold a line of his choice.
TEST(LauncherTraces, ALiveFileOfANeighbourIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  constexpr uid_t neighbour = 65534;
  const trace::test::TempFolder temp;
  const std::filesystem::path folder = temp.path() / "rank-0000", precious = temp.path() / "precious";
  const std::filesystem::path live =
      std::filesystem::path(trace::live_folder) / (trace::live_prefix + std::to_string(kNobody) + ".attack");
  trace::test::RankFacts facts;
  facts.host = base::host_name();
  facts.process = kNobody;
  trace::test::kill_sample_rank(folder, live, facts);
  std::ofstream(precious) << "precious";
  for (std::uint32_t actor = 0; actor < 4; ++actor) {
    std::filesystem::remove(trace::test::stream_path(folder, actor));
    std::filesystem::create_symlink(actor == 3 ? temp.path() / "made" : precious,
                                    trace::test::stream_path(folder, actor));
  }
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    ASSERT_EQ(::lchown(file.path().c_str(), neighbour, neighbour), 0);
  ASSERT_EQ(::chown(folder.c_str(), neighbour, neighbour), 0);
  ASSERT_EQ(::chown(live.c_str(), neighbour, neighbour), 0);
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(5);
  EXPECT_EQ(recover_traces_of(kNobody, long_ago), "");
  // The live file is ours now, but the folder is not.
  ASSERT_EQ(::chown(live.c_str(), 0, 0), 0);
  EXPECT_THAT(recover_traces_of(kNobody, long_ago), testing::HasSubstr("belongs to user 65534"));
  EXPECT_EQ(trace::test::read_file(precious), "precious");
  EXPECT_FALSE(std::filesystem::exists(temp.path() / "made"));
  EXPECT_TRUE(std::filesystem::exists(live));
  std::filesystem::remove(live);
}

}  // namespace
}  // namespace tandem::tools::launcher_traces_test
