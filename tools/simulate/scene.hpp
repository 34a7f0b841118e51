// tools/simulate/scene.hpp: what a simulation takes place on: a platform, and durations of kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/model/tasks/estimate.hpp"
#include "tandem/sim_rank/kernel_times.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {

/// What a person says of it on the command line.
struct SceneArguments {
  std::uint32_t ranks = 1;
  std::uint32_t ranks_per_node = 1;
  std::string platform;  ///< a file, or the name of one that is installed; empty: none
  // Before what the platform's file says.
  std::optional<std::uint32_t> cores;
  std::optional<double> latency_us, bandwidth;  ///< the latter in GB/s
  std::vector<std::string> settings;            ///< "KEY=VALUE" of the platform's file
  std::string models;                           ///< folder; empty: that of this machine
  std::vector<std::string> scales;              ///< "kernel=NAME:FACTOR", "network:FACTOR", "latency:FACTOR"
  std::string execute;                          ///< names of kernels, or "all"; empty: none runs
  double host_speed = 0;                        ///< 0: own code takes no time
};

using Factors = std::map<std::string, double, std::less<>>;  ///< of durations, by kernel

struct Scene {
  std::string name;  ///< of the platform; empty: it has none
  sim::Platform platform;
  /// By the platform's file, else by what runs on this machine have learnt; times the factors.
  sim::KernelTimes kernels;
  Factors factors;
  sim::Execution execution = sim::Execution::none;
  double host_speed = 0;              ///< see `sim::RankPlace`
  std::vector<std::string> executed;  ///< names of the kernels that run, if some do
};

/// What is wrong with a kernel that an option names, among those that ran; empty: nothing.
std::string complaint_of_kernel(std::string_view option, const std::string& name, const std::vector<std::string>& ran);

/// What is known of a kernel's duration. The error of a law's mean is one of all durations of that size. Nothing: too
/// little was measured, or the size is more than four times larger or smaller than all that were.
std::optional<sim::KernelTime> time_of(const model::Estimate& estimate);
/// What is known of a kernel's duration in other runs: the mean of all durations, around which tasks differ as the last
/// ones do. All durations differ by times in which the whole machine was slow, and by rare long pauses: if each task
/// drew from them, most would be much shorter than the mean. Nothing: as above.
std::optional<sim::KernelTime> time_of(const model::Estimate& all, const model::Estimate& last);

/// Errors: those of the platform's file and of the models' folder, and invalid_argument for a factor.
base::Result<Scene> make_scene(const SceneArguments& arguments, const base::Topology& topology, ToolContext& context);

}  // namespace tandem::tools
