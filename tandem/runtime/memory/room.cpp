// tandem/runtime/memory/room.cpp: grants memory on nodes with budgets, and chooses what leaves.
#include "tandem/runtime/memory/room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/memory/memory.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::runtime {

namespace {

/// Calls `visit(handle, index)` once for each datum of `task` that must be in its node's memory.
template <class Visit>
void for_each_datum(Task& task, const Visit& visit) {
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (slot.alias() || slot.mode() == AccessMode::scratch || slot.mode() == AccessMode::reduce) continue;
    visit(*slot.handle(), i);
  }
}

bool counts_as_kernel(const Task& task) noexcept {
  return task.kind == TaskKind::kernel && task.room.memory == RoomState::Memory::pinned;
}

}  // namespace

bool Room::Sooner::operator()(const WaitingTask* a, const WaitingTask* b) const noexcept {
  const auto key = [](const WaitingTask& waiting) {
    const Task& task = *waiting.task;
    const std::int64_t urgency = waiting.missing == 0 ? std::int64_t{task.priority} : 0;
    const int group = task.kind == TaskKind::application ? 0 : task.kind == TaskKind::event ? 1 : 2;
    return std::tuple(group, waiting.missing, -urgency, flow_position(task), &task);
  };
  return key(*a) < key(*b);
}

void Room::limit(NodeIndex node, std::size_t bytes, unsigned kernels) {
  while (nodes_.size() <= node) nodes_.emplace_back();
  nodes_[node].limited = any_ = true;
  nodes_[node].budget = nodes_[node].first_budget = bytes;
  nodes_[node].most_kernels = kernels;
}

/// Whether `handle` counts in the budget of `node`. The program's own memory, parts of it, and objects, which cannot be
/// copied as bytes, stay in main memory, also for workers of a NUMA node that use them there. Private copies count in
/// no budget of main memory, so that those of any number of devices fit there.
bool Room::counts(const Handle& handle, NodeIndex node) noexcept {
  return handle.node_at(node) != 0 ||
         (!handle.user_memory && !handle.is_part && handle.object == nullptr && handle.copy_number == 0);
}

std::size_t Room::bytes_on(const Handle& handle, NodeIndex node) const noexcept {
  return memory_.node(node).footprint(handle.shape.bytes());
}

/// Bytes that `task` gets for the time of its kernel.
std::size_t Room::scratch_bytes(Task& task, NodeIndex node) const noexcept {
  std::size_t bytes = 0;
  for (unsigned i = 0; i < task.access_count; ++i)
    if (task.accesses()[i].mode() == AccessMode::scratch) bytes += bytes_on(*task.accesses()[i].handle(), node);
  return bytes;
}

std::size_t Room::bytes_of(Task& task, NodeIndex node) const noexcept {
  std::size_t bytes = scratch_bytes(task, node);
  for_each_datum(task, [&](const Handle& handle, unsigned) {
    if (counts(handle, node)) bytes += bytes_on(handle, node);
  });
  if (node == 0 || memory_.reaches_home(node)) return bytes;
  for (unsigned i = 0; i < task.access_count; ++i)  // the private copies that the task will have there
    if (task.accesses()[i].mode() == AccessMode::reduce) bytes += bytes_on(*task.accesses()[i].handle(), node);
  return bytes;
}

// --- uses and pins

void Room::note_uses(Task& task) {
  const std::lock_guard guard(mutex_);
  for_each_datum(task, [&](Handle& handle, unsigned) {
    const std::uint64_t next = handle.residence->uses.next();
    handle.residence->uses.add(flow_position(task));
    handle.residence->unwanted = handle.residence->evicted = false;
    count_passing(handle);
    if (handle.residence->uses.next() != next) use_changed(handle);
  });
  task.room.is_noted = true;
}

void Room::note_unwanted(Handle& handle, bool now) {
  const std::lock_guard guard(mutex_);
  Residence& residence = *handle.residence;
  residence.unwanted = true;
  residence.evicted = residence.evicted || now;
  if (residence.uses.next() != UpcomingUses::kNone) return;
  residence.last_use = 0;
  use_changed(handle);
  leave_if_evicted(handle);
}

