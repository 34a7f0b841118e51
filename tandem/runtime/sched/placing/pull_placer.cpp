// tandem/runtime/sched/placing/pull_placer.cpp: which worker is asked for when, and what it is given.
#include "tandem/runtime/sched/placing/pull_placer.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <mutex>
#include <utility>

#include "tandem/runtime/task/footprint.hpp"

namespace tandem::runtime {

PullPlacer::PullPlacer(const PullingPolicy& policy, const Machine& machine, Durations& durations, ReadyQueues& queues,
                       const clock::Clock& clock, bool caller)
    : Placer(machine, durations, queues, clock, caller, KindNumbers::Bound::few, false, 0),
      policy_(policy),
      asks_(machine.workers.size()),
      hungry_((machine.workers.size() + 63) / 64) {
  for (unsigned worker = 0; worker < machine.workers.size(); ++worker) note_hungry(worker);
}

Task* PullPlacer::offer(Task& task) {
  PlacedTask& placed = begin(task);
  const std::lock_guard guard(lock_);
  placed.kind = kinds_.join(task, placed.footprint, loads_.memory());
  if (const auto known = std::ranges::find(arriving_, &task, &ArrivingTask::task); known != arriving_.end())
    end_arrival(known);
  look_at(task);
  ReadyKind& kind = kinds_[placed.kind];
  const std::size_t bytes = data_bytes();
  const std::uint32_t depth = policy_.by_depth() && task.priority == 0 ? flow_depth(task) : 0;
  const OpenTask open{task.priority, flow_position(task), placed.kind, memories_with_room(bytes), bytes, &task, depth};
  if (spare_.empty())
    kind.tasks.insert(open);
  else {
    spare_.back().value() = open;
    kind.tasks.insert(std::move(spare_.back()));
    spare_.pop_back();
  }
  ++waiting_;
  waiting_bytes_ += bytes;
  ++changes_;
  kinds_.see(placed.kind, policy_.uses_prices());
  ++unasked_;
  has_first_ |= kind.tasks.size() == 1;
  return nullptr;
}

Task* PullPlacer::serve() {
  Chain chosen;
  const std::lock_guard guard(lock_);
  if (waiting_ != 0) give_trials(chosen);
  if (waiting_ != 0) pull_for_hungry(chosen);
  return chosen.first;
}

void PullPlacer::messages_changed(Chain& chosen) {
  has_first_ = true;  // some may run now
  if (waiting_ != 0) pull_for_hungry(chosen);
}

Task* PullPlacer::feed(unsigned worker) {
  Chain chosen;
  const std::lock_guard guard(lock_);
  if (!works(worker)) ++changes_;  // it has left: others may get what was planned for it
  Ask& ask = asks_[worker];
  note_hungry(worker);
  if (!has_place(worker)) return nullptr;  // it has looked since its last task ended
  if (!arriving_.empty() || ask.holds_until_ns != 0) [[unlikely]]
    forget_late(ask, clock_.now_ns());
  if (waiting_ != 0) give_trials(chosen);
  while (has_place(worker) && pull(worker, chosen, true)) {}
  note_hungry(worker);
  if (waiting_ != 0) pull_for_hungry(chosen);
  return chosen.first;
}

void PullPlacer::take_out(const OpenTask& task) {
  std::set<OpenTask>::node_type node = kinds_[task.kind].tasks.extract(task);
  waiting_bytes_ -= node.value().bytes;
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(node));
  --waiting_;
}

/// `worker` has no task and got none: it is not asked again until there is a change, nor, if the policy has the same
/// answer for all of them, others like it.
void PullPlacer::note_refused(unsigned worker) {
  const std::uint64_t now = changes();
  asks_[worker].refused_at = now;
  if (!policy_.treats_alike()) return;
  for (const ReadyKind& kind : kinds_.all())
    if (!kind.tasks.empty() && kind.workers.size() != asks_.size()) return;  // perhaps not for this one
  const MachineWorker& here = machine_.workers[worker];
  for (unsigned other = 0; other < asks_.size(); ++other)
    if (machine_.workers[other].kind == here.kind && machine_.workers[other].node == here.node)
      asks_[other].refused_at = now;
}

/// Notes whether `worker` has fewer tasks than it may have.
void PullPlacer::note_hungry(unsigned worker) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << worker % 64;
  if (has_place(worker))
    hungry_[worker / 64] |= bit;
  else
    hungry_[worker / 64] &= ~bit;
}

