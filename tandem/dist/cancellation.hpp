// tandem/dist/cancellation.hpp: a flow that is cancelled: all ranks learn of it, and agree where it ends.
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
/// Protocol. `cancel` freezes on this rank the positions that tasks may begin (`Executor::freeze_end`) and those that may be
/// submitted (`FlowPosition::entering`), and sends a notice along the edges of the agreement's tree; a rank that receives a
/// notice does the same. Then all ranks agree on the maximum of both positions: R and S. Up to S every rank submits the same
/// flow, in which the kernels behind R do nothing; so owners, holders and versions stay equal on all ranks, and everything that
/// is sent is received. A notice carries the number of its flow, so one that arrives late cancels nothing else, and one that
/// arrives early, before this rank has ended its wait, is kept for the next flow.
///
/// Threads: `cancel` and `give_up` any; the notices' callbacks are the endpoint's; all else the submitting thread. `mutex_`
/// guards the members behind it and `FlowPosition::entering`, but for `Cutoff::within`.
class Cancellation {
 public:
  Cancellation(runtime::RuntimeCore& core, comm::Endpoint& endpoint, JobAbort& abort, FlowPosition& position);
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  /// Tasks that have not begun are not needed. Without effect while a wait ends.
  void cancel();
  /// Counts positions up to `position` as submitted. False: it lies behind the end of the cancelled flow. While the ranks agree
  /// on that end, this waits. True also once the job has failed before they agreed.
  bool may_enter(std::uint64_t position);
  /// The job has failed: nobody will decide where the flow ends, and tasks do not wait for it.
  void give_up();

  /// Everything has ended on this rank, and it is too late to cancel. True: the flow was cancelled, as far as this rank knows.
  bool stop();
  /// All ranks have ended the flow, and one of them knows that it was `cancelled`. `last_position`: of this rank's program.
  /// Returns the last position whose task has run; nothing: the flow was not cancelled.
  std::optional<std::uint64_t> begin_next_flow(bool cancelled, std::uint64_t last_position);

 private:
  /// Positions that a rank counts as submitted at once.
  static constexpr std::uint64_t kEnterAhead = 64;

  void join(std::uint64_t flow, std::optional<std::uint32_t> noticed_by);
  void decide_end(std::span<const std::byte> outcome);

  runtime::RuntimeCore& core_;
  comm::Endpoint& endpoint_;
  JobAbort& abort_;
  FlowPosition& position_;
  const comm::Channel channel_;
  Agreement agreement_;                    ///< a round for each flow that is cancelled
  std::atomic<bool> end_decided_{false};
  std::mutex mutex_;
  std::uint64_t flow_number_ = 0;          ///< waits that have ended
  std::uint64_t end_of_tasks_ = 0;         ///< R, once decided
  bool joined_ = false;                    ///< this rank knows that the current flow is cancelled
  bool next_is_cancelled_ = false;         ///< the next flow is, say ranks that have begun it
  bool ending_ = false;                    ///< `stop` was called
};

}  // namespace tandem::dist
