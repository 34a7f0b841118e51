// tandem/runtime/memory/room.cpp: who gets memory on a node with a budget, and what leaves for it.
#include "tandem/runtime/memory/room.hpp"

#include <fmt/format.h>

#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/memory/memory.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::runtime {

namespace {

/// Calls `visit(handle, index)` for each datum of `task` that is to be in its node's memory, once.
template <class Visit>
void for_each_datum(Task& task, const Visit& visit) {
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (slot.alias() || slot.mode() == AccessMode::scratch || slot.mode() == AccessMode::reduce) continue;
    visit(*slot.handle(), i);
  }
}

}  // namespace

void Room::limit(NodeIndex node, std::size_t bytes) {
  if (nodes_.size() <= node) nodes_.resize(node + 1);
  nodes_[node].limited = any_ = true;
  nodes_[node].budget = bytes;
}

/// The program's own memory, and objects, which cannot be copied as bytes, are where they are.
bool Room::counts(const Handle& handle, NodeIndex node) noexcept {
  return node != 0 || (!handle.user_memory && handle.object == nullptr);
}

std::size_t Room::bytes_of(Task& task, NodeIndex node) noexcept {
  std::size_t bytes = 0;
  for_each_datum(task, [&](const Handle& handle, unsigned) {
    if (counts(handle, node)) bytes += handle.shape.bytes();
  });
  return bytes;
}

// --- uses and pins

void Room::note_uses(Task& task) {
  if (task.recorded) return;
  const std::lock_guard guard(mutex_);
  for_each_datum(task, [&](Handle& handle, unsigned) {
    const std::uint64_t next = handle.residence->uses.next();
    handle.residence->uses.add(task.id);
    if (handle.residence->uses.next() != next) use_changed(handle);
  });
  task.room |= kNoted;
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
  nodes_[node].used += handle.shape.bytes();
}

void Room::discharge(Handle& handle, NodeIndex node) {
  unlist(handle, node);
  if (std::exchange(handle.residence->stays[node].charged, false)) nodes_[node].used -= handle.shape.bytes();
}

void Room::discharge_everywhere(Handle& handle) {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) discharge(handle, node);
}

// --- tasks

std::size_t Room::missing(Task& task, NodeIndex node) {
  std::size_t bytes = 0;
  for_each_datum(task, [&](const Handle& handle, unsigned) {
    if (counts(handle, node) && !handle.residence->stays[node].charged) bytes += handle.shape.bytes();
  });
  return bytes;
}

/// The task has memory: what the head of the queue has pinned already is not pinned again.
void Room::hold(Task& task, NodeIndex node) {
  for_each_datum(task, [&](Handle& handle, unsigned) {
    charge(handle, node);
    pin(handle, node);
  });
  ++nodes_[node].holders;
  task.room |= kHolds;
}

bool Room::reserve(Task& task, NodeIndex node) {
  const std::lock_guard guard(mutex_);
  Node& here = nodes_[node];
  if (missing(task, node) == 0) {  // it takes nothing from the head of the queue
    hold(task, node);
    return true;
  }
  here.queue.push_back(&task);
  if (here.queue.size() > 1) return false;
  if (grant_head(node)) return true;
  serve(node);  // perhaps nothing will ever leave
  return false;
}

/// The head of the queue gets memory, and leaves the queue. While it waits, what it has already stays.
bool Room::grant_head(NodeIndex node) {
  Node& here = nodes_[node];
  Task& task = *here.queue.front();
  here.head_pins.resize(task.access_count, 0);
  for_each_datum(task, [&](Handle& handle, unsigned access) {
    if (!handle.residence->stays[node].charged || std::exchange(here.head_pins[access], 1) != 0) return;
    pin(handle, node);
  });
  if (!make_room(node, missing(task, node))) return false;
  hold(task, node);
  release_head(task, node);
  return true;
}

/// The head leaves the queue.
void Room::release_head(Task& task, NodeIndex node) {
  Node& here = nodes_[node];
  for_each_datum(task, [&](Handle& handle, unsigned access) {
    if (here.head_pins[access] != 0) unpin(handle, node);
  });
  here.head_pins.clear();
  here.queue.pop_front();
}

/// Goes on with the queue after something has changed.
void Room::serve(NodeIndex node) {
  if (!is_limited(node)) return;
  Node& here = nodes_[node];
  while (!here.queue.empty()) {
    Task& head = *here.queue.front();
    if (grant_head(node)) {
      orders_.granted.push_back({&head, node, {}});
      continue;
    }
    if (here.holders != 0 || here.leaving != 0) return;
    orders_.granted.push_back({&head, node, why_refused(head, node)});
    release_head(head, node);
  }
}

