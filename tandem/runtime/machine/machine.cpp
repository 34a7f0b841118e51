// tandem/runtime/machine/machine.cpp: questions to a machine, and whether it is whole.
#include "tandem/runtime/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/base/exceptions.hpp"

namespace tandem::runtime {

NodeIndex Machine::add_node(MachineNode node) {
  if (nodes.size() >= kMaxNodes)
    throw UsageError(fmt::format("a machine has at most {} memories, and '{}' is one more", kMaxNodes, node.name));
  nodes.push_back(std::move(node));
  return static_cast<NodeIndex>(nodes.size() - 1);
}

void Machine::add_links(NodeIndex a, NodeIndex b, double bytes_per_ns, std::int64_t latency_ns, LinkSource source) {
  links.push_back({a, b, bytes_per_ns, latency_ns, source});
  links.push_back({b, a, bytes_per_ns, latency_ns, source});
}

void Machine::set_link(const MachineLink& link) {
  for (MachineLink& known : links)
    if (known.from == link.from && known.to == link.to) {
      known = link;
      return;
    }
  links.push_back(link);
}

void Machine::set_network(MachineNetwork network) {
  const auto known = std::ranges::find(networks, network.transport, &MachineNetwork::transport);
  if (known != networks.end()) *known = std::move(network);
  else networks.push_back(std::move(network));
}

unsigned Machine::cpu_workers() const noexcept {
  return static_cast<unsigned>(std::count_if(
      workers.begin(), workers.end(), [](const MachineWorker& worker) { return worker.kind == DeviceKind::cpu; }));
}

std::optional<NodeIndex> Machine::storage() const noexcept {
  for (NodeIndex node = 0; node < nodes.size(); ++node)
    if (nodes[node].kind == NodeKind::storage) return node;
  return {};
}

bool Machine::has_budgets() const noexcept {
  return std::any_of(nodes.begin(), nodes.end(), [](const MachineNode& node) { return node.budget != 0; });
}

bool Machine::is_mixed() const noexcept {
  return std::any_of(workers.begin(), workers.end(), [this](const MachineWorker& worker) {
    return worker.kind != workers.front().kind || worker.node != workers.front().node;
  });
}

MachineLink Machine::link(NodeIndex from, NodeIndex to) const noexcept {
  for (const MachineLink& known : links)
    if (known.from == from && known.to == to) return known;
  // A device sees a NUMA node as main memory.
  const auto is_numa = [this](NodeIndex node) { return nodes[node].kind == NodeKind::numa; };
  if (is_numa(from) != is_numa(to) && from != 0 && to != 0) {
    MachineLink like = link(is_numa(from) ? 0 : from, is_numa(to) ? 0 : to);
    like.from = from;
    like.to = to;
    return like;
  }
  return {.from = from, .to = to};
}

void Machine::check() const {
  const auto refuse = [](const std::string& why) { throw UsageError("this machine is not whole: " + why); };
  const unsigned cores = cpu_workers();
  if (cores == 0) refuse("it has no CPU worker");
  if (nodes.empty() || nodes.front().kind != NodeKind::main) refuse("its first memory is not main memory");
  for (unsigned worker = 0; worker < workers.size(); ++worker) {
    const MachineWorker& one = workers[worker];
    if ((one.kind == DeviceKind::cpu) != (worker < cores))
      refuse(fmt::format("worker {} stands before a CPU worker, which come first", worker));
    if (one.node >= nodes.size())
      refuse(fmt::format("worker {} works in memory {}, and there are {}", worker, one.node, nodes.size()));
    if (nodes[one.node].kind == NodeKind::storage)
      refuse(fmt::format("worker {} works in {}, which is storage", worker, nodes[one.node].name));
    if (one.power && !(one.power->idle_watts >= 0 && one.power->running_watts >= one.power->idle_watts &&
                       one.power->running_watts < 1e6))
      refuse(fmt::format("worker {} draws {} W while it runs a kernel, and {} W while it is idle", worker,
                         one.power->running_watts, one.power->idle_watts));
  }
  if (distance.size() != cores)
    refuse(fmt::format("it has {} CPU workers and the distances of {}", cores, distance.size()));
  for (const std::vector<unsigned>& row : distance)
    if (row.size() != cores) refuse(fmt::format("it has {} CPU workers and a row of {} distances", cores, row.size()));
  for (std::size_t i = 0; i < links.size(); ++i) {
    const MachineLink& one = links[i];
    if (one.from >= nodes.size() || one.to >= nodes.size() || one.from == one.to)
      refuse(fmt::format("a link leads from memory {} to memory {}, and there are {}", one.from, one.to, nodes.size()));
    if (!(one.bytes_per_ns > 0) || one.latency_ns < 0)
      refuse(fmt::format("the link from memory {} to memory {} has {} bytes/ns and a latency of {} ns", one.from,
                         one.to, one.bytes_per_ns, one.latency_ns));
    if (one.loaded_bytes_per_ns && !(*one.loaded_bytes_per_ns > 0))
      refuse(fmt::format("the link from memory {} to memory {} has {} bytes/ns under load", one.from, one.to,
                         *one.loaded_bytes_per_ns));
    if (one.beside_messages_bytes_per_ns && !(*one.beside_messages_bytes_per_ns > 0))
      refuse(fmt::format("the link from memory {} to memory {} has {} bytes/ns beside messages", one.from, one.to,
                         *one.beside_messages_bytes_per_ns));
    for (std::size_t j = 0; j < i; ++j)
      if (links[j].from == one.from && links[j].to == one.to)
        refuse(fmt::format("two links lead from memory {} to memory {}", one.from, one.to));
  }
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const MachineNetwork& one = networks[i];
    if (one.times.empty()) refuse(fmt::format("of messages over {} no time is known", one.transport));
    for (std::size_t j = 0; j < one.times.size(); ++j) {
      const MessageTimes& of = one.times[j];
      if (of.bytes == 0 || (j != 0 && of.bytes <= one.times[j - 1].bytes))
        refuse(fmt::format("the sizes of messages over {} do not ascend from 1 byte", one.transport));
      if (!(of.alone_ns > 0) || !(of.both_ways_ns.value_or(1) > 0) || !(of.loaded_ns.value_or(1) > 0) ||
          !(of.all_pairs_ns.value_or(1) > 0))
        refuse(fmt::format("a message of {} bytes over {} takes no time", of.bytes, one.transport));
    }
    for (std::size_t j = 0; j < i; ++j)
      if (networks[j].transport == one.transport)
        refuse(fmt::format("there are two networks of transport {}", one.transport));
  }
}

}  // namespace tandem::runtime
