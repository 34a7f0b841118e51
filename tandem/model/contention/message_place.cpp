// tandem/model/contention/message_place.cpp: tries all NUMA nodes.
#include "tandem/model/contention/message_place.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace tandem::model::contention {
namespace {

/// The number of a node if the nodes of `socket` come first and those of the first socket take their places.
unsigned renumbered(unsigned node, unsigned socket, unsigned per_socket) noexcept {
  const unsigned its_socket = node / per_socket, within = node % per_socket;
  if (its_socket == socket) return within;
  return its_socket == 0 ? socket * per_socket + within : node;
}

/// The model for cores of another socket: its buses are like those of the first one, and the network's bandwidth
/// belongs to a node.
SoftMachine seen_from(const SoftMachine& machine, unsigned socket, unsigned nodes) {
  SoftMachine seen = machine;
  seen.network_mb_s.assign(std::max(nodes, (socket + 1) * machine.nodes_per_socket), 0);
  for (unsigned node = 0; node < nodes; ++node)
    seen.network_mb_s[renumbered(node, socket, machine.nodes_per_socket)] =
        predict(machine, {.cores = 1, .placement = {.computation = node, .communication = node}})
            .communication_alone_mb_s;
  return seen;
}

double cost_of(const Bandwidths& b) { return cost_of_message(b, b.computation_alone_mb_s).sum(); }

/// The best node for the thread, whether or not a core is free there.
std::optional<unsigned> wanted_for_thread(const MessageSituation& situation, const MessagePlace& place) {
  return situation.network_node ? situation.network_node : place.memory;
}

/// The nearest node to `wanted` with a free core.
std::optional<unsigned> nearest_free(const MessageSituation& situation, unsigned wanted,
                                     std::optional<unsigned> memory) {
  const unsigned per_socket = situation.machine != nullptr ? situation.machine->machine.nodes_per_socket : 1;
  const auto distance = [&](unsigned node) {
    return std::tuple(node != wanted, node / per_socket != wanted / per_socket, node != memory, node);
  };
  std::optional<unsigned> nearest;
  for (unsigned node = 0; node < situation.nodes.size(); ++node)
    if (situation.nodes[node].free_cores > 0 && (!nearest || distance(node) < distance(*nearest))) nearest = node;
  return nearest;
}

std::string about_thread(const MessageSituation& situation, const MessagePlace& place) {
  const auto wanted = wanted_for_thread(situation, place);
  const auto number = [&](unsigned node) { return situation.nodes[node].number; };
  const char* const why = situation.network_node ? "where the network card is" : "where that memory is";
  if (place.thread == wanted)
    return fmt::format("the progress thread has a free core of NUMA node {}, {}", number(*wanted), why);
  if (place.thread)
    return fmt::format("the progress thread has a free core of NUMA node {}, since NUMA node {}, {}, has none",
                       number(*place.thread), number(*wanted), why);
  return "the progress thread has no core of its own, since workers have all cores";
}

std::string about_memory(const MessageSituation& situation, const MessagePlace& place) {
  const std::span<const NodeUse> nodes = situation.nodes;
  std::string text = fmt::format("what messages bring lies on NUMA node {}", nodes[*place.memory].number);
  if (situation.machine == nullptr)
    return text + ", where the network card is, since there is no model of memory contention";
  const auto rates = [](const Bandwidths& b) {
    return fmt::format("messages have {:.1f} GB/s and computing cores {:.1f}", b.communication_mb_s / 1e3,
                       b.computation_mb_s / 1e3);
  };
  text += fmt::format(": beside all computing cores, {} there by the model", rates(place.predicted));
  if (place.memory == place.usual_memory) return text + ", and no other node is better by 2 % or more";
  return text + fmt::format("; on NUMA node {} {}", nodes[place.usual_memory].number, rates(place.usual));
}

}  // namespace

Bandwidths bandwidths_beside_messages(const StoredMachine& machine, std::span<const NodeUse> nodes, unsigned memory) {
  const unsigned per_socket = machine.machine.nodes_per_socket, count = static_cast<unsigned>(nodes.size());
  Bandwidths all;
  bool is_first = true;
  for (unsigned node = 0; node < count; ++node) {
    if (nodes[node].computing == 0) continue;
    const unsigned socket = node / per_socket;
    const Bandwidths group = predict(seen_from(machine.machine, socket, count),
                                     {.cores = std::min(nodes[node].computing, machine.cores),
                                      .placement = {.computation = renumbered(node, socket, per_socket),
                                                    .communication = renumbered(memory, socket, per_socket)}});
    all.computation_alone_mb_s += group.computation_alone_mb_s;
    all.computation_mb_s += group.computation_mb_s;
    all.communication_alone_mb_s = group.communication_alone_mb_s;
    all.communication_mb_s =
        is_first ? group.communication_mb_s : std::min(all.communication_mb_s, group.communication_mb_s);
    is_first = false;
  }
  if (is_first)
    all.communication_alone_mb_s = all.communication_mb_s =
        predict(machine.machine, {.placement = {memory, memory}}).communication_alone_mb_s;
  return all;
}

MessagePlace choose_message_place(const MessageSituation& situation) {
  const std::span<const NodeUse> nodes = situation.nodes;
  MessagePlace place;
  if (nodes.size() < 2) {
    place.reason = "there is one NUMA node";
    return place;
  }
  const auto most = std::ranges::max_element(nodes, {},
                                             [](const NodeUse& use) { return use.computing - use.of_others; });
  place.usual_memory = situation.network_node.value_or(static_cast<unsigned>(most - nodes.begin()));
  if (situation.machine != nullptr) {
    place.memory = place.usual_memory;
    place.usual = place.predicted = bandwidths_beside_messages(*situation.machine, nodes, place.usual_memory);
    double least = cost_of(place.usual) * (1 - least_gain);
    for (unsigned node = 0; node < nodes.size(); ++node) {
      if (!nodes[node].has_cores) continue;
      const Bandwidths there = bandwidths_beside_messages(*situation.machine, nodes, node);
      if (cost_of(there) >= least || there.communication_mb_s < (1 - least_gain) * place.usual.communication_mb_s)
        continue;
      least = cost_of(there);
      place.memory = node;
      place.predicted = there;
    }
  } else {
    place.memory = situation.network_node;
  }
  if (!place.memory) {
    place.reason = "neither the NUMA node of the network card nor a model of memory contention is known";
    return place;
  }
  place.thread = nearest_free(situation, *wanted_for_thread(situation, place), place.memory);
  place.reason = about_memory(situation, place) + "; " + about_thread(situation, place);
  return place;
}

}  // namespace tandem::model::contention
