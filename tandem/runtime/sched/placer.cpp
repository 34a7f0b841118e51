// tandem/runtime/sched/placer.cpp: what a placing policy sees, and what its choice costs.
#include "tandem/runtime/sched/placer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <mutex>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/sched/explainer.hpp"
#include "tandem/runtime/sched/prices.hpp"
#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/footprint.hpp"

namespace tandem::runtime {

namespace {

bool is_moved(const AccessSlot& slot) noexcept {
  return !slot.alias() && slot.mode() != AccessMode::scratch && slot.mode() != AccessMode::reduce;
}

/// Where a task that adds to `handle` needs no copy to be brought: outside of devices, and where a copy is free to which tasks have added. Others
/// begin in main memory.
std::uint32_t copies_of_sum(Handle& handle, const Machine& machine) {
  std::uint32_t nodes = 0;
  for (std::size_t node = 0; node < machine.nodes.size(); ++node)
    if (machine.nodes[node].kind != NodeKind::device) nodes |= 1U << node;
  const std::lock_guard guard(handle.lock);
  if (handle.private_copies == nullptr) return nodes;
  for (const PrivateCopy& copy : *handle.private_copies)
    if (!copy.in_use && copy.filled) nodes |= copy.data->valid.load(std::memory_order_acquire) & ~Handle::kMoving;
  return nodes;
}

/// The number of CPU workers if they share one memory; else 0.
unsigned cores_of_one_memory(const Machine& machine) {
  const unsigned cores = machine.cpu_workers();
  const NodeIndex node = machine.workers.front().node;
  const bool is_one = std::all_of(machine.workers.begin(), machine.workers.begin() + cores, [&](const MachineWorker& worker) { return worker.node == node; });
  return is_one ? cores : 0;
}

}  // namespace

Placer::Placer(const Policy& policy, const Machine& machine, Estimates* given, ReadyQueues& queues, const clock::Clock& clock, bool caller)
    : placing_(policy.placing()),
      pulling_(policy.pulling()),
      by_priority_(placing_ != nullptr && policy.by_priority()),
      alike_(placing_ != nullptr ? cores_of_one_memory(machine) : 0),
      has_budgets_(machine.has_budgets()),
      machine_(machine),
      queues_(queues),
      clock_(clock),
      estimates_(given),
      caller_is_away_(caller),
      loads_(machine.workers.size()),
      hungry_((machine.workers.size() + 63) / 64),
      numbers_(pulling_ != nullptr ? KindNumbers::Bound::few : KindNumbers::Bound::none),
      views_(machine.workers.size()) {
  TANDEM_ASSERT((placing_ != nullptr) != (pulling_ != nullptr));
  for (unsigned worker = 0; worker < machine.workers.size(); ++worker) {
    own_.push_back(&queues.group_of({worker}));
    note_hungry(worker);
  }
  for (NodeIndex from = 0; from < machine.nodes.size(); ++from)
    for (NodeIndex to = 0; to < machine.nodes.size(); ++to) {
      links_.push_back({.link = machine.link(from, to)});
      knows_loaded_links_ |= links_.back().link.loaded_bytes_per_ns.has_value();
      knows_messages_ |= links_.back().link.beside_messages_bytes_per_ns.has_value();
    }
}

void Placer::weigh_copies(double weight) noexcept {
  for (LinkLoad& link : links_) {
    link.link.latency_ns = static_cast<std::int64_t>(weight * static_cast<double>(link.link.latency_ns));
    link.link.bytes_per_ns /= weight;  // 0: no time for any number of bytes
    if (link.link.loaded_bytes_per_ns) *link.link.loaded_bytes_per_ns /= weight;
    if (link.link.beside_messages_bytes_per_ns) *link.link.beside_messages_bytes_per_ns /= weight;
  }
}

void Placer::aim_at(Objective objective, const Powers& powers) {
  objective_ = objective;
  powers_ = &powers;
  aim_ = EnergyAim::of(objective, powers);
}

void Placer::use_memory(const MemoryShares& shares, const MemoryGate& gate) {
  if (!shares.is_known()) return;
  gate_ = &gate;
  memory_ = std::make_unique<MemoryLoad>(shares, machine_, gate.rule());
  for (const LinkLoad& link : links_)
    rates_.push_back({link.link.bytes_per_ns, link.link.loaded_bytes_per_ns.value_or(0), link.link.beside_messages_bytes_per_ns.value_or(0)});
}

void Placer::add(Load& load, std::int32_t priority, std::int64_t ns) {
  load.all.ns += ns;
  ++load.all.tasks;
  if (by_priority_) load.by_priority.add(priority, ns);
}

void Placer::remove(Load& load, std::int32_t priority, std::int64_t ns) {
  TANDEM_ASSERT(load.all.tasks > 0);
  load.all.ns -= ns;
  --load.all.tasks;
  if (by_priority_) load.by_priority.remove(priority, ns);
}

std::int64_t Placer::free_ns(const Load& load, std::int32_t priority, std::int64_t now_ns) const noexcept {
  if (load.all.tasks == 0) return now_ns;
  const Sum ahead = load.by_priority.from(priority);
  if (ahead.tasks != 0) return std::max(now_ns, load.since_ns + ahead.ns);
  return now_ns + load.all.ns / load.all.tasks / 2;
}

/// The data of `task`, for a view.
void Placer::look_at(const Task& task) const {
  const std::span<const AccessSlot> slots(task.accesses(), task.access_count);
  if (access_room_.size() < slots.size()) access_room_.resize(slots.size());
  AccessView* view = access_room_.data();
  for (const AccessSlot& slot : slots) {
    Handle& handle = *slot.handle();
    if (is_moved(slot)) [[likely]]
      *view++ = {slot.mode(), handle.travel_bytes(), handle.seen_valid(), handle.coming.load(std::memory_order_relaxed), &handle};
    else if (slot.mode() == AccessMode::reduce)
      *view++ = {AccessMode::read_write, handle.travel_bytes(), copies_of_sum(handle, machine_), 0, &handle};
  }
  accesses_ = {access_room_.data(), view};
}

/// Of the data of the task that was looked at.
std::size_t Placer::data_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const AccessView& access : accesses_) bytes += static_cast<const Handle*>(access.datum)->shape.bytes();
  return bytes;
}

