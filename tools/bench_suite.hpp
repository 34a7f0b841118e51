// tools/bench_suite.hpp: programs that measure the same things, run in turns, and the comparison of what they say.
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
#include "tools/bench_stability.hpp"
#include "tools/json_report.hpp"
#include "tools/subprocess.hpp"

namespace tandem::tools {

/// A program of a suite. One run of it prints one JSON object to standard output: "results", a list of objects with "name",
/// "unit" and "median" (or "value") and perhaps an object "details"; and, if it likes, "version" (or "tandem").
struct BenchProgram {
  std::string peer;  ///< "starpu"
  Command command;
  bool exists = true;  ///< false: not found, and so not run
};

struct BenchSuite {
  std::string title;                   ///< for people
  std::vector<BenchProgram> programs;  ///< the first is ours; the others are compared with it
  bool higher_is_better = false;
  Json params = Json::object();        ///< what all its results depend on
  std::string name_as_param = {};      ///< if not empty: the parameter that the results' names are values of: "tree"
  bool name_ends_in_bytes = false;     ///< `half_4`: the number becomes a parameter `bytes` too
  /// Further arguments, one list for each part of a round: all programs run a part before the next one begins, so that less time
  /// lies between runs that are compared.
  std::vector<std::vector<std::string>> parts = {{}};
  std::optional<StabilityProbe> stability_probe = {};  ///< runs before and after each run
  bool warms_up = true;  ///< false: no round that does not count, for programs that take long and do it themselves
  /// Prints what came out for people, instead of the usual table.
  std::function<void(const struct BenchOutcome&)> print_table = {};
};

/// A number that one run of a program printed.
struct BenchValue {
  double value = 0;
  std::string unit;
  Json details = {};  ///< an object that goes to the report as it is, or null
};

/// What one run printed.
struct BenchRun {
  std::string version;
  std::vector<std::pair<std::string, BenchValue>> values;  ///< name of the result, in the program's order
};

/// Reads a program's JSON. Errors: malformed, with what is wrong with it.
base::Result<BenchRun> parse_bench_run(std::string_view text);

/// What one program measured of one result, over all rounds.
struct BenchRow {
  std::string name, peer, unit;
  std::vector<double> samples;           ///< not empty
  Json details = {};                     ///< of the last round that has some
  std::optional<double> ours_over_peer = {};  ///< median of the ratios within one round; none for ours, and where one is missing
};

/// All that came out. Rows are ordered by result, in the order of their first appearance, then by program.
struct BenchOutcome {
  std::vector<BenchRow> rows;
  std::vector<std::pair<std::string, std::string>> failures;  ///< peer, and why it is missing from some round on, or from all
  std::map<std::string, std::string> versions;                ///< by peer
  std::optional<StabilityReport> stability = {};
  unsigned rounds = 0;  ///< that counted
  bool is_cut_short = false;  ///< the time was over before all rounds, or all parts of the only one, were measured
};

/// The name of our result with which a peer's result of this name is compared: the `bound` of a factorisation is compared with
/// our `potrf`.
std::string_view counterpart(std::string_view name);

/// What the programs printed in one round, by peer.
using BenchRound = std::map<std::string, BenchRun>;

/// Compares rounds. `peers` in the order of the suite, ours first.
std::vector<BenchRow> summarise(const std::vector<std::string>& peers, const std::vector<BenchRound>& rounds);

struct BenchLimits {
  unsigned rounds = 5;                         ///< that count; one more comes first, to warm up
  std::chrono::milliseconds timeout{600'000};  ///< of one run
  /// When the suite should end. A round that would end later does not begin, but for the first one that counts; that one ends after the
  /// part that is under way then. Runs are repeated for the sake of a stable machine until half of the time is over.
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
};

/// Called with the next step, for people.
using BenchProgress = std::function<void(const std::string&)>;

/// Runs every program once per round, in turn, so that what disturbs the machine disturbs all alike. A program that fails is left
/// out from then on.
BenchOutcome run_suite(const BenchSuite& suite, const BenchLimits& limits, const BenchProgress& progress);

/// The results as the envelope wants them: ours with its peers' medians in "peers" and the paired ratios in "ours_over_peer".
/// What only a peer measures is a result too, with that peer as "program" among its params.
Json results_json(const BenchSuite& suite, const BenchOutcome& outcome);

}  // namespace tandem::tools
