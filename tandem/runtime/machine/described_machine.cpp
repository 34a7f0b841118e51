// tandem/runtime/machine/described_machine.cpp: compares two machines, and copies figures.
#include "tandem/runtime/machine/described_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tandem/runtime/machine/machine_file.hpp"

namespace tandem::runtime {
namespace {

/// Difference such as "it has 4 workers of kind cpu, and this program has 2"; empty: the counts are equal.
template <class Items>
std::string count_difference(const Items& described, const Items& found, const char* one, const char* several) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
  for (const auto& item : described) ++counts[std::string(word_of(item.kind))].first;
  for (const auto& item : found) ++counts[std::string(word_of(item.kind))].second;
  for (const auto& [kind, count] : counts)
    if (count.first != count.second)
      return fmt::format("it has {} {} of kind {}, and this program has {}", count.first,
                         count.first == 1 ? one : several, kind, count.second);
  return {};
}

}  // namespace

std::string difference(const Machine& described, const Machine& found) {
  if (std::string memories = count_difference(described.nodes, found.nodes, "memory", "memories"); !memories.empty())
    return memories;
  if (std::string workers = count_difference(described.workers, found.workers, "worker", "workers"); !workers.empty())
    return workers;
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    const MachineNode &there = described.nodes[i], &here = found.nodes[i];
    if (there.kind != here.kind)
      return fmt::format("its memory {} is of kind {}, and that of this program of kind {}", i, word_of(there.kind),
                         word_of(here.kind));
    if (there.kind == NodeKind::numa && there.numa_node != here.numa_node)
      return fmt::format("its memory {} is NUMA node {}, and that of this program is NUMA node {}, counted from 0", i,
                         there.numa_node, here.numa_node);
  }
  for (std::size_t i = 0; i < found.workers.size(); ++i) {
    const MachineWorker &there = described.workers[i], &here = found.workers[i];
    if (there.kind != here.kind)
      return fmt::format("its worker {} is of kind {}, and that of this program of kind {}", i, word_of(there.kind),
                         word_of(here.kind));
    if (there.node != here.node)
      return fmt::format("its worker {} works in memory {}, and that of this program in memory {}", i, there.node,
                         here.node);
  }
  return {};
}

void take_names_and_figures(Machine& found, const Machine& described) {
  for (std::size_t i = 0; i < found.nodes.size(); ++i) found.nodes[i].name = described.nodes[i].name;
  for (const MachineLink& link : described.links) found.set_link(link);
  for (const MachineNetwork& network : described.networks) found.set_network(network);
  for (std::size_t i = 0; i < found.workers.size(); ++i)
    if (described.workers[i].power) found.workers[i].power = described.workers[i].power;
}

}  // namespace tandem::runtime
