// tools/bench_command.cpp: `tandem bench NAME`: Tandem's benchmark program and its peers', in turns, compared.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "tandem/base/topology.hpp"
#include "tools/bench_suite.hpp"
#include "tools/subcommands.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

constexpr int failure = 1, wrong_use = 2;

/// The command line of all of them as it stands; 0 or empty is "not given".
struct BenchArguments {
  unsigned rounds = 5;
  unsigned workers = 0;
  double timeout_s = 600;
  std::string folder;
  bool json = false;

  std::string flow = "all";                  ///< tasks
  unsigned trials = 100;                     ///< wake
  std::vector<unsigned> orders{8192, 4096};  ///< cholesky
  std::vector<unsigned> tiles;
  std::string precision = "d";
};

/// Makes the programs of a suite.
class Programs {
 public:
  Programs(const BenchArguments& arguments, const base::Config& config) {
    if (!arguments.folder.empty()) {
      folders_.emplace_back(arguments.folder);
    } else {
      const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
      folders_ = {own, (own / TANDEM_PROGRAMS_FROM_BIN).lexically_normal()};
    }
    // Our programs read what this command line says of the runtime from their environment.
    for (const base::ConfigEntry& entry : config.entries())
      if (entry.origin == base::Origin::command_line) for_ours_.emplace_back(entry.option.environment_name(), entry.value_text());
  }

  BenchProgram ours(const std::string& name, std::vector<std::string> arguments) const {
    return make("tandem", name, std::move(arguments), for_ours_);
  }
  BenchProgram peer(const std::string& peer, const std::string& name, std::vector<std::string> arguments,
                    std::vector<std::pair<std::string, std::string>> environment = {}) const {
    return make(peer, name, std::move(arguments), std::move(environment));
  }

 private:
  BenchProgram make(std::string peer, const std::string& name, std::vector<std::string> arguments,
                    std::vector<std::pair<std::string, std::string>> environment) const {
    const auto found = std::find_if(folders_.begin(), folders_.end(),
                                    [&](const auto& folder) { return access((folder / name).c_str(), F_OK) == 0; });
    const bool exists = found != folders_.end();
    return {std::move(peer), {(exists ? *found : folders_.front()) / name, std::move(arguments), std::move(environment)}, exists};
  }

  std::vector<std::filesystem::path> folders_;
  std::vector<std::pair<std::string, std::string>> for_ours_;
};

BenchSuite tasks_suite(const Programs& programs, const BenchArguments& arguments, unsigned workers) {
  const std::vector<std::string> words{"--workers", std::to_string(workers), "--repetitions", "1", "--flow", arguments.flow};
  BenchSuite suite{"cost of a task, empty kernels", {programs.ours("bench_tasks_tandem", words)}, false, {{"workers", workers}}};
  for (const char* peer : {"starpu", "openmp", "libomp", "tbb", "taskflow"})
    suite.programs.push_back(programs.peer(peer, fmt::format("peer_tasks_{}", peer), words));
  return suite;
}

BenchSuite wake_suite(const Programs& programs, const BenchArguments& arguments, unsigned workers) {
  const std::vector<std::string> words{"--workers", std::to_string(workers), "--repetitions", "1",
                                       "--trials",  std::to_string(arguments.trials)};
  BenchSuite suite{"idle workers, and the first task after idleness", {programs.ours("bench_wake_tandem", words)}, false,
                   {{"workers", workers}, {"trials", arguments.trials}}};
  for (const char* peer : {"starpu", "openmp", "libomp", "tbb"})
    suite.programs.push_back(programs.peer(peer, fmt::format("peer_wake_{}", peer), words));
  return suite;
}

struct CholeskySize {
  unsigned order, tile;
};

