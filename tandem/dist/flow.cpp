// tandem/dist/flow.cpp: the work of a rank for a task, and the beginning and the end of a flow.
#include "tandem/dist/flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <tuple>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/base/narrow.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/cancellation.hpp"
#include "tandem/dist/copies.hpp"
#include "tandem/dist/data_table.hpp"
#include "tandem/dist/explicit_messages.hpp"
#include "tandem/dist/flow_agreement.hpp"
#include "tandem/dist/flow_sketch.hpp"
#include "tandem/dist/job_abort.hpp"
#include "tandem/dist/pruning.hpp"
#include "tandem/dist/recording.hpp"
#include "tandem/dist/reductions.hpp"
#include "tandem/dist/standstill.hpp"
#include "tandem/dist/transfers.hpp"
#include "tandem/dist/versions.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::dist {

using runtime::Handle;

/// Idle workers poll the endpoint while this lives.
struct Flow::Attended {
  base::Attendance& by;
  Attended(base::Attendance& attendance, base::IdleWork* work) : by(attendance) { by.set(work); }
  ~Attended() { by.set(nullptr); }
  Attended(const Attended&) = delete;
  Attended& operator=(const Attended&) = delete;
};

namespace {

/// Text for the watchdog: the missing ranks.
std::string explain_missing(const std::vector<base::Rank>& ranks) {
  if (ranks.empty()) return {};
  std::string list;
  for (const base::Rank rank : ranks) list += fmt::format("{}{}", list.empty() ? "" : ", ", rank.value());
  return fmt::format("\n  {} {} not joined the job yet: other ranks wait for {}", ranks.size() == 1 ? "rank" : "ranks",
                     list + (ranks.size() == 1 ? " has" : " have"), ranks.size() == 1 ? "it" : "them");
}

}  // namespace

Flow::Flow(runtime::RuntimeCore& core, std::unique_ptr<comm::Endpoint> endpoint, const FlowOptions& options)
    : ProgramFlow(core),
      endpoint_(std::move(endpoint)),
      rank_(endpoint_->rank().value()),
      size_(endpoint_->size()),
      options_(options),
      placement_(size_),
      pruning_(std::make_unique<Pruning>(rank_)),
      table_(std::make_unique<DataTable>(rank_, size_)),
      transfers_(std::make_unique<Transfers>(core, *endpoint_, options.transfers)),
      copies_(std::make_unique<Copies>(core, *table_, size_)),
      versions_(std::make_unique<Versions>(core, *endpoint_, *transfers_, *table_, *copies_, *pruning_)),
      messages_(std::make_unique<ExplicitMessages>(*endpoint_, *transfers_, *table_)),
      reductions_(std::make_unique<Reductions>(core, *this, placement_, *pruning_, nullptr)),
      abort_(std::make_unique<JobAbort>(core, *endpoint_, *transfers_)),
      agreement_(std::make_unique<FlowAgreement>(core, *endpoint_, *abort_, *transfers_, *table_,
                                                 options.trace_sync_every_ns)),
      cancellation_(std::make_unique<Cancellation>(core, *endpoint_, *abort_, position_)),
      standstill_(std::make_unique<Standstill>(*endpoint_, *transfers_, *table_, [this] { return sketch(); })),
      enters_all_(options.check_pruning) {
  core_.executor().expect_ranks();
  abort_->listen([this] {
    copies_->lift_budget();
    cancellation_->give_up();
  });
  core_.loop().watch({.every_ns = options_.compare_after_ns, .standstill = [this] { standstill_->look(); },
                      .explain = [this] { return explain_wait() + explain_missing(endpoint_->missing_ranks()); }});
  core_.data().on_end_of_data({.abandoned = [this](Handle& handle) { abandon(handle); },
                        .let_go = [this](Handle& handle) { let_go(handle); }});
  if (options_.idle_progress)
    attended_ = std::make_unique<Attended>(core_.workers().attendance(), endpoint_->idle_work());
  core_.trace().describe_owners_by([](const Handle& handle) { return place_of(const_cast<Handle&>(handle)).owner; });
  if (core_.trace().session() != nullptr) trace_transfers_to(*core_.trace().session());
  most_workers_ = base::narrow<unsigned>(core_.world().machine.workers.size());
  has_budgets_ = core_.memory().is_limited(0);
  if (size_ == 1) return;
  core_.memory().set_owner(fmt::format("of rank {}", rank_));
  try {
    const FlowAgreement::Start all =
        agreement_->start({options_.copy_bytes, most_workers_, core_.memory().is_limited(0)});
    copies_->set_budget(all.copy_bytes);
    has_budgets_ = all.budgets;
    if (has_budgets_) transfers_->send_in_turns();
    most_workers_ = all.workers;
  } catch (...) {  // the job has failed: no destructor runs
    detach();
    throw;
  }
}

