// tools/simulate/command.cpp: `tandem simulate`: a program on many ranks in virtual time.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tandem/api/learnt_models.hpp"
#include "tandem/api/model_folder.hpp"
#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/model/tasks/history.hpp"
#include "tandem/runtime/task/footprint.hpp"
#include "tandem/sim/simulation.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/simulate/processes.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {
namespace {

constexpr int failure = 1, wrong_use = 2;

struct SimulateArguments {
  sim::Platform platform;
  double latency_us = 1.5;
  std::string models;  ///< empty: those of this machine
  std::uint64_t seed = 1;
  bool json = false;
  RankRole role;
};

/// Durations of kernels by what earlier runs have learnt.
runtime::Emulation durations_of(const std::shared_ptr<LearntModels>& models) {
  return [models](const runtime::EmulatedTask& task) -> std::optional<runtime::EmulatedWork> {
    const model::Estimate known = models->durations().expected_ns(task.codelet, runtime::footprint_of(task.data),
                                                                  task.device, task.implementation);
    // Few durations are a worse estimate than many, but they are durations of this kernel at this size.
    const bool is_history = known.samples > 0 && known.samples < model::History::kEnough;
    if (!known.known && !is_history) return {};
    return runtime::EmulatedWork(static_cast<std::int64_t>(known.mean_ns));
  };
}

base::Result<std::shared_ptr<LearntModels>> read_models(const SimulateArguments& arguments,
                                                        const base::Topology& topology, ToolContext& context) {
  std::filesystem::path folder = arguments.models;
  std::string machine;
  if (folder.empty()) {
    auto place = ModelFolder::place(context.config, base::process_environment());
    if (!place.ok()) return place.error();
    folder = std::move(place).value();
    machine = machine_name(topology.cpu_model());
  }
  const std::vector<runtime::WorkerSpec> one_core(1);
  return std::make_shared<LearntModels>(ModelFolder(folder, machine), one_core, context.log);
}

/// While it lives, what the program prints goes to standard error.
class OutputAside {
 public:
  OutputAside() : kept_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)) {
    std::fflush(stdout);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
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

/// Runs the words as each rank does.
int run_rank(const std::vector<std::string>& words, const ToolContext& context) {
  std::vector<std::string> own = words;
  std::vector<char*> argv;
  for (std::string& word : own) argv.push_back(word.data());
  argv.push_back(nullptr);
  return context.run(static_cast<int>(own.size()), argv.data());
}

/// How a simulation ended, whichever way its ranks ran.
struct Ended {
  int exit_code = 0;
  std::int64_t end_ns = 0;
  std::string error;
  std::vector<std::string> without_model;
};

/// Tandem's own linear algebra: all ranks in this process.
Ended run_here(const SimulateArguments& arguments, const runtime::Emulation& kernels,
               const ProgramCall& call, const ToolContext& context) {
  sim::Simulation simulation({.platform = arguments.platform, .kernels = kernels, .seed = arguments.seed});
  for (const auto& [name, value] : call.variables) ::setenv(name.c_str(), value.c_str(), 1);
  auto outcome = simulation.run([&](std::uint32_t) { return run_rank(call.words, context); });
  const int worst = *std::ranges::max_element(outcome.statuses);
  return {outcome.error.empty() ? worst : failure, outcome.end_ns, std::move(outcome.error),
          std::move(outcome.without_model)};
}

/// Any program: each rank is a process.
Ended run_in_processes(const SimulateArguments& arguments, const runtime::Emulation& kernels,
                       const ProgramCall& call, const ToolContext& context) {
  ProcessesOutcome outcome = simulate_processes(
      {.platform = arguments.platform, .kernels = kernels, .seed = arguments.seed}, call, context.log);
  return {outcome.exit_code, outcome.simulation.end_ns, std::move(outcome.simulation.error),
          std::move(outcome.simulation.without_model)};
}

void print_end(const SimulateArguments& arguments, const base::Topology& topology, double virtual_s, double host_s) {
  const sim::Platform& platform = arguments.platform;
  if (!arguments.json) {
    fmt::print("simulated: {} of {} each; {:.6f} s of virtual time, in {:.2f} s\n", counted(platform.ranks, "rank"),
               counted(platform.cores, "core"), virtual_s, host_s);
    return;
  }
  Measurement whole{.name = "program", .unit = "s", .samples = {virtual_s}};
  whole.params = {{"ranks", platform.ranks},
                  {"cores", platform.cores},
                  {"latency_us", arguments.latency_us},
                  {"bandwidth_gb_per_s", platform.bytes_per_ns},
                  {"seed", arguments.seed}};
  whole.details = {{"host_seconds", host_s}};
  print(report("simulate", topology, {whole}));
}

void run(const SimulateArguments& arguments, Subcommand command, ToolContext& context) {
  const auto fail = [&](int status, const std::string& why) {
    context.log.error("simulate: {}", why);
    context.exit_status = status;
  };
  auto call = program_call(command, context);
  if (!call) return fail(wrong_use, call.error().message);
  std::vector<std::string>& words = call.value().words;
  if (words.empty()) return fail(wrong_use, "which program? tandem simulate -n 4 ./app, or tandem simulate -n 4 linalg OP ...");
  if (!arguments.role.simulation.empty()) {
    context.exit_status = become_rank(arguments.role, std::move(words), context.log);
    return;
  }
  const bool is_own = words.front() == "linalg" ||
                      (words.size() > 1 && words.front().ends_with("tandem") && words[1] == "linalg");
  if (is_own && words.front() == "linalg") words.insert(words.begin(), "tandem");
  const auto topology = base::Topology::discover();
  if (!topology.ok()) return fail(failure, topology.error().message);
  const auto models = read_models(arguments, topology.value(), context);
  if (!models.ok()) return fail(failure, models.error().message);
  const runtime::Emulation kernels = durations_of(models.value());

  const auto begin = std::chrono::steady_clock::now();
  Ended ended;
  {
    const auto aside = arguments.json ? std::make_unique<OutputAside>() : nullptr;
    ended = is_own ? run_here(arguments, kernels, call.value(), context)
                   : run_in_processes(arguments, kernels, call.value(), context);
  }
  const double host_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!ended.error.empty()) return fail(ended.exit_code != 0 ? ended.exit_code : failure, ended.error);
  if (!ended.without_model.empty())
    return fail(failure, fmt::format("how long {} takes is not known for these sizes: run the program once with "
                                     "--tandem.models=on and the same sizes, which learns it",
                                     fmt::join(ended.without_model, ", ")));
  context.exit_status = ended.exit_code;
  if (ended.exit_code != 0) return;
  print_end(arguments, topology.value(), static_cast<double>(ended.end_ns) * 1e-9, host_s);
}

}  // namespace

