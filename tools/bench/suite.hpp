// tools/bench/suite.hpp: programs with equal measurements, run in turns, and the comparison of their results.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/result.hpp"
#include "tools/bench/stability.hpp"
#include "tools/json/json_report.hpp"
#include "tools/subprocess.hpp"

namespace tandem::tools {

/// A program of a suite. One run of it prints one JSON object to standard output: "results", a list of objects with
/// "name", "unit" and "median" (or "value") and perhaps an object "details"; and optionally "version" (or "tandem").
struct BenchProgram {
  std::string peer;  ///< "starpu"
  Command command;
  bool exists = true;  ///< false: not found, and so not run
};

struct BenchSuite {
  std::string title;                   ///< for people
  std::vector<BenchProgram> programs = {};  ///< the first is ours; the others are compared with it
  bool higher_is_better = false;
  Json params = Json::object();        ///< on which all its results depend
  std::string name_as_param = {};      ///< if not empty: the parameter that the results' names are values of: "tree"
  bool name_ends_in_bytes = false;     ///< `half_4`: the number becomes a parameter `bytes` too
  /// Further arguments, one list for each part of a round: all programs run a part before the next one begins, so that
  /// less time passes between runs that are compared.
  std::vector<std::vector<std::string>> parts = {{}};
  std::optional<StabilityProbe> stability_probe = {};  ///< runs before and after each run
  bool warms_up = true;  ///< false: no warm-up round, for programs that take long and do it themselves
  /// Prints the results for people, instead of the usual table.
  std::function<void(const struct BenchOutcome&)> print_table = {};
};

/// A number that one run of a program printed.
struct BenchValue {
  double value = 0;
  std::string unit;
  Json details = {};  ///< an object for the report, unchanged, or null
};

/// The output of one run.
struct BenchRun {
  std::string version;
  std::vector<std::pair<std::string, BenchValue>> values;  ///< name of the result, in the program's order
};

/// Reads a program's JSON. Errors: malformed, with the fault.
base::Result<BenchRun> parse_bench_run(std::string_view text);

/// One program's measurements of one result, over all rounds.
struct BenchRow {
  std::string name, peer, unit;
  std::vector<double> samples;           ///< not empty
  Json details = {};                     ///< of the last round that has some
  std::optional<double> ours_over_peer = {};  ///< median of the ratios within a round; empty: ours, or one is missing
};

/// All results. Rows are ordered by result, in the order of their first appearance, then by program.
struct BenchOutcome {
  std::vector<BenchRow> rows;
  std::vector<std::pair<std::string, std::string>>
      failures;  ///< peer, and why it is missing from some round on, or from all
  std::map<std::string, std::string> versions;                ///< by peer
  std::optional<StabilityReport> stability = {};
  unsigned rounds = 0;  ///< that counted
  bool is_cut_short = false;  ///< the time was over before all rounds, or all parts of the only one, were measured
};

/// The name of our result with which a peer's result of this name is compared: the `bound` of a factorisation is
/// compared with our `potrf`.
std::string_view counterpart(std::string_view name);

/// The programs' output in one round, by peer.
using BenchRound = std::map<std::string, BenchRun>;

/// Compares rounds. `peers` in the order of the suite, ours first.
std::vector<BenchRow> summarise(const std::vector<std::string>& peers, const std::vector<BenchRound>& rounds);

struct BenchLimits {
  unsigned rounds = 5;                         ///< that count, after one warm-up round
  std::chrono::milliseconds timeout{600'000};  ///< of one run
  /// Time at which the suite should end. A round that would end later does not begin, except for the first one that
  /// counts; that one ends after its present part. Runs are repeated for a stable machine until half of the time is
  /// over.
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
};

/// Called with the next step, for people.
using BenchProgress = std::function<void(const std::string&)>;

/// Runs every program once per round, in turn, so that disturbances of the machine affect all alike. A program that
/// fails is left out from then on.
BenchOutcome run_suite(const BenchSuite& suite, const BenchLimits& limits, const BenchProgress& progress);

/// The results for the envelope: ours with its peers' medians in "peers" and the paired ratios in "ours_over_peer". A
/// result that only a peer measures has that peer as "program" among its params.
Json results_json(const BenchSuite& suite, const BenchOutcome& outcome);

}  // namespace tandem::tools
