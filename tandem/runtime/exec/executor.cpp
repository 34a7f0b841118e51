// tandem/runtime/exec/executor.cpp: ready tasks, ended tasks, and their counts.
#include "tandem/runtime/exec/executor.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "tandem/runtime/exec/recorded_order.hpp"
#include "tandem/runtime/exec/turns.hpp"
#include "tandem/runtime/memory/device_error.hpp"
#include "tandem/runtime/sched/placing/placer.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::runtime {

Executor::Executor(const std::vector<WorkerSpec>& workers)
    : workers_(workers), binds_copies_(std::any_of(workers.begin(), workers.end(),
                                                   [](const WorkerSpec& worker) { return worker.binds_copies; })) {}

template <trace::Type T, class... Fields>
[[gnu::always_inline]] inline void Executor::emit(const Origin& origin, Fields... fields) {
  if (origin.trace != nullptr) return origin.trace->append<T>(fields...);
  if (trace::Session* const session = trace_.load(std::memory_order_acquire)) session->emit_shared<T>(fields...);
}

void Executor::trace_ready(const Task& task, const Origin& origin) {
  emit<trace::Type::task_ready>(origin, flow_position(task));
}

void Executor::dispatch(Task& task, Origin& origin) {
  switch (task.kind) {
    case TaskKind::kernel:
      if (__builtin_expect(task.special, 0)) {
        if (order_ != nullptr && !order_->admit(task)) return;
        if (enter_turnstiles(task)) enqueue_in_order(task, origin);
        return;
      }
      enqueue(task, origin);
      return;
    case TaskKind::join:
      task.next = origin.joins;
      origin.joins = &task;
      return;
    case TaskKind::event:
    case TaskKind::application:
      if (stage(task, choose_node(task)) && task.extra->on_ready != nullptr)
        task.extra->on_ready(task, task.extra->context);
      return;
  }
}

/// Whether the data of `task`, which no worker has taken, is on `node`, or will not come; else the listener is called
/// later.
bool Executor::stage(Task& task, NodeIndex node) {
  if (task.kind == TaskKind::event && task.extra->memory == EventMemory::later) return true;
  try {
    const bool is_hint = task.kind == TaskKind::event && task.extra->is_hint;
    if (why_cancelled(task) != nullptr) {
      if (is_hint) memory_->note_ignored_prefetch();
      return true;
    }
    return (is_hint ? memory_->prefetch(task, node) : memory_->acquire(task, node)) == Memory::Staging::ready;
  } catch (...) {
    if (writes_in_device(task)) {  // main memory is good enough
      memory_->give_back(task, node);
      task.extra->node = 0;
      return stage(task, 0);
    }
    staging_failed(task, std::current_exception());
    return true;
  }
}

/// Whether `task` is an event for which a memory was chosen (`ExternalEvents::write_in`).
bool Executor::writes_in_device(const Task& task) noexcept {
  return task.kind == TaskKind::event && task.extra->node != 0 && !task.extra->is_hint && task.extra->sources == 0;
}

/// Memory for the data of `task`, an event or an application's access.
NodeIndex Executor::choose_node(Task& task) {
  if (task.extra->sources != 0) [[unlikely]] task.extra->node = memory_->source_of(task);
  return static_cast<NodeIndex>(task.extra->node);
}

/// Memory in which `task`, whose data was staged, works.
NodeIndex Executor::node_of(const Task& task) const noexcept {
  if (task.kind != TaskKind::kernel) return task.extra != nullptr ? task.extra->node : 0;
  return task.room.is_pinned() ? workers_[task.progress].node : 0;
}

void Executor::enqueue(Task& task, Origin& origin) {
  if (__builtin_expect(task.restricted, 0)) return enqueue_restricted(task, origin);
  if (__builtin_expect(task.budgeted, 0)) return enqueue_budgeted(task, origin);
  switch (origin.kind) {
    case Origin::Kind::submitter:
      if (origin.trace != nullptr && origin.trace->any_on<trace::Type::task_pushed>()) [[unlikely]]
        return push_traced(task, origin);
      queues_->push_submitted(&task);
      return;
    case Origin::Kind::outside:
      emit<trace::Type::task_pushed>(origin, flow_position(task), ReadyQueues::kAnyQueue);
      queues_->push_from_outside(&task);
      return;
    case Origin::Kind::worker: return keep_or_queue(task, origin, true);
  }
}