Flow::~Flow() {
  end();
  detach();
}

/// Detaches the parts: afterwards neither the runtime nor the endpoint calls them.
void Flow::detach() {
  core_.data().on_end_of_data({});
  core_.loop().watch({});
  core_.trace().describe_owners_by({});
  agreement_->drop_clocks();  // before the endpoint closes, since this notifies the other ranks
  attended_.reset();
  endpoint_->close();
}

bool Flow::end() noexcept {
  if (std::exchange(ended_, true)) return true;
  try {
    // Other ranks may wait for work that this rank will not do any more.
    const bool leaves = std::uncaught_exceptions() > 0;
    if (leaves) transfers_->abort(fmt::format("rank {} left in the middle of the flow", rank_));
    else if (waited_at_ != position_.value && !abort_->aborted()) wait();
    core_.waits().drain();
    if (!leaves && !abort_->reported()) abort_->throw_if_aborted();
    if (!leaves && !abort_->aborted()) agreement_->end_clocks();
    return true;
  } catch (const std::exception& error) {
    core_.log().error("at the end of the flow: {}", error.what());
  } catch (...) {
    core_.log().error("at the end of the flow: a kernel threw something that is no std::exception");
  }
  return false;
}

// --- data

void Flow::add(Handle& handle, std::uint32_t owner, bool has_value) {
  table_->add(handle, owner, has_value);
  core_.trace().describe_data(handle, owner);
}

bool Flow::has_spare_id() const noexcept {
  constexpr runtime::TaskId ids = runtime::TaskId{1} << runtime::TaskNumber::kBits;
  return core_.submission().last_id() % ids < ids / 2;
}

std::uint32_t Flow::reserve(std::size_t count, const std::function<std::uint64_t()>& digest) {
  return table_->reserve(count, digest());
}

void Flow::add_reserved(Handle& handle, std::uint32_t owner, std::uint32_t number) {
  table_->add_reserved(handle, owner, number);
  core_.trace().describe_data(handle, owner);
}

/// The program has dropped the data, on every rank at this position. A value that belongs into the owner's own memory
/// goes there. That is no position of its own, so a rank that skips tasks need not know that the data is away. It does
/// not happen when an exception drops the data: other ranks may never come here, and no rank may wait for what they
/// would send.
void Flow::abandon(Handle& handle) {
  const Place& place = place_of(handle);
  const bool comes_home = place.in_users_memory && std::uncaught_exceptions() == 0;
  if (comes_home) reductions_->settle(handle);
  reductions_->forget(handle);
  if (recorded_reductions_ != nullptr) recorded_reductions_->forget(handle);
  if (!versions_->unlist_away(handle) || !comes_home) return;
  core_.submission().raise_id(position_.first_id());
  position_.history.note_between(place.id);
  versions_->take_home(handle);
}

/// Forgets data that no task uses any more.
void Flow::let_go(Handle& handle) {
  if (!table_->contains(handle)) return;
  versions_->forget(handle);
  copies_->forget(handle);
  table_->remove(handle);
}

std::uint32_t Flow::owner_of(Handle& handle) const {
  const std::uint32_t owner = dist::owner_of(handle, recording_);
  return owner != kEverywhere ? owner : rank_;
}

