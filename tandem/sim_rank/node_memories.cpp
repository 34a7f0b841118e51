// tandem/sim_rank/node_memories.cpp: nodes by rank.
#include "tandem/sim_rank/node_memories.hpp"

#include <algorithm>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/task/footprint.hpp"

namespace tandem::sim {

namespace {

/// A kernel may be a little faster than the kernel of the measurement was.
constexpr double kCacheless = 1.1;

}  // namespace

NodeMemories::NodeMemories(const Platform& platform, base::EventLoop& loop, std::uint32_t first_rank,
                           std::uint32_t ranks)
    : network_bytes_per_ns_(platform.bytes_per_ns),
      ranks_per_node_(platform.ranks_per_node),
      first_node_(first_rank / platform.ranks_per_node) {
  if (!platform.contention) return;
  auto model = model::contention::SoftModel::create(platform.contention->machine);
  TANDEM_ASSERT(model.ok());  // its reader has checked it
  model_ = std::make_unique<const model::contention::SoftModel>(std::move(model).value());
  const unsigned socket_cores = std::max(platform.contention->cores, 1U);
  const std::uint32_t last_node = (first_rank + ranks - 1) / ranks_per_node_;
  for (std::uint32_t node = first_node_; node <= last_node; ++node) {
    const unsigned cores =
        platform.cores_of(node * ranks_per_node_) * std::min(platform.ranks_per_node, platform.ranks);
    const unsigned sockets = (cores + socket_cores - 1) / socket_cores;
    nodes_.push_back(std::make_unique<runtime::ModelledMemory>(*model_, model::contention::Placement{}, loop, sockets));
  }
}

runtime::ModelledMemory* NodeMemories::of(std::uint32_t rank) noexcept {
  const std::uint32_t node = rank / ranks_per_node_ - first_node_;  // of a lower node: a large number
  return node < nodes_.size() ? nodes_[node].get() : nullptr;
}

double NodeMemories::bytes_per_ns(comm::Rank from, comm::Rank to) {
  double share = 1;
  for (const comm::Rank rank : {from, to})
    if (const runtime::ModelledMemory* const memory = of(rank.value()))
      share = std::min(share, memory->network_share());
  return network_bytes_per_ns_ * share;
}

void NodeMemories::note_packet(comm::Rank from, comm::Rank to, std::int64_t until_ns) {
  for (const comm::Rank rank : {from, to})
    if (runtime::ModelledMemory* const memory = of(rank.value())) memory->use_network_until(until_ns);
}

double moved_bytes(const runtime::EmulatedTask& task, double kernel_ns, const Platform& platform) {
  if (!platform.contention || task.device != DeviceKind::cpu) return 0;
  const auto bytes = static_cast<double>(runtime::footprint_of(task.data).bytes);
  const model::contention::Bandwidths alone = model::contention::predict(platform.contention->machine, {.cores = 1});
  const double most_bytes = alone.computation_alone_mb_s * 1e-3 * kernel_ns;
  return bytes <= kCacheless * most_bytes ? std::min(bytes, most_bytes) : 0;
}

}  // namespace tandem::sim