void Room::note_abandoned(Handle& handle) {
  const std::lock_guard guard(mutex_);
  handle.residence->abandoned = true;
  count_passing(handle);
  leave_if_evicted(handle);
  serve_all();
}

/// Counts the data as passing, or not any more. Called after its uses have changed, or the program has dropped it.
void Room::count_passing(Handle& handle) {
  Residence& residence = *handle.residence;
  const bool passes = residence.abandoned && residence.uses.next() != UpcomingUses::kNone && counts(handle, 0);
  if (passes == std::exchange(residence.passing, passes)) return;
  if (passes) passing_bytes_.fetch_add(handle.shape.bytes(), std::memory_order_release);
  else passing_bytes_.fetch_sub(handle.shape.bytes(), std::memory_order_release);
}

std::size_t Room::processor_budget() const noexcept {
  std::size_t bytes = 0;
  for (NodeIndex node = 0; is_limited(0) && node < nodes_.size(); ++node)
    if (nodes_[node].limited && (node == 0 || memory_.reaches_home(node))) bytes += nodes_[node].budget;
  return bytes;
}

void Room::leave_if_evicted(Handle& handle) {
  const Residence& residence = *handle.residence;
  if (!(residence.evicted || residence.abandoned) || residence.uses.next() != UpcomingUses::kNone) return;
  for (NodeIndex node = 0; node < nodes_.size(); ++node)
    if (residence.stays[node].may_leave && (residence.abandoned || target_for(handle, node))) evict(handle, node);
}

void Room::use_changed(Handle& handle) {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    if (!handle.residence->stays[node].may_leave) continue;
    unlist(handle, node);
    list(handle, node);
  }
}

void Room::pin(Handle& handle, NodeIndex node) {
  if (handle.residence->stays[node].pins++ == 0) unlist(handle, node);
}

void Room::unpin(Handle& handle, NodeIndex node) {
  TANDEM_ASSERT(handle.residence->stays[node].pins > 0);
  if (--handle.residence->stays[node].pins == 0) list(handle, node);
}

void Room::list(Handle& handle, NodeIndex node) {
  Residence& residence = *handle.residence;
  Residence::Stay& stay = residence.stays[node];
  if (!stay.charged || stay.pins != 0 || residence.stuck || residence.leaves == node) return;
  stay.may_leave = true;
  stay.next_use = residence.uses.next();
  stay.last_use = residence.last_use;
  nodes_[node].candidates.insert({stay.next_use, stay.last_use, &handle});
}

void Room::unlist(Handle& handle, NodeIndex node) {
  Residence::Stay& stay = handle.residence->stays[node];
  if (std::exchange(stay.may_leave, false)) nodes_[node].candidates.erase({stay.next_use, stay.last_use, &handle});
}

void Room::charge(Handle& handle, NodeIndex node) {
  if (!counts(handle, node) || std::exchange(handle.residence->stays[node].charged, true)) return;
  leave_beside(handle, node);
  nodes_[node].used += bytes_on(handle, node);
  change_missing(handle, node, false);
}

void Room::discharge(Handle& handle, NodeIndex node) {
  unlist(handle, node);
  leave_beside(handle, node);
  if (!std::exchange(handle.residence->stays[node].charged, false)) return;
  nodes_[node].used -= bytes_on(handle, node);
  nodes_[node].given_up.fetch_add(bytes_on(handle, node), std::memory_order_release);
  change_missing(handle, node, true);
}

void Room::leave_beside(Handle& handle, NodeIndex node) {
  if (!std::exchange(handle.residence->stays[node].beside, false)) return;
  nodes_[node].beside -= bytes_on(handle, node);
  std::erase(nodes_[node].arrived, &handle);
  settle(handle, node);
}

/// Ends the count of bytes beside the budget.
void Room::settle(Handle& handle, NodeIndex node) {
  if (std::exchange(handle.residence->stays[node].settles, false)) orders_.settled.push_back(handle.shape.bytes());
}

