// tools/simulate/replay.cpp: the simulation of a recorded run.
#include "tools/simulate/replay.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tandem/sim/simulation.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/simulate/recorded_run.hpp"
#include "tools/standard_output.hpp"

namespace tandem::tools {

namespace {

/// From the first rank's begin to the last one's end, in s.
base::Result<double> simulate(const RecordedRun& run, const Scene& scene, std::uint64_t seed) {
  sim::Simulation simulation({.platform = scene.platform, .seed = seed});
  std::int64_t begin_ns = INT64_MAX, end_ns = 0;
  const auto outcome = simulation.run([&](std::uint32_t rank) {
    const RecordedRun::Play how{.factors = scene.factors,
                                .sleep = [&](std::int64_t ns) { simulation.sleep(rank, ns); },
                                .now_ns = [&] { return simulation.now_ns(); }};
    const auto [from_ns, to_ns] = run.play(rank, how);
    begin_ns = std::min(begin_ns, from_ns);
    end_ns = std::max(end_ns, to_ns);
    return 0;
  });
  if (!outcome.error.empty()) return base::Error{base::ErrorCode::io, outcome.error};
  return static_cast<double>(end_ns - begin_ns) * 1e-9;
}

void print_replay(const RecordedRun& run, const Scene& scene, const ReplayArguments& arguments,
                  const base::Topology& topology, double seconds, double host_s) {
  if (!arguments.json) {
    fmt::print("recorded: {} on {} of up to {}: {}, {:.6f} s\n", run.program(), counted(run.ranks(), "rank"),
               counted(run.workers(), "worker"), counted(run.tasks(), "task"), run.seconds());
    fmt::print("replayed: {} of {} each{}; {:.6f} s of virtual time, {:.3f} of the recorded, in {:.2f} s\n",
               counted(scene.platform.ranks, "rank"), counted(scene.platform.cores, "core"),
               scene.name.empty() ? "" : " of " + scene.name, seconds, seconds / run.seconds(), host_s);
    return;
  }
  Measurement whole{.name = "replay", .unit = "s", .samples = {seconds}};
  whole.params = {{"platform", scene.name},
                  {"ranks", scene.platform.ranks},
                  {"cores", scene.platform.cores},
                  {"latency_us", static_cast<double>(scene.platform.latency_ns) * 1e-3},
                  {"bandwidth_gb_per_s", scene.platform.bytes_per_ns},
                  {"seed", arguments.seed}};
  whole.details = {
      {"makespan", seconds}, {"recorded", run.seconds()}, {"tasks", run.tasks()}, {"host_seconds", host_s}};
  print(report("simulate", topology, {whole}));
}

}  // namespace

base::Result<void> replay(ReplayArguments arguments, const base::Topology& topology, ToolContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  const auto run = RecordedRun::read(arguments.trace);
  if (!run.ok()) return run.error();
  arguments.scene.ranks = run.value().ranks();
  if (!arguments.scene.cores) arguments.scene.cores = run.value().workers();
  const auto scene = make_scene(arguments.scene, topology, context);
  if (!scene.ok()) return scene.error();
  const std::vector<std::string> kernels = run.value().kernels();
  for (const auto& [name, factor] : scene.value().factors)
    if (auto wrong = complaint_of_kernel("--scale", name, kernels); !wrong.empty())
      return base::Error{base::ErrorCode::invalid_argument, std::move(wrong)};
  const auto seconds = simulate(run.value(), scene.value(), arguments.seed);
  if (!seconds.ok()) return seconds.error();
  const double host_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  print_replay(run.value(), scene.value(), arguments, topology, seconds.value(), host_s);
  return {};
}

}  // namespace tandem::tools
