// tools/launcher_traces_test.cpp: which files in shared memory are those of a rank that has died.
#include "tools/launcher_traces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tandem/trace/live.hpp"

namespace tandem::tools {
namespace {

/// No process of Linux has such a number.
constexpr pid_t kNobody = 0x7FFF0000;

TEST(LauncherTraces, FilesOfAnEarlierProcessOfTheSameNumberAreLeftAlone) {
  const std::filesystem::path live = std::filesystem::path(trace::live_folder) / (trace::live_prefix + std::to_string(kNobody) + ".test");
  {
    trace::LivePage page;
    page.process = kNobody;
    std::strcpy(page.folder, "/there-is-no-such-trace/rank-0000");
    std::ofstream(live, std::ios::binary).write(reinterpret_cast<const char*>(&page), sizeof page);
  }
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(live, now - std::chrono::minutes(5));
  EXPECT_EQ(recover_traces_of(kNobody, now), "");
  EXPECT_TRUE(std::filesystem::exists(live));
  EXPECT_THAT(recover_traces_of(kNobody, now - std::chrono::minutes(6)), testing::HasSubstr("was not ended by its program"));
  std::filesystem::remove(live);
}

}  // namespace
}  // namespace tandem::tools
