// tools/bench/table.hpp: a benchmark as data: its options, its suites, and the programs of each. Texts have names of
// values in braces: "--workers {workers}".
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tools/bench/run.hpp"

namespace tandem::tools {

using Words = std::vector<std::string>;
using Numbers = std::vector<unsigned>;

/// What texts of a benchmark refer to by name: the values of its options ({peer_most} is that of --peer-most), `bench`
/// (its name), `workers`, `self` (the path of this command), and what the benchmark itself adds.
class BenchValues {
 public:
  using Value = std::variant<bool, unsigned, double, std::string, Numbers, Words>;

  Value& operator[](const std::string& name) { return values_[name]; }
  const Value& at(const std::string& name) const { return values_.at(name); }
  template <class T>
  const T& get(const std::string& name) const { return std::get<T>(at(name)); }

  /// The text with values in place of their names; commas separate the elements of a list.
  std::string fill(const std::string& text) const;
  /// The words between the spaces of a text, each filled.
  Words words(const std::string& text) const;

 private:
  std::map<std::string, Value> values_;
};

struct Range {
  double least, most;
};

struct BenchOption {
  std::string flag;
  BenchValues::Value value;  ///< of the option's type; the help shows it as the default unless it is 0 or empty
  std::string help;
  std::variant<std::monostate, Range, Words> limit = {};  ///< numbers are positive where there is none
};

struct ProgramPlan {
  std::string peer = "tandem";
  std::string file = {};   ///< empty: bench_{bench}_tandem for "tandem", else peer_{bench}_PEER
  std::string words = {};  ///< empty: those of the suite
  Words launchers = {};    ///< each starts the next one, and the last one the program
  std::vector<std::pair<std::string, std::string>> environment = {};
};

struct SuitePlan {
  BenchSuite suite;  ///< without programs. A parameter "{n}" is the value n, with its type
  std::string words;
  std::vector<ProgramPlan> programs;  ///< the first is ours
  std::string stability_probe = {};       ///< the words of peer `bare`, whose result `suite.stability_probe` describes
};

struct BenchPlan {
  std::string name, help;
  std::vector<BenchOption> options = {};
  /// The suites for one element of each list that `each` names.
  std::function<std::vector<SuitePlan>(BenchValues&)> suites;
  Words each = {};           ///< lists of options, the slowest first; the tiles `nb` go along with the orders `n`
  std::string picture = {};  ///< what option --picture draws; empty: there is no such option
  unsigned rounds = 5;
  std::string seconds = {};  ///< option with the seconds that a run lasts, half of the least timeout
  std::function<void()> clean_up = [] {};
};

/// Adds the subcommand of a benchmark to `bench`.
void add_benchmark(Subcommand bench, const BenchPlan& plan, ToolContext& context);

/// Adds `tandem bench flushes`, which compares the ways of tracing one program and not programs.
void add_bench_flushes(Subcommand bench, ToolContext& context);

}  // namespace tandem::tools
