// tandem/dist/flow_agreement.hpp: what all ranks of a flow agree on: at its start, and at each wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/dist/agreement.hpp"
#include "tandem/dist/flow_reports.hpp"

namespace tandem::runtime {
class RuntimeCore;
}

namespace tandem::dist {

class DataTable;
class JobAbort;
class TraceClocks;
class Transfers;

/// Rounds of agreement among all ranks.
///
/// Protocol. At the start: the smallest budget for copies, and whether all ranks compare the clocks of their traces. At each
/// wait two rounds: what each rank has submitted, while its tasks still run (`begin_check`, `finish_check`); and, once all has
/// ended here, how it ended (`outcome`). If the first one finds that ranks have submitted different flows, a third round finds
/// the first datum on which they differ, and the job ends with a message that names it. All ranks begin the same rounds in the
/// same order.
///
/// Threads: the submitting thread; outcomes arrive on the endpoint's. `checked_` is stored last by the endpoint's callback, and
/// guards `check_`.
class FlowAgreement {
 public:
  FlowAgreement(runtime::RuntimeCore& core, comm::Endpoint& endpoint, JobAbort& abort, Transfers& transfers,
                const DataTable& table, std::int64_t trace_sync_every_ns);
  ~FlowAgreement();
  FlowAgreement(const FlowAgreement&) = delete;
  FlowAgreement& operator=(const FlowAgreement&) = delete;

  /// Returns the smallest budget of all ranks, which is everybody's: both ends of a transfer derive from it which copies are
  /// kept.
  std::size_t start(std::size_t copy_bytes);

  /// `mine`: its positions, digest and pruning. `versions_known`: this rank has never skipped a task.
  void begin_check(FlowReport mine, bool versions_known);
  /// What all ranks have submitted: the greatest end, and whether some rank has skipped tasks. Throws JobError when flows
  /// differ.
  FlowReport finish_check();
  /// `mine`: its failure and whether the flow was cancelled. Sets the numbers of `agree_on_least`.
  Outcome outcome(Outcome mine);
  /// At the next `outcome`, all ranks get the smallest `*value` of all ranks that is not 0, or 0.
  void agree_on_least(std::shared_ptr<std::atomic<std::uint64_t>> value) { least_.push_back(std::move(value)); }

  /// All ranks are traced, as the outcome says, and compare their clocks now.
  void compare_clocks();
  /// The program has ended well on this rank: the last comparison. Destroying this ends them without.
  void end_clocks();
  void drop_clocks();

 private:
  std::vector<std::byte> agree(std::vector<std::byte> mine, Agreement::Merge merge);
  bool wants_clocks() const;
  void name_difference(const std::string& what, bool versions_known);

  runtime::RuntimeCore& core_;
  comm::Endpoint& endpoint_;
  JobAbort& abort_;
  Transfers& transfers_;
  const DataTable& table_;
  const std::int64_t trace_sync_every_ns_;
  Agreement agreement_;
  std::atomic<bool> checked_{false};  ///< the ranks have compared their flows, without a difference
  FlowReport check_;
  std::vector<std::shared_ptr<std::atomic<std::uint64_t>>> least_;
  std::unique_ptr<TraceClocks> clocks_;  ///< null: no trace, or not on all ranks
  bool clocks_compared_ = false;         ///< or tried to
};

}  // namespace tandem::dist