std::span<const AccessView> Placer::accesses(const OpenTask& task) const {
  look_at(*task.task);
  return accesses_;
}

bool Placer::works(unsigned worker) const noexcept {
  return !(worker == 0 && caller_is_away_.load(std::memory_order_relaxed)) && !(queues_.has_retired() && queues_.is_retired(worker));
}

bool Placer::has_room(NodeIndex node, std::size_t bytes) const noexcept {
  const MachineNode& memory = machine_.nodes[node];
  return memory.kind != NodeKind::device || memory.budget == 0 || bytes <= memory.budget;
}

/// Bit n: memory n has room for `bytes`.
std::uint32_t Placer::memories_with_room(std::size_t bytes) const noexcept {
  std::uint32_t memories = ~0U;
  if (!has_budgets_) return memories;
  for (NodeIndex node = 0; node < machine_.nodes.size(); ++node)
    if (!has_room(node, bytes)) memories &= ~(1U << node);
  return memories;
}

BusRoom Placer::bus_room(const OpenTask& task, NodeIndex node) const noexcept {
  if (memory_ == nullptr || !kinds_[task.kind].memory.is_bound) return {};
  const unsigned limit = gate_->limit(task.priority);
  if (limit == UINT_MAX) return {};
  const double demand = kinds_[task.kind].memory.demand, running = memory_->bound_cores(node);
  const auto tasks = [demand](double cores) { return cores > 0 ? static_cast<unsigned>(cores / demand + 0.01) : 0U; };
  return {.now = std::max(tasks(limit - running), running < 0.01 ? 1U : 0U), .most = std::max(tasks(limit), 1U)};
}

/// False: none of them may get the task that was looked at, so all stand there.
bool Placer::select_workers(const WorkerGroup& group) {
  candidates_.clear();
  const std::uint32_t memories = memories_with_room(data_bytes());
  for (const unsigned worker : group.members)
    if (works(worker) && (memories >> machine_.workers[worker].node & 1U) != 0) candidates_.push_back(worker);
  if (!candidates_.empty()) return true;
  candidates_ = group.members;
  return false;
}

// --- kinds of tasks

