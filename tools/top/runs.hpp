// tools/top/runs.hpp: finds the traced runs on this host.
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
  std::filesystem::path folder;  ///< the rank's folder
  std::uint32_t rank = 0, size = 1;
  std::string job;               ///< empty: the program is no job
  std::string program;
  std::string started;           ///< date of the start
};

/// Finds runs by their live files in `live_folder` (option trace.live), sorted by jobs and ranks. Files of other users
/// are left out, also for root, who can name the folder of such a run instead.
std::vector<LiveRun> live_runs(const std::filesystem::path& live_folder);

/// The folders of a run, or of one rank. `target`: such a folder; else a job, or a process of it, that runs here.
/// Errors: not_found.
base::Result<std::vector<std::filesystem::path>> find_run(const std::string& target,
                                                          const std::filesystem::path& live_folder);

/// The folders of ranks that exist in `folders` now.
base::Result<std::vector<std::filesystem::path>> ranks_in(const std::vector<std::filesystem::path>& run_folders);

/// The runs as a table.
std::string describe(const std::vector<LiveRun>& runs);

}  // namespace tandem::tools