/// Writes the push into the record of the submission, if that was the last one.
[[gnu::always_inline]] static inline void write_pushed(trace::Stream& stream, std::uint32_t task, unsigned worker) {
  if (std::uint32_t* const word = stream.open_word(task)) [[likely]]
    return trace::Stream::complete(word, (*word & 0xFFFF0000) | worker);
  stream.append<trace::Type::task_pushed>(task, worker);
}

[[gnu::noinline]] void Executor::push_traced(Task& task, const Origin& origin) {
  // Read now, since the task may run and end meanwhile.
  const auto number = static_cast<std::uint32_t>(flow_position(task));
  write_pushed(*origin.trace, number, queues_->push_submitted(&task));
}

void Executor::trace_pushed(std::uint32_t task, unsigned worker, const Origin& origin) {
  if (origin.trace != nullptr && origin.trace->any_on<trace::Type::task_pushed>()) [[unlikely]]
    write_pushed(*origin.trace, task, worker);
}

/// Keeps or queues a ready task of a worker. `told`: the trace has recorded that it is ready. Successors come newest
/// first: among equals the oldest stays to run next, and the others are queued in order behind it.
void Executor::keep_or_queue(Task& task, Origin& origin, bool told) {
  if (origin.keep == nullptr) {
    origin.keep = &task;
    origin.keep_told = told;
    return;
  }
  Task* queued = &task;
  if (task.priority >= origin.keep->priority) {
    std::swap(queued, origin.keep);
    std::swap(told, origin.keep_told);
  }
  if (origin.trace != nullptr) {
    trace::Stream& stream = *origin.trace;
    if (!told && stream.any_on<trace::Type::task_ready>() && stream.any_on<trace::Type::task_pushed>()) [[unlikely]] {
      stream.record<trace::Type::task_released>(stream.instant(), flow_position(*queued));
    } else {
      if (!told) stream.append<trace::Type::task_ready>(flow_position(*queued));
      stream.append<trace::Type::task_pushed>(flow_position(*queued), origin.worker);
    }
  }
  queues_->push_released(origin.worker, queued);
}

void Executor::trace_pushed_to(unsigned worker, const Task& task, const Origin& origin) {
  if (origin.trace != nullptr) trace_pushed(static_cast<std::uint32_t>(flow_position(task)), worker, origin);
  else emit<trace::Type::task_pushed>(origin, flow_position(task), worker);
}

void Executor::enqueue_restricted(Task& task, Origin& origin) {
  if (placer_ != nullptr) return place(task, origin);
  trace_pushed_to(ReadyQueues::kAnyQueue, task, origin);
  queues_->push_to(*task.extra->group, &task);
}

/// Hands `task` to the worker that ran it in the recorded run, and then lets the next one go on; without such a run,
/// queues it.
void Executor::enqueue_in_order(Task& task, Origin& origin) {
  if (order_ == nullptr) [[likely]] return enqueue(task, origin);
  bool is_first = true;
  for (Task* next = &task; next != nullptr && (is_first || enter_turnstiles(*next)); is_first = false) {
    const RecordedOrder::Turn* const turn = order_->turn_of(*next);
    if (turn == nullptr) return enqueue(*next, origin);
    if (next->restricted && std::ranges::count(next->extra->group->members, turn->worker) == 0) {
      enqueue(*next, origin);  // the file is not of this program: its worker cannot run the task
    } else {
      trace_pushed_to(turn->worker, *next, origin);
      queues_->push_pinned(turn->worker, next);
    }
    next = order_->pushed(*turn);
  }
}

void Executor::place(Task& task, Origin& origin) {
  push_placed(placer_->offer(task), origin);
  if (origin.gathers) origin.has_offered = true;
  else push_placed(placer_->serve(), origin);
}

/// The worker that has run the task chooses before others do.
void Executor::end_and_place(Task& task, Origin& origin) {
  origin.gathers = true;
  end_with_joins(task, origin);
  origin.gathers = false;
  if (!std::exchange(origin.has_offered, false)) return;
  if (origin.kind == Origin::Kind::worker) feed(origin.worker, origin);
  else push_placed(placer_->serve(), origin);
}