bool Flow::has_value(Handle& handle) const {
  if (recording_ != nullptr)
    if (const auto known = recording_->has_value(handle)) return *known;
  return !place_of(handle).unwritten;
}

void Flow::forget_value(Handle& handle) {
  if (recording_ != nullptr) return recording_->note_value(handle, false);
  ProgramFlow::forget_value(handle);
  place_of(handle).unwritten = true;
}

void Flow::settle(Handle& handle) { reductions().settle(handle); }

// --- a task

void Flow::begin_operation() {
  if (recording_ != nullptr) refuse_recording();
  ++position_.value;
  core_.submission().raise_id(position_.first_id());
}

bool Flow::enter_slowly(std::span<const Use> uses, const Wish& wish) {
  settle_all(uses);
  copies_->drop_refused();
  for (const Use& use : uses) {
    if (use.handle != nullptr && core_.data().owns(*use.handle)) continue;
    begin_operation();
    position_.history.note_unknown(position_.value);
    return true;  // the runtime reports what is wrong with it, on every rank
  }
  const std::uint32_t executor = placement_.executor_of(uses, wish, recording_);
  begin_operation();
  return enter_at(executor, uses, wish);
}

bool Flow::enter_at(std::uint32_t executor, std::span<const Use> uses, const Wish& wish) {
  using Purpose = Versions::Purpose;
  position_.note(OperationKind::task, executor, wish.where, uses);
  gather_needs(uses, needs_);
  check_values(executor, wish);
  if (options_.check_pruning) pruning_->check_task(executor, needs_, wish);
  const bool here = executor == rank_ || executor == kEverywhere;
  for (const Need& need : needs_)
    if (need.sees)
      versions_->bring(*need.handle, executor, need.makes() ? Purpose::possession : Purpose::copy, wish.priority,
                       wish.codelet);
  if (here) check_copies(wish);
  for (const Need& need : needs_) {
    const Place& place = place_of(*need.handle);
    if (need.makes() && !need.sees && executor == rank_ && place.owner != kEverywhere && place.holder != rank_ &&
        !place.copied)
      versions_->mark_lost(*need.handle);
  }
  for (const Need& need : needs_)
    if (need.makes()) versions_->overwrite(*need.handle, executor, need.new_versions);
  if (!here) {
    entered();
    return false;
  }
  if (wish.is_task) ++tasks_;
  copies_->before_submit();
  return true;
}

/// Checks the copies of a task. If it is refused, its receives would wait for memory that they will not get.
void Flow::check_copies(const Wish& wish) {
  try {
    copies_->check_budget(needs_, wish);
  } catch (...) {
    transfers_->lift_bound();
    throw;
  }
}

void Flow::entered() { copies_->drop_unkept(); }

void Flow::check_values(std::uint32_t executor, const Wish& wish) {
  for (const Need& need : needs_) {
    Place& place = place_of(*need.handle);
    if (!need.sees || !place.unwritten) continue;
    if (pruning_->may_have_missed(place) && executor != rank_ && executor != kEverywhere) {
      place.unwritten = false;  // the executor knows
      continue;
    }
    throw UsageError(fmt::format(
        "a task{} sees {}, but nobody has written it before; write it first, or use mode write",
        wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "", need.handle->described()));
  }
}

void Flow::note(OperationKind kind, Handle& handle, AccessMode mode, std::uint32_t executor, const SourceLine& where) {
  const Use use{&handle, mode};
  position_.note(kind, executor, where, {&use, 1});
}

bool Flow::begin_task(std::span<Use> uses, Wish& wish, bool reduces) {
  if (recording_ != nullptr) settle_all(uses);
  if (reduces) reductions().share(uses, wish);
  if (recording_ == nullptr) return enter(uses, wish);
  const bool here = place_recorded(uses, wish);
  if (!here) add_recorded(uses, wish, nullptr);
  return here;
}

