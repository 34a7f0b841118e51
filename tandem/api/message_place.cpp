// tandem/api/message_place.cpp: prepares the question for `choose_message_place` from cores, workers and options.
#include "tandem/api/message_place.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tandem/base/exceptions.hpp"
#include "tandem/comm/endpoint.hpp"

namespace tandem {
namespace {

using model::contention::MessagePlace;
using model::contention::MessageSituation;
using model::contention::NodeUse;

bool has_pu(const base::Topology& topology, unsigned pu) {
  return std::ranges::any_of(
      topology.cores(), [pu](const base::Core& core) { return std::ranges::find(core.pus, pu) != core.pus.end(); });
}

/// Cores of the rank without a worker, in the order of the topology.
std::vector<base::CoreId> cores_without_worker(const base::Topology& own, const std::vector<WorkerPlacement>& workers) {
  std::vector<bool> is_taken(own.cores().size());
  for (const WorkerPlacement& worker : workers) is_taken[core_of(worker, own).index()] = true;
  std::vector<base::CoreId> free_cores;
  for (const base::Core& core : own.cores())
    if (!is_taken[core.id.index()]) free_cores.push_back(core.id);
  return free_cores;
}

unsigned node_of(const base::Topology& own, base::CoreId core) { return own.cores()[core.index()].numa_node; }

/// Index in numa_nodes() of the node with the system's number; a topology that is a part of a host has them in another
/// order.
std::optional<std::size_t> place_of(const base::Topology& topology, unsigned number) {
  const auto found = std::ranges::find(topology.numa_nodes(), number, &base::NumaNode::os_index);
  if (found == topology.numa_nodes().end()) return std::nullopt;
  return static_cast<std::size_t>(found - topology.numa_nodes().begin());
}

/// Uses of the nodes in the order of the host, as models count them.
std::vector<NodeUse> uses_of(const MessageHost& host, const std::vector<WorkerPlacement>& workers,
                             const std::vector<base::CoreId>& free_cores) {
  std::vector<NodeUse> uses;
  for (const base::NumaNode& node : host.host.numa_nodes())
    uses.push_back({.number = node.os_index, .has_cores = false});
  const auto count = [&](unsigned number, unsigned NodeUse::*cores) {
    if (const auto place = place_of(host.host, number)) ++(uses[*place].*cores);
  };
  for (const base::Core& core : host.host.cores()) {
    if (const auto place = place_of(host.host, core.numa_node)) uses[*place].has_cores = true;
    if (host.share.ranks_here <= 1 || has_pu(host.own, core.pus.front())) continue;
    count(core.numa_node, &NodeUse::computing);
    count(core.numa_node, &NodeUse::of_others);
  }
  for (const WorkerPlacement& worker : workers)
    count(node_of(host.own, core_of(worker, host.own)), &NodeUse::computing);
  for (const base::CoreId core : free_cores) count(node_of(host.own, core), &NodeUse::free_cores);
  return uses;
}

/// The last core near a node; without one, the last of all.
base::CoreId core_to_reserve(const base::Topology& own, unsigned number) {
  base::CoreId last = own.cores().back().id;
  for (const base::Core& core : own.cores())
    if (core.numa_node == number) last = core.id;
  return last;
}

std::optional<std::size_t> memory_by_option(const base::Config& config, const base::Topology& own) {
  const std::string& text = config.get_string("message_node");
  if (text == "auto" || text == "off") return std::nullopt;
  std::vector<unsigned> known;
  unsigned number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, failed] = std::from_chars(text.data(), end, number);
  for (std::size_t place = 0; place < own.numa_nodes().size(); ++place) {
    known.push_back(own.numa_nodes()[place].os_index);
    if (failed == std::errc() && last == end && known.back() == number) return place;
  }
  throw StartError(
      fmt::format("option message_node: '{}' is neither auto nor off, nor one of this host's NUMA nodes: {}", text,
                  fmt::join(known, ", ")));
}

}  // namespace

MessageChoice choose_messages(const base::Config& config, const MessageHost& host) {
  const std::vector<WorkerPlacement> workers = plan_workers(host.own, host.cpu_quota, config, host.share);
  const bool are_bound =
      std::ranges::all_of(workers, [](const WorkerPlacement& worker) { return worker.core || worker.is_caller; });
  if (!config.get_bool("bind") || !host.share.has_own_cores || !are_bound)
    return {.reason = "workers are not bound to cores"};
  std::vector<base::CoreId> free_cores = cores_without_worker(host.own, workers);
  std::vector<NodeUse> uses = uses_of(host, workers, free_cores);
  MessageSituation situation{.nodes = uses, .machine = host.machine};
  if (const auto place = host.network_node ? place_of(host.host, *host.network_node) : std::nullopt)
    situation.network_node = static_cast<unsigned>(*place);
  MessagePlace place = choose_message_place(situation);
  if (config.get_bool("reserve_core") && place.memory && host.own.cores().size() > 1) {
    const base::CoreId reserved =
        core_to_reserve(host.own, uses[situation.network_node.value_or(*place.memory)].number);
    if (std::ranges::find(free_cores, reserved) == free_cores.end()) {
      NodeUse& use = *std::ranges::find(uses, node_of(host.own, reserved), &NodeUse::number);
      --use.computing;
      ++use.free_cores;
      free_cores.push_back(reserved);
      place = choose_message_place(situation);
    }
  }
  MessageChoice choice{.reason = place.reason};
  if (place.memory) choice.memory_place = place_of(host.own, uses[*place.memory].number);
  for (const base::CoreId core : free_cores)  // the last one: it is the reserved one, and far from the caller's
    if (place.thread && node_of(host.own, core) == uses[*place.thread].number)
      choice.progress_pu = host.own.cores()[core.index()].pus.front();
  return choice;
}

void check_message_options(const base::Config& config, const base::Topology& own) {
  static_cast<void>(memory_by_option(config, own));
  static_cast<void>(comm::progress_core(config));
}

std::optional<std::size_t> place_messages(base::Config& config, const MessageHost& host, base::Log& log) {
  std::optional<std::size_t> memory = memory_by_option(config, host.own);
  if (comm::progress_core(config)) return memory;
  const MessageChoice choice = choose_messages(config, host);
  const std::string number = choice.progress_pu ? std::to_string(*choice.progress_pu) : "-1";
  static_cast<void>(config.set("comm.progress_core", number, config.origin("comm.progress_core")));
  if (config.get_string("message_node") == "auto" && choice.memory_place) {
    memory = choice.memory_place;
    static_cast<void>(config.set("message_node", std::to_string(host.own.numa_nodes()[*memory].os_index),
                                 config.origin("message_node")));
  }
  log.info("option comm.progress_core: {}", choice.reason);
  return memory;
}

}  // namespace tandem
