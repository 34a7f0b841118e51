// tandem/runtime/sched/placing/placer.cpp: what a placing policy sees, and what its choice costs.
#include "tandem/runtime/sched/placing/placer.hpp"

#include <mutex>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/sched/placing/explainer.hpp"
#include "tandem/runtime/sched/placing/pull_placer.hpp"
#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/footprint.hpp"

namespace tandem::runtime {

namespace {

bool is_moved(const AccessSlot& slot) noexcept {
  return !slot.alias() && slot.mode() != AccessMode::scratch && slot.mode() != AccessMode::reduce;
}

/// Where a task that adds to `handle` needs no copy to be brought: outside of devices, and where a copy is free to
/// which tasks have added. Others begin in main memory.
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
  const bool is_one = std::all_of(machine.workers.begin(), machine.workers.begin() + cores,
                                  [&](const MachineWorker& worker) { return worker.node == node; });
  return is_one ? cores : 0;
}

/// For a policy that says of each task, when it becomes ready, which worker runs it.
class PushPlacer final : public Placer {
 public:
  PushPlacer(const PlacingPolicy& policy, const Machine& machine, Durations& durations, ReadyQueues& queues,
             const clock::Clock& clock, bool caller)
      : Placer(machine, durations, queues, clock, caller, KindNumbers::Bound::none, policy.by_priority(),
               cores_of_one_memory(machine)),
        policy_(policy) {}

  Task* offer(Task& task) override {
    PlacedTask& placed = begin(task);
    Chain chosen;
    const std::lock_guard guard(lock_);
    placed.kind = kinds_.join(task, placed.footprint, loads_.memory());
    choose(task, chosen, nullptr);
    return chosen.first;
  }

 private:
  unsigned choose_worker(const TaskView& task, const LoadView& load) const override {
    return policy_.choose(task, load);
  }

  const PlacingPolicy& policy_;
};

}  // namespace

std::unique_ptr<Placer> Placer::make(const Policy& policy, const Machine& machine, Durations& durations,
                                     ReadyQueues& queues, const clock::Clock& clock, bool caller) {
  if (const PlacingPolicy* const placing = policy.placing())
    return std::make_unique<PushPlacer>(*placing, machine, durations, queues, clock, caller);
  TANDEM_ASSERT(policy.pulling() != nullptr);
  return std::make_unique<PullPlacer>(*policy.pulling(), machine, durations, queues, clock, caller);
}

Placer::Placer(const Machine& machine, Durations& durations, ReadyQueues& queues, const clock::Clock& clock,
               bool caller, KindNumbers::Bound bound, bool by_priority, unsigned alike)
    : machine_(machine),
      clock_(clock),
      durations_(durations),
      loads_(machine, by_priority),
      kinds_(machine, durations_, bound),
      queues_(queues),
      alike_(alike),
      has_budgets_(machine.has_budgets()),
      caller_is_away_(caller) {
  for (unsigned worker = 0; worker < machine.workers.size(); ++worker) own_.push_back(&queues.group_of({worker}));
}

// --- what a policy sees

/// The data of `task`; valid until the next call.
std::span<const AccessView> Placer::look_at(const Task& task) const {
  const std::span<const AccessSlot> slots(task.accesses(), task.access_count);
  if (access_room_.size() < slots.size()) access_room_.resize(slots.size());
  AccessView* view = access_room_.data();
  for (const AccessSlot& slot : slots) {
    Handle& handle = *slot.handle();
    if (is_moved(slot)) [[likely]]
      *view++ = {slot.mode(), handle.travel_bytes(), handle.seen_valid(), handle.coming.load(std::memory_order_relaxed),
                 &handle};
    else if (slot.mode() == AccessMode::reduce)
      *view++ = {AccessMode::read_write, handle.travel_bytes(), copies_of_sum(handle, machine_), 0, &handle};
  }
  return accesses_ = {access_room_.data(), view};
}

std::size_t Placer::data_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const AccessView& access : accesses_) bytes += static_cast<const Handle*>(access.datum)->shape.bytes();
  return bytes;
}

std::uint32_t Placer::memories_with_room(std::size_t bytes) const noexcept {
  std::uint32_t memories = ~0U;
  if (!has_budgets_) return memories;
  for (NodeIndex node = 0; node < machine_.nodes.size(); ++node) {
    const MachineNode& memory = machine_.nodes[node];
    if (memory.kind == NodeKind::device && memory.budget != 0 && bytes > memory.budget) memories &= ~(1U << node);
  }
  return memories;
}

/// Fills `candidates_` with workers that may get the task that was looked at. False: none of them may, so all of
/// `group` are candidates.
bool Placer::select_workers(const WorkerGroup& group) {
  candidates_.clear();
  const std::uint32_t memories = memories_with_room(data_bytes());
  for (const unsigned worker : group.members)
    if (works(worker) && (memories >> machine_.workers[worker].node & 1U) != 0) candidates_.push_back(worker);
  if (!candidates_.empty()) return true;
  candidates_ = group.members;
  return false;
}

LoadView Placer::look_at_loads(std::int32_t priority) {
  const std::int64_t now_ns = clock_.now_ns();
  loads_.look(priority, now_ns);
  return {.machine = machine_,
          .estimates = durations_,
          .now_ns = now_ns,
          .workers = loads_.workers(),
          .links = loads_.links(),
          .prices = kinds_.prices(),
          .parts = kinds_.parts(),
          .memory = loads_.memory(),
          .energy = kinds_.aim()};
}

