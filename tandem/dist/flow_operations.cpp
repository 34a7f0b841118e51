// tandem/dist/flow_operations.cpp: operations of a flow that are no tasks, and recorded flows.
#include <fmt/format.h>

#include <optional>

#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/copies.hpp"
#include "tandem/dist/explicit_messages.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/dist/pruning.hpp"
#include "tandem/dist/recording.hpp"
#include "tandem/dist/reductions.hpp"
#include "tandem/dist/versions.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::dist {

using runtime::Handle;
using Kind = RecordedOperation::Kind;

// --- fetch, migrate, flush

void Flow::fetch(Handle* data, std::uint32_t rank, const SourceLine& where) {
  Handle& handle = named(data, "fetch");
  if (is_over()) return;
  if (rank != kEverywhere && rank >= size_)
    throw UsageError(fmt::format("cannot fetch {} to rank {}: there are {} ranks", handle.described(), rank, size_));
  if (recording_ == nullptr) return fetch_now(handle, rank, {.where = where}, {});
  settle(handle);
  recording_->add({.kind = Kind::fetch, .executor = rank, .where = where}, handle);
}

/// Performs a fetch; `ahead`: for a recorded one, all sendings of its version.
void Flow::fetch_now(Handle& handle, std::uint32_t rank, const Wish& wish, std::span<RecordedSending> ahead) {
  settle(handle);
  begin_operation();
  note(OperationKind::fetch, handle, AccessMode::read, rank, wish.where);
  const Use use{&handle, AccessMode::read};
  gather_needs({&use, 1}, needs_);
  check_values(rank, wish);
  if (rank == rank_ || rank == kEverywhere) pruning_->check_known(handle, wish.where);
  versions_->bring_recorded(ahead);
  versions_->bring(handle, rank, Versions::Purpose::copy, wish.priority);
  if (rank == rank_ || rank == kEverywhere) check_copies(wish);
  entered();
}

void Flow::migrate(Handle* data, std::uint32_t rank, const SourceLine& where) {
  Handle& handle = named(data, "migrate");
  if (is_over()) return;
  if (rank >= size_)
    throw UsageError(fmt::format("cannot migrate {} to rank {}{}: there are {} ranks", handle.described(), rank,
                                 where ? fmt::format(" (at {})", runtime::describe(where)) : "", size_));
  if (place_of(handle).owner == kEverywhere)
    throw UsageError(fmt::format("cannot migrate {}: each rank has it for itself", handle.described()));
  if (recording_ == nullptr) return migrate_now(handle, rank, where);
  settle(handle);
  recording_->add({.kind = Kind::migrate, .executor = rank, .where = where}, handle);
}

void Flow::migrate_now(Handle& handle, std::uint32_t rank, const SourceLine& where) {
  settle(handle);
  begin_operation();
  note(OperationKind::migrate, handle, AccessMode::read_write, rank, where);
  Place& place = place_of(handle);
  if (place.owner == rank) return;
  if (rank == rank_) pruning_->check_known(handle, where);
  // Other ranks may have skipped the task that wrote it: only a rank that sees the data knows whether there is a value.
  place.always_here = false;
  if (!place.unwritten) versions_->bring(handle, rank, Versions::Purpose::possession, 0);
  const bool unwritten = place.unwritten;
  place.owner = rank;
  core_.submission().trace().emit<trace::Type::data_migrated>(handle.number, rank);
  if (place.holder != rank) versions_->overwrite(handle, rank);
  place.unwritten = unwritten;
  entered();
}

void Flow::flush(Handle* data) {
  Handle& handle = named(data, "flush");
  if (is_over()) return;
  if (recording_ == nullptr) return flush_now(handle);
  settle(handle);
  recording_->add({.kind = Kind::flush}, handle);
}

void Flow::flush_now(Handle& handle) {
  settle(handle);
  begin_operation();
  note(OperationKind::flush, handle, AccessMode::read, kEverywhere, {});
  versions_->flush(handle);
}

// --- explicit messages

void Flow::send(Handle& handle, std::uint32_t to, std::uint64_t tag, int priority) {
  if (to >= size_ || to == rank_)
    throw UsageError(fmt::format("cannot send {} from rank {} to rank {} of {}", handle.described(), rank_, to, size_));
  if (is_over()) return;
  const comm::Recipient recipient{base::Rank(to), priority};
  if (recording_ == nullptr) return messages_->send(handle, {&recipient, 1}, tag, nullptr);
  recording_->add({.kind = Kind::send}, handle, {.tag = tag, .recipients = {recipient}});
}

