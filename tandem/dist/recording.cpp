// tandem/dist/recording.cpp: derives sendings and ends from a recorded flow, and copies its tasks.
#include "tandem/dist/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/base/narrow.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/main_memory_codelet.hpp"

namespace tandem::dist {

using runtime::Handle;
using runtime::Task;
using runtime::TaskRef;
using Kind = RecordedOperation::Kind;

namespace {

bool sees(AccessMode mode) { return sees_value(mode) || mode == AccessMode::reduce; }
bool makes(AccessMode mode) { return makes_value(mode) || mode == AccessMode::reduce; }

/// Mode that an operation without a task corresponds to, for a version and its recipients. `flush` ends a version's
/// copies as a write does; a migration is a task of the next owner that changes nothing.
AccessMode mode_of(Kind kind) {
  if (kind == Kind::migrate) return AccessMode::read_write;
  return kind == Kind::flush || kind == Kind::receive ? AccessMode::write : AccessMode::read;
}

}  // namespace

Recording::~Recording() {
  for (const RecordedOperation& operation : operations_)
    if (operation.model != nullptr) runtime_.submission().abandon(*operation.model);
}

TaskRef Recording::add(std::span<const Use> uses, const Wish& wish, Task* model, const RecordedEvent* event) {
  std::vector<std::uint32_t> predecessors;
  const auto refuse = [&](const std::string& why) {
    const std::string at = wish.where ? fmt::format(" (at {})", runtime::describe(wish.where)) : "";
    if (model != nullptr) runtime_.submission().abandon(*model);
    throw UsageError(fmt::format("a task{} cannot be recorded: {}", at, why));
  };
  for (const Use& use : uses)
    if (use.handle == nullptr || !runtime_.data().owns(*use.handle))
      refuse("it uses data that is not registered with this runtime");
  if (model != nullptr && model->ops->value_bytes != 0 && model->ops->copy_values == nullptr)
    refuse("its values cannot be copied; pass pointers or data instead");
  for (const TaskRef& task : wish.after) {
    if (task.task == nullptr) continue;  // a task of another rank
    if (!task.is_of_recording(number_)) refuse("it is to follow a task that is not of the recording");
    predecessors.push_back(task.recorded_index());
  }
  for (const Use& use : uses)
    if (makes(use.mode)) note_value(*use.handle, true);
  uses_.emplace_back(uses.begin(), uses.end());
  after_.push_back(std::move(predecessors));
  for (const Use& use : uses) kept_.keep(*use.handle);
  const auto index = base::narrow<std::uint32_t>(operations_.size());
  operations_.push_back({.executor = *wish.on, .priority = wish.priority, .where = wish.where, .model = model,
                         .is_task = wish.is_task});
  if (wish.is_task) ++task_count_;
  if (event != nullptr) {
    events_.push_back(*event);
    operations_.back().event = base::narrow<std::uint32_t>(events_.size());
    if (event->with_release) ++task_count_;
  }
  return model != nullptr ? TaskRef::recorded(model, number_, index) : TaskRef{};
}

void Recording::add(const RecordedOperation& operation, Handle& handle) {
  if (!runtime_.data().owns(handle))
    throw UsageError(fmt::format("an operation of {} cannot be recorded: it is not registered with this runtime",
                                 handle.described()));
  if (operation.kind == Kind::migrate)
    moves_.try_emplace(&handle, Move{.from = place_of(handle).owner}).first->second.to = operation.executor;
  uses_.push_back({{&handle, mode_of(operation.kind)}});
  if (operation.kind == Kind::receive) note_value(handle, true);
  after_.emplace_back();
  kept_.keep(handle);
  operations_.push_back(operation);
}

void Recording::add(RecordedOperation operation, Handle& handle, Message message) {
  if (operation.kind == Kind::send && !operations_.empty() && operations_.back().kind == Kind::send) {
    // Sends without another operation between them become one: the value goes to all at once.
    Message& last = messages_.back();
    const comm::Recipient& to = message.recipients.front();
    if (uses_.back().front().handle == &handle && last.tag == message.tag &&
        std::none_of(last.recipients.begin(), last.recipients.end(),
                     [&](const comm::Recipient& known) { return known.rank == to.rank; }))
      return last.recipients.push_back(to);
  }
  if (operation.kind == Kind::send) message.plan = std::make_shared<comm::BroadcastPlan>();
  operation.message = base::narrow<std::uint32_t>(messages_.size());
  add(operation, handle);
  messages_.push_back(std::move(message));
}

std::uint32_t Recording::owner_of(Handle& handle) const {
  const auto moved = moves_.find(&handle);
  return moved != moves_.end() ? moved->second.to : place_of(handle).owner;
}

void Recording::check_data() const {
  kept_.check(runtime_.data());
  Handle* wrong = nullptr;  // the one that was registered first, so that all ranks name the same
  for (const auto& [handle, move] : moves_)
    if (place_of(*handle).owner != move.from && (wrong == nullptr || place_of(*handle).id < place_of(*wrong).id))
      wrong = handle;
  if (wrong == nullptr) return;
  const Move& move = moves_.at(wrong);
  throw UsageError(
      fmt::format("cannot replay: rank {} owns {}, but rank {} did when the graph was recorded, which migrates it and "
                  "leaves it to rank {}; "
                  "migrate it back to rank {} at the end of the recording, or before each replay",
                  place_of(*wrong).owner, wrong->described(), move.from, move.to, move.from));
}

void Recording::skip(std::uint64_t tasks) {
  task_count_ += tasks;
  if (!operations_.empty() && operations_.back().kind == Kind::skip) {
    operations_.back().tasks += tasks;
    return;
  }
  uses_.emplace_back();
  after_.emplace_back();
  operations_.push_back({.kind = Kind::skip, .tasks = tasks});
}

void Recording::finish() {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    operations_[i].uses = uses_[i];
    operations_[i].after = after_[i];
  }
  submitted_.resize(operations_.size());
  has_value_.clear();
  find_sendings();
  find_ends();
}

