// tandem/dist/flow_agreement.hpp: agreements of all ranks of a flow, at its start and at each wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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
/// Protocol. At the start the ranks agree on the smallest budget for copies, the most workers of a rank, whether some
/// rank's main memory has a budget, and whether all ranks compare the clocks of their traces. Each wait has two rounds:
/// what each rank has submitted, while its tasks still run (`begin_check`, `finish_check`); and, once all has ended
/// here, how it ended (`outcome`). If the first one finds that ranks have submitted different flows, a third round
/// finds the first operation and the first datum on which they differ, and the job ends with a message that names them.
/// All ranks begin the same rounds in the same order.
///
/// Threads: the submitting thread; outcomes arrive on the endpoint's. The endpoint's callback stores `checked_` last,
/// and it guards `check_`. `waits_mutex_` guards `waits_`: a callback reads what the submitting thread owns, data and
/// the history of the flow, only under this mutex and while a `Wait` lives. A diagnosis that arrives later, after an
/// abort, finds none.
class FlowAgreement {
 public:
  FlowAgreement(runtime::RuntimeCore& core, comm::Endpoint& endpoint, JobAbort& abort, Transfers& transfers,
                const DataTable& table, std::int64_t trace_sync_every_ns);
  ~FlowAgreement();
  FlowAgreement(const FlowAgreement&) = delete;
  FlowAgreement& operator=(const FlowAgreement&) = delete;

  struct Start {
    std::size_t copy_bytes = 0;  ///< the smallest budget: both ends of a transfer derive from it which copies are kept
    unsigned workers = 1;        ///< number of workers of the rank that has the most
    bool budgets = false;        ///< main memory of some rank has a budget
  };
  /// Agrees at the start; `mine`: values of this rank. Returns the values for all ranks.
  Start start(const Start& mine);

  /// While it lives, the submitting thread waits between `begin_check` and the outcome, and submits nothing.
  class Wait {
   public:
    explicit Wait(FlowAgreement& agreement) : agreement_(agreement) { set(true); }
    ~Wait() { set(false); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    void set(bool waits) {
      const std::lock_guard guard(agreement_.waits_mutex_);
      agreement_.waits_ = waits;
    }
    FlowAgreement& agreement_;
  };

  /// Data of this rank for the diagnosis of a difference.
  struct Diagnosis {
    bool versions_known = true;          ///< this rank has never skipped a task
    std::function<FlowSketch()> sketch;  ///< sketch of its submitted operations; empty if it has skipped tasks
  };
  /// Begins the check; `mine`: its positions, digest and pruning. Called in a `Wait`.
  void begin_check(FlowReport mine, Diagnosis diagnosis);
  /// Ends the check: returns the greatest end, and whether some rank has skipped tasks. Throws JobError when flows
  /// differ.
  FlowReport finish_check();
  /// Agrees on the outcome; `mine`: its failure and whether the flow was cancelled. Sets the numbers of
  /// `agree_on_least`.
  Outcome outcome(Outcome mine);
  /// Lines for the watchdog: the ranks for which this one waits, to compare something. Empty: none.
  std::string explain();
  /// Gives all ranks, at the next `outcome`, the smallest `*value` of all ranks that is not 0, or 0.
  void agree_on_least(std::shared_ptr<std::atomic<std::uint64_t>> value) { least_.push_back(std::move(value)); }

  /// Compares the clocks of all ranks, which are all traced, as the outcome says.
  void compare_clocks();
  /// Makes the last comparison, since the program has ended well on this rank. The destructor makes none.
  void end_clocks();
  void drop_clocks();

 private:
  std::vector<std::byte> agree(std::vector<std::byte> mine, Agreement::Merge merge);
  bool wants_clocks() const;
  void name_difference(const std::string& what, const Diagnosis& diagnosis);

  runtime::RuntimeCore& core_;
  comm::Endpoint& endpoint_;
  JobAbort& abort_;
  Transfers& transfers_;
  const DataTable& table_;
  const std::int64_t trace_sync_every_ns_;
  Agreement agreement_;
  std::atomic<bool> checked_{false};  ///< the ranks have compared their flows, without a difference
  FlowReport check_;
  std::mutex waits_mutex_;
  bool waits_ = false;
  std::vector<std::shared_ptr<std::atomic<std::uint64_t>>> least_;
  std::unique_ptr<TraceClocks> clocks_;  ///< null: no trace, or not on all ranks
  bool clocks_compared_ = false;         ///< true also if the comparison failed
};

}  // namespace tandem::dist