/// Changes what tasks that wait for the data's memory miss.
void Room::change_missing(Handle& handle, NodeIndex node, bool more) {
  for (WaitingTask* const waiting : handle.residence->stays[node].wanted_by) {
    nodes_[node].order.erase(waiting);
    if (more) waiting->missing += bytes_on(handle, node);
    else waiting->missing -= bytes_on(handle, node);
    nodes_[node].order.insert(waiting);
  }
}

void Room::discharge_everywhere(Handle& handle) {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) discharge(handle, node);
}

// --- tasks

std::size_t Room::missing(Task& task, NodeIndex node) {
  std::size_t bytes = scratch_bytes(task, node);
  for_each_datum(task, [&](const Handle& handle, unsigned) {
    if (counts(handle, node) && !handle.residence->stays[node].charged) bytes += bytes_on(handle, node);
  });
  return bytes;
}

/// Pins all data of the task, which becomes a holder; charges the data that is not charged yet.
void Room::hold(Task& task, NodeIndex node, RoomState::Memory memory) {
  for_each_datum(task, [&](Handle& handle, unsigned) {
    charge(handle, node);
    pin(handle, node);
    handle.residence->stays[node].is_hinted = false;
  });
  Node& here = nodes_[node];
  here.used += scratch_bytes(task, node);
  ++here.holders;
  ++here.granted;
  task.room.memory = memory;
  here.kernels += counts_as_kernel(task);
}

/// The task, whose state is still that of a holder, is none any more.
void Room::end_hold(Task& task, NodeIndex node) {
  Node& here = nodes_[node];
  here.used -= scratch_bytes(task, node);
  --here.holders;
  here.kernels -= counts_as_kernel(task);
}

bool Room::may_hold(const Task& task, NodeIndex node) const noexcept {
  return task.kind != TaskKind::kernel || nodes_[node].kernels < nodes_[node].most_kernels;
}

bool Room::reserve(Task& task, NodeIndex node, const std::function<void()>& on_wait) {
  if (task.access_count == 0) return true;  // there is nothing to pin
  const std::lock_guard guard(mutex_);
  if (missing(task, node) == 0 && may_hold(task, node)) {  // it takes nothing from the next one
    hold(task, node);
    return true;
  }
  if (task.kind == TaskKind::application) put_back_next(node);
  wait(task, node);
  const bool granted = serve(node, &task);
  if (!granted && on_wait) on_wait();  // before another thread can end its wait, since the orders are taken after this
  TANDEM_AUDIT_ASSERT(is_sound(node));
  return granted;
}

bool Room::reserve_at_once(Task& task, NodeIndex node, AtOnce terms) {
  const std::lock_guard guard(mutex_);
  Node& here = nodes_[node];
  const std::size_t bytes = missing(task, node);
  const bool may_take = !stopped_ && here.next == nullptr && here.waiting.empty();
  // A hint and an event have one datum; a task that runs behind another one may have none.
  Handle* const datum = terms == AtOnce::behind ? nullptr : task.accesses()[0].handle();
  switch (terms) {
    case AtOnce::hint:
      if (bytes != 0 && !(may_take && make_spare_room(node, bytes, datum->residence->uses.next()))) return false;
      break;
    case AtOnce::valid:
      if (bytes != 0 || !datum->valid_on(node)) return false;
      break;
    case AtOnce::behind:
      if (!may_take || here.used + bytes > here.budget) return false;
  }
  hold(task, node, terms == AtOnce::behind ? RoomState::Memory::behind : RoomState::Memory::pinned);
  if (terms == AtOnce::hint) datum->residence->stays[node].is_hinted = bytes != 0;
  TANDEM_AUDIT_ASSERT(is_sound(node));
  return true;
}

