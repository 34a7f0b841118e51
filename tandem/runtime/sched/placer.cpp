// tandem/runtime/sched/placer.cpp: what a placing policy sees, and what its choice costs.
#include "tandem/runtime/sched/placer.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <mutex>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/base/splitmix64.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/footprint.hpp"

namespace tandem::runtime {

namespace {

bool is_moved(const AccessSlot& slot) noexcept {
  return !slot.alias() && slot.mode() != AccessMode::scratch && slot.mode() != AccessMode::reduce;
}

}  // namespace

Placer::Placer(const PlacingPolicy& policy, const Machine& machine, Estimates* given, ReadyQueues& queues, const clock::Clock& clock,
               bool caller)
    : policy_(policy),
      by_priority_(policy.by_priority()),
      machine_(machine),
      queues_(queues),
      clock_(clock),
      estimates_(given),
      caller_is_away_(caller),
      loads_(machine.workers.size()),
      views_(machine.workers.size()) {
  for (unsigned worker = 0; worker < machine.workers.size(); ++worker) own_.push_back(&queues.group_of({worker}));
  for (NodeIndex from = 0; from < machine.nodes.size(); ++from)
    for (NodeIndex to = 0; to < machine.nodes.size(); ++to) links_.push_back({machine.link(from, to), 0});
}

namespace {

/// Where `priority` stands, or would stand.
template <class Sums>
auto place_of(Sums& sums, std::int32_t priority) {
  return std::lower_bound(sums.begin(), sums.end(), priority, [](const auto& sum, std::int32_t wanted) { return sum.first > wanted; });
}

}  // namespace

void Placer::add(Load& load, std::int32_t priority, std::int64_t ns) {
  load.all.ns += ns;
  ++load.all.tasks;
  if (!by_priority_) return;
  auto at = place_of(load.by_priority, priority);
  if (at == load.by_priority.end() || at->first != priority) at = load.by_priority.insert(at, {priority, {}});
  at->second.ns += ns;
  ++at->second.tasks;
}

void Placer::remove(Load& load, std::int32_t priority, std::int64_t ns) {
  TANDEM_ASSERT(load.all.tasks > 0);
  load.all.ns -= ns;
  --load.all.tasks;
  if (!by_priority_) return;
  const auto at = place_of(load.by_priority, priority);
  at->second.ns -= ns;
  if (--at->second.tasks == 0) load.by_priority.erase(at);
}

std::int64_t Placer::free_ns(const Load& load, std::int32_t priority, std::int64_t now_ns) const noexcept {
  if (load.all.tasks == 0) return now_ns;
  if (!by_priority_) return std::max(now_ns, load.since_ns + load.all.ns);
  Sum ahead;
  for (const auto& [other, sum] : load.by_priority) {
    if (other < priority) break;
    ahead.ns += sum.ns;
    ahead.tasks += sum.tasks;
  }
  if (ahead.tasks != 0) return std::max(now_ns, load.since_ns + ahead.ns);
  return now_ns + load.all.ns / load.all.tasks / 2;
}

/// The data of `task`, for the view.
void Placer::look_at(const Task& task) {
  accesses_.clear();
  bytes_ = 0;
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (!is_moved(slot)) continue;
    const Handle& handle = *slot.handle();
    accesses_.push_back({slot.mode(), handle.travel_bytes(), handle.valid.load(std::memory_order_acquire) & ~Handle::kMoving,
                         handle.coming.load(std::memory_order_relaxed)});
    bytes_ += handle.shape.bytes();
  }
}

bool Placer::may_get(unsigned worker) const noexcept {
  if (worker == 0 && caller_is_away_.load(std::memory_order_relaxed)) return false;
  const MachineNode& node = machine_.nodes[machine_.workers[worker].node];
  return (node.kind != NodeKind::device || node.budget == 0 || bytes_ <= node.budget) && !queues_.is_retired(worker);
}

/// False: none of them may get it, so all stand there.
bool Placer::select_workers(const WorkerGroup& group) {
  candidates_.clear();
  for (const unsigned worker : group.members)
    if (may_get(worker)) candidates_.push_back(worker);
  if (!candidates_.empty()) return true;
  candidates_ = group.members;
  return false;
}

