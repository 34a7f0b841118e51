// tandem/dist/standstill.hpp: a rank that waits for data in vain finds out whether its flow is another one than its peers'.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/flow_sketch.hpp"

namespace tandem::dist {

class DataTable;
class Transfers;

/// Compares the flows of two ranks while one waits for data of the other.
///
/// Protocol. A rank whose wait stands still sends its sketch to the ranks from which it expects data, once for each position. The
/// receiver keeps the sketch until it waits without progress itself, and compares it with its own operations. A difference ends
/// the job on all ranks, with a message that names both operations. Ranks that skip tasks send and compare nothing. Two ranks that
/// wait for each other, or a chain of them that ends in a rank that waits in `Flow::wait`, so find their difference; a rank that
/// computes is left alone.
///
/// Threads: `look` and `explain` the submitting thread, inside a wait; sketches arrive on the endpoint's. `mutex_` guards
/// `arrived_`.
class Standstill {
 public:
  /// `of_this_rank`: what it has submitted, without digests if it has skipped tasks. Called inside `look`.
  Standstill(comm::Endpoint& endpoint, Transfers& transfers, const DataTable& table, std::function<FlowSketch()> of_this_rank);
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

  /// This rank waits, and no task has ended for a while.
  void look();

 private:
  void ask(const FlowSketch& mine);
  void compare(const FlowSketch& mine);

  comm::Endpoint& endpoint_;
  Transfers& transfers_;
  const DataTable& table_;
  const std::function<FlowSketch()> sketch_;
  const comm::Channel channel_;
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> asked_;  ///< by rank: start and position of the sketch
  std::mutex mutex_;
  std::map<std::uint32_t, FlowSketch> arrived_;  ///< the last one of each rank, until it is compared
};

}  // namespace tandem::dist