/// The number of the kind of `task`, which uses it from now on.
unsigned Placer::kind_of(const Task& task, model::Footprint footprint) {
  const KindNumbers::Kind kind = numbers_.join(
      {.codelet = task.codelet->name, .footprint = footprint, .workers = task.extra->group, .prefers_devices = task.codelet->prefers_devices});
  if (kind.is_new) begin_kind(task, kind);
  ++kinds_[kind.number].come;
  return kind.number;
}

/// `task` is the first one.
void Placer::begin_kind(const Task& task, const KindNumbers::Kind& of) {
  if (of.number == kinds_.size()) {
    kinds_.emplace_back().given.resize(loads_.size());
    is_known_.push_back(false);
  }
  ReadyKind& kind = kinds_[of.number];
  kind.codelet = of.codelet;
  kind.footprint = of.footprint;
  kind.workers = task.extra->group->members;
  kind.seen = 0;
  kind.prefers_devices = task.codelet->prefers_devices;
  kind.come = 0;
  kind.by_kind.clear();
  for (const unsigned worker : kind.workers) {
    const DeviceKind here = machine_.workers[worker].kind;
    const auto some = std::ranges::find(kind.by_kind, here, &KindWorkers::kind);
    if (some != kind.by_kind.end()) ++some->count;
    else kind.by_kind.push_back({here, worker, 1, {}});
  }
  if (memory_ != nullptr) {
    memory_->begin_kind(of.number, moved_bytes(task), task.codelet->memory_bound);
    kind.memory = memory_->use_of(of.number);
  }
  ask_durations(of.number);
}

void Placer::ask_durations(unsigned number) {
  ++changes_;
  ReadyKind& kind = kinds_[number];
  bool is_known = true;
  for (KindWorkers& some : kind.by_kind) {
    some.kernel = estimates_.expected_ns(kind.codelet, kind.footprint, some.kind);
    is_known = is_known && some.kernel.known;
  }
  is_known_[number] = is_known;
  if (aim_) [[unlikely]] ask_powers(kind);
}

/// Where the power of some workers is not known yet, tasks of `kind` go by their time.
void Placer::ask_powers(ReadyKind& kind) {
  bool is_known = true;
  for (KindWorkers& some : kind.by_kind) {
    const auto watts = powers_->kernel_watts(kind.codelet, some.kind);
    is_known = is_known && watts;
    some.draw = watts.value_or(0) / aim_->late_watts;
  }
  for (KindWorkers& some : kind.by_kind)
    if (!is_known) some.draw = 0;
}

/// One more task of `kind` has become ready; prices follow after some.
void Placer::see(ReadyKind& kind) {
  kind.seen += 1;
  if (++unpriced_ * 8 < seen_) return;
  seen_ += unpriced_;
  unpriced_ = 0;
  if (aim_) [[unlikely]] aim_ = EnergyAim::of(objective_, *powers_);
  for (unsigned number = 0; number < kinds_.size(); ++number) ask_durations(number);
  if (pulling_->uses_prices()) {
    prices_ = prices_of(kinds_, machine_);
    parts_ = parts_of(kinds_, prices_);
  }
  if (seen_ <= kMemory) return;
  for (ReadyKind& known : kinds_) known.seen *= kMemory / seen_;
  seen_ = kMemory;
}

// --- choices

void Placer::Chain::add(Task& task) noexcept {
  task.next = nullptr;
  (last != nullptr ? last->next : first) = &task;
  last = &task;
}

Task* Placer::offer(Task& task) {
  TANDEM_ASSERT(task.restricted);
  forget(task);
  PlacedTask& placed = task.extra->placed;
  placed.footprint = footprint_of(task);
  Chain chosen;
  const std::lock_guard guard(lock_);
  placed.kind = kind_of(task, placed.footprint);
  if (placing_ != nullptr) {
    choose(task, chosen);
    return chosen.first;
  }
  if (const auto known = std::ranges::find(arriving_, &task, &ArrivingTask::task); known != arriving_.end()) end_arrival(known);
  look_at(task);
  ReadyKind& kind = kinds_[placed.kind];
  const std::size_t bytes = data_bytes();
  const std::uint32_t depth = pulling_->by_depth() && task.priority == 0 ? flow_depth(task) : 0;
  const OpenTask open{task.priority, flow_position(task), placed.kind, memories_with_room(bytes), bytes, &task, depth};
  if (spare_.empty()) kind.tasks.insert(open);
  else {
    spare_.back().value() = open;
    kind.tasks.insert(std::move(spare_.back()));
    spare_.pop_back();
  }
  ++waiting_;
  waiting_bytes_ += bytes;
  ++changes_;
  see(kind);
  ++unasked_;
  has_first_ |= kind.tasks.size() == 1;
  return nullptr;
}

