// tools/simulate/one_run.cpp: the two ways of simulating a program, and what may be wrong with it.
#include "tools/simulate/one_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tandem/sim/simulation.hpp"
#include "tools/simulate/processes.hpp"
#include "tools/standard_output.hpp"

namespace tandem::tools {
namespace {

/// Runs the words as each rank does.
int run_rank(const std::vector<std::string>& words, const ToolContext& context) {
  std::vector<std::string> own = words;
  std::vector<char*> argv;
  for (std::string& word : own) argv.push_back(word.data());
  argv.push_back(nullptr);
  return context.run(static_cast<int>(own.size()), argv.data());
}

/// Shows the virtual time of a simulation that lasts, where a person looks.
std::function<void(std::int64_t)> shown_progress() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [last = std::chrono::steady_clock::now()](std::int64_t now_ns) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::seconds(1)) return;
    last = now;
    print_note("\rvirtual time: {:.6f} s \r", static_cast<double>(now_ns) * 1e-9);
  };
}

/// Tandem's own linear algebra: all ranks in this process.
Ended run_here(const Scene& scene, std::uint64_t seed, const ProgramCall& call, const ToolContext& context) {
  for (const auto& [name, value] : call.variables) ::setenv(name.c_str(), value.c_str(), 1);
  sim::Simulation simulation({.platform = scene.platform,
                              .kernels = scene.kernels,
                              .seed = seed,
                              .execution = scene.execution,
                              .progress = shown_progress()});
  auto outcome = simulation.run([&](std::uint32_t) { return run_rank(call.words, context); });
  const int worst = *std::ranges::max_element(outcome.statuses);
  return {outcome.error.empty() ? worst : failure, outcome.end_ns, std::move(outcome.error), std::move(outcome.kernels),
          std::move(outcome.without_model)};
}

/// Any program: each rank is a process.
Ended run_in_processes(const Scene& scene, std::uint64_t seed, const ProgramCall& call, const ToolContext& context) {
  ProcessesOutcome outcome = simulate_processes({.platform = scene.platform,
                                                 .kernels = scene.kernels,
                                                 .seed = seed,
                                                 .execution = scene.execution,
                                                 .host_speed = scene.host_speed,
                                                 .progress = shown_progress()},
                                                call, context.log);
  auto& simulation = outcome.simulation;
  if (outcome.exit_code != 0 && simulation.broken_ns != base::kNever)
    context.log.error("simulate: that was at {:.6f} s of virtual time{}",
                      static_cast<double>(simulation.broken_ns) * 1e-9,
                      scene.execution == sim::Execution::none
                          ? "; kernels did not run, so what they write had no values (--execute runs them)"
                          : "");
  const int code = outcome.exit_code == 0 && !simulation.error.empty() ? failure : outcome.exit_code;
  return {code, simulation.end_ns, std::move(simulation.error), std::move(simulation.kernels),
          std::move(simulation.without_model)};
}

}  // namespace

bool is_linalg(const std::vector<std::string>& words) {
  return words.size() > 1 && words.front().ends_with("tandem") && words[1] == "linalg";
}

Ended simulate_once(const Scene& scene, std::uint64_t seed, const ProgramCall& call, const ToolContext& context) {
  return (is_linalg(call.words) ? run_here : run_in_processes)(scene, seed, call, context);
}

std::string complaint_of(const Ended& ended, const Scene& scene) {
  if (!ended.error.empty()) return ended.error;
  if (!ended.without_model.empty())
    return fmt::format(
        "how long {} takes is not known for these sizes, nor for those within a factor of four: `tandem calibrate` "
        "learns it from runs of the program here, as does one run with --tandem.models=on; or write it into a file for "
        "--platform",
        fmt::join(ended.without_model, ", "));
  for (const auto& [name, factor] : scene.factors)
    if (auto wrong = complaint_of_kernel("--scale", name, ended.kernels); !wrong.empty()) return wrong;
  for (const std::string& name : scene.executed)
    if (auto wrong = complaint_of_kernel("--execute", name, ended.kernels); !wrong.empty()) return wrong;
  return {};
}

}  // namespace tandem::tools