void Executor::feed(unsigned worker, Origin& origin) { push_placed(placer_->feed(worker), origin); }

/// Pushes tasks that the placer has given to workers.
void Executor::push_placed(Task* tasks, Origin& origin) {
  bool caller_has_left = false;
  while (tasks != nullptr) {
    Task& task = *std::exchange(tasks, tasks->next);
    trace_pushed_to(Placer::worker_of(task), task, origin);
    if (const PlacedTask& placed = task.extra->placed; placed.kernel_ns != 0)
      emit<trace::Type::task_expected>(origin, flow_position(task), static_cast<std::uint64_t>(placed.kernel_ns),
                                       static_cast<std::uint64_t>(placed.charged_ns - placed.kernel_ns));
    caller_has_left |= placer_->push(task);
  }
  if (caller_has_left) place_left(origin);
}

bool Executor::check_invariants() const {
  return queues_->check_invariants() && memory_gate_.check_invariants() &&
         (placer_ == nullptr || placer_->check_invariants());
}

void Executor::caller_arrives() noexcept {
  if (placer_ != nullptr) placer_->arrive();
}

void Executor::caller_leaves(Origin& origin) {
  if (placer_ == nullptr) return;
  placer_->leave();
  place_left(origin);
  feed(0, origin);  // for others, since the caller was perhaps the last that worked
}

/// Gives the tasks in the queue of the caller, which has left, to others.
void Executor::place_left(Origin& origin) {
  for (Task* task = placer_->take_left(); task != nullptr;) {
    Task* const next = task->next;
    place(*task, origin);
    task = next;
  }
}

/// All ready tasks ask for memory, so that the one whose data is present is chosen. Worker 0 stands for all workers of
/// its node.
void Executor::enqueue_budgeted(Task& task, Origin& origin) {
  trace_pushed_to(ReadyQueues::kAnyQueue, task, origin);
  task.progress = 0;
  if (stage(task, workers_[0].node)) queues_->push_staged(0, &task);
}

NodeIndex Executor::only_memory_of(const CodeletCore& codelet) {
  const WorkerGroup* const group = codelet.plain ? nullptr : group_of(codelet);
  if (group == nullptr) return 0;
  const NodeIndex node = workers_[group->members.front()].node;
  return std::ranges::all_of(group->members,
                             [&](unsigned worker) { return workers_[worker].node == node; }) ? node : NodeIndex{0};
}

WorkerGroup* Executor::group_of(const CodeletCore& codelet) {
  if (const auto known = groups_.find(&codelet); known != groups_.end()) return known->second;
  std::vector<unsigned> members;
  for (unsigned worker = 0; worker < workers_.size(); ++worker) {
    const DeviceKind device = workers_[worker].device;
    if (codelet.implementation_for(device) < 0 || (codelet.in_main_memory && workers_[worker].node != 0)) continue;
    if (!codelet.can_run || codelet.can_run({worker, device})) members.push_back(worker);
  }
  std::vector<unsigned> processors;
  for (const unsigned worker : members)
    if (workers_[worker].unit == nullptr && workers_[worker].device == DeviceKind::cpu) processors.push_back(worker);
  const bool is_mixed = !processors.empty() && processors.size() < members.size();
  if (is_mixed && codelet.prefers_devices && placer_ == nullptr)  // a placer goes by durations instead
    std::erase_if(members, [&](unsigned worker) {
      return std::find(processors.begin(), processors.end(), worker) != processors.end();
    });
  WorkerGroup* const group =
      members.empty() ? nullptr : &queues_->group_of(members, is_mixed ? &queues_->group_of(processors) : nullptr);
  groups_.emplace(&codelet, group);
  return group;
}

bool Executor::is_everyone(const WorkerGroup& group) const noexcept {
  if (group.members.size() != queues_->worker_count() || group.members.back() >= queues_->worker_count()) return false;
  const auto is_elsewhere = [&](unsigned worker) { return workers_[worker].node != workers_[0].node; };
  // Otherwise it matters which of them runs a task.
  return placer_ == nullptr || std::ranges::none_of(group.members, is_elsewhere);
}

