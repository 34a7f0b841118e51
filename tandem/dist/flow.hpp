// tandem/dist/flow.hpp: the sequential task flow on many ranks, from the view of one rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/dist/flow_options.hpp"
#include "tandem/dist/flow_position.hpp"
#include "tandem/dist/flow_statistics.hpp"
#include "tandem/dist/need.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/dist/placement.hpp"
#include "tandem/dist/program_flow.hpp"
#include "tandem/dist/use.hpp"

namespace tandem::comm {
class Endpoint;
}

namespace tandem::dist {

class Cancellation;
class Copies;
class DataTable;
class ExplicitMessages;
struct FlowSketch;
class FlowAgreement;
class JobAbort;
class Recording;
struct RecordedEvent;
struct RecordedOperation;
struct RecordedSending;
class Pruning;
class Reductions;
class Standstill;
class Transfers;
class Versions;

/// The distributed flow of one rank.
///
/// Every rank calls the same functions in the same order. From the places of the data each rank derives its part in a
/// task: the owner of the written data runs it; the rank that holds what the executor sees sends that, unless it has
/// sent this version before; the executor receives it, unless it has it. So no rank needs another one's request (thesis
/// 1.3.3).
///
/// - *owner*: the rank for which tasks are placed, and which has the user's memory. `migrate` changes it.
/// - *holder*: the rank with the current version, which sends it. After a task that ran elsewhere it is not the owner;
///   `wait` brings the data home.
/// - *copies*: versions that a rank has received. All its tasks share them until the data is written, or until option
///   `copies` makes both ends drop them.
/// - data without an owner is each rank's own. Tasks that write such data run on every rank, and what they see is sent
///   to all.
///
/// The flow owns one part per protocol, and the part's header states it: `Placement` (the rank that runs a task),
/// `Versions` (holders, sends and receives), `Copies` (copies that stay), `Transfers` (messages as nodes of the task
/// graph), `Pruning` (tasks that a rank skips), `Reductions`, `ExplicitMessages`, `Recording`, `FlowAgreement`
/// (comparisons at a wait), `Standstill` (comparisons when a wait does not end), `Cancellation`, `JobAbort`. This class
/// passes each operation of the program through them in the order of the flow.
///
/// Threads: the submitting thread; any may call `cancel` and `abort`. Cost of a task that does not concern this rank
/// (`try_skip`): one cache line per access, no lock, no allocation.
class Flow final : public ProgramFlow {
 public:
  Flow(runtime::RuntimeCore& core, std::unique_ptr<comm::Endpoint> endpoint, const FlowOptions& options);
  ~Flow() override;

  std::uint32_t rank() const noexcept override { return rank_; }
  std::uint32_t size() const noexcept override { return size_; }
  comm::Endpoint& endpoint() noexcept { return *endpoint_; }

  /// Adds data that was just registered with the runtime, on every rank. `has_value`: the owner has given it one.
  /// Throws UsageError.
  void add(runtime::Handle& handle, std::uint32_t owner, bool has_value) override;
  /// Whether a node that is no operation of the flow may be submitted now: each position has a limited number of ids.
  bool has_spare_id() const noexcept override;
  /// Reserves numbers on every rank for `count` data, which each rank registers by `add_reserved` if and when it uses
  /// them. `digest` returns a digest of their owners and sizes, the same on all ranks. Returns the number of the first
  /// one.
  std::uint32_t reserve(std::size_t count, const std::function<std::uint64_t()>& digest) override;
  /// Adds data without a value, reserved as `number`, that was just registered with the runtime here.
  void add_reserved(runtime::Handle& handle, std::uint32_t owner, std::uint32_t number) override;