/// Notes that a worker is charged with `task` now.
void PullPlacer::note_given(const Task& task) noexcept {
  Ask& ask = asks_[worker_of(task)];
  ask.last_ns = task.extra->placed.charged_ns;
  ask.holds_until_ns = 0;
}

/// A task for `worker`. False: it gets none. `may_hold`: it is awake, or will look again.
bool PullPlacer::pull(unsigned worker, Chain& chosen, bool may_hold) {
  if (waiting_ == 0 || !works(worker)) return false;
  const bool is_idle = loads_.tasks(worker) == 0;
  if (is_idle && asks_[worker].refused_at == changes()) return false;
  const LoadView load = look_at_loads(0);
  const OpenTask* const picked = policy_.pick(worker, *this, load);
  if (picked == nullptr || !may_get(worker, *picked, *this, load)) {
    asks_[worker].holds_until_ns = 0;
    if (is_idle) note_refused(worker);
    return false;
  }
  if (!arriving_.empty() && may_hold && begin_hold(worker, *picked, load)) [[unlikely]]
    return false;
  give(*picked, worker, load, chosen);
  return true;
}

/// True: `worker` waits for a task that arrives, as the policy has said.
bool PullPlacer::begin_hold(unsigned worker, const OpenTask& picked, const LoadView& load) {
  const bool is_idle_core = machine_.workers[worker].kind == DeviceKind::cpu && loads_.tasks(worker) == 0;
  if (!is_idle_core || !policy_.holds(worker, picked, arriving_, *this, load)) return false;
  Ask& own = asks_[worker];
  own.refused_at = changes();
  if (own.holds_until_ns != 0) return true;
  own.holds_until_ns = std::ranges::min(arriving_, {}, &ArrivingTask::until_ns).until_ns;
  ++own.holds;
  return true;
}

void PullPlacer::expect(std::uint64_t number, const Task& task, std::int64_t due_ns, std::int64_t now_ns) {
  if (!task.restricted) return;
  const model::Footprint footprint = footprint_of(task);
  const std::lock_guard guard(lock_);
  arriving_.push_back({task.priority, kinds_.join(task, footprint, loads_.memory()), due_ns,
                       due_ns + (due_ns - now_ns) / 4, number, &task});
}

void PullPlacer::expect_no_more(std::uint64_t number) {
  const std::lock_guard guard(lock_);
  if (const auto known = std::ranges::find(arriving_, number, &ArrivingTask::number); known != arriving_.end())
    end_arrival(known);
}

void PullPlacer::end_arrival(std::vector<ArrivingTask>::iterator place) {
  if (std::ranges::any_of(asks_, [](const Ask& ask) { return ask.holds_until_ns != 0; })) {
    ++changes_;
    has_first_ = true;  // a worker that waits for it is asked again
  }
  kinds_.leave(place->kind);
  arriving_.erase(place);
}

/// Ends arrivals that are later than a wait for them lasts; and the wait of the worker of `ask` may have ended.
void PullPlacer::forget_late(Ask& ask, std::int64_t now_ns) {
  for (std::size_t i = arriving_.size(); i-- > 0;)
    if (arriving_[i].until_ns <= now_ns) end_arrival(arriving_.begin() + static_cast<std::ptrdiff_t>(i));
  if (ask.holds_until_ns <= now_ns) ask.holds_until_ns = 0;
}

std::int64_t PullPlacer::holds_until_ns(unsigned worker) const {
  const std::lock_guard guard(lock_);
  return asks_[worker].holds_until_ns;
}

std::uint64_t PullPlacer::holds(unsigned worker) const {
  const std::lock_guard guard(lock_);
  return asks_[worker].holds;
}

namespace {

/// Of tasks that prefer devices: how many more cores may try now.
unsigned trials_on_cores(const ReadyKind& kind, const KindWorkers& cores, const Machine& machine) noexcept {
  std::size_t devices = 0;
  for (const KindWorkers& some : kind.by_kind)
    if (some.kind != DeviceKind::cpu && some.kernel.known) devices += some.count;
  if (!may_try_on_cores(devices, kind.tasks.size(), kind.come)) return 0;
  return trials_left(cores.kernel, tasks_on_cores(kind.workers, kind.given, machine));
}

}  // namespace