void Flow::receive(Handle& handle, std::uint32_t from, std::uint64_t tag) {
  if (from >= size_ || from == rank_)
    throw UsageError(
        fmt::format("cannot receive {} on rank {} from rank {} of {}", handle.described(), rank_, from, size_));
  if (is_over()) return;
  if (recording_ == nullptr) return messages_->receive(handle, from, tag);
  recording_->add({.kind = Kind::receive, .executor = from}, handle, {.tag = tag});
}

// --- recorded flows

void Flow::refuse_recording() {
  throw UsageError(
      "only tasks, events with a start, fetch, migrate, flush, send and receive can be recorded on several ranks: wait "
      "before or "
      "after; where you would acquire data, submit a task with a lambda, which gets it in each replay");
}

std::unique_ptr<runtime::RecordedFlow> Flow::record(const std::function<void()>& flow) {
  if (recording_ != nullptr) throw UsageError("cannot record a graph while another is recorded");
  auto recording = std::make_unique<Recording>(core_, *this);
  struct End {
    Flow& flow;
    ~End() {
      flow.recorded_reductions_.reset();
      flow.recording_ = nullptr;
      flow.enters_all_ = flow.options_.check_pruning;
    }
  };
  {
    const End end{*this};
    recording_ = recording.get();
    recorded_reductions_ = std::make_unique<Reductions>(core_, *this, placement_, *pruning_, recording_);
    enters_all_ = true;
    flow();
    recorded_reductions_->gather_all();
  }
  recording->finish();
  return recording;
}

bool Flow::place_recorded(std::span<const Use> uses, Wish& wish) {
  settle_all(uses);
  wish.on = placement_.executor_of(uses, wish, recording_);
  return *wish.on == rank_ || *wish.on == kEverywhere;
}

runtime::TaskRef Flow::add_recorded(std::span<const Use> uses, const Wish& wish, runtime::Task* model,
                                    const RecordedEvent* event) {
  const runtime::TaskRef name = recording_->add(uses, wish, model, event);
  if (pruning_->is_skipping()) recording_->note_skipped();
  return name;
}

bool Flow::replay(Recording& recording) {
  if (recording_ != nullptr)
    throw UsageError(
        "cannot replay a graph while a graph is recorded: nothing runs meanwhile; do it outside the recording, before "
        "or after a replay");
  if (is_over()) return false;
  recording.check_data();
  // If the workers are paused, it throws before anything is entered; otherwise each operation waits.
  core_.submission().make_room();
  const bool may_wait = !core_.workers().are_paused();
  for (const RecordedOperation& operation : recording.operations()) {
    if (operation.kind == Kind::skip) {
      skip_to(position_.value + operation.tasks);
      continue;
    }
    if (operation.kind != Kind::task) {
      perform(recording, operation);
      continue;
    }
    const std::uint32_t executor = operation.executor;
    const bool elsewhere = executor != rank_ && executor != kEverywhere;
    // With a budget for copies, a copy that comes long before its task might be dropped before it.
    const bool sends_ahead = operation.sendings > 0 && copies_->keeps_all();
    if (elsewhere && !sends_ahead && !options_.check_pruning && try_skip(operation.uses, operation.where, executor))
      continue;
    if (!elsewhere && may_wait) core_.submission().make_room();
    std::optional<SkipCheck> skip_check;
    if (operation.skipped) skip_check.emplace(*this, 0);
    for (const Use& use : operation.uses) settle(*use.handle);
    begin_operation();
    copies_->drop_refused();
    const Wish wish{.priority = operation.priority, .where = operation.where, .is_task = operation.is_task,
                    .codelet = operation.codelet()};
    if (sends_ahead) {
      gather_needs(operation.uses, needs_);
      check_values(executor, wish);  // throws before anything is sent
      versions_->bring_recorded(recording.sendings(operation));
    }
    if (!enter_at(executor, operation.uses, wish)) continue;
    recording.submit(operation);
    entered();
  }
  return true;
}

/// Performs a recorded operation that is no task.
void Flow::perform(Recording& recording, const RecordedOperation& operation) {
  Handle& handle = *operation.uses.front().handle;
  const Wish wish{.priority = operation.priority, .where = operation.where};
  const auto ahead = copies_->keeps_all() ? recording.sendings(operation) : std::span<RecordedSending>();
  switch (operation.kind) {
    case Kind::fetch: return fetch_now(handle, operation.executor, wish, ahead);
    case Kind::migrate: return migrate_now(handle, operation.executor, operation.where);
    case Kind::flush: return flush_now(handle);
    case Kind::send: {
      const Recording::Message& message = recording.message(operation);
      return messages_->send(handle, message.recipients, message.tag, message.plan);
    }
    case Kind::receive: return messages_->receive(handle, operation.executor, recording.message(operation).tag);
    case Kind::task:
    case Kind::skip: return;
  }
}

}  // namespace tandem::dist