BenchSuite cholesky_suite(const Programs& programs, const BenchArguments& arguments, unsigned workers, CholeskySize size) {
  const std::vector<std::string> common{"--nb", std::to_string(size.tile), "--workers", std::to_string(workers), "--precision",
                                        arguments.precision, "--repetitions", "1"};
  std::vector<std::string> words{"linalg", "potrf", "-n", std::to_string(size.order), "--json"};
  std::vector<std::string> peer_words{"--n", std::to_string(size.order)};
  words.insert(words.end(), common.begin(), common.end());
  peer_words.insert(peer_words.end(), common.begin(), common.end());

  BenchSuite suite{fmt::format("Cholesky factorisation, {}, n = {}, tile {}", arguments.precision, size.order, size.tile),
                   {programs.ours("tandem", words)},
                   true,
                   {{"n", size.order}, {"nb", size.tile}, {"precision", arguments.precision}, {"workers", workers}}};
  suite.programs.push_back(programs.peer("openmp", "peer_cholesky_openmp", peer_words));
  suite.programs.push_back(programs.peer("libomp", "peer_cholesky_libomp", peer_words));
  suite.programs.push_back(programs.peer("starpu", "peer_cholesky_starpu", peer_words, {{"STARPU_SCHED", "lws"}}));
  suite.programs.push_back(programs.peer("starpu_prio", "peer_cholesky_starpu", peer_words, {{"STARPU_SCHED", "prio"}}));
  suite.programs.push_back(programs.peer("blas", "peer_cholesky_blas", peer_words));
  suite.programs.push_back(programs.peer("kernels", "peer_cholesky_kernels", peer_words));
  return suite;
}

/// The current step, on one line of a terminal, and nothing anywhere else. An empty text clears the line.
void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
}

