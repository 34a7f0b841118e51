// tools/launcher/run_command.cpp: `tandem run`: the command line of the launcher.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include <fmt/core.h>

#include "tandem/api/report.hpp"
#include "tandem/base/units.hpp"
#include "tandem/base/core_plan.hpp"
#include "tandem/base/pu_list.hpp"
#include "tools/launcher/batch_hosts.hpp"
#include "tools/counted.hpp"
#include "tools/launcher/launcher.hpp"
#include "tools/launcher/agent.hpp"
#include "tools/launcher/plan.hpp"
#include "tools/report/page.hpp"
#include "tools/standard_output.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr const char* footer = R"(After the options: the program and its arguments. A program that uses Tandem finds the
other ranks by itself; any other program is just started N times, and can read TANDEM_JOB_RANK, TANDEM_JOB_SIZE,
TANDEM_JOB_LOCAL_RANK and TANDEM_JOB_LOCAL_SIZE.

  tandem run -n 4 ./app --its-own options
  tandem run -n 64 --host alpha,beta -x OMP_NUM_THREADS=1 ./app      32 ranks on each, over ssh
  tandem run --host alpha:8,beta:4 ./app                             12 ranks
  tandem run -n 8 --server-address 10.0.0.254 -- ./enter-namespace ./app

Rank 0 has the standard input. SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT are passed on; a second SIGINT
ends the job. When a rank fails, the others get SIGTERM, two seconds later SIGKILL, and the exit code is that of the rank, or 128
and the number of the signal that ended it. See docs/launching.md.)";

struct RunArguments {
  std::optional<std::int64_t> ranks;
  std::string hosts, hostfile;
  std::vector<std::string> exports;
  bool labels = false, no_labels = false;
  std::string bind = "none", map = "core", topology;
  std::string input = "rank0";
  bool dry_run = false;
  std::string server_address;
  std::string timeout;
  std::string folder;
  std::string report;
  bool secret_in_environment = false;
  std::string ssh;
  std::string remote_tandem;
  bool is_agent = false;
};

using Exports = std::vector<std::pair<std::string, std::string>>;

/// Reads "VAR=value", or "VAR" for its value here.
Result<Exports> read_exports(const std::vector<std::string>& texts) {
  Exports exports;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (name.empty())
      return Error{ErrorCode::invalid_argument, fmt::format("-x {} names no variable: write NAME or NAME=VALUE", text)};
    const char* const value = equals == std::string::npos ? std::getenv(name.c_str()) : text.c_str() + equals + 1;
    if (value == nullptr) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("-x {0}: the variable is not set here; set it, or write -x {0}=VALUE", name)};
    }
    exports.emplace_back(name, value);
  }
  return exports;
}

/// The place of the program's name in the whole command line. The last `count` words that are no options of Tandem are
/// the program's.
std::size_t program_position(const std::vector<std::string>& arguments, std::size_t count) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  auto at = arguments.size();
  while (count > 0 && at > 0) {
    --at;
    const bool after_dashes = arguments.begin() + static_cast<std::ptrdiff_t>(at) > end;
    if (after_dashes || !arguments[at].starts_with("--tandem.")) --count;
  }
  return at;
}

}  // namespace

Result<ProgramCall> program_call(Subcommand command, const ToolContext& context) {
  std::vector<std::string> remaining = command.remaining();
  if (!remaining.empty() && remaining.front() == "--") remaining.erase(remaining.begin());
  else if (!remaining.empty() && remaining.front().starts_with("-"))
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}; see {} --help", command.unknown_option(remaining.front()), command.name())};
  ProgramCall call;
  const auto begin = context.arguments.begin() +
                     static_cast<std::ptrdiff_t>(program_position(context.arguments, remaining.size()));
  if (!remaining.empty() && !remaining.front().empty()) call.words = {begin, context.arguments.end()};
  constexpr std::string_view prefix = "--tandem.";
  for (auto argument = context.arguments.begin(); argument != begin; ++argument) {
    if (!argument->starts_with(prefix)) continue;
    const auto equals = argument->find('=');
    const std::string name =
        argument->substr(prefix.size(), equals == std::string::npos ? equals : equals - prefix.size());
    const std::string value = equals == std::string::npos ? "true" : argument->substr(equals + 1);
    for (const base::ConfigEntry& entry : context.config.entries())  // checked before: one of them is meant
      if (entry.option->name == name) call.variables.emplace_back(entry.option->environment_name(), value);
  }
  return call;
}

