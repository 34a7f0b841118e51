// tandem/dist/cancellation.hpp: the cancellation of a flow: all ranks learn of it, and agree where it ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/agreement.hpp"

namespace tandem::runtime {
class RuntimeCore;
}

namespace tandem::dist {

struct FlowPosition;
class JobAbort;

/// Finds the two ends of a cancelled flow: R, the last position at which a task runs, and S, the last position that is
/// submitted.
///
/// Protocol. `cancel` freezes on this rank the positions that tasks may begin (`Executor::freeze_end`) and those that
/// may be submitted (`FlowPosition::entering`), and sends a notice along the edges of the agreement's tree; a rank that
/// receives a notice does the same. Then all ranks agree on the maximum of both positions: R and S. Up to S every rank
/// submits the same flow, in which the kernels behind R do nothing; so owners, holders and versions stay equal on all
/// ranks, and every message that is sent is received. A notice carries the number of its flow, so a late one cancels
/// nothing else, and an early one, before this rank has ended its wait, is kept for the next flow.
///
/// Threads: any may call `cancel` and `give_up`; the endpoint's run the callbacks of notices; the submitting thread
/// calls all else. `mutex_` guards the members below it and `FlowPosition::entering`, except for `Cutoff::within`.
class Cancellation {
 public:
  Cancellation(runtime::RuntimeCore& core, comm::Endpoint& endpoint, JobAbort& abort, FlowPosition& position);
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  /// Cancels tasks that have not begun. Without effect while a wait ends.
  void cancel();
  /// Counts positions up to `position` as submitted; waits while the ranks agree on the end of a cancelled flow. False:
  /// the position is behind that end. True also once the job has failed before they agreed.
  bool may_enter(std::uint64_t position);
  /// Called when the job has failed: no rank will decide the end of the flow, and tasks do not wait for it.
  void give_up();

  /// Called when everything has ended on this rank; it is then too late to cancel. True: the flow was cancelled, as far
  /// as this rank knows.
  bool stop();
  /// Called when all ranks have ended the flow; `cancelled`: one of them knows that it was cancelled. `last_position`:
  /// of this rank's program. Returns the last position whose task has run; no value: the flow was not cancelled.
  std::optional<std::uint64_t> begin_next_flow(bool cancelled, std::uint64_t last_position);

 private:
  /// Number of positions that a rank counts as submitted at once.
  static constexpr std::uint64_t kEnterAhead = 64;

  void join(std::uint64_t flow, std::optional<std::uint32_t> noticed_by);
  void decide_end(std::span<const std::byte> outcome);

  runtime::RuntimeCore& core_;
  comm::Endpoint& endpoint_;
  JobAbort& abort_;
  FlowPosition& position_;
  const comm::Channel channel_;
  Agreement agreement_;                    ///< one round for each cancelled flow
  std::atomic<bool> end_decided_{false};
  std::mutex mutex_;
  std::uint64_t flow_number_ = 0;          ///< number of waits that have ended
  std::uint64_t end_of_tasks_ = 0;         ///< R, once decided
  bool joined_ = false;                    ///< this rank knows that the current flow is cancelled
  bool next_is_cancelled_ = false;         ///< ranks that have begun the next flow say that it is cancelled
  bool ending_ = false;                    ///< `stop` was called
};

}  // namespace tandem::dist
