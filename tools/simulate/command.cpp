// tools/simulate/command.cpp: `tandem simulate`: a program on many ranks in virtual time.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/topology.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/out_file.hpp"
#include "tools/simulate/one_run.hpp"
#include "tools/simulate/prediction.hpp"
#include "tools/simulate/processes.hpp"
#include "tools/simulate/replay.hpp"
#include "tools/simulate/scene.hpp"
#include "tools/simulate/sweep.hpp"
#include "tools/standard_output.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {
namespace {

struct SimulateArguments {
  SceneArguments scene;
  std::uint64_t seed = 1;
  std::uint32_t runs = 1;
  bool json = false;
  std::string sweep;  ///< empty: one simulation, or `runs`
  std::string csv = "sweep.csv";
  std::string replay;  ///< folder of a trace; empty: a program is simulated
  bool what_if = false;
  RankRole role;
};

/// While it lives, what the program prints goes to standard error, or nowhere.
class OutputAside {
 public:
  explicit OutputAside(bool is_shown) : kept_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)) {
    std::fflush(stdout);
    const base::FileDescriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    ::dup2(is_shown ? STDERR_FILENO : nowhere.get(), STDOUT_FILENO);
  }
  ~OutputAside() {
    std::fflush(stdout);
    ::dup2(kept_.get(), STDOUT_FILENO);
  }
  OutputAside(const OutputAside&) = delete;
  OutputAside& operator=(const OutputAside&) = delete;

 private:
  const base::FileDescriptor kept_;
};

