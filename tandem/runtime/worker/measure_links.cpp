// tandem/runtime/worker/measure_links.cpp: times copies, one at a time.
#include "tandem/runtime/worker/measure_links.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "tandem/runtime/worker/timed_copy.hpp"

namespace tandem::runtime {

namespace {

constexpr std::size_t kSmall = 4096;
constexpr int kCopies = 3;

/// Duration of the shortest of some copies; no value: one has failed.
std::optional<double> shortest_ns(Copier& copier, const CopyRequest& request, std::size_t bytes,
                                  const clock::Clock& clock) {
  std::optional<double> shortest;
  for (int i = 0; i <= kCopies; ++i) {
    const auto took_ns = timed_copy(copier, request, bytes, clock);
    if (!took_ns) return {};
    if (i > 0) shortest = std::min(shortest.value_or(*took_ns), *took_ns);
  }
  return shortest;
}

std::optional<MachineLink> measured(Copier& copier, const CopyRequest& request, std::size_t bytes,
                                    const clock::Clock& clock) {
  const auto large_ns = shortest_ns(copier, request, bytes, clock);
  const auto small_ns = bytes > kSmall ? shortest_ns(copier, request, kSmall, clock) : large_ns;
  if (!large_ns || !small_ns || !(*large_ns > 0)) return {};
  const bool ascends = *large_ns > *small_ns;
  MachineLink link{.from = request.from_node, .to = request.to_node, .source = LinkSource::measured};
  link.bytes_per_ns =
      static_cast<double>(ascends ? bytes - kSmall : bytes) / (ascends ? *large_ns - *small_ns : *large_ns);
  link.latency_ns =
      std::max<std::int64_t>(0, static_cast<std::int64_t>(*small_ns - static_cast<double>(kSmall) / link.bytes_per_ns));
  return link;
}

}  // namespace

void measure_links(World& world, std::size_t bytes) {
  Machine& machine = world.machine;
  std::vector<NodeIndex> nodes;
  for (const MachineWorker& worker : machine.workers)
    if (worker.node != 0 && std::ranges::find(nodes, worker.node) == nodes.end()) nodes.push_back(worker.node);

  const std::unique_ptr<MemoryNode> main = world.make_main_memory();
  const auto memory_of = [&](NodeIndex node) -> MemoryNode& {
    return node == 0 ? *main : *world.nodes[node - 1].first;
  };
  const auto copier_of = [&](NodeIndex node) -> Copier& { return *world.nodes[node - 1].second; };
  const auto quarter_of = [&](NodeIndex node) {
    return node != 0 && machine.nodes[node].budget != 0 ? machine.nodes[node].budget / 4 : SIZE_MAX;
  };
  const auto measure = [&](NodeIndex from, NodeIndex to, const Block& source, const Block& target, std::size_t most) {
    if (machine.link(from, to).source != LinkSource::assumed) return;
    const CopyRequest request{
        .from_node = from, .to_node = to, .from = source.memory(), .to = target.memory(), .shape = {}};
    if (const auto link = measured(copier_of(to == 0 ? from : to), request, most, *world.clock))
      machine.set_link(*link);
  };
  nodes.insert(nodes.begin(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t j = i + 1; j < nodes.size(); ++j) {
      const NodeIndex a = nodes[i], b = nodes[j];
      if (a != 0 && !reach_each_other(copier_of(a), copier_of(b))) continue;
      const std::size_t most = std::min({bytes, quarter_of(a), quarter_of(b)});
      if (most == 0) continue;
      const Block first(memory_of(a), most), second(memory_of(b), most);
      if (first.memory() == nullptr || second.memory() == nullptr) continue;
      if (a == 0) std::memset(first.memory(), 0, most);  // touches its pages
      measure(a, b, first, second, most);
      measure(b, a, second, first, most);
    }
}

}  // namespace tandem::runtime
