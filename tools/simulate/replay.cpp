// tools/simulate/replay.cpp: the simulation of a recorded run.
#include "tools/simulate/replay.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
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

using Change = RecordedRun::Change;

/// From the first rank's begin to the last one's end, in s.
base::Result<double> simulate(const RecordedRun& run, const sim::Platform& platform, const Change& change,
                              std::uint64_t seed) {
  sim::Simulation simulation({.platform = platform, .seed = seed});
  std::int64_t begin_ns = INT64_MAX, end_ns = 0;
  const auto outcome = simulation.run([&](std::uint32_t rank) {
    const RecordedRun::Play how{.change = change,
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

/// One thing that might be otherwise.
struct WhatIf {
  std::string what;
  sim::Platform platform;
  Change change;
  double seconds = 0;
};

/// What people ask of a run, as far as it can make a difference in this one.
std::vector<WhatIf> questions(const RecordedRun& run, const sim::Platform& platform, const Change& change) {
  std::vector<WhatIf> all;
  const auto add = [&](std::string what) -> WhatIf& {
    return all.emplace_back(WhatIf{std::move(what), platform, change});
  };
  constexpr double least_share = 0.05;
  for (const auto& [kernel, share] : run.shares()) {
    if (share < least_share) break;
    add(fmt::format("{} in half of its time", kernel)).change.factors.try_emplace(kernel, 1).first->second *= 0.5;
  }
  add("no kernel takes much longer than usual").change.has_usual_durations = true;
  add("each task is submitted at once").change.keeps_pace = false;
  if (platform.cores > 1) add("half of the cores").platform.divide_cores((platform.cores + 1) / 2);
  add("twice the cores").platform.divide_cores(2 * platform.cores);
  const auto with = [&](const char* option, const char* value) {
    if (run.option(option) == value) return;
    add(fmt::format("--tandem.{}={}", option, value)).change.options = {{option, value}};
  };
  for (const char* scheduler : {"lws", "prio", "eager"}) with("sched", scheduler);
  if (platform.ranks == 1) return all;
  WhatIf& faster = add("twice the bandwidth");
  faster.platform.bytes_per_ns *= 2;
  faster.platform.node_bytes_per_ns *= 2;
  WhatIf& sooner = add("half of the latency");
  sooner.platform.latency_ns /= 2;
  sooner.platform.node_latency_ns /= 2;
  if (platform.ranks == 2) return all;
  with("broadcast", "off");
  with("broadcast", "automatic");
  return all;
}

/// Simulates with each change; the list is then in the order of their times.
base::Result<void> answer(std::vector<WhatIf>& all, const RecordedRun& run, std::uint64_t seed) {
  const bool shows = ::isatty(STDERR_FILENO) != 0;
  for (std::size_t done = 0; done < all.size(); ++done) {
    if (shows) print_note("\rchange {} of {} ", done + 1, all.size());
    const auto seconds = simulate(run, all[done].platform, all[done].change, seed);
    if (!seconds.ok()) return base::Error{seconds.error().code, all[done].what + ": " + seconds.error().message};
    all[done].seconds = seconds.value();
  }
  if (shows) print_note("\r{:30}\r", "");
  std::ranges::stable_sort(all, {}, &WhatIf::seconds);
  return {};
}

Json json_of(const RecordedRun& run, const Scene& scene, std::uint64_t seed, double seconds, double host_s,
             const std::vector<WhatIf>& changes, const base::Topology& topology) {
  Measurement whole{.name = "replay", .unit = "s", .samples = {seconds}};
  whole.params = {{"platform", scene.name},
                  {"ranks", scene.platform.ranks},
                  {"cores", scene.platform.cores},
                  {"latency_us", static_cast<double>(scene.platform.latency_ns) * 1e-3},
                  {"bandwidth_gb_per_s", scene.platform.bytes_per_ns},
                  {"seed", seed}};
  whole.details = {
      {"makespan", seconds}, {"recorded", run.seconds()}, {"tasks", run.tasks()}, {"host_seconds", host_s}};
  std::vector<Measurement> results = {std::move(whole)};
  for (const WhatIf& change : changes) {
    Measurement& one = results.emplace_back(Measurement{.name = "what_if", .unit = "s", .samples = {change.seconds}});
    one.params = {{"change", change.what}};
    one.details = {{"makespan", change.seconds}, {"of_replay", change.seconds / seconds}};
  }
  return report("simulate", topology, results);
}

void print_text(const RecordedRun& run, const Scene& scene, double seconds, double host_s,
                const std::vector<WhatIf>& changes) {
  fmt::print("recorded: {} on {} of up to {}: {}, {:.6f} s\n", run.program(), counted(run.ranks(), "rank"),
             counted(run.workers(), "worker"), counted(run.tasks(), "task"), run.seconds());
  fmt::print("replayed: {} of {} each{}; {:.6f} s of virtual time, {:.3f} of the recorded, in {:.2f} s\n",
             counted(scene.platform.ranks, "rank"), counted(scene.platform.cores, "core"),
             scene.name.empty() ? "" : " of " + scene.name, seconds, seconds / run.seconds(), host_s);
  if (!changes.empty()) fmt::print("\n{:<46} {:>12}  change\n", "what if", "seconds");
  for (const WhatIf& change : changes)
    fmt::print("{:<46} {:>12.6f} {:>+6.1f} %\n", change.what, change.seconds, 100 * (change.seconds / seconds - 1));
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
  const Change change{.factors = scene.value().factors};
  const auto seconds = simulate(run.value(), scene.value().platform, change, arguments.seed);
  if (!seconds.ok()) return seconds.error();
  const double host_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<WhatIf> changes;
  if (arguments.what_if) changes = questions(run.value(), scene.value().platform, change);
  if (const auto answered = answer(changes, run.value(), arguments.seed); !answered.ok()) return answered.error();
  if (arguments.json)
    print(json_of(run.value(), scene.value(), arguments.seed, seconds.value(), host_s, changes, topology));
  else
    print_text(run.value(), scene.value(), seconds.value(), host_s, changes);
  return {};
}

}  // namespace tandem::tools