/// "16 ranks of 36 cores each", or "2 ranks of 18 cores each, 1 rank of 24 cores and 2 devices".
std::string ranks_text(const sim::Platform& platform) {
  std::map<std::uint32_t, std::uint32_t> ranks_of;  // by kind of node
  for (std::uint32_t rank = 0; rank < platform.ranks; ++rank) ++ranks_of[platform.kind_of(rank)];
  std::vector<std::string> parts;
  for (const auto& [kind, ranks] : ranks_of) {
    const sim::Node& node = platform.nodes[kind];
    unsigned devices = 0;
    for (const sim::DeviceGroup& group : node.devices) devices += group.count;
    parts.push_back(fmt::format("{} of {}{} each", counted(ranks, "rank"),
                                counted(node.cores != 0 ? node.cores : platform.cores, "core"),
                                devices == 0 ? "" : " and " + counted(devices, "device")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void print_end(const SimulateArguments& arguments, const Scene& scene, const base::Topology& topology,
               const std::vector<double>& makespans, double host_s) {
  const sim::Platform& platform = scene.platform;
  const Prediction prediction = predict(makespans);
  const bool has_interval = makespans.size() > 1;
  if (!arguments.json) {
    fmt::print("simulated: {}{}; {:.6f} s of virtual time{}, in {:.2f} s\n", ranks_text(platform),
               scene.name.empty() ? "" : " of " + scene.name, prediction.median,
               has_interval ? fmt::format(" (median of {}; 90 % of runs: {:.6f} to {:.6f} s)", makespans.size(),
                                          prediction.low, prediction.high)
                            : "",
               host_s);
    return;
  }
  Measurement whole{.name = "program", .unit = "s", .samples = makespans};
  whole.params = {{"platform", scene.name},
                  {"ranks", platform.ranks},
                  {"ranks_per_node", platform.ranks_per_node},
                  {"cores", platform.cores},
                  {"latency_us", static_cast<double>(platform.latency_ns) * 1e-3},
                  {"bandwidth_gb_per_s", platform.bytes_per_ns},
                  {"seed", arguments.seed}};
  whole.details = {{"makespan", prediction.median}, {"host_seconds", host_s}};
  if (has_interval) {
    whole.details["low"] = prediction.low;
    whole.details["high"] = prediction.high;
  }
  print(report("simulate", topology, {whole}));
}

/// Simulates once for each seed; the first program that runs may print. Empty: one has failed, and was complained of.
std::vector<double> simulate(const SimulateArguments& arguments, const Scene& scene, const ProgramCall& call,
                             ToolContext& context) {
  std::vector<double> makespans;
  for (std::uint32_t run = 0; run < arguments.runs; ++run) {
    if (run > 0 && ::isatty(STDERR_FILENO) != 0) print_note("\rsimulation {} of {} ", run + 1, arguments.runs);
    Ended ended;
    {
      const bool is_aside = arguments.json || run > 0;
      const auto aside = is_aside ? std::make_unique<OutputAside>(run == 0) : nullptr;
      ended = simulate_once(scene, arguments.seed + run, call, context);
    }
    const std::string complaint = complaint_of(ended, scene);
    if (!complaint.empty()) context.log.error("simulate: {}", complaint);
    context.exit_status = ended.exit_code == 0 && !complaint.empty() ? failure : ended.exit_code;
    if (context.exit_status != 0) return {};
    makespans.push_back(static_cast<double>(ended.end_ns) * 1e-9);
  }
  if (arguments.runs > 1 && ::isatty(STDERR_FILENO) != 0) print_note("\r{:30}\r", "");
  return makespans;
}

/// The command of one point.
struct PointCommand {
  std::vector<std::string> words;
  std::string overrides;  ///< options of Tandem, which hold whatever the program says (`base::Config`)
};

/// Axes are options of this command by their names, {NAME} in the program's words, else options of Tandem.
PointCommand command_at(const SweepPoint& point, const std::vector<SweepAxis>& axes, const SimulateArguments& arguments,
                        const std::vector<std::string>& program) {
  const SceneArguments& scene = arguments.scene;
  std::map<std::string, std::string> own = {{"np", std::to_string(scene.ranks)},
                                            {"ranks-per-node", std::to_string(scene.ranks_per_node)},
                                            {"runs", std::to_string(arguments.runs)},
                                            {"seed", std::to_string(arguments.seed)}};
  if (!scene.platform.empty()) own["platform"] = scene.platform;
  if (scene.cores) own["cores"] = std::to_string(*scene.cores);
  if (scene.latency_us) own["latency"] = fmt::format("{}", *scene.latency_us);
  if (scene.bandwidth) own["bandwidth"] = fmt::format("{}", *scene.bandwidth);
  if (!scene.models.empty()) own["models"] = scene.models;
  if (scene.host_speed > 0) own["host-speed"] = fmt::format("{}", scene.host_speed);
  if (!scene.execute.empty()) own["execute"] = scene.execute;
  std::string overrides;
  std::vector<std::size_t> unused;
  std::vector<std::string> words = words_at(point, axes, program, unused);
  for (const std::size_t axis : unused) {
    const std::string& name = axes[axis].name;
    constexpr std::array of_this = {"np",      "ranks-per-node", "runs",   "seed",    "platform",  "cores",
                                    "latency", "bandwidth",      "models", "execute", "host-speed"};
    if (std::ranges::count(of_this, name) > 0)
      own[name] = point[axis];
    else
      overrides += (overrides.empty() ? "" : " ") + name + "=" + point[axis];
  }
  std::vector<std::string> all = {"simulate", "--json"};
  for (const auto& [name, value] : own) all.push_back("--" + name + "=" + value);
  for (const std::string& scale : scene.scales) all.push_back("--scale=" + scale);
  for (const std::string& setting : scene.settings) all.push_back("--set=" + setting);
  all.insert(all.end(), words.begin(), words.end());
  return {std::move(all), std::move(overrides)};
}

base::Result<void> run_sweep(const SimulateArguments& arguments, const ProgramCall& call, unsigned threads) {
  const auto axes = parse_sweep(arguments.sweep);
  if (!axes.ok()) return axes.error();
  const std::string title = fmt::format(
      "tandem simulate {}",
      fmt::join(command_at(SweepPoint(axes.value().size(), "*"), axes.value(), arguments, call.words).words |
                    std::views::drop(2),
                " "));
  if (title.find('\n') != std::string::npos)
    return base::Error{base::ErrorCode::invalid_argument, "--sweep: a word of the program has several lines"};
  auto table = SweepTable::open(arguments.csv, title, axes.value());
  if (!table.ok()) return table.error();
  const bool shows = ::isatty(STDERR_FILENO) != 0;
  const auto simulated = sweep(
      axes.value(), table.value(), threads,
      [&](const SweepPoint& point) {
        PointCommand command = command_at(point, axes.value(), arguments, call.words);
        auto environment = call.variables;
        if (!command.overrides.empty()) environment.emplace_back("TANDEM_OVERRIDE", std::move(command.overrides));
        return predict_by_command(std::move(command.words), environment, std::chrono::hours(24));
      },
      [shows](std::size_t done, std::size_t all) {
        if (shows) print_note("\rsimulated {} of {} ", done, all);
      });
  if (shows) print_note("\r{:40}\r", "");
  if (!simulated.ok()) return simulated.error();
  const std::filesystem::path picture = std::filesystem::path(arguments.csv).replace_extension(".svg");
  auto file = OutFile::create(picture);
  if (!file.ok()) return file.error();
  file.value().print("{}", sweep_picture(axes.value(), table.value().results()));
  if (const auto closed = file.value().close(); !closed.ok()) return closed.error();
  for (const SweepAxis& axis : axes.value()) fmt::print("{:>12} ", axis.name);
  fmt::print("{:>12}  90 % of runs\n", "seconds");
  for (const SweepPoint& point : points_of(axes.value())) {
    const Prediction& result = *table.value().find(point);
    for (const std::string& value : point) fmt::print("{:>12} ", value);
    fmt::print("{:>12.6f}  {:.6f} to {:.6f}\n", result.median, result.low, result.high);
  }
  fmt::print("{}, {}\n", arguments.csv, picture.string());
  return {};
}

/// Simulates a recorded run, for which there is nothing to start.
void run_replay(const SimulateArguments& arguments, const std::vector<std::string>& words, ToolContext& context) {
  const SceneArguments& scene = arguments.scene;
  const bool is_wrong = !words.empty() || !arguments.sweep.empty() || arguments.runs != 1 || !scene.execute.empty() ||
                        scene.host_speed > 0 || scene.ranks != 1;
  auto topology = base::Topology::discover();
  base::Result<void> done =
      is_wrong ? base::Error{base::ErrorCode::invalid_argument,
                             "--replay has the ranks and the durations of its trace: of the other options it takes "
                             "--platform, --ranks-per-node, --cores, --latency, --bandwidth, --scale, --seed, "
                             "--what-if, --json"}
      : !topology.ok() ? base::Result<void>(topology.error())
                       : replay({arguments.replay, scene, arguments.seed, arguments.what_if, arguments.json},
                                topology.value(), context);
  if (done.ok()) return;
  context.log.error("simulate: {}", done.error().message);
  context.exit_status = done.error().code == base::ErrorCode::invalid_argument ? wrong_use : failure;
}

void run(const SimulateArguments& arguments, Subcommand command, ToolContext& context) {
  const auto fail = [&](int status, const std::string& why) {
    context.log.error("simulate: {}", why);
    context.exit_status = status;
  };
  auto call = program_call(command, context);
  if (!call) return fail(wrong_use, call.error().message);
  std::vector<std::string>& words = call.value().words;
  if (!arguments.replay.empty()) return run_replay(arguments, words, context);
  if (arguments.what_if) return fail(wrong_use, "--what-if is about the run of a trace: --replay TRACE");
  if (words.empty())
    return fail(wrong_use, "which program? tandem simulate -n 4 ./app, or tandem simulate -n 4 linalg OP ...");
  if (!arguments.role.simulation.empty()) {
    context.exit_status = become_rank(arguments.role, std::move(words), context.log);
    return;
  }
  if (words.front() == "linalg") words.insert(words.begin(), "tandem");
  if (is_linalg(words) && arguments.scene.host_speed > 0)
    return fail(wrong_use, "--host-speed: the own code of linalg is not measured, since its ranks share one process");
  const auto topology = base::Topology::discover();
  if (!topology.ok()) return fail(failure, topology.error().message);
  if (!arguments.sweep.empty()) {
    const auto threads = static_cast<unsigned>(topology.value().cores().size());
    if (const auto swept = run_sweep(arguments, call.value(), threads); !swept.ok())
      fail(swept.error().code == base::ErrorCode::invalid_argument ? wrong_use : failure, swept.error().message);
    return;
  }
  const auto scene = make_scene(arguments.scene, topology.value(), context);
  if (!scene.ok()) return fail(wrong_use, scene.error().message);

  const auto begin = std::chrono::steady_clock::now();
  const std::vector<double> makespans = simulate(arguments, scene.value(), call.value(), context);
  const double host_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!makespans.empty()) print_end(arguments, scene.value(), topology.value(), makespans, host_s);
}

/// Adds the options that say what a simulation takes place on.
void add_scene(Subcommand& command, SceneArguments& scene) {
  command.add_option("-n,--np", scene.ranks, "Number of ranks").positive().show_default();
  command
      .add_option("--platform", scene.platform,
                  "File that describes the nodes and their network, or the name of one that is installed")
      .type_name("FILE|NAME");
  command.add_option("--ranks-per-node", scene.ranks_per_node, "Ranks that share a node, and its cores")
      .positive()
      .show_default();
  command.add_option("--cores", scene.cores, "Cores of each rank (default: its share of the platform's, or 1)")
      .positive();
  command
      .add_option("--latency", scene.latency_us,
                  "Time in us of a message from rank to rank (default: the platform's, or 1.5)")
      .between(0, 1e6);
  command
      .add_option("--bandwidth", scene.bandwidth,
                  "Rate in GB/s at which a rank sends and receives (default: the platform's, or 12.5)")
      .between(1e-6, 1e6);
  command
      .add_option("--set", scene.settings,
                  "A key of the platform's file, and what it says instead: remote=1.3, devices.gpu.bandwidth=6")
      .type_name("KEY=VALUE")
      .repeatable();
  command
      .add_option("--models", scene.models,
                  "Folder with the durations of kernels (default: those learnt on this machine)")
      .existing_folder();
  command
      .add_option(
          "--scale", scene.scales,
          "What if: kernel=NAME:FACTOR for the durations of a kernel, network:FACTOR for the bandwidth, latency:FACTOR")
      .type_name("WHAT:FACTOR")
      .repeatable();
  command
      .add_flag("--execute", scene.execute, "all",
                "Run the kernels as well, or those named behind =, so that data has values; their durations are those "
                "of the models all the same")
      .type_name("[=NAMES]");
  command
      .add_option("--host-speed", scene.host_speed,
                  "Let the program's own code between calls of Tandem take the processor time that it takes here, "
                  "divided by this (default: it takes none)")
      .between(1e-3, 1e3);
}

}  // namespace

void add_simulate(Subcommand app, ToolContext& context) {
  auto arguments = std::make_shared<SimulateArguments>();
  Subcommand command =
      app.add_subcommand("simulate", "Predict how long a program takes on many ranks, by running it in virtual time");
  add_scene(command, arguments->scene);
  command
      .add_option("--runs", arguments->runs,
                  "Number of simulations, each with other drawn durations, for an interval in which 90 % of runs lie")
      .between(1, 1000)
      .show_default();
  command.add_option("--seed", arguments->seed, "Seed for durations, and for the order of what happens at one time")
      .show_default();
  command
      .add_option("--sweep", arguments->sweep,
                  "Simulate a grid, such as \"n=4800:40000:3200 sched=lws,prio\": names are those of options here "
                  "(np, cores, platform ...), {NAME} in the program's words, or options of Tandem")
      .type_name("GRID");
  command
      .add_option("--csv", arguments->csv,
                  "File with the results of a sweep, which goes on with it; beside it, a picture (.svg)")
      .type_name("FILE")
      .show_default();
  command
      .add_option("--replay", arguments->replay,
                  "Simulate the run of a trace once more: its flow and its durations, on its number of workers and any "
                  "network, or with --cores, --scale and so on")
      .type_name("TRACE");
  command.add_flag("--what-if", arguments->what_if,
                   "With --replay: also with faster kernels, more cores, other schedulers and so on, each by itself");
  command.add_flag("--json", arguments->json, "Print a JSON object; what the program prints goes to standard error");
  // What this command starts as each rank.
  command.add_option("--as-rank-of", arguments->role.simulation, "").hide_from_help();
  command.add_option("--epoch", arguments->role.epoch_ns, "").hide_from_help();
  command.take_program("The program, followed by its arguments; or linalg OP ...");
  command.callback([arguments, command, &context] { run(*arguments, command, context); });
}

}  // namespace tandem::tools