bool Room::hold_beside(Task& event, NodeIndex node) {
  const std::lock_guard guard(mutex_);
  Handle& handle = *event.accesses()[0].handle();
  if (handle.residence->leaves != Residence::kNowhere) return false;
  {
    // Other replicas become invalid, so that no move of the replaced value begins.
    const std::lock_guard lock(handle.lock);
    handle.valid.fetch_and(1U << node, std::memory_order_acq_rel);
  }
  Node& here = nodes_[node];
  const bool within = event.extra->memory == EventMemory::none;  // such an event ends at once
  if (counts(handle, node) && !within) {
    discharge(handle, node);
    Residence::Stay& stay = handle.residence->stays[node];
    stay.beside = true;
    stay.settles = event.extra->memory == EventMemory::counted;
    here.beside += bytes_on(handle, node);
    here.most_beside = std::max(here.most_beside, here.beside);
  }
  pin(handle, node);
  here.holders += within ? 1 : 0;
  event.room.memory = within ? RoomState::Memory::pinned : RoomState::Memory::beside;
  serve(node);
  TANDEM_AUDIT_ASSERT(is_sound(node));
  return true;
}

void Room::wait(Task& task, NodeIndex node) {
  Node& here = nodes_[node];
  const std::uint64_t number = here.came++;
  WaitingTask& waiting = here.waiting[number] = {&task, missing(task, node), number, here.granted};
  here.order.insert(&waiting);
  for_each_datum(task, [&](Handle& handle, unsigned) {
    if (counts(handle, node)) handle.residence->stays[node].wanted_by.push_back(&waiting);
  });
}

/// The next task may need memory that the submitting thread releases only after the access for which it waits now.
void Room::put_back_next(NodeIndex node) {
  if (nodes_[node].next == nullptr) return;
  Task& task = *nodes_[node].next;
  release_next(node);
  wait(task, node);
}

/// Chooses the next task. True: there is one, and it may pin memory.
bool Room::choose_next(NodeIndex node) {
  Node& here = nodes_[node];
  if (here.next != nullptr) return true;
  if (here.waiting.empty()) return false;
  WaitingTask* chosen = *here.order.begin();
  const bool is_access = chosen->task->kind == TaskKind::application;
  WaitingTask& first = here.waiting.begin()->second;
  if (!is_access && here.granted - first.granted > kPatience) chosen = &first;
  if (!may_hold(*chosen->task, node)) return false;
  here.next = chosen->task;
  here.order.erase(chosen);
  for_each_datum(*here.next,
                 [&](Handle& handle, unsigned) { std::erase(handle.residence->stays[node].wanted_by, chosen); });
  here.waiting.erase(chosen->number);
  return true;
}

/// Grants memory to the next task. While it waits, what it has already stays pinned.
bool Room::grant_next(NodeIndex node) {
  Node& here = nodes_[node];
  Task& task = *here.next;
  here.next_pins.resize(task.access_count, 0);
  for_each_datum(task, [&](Handle& handle, unsigned access) {
    if (!handle.residence->stays[node].charged || std::exchange(here.next_pins[access], 1) != 0) return;
    pin(handle, node);
  });
  if (!make_room(node, missing(task, node))) return false;
  hold(task, node);
  release_next(node);
  return true;
}

/// Ends the turn of the next task.
void Room::release_next(NodeIndex node) {
  Node& here = nodes_[node];
  for_each_datum(*here.next, [&](Handle& handle, unsigned access) {
    if (here.next_pins[access] != 0) unpin(handle, node);
  });
  here.next_pins.clear();
  here.next = nullptr;
}

/// Goes on after a change. True: `asking` has got memory; others are among the orders.
bool Room::serve(NodeIndex node, const Task* asking) {
  bool granted = false;
  if (!is_limited(node)) return false;
  Node& here = nodes_[node];
  here.is_due = false;
  while (choose_next(node)) {
    Task& task = *here.next;
    if (grant_next(node)) {
      if (&task == asking) granted = true;
      else orders_.granted.push_back({&task, node, {}});
      continue;
    }
    if (here.holders != 0 || here.leaving != 0) break;
    orders_.granted.push_back({&task, node, why_refused(task, node)});
    release_next(node);
  }
  admit_arrived(node);
  note_blocked(node);
  return granted;
}

// --- what the application keeps

bool Room::is_blocked(const Node& node) noexcept {
  return node.next != nullptr && !node.is_due && node.leaving == 0 && node.held != 0 && node.holders == node.held;
}

void Room::note_blocked(NodeIndex node) {
  if (!is_blocked(nodes_[node])) return;
  blocks_.fetch_add(1, std::memory_order_release);
  orders_.is_blocked = true;
}

