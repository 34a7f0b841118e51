// tandem/runtime/sched/queues/ready_queues.cpp: the concurrent queues that execute a policy.
#include "tandem/runtime/sched/queues/ready_queues.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "tandem/base/fiber_local.hpp"
#include "tandem/base/splitmix64.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

namespace {

/// A thief takes a quarter of what it finds, so that flows of tiny tasks need few thefts, and one task of a short
/// queue.
constexpr std::size_t kMostStolen = 32;
std::size_t share_to_steal(std::size_t size) noexcept {
  const std::size_t share = size / 4;
  return share < 1 ? 1 : share > kMostStolen ? kMostStolen : share;
}

const std::string kNoName;

}  // namespace

constinit thread_local ReadyQueues::Promised ReadyQueues::promised_;
const base::FiberLocal ReadyQueues::own_promise_([]() noexcept -> void* { return &promised_; }, sizeof promised_);

ReadyQueues::ReadyQueues(const Policy& policy, const std::vector<std::vector<unsigned>>& distance, unsigned pinned_only,
                         std::uint64_t seed)
    : policy_(policy),
      per_worker_(policy.queue_per_worker()),
      sharing_(static_cast<unsigned>(distance.size())),
      by_priority_(policy.by_priority()),
      keeps_released_(policy.keeps_released()),
      submitted_random_(seed),
      idle_(sharing_, pinned_only) {
  TANDEM_ASSERT(sharing_ >= 1 && sharing_ + pinned_only <= kMaxWorkers);
  for (unsigned i = 0; i < (per_worker_ ? sharing_ : 1); ++i) queues_.push_back(std::make_unique<Queue>(by_priority_));
  for (unsigned worker = 0; worker < sharing_ + pinned_only; ++worker) {
    auto& lane = *lanes_.emplace_back(std::make_unique<Lane>());
    lane.random = seed + worker + 1;
    if (worker >= sharing_) continue;
    lane.home = queues_[per_worker_ ? worker : 0].get();
    if (per_worker_) lane.victims = policy.victims(worker, distance[worker]);
  }
}

ReadyTask ReadyQueues::as_ready(const Task& task) noexcept {
  return {task.priority, task.codelet != nullptr ? &task.codelet->name : &kNoName};
}

bool ReadyQueues::waits(const Task& task, std::int64_t task_ns, std::int32_t expected,
                        std::int64_t in_ns) const noexcept {
  return policy_.waits(as_ready(task), task_ns, expected, in_ns);
}

unsigned ReadyQueues::place(const Task& task, unsigned from, std::uint64_t& sequence, std::uint64_t& random) noexcept {
  if (!per_worker_) return 0;
  const ReadyTask ready = as_ready(task);
  const Situation now{from, worker_count(), sequence++, base::splitmix64(random)};
  const unsigned number = policy_.place(ready, now);
  const auto count = static_cast<unsigned>(queues_.size());
  return number < count ? number : number % count;
}

void ReadyQueues::put_submitted(Task* task, unsigned number) {
  Queue& queue = *queues_[number];
  // Read now, since the task may be gone once it is put.
  const std::int32_t priority = by_priority_ ? task->priority : 0;
  queue.submitted.put(task);
  if (std::exchange(queue.put_priority, priority) != priority)
    queue.priority_changes.store(true, std::memory_order_release);
  idle_.wake_one();
}

void ReadyQueues::push_from_outside(Task* task) {
  std::uint64_t sequence = task->id;
  std::uint64_t random = task->id;
  queues_[place(*task, Situation::kNoWorker, sequence, random)]->inbox.put(task);
  if (promised_.to == this) promised_.pending = true;
  else idle_.wake_one();
}

void ReadyQueues::push_released(unsigned worker, Task* task) {
  Lane& lane = *lanes_[worker];
  const unsigned from = lane.home != nullptr ? worker : Situation::kNoWorker;
  const bool stays = keeps_released_ && lane.home != nullptr;
  Queue& queue = stays ? *lane.home : *queues_[place(*task, from, lane.sequence, lane.random)];
  if (&queue != lane.home) {
    queue.inbox.put(task);
  } else {
    std::lock_guard guard(queue.lock);
    if (keeps_released_) {
      queue.tasks.push_front(task);
    } else {
      take_new(queue);  // those came first
      queue.tasks.push_back(task);
    }
    note_size(queue);
  }
  idle_.wake_one();
}

void ReadyQueues::push_pinned(unsigned worker, Task* task) {
  lanes_[worker]->pinned.put(task);
  idle_.wake(worker);
}