/// Tasks whose duration is not known on some kind of workers, to those of these that could run one and have none like
/// it. Of those that prefer devices cores, which may be far slower, try the least urgent.
void PullPlacer::give_trials(Chain& chosen) {
  for (unsigned number = 0; number < kinds_.all().size(); ++number) {
    const ReadyKind& kind = kinds_[number];
    if (kinds_.is_known(number)) continue;
    for (const KindWorkers& some : kind.by_kind) {
      if (some.kernel.known) continue;
      const bool would_rather_not = some.kind == DeviceKind::cpu && kind.prefers_devices;
      unsigned left = would_rather_not ? trials_on_cores(kind, some, machine_) : UINT_MAX;
      for (const unsigned worker : kind.workers) {
        if (kind.tasks.empty() || left == 0) break;
        if (machine_.workers[worker].kind != some.kind || kind.given[worker] != 0 || !has_place(worker)) continue;
        const LoadView load = look_at_loads(0);
        const OpenTask& task = would_rather_not ? *kind.tasks.rbegin() : *kind.tasks.begin();
        if (!may_get(worker, task, *this, load)) continue;
        give(task, worker, load, chosen);
        --left;
      }
    }
  }
}

/// `worker` gets `open`, a task that waits here and that it may be given.
void PullPlacer::give(const OpenTask& open, unsigned worker, const LoadView& load, Chain& chosen) {
  const OpenTask task = open;
  task.task->extra->placed.is_present = true;
  Placer::give(*task.task, worker, view_of(task, *this), load, this);
  note_given(*task.task);
  take_out(task);
  chosen.add(*task.task);
}

/// Tasks for those workers that have found none.
void PullPlacer::pull_for_hungry(Chain& chosen) {
  // A worker that has left the others of its kind to faster workers is asked again when these have grown by an eighth.
  const bool has_new_tasks = has_first_ || unasked_ * 8 >= waiting_;  // some wait
  if (has_new_tasks) unasked_ = 0;
  has_first_ = false;
  const std::int64_t now_ns = clock_.now_ns();
  for (std::size_t part = 0; part < hungry_.size(); ++part)
    for (std::uint64_t some = hungry_[part]; some != 0 && waiting_ != 0; some &= some - 1) {
      const auto worker = static_cast<unsigned>(part * 64) + static_cast<unsigned>(std::countr_zero(some));
      Ask& ask = asks_[worker];
      if ((!has_new_tasks && now_ns < ask.again_at_ns) || !works(worker)) continue;
      while (has_place(worker) && pull(worker, chosen, ask.holds_until_ns > now_ns)) {}
      note_hungry(worker);
      if (has_place(worker)) ask.again_at_ns = now_ns + ask.last_ns / 8;
    }
  if (waiting_ == 0 || somebody_goes_on(now_ns)) return;
  const OpenTask task = *MostUrgentFirst(kinds_.all()).next();
  take_out(task);
  choose(*task.task, chosen, this);
  note_given(*task.task);
}

/// Some worker has a task, and will look for another when that has ended; or it will look at a time.
bool PullPlacer::somebody_goes_on(std::int64_t now_ns) const noexcept {
  for (unsigned worker = 0; worker < asks_.size(); ++worker)
    if ((loads_.tasks(worker) != 0 || asks_[worker].holds_until_ns > now_ns) && works(worker)) return true;
  return false;
}

void PullPlacer::learn_placed(const PlacedTask& placed, DeviceKind kind, unsigned implementation,
                              std::int64_t duration_ns) {
  const std::int64_t now_ns = loads_.memory() != nullptr ? clock_.now_ns() : 0;
  const std::lock_guard guard(lock_);
  if (kinds_.is_class(placed.kind))
    durations_.add(kinds_[placed.kind].codelet, kinds_[placed.kind].footprint, kind, implementation,
                   static_cast<double>(duration_ns));
  if (loads_.memory() != nullptr) learn_memory(placed, duration_ns, now_ns);
  if (!kinds_.is_known(placed.kind)) kinds_.ask_durations(placed.kind);
}

std::size_t PullPlacer::kept(unsigned kind) const {
  return kinds_[kind].tasks.size() + static_cast<std::size_t>(std::ranges::count(arriving_, kind, &ArrivingTask::kind));
}

bool PullPlacer::check_kept() const {
  std::size_t waiting = 0, bytes = 0;
  for (const ReadyKind& kind : kinds_.all()) {
    waiting += kind.tasks.size();
    for (const OpenTask& task : kind.tasks) bytes += task.bytes;
  }
  return waiting == waiting_ && bytes == waiting_bytes_;
}

}  // namespace tandem::runtime
