// tools/top/runs.cpp: finds jobs and folders by the live files in shared memory.
#include "tools/top/runs.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

#include "tandem/trace/live.hpp"
#include "tandem/trace/read/manifest.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/recover.hpp"

namespace tandem::tools {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// The run of a live file; empty: it is no live file, its process is gone, or its folder is not here.
std::vector<LiveRun> run_of(const fs::path& file) {
  const auto live = trace::open_live(file, base::Owners::self);
  if (!live || !live.value().folder().is_absolute() || !live.value().is_alive()) return {};
  LiveRun run;
  run.process = live.value().page.process;
  run.folder = live.value().folder();
  const auto manifest = trace::Manifest::read(run.folder);
  if (!manifest || manifest.value().complete) return {};
  run.rank = manifest.value().rank;
  run.size = manifest.value().size;
  if (run.size > 1) run.job = manifest.value().job;
  run.program = fs::path(manifest.value().program).filename().string();
  run.started = manifest.value().started;
  return {run};
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

std::vector<LiveRun> live_runs(const fs::path& live_folder) {
  std::vector<LiveRun> runs;
  std::error_code error;
  for (fs::directory_iterator entry(live_folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(trace::live_prefix)) continue;
    for (LiveRun& run : run_of(entry->path())) runs.push_back(std::move(run));
  }
  std::ranges::sort(runs, {}, [](const LiveRun& run) { return std::tie(run.job, run.rank, run.process); });
  return runs;
}

std::string describe(const std::vector<LiveRun>& runs) {
  constexpr std::string_view row = "{:>8}  {:<16} {:>9}  {:<20}  {:<20}  {}\n";
  std::string text = fmt::format(row, "process", "job", "rank", "program", "started", "folder");
  for (const LiveRun& run : runs)
    text += fmt::format(row, run.process, or_dash(run.job), fmt::format("{} of {}", run.rank, run.size), run.program,
                        run.started, run.folder.parent_path().string());
  return text;
}

Result<std::vector<fs::path>> find_run(const std::string& target, const fs::path& live_folder) {
  std::error_code error;
  if (fs::is_directory(target, error)) return std::vector<fs::path>{target};
  const std::vector<LiveRun> runs = live_runs(live_folder);
  std::set<fs::path> folders;
  for (const LiveRun& run : runs)
    if (run.job == target || std::to_string(run.process) == target) folders.insert(run.folder.parent_path());
  if (!folders.empty()) return std::vector<fs::path>(folders.begin(), folders.end());
  return Error{ErrorCode::not_found,
               fmt::format("{}: is neither a folder nor a job or process that runs here with a trace{}", target,
                           runs.empty() ? ": start it with TANDEM_TRACE=all, then name the folder that it makes"
                                        : "; tandem top, without a name, lists what does")};
}

Result<std::vector<fs::path>> ranks_in(const std::vector<fs::path>& run_folders) {
  std::vector<fs::path> ranks;
  for (const fs::path& folder : run_folders) {
    const auto found = trace::rank_folders(folder);
    if (!found)
      return Error{found.error().code,
                   found.error().message + "; a run makes them when it starts with a trace (TANDEM_TRACE=all)"};
    ranks.insert(ranks.end(), found.value().begin(), found.value().end());
  }
  return ranks;
}

}  // namespace tandem::tools