namespace {

/// The variables of this host's environment that other hosts always get.
Exports own_variables() {
  Exports exports;
  for (auto& [name, value] : base::process_environment())
    if (name.starts_with("TANDEM_") && !name.starts_with("TANDEM_JOB_")) exports.emplace_back(name, value);
  return exports;
}

/// The places of ranks, and the program that starts them on other hosts.
struct Places {
  std::vector<HostRanks> ranks;
  std::string batch_system = {};              ///< empty: none
  std::vector<std::string> remote = {};       ///< command of the batch system; empty: ssh
};

Result<Places> deal(std::optional<std::uint32_t> ranks, const Result<std::vector<HostShare>>& hosts) {
  if (!hosts) return hosts.error();
  auto placed = place_ranks(ranks, hosts.value());
  if (!placed) return placed.error();
  return Places{std::move(placed).value()};
}

/// The hosts of the batch job in which this process runs; without one, this host.
Result<Places> places_of_job(std::optional<std::uint32_t> ranks) {
  auto job = batch_hosts(base::process_environment());
  if (!job) return job.error();
  if (!job.value()) {
    if (!ranks)
      return Error{ErrorCode::invalid_argument, "how many ranks? give -n N, or hosts with --host or --hostfile"};
    return Places{{{"localhost", 0, *ranks}}};
  }
  BatchHosts& batch = *job.value();
  if (const char* const here = std::getenv("SLURMD_NODENAME"))
    for (HostShare& share : batch.hosts)
      if (share.host == here) share.host = "localhost";
  auto places = deal(ranks, shares_for(ranks, batch));
  if (!places) return places.error();
  places.value().batch_system = batch.system;
  places.value().remote = batch.remote;
  return places;
}

Result<Places> places_of(const RunArguments& arguments) {
  if (arguments.ranks && (*arguments.ranks < 1 || *arguments.ranks > 1'000'000)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("-n {}: a job has from 1 to 1000000 ranks", *arguments.ranks)};
  }
  std::optional<std::uint32_t> ranks;
  if (arguments.ranks) ranks = static_cast<std::uint32_t>(*arguments.ranks);
  if (!arguments.hostfile.empty()) {
    return deal(ranks, read_hostfile(arguments.hostfile));
  }
  if (!arguments.hosts.empty()) {
    return deal(ranks, parse_hosts(arguments.hosts));
  }
  return places_of_job(ranks);
}

template <class Value>
Result<Value> chosen(const std::string& option, const std::string& text,
                     const std::vector<std::pair<std::string, Value>>& choices) {
  std::string known;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + name;
  }
  return Error{ErrorCode::invalid_argument, fmt::format("{} {}: choose one of {}", option, text, known)};
}

Result<void> read_binding(const RunArguments& arguments, LaunchOptions& options) {
  const auto bind = chosen<base::BindTo>("--bind", arguments.bind,
                                         {{"none", base::BindTo::none},
                                          {"core", base::BindTo::core},
                                          {"numa", base::BindTo::numa},
                                          {"package", base::BindTo::package}});
  if (!bind) return bind.error();
  const auto map = chosen<base::MapBy>(
      "--map-by", arguments.map,
      {{"core", base::MapBy::core}, {"numa", base::MapBy::numa}, {"package", base::MapBy::package}});
  if (!map) return map.error();
  options.bind = bind.value();
  options.map = map.value();
  return {};
}