void Room::note_held(const Task& access, NodeIndex node, bool is_held) {
  const std::lock_guard guard(mutex_);
  if (!is_limited(node) || !access.room.is_pinned()) return;
  if (is_held) ++nodes_[node].held;
  else --nodes_[node].held;
  serve(node);  // the last holder that would have served the node may be one that is held now
}

std::vector<const Task*> Room::blocked() {
  const std::lock_guard guard(mutex_);
  std::vector<const Task*> tasks;
  for (const Node& node : nodes_) {
    if (!is_blocked(node)) continue;
    tasks.push_back(node.next);
    for (const auto& [number, waiting] : node.waiting) tasks.push_back(waiting.task);
  }
  return tasks;
}

std::string Room::why_waits(Task& task) {
  const std::lock_guard guard(mutex_);
  for (NodeIndex node = 0; node < nodes_.size(); ++node) {
    const Node& here = nodes_[node];
    const auto is_it = [&task](const auto& entry) { return entry.second.task == &task; };
    if (here.next != &task && std::ranges::none_of(here.waiting, is_it)) continue;
    const char* const by = is_blocked(here) ? " by what accesses of the application hold, which only the submitting "
                                              "thread can release"
                                            : "";
    return fmt::format(
        "it waits for memory: its data takes {} bytes in {}, {} of them more than now, whose budget is {} "
        "bytes, of which {} bytes are used{}",
        bytes_of(task, node), memory_.described(node), missing(task, node), here.budget, here.used, by);
  }
  return {};
}

/// Lets data that has arrived beside the budget come into it, after the tasks that wait for memory.
void Room::admit_arrived(NodeIndex node) {
  Node& here = nodes_[node];
  while (!here.arrived.empty() && here.next == nullptr) {
    Handle& handle = *here.arrived.front();
    if (!make_room(node, bytes_on(handle, node))) {
      if (here.holders != 0 || here.leaving != 0) return;
      here.arrived.pop_front();  // nothing else can leave, so the data stays where it is
      settle(handle, node);
      continue;
    }
    charge(handle, node);
    list(handle, node);
    leave_if_evicted(handle);
  }
}

void Room::serve_all() {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) serve(node);
}

std::string Room::why_refused(Task& task, NodeIndex node) {
  std::size_t fixed = nodes_[node].used;
  for_each_datum(task, [&](const Handle& handle, unsigned) {
    if (handle.residence->stays[node].charged) fixed -= bytes_on(handle, node);
  });
  const Node& here = nodes_[node];
  const std::string shrunk =
      budget(node) < here.first_budget
          ? fmt::format(" (and was {} bytes, but there was no memory for that)", here.first_budget)
          : "";
  const std::string why = here.why_stuck.empty() ? "" : fmt::format(" ({})", here.why_stuck);
  return fmt::format(
      "no memory: its data takes {} bytes in {}, whose budget is {} bytes{}, of which {} bytes cannot be moved away{}; "
      "split the data and use fewer pieces at a time, or allow more memory",
      bytes_of(task, node), memory_.described(node), budget(node), shrunk, fixed, why);
}

bool Room::end(Task& task, NodeIndex node) {
  const std::lock_guard guard(mutex_);
  const RoomState room = task.room;
  for_each_datum(task, [&](Handle& handle, unsigned) {
    handle.residence->last_use = ++ended_;
    if (room.is_noted) {
      const std::uint64_t next = handle.residence->uses.next();
      handle.residence->uses.end(flow_position(task));
      count_passing(handle);
      if (handle.residence->uses.next() != next) use_changed(handle);
    }
    if (handle.residence->unwanted && handle.residence->uses.next() == UpcomingUses::kNone)
      handle.residence->last_use = 0;
    if (room.is_pinned()) unpin(handle, node);
    if (room.memory == RoomState::Memory::beside && handle.residence->stays[node].beside)
      nodes_[node].arrived.push_back(&handle);
    leave_if_evicted(handle);
  });
  if (room.is_pinned_within_budget()) end_hold(task, node);
  if (room.is_pinned()) nodes_[node].is_due = true;
  task.room = RoomState();
  return room.is_pinned();
}