  // --- tasks
  /// Submits a task that does not concern this rank. True: nothing is left to do. False: nothing has happened, and the
  /// caller must `enter` it. `executor`: the rank that runs it, if known. Not to be called while `enters_all`.
  [[gnu::always_inline]] bool try_skip(std::span<const Use> uses, const SourceLine& where,
                                       std::uint32_t executor = kNobody) noexcept {
    // With a known number of accesses there is no loop, and the digest stays in a register.
    const Use* const at = uses.data();
    switch (uses.size()) {
      case 1: return try_skip_all(where, executor,
                                  [=](const auto& call) __attribute__((always_inline)) { return call(at[0]); });
      case 2: return try_skip_all(where, executor, [=](const auto& call) __attribute__((always_inline)) { return call(at[0]) && call(at[1]); });
      case 3:
        return try_skip_all(where, executor, [=](const auto& call) __attribute__((always_inline)) {
          return call(at[0]) && call(at[1]) && call(at[2]);
        });
      default: return try_skip_all(where, executor, [=](const auto& call) __attribute__((always_inline)) {
        for (const Use& use : uses)
          if (!call(use)) return false;
        return true;
      });
    }
  }
  /// Enters a task. True: it runs here; the caller must submit it to the runtime at once, and then call `entered`.
  /// Throws UsageError.
  bool enter(std::span<const Use> uses, const Wish& wish) override {
    if (recording_ != nullptr) refuse_recording();
    return (wish.on || enters_all_ || !try_skip(uses, wish.where)) && enter_slowly(uses, wish);
  }
  /// Called when the task for which `enter` returned true was submitted.
  void entered() override;
  /// With `reduces`, shares may replace data in `uses` (`Reductions`).
  bool begin_task(std::span<Use> uses, Wish& wish, bool reduces) override;
  runtime::TaskRef submit(runtime::Task& task, std::span<const Use> uses, const Wish& wish) override;
  /// Whether each task is recorded or checked, so that `try_skip` must not be called.
  bool enters_all() const noexcept { return enters_all_; }

  /// Sets the program's own rule for tasks that write data of several owners.
  void set_placement(PlacementPolicy policy) override { placement_.set_policy(std::move(policy)); }
  bool has_placement() const noexcept { return placement_.has_policy(); }

  // --- recorded flows
  bool is_recording() const noexcept override { return recording_ != nullptr; }
  /// The last recorded operations gather open sums.
  std::unique_ptr<runtime::RecordedFlow> record(const std::function<void()>& flow) override;
  /// Sets `wish.on` to the rank that runs a recorded task or event, after the tasks that gather sums which it uses.
  /// Whether it runs here.
  bool place_recorded(std::span<const Use> uses, Wish& wish);
  /// Records a task, or an event, that was placed. `Recording::add` says what `model` is.
  runtime::TaskRef add_recorded(std::span<const Use> uses, const Wish& wish, runtime::Task* model,
                                const RecordedEvent* event = nullptr);
  /// Submits a recording at this position of the flow. False: the flow is over, and nothing was submitted. Throws
  /// UsageError.
  bool replay(Recording& recording);

  // --- loops pruned to this rank
  /// Skips so many tasks of the flow, which this rank does not submit, by the rules of `Pruning`.
  void skip(std::uint64_t tasks) override;
  /// Whether loops may skip tasks (`prunes`), or submit all and have them checked (`checks_pruning`).
  bool prunes() const noexcept override { return options_.prune; }
  bool checks_pruning() const noexcept { return options_.check_pruning; }
  /// Whether this rank must submit a task with these accesses now.
  bool concerns(std::span<const Use> uses) const override;
  /// With `check_pruning`: while this lives, the submitted task is one that this rank would have skipped; the flow
  /// throws UsageError if the task concerns this rank.
  class SkipCheck {
   public:
    SkipCheck(Flow& flow, std::size_t index);
    ~SkipCheck();
    SkipCheck(const SkipCheck&) = delete;
    SkipCheck& operator=(const SkipCheck&) = delete;
    /// Throws UsageError unless one task was submitted.
    void check_count() const;

   private:
    Flow& flow_;
    const std::size_t index_;
    const std::uint64_t before_;
  };

  // --- operations that are no tasks; they throw UsageError
  /// Sends the current version to `rank`, or to all ranks (`kEverywhere`), before a task there needs it.
  void fetch(runtime::Handle* data, std::uint32_t rank, const SourceLine& where) override;
  /// Makes `rank` the owner of the data from here on, and sends it the current version.
  void migrate(runtime::Handle* data, std::uint32_t rank, const SourceLine& where) override;
  /// Drops all copies of the data on all ranks; a rank that needs it again receives it again.
  void flush(runtime::Handle* data) override;
  /// Explicit messages between data of two ranks, matched in order per pair of ranks and tag. Each is called on its
  /// rank alone.
  void send(runtime::Handle& handle, std::uint32_t to, std::uint64_t tag, int priority);
  void receive(runtime::Handle& handle, std::uint32_t from, std::uint64_t tag);