/// Shows which ranks would start where, for `--dry-run`.
int show_plan(const LaunchOptions& options, const std::string& topology, base::Log& log) {
  const auto host = topology.empty() ? base::Topology::discover() : base::Topology::synthetic(topology);
  if (!host) return log.error("{}", host.error().message), 2;
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> hosts;  // a host may be named twice
  for (const HostRanks& place : options.places) {
    auto known = std::find_if(hosts.begin(), hosts.end(), [&](const auto& entry) { return entry.first == place.host; });
    if (known == hosts.end()) known = hosts.insert(known, {place.host, {}});
    for (std::uint32_t i = 0; i < place.count; ++i) known->second.push_back(place.first + i);
  }
  for (const auto& [name, ranks] : hosts) {
    const bool divides = options.bind == base::BindTo::none && ranks.size() > 1;
    fmt::print("{}: {} {}{}\n", name, ranks.size() == 1 ? "rank" : "ranks", base::format_pu_list(ranks),
               divides ? "; not bound: ranks of Tandem divide the cores when they start" : "");
    if (!is_this_host(name) && topology.empty()) {
      fmt::print("  the cores of this host are divided there\n");
      continue;
    }
    const base::BindTo shown = options.bind == base::BindTo::none ? base::BindTo::core : options.bind;
    auto plan = base::plan_host(host.value(), 0, static_cast<std::uint32_t>(ranks.size()), shown, options.map);
    for (std::size_t i = 0; i < ranks.size(); ++i) plan[i].rank = ranks[i];
    fmt::print("{}", base::draw_plan(host.value(), plan));
  }
  return 0;
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool find_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

/// A page about the run, made when all ranks have ended.
class JobReport {
 public:
  /// Takes the file from `--report`, or from option `report` of this process. Adds to the ranks' environment the
  /// options of traces that the user has not set.
  JobReport(const RunArguments& arguments, const ToolContext& context, Exports& environment)
      : file_(arguments.report.empty() ? context.config.get_string("report") : arguments.report) {
    if (file_.empty()) return;
    file_ = std::filesystem::absolute(file_).string();
    const auto given = [&](const char* name) {
      const auto known = std::find_if(environment.begin(), environment.end(),
                                      [&](const auto& entry) { return entry.first == name; });
      if (known != environment.end()) return known->second;
      const char* const value = std::getenv(name);
      return std::string(value != nullptr ? value : "");
    };
    environment.emplace_back("TANDEM_REPORT", "");  // ranks make no reports
    if (given("TANDEM_TRACE").empty()) environment.emplace_back("TANDEM_TRACE", "all");
    folder_ = given("TANDEM_TRACE_FOLDER");
    if (!folder_.empty()) return;
    folder_ = report_trace_folder(file_).string();
    own_folder_ = true;
    environment.emplace_back("TANDEM_TRACE_FOLDER", folder_);
  }
  /// Writes the page. False: it could not.
  bool make(base::Log& log) const {
    if (file_.empty()) return true;
    const auto written = write_report({folder_}, file_);
    if (!written) {
      log.error("no report: {}{}", written.error().message,
                std::filesystem::exists(folder_) ? "" : "; is it a program of Tandem?");
      return false;
    }
    print_note("tandem run: report: {} ({}); open it in a browser\n", file_, short_bytes(written.value().bytes));
    std::error_code ignored;
    if (own_folder_) std::filesystem::remove_all(folder_, ignored);
    return true;
  }

 private:
  std::string file_;    ///< empty: none
  std::string folder_;  ///< of the trace
  bool own_folder_ = false;
};

Result<LaunchOptions> launch_options(const RunArguments& arguments, Subcommand command, const ToolContext& context) {
  auto call = program_call(command, context);
  if (!call) return call.error();
  if (arguments.dry_run && call.value().words.empty()) call.value().words.emplace_back("-");
  if (call.value().words.empty())
    return Error{ErrorCode::invalid_argument, "which program? write it after the options: tandem run -n 2 ./app"};
  auto places = places_of(arguments);
  if (!places) return places.error();
  auto exports = read_exports(arguments.exports);
  if (!exports) return exports.error();

  LaunchOptions options;
  options.places = std::move(places.value().ranks);
  if (const auto read = read_binding(arguments, options); !read) return read.error();
  const auto input = chosen<bool>("--stdin", arguments.input, {{"rank0", true}, {"none", false}});
  if (!input) return input.error();
  options.reads_input = input.value();
  options.words = std::move(call.value().words);
  options.folder = arguments.folder;
  options.environment = std::move(call.value().variables);
  options.environment.insert(options.environment.end(), exports.value().begin(), exports.value().end());
  options.remote_environment = own_variables();
  std::uint32_t ranks = 0;
  for (const HostRanks& place : options.places) ranks += place.count;
  options.labels = arguments.labels || (!arguments.no_labels && ranks > 1);
  options.objects = !arguments.labels && isatty(STDOUT_FILENO) == 0;
  options.server_address = arguments.server_address;
  options.secret_in_environment = arguments.secret_in_environment;
  options.ssh = split(arguments.ssh.empty() ? "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=10"
                                            : arguments.ssh);
  if (arguments.ssh.empty() && !places.value().remote.empty() && find_program(places.value().remote.front())) {
    options.ssh = places.value().remote;
    options.ssh_has_shell = places.value().batch_system != "Slurm";
  }
  std::error_code unknown;
  options.remote_tandem = arguments.remote_tandem.empty()
                              ? std::filesystem::read_symlink("/proc/self/exe", unknown).string()
                              : arguments.remote_tandem;
  if (options.ssh.empty()) return Error{ErrorCode::invalid_argument, "--ssh names no program"};
  if (!arguments.timeout.empty()) {
    const auto limit = base::parse_duration_ns(arguments.timeout);
    if (!limit) return Error{limit.error().code, "--timeout: " + limit.error().message};
    options.limit_ns = limit.value();
  }
  return options;
}

void run(const RunArguments& arguments, Subcommand command, ToolContext& context) {
  if (arguments.is_agent) {
    context.exit_status = run_agent();
    return;
  }
  auto options = launch_options(arguments, command, context);
  if (!options) {
    context.log.error("{}", options.error().message);
    context.exit_status = 2;
    return;
  }
  if (arguments.dry_run) {
    context.exit_status = show_plan(options.value(), arguments.topology, context.log);
    return;
  }
  const JobReport report(arguments, context, options.value().environment);
  context.exit_status = launch(options.value(), context.log);
  if (!report.make(context.log) && context.exit_status == 0) context.exit_status = 1;
}

}  // namespace

