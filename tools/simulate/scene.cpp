// tools/simulate/scene.cpp: platforms by name, durations that were learnt, and factors.
#include "tools/simulate/scene.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <ranges>
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
#include "tandem/sim_rank/node_memories.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;

/// Sizes that are so many times larger or smaller than the measured ones are not known.
constexpr double kFurthest = 4;

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

/// The file's, with the settings of the command line; without a file, a platform of defaults.
Result<sim::DescribedPlatform> described_platform(const SceneArguments& arguments) {
  sim::PlatformSettings settings;
  for (const std::string& setting : arguments.settings) {
    const auto equal = setting.find('=');
    if (equal == 0 || equal == setting.npos)
      return Error{ErrorCode::invalid_argument, fmt::format("--set {}: write KEY=VALUE, as remote=1.3", setting)};
    settings.emplace_back(setting.substr(0, equal), setting.substr(equal + 1));
  }
  if (arguments.platform.empty()) return sim::parse_platform("", "no platform", {}, settings);
  const auto file = platform_file(arguments.platform);
  if (!file.ok()) return file.error();
  return sim::read_platform(file.value(), settings);
}

/// Durations that were learnt with so many busy cores.
using ModelsByCores = std::map<unsigned, std::shared_ptr<LearntModels>>;

sim::KernelTimes learnt_times(ModelsByCores all) {
  return [all = std::move(all)](const runtime::EmulatedTask& task, std::uint32_t) -> std::optional<sim::KernelTime> {
    std::optional<sim::KernelTime> time;
    std::vector<runtime::SlowDown::Point> points;
    for (const auto& [cores, models] : all) {
      const runtime::DurationModels& durations = models->durations();
      const model::Footprint footprint = runtime::footprint_of(task.data);
      const auto with_these = time_of(durations.overall_ns(task.codelet, footprint, task.device, task.implementation),
                                      durations.expected_ns(task.codelet, footprint, task.device, task.implementation));
      if (!with_these) continue;
      points.push_back({.busy = cores, .factor = with_these->mean_ns / (time ? time : with_these)->mean_ns});
      if (!time) time = with_these;
    }
    if (points.size() > 1) time->slow_down = runtime::SlowDown(std::move(points));
    return time;
  };
}

/// The models of a folder: one for each number of busy cores where it has folders 1, 2 and so on, else those in it.
ModelsByCores models_in(const fs::path& folder, const std::string& machine, base::Log& log) {
  const std::vector<runtime::WorkerSpec> one_core(1);
  ModelsByCores all;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const auto cores = base::number_of<unsigned>(entry.path().filename().string());
    if (cores && *cores > 0 && entry.is_directory(error))
      all.emplace(*cores, std::make_shared<LearntModels>(ModelFolder(entry.path(), machine), one_core, log));
  }
  if (all.empty()) all.emplace(1, std::make_shared<LearntModels>(ModelFolder(folder, machine), one_core, log));
  return all;
}

/// By option, else those of the platform, else those of this machine.
Result<ModelsByCores> read_models(const std::string& given, const sim::DescribedPlatform& described,
                                  const base::Topology& topology, ToolContext& context) {
  const fs::path folder = given.empty() ? described.models : fs::path(given);
  if (!folder.empty()) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
      return Error{ErrorCode::not_found, fmt::format("there is no folder of models {}", folder.string())};
    return models_in(folder, "", context.log);
  }
  auto place = ModelFolder::place(context.config, base::process_environment());
  if (!place.ok()) return place.error();
  return models_in(place.value(), machine_name(topology.cpu_model()), context.log);
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

/// Separated by commas.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (const auto part : std::views::split(text, ','))
    if (!part.empty()) names.emplace_back(part.begin(), part.end());
  return names;
}

sim::KernelTimes kernel_times(sim::DescribedPlatform described, sim::KernelTimes learnt, const Scene& scene) {
  return
      [described = std::move(described), learnt = std::move(learnt), factors = scene.factors, platform = scene.platform,
       execution = scene.execution, executed = scene.executed](const runtime::EmulatedTask& task, std::uint32_t node) {
        auto time = described.time_of(task, node);
        if (!time) time = learnt(task, node);
        const auto factor = factors.find(task.codelet);
        if (time && factor != factors.end())
          for (double* const value : {&time->mean_ns, &time->deviation_ns, &time->mean_error_ns})
            *value *= factor->second;
        // What was measured beside others holds their contention.
        if (time && time->slow_down.points().empty()) time->bytes = sim::moved_bytes(task, time->mean_ns, platform);
        if (time) time->computes = execution == sim::Execution::all || std::ranges::count(executed, task.codelet) > 0;
        return time;
      };
}

}  // namespace

std::string complaint_of_kernel(std::string_view option, const std::string& name, const std::vector<std::string>& ran) {
  if (std::ranges::count(ran, name) > 0) return {};
  return fmt::format("{}: no kernel {} has run; there are: {}", option, name, fmt::join(ran, ", "));
}

std::optional<sim::KernelTime> time_of(const model::Estimate& estimate) {
  // Few durations are a worse estimate than many, but they are durations of this kernel at this size.
  const bool is_history = estimate.samples > 0 && estimate.samples < model::History::kEnough;
  if ((!estimate.known && !is_history) || estimate.beyond > kFurthest) return {};
  const double of_samples = estimate.deviation_ns / std::sqrt(static_cast<double>(estimate.samples));
  const double of_one =
      estimate.deviation_ns * estimate.deviation_ns - estimate.law_error_ns * estimate.law_error_ns;
  return sim::KernelTime{.mean_ns = estimate.mean_ns,
                         .deviation_ns = std::sqrt(std::max(of_one, 0.0)),
                         .mean_error_ns = std::max(estimate.law_error_ns, of_samples)};
}

std::optional<sim::KernelTime> time_of(const model::Estimate& all, const model::Estimate& last) {
  auto time = time_of(all);
  if (const auto now = time_of(last); time && now)
    time->deviation_ns = now->deviation_ns / now->mean_ns * time->mean_ns;
  return time;
}

Result<Scene> make_scene(const SceneArguments& arguments, const base::Topology& topology, ToolContext& context) {
  auto read = described_platform(arguments);
  if (!read.ok()) return read.error();
  sim::DescribedPlatform described = std::move(read).value();
  Scene scene;
  scene.name = described.name;
  scene.platform = described.platform;
  scene.platform.ranks = arguments.ranks;
  scene.platform.ranks_per_node = arguments.ranks_per_node;
  scene.platform.divide_cores(arguments.cores);
  if (arguments.latency_us) scene.platform.latency_ns = std::llround(*arguments.latency_us * 1e3);
  if (arguments.bandwidth) scene.platform.bytes_per_ns = *arguments.bandwidth;
  auto factors = apply(arguments.scales, scene.platform);
  if (!factors.ok()) return factors.error();
  scene.factors = std::move(factors).value();
  auto models = read_models(arguments.models, described, topology, context);
  if (!models.ok()) return models.error();
  scene.host_speed = arguments.host_speed;
  if (arguments.execute == "all") {
    scene.execution = sim::Execution::all;
  } else if (!arguments.execute.empty()) {
    scene.execution = sim::Execution::some;
    scene.executed = names_in(arguments.execute);
  }
  scene.kernels =
      kernel_times(std::move(described), learnt_times(std::move(models).value()), scene);
  return scene;
}

}  // namespace tandem::tools