runtime::TaskRef Flow::submit(runtime::Task& task, std::span<const Use> uses, const Wish& wish) {
  if (recording_ != nullptr) return add_recorded(uses, wish, &task);
  const runtime::TaskRef ref = ProgramFlow::submit(task, uses, wish);
  entered();
  return ref;
}

void Flow::settle_all(std::span<const Use> uses) {
  for (const Use& use : uses) {
    const bool uses_value = use.mode != AccessMode::reduce && use.mode != AccessMode::scratch;
    if (uses_value && use.handle != nullptr && core_.data().owns(*use.handle)) settle(*use.handle);
  }
}

// --- loops pruned to this rank

void Flow::skip(std::uint64_t tasks) {
  if (tasks == 0) return;
  if (recording_ != nullptr) return recording_->skip(tasks);
  const std::uint64_t target = position_.value + tasks;
  if (position_.entering.within(target) || cancellation_->may_enter(target)) return skip_to(target);
  // The end is among the skipped tasks: this rank stops there, like a rank that submits them one by one.
  if (const std::uint64_t end = std::min(target, position_.entering.limit()); end > position_.value) skip_to(end);
  is_over();
}

void Flow::skip_to(std::uint64_t position) {
  pruning_->count_skipped(position - position_.value);
  position_.value = position;
}

bool Flow::concerns(std::span<const Use> uses) const { return pruning_->concerns(uses, placement_.has_policy()); }

Flow::SkipCheck::SkipCheck(Flow& flow, std::size_t index) : flow_(flow), index_(index), before_(flow.position()) {
  flow.pruning_->set_skipping(true);
}

Flow::SkipCheck::~SkipCheck() { flow_.pruning_->set_skipping(false); }

void Flow::SkipCheck::check_count() const {
  if (flow_.recording_ != nullptr || flow_.position() == before_ + 1 || flow_.is_over()) return;
  throw UsageError(fmt::format("a loop that is pruned to a rank submits one task per index; index {} has submitted {}",
                               index_, flow_.position() - before_));
}

// --- the end

/// Submits the last operations of a flow: all data goes home.
void Flow::close() {
  closed_at_ = position_.value;
  reductions_->gather_all();
  for (Handle* handle : versions_->take_away_list()) {
    if (!versions_->unlist_away(*handle)) continue;
    begin_operation();
    note(OperationKind::home, *handle, AccessMode::write, place_of(*handle).owner, {});
    versions_->take_home(*handle);
  }
}

/// Waits for the flow. A rank that gives up in the middle of a wait cannot take part in the next one.
void Flow::wait() {
  try {
    wait_for_all();
  } catch (const StuckError&) {
    transfers_->abort(fmt::format(
        "rank {} is stuck, and its watchdog has thrown; the log of that rank says what it waits for", rank_));
    throw;
  }
}

void Flow::wait_for_all() {
  if (recording_ != nullptr) throw UsageError("cannot wait while a graph is recorded");
  copies_->drop_refused();
  if (!closed_) close();
  begin_operation();
  position_.note(OperationKind::wait, kEverywhere, {}, {});
  std::optional<FlowAgreement::Wait> waiting(std::in_place, *agreement_);
  agreement_->begin_check({.positions = closed_at_, .end = position_.value, .digest = position_.history.digest(),
                           .pruned = pruning_->since_wait() ? 1U : 0U, .difference = {}},
                          {.versions_known = !pruning_->ever(), .sketch = [this] { return sketch(); }});
  core_.waits().drain();
  transfers_->forget_origins();
  const FlowReport check = agreement_->finish_check();
  waiting.reset();
  // A rank that has skipped tasks may not know of all data that came home.
  position_.value = check.end;
  position_.history.restart(check.end);
  pruning_->end_flow();
  waited_at_ = position_.value;  // also when a kernel has thrown: all ranks know

  const runtime::FailureLog::Report report = core_.waits().take_failures();
  Outcome mine;
  mine.cancelled = cancellation_->stop() ? 1 : 0;
  if (report.failure != nullptr) {
    const Transfers::Origin origin = transfers_->origin_of(*report.failure);
    mine.failure = report.failure->id;
    mine.failed_on = origin.rank;
    mine.description = origin.description;
  }
  const Outcome all = agreement_->outcome(std::move(mine));
  cancelled_at_.reset();
  cancelled_at_ = cancellation_->begin_next_flow(all.cancelled != 0, closed_at_);
  closed_ = false;
  if (all.traced != 0) agreement_->compare_clocks();
  TANDEM_AUDIT_ASSERT(check_invariants());
  if (all.failure == UINT64_MAX) return;
  if (report.failure != nullptr && report.failure->id == all.failure) core_.waits().throw_failure(report);
  // This rank has thrown it before, and it has caused a failure on another rank since.
  if (const runtime::FlowFailure* known = core_.executor().failures().find(all.failure); known != nullptr)
    std::rethrow_exception(known->exception);
  throw RemoteFailure(Transfers::Origin{base::saturated<std::uint32_t>(all.failed_on), all.description}.told());
}