WorkerGroup& ReadyQueues::group_of(const std::vector<unsigned>& members, WorkerGroup* processors) {
  for (const auto& group : groups_)
    if (!group->staged && group->members == members && group->processors == processors) return *group;
  WorkerGroup& group = *groups_.emplace_back(std::make_unique<WorkerGroup>(by_priority_, members));
  group.processors = processors;
  for (const unsigned worker : members) {
    std::atomic<const Membership*>& list = lanes_[worker]->groups;
    const Membership* const first = list.load(std::memory_order_relaxed);
    list.store(memberships_.emplace_back(std::make_unique<Membership>(Membership{&group, first})).get());
  }
  return group;
}

void ReadyQueues::push_to(WorkerGroup& group, Task* task) {
  group.queue.inbox.put(task);
  wake_member(group);
}

Task* ReadyQueues::take_all_of(WorkerGroup& group) {
  Task* first = nullptr;
  Task** end = &first;
  const std::lock_guard guard(group.queue.lock);
  take_new(group.queue);
  while (Task* const task = group.queue.tasks.pop()) {
    *end = task;
    end = &task->next;
  }
  *end = nullptr;
  note_size(group.queue);
  return first;
}

void ReadyQueues::stage_together(std::vector<unsigned> members) {
  WorkerGroup& group = *groups_.emplace_back(std::make_unique<WorkerGroup>(by_priority_, std::move(members), true));
  for (const unsigned worker : group.members) lanes_[worker]->staged = &group;
}

void ReadyQueues::push_staged(unsigned worker, Task* task) {
  if (comes_back(worker, *task)) push_pinned(worker, task);
  else push_to(*lanes_[worker]->staged, task);
}

/// Wakes a member. Also called without a new task: then a member may wake in vain.
void ReadyQueues::wake_member(const WorkerGroup& group) noexcept {
  for (const unsigned worker : group.members)
    if ((group.staged || (takes_from_groups(*lanes_[worker]) && serves(*lanes_[worker], group))) &&
        idle_.wake_if_idle(worker))
      return;
}

/// Whether a worker serves a group. One that can run nothing does if the other members cannot either: the tasks must
/// fail.
bool ReadyQueues::serves(const Lane& lane, const WorkerGroup& group) const noexcept {
  if (!lane.retired.load()) return true;
  return std::all_of(group.members.begin(), group.members.end(),
                     [this](unsigned worker) { return is_retired(worker); });
}

void ReadyQueues::retire(unsigned worker) noexcept {
  lanes_[worker]->retired.store(true);
  has_retired_.store(true);
  for (const Membership* member = lanes_[worker]->groups.load(); member != nullptr; member = member->next)
    if (filled(member->group->queue)) wake_member(*member->group);
}

bool ReadyQueues::takes_from_groups(const Lane& lane) noexcept {
  return lane.staging.load() < lane.most_staging;
}

void ReadyQueues::note_size(Queue& queue) noexcept {
  TANDEM_AUDIT_ASSERT(queue.tasks.check_invariants());
  queue.top_priority.store(queue.tasks.top_priority(), std::memory_order_relaxed);
  queue.size.store(static_cast<std::uint32_t>(queue.tasks.size()), std::memory_order_seq_cst);
}

void ReadyQueues::take_new(Queue& queue) {
  // The flag is read first, so that tasks put before it was set are found.
  if (queue.priority_changes.load(std::memory_order_relaxed))
    queue.priority_changes.exchange(false, std::memory_order_acquire);
  queue.submitted.take_all([&](Task* task) { queue.submitted_priority = queue.tasks.push_back(task); });
  for (Task* task = queue.inbox.take_all_in_order(); task != nullptr;) {
    Task* next = task->next;
    queue.tasks.push_back(task);
    task = next;
  }
}

Task* ReadyQueues::pop_from(Queue& queue) {
  if (queue.size.load(std::memory_order_relaxed) == 0 && !queue.looks_new()) return nullptr;
  std::lock_guard guard(queue.lock);
  if (queue.must_look()) take_new(queue);
  Task* task = queue.tasks.pop();
  queue.top_priority.store(queue.tasks.top_priority(), std::memory_order_relaxed);
  // Another thread may see a pop late: a sleeper then only looks once more. So a plain store is enough.
  queue.size.store(static_cast<std::uint32_t>(queue.tasks.size()), std::memory_order_release);
  return task;
}