void Room::serve_all() {
  for (NodeIndex node = 0; node < nodes_.size(); ++node) serve(node);
}

std::string Room::why_refused(Task& task, NodeIndex node) {
  std::size_t fixed = nodes_[node].used;
  for_each_datum(task, [&](const Handle& handle, unsigned) {
    if (handle.residence->stays[node].charged) fixed -= handle.shape.bytes();
  });
  return fmt::format("no memory: its data takes {} bytes in {}, whose budget is {} bytes, of which {} bytes cannot be moved away; split the "
                     "data and use fewer pieces at a time, or allow more memory",
                     bytes_of(task, node), memory_.node(node).name(), nodes_[node].budget, fixed);
}

void Room::end(Task& task, NodeIndex node) {
  const std::lock_guard guard(mutex_);
  const std::uint8_t room = std::exchange(task.room, 0);
  for_each_datum(task, [&](Handle& handle, unsigned) {
    handle.residence->last_use = ++ended_;
    if ((room & kNoted) != 0) {
      const std::uint64_t next = handle.residence->uses.next();
      handle.residence->uses.end(task.id);
      if (handle.residence->uses.next() != next) use_changed(handle);
    }
    if ((room & kHolds) != 0) unpin(handle, node);
  });
  if ((room & kHolds) == 0) return;
  --nodes_[node].holders;
  serve(node);
}

void Room::give_back(Task& task, NodeIndex node) {
  const std::lock_guard guard(mutex_);
  task.room &= static_cast<std::uint8_t>(~kHolds);
  for_each_datum(task, [&](Handle& handle, unsigned) { unpin(handle, node); });
  --nodes_[node].holders;
  serve(node);
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

/// True: `bytes` more fit on `node` now.
bool Room::make_room(NodeIndex node, std::size_t bytes) {
  Node& here = nodes_[node];
  while (here.used + bytes > here.budget) {
    if (here.used + bytes - here.budget <= here.leaving || here.candidates.empty()) return false;
    evict(*here.candidates.begin()->handle, node);
  }
  return true;
}

void Room::evict(Handle& handle, NodeIndex node) {
  unlist(handle, node);
  bool is_only = false;
  {
    const std::lock_guard guard(handle.lock);
    is_only = handle.valid.load(std::memory_order_acquire) == 1U << node;
  }
  if (!is_only) return drop(handle, node);  // others have it, or it has no value
  const std::optional<NodeIndex> goes_to = stopped_ ? std::nullopt : target_for(handle, node);
  if (!goes_to) {
    handle.residence->stuck = true;
    return;
  }
  Residence& residence = *handle.residence;
  residence.leaves = node;
  residence.goes_to = *goes_to;
  nodes_[node].leaving += handle.shape.bytes();
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

/// Main memory if it has room without anybody leaving it, and nobody waits for it; else the storage node.
std::optional<NodeIndex> Room::target_for(const Handle& handle, NodeIndex node) const {
  if (node != 0) {
    if (!is_limited(0) || handle.home.pointer != nullptr) return 0;
    const Node& home = nodes_[0];
    if (home.queue.empty() && home.used + handle.shape.bytes() <= home.budget) return 0;
  }
  return storage_;
}

void Room::drop(Handle& handle, NodeIndex node) {
  discharge(handle, node);
  const std::lock_guard guard(handle.lock);
  handle.valid.fetch_and(~(1U << node), std::memory_order_acq_rel);
  memory_.free_replica(handle, node);
}

Room::EndedMove Room::end_move(Handle& handle, bool arrived) {
  const std::lock_guard guard(mutex_);
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
  nodes_[from].leaving -= handle.shape.bytes();
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
  serve_all();
  return ended;
}

bool Room::is_moving(Handle& handle) {
  if (handle.residence == nullptr) return false;
  const std::lock_guard guard(mutex_);
  return handle.residence->leaves != Residence::kNowhere;
}

bool Room::forget(Handle& handle) {
  const std::lock_guard guard(mutex_);
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

bool Room::check_invariants(NodeIndex node) {
  const std::lock_guard guard(mutex_);
  if (!is_limited(node)) return true;
  const Node& here = nodes_[node];
  std::size_t listed = 0;
  for (const Candidate& candidate : here.candidates) {
    const Residence::Stay& stay = candidate.handle->residence->stays[node];
    if (!stay.charged || !stay.may_leave || stay.pins != 0 || candidate.handle->residence->leaves == node) return false;
    listed += candidate.handle->shape.bytes();
  }
  return here.used <= here.budget && listed + here.leaving <= here.used && (here.queue.empty() == here.head_pins.empty());
}

}  // namespace tandem::runtime
