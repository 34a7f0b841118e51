// tools/bench/run.cpp: from suites to a table or a JSON object.
#include "tools/bench/run.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "tandem/base/topology.hpp"
#include "tandem/base/units.hpp"
#include "tools/bench/budget.hpp"
#include "tools/machine/blas_remedy.hpp"
#include "tools/out_file.hpp"
#include "tools/python_script.hpp"
#include "tools/standard_output.hpp"
#include "tools/version.hpp"
#include "tools/work_folder.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;

void print_table(const BenchSuite& suite, const BenchOutcome& outcome) {
  fmt::print("\n{} ({} is better)\n", suite.title, suite.higher_is_better ? "higher" : "lower");
  if (suite.print_table) {
    suite.print_table(outcome);
    std::fflush(stdout);
    return;
  }
  fmt::print("{:<19} {:<12} {:>10} {:>10} {:>10} {:<9} {:>9}\n", "result", "program", "median", "min", "max", "unit",
             "ours/peer");
  std::string previous;
  for (const BenchRow& row : outcome.rows) {
    const auto [least, most] = std::minmax_element(row.samples.begin(), row.samples.end());
    const std::string ratio = row.ours_over_peer ? fmt::format("{:.3f}", *row.ours_over_peer) : "-";
    fmt::print("{:<19} {:<12} {:>10.4g} {:>10.4g} {:>10.4g} {:<9} {:>9}\n", row.name == previous ? "" : row.name,
               row.peer, median(row.samples), *least, *most, row.unit, ratio);
    previous = row.name;
  }
  if (const auto& stability = outcome.stability)
    fmt::print("stability: {} usually takes {:.3g} {}; when it did not, runs were repeated ({} of {}) or kept ({})\n",
               suite.stability_probe->what, stability->usual, stability->unit, stability->repeated, stability->runs,
               stability->unusual);
  std::fflush(stdout);
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? std::round(load * 100) / 100 : 0;
}

std::string kernel_release() {
  utsname names;
  return uname(&names) == 0 ? names.release : "unknown";
}

/// Names what is missing on standard error. False when that is our own program.
bool report_failures(const BenchSuite& suite, const BenchOutcome& outcome, base::Log& log) {
  bool ours_ran = true;
  for (const auto& [peer, reason] : outcome.failures) {
    if (peer == suite.programs.front().peer) {
      log.error("{}: Tandem's program failed: {}", suite.title, reason);
      ours_ran = false;
    } else {
      log.warn("{}: {} is missing: {}", suite.title, peer, reason);
    }
  }
  return ours_ran;
}

void add_to_report(Json& object, const BenchSuite& suite, const BenchOutcome& outcome) {
  for (Json& result : results_json(suite, outcome)) object["results"].push_back(std::move(result));
  for (const auto& [peer, text] : outcome.versions) object["versions"][peer] = text;
  for (const auto& [peer, reason] : outcome.failures) object["missing"][peer] = reason;
  if (outcome.is_cut_short) object["cut_short"].push_back({{"suite", suite.title}, {"rounds", outcome.rounds}});
  if (const auto& stability = outcome.stability)
    object["stability"].push_back({{"suite", suite.title},
                                 {"usual", stability->usual},
                                 {"unit", stability->unit},
                                 {"runs", stability->runs},
                                 {"repeated", stability->repeated},
                                 {"unusual", stability->unusual}});
}

base::Result<void> draw(const std::string& name, const Json& report, const std::string& picture,
                        const std::string& python) {
  const auto folder = WorkFolder::create(fs::temp_directory_path(), "tandem-bench-");
  if (!folder) return folder.error();
  const fs::path file = folder.value().path() / (name + ".json");
  auto opened = OutFile::create(file);
  if (!opened) return opened.error();
  opened.value().write(report.dump());
  if (auto closed = opened.value().close(); !closed) return closed;
  const auto drawn = run_python(python, name, {file.string(), "--output", picture});
  if (!drawn) return drawn.error();
  return {};
}

}  // namespace

void add_bench_options(Subcommand command, BenchOptions& options) {
  command.add_option("--rounds", options.rounds, "Measured rounds, after one round that warms up")
      .positive().show_default();
  command.add_option("--workers", options.workers,
                     "Workers of Tandem and of each peer (default: option workers, else all cores)")
      .positive();
  command.add_option("--timeout", options.timeout_s, "Seconds after which a program counts as hanging")
      .between(0.001, 1e6).show_default();
  command.add_option("--budget", options.budget,
                     "Time for all rounds (90s, 2min): when it is over, no other round begins. 0: no limit")
      .show_default();
  command.add_option("--bin", options.folder, "Folder of the benchmark programs (default: beside this command)")
      .existing_folder();
  command.add_flag("--json", options.json, "Print a JSON object");
}

void add_picture_option(Subcommand command, BenchOptions& options, const std::string& what) {
  command.add_option("--picture", options.picture, "PNG file to draw: " + what);
}

Programs::Programs(const BenchOptions& options, const base::Config& config) {
  if (!options.folder.empty()) {
    folders_.emplace_back(options.folder);
  } else {
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    folders_ = {own, (own / TANDEM_PROGRAMS_FROM_BIN).lexically_normal()};
  }
  // Our programs read this command line's options of the runtime from their environment.
  for (const base::ConfigEntry& entry : config.entries())
    if (entry.origin == base::Origin::command_line)
      for_ours_.emplace_back(entry.option->environment_name(), entry.value_text());
}

