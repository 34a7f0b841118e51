// tandem/sim_rank/node_memories.hpp: the memories that kernels and messages of a simulation share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/base/event_loop.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/model/contention/soft_model.hpp"
#include "tandem/runtime/device/emulation.hpp"
#include "tandem/runtime/device/modelled_memory.hpp"
#include "tandem/sim_rank/platform.hpp"

namespace tandem::sim {

/// The memory of each node of some ranks, by the platform's model of contention; none where it has no model. Of the
/// nodes of other ranks nothing is known, so these do not slow a message.
///
/// Threads: that of the loop, which outlives it.
class NodeMemories final : public comm::LoopRates {
 public:
  /// The memories of the nodes of the ranks [first_rank, first_rank + ranks).
  NodeMemories(const Platform& platform, base::EventLoop& loop, std::uint32_t first_rank, std::uint32_t ranks);

  /// Null: nothing shares memory.
  runtime::ModelledMemory* of(std::uint32_t rank) noexcept;
  bool empty() const noexcept { return nodes_.empty(); }

  double bytes_per_ns(comm::Rank from, comm::Rank to) override;
  void note_packet(comm::Rank from, comm::Rank to, std::int64_t until_ns) override;

 private:
  const double network_bytes_per_ns_;
  const std::uint32_t ranks_per_node_;
  const std::uint32_t first_node_;
  std::unique_ptr<const model::contention::SoftModel> model_;
  std::vector<std::unique_ptr<runtime::ModelledMemory>> nodes_;
};

/// Bytes that the kernel of a task moves between its core and memory: each byte of its data once, unless that would be
/// faster than a core is; then caches serve it, and it moves nothing. The estimate of the running program, too
/// (`runtime::MemoryLoad`). `kernel_ns`: its duration alone.
double moved_bytes(const runtime::EmulatedTask& task, double kernel_ns, const Platform& platform);

}  // namespace tandem::sim