/// Lists the ranks that see a version, at the first task that does.
void Recording::find_sendings() {
  struct Readers {
    std::size_t first = 0;
    std::vector<RecordedSending> ranks;
  };
  std::unordered_map<Handle*, Readers> present;
  std::vector<std::vector<RecordedSending>> at(operations_.size());
  const auto close = [&](Readers& readers) {
    auto& here = at[readers.first];
    const bool several =
        readers.ranks.size() > 1 || (readers.ranks.size() == 1 && readers.ranks[0].recipient == kEverywhere);
    if (several) here.insert(here.end(), readers.ranks.begin(), readers.ranks.end());
    readers.ranks.clear();
  };
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const RecordedOperation& operation = operations_[i];
    for (const Use& use : operation.uses) {
      if (!sees(use.mode) || place_of(*use.handle).owner == kEverywhere) continue;
      Readers& readers = present[use.handle];
      if (readers.ranks.empty()) readers.first = i;
      const auto known = std::find_if(readers.ranks.begin(), readers.ranks.end(), [&](const RecordedSending& sending) {
        return sending.recipient == operation.executor;
      });
      if (known == readers.ranks.end())
        readers.ranks.push_back({use.handle, operation.executor, operation.priority, operation.codelet()});
      else known->priority = std::max(known->priority, operation.priority);
    }
    for (const Use& use : operation.uses)
      if (const auto readers = present.find(use.handle); makes(use.mode) && readers != present.end())
        close(readers->second);
  }
  // The loop follows the order of the flow, which is equal on all ranks, unlike that of a hash table.
  for (std::size_t i = 0; i < operations_.size(); ++i)
    for (const Use& use : operations_[i].uses)
      if (const auto readers = present.find(use.handle); readers != present.end() && readers->second.first == i)
        close(readers->second);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    operations_[i].first_sending = base::narrow<std::uint32_t>(sendings_.size());
    operations_[i].sendings = base::narrow<std::uint32_t>(at[i].size());
    sendings_.insert(sendings_.end(), at[i].begin(), at[i].end());
  }
}

