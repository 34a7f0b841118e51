// tandem/sim_rank/platform.cpp: a platform's network.
#include "tandem/sim_rank/platform.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::sim {

comm::LoopOptions network_of(const Platform& platform, Execution execution) {
  comm::LoopOptions network;
  network.ranks = platform.ranks;
  network.ranks_per_host = platform.ranks_per_node;
  network.eager_bytes = 16 << 10;
  network.segment_bytes = platform.segment_bytes;
  network.payload_bytes = 1 << 20;
  // What buffers of TCP hold, 256 KiB; with larger packets two, as over UCX.
  network.packets_in_flight = std::max<std::size_t>(2, (256 << 10) / platform.segment_bytes);
  network.copies = network.in_flight_until_left = true;
  network.bulk_travels = execution != Execution::none;
  network.latency_min_ns = network.latency_max_ns = platform.latency_ns;
  network.bytes_per_ns = platform.bytes_per_ns;
  network.receives_one_by_one = true;
  network.host_latency_ns = platform.node_latency_ns;
  network.host_bytes_per_ns = platform.node_bytes_per_ns;
  return network;
}

std::uint32_t Platform::kind_of(std::uint32_t rank) const noexcept {
  std::uint32_t node = rank / ranks_per_node;
  std::uint32_t kind = 0;
  for (; kind + 1 < nodes.size() && nodes[kind].count != 0 && node >= nodes[kind].count; ++kind)
    node -= nodes[kind].count;
  return kind;
}

void Platform::divide_cores(std::optional<unsigned> given) noexcept {
  const auto divide = [&](unsigned of_node) { return given.value_or(std::max(of_node / ranks_per_node, 1U)); };
  cores = divide(cores);
  for (Node& node : nodes)
    if (node.cores != 0) node.cores = divide(node.cores);
}

runtime::ModelledHost::Options host_of(const Platform& platform, std::uint32_t rank,
                                       std::function<void(std::int64_t ns)> pass) {
  runtime::ModelledHost::Options host{
      .costs = {.submit_ns = platform.submit_ns, .task_ns = platform.task_ns, .wake_ns = platform.wake_ns},
      .cores = platform.cores_of(rank),
      .programs = std::min(platform.ranks_per_node, platform.ranks)};
  if (platform.submit_ns > 0) host.costs.pass = std::move(pass);
  return host;
}

std::int64_t labour_ns(const Platform& platform, std::size_t bytes, bool is_near) {
  const bool is_copied = is_near && platform.copy_bytes_per_ns > 0;
  return platform.packet_ns + (is_copied ? std::llround(static_cast<double>(bytes) / platform.copy_bytes_per_ns) : 0);
}

}  // namespace tandem::sim
