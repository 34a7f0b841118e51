// tools/trace/summary.hpp: computes and prints the numbers of `tandem trace summary`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/verdict/broadcasts.hpp"
#include "tandem/analysis/verdict/communication.hpp"
#include "tandem/analysis/verdict/efficiency.hpp"
#include "tandem/analysis/verdict/energy.hpp"
#include "tandem/analysis/verdict/memory_use.hpp"
#include "tandem/analysis/verdict/parallelism.hpp"
#include "tandem/analysis/verdict/quality.hpp"
#include "tandem/analysis/verdict/verdict.hpp"
#include "tools/json/json.hpp"

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
  std::vector<std::string> reservations;  ///< statements that the trace does not permit, and why; as text
};

/// Lists parts that the trace does not have, and impossible times; empty: it is complete.
std::vector<std::string> defects_of(const analysis::Quality& quality);

/// The object of `--json`, with null for the steps of the realised path. Times in seconds.
Json summary_json(const std::string& folder, const RunNumbers& numbers);
/// Prints the object of `--json`, with the steps.
void print_summary_json(const std::string& folder, const RunNumbers& numbers);
void print_summary_text(const RunNumbers& numbers);

}  // namespace tandem::tools
