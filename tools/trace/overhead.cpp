// tools/trace/overhead.cpp: `tandem trace overhead`: measures the cost of tracing a program, by pairs of runs with and
// without.
//
// The methodology of the article, section 6.1: compare the program with itself before a trace is believed. Each round
// runs the program once untraced and once with each selection, in an order that turns from round to round, so that what
// disturbs the machine disturbs all alike. A ratio belongs to one round; from n of them, with mean m and deviation s of
// their logarithms, the 95 % interval is exp(m -+ t s / sqrt(n)), t being Student's for n - 1 degrees.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include <fmt/core.h>

#include "tandem/trace/selection.hpp"
#include "tools/bench/suite.hpp"
#include "tools/standard_output.hpp"
#include "tools/subprocess.hpp"
#include "tools/trace/command.hpp"
#include "tools/work_folder.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;

constexpr const char* footer = R"(Write the program and its arguments after the options and --.

  tandem trace overhead -- tandem linalg potrf -n 8192 --nb 320 --json
  tandem trace overhead --select all,task --select comm --rounds 20 -- ./app

The durations of the program are compared; they include the beginning and the end of the trace. If the program prints a report
as `tandem ... --json` does, its results are compared too. A ratio of 1.02 means that the traced run takes 2 % longer.)";

struct OverheadArguments {
  unsigned rounds = 10;
  std::vector<std::string> selections;  ///< in the syntax of TANDEM_TRACE
  std::vector<std::string> settings;    ///< such as trace.memory=1MiB
  bool json = false;
};

/// The results of one run as costs: its duration, and the program's own results.
using Costs = std::map<std::string, double>;

struct TracedRun {
  Costs costs;
  std::uint64_t records = 0, lost = 0, bytes = 0;
};

struct Interval {
  double middle = 1, low = 1, high = 1;
};