/// Lists the tasks of this rank that no other task follows.
void Recording::find_ends() {
  struct Last {
    std::uint32_t writer = kNone;
    std::vector<std::uint32_t> readers;
  };
  std::unordered_map<Handle*, Last> last;
  std::vector<bool> followed(operations_.size(), false);
  for (std::uint32_t i = 0; i < operations_.size(); ++i) {
    if (operations_[i].model == nullptr) continue;
    for (const std::uint32_t before : operations_[i].after) followed[before] = true;
    for (const Use& use : operations_[i].uses) {
      if (use.mode == AccessMode::scratch) continue;
      Last& known = last[use.handle];
      // Members of a group of `commute` or `reduce` do not follow each other.
      const bool orders =
          use.mode == AccessMode::read || use.mode == AccessMode::write || use.mode == AccessMode::read_write;
      if (orders && known.writer != kNone && known.writer != i) followed[known.writer] = true;
      if (use.mode == AccessMode::read || !orders) {
        known.readers.push_back(i);
        continue;
      }
      for (const std::uint32_t reader : known.readers) followed[reader] = followed[reader] || reader != i;
      known.readers.clear();
      known.writer = i;
    }
  }
  for (std::uint32_t i = 0; i < operations_.size(); ++i)
    if (operations_[i].model != nullptr && !followed[i]) last_.push_back(i);
}

Task* Recording::change(const TaskRef& task) {
  if (task.task == nullptr) return nullptr;
  check_change(task);
  return task.task;
}

/// Whether the recording adds to the data, also by shares: tasks of Tandem's own then write it.
bool Recording::adds_to(const Handle& handle) const {
  return std::any_of(operations_.begin(), operations_.end(), [&](const RecordedOperation& operation) {
    return std::any_of(operation.uses.begin(), operation.uses.end(), [&](const Use& use) {
      return use.handle == &handle && (use.mode == AccessMode::reduce || !operation.is_task);
    });
  });
}

void Recording::rebind(Handle& from, Handle& to) {
  check_rebind(from, to, kept_.holds(from), kept_.holds(to));
  if (to.reduction == nullptr && adds_to(from))
    throw UsageError(fmt::format("cannot rebind {} to {}, which has no reduction, but tasks of the graph add to it",
                                 from.described(), to.described()));
  const auto moved = moves_.find(&from);
  const std::uint32_t owner = moved != moves_.end() ? moved->second.from : place_of(from).owner;
  if (owner != place_of(to).owner)
    throw UsageError(
        fmt::format("cannot rebind {} to {}: ranks {} and {} own them, and a recording fixes where tasks run",
                    from.described(), to.described(), owner, place_of(to).owner));
  if (moved != moves_.end()) {
    moves_.emplace(&to, moved->second);
    moves_.erase(&from);
  }
  for (std::vector<Use>& uses : uses_)
    for (Use& use : uses)
      if (use.handle == &from) use.handle = &to;
  for (RecordedSending& sending : sendings_)
    if (sending.handle == &from) sending.handle = &to;
  for (const RecordedOperation& operation : operations_) {
    if (operation.model == nullptr) continue;
    for (unsigned slot = 0; slot < operation.model->access_count; ++slot)
      if (operation.model->accesses()[slot].handle() == &from) operation.model->accesses()[slot].rebind(&to);
  }
  kept_.keep(to);
  kept_.drop(from);
}

void Recording::submit(const RecordedOperation& operation) {
  TaskRef& submitted = submitted_[static_cast<std::size_t>(&operation - operations_.data())];
  if (operation.event != 0) {
    const runtime::EventTasks event = events_[operation.event - 1].submit(operation.uses);
    submitted = event.readable;
    if (event.released.task != nullptr) ends_.push_back(event.released);
    return;
  }
  Task& task = runtime_.submission().begin_copy(*operation.model);
  std::vector<TaskRef> predecessors;
  for (const std::uint32_t before : operation.after) predecessors.push_back(submitted_[before]);
  submitted = runtime_.submission().submit_after(task, predecessors.data(), predecessors.size());
}

runtime::Replay Recording::replay() {
  static constexpr runtime::TaskOps nothing{.invoke = [](runtime::KernelCall&) {}};
  static const std::shared_ptr<runtime::CodeletCore> codelet = runtime::make_cpu_codelet("end of a replay");
  ends_.clear();
  if (!flow_.replay(*this)) return {};
  for (const std::uint32_t last : last_) ends_.push_back(submitted_[last]);
  Task& end = runtime_.submission().begin(codelet, nothing, 0);
  return {runtime_.submission().submit_after(end, ends_.data(), ends_.size()), number_, 0};
}

}  // namespace tandem::dist
