// tandem/dist/flow.hpp: the sequential task flow on many ranks: who runs a task, and which data must travel for it.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/agreement.hpp"
#include "tandem/dist/copy_budget.hpp"
#include "tandem/dist/datum.hpp"
#include "tandem/dist/flow_statistics.hpp"
#include "tandem/dist/kept_copies.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/dist/placement.hpp"
#include "tandem/dist/recording.hpp"
#include "tandem/dist/trace_clocks.hpp"
#include "tandem/dist/transfers.hpp"
#include "tandem/dist/use.hpp"
#include "tandem/runtime/exec/cutoff.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist {

struct FlowOptions {
  TransferOptions transfers = {};
  bool idle_progress = true;          ///< idle workers make progress for the network; false: its thread alone
  std::size_t copy_bytes = SIZE_MAX;  ///< memory for received copies; the least of all ranks' counts
  bool prune = true;                  ///< loops may pass over tasks that do not concern this rank; false: they submit all
  bool check_pruning = false;         ///< they submit all, and what they should have passed over is checked
  std::int64_t trace_sync_every_ns = 1'000'000'000;  ///< of traced ranks: between clock points in the background; 0: none
};

/// The distributed flow of one rank.
///
/// Every rank calls the same functions in the same order, and each derives from the places of the data alone what concerns it:
/// the executor of a task is the owner of what it writes; a rank that holds what the executor sees sends it, unless it has sent
/// that version before; the executor receives it, unless it has it. So no rank tells another what to send (thesis 1.3.3).
///
/// - *owner*: the rank for which tasks are placed, and where the user's memory is. `migrate` changes it.
/// - *holder*: the rank with the present version, which sends it. After a task that ran elsewhere it is not the owner; `wait`
///   brings the data home.
/// - *copies*: versions that a rank has received. All its tasks share them until the data is written, or until `copy_bytes` make
///   both ends drop them (`KeptCopies`).
/// - data without an owner is each rank's own; tasks that write such data run on every rank, and what they see is sent to all.
///
/// Recipients of one version gather in a `Bag` until it is ready, and are served by one broadcast.
///
/// A rank may pass over tasks that it need not submit (`pass_over`); it must submit
/// (a) tasks that it runs,
/// (b) tasks that see data which it owns or holds, and that write such data or data of which it has a copy,
/// (c) before it sees data, the last task that wrote it,
/// (d) tasks with `reduce` accesses, and the next one that uses their data otherwise.
///
/// Threads: all members belong to the submitting thread. Cost of a task that does not concern this rank: one cache line per
/// access, no lock, no allocation.
class Flow {
 public:
  Flow(runtime::RuntimeCore& core, std::unique_ptr<comm::Endpoint> endpoint, const FlowOptions& options);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  std::uint32_t rank() const noexcept { return rank_; }
  std::uint32_t size() const noexcept { return size_; }
  comm::Endpoint& endpoint() noexcept { return *endpoint_; }

  /// Data that was just registered with the runtime, on every rank. `has_value`: the owner has given it one.
  void add(runtime::Handle& handle, std::uint32_t owner, bool has_value);

  /// A task is submitted: true when it concerns this rank in nothing, and is dealt with. Else `enter` it. `executor`: who runs
  /// it, if that is settled.
  [[gnu::always_inline]] bool passes_by(std::span<const Use> uses, std::uint32_t executor = kNobody) noexcept {
    bool untouched = entering_.within(position_ + 1);  // else it is asked for: `is_over`
    for (const Use& use : uses) {
      if (use.handle == nullptr) return false;
      const Place& place = place_of(*use.handle);
      if (use.mode == AccessMode::read) {
        untouched &= place.untouched_by_reader(rank_);
      } else if (makes_value(use.mode)) {
        if (executor == kNobody) executor = place.owner;
        untouched &= place.untouched_by_writer(executor) & !(place.unwritten & (use.mode != AccessMode::write));
      } else {
        return false;
      }
    }
    if (!untouched || executor >= kNobody || executor == rank_) return false;
    ++position_;
    for (const Use& use : uses)
      if (use.mode != AccessMode::read) note_written(place_of(*use.handle));
    return true;
  }
  /// A task is submitted: true when it runs here, and must be submitted to the runtime right away, after which `entered` is to
  /// be called. Throws UsageError.
  bool enter(std::span<const Use> uses, const Wish& wish) {
    if (recording_ != nullptr) refuse_recording();
    return (wish.on || looks_closely_ || !passes_by(uses)) && enter_slowly(uses, wish);
  }
  /// The task that `enter` let in was submitted.
  void entered();