void Room::go_on(NodeIndex node) {
  const std::lock_guard guard(mutex_);
  serve(node);
  TANDEM_AUDIT_ASSERT(is_sound(node));
}

/// Unpins the memory of the task. Data without memory and without another holder is not charged any more.
void Room::unhold(Task& task, NodeIndex node) {
  for_each_datum(task, [&](Handle& handle, unsigned) {
    unpin(handle, node);
    if (handle.residence->stays[node].pins == 0 && handle.residence->leaves != node &&
        !handle.replica(node).has_memory())
      discharge(handle, node);
  });
  end_hold(task, node);
  const bool asks = task.kind == TaskKind::event && task.extra->asks;
  task.room.memory = asks ? RoomState::Memory::asked : RoomState::Memory::none;
}

void Room::give_back(Task& task, NodeIndex node) {
  const std::lock_guard guard(mutex_);
  unhold(task, node);
  serve(node);
  TANDEM_AUDIT_ASSERT(is_sound(node));
}

/// Shrinks the budget: the bytes charged now, and those given up since the node was asked for memory, are together more
/// than the node has.
void Room::shrink(NodeIndex node, std::uint64_t given_up_before) {
  Node& here = nodes_[node];
  const std::size_t charged = here.used + (here.given_up.load(std::memory_order_relaxed) - given_up_before);
  here.budget.store(std::min(budget(node), std::max<std::size_t>(charged, 1) - 1), std::memory_order_relaxed);
}

void Room::wait_again(Task& task, NodeIndex node, std::uint64_t given_up_before, const std::function<void()>& on_wait) {
  const std::lock_guard guard(mutex_);
  shrink(node, given_up_before);
  put_back_next(node);  // its pinned data without memory would stay charged
  unhold(task, node);
  if (on_wait) on_wait();
  // With nothing missing, the task would have memory at once, and again find none: another holder is about to allocate
  // the same data. The end of that holder serves the node.
  const bool misses = missing(task, node) != 0;
  wait(task, node);
  const Node& here = nodes_[node];
  if (misses || here.holders == here.held) serve(node);
  TANDEM_AUDIT_ASSERT(is_sound(node));
}

void Room::shrink(Task& hint, NodeIndex node, std::uint64_t given_up_before) {
  const std::lock_guard guard(mutex_);
  shrink(node, given_up_before);
  unhold(hint, node);
  serve(node);
  TANDEM_AUDIT_ASSERT(is_sound(node));
}

std::vector<Handle*> Room::keep_written(const Task& event, NodeIndex node) {
  std::vector<Handle*> kept;
  for (unsigned i = 0; i < event.access_count; ++i)
    if (const AccessSlot& slot = event.accesses()[i]; makes_value(slot.mode()) && !slot.alias())
      kept.push_back(slot.handle());
  if (kept.empty()) return kept;
  const std::lock_guard guard(mutex_);
  for (Handle* const handle : kept) pin(*handle, node);
  ++nodes_[node].holders;
  return kept;
}

void Room::let_go(const std::vector<Handle*>& kept, NodeIndex node) {
  const std::lock_guard guard(mutex_);
  for (Handle* const handle : kept) {
    unpin(*handle, node);
    leave_if_evicted(*handle);
  }
  --nodes_[node].holders;
  serve(node);
  TANDEM_AUDIT_ASSERT(is_sound(node));
}

void Room::begin_reading(Handle& handle, NodeIndex node) {
  if (!is_limited(node)) return;
  pin(handle, node);
  ++nodes_[node].holders;
}

void Room::end_reading(Handle& handle, NodeIndex node) {
  const std::lock_guard guard(mutex_);
  if (!is_limited(node)) return;
  unpin(handle, node);
  --nodes_[node].holders;
  serve(node);
}

// --- what leaves