Task* Placer::serve() {
  if (pulling_ == nullptr) return nullptr;
  Chain chosen;
  const std::lock_guard guard(lock_);
  if (waiting_ != 0) give_trials(chosen);
  if (waiting_ != 0) pull_for_hungry(chosen);
  return chosen.first;
}

Task* Placer::note_messages() {
  if (memory_ == nullptr) return nullptr;
  const std::int64_t now_ns = clock_.now_ns();
  Chain chosen;
  const std::lock_guard guard(lock_);
  memory_->set_messages(gate_->has_messages(), now_ns);
  ++changes_;
  has_first_ = true;  // some may run now
  if (pulling_ != nullptr && waiting_ != 0) pull_for_hungry(chosen);
  return chosen.first;
}

Task* Placer::feed(unsigned worker) {
  if (pulling_ == nullptr) return nullptr;
  Chain chosen;
  const std::lock_guard guard(lock_);
  if (!works(worker)) ++changes_;  // it has left: others may get what was planned for it
  Load& load = loads_[worker];
  note_hungry(worker);
  if (load.all.tasks >= load.most) return nullptr;  // it has looked since its last task ended
  if (!arriving_.empty() || load.holds_until_ns != 0) [[unlikely]] forget_late(load, clock_.now_ns());
  if (waiting_ != 0) give_trials(chosen);
  while (load.all.tasks < load.most && pull(worker, chosen, true)) {
  }
  note_hungry(worker);
  if (waiting_ != 0) pull_for_hungry(chosen);
  return chosen.first;
}

/// How loaded each link is. A copy is busy at both ends: so the links that two memories have with any other one are their sum, less those between
/// the two, which are in it twice.
void Placer::look_at_links(std::int64_t now_ns) {
  struct Count {
    unsigned all = 0, busy = 0;
  };
  const std::size_t nodes = machine_.nodes.size();
  const auto counts_of = [&](const LinkLoad& link) {
    return Count{link.link.loaded_bytes_per_ns ? 1U : 0U, link.link.loaded_bytes_per_ns && link.free_ns > now_ns ? 1U : 0U};
  };
  std::array<Count, kMaxNodes> at{};
  for (const LinkLoad& link : links_)
    for (const NodeIndex node : {link.link.from, link.link.to}) {
      const Count one = counts_of(link);
      at[node].all += one.all;
      at[node].busy += one.busy;
    }
  for (LinkLoad& link : links_) {
    if (!link.link.loaded_bytes_per_ns) continue;
    const auto [from, to] = std::pair(link.link.from, link.link.to);
    const Count own = counts_of(link), back = counts_of(links_[to * nodes + from]);
    const unsigned others = at[from].all + at[to].all - 2 * own.all - back.all;
    const unsigned busy = at[from].busy + at[to].busy - 2 * own.busy - back.busy;
    link.load = others != 0 ? static_cast<double>(busy) / others : 0;
  }
}

/// Links whose copies compete with kernels for memory.
void Placer::look_at_memory() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    MachineLink& link = links_[i].link;
    link.bytes_per_ns = memory_->copy_bytes_per_ns(rates_[i].alone, link.from, link.to);
    if (link.loaded_bytes_per_ns) link.loaded_bytes_per_ns = std::min(rates_[i].loaded, link.bytes_per_ns);
    if (link.beside_messages_bytes_per_ns) link.beside_messages_bytes_per_ns = std::min(rates_[i].beside_messages, link.bytes_per_ns);
  }
}