void print_table(const BenchSuite& suite, const BenchOutcome& outcome) {
  fmt::print("\n{} ({} is better)\n", suite.title, suite.higher_is_better ? "higher" : "lower");
  fmt::print("{:<19} {:<12} {:>10} {:>10} {:>10} {:<9} {:>9}\n", "result", "program", "median", "min", "max", "unit",
             "ours/peer");
  std::string previous;
  for (const BenchRow& row : outcome.rows) {
    const auto [least, most] = std::minmax_element(row.samples.begin(), row.samples.end());
    const std::string ratio = row.ours_over_peer ? fmt::format("{:.3f}", *row.ours_over_peer) : "-";
    fmt::print("{:<19} {:<12} {:>10.4g} {:>10.4g} {:>10.4g} {:<9} {:>9}\n", row.name == previous ? "" : row.name, row.peer,
               median(row.samples), *least, *most, row.unit, ratio);
    previous = row.name;
  }
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

/// Names on standard error what is missing. False when that is our own program.
bool report_failures(const BenchSuite& suite, const BenchOutcome& outcome, base::Log& log) {
  bool ours_ran = true;
  for (const auto& [peer, reason] : outcome.failures) {
    if (peer == suite.programs.front().peer) {
      log.error("{}: Tandem's own program failed: {}", suite.title, reason);
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
}

using MakeSuites = std::function<std::vector<BenchSuite>(const Programs&, unsigned workers)>;

/// Runs the suites that `make` gives, one after the other, and prints what came out.
void run(const std::string& name, const BenchArguments& arguments, ToolContext& context, const MakeSuites& make) {
  const auto topology = base::Topology::discover();
  if (!topology) {
    context.log.error("{}", topology.error().message);
    context.exit_status = failure;
    return;
  }
  const std::size_t cores = topology.value().cores().size();
  const auto configured = static_cast<unsigned>(context.config.get_int("workers"));
  const unsigned usual = configured > 0 ? configured : static_cast<unsigned>(cores);
  const unsigned workers = arguments.workers > 0 ? arguments.workers : usual;
  const BenchLimits limits{arguments.rounds, std::chrono::milliseconds(std::llround(arguments.timeout_s * 1000))};

  Json object = report(name, topology.value());
  object["machine"]["kernel"] = kernel_release();
  object["machine"]["load"] = load_average();
  object["versions"] = Json::object();
  object["missing"] = Json::object();
  if (!arguments.json)
    fmt::print("processor: {}, cores: {}, kernel: {}, load: {}, commit: {}, workers: {}, rounds: {}\n",
               topology.value().cpu_model(), cores, kernel_release(), load_average(), commit, workers, limits.rounds);
  for (const BenchSuite& suite : make(Programs(arguments, context.config), workers)) {
    const BenchOutcome outcome = run_suite(suite, limits, show_progress);
    show_progress("");
    if (arguments.json) add_to_report(object, suite, outcome);
    else print_table(suite, outcome);
    if (!report_failures(suite, outcome, context.log)) context.exit_status = failure;
  }
  if (arguments.json) print(object);
}

/// A tile when none was said: a sixteenth of the order.
std::vector<unsigned> tiles_for(const BenchArguments& arguments) {
  if (!arguments.tiles.empty()) return arguments.tiles;
  std::vector<unsigned> tiles;
  for (const unsigned order : arguments.orders) tiles.push_back(std::max(1U, order / 16));
  return tiles;
}

CLI::Range positive() { return {1, INT_MAX, "POSITIVE"}; }

std::shared_ptr<BenchArguments> add_common(CLI::App* command) {
  auto arguments = std::make_shared<BenchArguments>();
  command->add_option("--rounds", arguments->rounds, "Rounds that count, after one to warm up")
      ->check(positive())->capture_default_str();
  command->add_option("--workers", arguments->workers, "Of ours and of every peer; all cores unless configured")
      ->check(positive());
  command->add_option("--timeout", arguments->timeout_s, "Seconds after which a program is taken to hang")
      ->check(CLI::Range(0.001, 1e6, "SECONDS"))->capture_default_str();
  command->add_option("--bin", arguments->folder, "Folder of the programs, instead of where this one is installed or built")
      ->check(CLI::ExistingDirectory);
  command->add_flag("--json", arguments->json, "Print a JSON object");
  return arguments;
}

void add_tasks(CLI::App& bench, ToolContext& context) {
  CLI::App* command = bench.add_subcommand("tasks", "What a task costs: submission, dependencies and execution of empty kernels");
  const auto arguments = add_common(command);
  command->add_option("--flow", arguments->flow, "One flow only")
      ->check(CLI::IsMember({"all", "independent_bare", "independent", "chain", "wavefront", "cholesky", "cholesky_replay",
                             "bytes_per_task"}))
      ->capture_default_str();
  command->callback([arguments, &context] {
    run("tasks", *arguments, context, [&](const Programs& programs, unsigned workers) {
      return std::vector{tasks_suite(programs, *arguments, workers)};
    });
  });
}

void add_wake(CLI::App& bench, ToolContext& context) {
  CLI::App* command = bench.add_subcommand("wake", "What idle workers use, and how soon they start a first task");
  const auto arguments = add_common(command);
  command->add_option("--trials", arguments->trials, "First tasks per round")->check(positive())->capture_default_str();
  command->callback([arguments, &context] {
    run("wake", *arguments, context, [&](const Programs& programs, unsigned workers) {
      return std::vector{wake_suite(programs, *arguments, workers)};
    });
  });
}

void add_cholesky(CLI::App& bench, ToolContext& context) {
  CLI::App* command = bench.add_subcommand("cholesky", "GFlop/s of the Cholesky factorisation, and the bound of its kernels");
  const auto arguments = add_common(command);
  command->add_option("-n", arguments->orders, "Orders of the matrices, by commas")
      ->delimiter(',')->check(positive())->capture_default_str();
  command->add_option("--nb", arguments->tiles, "Orders of their tiles, one for each order; a sixteenth unless given")
      ->delimiter(',')->check(positive());
  command->add_option("--precision", arguments->precision, "d or s")->check(CLI::IsMember({"d", "s"}))->capture_default_str();
  command->callback([arguments, &context] {
    const std::vector<unsigned> tiles = tiles_for(*arguments);
    if (tiles.size() != arguments->orders.size()) {
      context.log.error("bench cholesky: --nb gives {} tiles for the {} orders of -n", tiles.size(), arguments->orders.size());
      context.exit_status = wrong_use;
      return;
    }
    run("cholesky", *arguments, context, [&](const Programs& programs, unsigned workers) {
      std::vector<BenchSuite> suites;
      for (std::size_t i = 0; i < tiles.size(); ++i)
        suites.push_back(cholesky_suite(programs, *arguments, workers, {arguments->orders[i], tiles[i]}));
      return suites;
    });
  });
}

}  // namespace

void add_bench(CLI::App& app, ToolContext& context) {
  CLI::App* bench = app.add_subcommand("bench", "Measures Tandem beside its peers, in turns: tasks, wake or cholesky");
  bench->require_subcommand(1);
  add_tasks(*bench, context);
  add_wake(*bench, context);
  add_cholesky(*bench, context);
}

}  // namespace tandem::tools