void add_simulate(Subcommand app, ToolContext& context) {
  auto arguments = std::make_shared<SimulateArguments>();
  Subcommand command = app.add_subcommand(
      "simulate", "Predict how long a program takes on many ranks, by running it in virtual time");
  command.add_option("-n,--np", arguments->platform.ranks, "Number of ranks").positive().show_default();
  command.add_option("--cores", arguments->platform.cores, "Cores of each rank").positive().show_default();
  command.add_option("--latency", arguments->latency_us, "Time in us of a message from rank to rank")
      .between(0, 1e6)
      .show_default();
  command.add_option("--bandwidth", arguments->platform.bytes_per_ns, "Rate in GB/s at which a rank sends")
      .between(1e-6, 1e6)
      .show_default();
  command.add_option("--models", arguments->models,
                     "Folder with the durations of kernels (default: those learnt on this machine)")
      .existing_folder();
  command.add_option("--seed", arguments->seed, "Seed for the order of what happens at one time").show_default();
  command.add_flag("--json", arguments->json, "Print a JSON object; what the program prints goes to standard error");
  // What this command starts as each rank.
  command.add_option("--as-rank-of", arguments->role.simulation, "").hide_from_help();
  command.add_option("--epoch", arguments->role.epoch_ns, "").hide_from_help();
  command.take_program("The program, followed by its arguments; or linalg OP ...");
  command.callback([arguments, command, &context]() mutable {
    arguments->platform.latency_ns = static_cast<std::int64_t>(arguments->latency_us * 1e3);
    run(*arguments, command, context);
  });
}

}  // namespace tandem::tools