Task* ReadyQueues::pop_from(Queue& queue, std::int32_t above) {
  if (!queue.looks_new() && queue.size.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard guard(queue.lock);
  take_new(queue);
  Task* task = queue.tasks.top_priority() > above ? queue.tasks.pop() : nullptr;
  note_size(queue);
  return task;
}

Task* ReadyQueues::pop_by_data(Queue& queue, unsigned worker) {
  const std::lock_guard guard(queue.lock);
  take_new(queue);
  Task* const task = queue.tasks.pop_least(kByData, [&](const Task& one) { return missing_bytes_(one, worker); });
  note_size(queue);
  return task;
}

Task* ReadyQueues::take_pinned(Lane& lane) {
  if (lane.pinned_in_order == nullptr) {
    if (lane.pinned.looks_empty()) return nullptr;
    lane.pinned_in_order = lane.pinned.take_all_in_order();
  }
  Task* task = lane.pinned_in_order;
  lane.pinned_in_order = task->next;
  const unsigned staging = lane.staging.load();
  if (staging > 0) lane.staging.store(staging - 1);
  return task;
}

/// Priority of the task that `pop_from` would return, or nothing when the queue is empty.
std::optional<std::int32_t> ReadyQueues::top_of(Queue& queue) {
  if (!queue.looks_filled()) return {};
  const std::lock_guard guard(queue.lock);
  take_new(queue);
  note_size(queue);
  if (queue.tasks.empty()) return {};
  return queue.tasks.top_priority();
}

/// The most urgent task of the worker's groups, if it is above `above` and nothing in the worker's own queue is more
/// urgent.
Task* ReadyQueues::pop_from_groups(unsigned worker, std::optional<std::int32_t> above) {
  Lane& lane = *lanes_[worker];
  if (!takes_from_groups(lane)) return nullptr;
  Queue* best = nullptr;
  std::optional<std::int32_t> best_priority = above;
  for (const Membership* member = lane.groups.load(std::memory_order_acquire); member != nullptr;
       member = member->next) {
    if (!serves(lane, *member->group)) continue;
    const std::optional<std::int32_t> top = top_of(member->group->queue);
    if (!top || (best_priority && *top <= *best_priority)) continue;
    best = &member->group->queue;
    best_priority = top;
  }
  if (best == nullptr) return nullptr;
  if (lane.home != nullptr)
    if (const std::optional<std::int32_t> own = top_of(*lane.home); own && *own > *best_priority) return nullptr;
  return missing_bytes_ ? pop_by_data(*best, worker) : pop_from(*best);
}

Task* ReadyQueues::pop(unsigned worker) {
  Lane& lane = *lanes_[worker];
  lane.victim.reset();
  if (Task* task = take_pinned(lane)) return task;
  if (lane.staged != nullptr) [[unlikely]]
    if (Task* task = pop_from(lane.staged->queue)) return task;
  if (lane.groups.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    if (Task* task = pop_from_groups(worker, {})) return task;
  if (lane.home == nullptr) return nullptr;
  if (Task* task = pop_from(*lane.home)) return task;
  return steal(lane);
}

Task* ReadyQueues::pop_above(unsigned worker, std::int32_t priority) {
  Lane& lane = *lanes_[worker];
  lane.victim.reset();
  if (Task* task = take_pinned(lane)) return task;
  if (lane.staged != nullptr) [[unlikely]]
    if (Task* task = pop_from(lane.staged->queue)) return task;
  if (lane.groups.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    if (Task* task = pop_from_groups(worker, priority)) return task;
  if (lane.home == nullptr) return nullptr;
  if (Task* task = pop_from(*lane.home, priority)) return task;
  for (const unsigned victim : lane.victims)
    if (Task* task = pop_from(*queues_[victim], priority)) {
      lane.victim = victim;
      return task;
    }
  return nullptr;
}

void ReadyQueues::put_back(unsigned worker, Task* task) {
  Queue& queue = *lanes_[worker]->home;
  {
    const std::lock_guard guard(queue.lock);
    queue.tasks.push_front(task);
    note_size(queue);
  }
  idle_.wake_one();  // for a worker that has become idle meanwhile
}

Task* ReadyQueues::steal(Lane& lane) {
  for (const unsigned victim : lane.victims)
    if (Task* task = steal_from(*queues_[victim], lane)) {
      lane.victim = victim;
      return task;
    }
  return nullptr;
}

Task* ReadyQueues::steal_from(Queue& victim, Lane& lane) {
  if (!victim.looks_new() && victim.size.load(std::memory_order_relaxed) == 0) return nullptr;
  Task* first = nullptr;
  Task* more = nullptr;
  {
    if (!victim.lock.try_lock()) return nullptr;  // another worker is there; the next look finds what is left
    std::lock_guard guard(victim.lock, std::adopt_lock);
    take_new(victim);
    const std::size_t share = share_to_steal(victim.tasks.size());
    first = victim.tasks.pop();
    Task** end = &more;
    for (std::size_t i = 1; i < share; ++i) {
      *end = victim.tasks.pop();
      end = &(*end)->next;
    }
    *end = nullptr;
    note_size(victim);
  }
  if (first == nullptr) return nullptr;
  lane.steals.add(1);
  if (more != nullptr) {
    std::unique_lock guard(lane.home->lock);
    while (more != nullptr) {
      Task* next = more->next;
      lane.home->tasks.push_back(more);
      more = next;
    }
    note_size(*lane.home);
    guard.unlock();
    idle_.wake_one();  // a worker that looked while they were in no queue may sleep now
  }
  return first;
}

bool ReadyQueues::may_run_at_once(unsigned worker, const Task& task) const noexcept {
  const Lane& lane = *lanes_[worker];
  if (!keeps_released_ || lane.home == nullptr) return false;
  if (lane.staged != nullptr && lane.staged->queue.looks_filled()) return false;
  for (const Membership* member = lane.groups.load(std::memory_order_acquire); member != nullptr;
       member = member->next) {
    const Queue& queue = member->group->queue;
    if (queue.looks_filled() &&
        (queue.looks_new() || queue.top_priority.load(std::memory_order_relaxed) >= task.priority) &&
        takes_from_groups(lane))
      return false;
  }
  return task.priority >= lane.home->top_priority.load(std::memory_order_relaxed) && !lane.home->looks_new() &&
         lane.pinned.looks_empty() && lane.pinned_in_order == nullptr;
}

bool ReadyQueues::filled(const Queue& queue) noexcept {
  if (queue.has_new()) return true;
  queue.lock.wait_for_holder();  // the holder that has just emptied the inbox writes the size before it unlocks
  return queue.size.load(std::memory_order_seq_cst) != 0;
}

bool ReadyQueues::looks_empty(unsigned worker) const noexcept {
  const Lane& lane = *lanes_[worker];
  if (!lane.pinned.empty() || lane.pinned_in_order != nullptr || has_staged(lane)) return false;
  if (takes_from_groups(lane))
    for (const Membership* member = lane.groups.load(); member != nullptr; member = member->next)
      if (serves(lane, *member->group) && filled(member->group->queue)) return false;
  if (lane.home == nullptr) return true;
  if (filled(*lane.home)) return false;
  for (const unsigned victim : lane.victims)
    if (filled(*queues_[victim])) return false;
  return true;
}

bool ReadyQueues::looks_empty_above(unsigned worker, std::int32_t priority) noexcept {
  const Lane& lane = *lanes_[worker];
  if (!lane.pinned.empty() || lane.pinned_in_order != nullptr || has_staged(lane)) return false;
  const auto has_above = [priority](Queue& queue) {
    const std::lock_guard guard(queue.lock);
    take_new(queue);
    note_size(queue);
    return queue.tasks.top_priority() > priority;
  };
  if (takes_from_groups(lane))
    for (const Membership* member = lane.groups.load(); member != nullptr; member = member->next)
      if (has_above(member->group->queue)) return false;
  if (has_above(*lane.home)) return false;
  return std::none_of(lane.victims.begin(), lane.victims.end(),
                      [&](unsigned victim) { return has_above(*queues_[victim]); });
}

void ReadyQueues::wake_next_if_work(unsigned worker) noexcept {
  if (has_staged(*lanes_[worker])) wake_member(*lanes_[worker]->staged);
  for (const Membership* member = lanes_[worker]->groups.load(std::memory_order_acquire); member != nullptr;
       member = member->next)
    if (filled(member->group->queue)) wake_member(*member->group);
  if (idle_.any() && !looks_empty(worker)) idle_.wake_one();
}

void ReadyQueues::pass_on_wake(unsigned worker) noexcept {
  if (has_staged(*lanes_[worker])) wake_member(*lanes_[worker]->staged);
  for (const Membership* member = lanes_[worker]->groups.load(std::memory_order_acquire); member != nullptr;
       member = member->next)
    if (filled(member->group->queue)) wake_member(*member->group);
  if (std::any_of(queues_.begin(), queues_.end(), [](const auto& queue) { return filled(*queue); })) idle_.wake_one();
}

bool ReadyQueues::check_invariants() const {
  const auto is_whole = [](Queue& queue) {
    const std::lock_guard guard(queue.lock);
    return queue.tasks.check_invariants() && queue.size.load() == queue.tasks.size() &&
           queue.top_priority.load() == queue.tasks.top_priority();
  };
  return std::all_of(queues_.begin(), queues_.end(), [&](const auto& queue) { return is_whole(*queue); }) &&
         std::all_of(groups_.begin(), groups_.end(), [&](const auto& group) { return is_whole(group->queue); });
}

std::size_t ReadyQueues::size() const noexcept {
  std::size_t size = 0;
  for (const auto& group : groups_)
    size += group->queue.size.load(std::memory_order_seq_cst) + (group->queue.has_new() ? 1 : 0);
  for (const auto& queue : queues_)
    size += queue->size.load(std::memory_order_seq_cst) + (queue->has_new() ? 1 : 0);
  return size;
}

}  // namespace tandem::runtime