/// The machine as a task of `priority` finds it.
LoadView Placer::look_at_loads(std::int32_t priority, std::int64_t now_ns) {
  for (std::size_t worker = 0; worker < loads_.size(); ++worker) {
    const Load& load = loads_[worker];
    views_[worker] = {by_priority_ ? free_ns(load, priority, now_ns) : free_ns(load, now_ns), load.all.tasks};
  }
  for (LinkLoad& link : links_) link.free_ns = std::max(link.free_ns, now_ns);
  if (knows_loaded_links_) look_at_links(now_ns);
  if (knows_messages_) {
    const bool has_messages = messages_.load(std::memory_order_relaxed) != 0;
    for (LinkLoad& link : links_) link.has_messages = has_messages;
  }
  if (memory_ != nullptr) [[unlikely]] look_at_memory();
  return {.machine = machine_, .estimates = estimates_, .now_ns = now_ns, .workers = views_, .links = links_, .prices = prices_, .parts = parts_,
          .memory = memory_.get(), .energy = aim_ ? &*aim_ : nullptr};
}

/// For a placing policy, and for a task that all workers would leave to others.
void Placer::choose(Task& task, Chain& chosen) {
  look_at(task);
  PlacedTask& placed = task.extra->placed;
  placed.is_present = select_workers(*task.extra->group);
  const ReadyKind& kind = kinds_[placed.kind];
  const LoadView load = look_at_loads(task.priority, clock_.now_ns());
  const TaskView view{.codelet = kind.codelet,
                      .priority = task.priority,
                      .footprint = kind.footprint,
                      .accesses = accesses_,
                      .workers = candidates_,
                      .alike = kind.given,
                      .memory = kind.memory,
                      .prefers_devices = kind.prefers_devices,
                      .come = kind.come};
  unsigned worker = placing_ != nullptr ? placing_->choose(view, load) : earliest_end(view, load);
  if (std::find(candidates_.begin(), candidates_.end(), worker) == candidates_.end()) worker = candidates_.front();
  give(task, worker, view, load);
  chosen.add(task);
}

void Placer::take_out(const OpenTask& task) {
  std::set<OpenTask>::node_type node = kinds_[task.kind].tasks.extract(task);
  waiting_bytes_ -= node.value().bytes;
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(node));
  --waiting_;
}

/// `worker` has no task and got none: it is not asked again until there is a change, nor, if the policy has the same answer for all of them, others like it.
void Placer::note_refused(unsigned worker) {
  loads_[worker].refused_at = changes_;
  if (!pulling_->treats_alike()) return;
  for (const ReadyKind& kind : kinds_)
    if (!kind.tasks.empty() && kind.workers.size() != loads_.size()) return;  // perhaps not for this one
  const MachineWorker& here = machine_.workers[worker];
  for (unsigned other = 0; other < loads_.size(); ++other)
    if (machine_.workers[other].kind == here.kind && machine_.workers[other].node == here.node) loads_[other].refused_at = changes_;
}

/// Whether `worker` has fewer tasks than it may have.
void Placer::note_hungry(unsigned worker) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << worker % 64;
  if (loads_[worker].all.tasks < loads_[worker].most) hungry_[worker / 64] |= bit;
  else hungry_[worker / 64] &= ~bit;
}

/// A task for `worker`. False: it gets none. `may_hold`: it is awake, or will look again.
bool Placer::pull(unsigned worker, Chain& chosen, bool may_hold) {
  if (waiting_ == 0 || !works(worker)) return false;
  Load& own = loads_[worker];
  if (own.all.tasks == 0 && own.refused_at == changes_) return false;
  const LoadView load = look_at_loads(0, clock_.now_ns());
  const OpenTask* const picked = pulling_->pick(worker, *this, load);
  if (picked == nullptr || !may_get(worker, *picked, *this, load)) {
    own.holds_until_ns = 0;
    if (own.all.tasks == 0) note_refused(worker);
    return false;
  }
  if (!arriving_.empty() && may_hold && begin_hold(worker, *picked, load)) [[unlikely]] return false;
  give(*picked, worker, load, chosen);
  return true;
}

/// True: it waits for a task that arrives, and was told so by the policy.
bool Placer::begin_hold(unsigned worker, const OpenTask& picked, const LoadView& load) {
  Load& own = loads_[worker];
  if (machine_.workers[worker].kind != DeviceKind::cpu || own.all.tasks != 0 || !pulling_->holds(worker, picked, arriving_, *this, load)) return false;
  own.refused_at = changes_;
  if (own.holds_until_ns != 0) return true;
  own.holds_until_ns = std::ranges::min(arriving_, {}, &ArrivingTask::until_ns).until_ns;
  ++own.holds;
  return true;
}

