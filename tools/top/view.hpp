// tools/top/view.hpp: one refresh of `tandem top`, as text and as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/analysis/history/live_view.hpp"
#include "tandem/base/result.hpp"
#include "tandem/trace/read/live_rank.hpp"
#include "tools/json/json.hpp"

namespace tandem::tools {

/// The use of processor and memory of a process on this host, from /proc.
struct ProcessUse {
  std::int64_t cpu_ns = 0;
  std::uint64_t resident_bytes = 0;
};
std::optional<ProcessUse> process_use(std::uint32_t process);

/// A rank that is followed.
struct TopRank {
  std::filesystem::path folder;
  std::unique_ptr<trace::LiveRank> trace;     ///< null: it cannot be followed, for the reason in `why_not`
  base::Error why_not = {};                   ///< set if `trace` is null
  bool may_start = false;                     ///< it has not written rank.json yet
  std::unique_ptr<analysis::LiveView> view;
  analysis::LiveInterval interval;
  std::optional<ProcessUse> use;
  double cpu = 0;                             ///< cores that the process used in the interval

  std::uint32_t rank() const noexcept { return trace->manifest().rank; }
};

/// The ranks of one run, in the order of their numbers.
class TopRun {
 public:
  /// Opens the ranks. Errors: that of the first rank when none can be followed.
  static base::Result<TopRun> open(const std::vector<std::filesystem::path>& folders);

  /// Looks for folders of newly started ranks, and reads the new records of all.
  void refresh(const std::vector<std::filesystem::path>& folders);
  bool is_over() const noexcept;      ///< no rank runs any more
  bool was_killed() const noexcept;   ///< some rank was killed
  const std::vector<TopRank>& ranks() const noexcept { return ranks_; }
  const trace::Manifest& manifest() const noexcept;  ///< of the first rank that is followed

 private:
  TopRun() = default;
  static void start(TopRank& rank, std::size_t count);

  std::vector<TopRank> ranks_;
};

/// The view as lines of text. Tables of more than `most_rows` rows are cut, and say so.
std::string top_text(const TopRun& run, std::size_t most_rows);
/// A line about the end of the run.
std::string end_text(const TopRun& run);
Json top_json(const TopRun& run);
Json end_json(const TopRun& run);

}  // namespace tandem::tools