  /// Tasks, and the operations of the user's below, are recorded until `stop_recording`: `executor_of` says of a task who runs
  /// it, and `recording()` takes it.
  void start_recording(Recording& recording);
  void stop_recording() noexcept {
    recording_ = nullptr;
    looks_closely_ = options_.check_pruning;
  }
  Recording* recording() noexcept { return recording_; }
  std::uint32_t executor_of(std::span<const Use> uses, const Wish& wish) const { return place(uses, wish); }
  /// Of data that one rank owns; while a flow is recorded, at this point of its replays.
  std::uint32_t owner_of(runtime::Handle& handle) const {
    return recording_ != nullptr ? recording_->owner_of(handle) : place_of(handle).owner;
  }
  /// Submits what was recorded, at this position of the flow. Throws UsageError.
  void replay(Recording& recording);

  /// This rank does not submit the next so many tasks of the flow, which it need not.
  void pass_over(std::uint64_t tasks);
  /// Whether loops should look for what they may pass over.
  bool prunes() const noexcept { return options_.prune; }
  bool checks_pruning() const noexcept { return options_.check_pruning; }
  /// As things are, this rank must submit a task with these accesses, by rules (a), (b) and (d).
  bool concerns(std::span<const Use> uses) const;
  /// While this lives, with `check_pruning`, what is submitted is what this rank would have passed over: it throws UsageError
  /// when that concerns it.
  class Skipping {
   public:
    Skipping(Flow& flow, std::size_t index) : flow_(flow), index_(index), before_(flow.position_) { flow.skipping_ = true; }
    ~Skipping() { flow_.skipping_ = false; }
    Skipping(const Skipping&) = delete;
    Skipping& operator=(const Skipping&) = delete;
    /// Throws UsageError unless one task was submitted.
    void check_count() const;

   private:
    Flow& flow_;
    const std::size_t index_;
    const std::uint64_t before_;
  };
  bool is_skipping() const noexcept { return skipping_; }
  /// Each task is looked at: `passes_by` is not to be asked.
  bool looks_closely() const noexcept { return looks_closely_; }

  /// Before `enter` of a task with `reduce` accesses: where it runs on another rank than the data's owner, it adds to a share of
  /// that rank's, which takes the data's place in `uses`. The shares are gathered by a tree of tasks when the data is used
  /// otherwise. Sets `wish.on`.
  void share_reductions(std::span<Use> uses, Wish& wish);

  /// The present version goes to `rank`, or to all ranks (`kEverywhere`), before it is asked for there.
  void fetch(runtime::Handle& handle, std::uint32_t rank, int priority, const SourceLine& where);
  /// `rank` owns the data from here on, and gets the present version.
  void migrate(runtime::Handle& handle, std::uint32_t rank, const SourceLine& where);
  /// Copies of the data are dropped on all ranks: who needs it again receives it again.
  void flush(runtime::Handle& handle);

  /// Explicit messages between data of two ranks, matched in order per (pair of ranks, tag). Each is called on its rank alone.
  void send(runtime::Handle& handle, std::uint32_t to, std::uint64_t tag, int priority);
  void receive(runtime::Handle& handle, std::uint32_t from, std::uint64_t tag);

