// tandem/api/machine_option.cpp: reads the file, compares it with what was found, and takes its figures.
#include "tandem/api/machine_option.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "tandem/base/exceptions.hpp"
#include "tandem/base/host.hpp"
#include "tandem/base/units.hpp"
#include "tandem/runtime/machine/described_machine.hpp"
#include "tandem/runtime/machine/machine_file.hpp"

namespace tandem {
namespace {

/// Whether an option of the program sets the budget of `node`; options come before the file.
bool has_budget_of_option(runtime::NodeIndex node, const runtime::Machine& machine, const base::Config& config) {
  const auto is_given = [&](const char* option) { return config.origin(option) != base::Origin::default_value; };
  for (const runtime::MachineWorker& worker : machine.workers)
    if (worker.node == node) {
      if (worker.kind == DeviceKind::opencl && is_given("opencl.memory")) return true;
      if (worker.kind == DeviceKind::cuda && is_given("cuda.memory")) return true;
    }
  return false;
}

}  // namespace

void take_described_machine(runtime::World& world, const base::Config& config, base::Log& log) {
  const std::string& file = config.get_string("machine");
  if (file.empty()) return;
  const auto read = runtime::read_machine(file);
  if (!read.ok() && read.error().code == base::ErrorCode::io)
    throw StartError(
        fmt::format("option machine: {}; `tandem machine --links --save {}` writes it, or leave the option out",
                    read.error().message, file));
  if (!read.ok()) throw StartError("option machine: " + read.error().message);
  const runtime::Machine& described = read.value();
  runtime::Machine& found = world.machine;
  if (const std::string other = runtime::difference(described, found); !other.empty())
    throw StartError(fmt::format("option machine: {} describes another machine: {}; write a file for this program's workers and devices, by `tandem machine "
                                 "--links --save FILE` with the same options, or leave the option out", file, other));
  for (runtime::NodeIndex node = 0; node < found.nodes.size(); ++node) {
    const std::size_t budget = described.nodes[node].budget;
    runtime::MachineNode& here = found.nodes[node];
    if (here.name != described.nodes[node].name)
      log.info("{} is '{}' in {}", here.name, described.nodes[node].name, file);
    if (here.kind == runtime::NodeKind::device) {
      if (!has_budget_of_option(node, found, config)) here.budget = budget;
    } else if (budget != 0 && here.budget == 0) {
      throw StartError(
          fmt::format("option machine: {}: memory.{}.budget is {}, and only memories of devices take a budget from the "
                      "file; write 0 there{}",
                      file, node, base::format_bytes(static_cast<std::int64_t>(budget)),
                      node == 0 ? ", and limit main memory by option memory" : ""));
    }
  }
  runtime::take_names_and_figures(found, described);
}

runtime::LinkCurveOptions link_curve_options(const base::Topology& topology) {
  runtime::LinkCurveOptions options;
  options.bind = [&topology](int core) {
    static_cast<void>(topology.bind_this_thread(base::CoreId(static_cast<std::uint32_t>(core))));
  };
  return options;
}

void save_measured_machine(runtime::World& world, const base::Config& config, const WorldResources& resources) {
  const std::string& file = config.get_string("machine.save");
  if (file.empty()) return;
  runtime::LinkCurveOptions options = link_curve_options(*resources.topology);
  options.most_ns = 10'000'000'000;
  options.progress = [&](unsigned step, unsigned steps, std::string_view what) {
    resources.log->info("option machine.save: {}/{}: {}", step + 1, steps, what);
  };
  runtime::take_links(world.machine, runtime::measure_link_curves(world, options));
  const auto written = runtime::write_machine(file, world.machine, found_on(*resources.topology));
  if (!written.ok())
    throw StartError(
        fmt::format("option machine.save: {}; name another file, or leave the option out", written.error().message));
  resources.log->info("option machine.save: {} has {} links between {} memories", file, world.machine.links.size(),
                      world.machine.nodes.size());
}

std::string found_on(const base::Topology& topology) {
  return topology.cpu_model().empty() ? base::host_name()
                                      : fmt::format("{}, {}", base::host_name(), topology.cpu_model());
}

std::vector<comm::KnownNetwork> known_networks(const runtime::Machine& machine) {
  std::vector<comm::KnownNetwork> known;
  for (const runtime::MachineNetwork& network : machine.networks)
    known.push_back({.transport = network.transport,
                     .latency_ns = network.latency_ns(),
                     .bytes_per_ns = network.bytes_per_ns(),
                     .message_ns = [network](std::uint64_t bytes) { return network.message_ns(bytes); }});
  return known;
}

}  // namespace tandem