// --- choices

PlacedTask& Placer::begin(Task& task) {
  TANDEM_ASSERT(task.restricted);
  forget(task);
  PlacedTask& placed = task.extra->placed;
  placed.footprint = footprint_of(task);
  return placed;
}

void Placer::choose(Task& task, Chain& chosen, const ReadyView* ready) {
  look_at(task);
  PlacedTask& placed = task.extra->placed;
  placed.is_present = select_workers(*task.extra->group);
  const ReadyKind& kind = kinds_[placed.kind];
  const LoadView load = look_at_loads(task.priority);
  const TaskView view{.codelet = kind.codelet,
                      .priority = task.priority,
                      .footprint = kind.footprint,
                      .accesses = accesses_,
                      .workers = candidates_,
                      .alike = kind.given,
                      .memory = kind.memory,
                      .prefers_devices = kind.prefers_devices,
                      .come = kind.come};
  unsigned worker = choose_worker(view, load);
  if (std::find(candidates_.begin(), candidates_.end(), worker) == candidates_.end()) worker = candidates_.front();
  give(task, worker, view, load, ready);
  chosen.add(task);
}

/// `worker` is charged with `task`, and links with its copies.
void Placer::give(Task& task, unsigned worker, const TaskView& view, const LoadView& load, const ReadyView* ready) {
  if (explainer_ != nullptr && explainer_->wants(task)) [[unlikely]]
    explainer_->given(task, worker, view, load, ready);
  loads_.charge(task, worker, view, load);
  const std::uint32_t here = 1U << machine_.workers[worker].node;
  for (unsigned i = 0; i < task.access_count; ++i)
    if (is_moved(task.accesses()[i])) task.accesses()[i].handle()->coming.fetch_or(here, std::memory_order_relaxed);
  ++kinds_[task.extra->placed.kind].given[worker];
}

Task* Placer::note_messages() {
  if (loads_.memory() == nullptr) return nullptr;
  const std::int64_t now_ns = clock_.now_ns();
  Chain chosen;
  const std::lock_guard guard(lock_);
  loads_.note_messages(now_ns);
  messages_changed(chosen);
  return chosen.first;
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
  discharged(loads_.discharge(placed, worker, now_ns));
  --kinds_[placed.kind].given[worker];
  kinds_.leave(placed.kind);
}

void Placer::move(Task& task, unsigned worker) {
  PlacedTask& placed = task.extra->placed;
  if (placed.worker == worker || !may_move(task)) return;
  const std::int64_t now_ns = clock_.now_ns();
  const std::lock_guard guard(lock_);
  const unsigned from = std::exchange(placed.worker, worker);
  loads_.move(placed, from, now_ns);
  --kinds_[placed.kind].given[from];
  ++kinds_[placed.kind].given[worker];
}

void Placer::learn(const Task& task, DeviceKind kind, unsigned implementation, std::int64_t duration_ns) {
  // Without a place it followed the one before it, or fell back.
  if (task.extra == nullptr || task.extra->placed.worker == PlacedTask::kNowhere) return;
  learn_placed(task.extra->placed, kind, implementation, duration_ns);
}

void Placer::learn_placed(const PlacedTask& placed, DeviceKind, unsigned, std::int64_t duration_ns) {
  if (loads_.memory() == nullptr) return;
  const std::int64_t now_ns = clock_.now_ns();
  const std::lock_guard guard(lock_);
  learn_memory(placed, duration_ns, now_ns);
}

/// What the kernel of `placed`, which has just ended, tells of how its kind uses memory.
void Placer::learn_memory(const PlacedTask& placed, std::int64_t duration_ns, std::int64_t now_ns) {
  loads_.note_change();
  loads_.memory()->learn(placed.kind, placed.worker, static_cast<double>(duration_ns), now_ns);
  kinds_[placed.kind].memory = loads_.memory()->use_of(placed.kind);
}

std::size_t Placer::missing_bytes(const Task& task, unsigned worker) const noexcept {
  const NodeIndex node = machine_.workers[worker].node;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    const bool is_missing = slot.mode() == AccessMode::reduce
                                ? (copies_of_sum(*slot.handle(), machine_) >> node & 1U) == 0
                                : is_moved(slot) && sees_value(slot.mode()) && !slot.handle()->valid_on(node);
    if (is_missing) bytes += slot.handle()->travel_bytes();
  }
  return bytes;
}

std::vector<std::uint32_t> Placer::charged() const {
  const std::lock_guard guard(lock_);
  std::vector<std::uint32_t> tasks;
  for (unsigned worker = 0; worker < machine_.workers.size(); ++worker) tasks.push_back(loads_.tasks(worker));
  return tasks;
}

bool Placer::check_invariants() const {
  const std::lock_guard guard(lock_);
  std::vector<std::uint32_t> tasks(machine_.workers.size());
  for (unsigned kind = 0; kind < kinds_.all().size(); ++kind) {
    std::size_t total = kept(kind);
    for (std::size_t worker = 0; worker < tasks.size(); ++worker) {
      tasks[worker] += kinds_[kind].given[worker];
      total += kinds_[kind].given[worker];
    }
    if (total != kinds_.tasks(kind)) return false;
  }
  return check_kept() && kinds_.check_invariants() && loads_.check_invariants(tasks);
}

}  // namespace tandem::runtime