void Executor::end_one(Task& task, Origin& origin) {
  std::optional<NodeIndex> freed;  // node with freed memory
  if (__builtin_expect(!task.room.is_clear(), 0)) {
    const NodeIndex node = node_of(task);
    if (memory_->end(task, node)) freed = node;
  }
  const bool failed = task.poisoned.load(std::memory_order_relaxed);
  if (__builtin_expect(task.special || task.restricted, 0)) {
    if (binds_copies_ && task.special)
      memory_->return_private_copies(task, failed ? Memory::CopyFate::lost : Memory::CopyFate::added);
    release_special(task, origin);
  }
  const bool recorded = task.recorded;
  FlowFailure* cause = __builtin_expect(failed, 0) ? failures_.cause_of(flow_position(task)) : nullptr;
  Link* link = nullptr;
  if (recorded) {
    // The part is copied, since once the end of a replay is sealed, or the last successor of another task is released,
    // the recording may be replayed again or be gone.
    const RecordedPart part = *task.recording;
    if (__builtin_expect(failed, 0) && part.replay->end != &task) poison_successor(*part.replay->end, cause);
    // The counts of a recorded graph are restored here, while the line is in the cache.
    task.waits.store(part.predecessor_count, std::memory_order_relaxed);
    task.progress = 0;
    if (__builtin_expect(failed, 0)) task.poisoned.store(false, std::memory_order_relaxed);
    if (part.boundary) link = task.successors.seal();
    for (std::uint32_t i = 0; i < part.successor_count; ++i) {
      if (__builtin_expect(failed, 0) && i >= part.explicit_from) poison_successor(*part.successors[i], cause);
      release(*part.successors[i], origin);
    }
  } else {
    link = task.successors.seal();
  }
  while (link != nullptr) {
    Link* next = link->next;  // the successor may run, end and be reused as soon as it is counted down
    Task& successor = *link->task();
    if (__builtin_expect(failed, 0) && link->explicitly()) poison_successor(successor, cause);
    release(successor, origin);
    link = next;
  }
  if (__builtin_expect(freed.has_value(), 0)) memory_->go_on(*freed);
  retire(task, recorded, origin);
}

void Executor::retire(Task& task, bool recorded, Origin& origin) {
  ++origin.unreported;
  if (!recorded) {
    task.next = origin.finished;
    if (origin.finished == nullptr) origin.finished_last = &task;
    origin.finished = &task;
  }
  if (origin.unreported >= batch_) flush(origin);
}

void Executor::flush(Origin& origin) {
  if (origin.unreported == 0) return;
  if (origin.finished != nullptr) pool_->take_back(origin.finished, origin.finished_last);
  origin.finished = nullptr;
  const std::uint32_t count = origin.unreported;
  origin.unreported = 0;
  const std::uint64_t finished = finished_.fetch_add(count, std::memory_order_seq_cst) + count;
  if (finished >= wake_at_.load(std::memory_order_seq_cst)) caller_->wake();
}

void Executor::complete(Task& task) {
  Origin origin;
  end(task, origin);
  flush(origin);
}

void Executor::serve_beside_messages(Task* freed) {
  while (freed != nullptr) queues_->push_from_outside(std::exchange(freed, freed->next));
  if (placer_ == nullptr) return;
  Origin outside;
  push_placed(placer_->note_messages(), outside);
}

void Executor::staged(Task& task) {
  if (task.kind == TaskKind::kernel) {
    queues_->push_staged(task.progress, &task);
    return;
  }
  if (memory_->is_limited() && !task.extra->is_hint && !stage(task, task.extra->node)) return;
  if (task.extra->on_ready != nullptr) task.extra->on_ready(task, task.extra->context);
}

/// The next device goes in one direction, so that a task that all refuse comes to an end; from a lost device, to which
/// nothing comes back, in any.
std::optional<unsigned> Executor::next_device(const Task& task, unsigned worker) const noexcept {
  const bool is_lost = queues_->is_retired(worker);
  for (const unsigned other : task.extra->group->members)
    if ((other > worker || is_lost) && workers_[other].unit != nullptr && !queues_->is_retired(other)) return other;
  return {};
}

/// If several workers could run the task, a placer would choose one by its later knowledge, so this leaves it to the
/// placer.
bool Executor::stays_on(const Task& task, const Task& before, unsigned worker) const noexcept {
  const WorkerGroup& group = *task.extra->group;
  if (std::ranges::find(group.members, worker) == group.members.end()) return false;
  return group.members.size() == 1 || (placer_ == nullptr && before.extra->group == &group);
}