  /// Waits until the flow has ended on all ranks, with all data at home. Every rank calls it. Throws the failure that is earliest
  /// in the flow, on every rank, or JobError.
  void wait();
  /// What has not begun of the flow is not needed: tasks behind one position, which all ranks agree on, run nowhere, and all up
  /// to it run. Any thread, kernels included; of one rank or of several. Too late while a wait ends.
  ///
  /// A rank that hears of it begins nothing new and says how far its tasks and its submission have come; the most of all ranks is
  /// where tasks end and where submission ends. Up to the latter every rank goes through the same flow, in which the tasks behind
  /// the former do nothing: so places and versions agree, and everything that is sent is received.
  void cancel();
  /// The flow is cancelled, and this rank has gone through it to its end: what is submitted until the next `wait` is nothing. All
  /// ranks get the same answer at the same position; while they agree, this waits.
  bool is_over() { return !entering_.within(position_ + 1) && recording_ == nullptr && comes_to_end(); }
  /// The same for a program's loops, which would go on for ever: throws a JobError when the job has failed before its flow's end.
  bool cancelled() {
    if (is_over()) return true;
    if (aborted_.load(std::memory_order_relaxed)) throw_if_aborted();
    return false;
  }
  /// Where the flow was cancelled that the last `wait` has ended: the last position whose task has run; nothing if it was not.
  std::optional<std::uint64_t> cancelled_at() const noexcept { return cancelled_at_; }

  /// Ends the job on all ranks: their waits throw a JobError that says `why`. Any thread.
  void abort(const std::string& why) { transfers_.abort(why); }
  /// At the next `wait`, all ranks get the least `*value` of all ranks that is not 0, or 0.
  void agree_on_least(std::atomic<std::uint64_t>* value) { agreed_.push_back(value); }

  /// From now on `session`, which outlives the flow, is told what travels. A runtime that is traced before its flow is made needs
  /// no call, and only if all ranks' are do they compare their clocks.
  void trace_to(trace::Session& session) noexcept { transfers_.trace_to(session); }

  void set_placement(PlacementPolicy policy) { placement_ = std::move(policy); }
  bool has_placement() const noexcept { return placement_ != nullptr; }
  FlowStatistics statistics() const;
  std::uint64_t position() const noexcept { return position_; }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX - 1;  ///< no executor yet; kEverywhere is above
  /// Ids of a rank's tasks: the position in the common flow, and the nodes that belong to one position.
  static constexpr unsigned kIdsPerPosition = 10;
  /// Copies that are kept between tasks may take this part of the budget; the rest is for the tasks that run.
  static constexpr std::size_t kKeptPart = 2;
  /// Positions that a rank counts as submitted at once.
  static constexpr std::uint64_t kEnterAhead = 64;

  /// One use of each piece of data by a task, however often it names it.
  struct Need {
    runtime::Handle* handle;
    bool sees;
    bool makes;
  };

  void note_written(Place& place) noexcept {
    ++place.version;
    place.unwritten = false;
    // The product does not wait for the one before. Positions are alike on all ranks for ever, versions are not.
    digest_ = std::rotl(digest_, 5) ^ (std::uint64_t{place.id} << 32 ^ position_) * 0x9e3779b97f4a7c15ULL;
  }
  bool enter_slowly(std::span<const Use> uses, const Wish& wish);
  bool enter_at(std::uint32_t executor, std::span<const Use> uses, const Wish& wish);
  [[noreturn]] static void refuse_recording();

  // --- reductions.cpp: partial results on several ranks
  struct DropOwner {
    void operator()(runtime::Handle* handle) const noexcept { runtime::DataRegistry::drop_owner(handle); }
  };
  using OwnedHandle = std::unique_ptr<runtime::Handle, DropOwner>;
  struct Shares {
    runtime::Handle* handle = nullptr;
    std::vector<OwnedHandle> of_ranks;  ///< each owned by its rank
    int priority = 0;                   ///< of the most urgent task that added to one
  };
  runtime::Handle& share_of(runtime::Handle& handle, std::uint32_t rank, const Wish& wish);
  void gather_shares(runtime::Handle& handle);
  void settle(runtime::Handle& handle) {
    if (place_of(handle).reducing) gather_shares(handle);
  }
  void settle_all();
  void begin_operation();
  bool is_of(const runtime::Handle& handle) const noexcept {
    return core_.data().owns(handle);
  }
  std::uint32_t place(std::span<const Use> uses, const Wish& wish) const;
  std::uint32_t place_among_owners(std::span<const Use> uses) const;
  void gather_needs(std::span<const Use> uses);
  void check_values(std::uint32_t executor, const Wish& wish);
  void check_budget(const Wish& wish);