/// Makes room. True: `bytes` more fit on `node` now.
bool Room::make_room(NodeIndex node, std::size_t bytes) {
  Node& here = nodes_[node];
  if (bytes == 0) return true;  // also if the budget has shrunk below what is there
  while (here.used + bytes > here.budget) {
    if (here.used + bytes <= here.budget + here.leaving || here.candidates.empty()) return false;
    evict(*here.candidates.begin()->handle, node);
  }
  return true;
}

/// As `make_room`, without moves: only replicas leave that are used after `next_use` and need no move.
bool Room::make_spare_room(NodeIndex node, std::size_t bytes, std::uint64_t next_use) {
  Node& here = nodes_[node];
  std::vector<Handle*> leaving;
  std::size_t left = here.used;
  for (const Candidate& candidate : here.candidates) {
    if (left + bytes <= here.budget) break;
    if (candidate.next_use != UpcomingUses::kNone && candidate.next_use <= next_use) break;
    Handle& handle = *candidate.handle;
    if (handle.residence->stays[node].is_hinted) continue;
    const std::lock_guard guard(handle.lock);
    if (handle.valid.load(std::memory_order_acquire) == 1U << node) continue;  // the replica would have to be moved
    leaving.push_back(&handle);
    left -= bytes_on(handle, node);
  }
  if (left + bytes > here.budget) return false;
  for (Handle* const handle : leaving) evict(*handle, node);
  return here.used + bytes <= here.budget;
}

void Room::evict(Handle& handle, NodeIndex node) {
  unlist(handle, node);
  bool is_only = false;
  {
    const std::lock_guard guard(handle.lock);
    is_only = handle.valid.load(std::memory_order_acquire) == 1U << node;
  }
  // A value that failed is not moved: it would come into memory that a part shares with the whole, which has another
  // value by then.
  const bool has_failed = handle.is_part && handle.poison.seen_in_group() != nullptr;
  const bool is_needed =
      !has_failed && (!handle.residence->abandoned || handle.residence->uses.next() != UpcomingUses::kNone);
  // Another replica exists, or there is no value, or no task sees it.
  if (!is_only || !is_needed) return drop(handle, node);
  const std::optional<NodeIndex> goes_to = stopped_ ? std::nullopt : target_for(handle, node);
  if (!goes_to) {
    handle.residence->stuck = true;
    return;
  }
  Residence& residence = *handle.residence;
  residence.leaves = node;
  residence.goes_to = *goes_to;
  nodes_[node].leaving += bytes_on(handle, node);
  if (is_limited(*goes_to)) {
    charge(handle, *goes_to);
    pin(handle, *goes_to);
    ++nodes_[*goes_to].holders;
  }
  {
    const std::lock_guard guard(handle.lock);
    TANDEM_ASSERT(!handle.transfer_to(*goes_to).under_way);
    handle.transfer_to(*goes_to).under_way = true;
    handle.valid.fetch_or(Handle::kMoving, std::memory_order_acq_rel);
  }
  moving_.push_back(&handle);
  orders_.moves.push_back({&handle, node, *goes_to});
}

/// Main memory if it has room without eviction and no task waits for it; else the storage node.
std::optional<NodeIndex> Room::target_for(const Handle& handle, NodeIndex node) const {
  if (node != 0) {
    if (!is_limited(0) || (handle.home.pointer != nullptr && !handle.residence->stays[0].beside)) return 0;
    const Node& home = nodes_[0];
    if (home.next == nullptr && home.used + bytes_on(handle, 0) <= home.budget) return 0;
  }
  return storage_;
}

void Room::drop(Handle& handle, NodeIndex node) {
  discharge(handle, node);
  const std::lock_guard guard(handle.lock);
  handle.valid.fetch_and(~(1U << node), std::memory_order_acq_rel);
  memory_.free_replica(handle, node);
}