void Placer::expect(std::uint64_t number, const Task& task, std::int64_t due_ns, std::int64_t now_ns) {
  if (pulling_ == nullptr || !task.restricted) return;
  const model::Footprint footprint = footprint_of(task);
  const std::lock_guard guard(lock_);
  arriving_.push_back({task.priority, kind_of(task, footprint), due_ns, due_ns + (due_ns - now_ns) / 4, number, &task});
}

void Placer::expect_no_more(std::uint64_t number) {
  if (pulling_ == nullptr) return;
  const std::lock_guard guard(lock_);
  if (const auto known = std::ranges::find(arriving_, number, &ArrivingTask::number); known != arriving_.end()) end_arrival(known);
}

void Placer::end_arrival(std::vector<ArrivingTask>::iterator place) {
  if (std::ranges::any_of(loads_, [](const Load& load) { return load.holds_until_ns != 0; })) {
    ++changes_;
    has_first_ = true;  // who waits for it is asked again
  }
  numbers_.leave(place->kind);
  arriving_.erase(place);
}

/// Tasks that are later than a hold lasts; and that of the worker with `load` may have ended.
void Placer::forget_late(Load& load, std::int64_t now_ns) {
  for (std::size_t i = arriving_.size(); i-- > 0;)
    if (arriving_[i].until_ns <= now_ns) end_arrival(arriving_.begin() + static_cast<std::ptrdiff_t>(i));
  if (load.holds_until_ns <= now_ns) load.holds_until_ns = 0;
}

std::int64_t Placer::holds_until_ns(unsigned worker) const {
  const std::lock_guard guard(lock_);
  return loads_[worker].holds_until_ns;
}

