// tandem/sim_rank/rank_machine.hpp: the workers and memories of a simulated rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/base/event_loop.hpp"
#include "tandem/runtime/virtual_place.hpp"
#include "tandem/runtime/worker/world.hpp"
#include "tandem/sim_rank/platform.hpp"

namespace tandem::sim {

/// A rank's part of its node: cores and devices are divided among the node's ranks, the NUMA nodes among the cores.
///
/// Threads: that of the loop.
class RankMachine {
 public:
  RankMachine(const Platform& platform, std::uint32_t rank);

  /// Adds the rank's workers, memories and links to a world, as `runtime::VirtualPlace::furnish` describes. Copies of
  /// more than `carried_bytes` carry nothing. The loop outlives the world.
  void furnish(runtime::World& world, const runtime::Furnishing& wanted, base::EventLoop& loop,
               std::size_t carried_bytes);
  /// How many times as long as the model says kernels take on a worker of the last world.
  double slowness(unsigned worker) const noexcept { return worker < slowness_.size() ? slowness_[worker] : 1; }

 private:
  std::vector<unsigned> numa_places(unsigned workers, std::optional<unsigned> home) const;

  const Node node_;
  const unsigned cores_;               ///< of the rank
  const unsigned ranks_here_;          ///< on its node
  const unsigned index_;               ///< among them
  std::vector<double> slowness_ = {};  ///< by worker
};

}  // namespace tandem::sim