Placer::Choice Placer::choose(Task& task) {
  TANDEM_ASSERT(task.restricted);
  forget(task);
  PlacedTask& placed = task.extra->placed;
  placed.footprint = footprint_of(task);
  const std::uint64_t kind_of_task = base::mix64(std::hash<std::string_view>{}(task.codelet->name) ^ placed.footprint.shape);
  const std::int64_t now_ns = clock_.now_ns();
  const std::lock_guard guard(lock_);
  look_at(task);
  const bool is_present = select_workers(*task.extra->group);
  for (std::size_t worker = 0; worker < loads_.size(); ++worker) {
    const Load& load = loads_[worker];
    views_[worker] = {free_ns(load, task.priority, now_ns), load.all.tasks};
  }
  for (LinkLoad& link : links_) link.free_ns = std::max(link.free_ns, now_ns);
  const auto alike = alike_.find(kind_of_task);
  const TaskView view{.codelet = task.codelet->name,
                      .priority = task.priority,
                      .footprint = placed.footprint,
                      .accesses = accesses_,
                      .workers = candidates_,
                      .alike = alike != alike_.end() ? std::span<const std::uint32_t>(alike->second.by_worker) : std::span<const std::uint32_t>()};
  const LoadView load{.machine = machine_, .estimates = estimates_, .now_ns = now_ns, .workers = views_, .links = links_};
  unsigned worker = policy_.choose(view, load);
  if (std::find(candidates_.begin(), candidates_.end(), worker) == candidates_.end()) worker = candidates_.front();
  charge(task, worker, view, load, kind_of_task);
  return {worker, is_present};
}

/// What the choice of `worker` adds to its load and to those of links.
void Placer::charge(Task& task, unsigned worker, const TaskView& view, const LoadView& load, std::uint64_t kind_of_task) {
  const NodeIndex node = machine_.workers[worker].node;
  // It waits for copies only as long as the worker has nothing else to do.
  const std::int64_t waits_ns = std::max<std::int64_t>(0, transfers_to(view, load, node).ready_ns - load.workers[worker].free_ns);
  for (const AccessView& access : accesses_)
    if (sees_value(access.mode) && access.valid != 0 && ((access.valid | access.coming) >> node & 1U) == 0) {
      LinkLoad& link = links_[static_cast<std::size_t>(std::countr_zero(access.valid)) * machine_.nodes.size() + node];
      link.free_ns += static_cast<std::int64_t>(link.link.copy_ns(access.bytes));
    }
  for (unsigned i = 0; i < task.access_count; ++i)
    if (is_moved(task.accesses()[i])) task.accesses()[i].handle()->coming.fetch_or(1U << node, std::memory_order_relaxed);
  Load& charged = loads_[worker];
  if (charged.all.tasks == 0) charged.since_ns = load.now_ns;
  PlacedTask& placed = task.extra->placed;
  placed.worker = worker;
  placed.kind = kind_of_task;
  placed.charged_ns = waits_ns + static_cast<std::int64_t>(load.kernel(view, worker).mean_ns);
  placed.priority = task.priority;
  add(charged, placed.priority, placed.charged_ns);
  Alike& alike = alike_[kind_of_task];
  if (alike.by_worker.empty()) alike.by_worker.resize(loads_.size());
  ++alike.by_worker[worker];
  ++alike.total;
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
  remove(load, placed.priority, placed.charged_ns);
  load.since_ns = now_ns;
  const auto alike = alike_.find(placed.kind);
  --alike->second.by_worker[worker];
  if (--alike->second.total == 0) alike_.erase(alike);
}

void Placer::learn(const Task& task, DeviceKind kind, std::int64_t duration_ns) {
  if (task.extra == nullptr || !task.restricted) return;
  estimates_.add(task.codelet->name, task.extra->placed.footprint, kind, static_cast<double>(duration_ns));
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
  for (const auto& [kind, alike] : alike_) {
    std::uint32_t total = 0;
    for (std::size_t worker = 0; worker < loads_.size(); ++worker) {
      tasks[worker] += alike.by_worker[worker];
      total += alike.by_worker[worker];
    }
    if (total != alike.total || total == 0) return false;
  }
  for (std::size_t worker = 0; worker < loads_.size(); ++worker) {
    const Load& load = loads_[worker];
    Sum sum;
    for (std::size_t i = 0; i < load.by_priority.size(); ++i) {
      if (load.by_priority[i].second.tasks == 0 || (i > 0 && load.by_priority[i - 1].first <= load.by_priority[i].first)) return false;
      sum.ns += load.by_priority[i].second.ns;
      sum.tasks += load.by_priority[i].second.tasks;
    }
    if (by_priority_ && (sum.ns != load.all.ns || sum.tasks != load.all.tasks)) return false;
    if (load.all.tasks != tasks[worker] || load.all.ns < 0 || (load.all.tasks == 0 && load.all.ns != 0)) return false;
  }
  return true;
}

}  // namespace tandem::runtime
