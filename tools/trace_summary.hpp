// tools/trace_summary.hpp: the numbers that `tandem trace summary` prints, and how.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/analysis/broadcasts.hpp"
#include "tandem/analysis/communication.hpp"
#include "tandem/analysis/efficiency.hpp"
#include "tandem/analysis/energy.hpp"
#include "tandem/analysis/history.hpp"
#include "tandem/analysis/memory_use.hpp"
#include "tandem/analysis/parallelism.hpp"
#include "tandem/analysis/quality.hpp"
#include "tandem/analysis/verdict.hpp"
#include "tools/json.hpp"

namespace tandem::tools {

/// All analyses of a run. Refers to the history.
struct RunNumbers {
  explicit RunNumbers(const analysis::History& run) : RunNumbers(run, analysis::TaskGraph(run)) {}
  RunNumbers(const analysis::History& run, const analysis::TaskGraph& graph);

  const analysis::History& history;
  analysis::Summary summary;
  std::optional<analysis::RunEfficiency> efficiency;
  analysis::RunParallelism parallelism;
  analysis::Communication communication;
  analysis::Broadcasts broadcasts;
  std::vector<analysis::NodeMemory> memory;
  analysis::RunEnergy energy;
  analysis::Quality quality;
  std::vector<std::string> reservations;  ///< what could not be judged, and why; for people
};

/// What the trace does not hold, and times that cannot be; none where it is complete.
std::vector<std::string> defects_of(const analysis::Quality& quality);

/// What `--json` prints, but for the steps of the realised path, which are null. Times in seconds.
Json summary_json(const std::string& folder, const RunNumbers& numbers);
/// With the steps.
void print_summary_json(const std::string& folder, const RunNumbers& numbers);
void print_summary_text(const RunNumbers& numbers);

}  // namespace tandem::tools