BenchProgram Programs::find(std::string peer, const std::string& file, std::vector<std::string> arguments,
                            const std::vector<std::pair<std::string, std::string>>& environment) const {
  BenchProgram program = make(std::move(peer), file, std::move(arguments), {});
  if (!file.starts_with("peer_")) program.command.environment = for_ours_;
  program.command.environment.insert(program.command.environment.end(), environment.begin(), environment.end());
  return program;
}

BenchProgram Programs::launched(BenchProgram program, const std::vector<std::vector<std::string>>& launchers) const {
  for (auto launcher = launchers.rbegin(); launcher != launchers.rend() && program.exists; ++launcher) {
    std::vector<std::string> arguments(launcher->begin() + 1, launcher->end());
    arguments.push_back(program.command.file.string());
    arguments.insert(arguments.end(), program.command.arguments.begin(), program.command.arguments.end());
    program = make(program.peer, launcher->front(), std::move(arguments), program.command.environment);
  }
  return program;
}

BenchProgram Programs::make(std::string peer, const std::string& name, std::vector<std::string> arguments,
                            std::vector<std::pair<std::string, std::string>> environment) const {
  const auto found = std::find_if(folders_.begin(), folders_.end(),
                                  [&](const auto& folder) { return access((folder / name).c_str(), F_OK) == 0; });
  const bool exists = found != folders_.end();
  return {std::move(peer),
          {(exists ? *found : folders_.front()) / name, std::move(arguments), std::move(environment)},
          exists};
}

void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 0) return;
  print_note("\r\033[K{}", text);
  std::fflush(stderr);
}

std::optional<BenchStart> begin_bench(const std::string& name, const BenchOptions& options, ToolContext& context) {
  // This is refused before anything is measured, not afterwards.
  if (const fs::path within = fs::path(options.picture).parent_path(); !within.empty() && !fs::is_directory(within)) {
    context.log.error("bench {}: --picture {}: there is no folder {}", name, options.picture, within.string());
    context.exit_status = wrong_use;
    return std::nullopt;
  }
  const auto budget = options.budget == "0" ? base::Result<std::int64_t>(0) : base::parse_duration_ns(options.budget);
  if (!budget || budget.value() < 0) {
    context.log.error("bench {}: --budget {}: {}", name, options.budget,
                      budget ? "less than nothing" : budget.error().message);
    context.exit_status = wrong_use;
    return std::nullopt;
  }
  const auto topology = base::Topology::discover();
  if (!topology) {
    context.log.error("{}", topology.error().message);
    context.exit_status = failure;
    return std::nullopt;
  }
  if (const std::string remedy = apply_blas_remedy(); !remedy.empty()) context.log.warn("{}", remedy);
  const std::size_t cores = topology.value().cores().size();
  const auto configured = static_cast<unsigned>(context.config.get_int("workers"));
  const unsigned usual = configured > 0 ? configured : static_cast<unsigned>(cores);
  BenchStart start{.workers = options.workers > 0 ? options.workers : usual,
                   .limits = {options.rounds, std::chrono::milliseconds(std::llround(options.timeout_s * 1000))},
                   .budget = std::chrono::nanoseconds(budget.value()),
                   .object = report(name, topology.value())};
  if (start.budget.count() > 0) start.limits.end = BenchBudget::Clock::now() + start.budget;
  start.object["machine"]["kernel"] = kernel_release();
  start.object["machine"]["load"] = load_average();
  if (!options.json)
    fmt::print("processor: {}, cores: {}, kernel: {}, load: {}, commit: {}, workers: {}, rounds: {}\n",
               topology.value().cpu_model(), cores, kernel_release(), load_average(), commit, start.workers,
               options.rounds);
  return start;
}

void print_cut_short(std::size_t rounds, const BenchOptions& options) {
  fmt::print("rounds: {} of {}, since the time was over (--budget {})\n", rounds, options.rounds, options.budget);
  std::fflush(stdout);
}

void draw_picture(const std::string& name, const Json& report, const BenchOptions& options, ToolContext& context) {
  if (options.picture.empty() || report["results"].empty()) return;
  const auto drawn = draw(name, report, options.picture, context.config.get_string("python"));
  if (drawn) return;
  context.log.error("bench {}: {}", name, drawn.error().message);
  context.exit_status = failure;
}

void run_bench(const std::string& name, const BenchOptions& options, ToolContext& context, const MakeSuites& make) {
  auto start = begin_bench(name, options, context);
  if (!start) return;
  Json& object = start->object;
  object["versions"] = Json::object();
  object["missing"] = Json::object();
  const std::vector<BenchSuite> suites = make(Programs(options, context.config), start->workers);
  std::vector<std::size_t> weights;
  for (const BenchSuite& suite : suites) weights.push_back(suite.parts.size() * suite.programs.size());
  BenchBudget budget(start->budget, std::move(weights), BenchBudget::Clock::now());
  for (const BenchSuite& suite : suites) {
    start->limits.end = budget.next(BenchBudget::Clock::now());
    const BenchOutcome outcome = run_suite(suite, start->limits, show_progress);
    show_progress("");
    if (options.json || !options.picture.empty()) add_to_report(object, suite, outcome);
    if (!options.json) print_table(suite, outcome);
    if (!options.json && outcome.is_cut_short) print_cut_short(outcome.rounds, options);
    if (!report_failures(suite, outcome, context.log)) context.exit_status = failure;
  }
  if (options.json) print(object);
  draw_picture(name, object, options, context);
}

}  // namespace tandem::tools