  // --- the end
  /// Waits until the flow has ended on all ranks, with all data at home. Every rank calls it. Throws the failure that
  /// is earliest in the flow, on every rank, or JobError. Throws StuckError as `CallerLoop`, which ends the job.
  void wait() override;
  /// Waits at the end of the program, unless an exception ends it, or it has waited. False: the log has a failure that
  /// no wait has thrown. The destructor calls it.
  bool end() noexcept override;
  /// Cancels tasks that have not begun: those behind one position, on which all ranks agree, run nowhere, and all up to
  /// it run. Called on one rank or several; any thread, kernels included. Without effect while a wait ends.
  void cancel() override;
  /// Whether the flow is cancelled, and this rank has submitted it to its end: submissions until the next `wait` then
  /// have no effect. All ranks get the same answer at the same position; this waits while they agree.
  bool is_over() override { return !position_.next_is_free() && recording_ == nullptr && comes_to_end(); }
  /// As `is_over`, for loops of the program, which would not end otherwise: throws a JobError when the job has failed
  /// before its ranks agreed on the end.
  bool cancelled() override;
  /// Last position whose task has run in the flow that the last `wait` ended; no value: it was not cancelled.
  std::optional<std::uint64_t> cancelled_at() const noexcept override { return cancelled_at_; }
  /// Ends the job on all ranks: their waits throw a JobError that says `why`. Any thread.
  void abort(const std::string& why);
  /// Gives all ranks, at the next `wait`, the smallest `*value` of all ranks that is not 0, or 0.
  void agree_on_least(std::shared_ptr<std::atomic<std::uint64_t>> value) override;

  // --- what is known
  /// Records messages in `session`, which outlives the flow. A runtime that is traced before its flow is made needs no
  /// call. All ranks compare their clocks if all are traced.
  void trace_to(trace::Session& session) override;
  FlowStatistics statistics() const override;
  /// Number of workers of the rank that has the most: equal on all ranks.
  unsigned most_workers() const noexcept override { return most_workers_; }
  /// Checks after a wait, before anything is submitted, whether the data, their places, their copies and their
  /// transfers agree. With `TANDEM_AUDIT` waits check this.
  bool check_invariants() const;
  /// The table of data, for tests.
  const DataTable& data_table() const noexcept { return *table_; }
  /// Number of operations so far.
  std::uint64_t position() const noexcept override { return position_.value; }

 private:
  /// Adds an access to `draft`. False: it concerns this rank. `executor`: known from the first access that writes.
  [[gnu::always_inline]] bool passes(const Use& use, std::uint32_t& executor,
                                     FlowHistory::Draft& draft) const noexcept {
    if (use.handle == nullptr) return false;
    const Place& place = place_of(*use.handle);
    if (use.mode == AccessMode::read) {
      if (!place.untouched_by_reader(rank_)) return false;
    } else if (makes_value(use.mode)) {
      if (executor == kNobody) executor = place.owner;
      if (!place.untouched_by_writer(executor) || (place.unwritten && use.mode != AccessMode::write)) return false;
    } else {
      return false;
    }
    draft.use(place, use.mode);
    return true;
  }
  [[gnu::always_inline]] static void note_write(const Use& use) noexcept {
    if (use.mode != AccessMode::read) place_of(*use.handle).note_written();
  }
  /// Calls `each(call)`, which calls for each access until the call returns false. Returns whether none did.
  template <class Each>
  [[gnu::always_inline]] bool try_skip_all(const SourceLine& where, std::uint32_t executor, const Each& each) noexcept {
    if (!position_.next_is_free()) return false;
    FlowHistory::Draft draft(position_.history, position_.value + 1);
    if (!each([&](const Use& use) __attribute__((always_inline)) { return passes(use, executor, draft); }))
      return false;
    if (executor >= kNobody || executor == rank_) return false;
    ++position_.value;
    each([](const Use& use) __attribute__((always_inline)) { return note_write(use), true; });
    position_.history.enter(draft, position_.value, OperationKind::task, executor, where);
    return true;
  }

