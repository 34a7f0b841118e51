// tools/simulate/scene.cpp: platforms by name, durations that were learnt, and factors.
#include "tools/simulate/scene.hpp"

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tandem/api/learnt_models.hpp"
#include "tandem/api/model_folder.hpp"
#include "tandem/base/number_of.hpp"
#include "tandem/model/tasks/history.hpp"
#include "tandem/runtime/task/footprint.hpp"
#include "tandem/sim/platform_file.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;

using Factors = std::map<std::string, double, std::less<>>;  ///< by codelet

/// The file of a platform: as given, else among those beside the installed command, else among those of the sources.
Result<fs::path> platform_file(const std::string& given) {
  std::error_code error;
  if (given.find('/') != std::string::npos || given.ends_with(".toml")) return fs::path(given);
  std::set<std::string> names;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& folder :
       {(own / TANDEM_PLATFORMS_FROM_BIN).lexically_normal(), fs::path(TANDEM_SOURCE_PLATFORMS)})
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() != ".toml") continue;
      if (entry.path().stem() == given) return entry.path();
      names.insert(entry.path().stem());
    }
  return Error{ErrorCode::not_found,
               fmt::format("there is no platform {}; installed are {}; a file of yours ends with .toml", given,
                           fmt::join(names, ", "))};
}

sim::KernelTimes learnt_times(const std::shared_ptr<LearntModels>& models) {
  return [models](const runtime::EmulatedTask& task) -> std::optional<sim::KernelTime> {
    const model::Estimate known = models->durations().expected_ns(task.codelet, runtime::footprint_of(task.data),
                                                                  task.device, task.implementation);
    // Few durations are a worse estimate than many, but they are durations of this kernel at this size.
    const bool is_history = known.samples > 0 && known.samples < model::History::kEnough;
    if (!known.known && !is_history) return {};
    return sim::KernelTime{.mean_ns = known.mean_ns,
                           .deviation_ns = known.deviation_ns,
                           .mean_error_ns = known.deviation_ns / std::sqrt(static_cast<double>(known.samples))};
  };
}

Result<std::shared_ptr<LearntModels>> read_models(const std::string& given, const base::Topology& topology,
                                                  ToolContext& context) {
  fs::path folder = given;
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

/// Applies factors of the network to the platform, and returns those of kernels.
Result<Factors> apply(const std::vector<std::string>& scales, sim::Platform& platform) {
  Factors kernels;
  constexpr std::string_view of_kernel = "kernel=";
  for (const std::string& text : scales) {
    const auto colon = text.rfind(':');
    const std::string_view what = std::string_view(text).substr(0, colon);
    const double factor =
        colon == text.npos ? 0 : base::number_of<double>(std::string_view(text).substr(colon + 1)).value_or(0);
    const bool is_known = what == "network" || what == "latency" || (what.starts_with(of_kernel) && what != of_kernel);
    if (!(factor > 0 && factor <= 1e6) || !is_known)
      return Error{ErrorCode::invalid_argument,
                   fmt::format("--scale {}: write kernel=NAME:FACTOR, network:FACTOR or latency:FACTOR", text)};
    if (what == "network")
      platform.bytes_per_ns *= factor;
    else if (what == "latency")
      platform.latency_ns = std::llround(static_cast<double>(platform.latency_ns) * factor);
    else
      kernels[std::string(what.substr(of_kernel.size()))] = factor;
  }
  return kernels;
}

sim::KernelTimes kernel_times(sim::DescribedPlatform described, sim::KernelTimes learnt, Factors factors) {
  return [described = std::move(described), learnt = std::move(learnt),
          factors = std::move(factors)](const runtime::EmulatedTask& task) {
    auto time = described.time_of(task);
    if (!time) time = learnt(task);
    const auto factor = factors.find(task.codelet);
    if (time && factor != factors.end())
      for (double* const value : {&time->mean_ns, &time->deviation_ns, &time->mean_error_ns}) *value *= factor->second;
    return time;
  };
}

}  // namespace

Result<Scene> make_scene(const SceneArguments& arguments, const base::Topology& topology, ToolContext& context) {
  sim::DescribedPlatform described;
  if (!arguments.platform.empty()) {
    const auto file = platform_file(arguments.platform);
    if (!file.ok()) return file.error();
    auto read = sim::read_platform(file.value());
    if (!read.ok()) return read.error();
    described = std::move(read).value();
  }
  Scene scene;
  scene.name = described.name;
  scene.platform = described.platform;
  scene.platform.ranks = arguments.ranks;
  if (arguments.cores) scene.platform.cores = *arguments.cores;
  if (arguments.latency_us) scene.platform.latency_ns = std::llround(*arguments.latency_us * 1e3);
  if (arguments.bandwidth) scene.platform.bytes_per_ns = *arguments.bandwidth;
  auto factors = apply(arguments.scales, scene.platform);
  if (!factors.ok()) return factors.error();
  for (const auto& [name, factor] : factors.value()) scene.scaled.push_back(name);
  auto models = read_models(arguments.models, topology, context);
  if (!models.ok()) return models.error();
  scene.kernels = kernel_times(std::move(described), learnt_times(models.value()), std::move(factors).value());
  return scene;
}

}  // namespace tandem::tools