bool Executor::has_other(const Task& task, unsigned worker) const noexcept {
  return workers_[worker].unit != nullptr && task.restricted &&
         (task.extra->group->processors != nullptr || next_device(task, worker));
}

void Executor::reroute(Task& task, unsigned worker, Origin& origin) {
  WorkerGroup* const processors = task.extra->group->processors;
  if (placer_ != nullptr) placer_->forget(task);
  trace_pushed_to(ReadyQueues::kAnyQueue, task, origin);
  if (processors != nullptr) queues_->push_to(*processors, &task);
  else queues_->push_pinned(next_device(task, worker).value_or(worker), &task);
}

std::exception_ptr Executor::take_refusal(const Task& task) {
  if (refusal_count_.load() == 0) return nullptr;
  const std::lock_guard guard(refusals_mutex_);
  const auto known = refusals_.find(&task);
  if (known == refusals_.end()) return nullptr;
  std::exception_ptr refusal = std::move(known->second);
  refusals_.erase(known);
  refusal_count_.fetch_sub(1);
  return refusal;
}

void Executor::staging_failed(Task& task, const std::exception_ptr& exception) {
  if (writes_in_device(task)) {  // main memory is good enough: `staged` goes on there
    memory_->give_back(task, static_cast<NodeIndex>(task.extra->node));
    task.extra->node = 0;
    return;
  }
  // A task that needs the data will report why.
  if (task.kind == TaskKind::event && task.extra->is_hint) return memory_->note_lost_prefetch();
  if (task.kind == TaskKind::kernel && workers_[task.progress].unit != nullptr && look_at(exception).is_devices) {
    // The worker of the task decides: the task may run elsewhere.
    const std::lock_guard guard(refusals_mutex_);
    if (refusals_.emplace(&task, exception).second) refusal_count_.fetch_add(1);
    return;
  }
  std::string what = "an exception that is no std::exception, while its data was brought";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  poison(task, *failures_.add(flow_position(task), exception, describe_failure(task, what)));
}

bool Executor::enter_turnstiles(Task& task) {
  AccessSlot* const slots = task.accesses();
  auto next = task.progress == 0 ? chain_turns(task) : static_cast<std::uint16_t>(slots[task.progress - 1].turn.next);
  while (next != 0) {
    task.progress = next;  // the task will be inside when it goes on, now or later
    Handle& handle = *slots[next - 1].handle();
    next = static_cast<std::uint16_t>(slots[next - 1].turn.next);  // a waiting task belongs to the one inside
    if (!handle.turnstile.enter(&task)) return false;
  }
  return true;
}

void Executor::release_special(Task& task, Origin& origin) {
  if (placer_ != nullptr && task.restricted) placer_->forget(task);
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    if (slot.mode() == AccessMode::scratch && !task.recorded) slot.handle()->drop_reference();
    if (slot.mode() != AccessMode::commute) continue;
    Task* next = slot.handle()->turnstile.leave([](const Task& a, const Task& b) { return a.priority > b.priority; });
    if (next != nullptr && enter_turnstiles(*next)) enqueue_in_order(*next, origin);
  }
}

void Executor::poison_successor(Task& successor, FlowFailure* cause) {
  failures_.note_cause(flow_position(successor), *cause);
  successor.poisoned.store(true, std::memory_order_relaxed);
}

void Executor::poison(Task& task, FlowFailure& failure) {
  failures_.note_cause(flow_position(task), failure);
  task.poisoned.store(true, std::memory_order_relaxed);
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    if (const PrivateCopy* const copy = slot.handle()->private_copy) copy->of.poison.add(&failure);
    else if (slot.mode() == AccessMode::commute || slot.mode() == AccessMode::reduce)
      slot.handle()->poison.add(&failure);
    else if (makes_value(slot.mode())) slot.handle()->poison.set(&failure);
  }
}

void Executor::cancel(Task& task, FlowFailure& cause) {
  poison(task, cause);
  if (task.ops != nullptr && task.ops->serves) return;
  const TaskId position = flow_position(task);
  // A task behind the end of the flow does not count. A task that always begins may meet a mark from a rank that knows
  // the end before this one does.
  const std::lock_guard guard(cutoff_lock_);
  if (cutoff_.within(position)) failures_.cancelled(position, cause);
  else if (!cutoff_.passed(position)) failures_.cancelled_in_doubt(position, cause);
}

