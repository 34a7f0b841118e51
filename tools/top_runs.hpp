// tools/top_runs.hpp: finds the runs that are traced on this host now.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// A rank that runs on this host, with a trace.
struct LiveRun {
  std::uint32_t process = 0;
  std::filesystem::path folder;  ///< of the rank
  std::uint32_t rank = 0, size = 1;
  std::string job;               ///< empty: a program that is no job
  std::string program;
  std::string started;           ///< a date
};

/// By their live files in `live_folder` (option trace.live), in the order of jobs and ranks. Files of other users are left
/// out, also for root: who wants to see such a run names its folder.
std::vector<LiveRun> live_runs(const std::filesystem::path& live_folder);

/// Folders of a run, or of one rank. `target`: such a folder; else a job, or a process of it, that runs here. Errors: not_found.
base::Result<std::vector<std::filesystem::path>> find_run(const std::string& target, const std::filesystem::path& live_folder);

/// The folders of ranks that are in these now.
base::Result<std::vector<std::filesystem::path>> ranks_in(const std::vector<std::filesystem::path>& run_folders);

/// A table for people.
std::string describe(const std::vector<LiveRun>& runs);

}  // namespace tandem::tools