Room::EndedMove Room::end_move(Handle& handle, const std::optional<std::string>& failure) {
  const std::lock_guard guard(mutex_);
  const bool arrived = !failure;
  Residence& residence = *handle.residence;
  const NodeIndex from = std::exchange(residence.leaves, Residence::kNowhere);
  const NodeIndex to = std::exchange(residence.goes_to, Residence::kNowhere);
  std::erase(moving_, &handle);
  EndedMove ended;
  {
    const std::lock_guard lock(handle.lock);
    ended.waiting = std::exchange(handle.transfer_to(to), Transfer{}).waiting;
    if (arrived) handle.valid.fetch_or(1U << to, std::memory_order_acq_rel);
    handle.valid.fetch_and(~Handle::kMoving, std::memory_order_acq_rel);
  }
  nodes_[from].leaving -= bytes_on(handle, from);
  if (!arrived) nodes_[from].why_stuck = *failure;
  if (is_limited(to)) {
    unpin(handle, to);
    --nodes_[to].holders;
    if (!arrived && residence.stays[to].pins == 0) drop(handle, to);
  }
  ended.is_last = std::exchange(residence.freed, false);
  if (ended.is_last) {
    discharge_everywhere(handle);
  } else if (residence.stays[from].pins == 0) {
    if (arrived) drop(handle, from);
    else residence.stuck = true;
  }
  if (!ended.is_last) leave_if_evicted(handle);
  serve_all();
  TANDEM_AUDIT_ASSERT(is_sound(from) && is_sound(to));
  return ended;
}

bool Room::may_come_home(Handle& handle) {
  if (handle.residence == nullptr) return false;
  const std::lock_guard guard(mutex_);
  const std::uint32_t valid = handle.valid.load(std::memory_order_acquire) & ~Handle::kMoving;
  return handle.residence->leaves != Residence::kNowhere || (valid != 0 && (valid & 1U) == 0);
}

bool Room::forget(Handle& handle) {
  const std::lock_guard guard(mutex_);
  if (std::exchange(handle.residence->passing, false))
    passing_bytes_.fetch_sub(handle.shape.bytes(), std::memory_order_release);
  if (handle.residence->leaves != Residence::kNowhere) {
    handle.residence->freed = true;
    handle.references.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  discharge_everywhere(handle);
  handle.residence->stuck = false;
  serve_all();
  return true;
}

std::vector<Handle*> Room::stop() {
  const std::lock_guard guard(mutex_);
  stopped_ = true;
  std::vector<Handle*> freed;
  for (Handle* const handle : std::exchange(moving_, {})) {
    Residence& residence = *handle->residence;
    residence.leaves = residence.goes_to = Residence::kNowhere;
    residence.stuck = true;
    if (std::exchange(residence.freed, false)) freed.push_back(handle);
  }
  orders_ = {};
  return freed;
}

Room::Orders Room::take_orders() {
  const std::lock_guard guard(mutex_);
  return std::exchange(orders_, {});
}

std::size_t Room::used(NodeIndex node) {
  const std::lock_guard guard(mutex_);
  return nodes_[node].used;
}

std::size_t Room::most_beside(NodeIndex node) {
  const std::lock_guard guard(mutex_);
  return nodes_[node].most_beside;
}

bool Room::check_invariants(NodeIndex node) {
  const std::lock_guard guard(mutex_);
  return is_sound(node);
}

bool Room::is_sound(NodeIndex node) {
  if (!is_limited(node)) return true;
  Node& here = nodes_[node];
  std::size_t listed = 0, arrived = 0;
  for (const Handle* const handle : here.arrived) {
    if (!handle->residence->stays[node].beside) return false;
    arrived += bytes_on(*handle, node);
  }
  for (const Candidate& candidate : here.candidates) {
    const Residence::Stay& stay = candidate.handle->residence->stays[node];
    if (!stay.charged || stay.beside || !stay.may_leave || stay.pins != 0 ||
        candidate.handle->residence->leaves == node)
      return false;
    listed += bytes_on(*candidate.handle, node);
  }
  for (auto& [number, waiting] : here.waiting)
    if (waiting.missing != missing(*waiting.task, node) || !here.order.contains(&waiting)) return false;
  const std::size_t next_pins = here.next != nullptr ? here.next->access_count : 0U;
  return here.used <= here.first_budget && budget(node) <= here.first_budget && arrived <= here.beside &&
         listed + here.leaving <= here.used && here.order.size() == here.waiting.size() &&
         here.kernels + here.held <= here.holders && here.next_pins.size() == next_pins;
}

}  // namespace tandem::runtime