/// Student's t for a two-sided interval of 95 %.
double student_t(std::size_t degrees) {
  static constexpr double table[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                     2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
  if (degrees == 0) return INFINITY;
  return degrees <= std::size(table) ? table[degrees - 1] : 1.96 + 2.5 / static_cast<double>(degrees);
}

Interval interval_of(const std::vector<double>& ratios) {
  const auto n = static_cast<double>(ratios.size());
  double mean = 0, squares = 0;
  for (const double ratio : ratios) mean += std::log(ratio) / n;
  for (const double ratio : ratios) squares += std::pow(std::log(ratio) - mean, 2);
  if (ratios.size() < 2) return {std::exp(mean), 0, INFINITY};
  const double half = student_t(ratios.size() - 1) * std::sqrt(squares / (n - 1)) / std::sqrt(n);
  return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

/// The results of a run as costs: a rate counts by its reciprocal.
Costs costs_of(const std::string& output, double seconds) {
  Costs costs{{"duration", seconds}};
  const auto printed = parse_bench_run(output);
  if (!printed.ok()) return costs;
  for (const auto& [name, value] : printed.value().values) {
    if (!(value.value > 0)) continue;
    const bool is_rate = value.unit.ends_with("/s");
    costs[fmt::format("{} ({})", name, value.unit)] = is_rate ? 1 / value.value : value.value;
  }
  return costs;
}

Result<fs::path> find_program(const std::string& word) {
  if (word.find('/') != std::string::npos) return fs::absolute(word);
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const fs::path file = fs::path(folder) / word; ::access(file.c_str(), X_OK) == 0) return file;
  return Error{ErrorCode::not_found, fmt::format("{}: there is no such program in PATH", word)};
}

class Runner {
 public:
  Runner(Command command, const OverheadArguments& arguments, std::chrono::milliseconds limit)
      : command_(std::move(command)), limit_(limit) {
    for (const std::string& setting : arguments.settings) {
      const std::size_t equals = setting.find('=');
      std::string name = "TANDEM_" + setting.substr(0, equals);
      for (char& letter : name)
        letter = letter == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
      settings_.emplace_back(name, equals == std::string::npos ? "true" : setting.substr(equals + 1));
    }
  }

  /// Runs the program once. `selection` empty: untraced.
  Result<TracedRun> run(const std::string& selection) {
    const auto folder = WorkFolder::create(fs::temp_directory_path(), "trace-overhead-");
    if (!folder) return folder.error();
    const fs::path traced = folder.value().path() / "trace";
    Command command = command_;
    command.environment.emplace_back("TANDEM_TRACE", selection);
    if (!selection.empty()) {
      command.environment.emplace_back("TANDEM_TRACE_FOLDER", traced.string());
      command.environment.insert(command.environment.end(), settings_.begin(), settings_.end());
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto output = run_program(command, limit_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!output.ok()) return output.error();
    TracedRun run{costs_of(output.value().output, seconds)};
    if (selection.empty()) return run;
    const auto trace = trace::TraceReader::open(traced);
    if (!trace.ok())
      return Error{trace.error().code,
                   fmt::format("the program left no trace that can be read: {}", trace.error().message)};
    for (const auto& rank : trace.value()->ranks)
      for (const auto& stream : rank->streams) {
        run.records += stream->summary().records;
        run.lost += stream->summary().lost_events;
        run.bytes += stream->summary().bytes;
      }
    return run;
  }

 private:
  Command command_;
  std::chrono::milliseconds limit_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

struct Row {
  std::string selection;
  std::uint64_t records = 0, lost = 0, bytes = 0;  ///< of the last round
  std::map<std::string, std::vector<double>> ratios;
};

Result<std::vector<Row>> measure(Runner& runner, const OverheadArguments& arguments) {
  std::vector<Row> rows;
  for (const std::string& selection : arguments.selections) rows.push_back({.selection = selection, .ratios = {}});
  std::vector<std::size_t> order(rows.size() + 1);  // the last one is the untraced run
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (unsigned round = 0; round <= arguments.rounds; ++round) {
    if (!arguments.json && ::isatty(STDERR_FILENO)) print_note("\rround {} of {} ", round, arguments.rounds);
    std::vector<TracedRun> runs(order.size());
    for (const std::size_t i : order) {
      auto run = runner.run(i < rows.size() ? rows[i].selection : "");
      if (!run.ok()) return run.error();
      runs[i] = std::move(run).value();
    }
    std::reverse(order.begin(), order.end());
    if (round == 0) continue;  // the first round warms up
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].records = runs[i].records;
      rows[i].lost = runs[i].lost;
      rows[i].bytes = runs[i].bytes;
      for (const auto& [name, cost] : runs[i].costs)
        if (const auto bare = runs.back().costs.find(name); bare != runs.back().costs.end() && bare->second > 0)
          rows[i].ratios[name].push_back(cost / bare->second);
    }
  }
  if (!arguments.json && ::isatty(STDERR_FILENO)) print_note("\r{:20}\r", "");
  return rows;
}

void print_table(const std::vector<Row>& rows) {
  std::size_t width = 9;
  for (const Row& row : rows) width = std::max(width, row.selection.size());
  fmt::print("{:{}}  {:>10} {:>8} {:>8}  {:24} {:>7}  {}\n", "selection", width, "records", "lost", "B/record",
             "result", "ratio", "95 % interval");
  for (const Row& row : rows) {
    std::string place =
        fmt::format("{:{}}  {:>10} {:>8} {:>8.1f}", row.selection, width, row.records, row.lost,
                    row.records > 0 ? static_cast<double>(row.bytes) / static_cast<double>(row.records) : 0.0);
    for (const auto& [name, ratios] : row.ratios) {
      const Interval interval = interval_of(ratios);
      fmt::print("{}  {:24} {:>7.4f}  {:.4f} to {:.4f}\n", place, name, interval.middle, interval.low, interval.high);
      place.assign(place.size(), ' ');
    }
  }
}

Json rows_json(const std::vector<Row>& rows, unsigned rounds) {
  Json results = Json::array();
  for (const Row& row : rows)
    for (const auto& [name, ratios] : row.ratios) {
      const Interval interval = interval_of(ratios);
      const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
      results.push_back(
          {{"name", name},
           {"params",
            {{"selection", row.selection}, {"records", row.records}, {"lost", row.lost}, {"bytes", row.bytes}}},
           {"value", interval.middle},
           {"unit", "traced/untraced"},
           {"low", interval.low},
           {"high", interval.high},
           {"min", *low},
           {"max", *high},
           {"n", rounds},
           {"peers", Json::object()}});
    }
  return results;
}

void overhead(OverheadArguments arguments, std::vector<std::string> words, ToolContext& context) {
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (words.empty())
    return fail(context, {ErrorCode::invalid_argument,
                          "trace overhead: no program is given; write it after --: tandem trace overhead -- ./app"});
  const auto program = find_program(words.front());
  if (!program.ok()) return fail(context, program.error());
  if (arguments.selections.empty()) {
    arguments.selections = {"all", "none"};
    for (std::size_t i = 1; i < trace::kCategories; ++i)
      arguments.selections.emplace_back(trace::name_of(static_cast<trace::Category>(i)));
  }
  for (const std::string& selection : arguments.selections)
    if (const auto known = trace::Selection::parse(selection); !known.ok()) return fail(context, known.error());
  const auto topology = base::Topology::discover();
  if (!topology.ok()) return fail(context, topology.error());
  Runner runner({program.value(), {words.begin() + 1, words.end()}, {}}, arguments, std::chrono::minutes(10));
  const auto rows = measure(runner, arguments);
  if (!rows.ok()) return fail(context, rows.error());
  if (!arguments.json) return print_table(rows.value());
  Json object = report("trace overhead", topology.value());
  object["results"] = rows_json(rows.value(), arguments.rounds);
  print(object);
}

}  // namespace

void add_trace_overhead(Subcommand trace, ToolContext& context) {
  Subcommand command =
      trace.add_subcommand("overhead", "Run a program with and without tracing, in turns, and compare");
  command.footer(footer);
  const auto arguments = std::make_shared<OverheadArguments>();
  command.take_program("The program to run, followed by its arguments");
  command.add_option("--rounds", arguments->rounds, "Measured pairs of runs, after one pair that warms up")
      .positive().show_default();
  command.add_option("--select", arguments->selections,
                   "What to record, as in option trace; may be repeated (default: all, none, and each category)")
      .repeatable();
  command.add_option("--set", arguments->settings,
                     "Another option of the traced runs, such as trace.memory=1MiB; may be repeated")
      .repeatable();
  command.add_flag("--json", arguments->json, "Print one JSON object");
  command.callback([arguments, command, &context] { overhead(*arguments, command.remaining(), context); });
}

}  // namespace tandem::tools