std::uint64_t Placer::holds(unsigned worker) const {
  const std::lock_guard guard(lock_);
  return loads_[worker].holds;
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

/// Tasks whose duration is not known on some kind of workers, to those of these that could run one and have none like it. Of those that
/// prefer devices cores, which may be far slower, try the least urgent.
void Placer::give_trials(Chain& chosen) {
  for (unsigned number = 0; number < kinds_.size(); ++number) {
    const ReadyKind& kind = kinds_[number];
    if (is_known_[number]) continue;
    for (const KindWorkers& some : kind.by_kind) {
      if (some.kernel.known) continue;
      const bool would_rather_not = some.kind == DeviceKind::cpu && kind.prefers_devices;
      unsigned left = would_rather_not ? trials_on_cores(kind, some, machine_) : UINT_MAX;
      for (const unsigned worker : kind.workers) {
        if (kind.tasks.empty() || left == 0) break;
        if (machine_.workers[worker].kind != some.kind || kind.given[worker] != 0 || loads_[worker].all.tasks >= loads_[worker].most) continue;
        const LoadView load = look_at_loads(0, clock_.now_ns());
        const OpenTask& task = would_rather_not ? *kind.tasks.rbegin() : *kind.tasks.begin();
        if (!may_get(worker, task, *this, load)) continue;
        give(task, worker, load, chosen);
        --left;
      }
    }
  }
}

/// As the other, of a task that waits here and may be given to `worker`.
void Placer::give(const OpenTask& open, unsigned worker, const LoadView& load, Chain& chosen) {
  const OpenTask task = open;
  task.task->extra->placed.is_present = true;
  give(*task.task, worker, view_of(task, *this), load);
  take_out(task);
  chosen.add(*task.task);
}

/// Tasks for those workers that have found none.
void Placer::pull_for_hungry(Chain& chosen) {
  // Who has left the others of its kind to faster workers is asked again when these have grown by an eighth.
  const bool has_new_tasks = has_first_ || unasked_ * 8 >= waiting_;  // some wait
  if (has_new_tasks) unasked_ = 0;
  has_first_ = false;
  const std::int64_t now_ns = clock_.now_ns();
  for (std::size_t part = 0; part < hungry_.size(); ++part)
    for (std::uint64_t some = hungry_[part]; some != 0 && waiting_ != 0; some &= some - 1) {
      const auto worker = static_cast<unsigned>(part * 64) + static_cast<unsigned>(std::countr_zero(some));
      Load& load = loads_[worker];
      if ((!has_new_tasks && now_ns < load.ask_at_ns) || !works(worker)) continue;
      while (load.all.tasks < load.most && pull(worker, chosen, load.holds_until_ns > now_ns)) {
      }
      note_hungry(worker);
      if (load.all.tasks < load.most) load.ask_at_ns = now_ns + load.last_ns / 8;
    }
  if (waiting_ == 0 || somebody_goes_on(now_ns)) return;
  const OpenTask task = *MostUrgentFirst(kinds_).next();
  take_out(task);
  choose(*task.task, chosen);
}

/// Some worker has a task, and will look for another when that has ended; or it will look at a time.
bool Placer::somebody_goes_on(std::int64_t now_ns) const noexcept {
  for (unsigned worker = 0; worker < loads_.size(); ++worker)
    if ((loads_[worker].all.tasks != 0 || loads_[worker].holds_until_ns > now_ns) && works(worker)) return true;
  return false;
}

/// `worker` is charged with `task`, and links with its copies.
void Placer::give(Task& task, unsigned worker, const TaskView& view, const LoadView& load) {
  if (explainer_ != nullptr && explainer_->wants(task)) [[unlikely]] explainer_->given(task, worker, view, load, pulling_ != nullptr ? this : nullptr);
  const NodeIndex node = machine_.workers[worker].node;
  // It waits for copies only as long as the worker has nothing else to do.
  const std::int64_t waits_ns = std::max<std::int64_t>(0, transfers_to(view, load, node).ready_ns - load.workers[worker].free_ns);
  for (const AccessView& access : view.accesses)
    if (access.is_missing(node) && !access.is_coming(node)) {
      LinkLoad& link = links_[access.source() * machine_.nodes.size() + node];
      link.free_ns += static_cast<std::int64_t>(link.copy_ns(access.bytes));
    }
  for (unsigned i = 0; i < task.access_count; ++i)
    if (is_moved(task.accesses()[i])) task.accesses()[i].handle()->coming.fetch_or(1U << node, std::memory_order_relaxed);
  ++changes_;
  Load& charged = loads_[worker];
  if (charged.all.tasks == 0) charged.since_ns = load.now_ns;
  PlacedTask& placed = task.extra->placed;
  placed.worker = worker;
  const Estimate kernel = load.kernel(view, worker);
  placed.kernel_ns = kernel.known ? static_cast<std::int64_t>(kernel.mean_ns) : 0;
  placed.charged_ns = waits_ns + static_cast<std::int64_t>(kernel.mean_ns);
  placed.priority = task.priority;
  charged.last_ns = placed.charged_ns;
  charged.holds_until_ns = 0;
  add(charged, placed.priority, placed.charged_ns);
  if (memory_ != nullptr) [[unlikely]] placed.demand = memory_->charge(placed.kind, worker, placed.kernel_ns, load.now_ns);
  ++kinds_[placed.kind].given[worker];
}

void Placer::forget(Task& task) {
  PlacedTask& placed = task.extra->placed;
  const unsigned worker = std::exchange(placed.worker, PlacedTask::kNowhere);
  if (worker == PlacedTask::kNowhere) return;
  const std::uint32_t others = ~(1U << machine_.workers[worker].node);
  for (unsigned i = 0; i < task.access_count; ++i)
    if (is_moved(task.accesses()[i])) task.accesses()[i].handle()->coming.fetch_and(others, std::memory_order_relaxed);
  const std::int64_t now_ns = clock_.now_ns();
  const std::lock_guard guard(lock_);
  Load& load = loads_[worker];
  ++changes_;
  remove(load, placed.priority, placed.charged_ns);
  load.since_ns = now_ns;
  if (memory_ != nullptr) [[unlikely]] {
    memory_->forget(placed.demand, worker, placed.kernel_ns, now_ns);
    has_first_ |= memory_->is_bound(placed.demand);  // another one may run now
  }
  --kinds_[placed.kind].given[worker];
  numbers_.leave(placed.kind);
}

void Placer::move(Task& task, unsigned worker) {
  PlacedTask& placed = task.extra->placed;
  if (placed.worker == worker || !may_move(task)) return;
  const std::int64_t now_ns = clock_.now_ns();
  const std::lock_guard guard(lock_);
  const unsigned from = std::exchange(placed.worker, worker);
  Load& to = loads_[worker];
  ++changes_;
  remove(loads_[from], placed.priority, placed.charged_ns);
  if (to.all.tasks == 0) to.since_ns = now_ns;
  add(to, placed.priority, placed.charged_ns);
  if (memory_ != nullptr) memory_->move(placed.demand, from, worker, placed.kernel_ns, now_ns);
  --kinds_[placed.kind].given[from];
  ++kinds_[placed.kind].given[worker];
}

void Placer::learn(const Task& task, DeviceKind kind, std::int64_t duration_ns) {
  if (task.extra == nullptr || !task.restricted) return;
  const PlacedTask& placed = task.extra->placed;
  const bool is_placed = placed.worker != PlacedTask::kNowhere;  // else it followed the one before it, or fell back
  estimates_.add(task.codelet->name, is_placed ? placed.footprint : footprint_of(task), kind, static_cast<double>(duration_ns));
  if ((pulling_ == nullptr && memory_ == nullptr) || !is_placed) return;
  const std::int64_t now_ns = memory_ != nullptr ? clock_.now_ns() : 0;
  const std::lock_guard guard(lock_);
  if (const ReadyKind& its = kinds_[placed.kind]; numbers_.is_class(placed.kind))
    estimates_.add_class(its.codelet, its.footprint, kind, static_cast<double>(duration_ns));
  if (memory_ != nullptr) {
    ++changes_;
    memory_->learn(placed.kind, placed.worker, static_cast<double>(duration_ns), now_ns);
    kinds_[placed.kind].memory = memory_->use_of(placed.kind);
  }
  if (pulling_ != nullptr && !is_known_[placed.kind]) ask_durations(placed.kind);
}

std::size_t Placer::missing_bytes(const Task& task, unsigned worker) const noexcept {
  const NodeIndex node = machine_.workers[worker].node;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    const bool is_missing = slot.mode() == AccessMode::reduce ? (copies_of_sum(*slot.handle(), machine_) >> node & 1U) == 0
                                                              : is_moved(slot) && sees_value(slot.mode()) && !slot.handle()->valid_on(node);
    if (is_missing) bytes += slot.handle()->travel_bytes();
  }
  return bytes;
}