  // --- the present version travels
  /// To stay as a copy, or to become the executor's, who holds the data from here on.
  enum class Purpose { copy, possession };
  void bring(runtime::Handle& handle, std::uint32_t executor, Purpose purpose, int priority);
  void bring_recorded(std::span<Recording::Sending> sendings);

  // --- what `fetch` and the others do when they take place; recorded ones do, also behind the end of a cancelled flow
  void perform(Recording& recording, const Recording::Operation& operation);
  void fetch_now(runtime::Handle& handle, std::uint32_t rank, const Wish& wish, std::span<Recording::Sending> ahead);
  void migrate_now(runtime::Handle& handle, std::uint32_t rank, const SourceLine& where);
  void flush_now(runtime::Handle& handle);
  void send_now(runtime::Handle& handle, std::span<const comm::Recipient> recipients, std::uint64_t tag,
                const std::shared_ptr<comm::BroadcastPlan>& plan);
  void receive_now(runtime::Handle& handle, std::uint32_t from, std::uint64_t tag);
  void add_recipients(std::uint32_t executor, int priority);
  void send_to(runtime::Handle& handle, std::span<const comm::Recipient> recipients,
               const std::shared_ptr<comm::BroadcastPlan>& plan = {});
  void receive_here(runtime::Handle& handle, Purpose purpose, int priority);
  bool has_it(Datum& datum, const Place& place, std::uint32_t recipient);

  // --- pruning.cpp: tasks that are passed over
  void pass_over_to(std::uint64_t position) noexcept {
    counts_.passed_over += position - position_;
    pruned_ = has_pruned_ = true;
    position_ = position;
  }
  void check_pruned(std::uint32_t executor, const Wish& wish);
  void check_known(runtime::Handle& handle, const SourceLine& where) const;
  [[noreturn]] void refuse_skip(const std::string& what, const runtime::Handle& handle, const SourceLine& where) const;
  /// Somebody may have written the data without this rank's knowledge.
  bool may_have_missed(const Place& place) const noexcept { return has_pruned_ && place.owner != rank_; }
  /// All versions of the data so far have been seen here.
  bool knows_version(const Place& place) const noexcept { return !has_pruned_ || place.always_here; }

  // --- the next version is made
  void overwrite(runtime::Handle& handle, std::uint32_t executor);
  void close_version(Datum& datum, Place& place);
  void count_version(const Datum& datum, FlowStatistics& statistics) const;
  void drop(runtime::Handle& handle);
  void drop_copy(runtime::Handle& handle);
  void mark_lost(runtime::Handle& handle);

  void abandon(runtime::Handle& handle);
  void let_go(runtime::Handle& handle);
  void take_home(runtime::Handle& handle);
  void bring_home();
  Datum& datum_of(runtime::Handle& handle);
  static std::shared_ptr<PackedValue> packed_of(Datum& datum);
  KeptCopies& kept(std::unordered_map<std::uint32_t, KeptCopies>& by_peer, std::uint32_t peer);
  bool keeps_all() const noexcept { return kept_bytes_ == SIZE_MAX; }

  // --- agreement.cpp's users
  void agree_on_start();
  /// Whether this rank is traced, and has not compared its clock with the others'.
  bool wants_clocks() const;
  /// When all ranks want to.
  void compare_clocks();
  void begin_check_of_flow();
  void name_difference(const std::string& what);
  void agree_on_outcome();
  std::vector<std::byte> agree(std::vector<std::byte> mine, Agreement::Merge merge);
  void work_until(const std::atomic<bool>& done);
  void throw_if_aborted();
  void tell_abort(const std::string& text);
  void note_loss(const std::string& text);
  void send_abort(std::uint32_t to, const std::string& text, const std::function<void()>& told);

  // --- cancel.cpp: where a cancelled flow ends
  bool may_enter(std::uint64_t position);
  bool comes_to_end();
  void close();
  void join_cancel(std::uint64_t flow, std::optional<std::uint32_t> told_by);
  void decide_end(std::span<const std::byte> outcome);
  void give_up_cancel();
  bool stop_cancels();
  void begin_next_flow(bool cancelled);

