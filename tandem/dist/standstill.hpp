// tandem/dist/standstill.hpp: finds out, on a rank that waits for data in vain, whether its flow differs from its
// peers'.
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
/// Protocol. A rank whose wait stands still sends its sketch to the ranks from which it expects data, once for each
/// position. The receiver keeps the sketch until it waits without progress itself, and compares it with its own
/// operations. A difference ends the job on all ranks, with a message that names both operations. Ranks that skip tasks
/// send and compare nothing. So two ranks that wait for each other, or a chain of them that ends in a rank that waits
/// in `Flow::wait`, find their difference; a rank that computes is not disturbed.
///
/// Threads: the submitting thread calls `look` and `explain`, inside a wait; sketches arrive on the endpoint's.
/// `mutex_` guards `arrived_`.
class Standstill {
 public:
  /// `of_this_rank`: sketch of its submitted operations, without digests if it has skipped tasks. Called inside `look`.
  Standstill(comm::Endpoint& endpoint, Transfers& transfers, const DataTable& table,
             std::function<FlowSketch()> of_this_rank);
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

  /// Called while this rank waits and no task has ended for a while.
  void look();

 private:
  void ask(const FlowSketch& mine);
  void compare(const FlowSketch& mine);

  comm::Endpoint& endpoint_;
  Transfers& transfers_;
  const DataTable& table_;
  const std::function<FlowSketch()> sketch_;
  const comm::Channel channel_;
  /// By rank: start and position of the sketch.
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> asked_;
  std::mutex mutex_;
  std::map<std::uint32_t, FlowSketch> arrived_;  ///< the last one of each rank, until it is compared
};

}  // namespace tandem::dist