  struct Attended;

  // What only a `ProgramFlow` is asked.
  bool has_owner(runtime::Handle& handle) const noexcept override { return place_of(handle).owner != kEverywhere; }
  /// While a flow is recorded, the owner at this point of its replays.
  std::uint32_t owner_of(runtime::Handle& handle) const override;
  bool has_value(runtime::Handle& handle) const override;
  void forget_value(runtime::Handle& handle) override;
  bool copies_parts(const runtime::Handle&) const noexcept override { return has_budgets_; }
  bool orders_parts() override { return !is_over(); }
  bool orders_without_value() const noexcept override { return true; }

  bool enter_slowly(std::span<const Use> uses, const Wish& wish);
  bool enter_at(std::uint32_t executor, std::span<const Use> uses, const Wish& wish);
  void note(OperationKind kind, runtime::Handle& handle, AccessMode mode, std::uint32_t executor,
            const SourceLine& where);
  void check_values(std::uint32_t executor, const Wish& wish);
  void check_copies(const Wish& wish);
  void begin_operation();
  Reductions& reductions() noexcept { return recording_ != nullptr ? *recorded_reductions_ : *reductions_; }
  void settle(runtime::Handle& handle);
  void settle_all(std::span<const Use> uses);
  void skip_to(std::uint64_t position);
  [[noreturn]] static void refuse_recording();

  // These functions perform `fetch` and the others at once, and at each replay.
  void perform(Recording& recording, const RecordedOperation& operation);
  void fetch_now(runtime::Handle& handle, std::uint32_t rank, const Wish& wish, std::span<RecordedSending> ahead);
  void migrate_now(runtime::Handle& handle, std::uint32_t rank, const SourceLine& where);
  void flush_now(runtime::Handle& handle);

  void trace_transfers_to(trace::Session& session) noexcept;
  FlowSketch sketch() const;
  std::string explain_wait() const;
  void abandon(runtime::Handle& handle);
  void let_go(runtime::Handle& handle);
  bool comes_to_end();
  void close();
  void detach();
  void wait_for_all();

  // The parts are in the order of construction: each may use those before it.
  const std::unique_ptr<comm::Endpoint> endpoint_;
  const std::uint32_t rank_;
  const std::uint32_t size_;
  const FlowOptions options_;
  FlowPosition position_;
  Placement placement_;
  const std::unique_ptr<Pruning> pruning_;
  const std::unique_ptr<DataTable> table_;
  const std::unique_ptr<Transfers> transfers_;
  const std::unique_ptr<Copies> copies_;
  const std::unique_ptr<Versions> versions_;
  const std::unique_ptr<ExplicitMessages> messages_;
  const std::unique_ptr<Reductions> reductions_;
  const std::unique_ptr<JobAbort> abort_;
  const std::unique_ptr<FlowAgreement> agreement_;
  const std::unique_ptr<Cancellation> cancellation_;
  const std::unique_ptr<Standstill> standstill_;

  std::unique_ptr<Reductions> recorded_reductions_;  ///< reductions of `recording_`
  Recording* recording_ = nullptr;   ///< takes the submitted tasks; null: they run
  bool enters_all_ = false;
  std::vector<Need> needs_;          ///< needs of the entered task; a member to keep its memory
  std::uint64_t tasks_ = 0;          ///< number of tasks that run here
  unsigned most_workers_ = 1;
  bool has_budgets_ = false;         ///< main memory of some rank has a budget
  bool ended_ = false;
  bool closed_ = false;              ///< the current flow has ended here, with all data on their way home
  std::uint64_t closed_at_ = 0;      ///< the last position of the program at that time
  std::uint64_t waited_at_ = 0;      ///< the position of the last wait that all ranks have ended
  std::optional<std::uint64_t> cancelled_at_;
  std::unique_ptr<Attended> attended_;  ///< idle workers poll the network
};

}  // namespace tandem::dist