void add_run(Subcommand app, ToolContext& context) {
  Subcommand command =
      app.add_subcommand("run", "Start a program as several ranks, on this host or on others over ssh");
  auto arguments = std::make_shared<RunArguments>();
  command.take_program("The program to start, followed by its arguments");
  command.footer(footer);
  command.add_option("-n,--np", arguments->ranks, "Number of ranks");
  command.also_accept("-np", "--np");  // as mpirun spells it
  Option hosts = command.add_option("--host", arguments->hosts,
                                    "Hosts. HOST:N runs N ranks; hosts without a number share the other ranks");
  hosts.type_name("A,B:2,...");
  command.add_option("--hostfile", arguments->hostfile, "File of hosts, one per line: NAME, NAME:RANKS or NAME slots=RANKS")
      .type_name("FILE").excludes(hosts);
  command.add_option("-x", arguments->exports,
                     "Set a variable of the environment for all ranks. Without a value: pass this host's "
                                                "value to other hosts, which otherwise get only TANDEM_ variables")
      .type_name("NAME[=VALUE]").repeatable();
  Option labelled =
      command.add_flag("--label", arguments->labels,
                       "Print output line by line, with the rank before each line, as in \"[3] text\" (the default for "
                       "several ranks; JSON that one of them prints to a file or a pipe has no labels)");
  command.add_flag("--no-label", arguments->no_labels, "Print output unchanged").excludes(labelled);
  command
      .add_option("--stdin", arguments->input,
                  "Reader of this command's standard input: rank 0 (on another host it is read ahead for that "
                  "rank), or none")
      .show_default()
      .type_name("rank0|none");
  command.add_option("--bind", arguments->bind,
                     "Bind each rank to its share of the host's cores (core), or to the NUMA nodes or packages in which it lies; none: "
                     "do not bind, ranks of Tandem divide the cores themselves").show_default().type_name("core|numa|package|none");
  command.add_option("--map-by", arguments->map,
                     "Where consecutive ranks of a host go: to neighbouring cores, or to one NUMA node or package after the other")
      .show_default().type_name("core|numa|package");
  command.add_flag("--dry-run", arguments->dry_run, "Show which rank would get which cores, and start nothing");
  command
      .add_option("--topology", arguments->topology,
                  "With --dry-run: plan for this hwloc synthetic topology, as in \"package:2 core:64 pu:1\"")
      .type_name("TEXT");
  command
      .add_option("--server-address", arguments->server_address,
                  "Address at which ranks reach this launcher, when it cannot be detected")
      .type_name("HOST[:PORT]");
  command.add_option("--timeout", arguments->timeout,
                     "End the job after this time, with exit code 124").type_name("TIME (30s, 5min)");
  command.add_option("--wdir", arguments->folder, "Working folder of the ranks").type_name("FOLDER");
  command.add_option("--report", arguments->report,
                     "Trace the job, and write a page for a browser that shows what it did and what limits it; on several hosts, into a "
                     "folder that all of them share").type_name("FILE");
  command.add_flag("--secret-in-environment", arguments->secret_in_environment,
                    "Pass the secret of the job in the environment, for wrapper programs that close descriptors");
  command.add_option("--ssh", arguments->ssh,
                     "Program that starts commands on other hosts, with its options (default: ssh, or the batch system's own)")
      .environment("TANDEM_RUN_SSH").type_name("PROGRAM");
  command.add_option("--remote-tandem", arguments->remote_tandem,
                     "Path of this command on the other hosts (default: the same path)")
      .type_name("PATH");
  command.add_flag("--agent", arguments->is_agent).hide_from_help();  // what the launcher starts on other hosts
  command.callback([arguments, command, &context] { run(*arguments, command, context); });
}

}  // namespace tandem::tools