std::vector<std::uint32_t> Placer::charged() const {
  const std::lock_guard guard(lock_);
  std::vector<std::uint32_t> tasks;
  for (const Load& load : loads_) tasks.push_back(load.all.tasks);
  return tasks;
}

bool Placer::check_invariants() const {
  const std::lock_guard guard(lock_);
  std::vector<std::uint32_t> tasks(loads_.size());
  std::size_t waiting = 0, bytes = 0;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    std::size_t total = kinds_[kind].tasks.size();
    waiting += total;
    for (const OpenTask& task : kinds_[kind].tasks) bytes += task.bytes;
    for (std::size_t worker = 0; worker < loads_.size(); ++worker) {
      tasks[worker] += kinds_[kind].given[worker];
      total += kinds_[kind].given[worker];
    }
    total += static_cast<std::size_t>(std::ranges::count(arriving_, kind, &ArrivingTask::kind));
    if (total != numbers_.tasks(static_cast<unsigned>(kind))) return false;
  }
  if (waiting != waiting_ || bytes != waiting_bytes_ || numbers_.size() != kinds_.size() || !numbers_.check_invariants()) return false;
  for (std::size_t worker = 0; worker < loads_.size(); ++worker) {
    const Load& load = loads_[worker];
    if (!load.by_priority.check_invariants(by_priority_ ? load.all : Sum())) return false;
    if (load.all.tasks != tasks[worker] || load.all.ns < 0 || (load.all.tasks == 0 && load.all.ns != 0)) return false;
  }
  if (memory_ != nullptr && std::ranges::all_of(tasks, [](std::uint32_t count) { return count == 0; }) && !memory_->is_idle()) return false;
  return true;
}

}  // namespace tandem::runtime