  /// Idle workers look after the endpoint while this lives.
  struct Attended {
    base::Attendance& by;
    Attended(base::Attendance& attendance, base::IdleWork* work) : by(attendance) { by.set(work); }
    ~Attended() { by.set(nullptr); }
    Attended(const Attended&) = delete;
    Attended& operator=(const Attended&) = delete;
  };

  runtime::RuntimeCore& core_;
  std::unique_ptr<comm::Endpoint> endpoint_;
  const std::uint32_t rank_;
  const std::uint32_t size_;
  FlowOptions options_;
  comm::Channel data_channel_;
  comm::Channel explicit_channel_;
  Transfers transfers_;
  Agreement agreement_;
  CopyBudget copies_;
  std::size_t kept_bytes_ = SIZE_MAX;  ///< by each pair of ranks
  std::unordered_map<std::uint32_t, KeptCopies> kept_from_;  ///< here, of another rank's data
  std::unordered_map<std::uint32_t, KeptCopies> kept_at_;    ///< there, of ours
  PlacementPolicy placement_;

  std::uint64_t position_ = 0;
  std::uint64_t digest_ = 0;                ///< of what was written since ranks last pruned
  std::uint64_t data_digest_ = 0;           ///< of what was registered
  FlowStatistics counts_;
  std::vector<runtime::Handle*> handles_;                           ///< by id; null once it was let go
  std::unordered_map<std::uint32_t, std::unique_ptr<Datum>> data_;  ///< that has travelled, by id
  std::vector<runtime::Handle*> away_;  ///< data that may be held by another rank than its owner
  std::vector<Need> needs_;             ///< of the task that is entered
  std::vector<runtime::Handle*> to_drop_;  ///< copies that are not kept beyond the task that is entered
  std::vector<std::atomic<std::uint64_t>*> agreed_;
  std::atomic<bool> flow_checked_{false};  ///< the ranks have compared their flows, without a difference; guards the next two
  std::uint64_t end_of_all_ = 0;           ///< the last position, data on their way home included, of any rank
  bool any_pruned_ = false;                ///< some rank has passed over tasks since the last wait
  std::atomic<bool> aborted_{false};
  bool abort_told_ = false;                ///< the program has caught why
  std::vector<Shares> shares_;             ///< of data that is `reducing`, by the start of that
  std::vector<comm::Recipient> recipients_, unserved_;  ///< of the send that is submitted, kept for their memory
  Recording* recording_ = nullptr;         ///< takes the tasks that are submitted; null: they run
  bool looks_closely_ = false;             ///< tasks are recorded, or checked
  bool pruned_ = false;                    ///< this rank has passed over tasks since the last wait
  bool has_pruned_ = false;                ///< or ever
  bool skipping_ = false;                  ///< what is submitted is what would be passed over
  Agreement cancel_agreement_;             ///< a round for each flow that is cancelled
  comm::Channel cancel_channel_;
  std::mutex cancel_mutex_;                ///< guards what follows, but for `Cutoff::within`
  runtime::Cutoff entering_;               ///< positions that are entered
  std::uint64_t flow_number_ = 0;          ///< waits that have ended
  std::uint64_t end_of_tasks_ = 0;         ///< once decided
  bool joined_ = false;                    ///< this rank knows that the present flow is cancelled
  bool told_early_ = false;                ///< the next one is, say ranks that have come to it
  bool ending_ = false;                    ///< all tasks have ended here, and it is too late to cancel
  std::atomic<bool> end_decided_{false};
  bool closed_ = false;                    ///< the present flow has ended here, with all data on their way home
  std::uint64_t closed_at_ = 0;            ///< by the submitting thread
  std::optional<std::uint64_t> cancelled_at_;
  std::uint64_t waited_at_ = 0;            ///< the position of the last wait that all ranks have ended
  std::optional<Attended> attended_;
  std::unique_ptr<TraceClocks> clocks_;    ///< null: no trace, or not on all ranks
  bool clocks_compared_ = false;           ///< or tried to
};

}  // namespace tandem::dist