Cutoff::Answer Executor::ask_to_begin(Task& task, std::int64_t now_ns) {
  if (task.ops->always) return Cutoff::Answer::go;
  const std::lock_guard guard(cutoff_lock_);
  const Cutoff::Answer answer = ask(task, now_ns);
  if (answer == Cutoff::Answer::hold) held_.push_back(&task);
  return answer;
}

bool Executor::may_begin_behind(const Task& task, std::int64_t now_ns) {
  if (may_begin(task)) return true;
  const std::lock_guard guard(cutoff_lock_);
  return ask(task, now_ns) == Cutoff::Answer::go;
}

/// Called under `cutoff_lock_`.
Cutoff::Answer Executor::ask(const Task& task, std::int64_t now_ns) {
  const TaskId position = flow_position(task);
  // One question covers as many positions as last `ahead_ns_`: small tasks ask seldom, and no large one is counted
  // before it begins.
  if (!cutoff_.frozen() && !cutoff_.within(position)) {
    ahead_ = now_ns - asked_at_ns_ < ahead_ns_ ? std::min(2 * ahead_ + 1, kMostAhead) : ahead_ / 2;
    asked_at_ns_ = now_ns;
  }
  return cutoff_.ask(position, last_of(position_of(position) + ahead_));
}

void Executor::drop_behind_end(Task& task) {
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    Handle& handle = *slot.handle();
    if (slot.mode() == AccessMode::write && !handle.poison.any() &&
        (handle.valid.load(std::memory_order_acquire) & ~Handle::kMoving) == 0)
      handle.poison.set(&failures_.lost());
  }
}

void Executor::mark_lost(Task& event) {
  for (unsigned i = 0; i < event.access_count; ++i) event.accesses()[i].handle()->poison.set(&failures_.lost());
}

std::uint64_t Executor::freeze_end() {
  const std::lock_guard guard(cutoff_lock_);
  return position_of(cutoff_.freeze());
}

void Executor::end_here() {
  std::vector<Task*> held;
  TaskId last = 0;
  {
    // This is one critical section: between two, the flow could end and another one begin, which would be cut at a
    // position before it.
    const std::lock_guard guard(cutoff_lock_);
    if (cutoff_.decided()) return;
    last = last_of(position_of(cutoff_.freeze()));
    held = decide(last);
  }
  go_on(last, held);
}

void Executor::decide_end(std::uint64_t position) {
  std::vector<Task*> held;
  const TaskId last = last_of(position);
  {
    const std::lock_guard guard(cutoff_lock_);
    held = decide(last);
  }
  go_on(last, held);
}

std::vector<Task*> Executor::decide(TaskId last) {
  cutoff_.decide(last);
  failures_.settle(last);
  return std::exchange(held_, {});
}

void Executor::go_on(TaskId last, const std::vector<Task*>& held) {
  if (trace::Session* const session = trace_.load(std::memory_order_acquire))
    session->emit_shared<trace::Type::flow_cancelled>(static_cast<std::uint32_t>(last));
  Origin origin;
  for (Task* task : held) {
    if (task->kind == TaskKind::kernel) enqueue(*task, origin);  // the task is in its turnstiles
    else make_ready(*task, origin);
  }
  flush(origin);
}

void Executor::reopen() {
  const std::lock_guard guard(cutoff_lock_);
  cutoff_.reopen();
}

FlowFailure* Executor::why_cancelled(Task& task) {
  FlowFailure* earliest = nullptr;
  const auto consider = [&](FlowFailure* failure) {
    if (failure != nullptr && (earliest == nullptr || failure->id < earliest->id)) earliest = failure;
  };
  if (task.poisoned.load(std::memory_order_relaxed)) consider(failures_.cause_of(flow_position(task)));
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    if (const PrivateCopy* const copy = slot.handle()->private_copy) consider(copy->of.poison.seen_in_group());
    else if (slot.mode() == AccessMode::commute || slot.mode() == AccessMode::reduce)
      consider(slot.handle()->poison.seen_in_group());
    else if (sees_value(slot.mode())) consider(slot.handle()->poison.settle());
  }
  return earliest;
}

}  // namespace tandem::runtime