/// Lines for the watchdog: what this rank waits for.
std::string Flow::explain_wait() const {
  constexpr std::size_t most_listed = 8;
  std::string text;
  std::vector<Transfers::Expected> expected = transfers_->expected();
  std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
    return std::tie(a.source, a.data, a.version) < std::tie(b.source, b.data, b.version);
  });
  for (std::size_t i = 0; i < std::min(expected.size(), most_listed); ++i) {
    const Transfers::Expected& one = expected[i];
    const std::string what = one.version == Transfers::kAnyVersion
                                 ? fmt::format("an explicit message with tag {}", one.tag)
                                 : fmt::format("version {}", one.version);
    text += fmt::format("\n  rank {} waits for rank {} to send data '{}', {}", rank_, one.source, one.data, what);
  }
  if (expected.size() > most_listed)
    text += fmt::format("\n  ... and for {} more messages", expected.size() - most_listed);
  return text + transfers_->explain_unsent() + agreement_->explain();
}

/// Sketch of the submitted operations; empty once this rank has skipped tasks, which it does not know.
FlowSketch Flow::sketch() const {
  if (!pruning_->since_wait()) return position_.history.sketch(position_.value);
  FlowSketch none;
  none.start = UINT64_MAX;
  return none;
}

void Flow::cancel() { cancellation_->cancel(); }

/// Asks for a position that this rank has not counted as submitted. True: it is behind the end.
bool Flow::comes_to_end() {
  if (cancellation_->may_enter(position_.value + 1)) return false;
  if (!std::exchange(closed_, true)) close();
  return true;
}

bool Flow::cancelled() {
  if (is_over()) return true;
  if (abort_->aborted()) abort_->throw_if_aborted();
  return false;
}

void Flow::abort(const std::string& why) { transfers_->abort(why); }

void Flow::agree_on_least(std::shared_ptr<std::atomic<std::uint64_t>> value) {
  agreement_->agree_on_least(std::move(value));
}

// --- what is known

void Flow::trace_to(trace::Session& session) {
  endpoint_->trace_to(session);
  trace_transfers_to(session);
}

void Flow::trace_transfers_to(trace::Session& session) noexcept {
  if (size_ > 1) core_.submission().flow().trace().share_stamps(nullptr);
  transfers_->trace_to(session);
}

bool Flow::check_invariants() const {
  return table_->check_invariants() && versions_->check_invariants() && copies_->check_invariants(rank_) &&
         transfers_->check_invariants();
}

FlowStatistics Flow::statistics() const {
  FlowStatistics statistics;
  statistics.positions = position_.value;
  statistics.tasks = tasks_;
  statistics.skipped = pruning_->skipped();
  versions_->add_to(statistics);
  statistics.received = transfers_->received();
  statistics.sent_from_devices = transfers_->sent_from_devices();
  statistics.received_in_devices = transfers_->received_in_devices();
  statistics.received_bytes = transfers_->received_bytes();
  statistics.most_copy_bytes = copies_->most_reserved();
  return statistics;
}

}  // namespace tandem::dist
