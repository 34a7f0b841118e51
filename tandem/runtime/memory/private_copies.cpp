// tandem/runtime/memory/private_copies.cpp: private copies of `reduce` accesses that move between memories.
#include <memory>
#include <mutex>
#include <utility>

#include "tandem/base/narrow.hpp"
#include "tandem/runtime/memory/memory.hpp"

namespace tandem::runtime {

// --- a task that adds

void Memory::bind_private_copies(Task& task, NodeIndex node) {
  if (task.room.is_pinned()) return;  // the task has its copies, or works in main memory
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    if (slot.mode() == AccessMode::reduce)
      slot.set(take_private_copy(*slot.handle(), node).data, AccessMode::read_write);
  }
}

PrivateCopy& Memory::take_private_copy(Handle& handle, NodeIndex node) {
  for (;;) {
    PrivateCopy* copy = nullptr;
    {
      const std::lock_guard guard(handle.lock);
      copy = free_private_copy(handle, node);
      if (copy == nullptr) copy = &add_private_copy(handle);
      copy->in_use = true;
    }
    if (copy->filled) return *copy;
    try {
      if (start_private_copy(*copy)) return *copy;
    } catch (...) {
      let_go(*copy);
      throw;
    }
    let_go(*copy);
  }
}

void Memory::let_go(PrivateCopy& copy) noexcept {
  const std::lock_guard guard(copy.of.lock);
  copy.in_use = false;
}

/// A free copy on `node`, or one whose transfer there costs no more than a new one; null: there is none. Under
/// `handle.lock`.
PrivateCopy* Memory::free_private_copy(Handle& handle, NodeIndex node) noexcept {
  if (handle.private_copies == nullptr) return nullptr;
  PrivateCopy* best = nullptr;
  int best_worth = -1;
  for (PrivateCopy& copy : *handle.private_copies) {
    const bool is_moving = (copy.data->valid.load(std::memory_order_acquire) & Handle::kMoving) != 0;
    if (copy.in_use || (is_moving && !copy.filled)) continue;
    int worth = -1;
    if (!copy.filled) worth = copy.data->replica(node).has_memory() ? 1 : 0;
    else if (copy.data->valid_on(node)) worth = 3;
    else if (copy.data->valid_on(0)) worth = 2;
    if (worth <= best_worth) continue;
    best = &copy;
    best_worth = worth;
  }
  return best;
}

/// Adds a private copy. Under `handle.lock`.
PrivateCopy& Memory::add_private_copy(Handle& handle) {
  if (handle.private_copies == nullptr) handle.private_copies = std::make_unique<std::deque<PrivateCopy>>();
  auto data = std::make_unique<Handle>();
  data->references.store(1, std::memory_order_relaxed);
  data->number = handle.number;
  data->name = handle.name;
  data->registered_at = handle.registered_at;
  data->shape = handle.shape;
  data->type = handle.type;
  data->object = handle.object;
  data->typical_bytes = handle.typical_bytes;
  data->at_home = reach_home_;
  if (handle.layout != nullptr) data->layout = std::make_unique<const Layout>(handle.layout->packed());
  if (node_count() > 1) data->elsewhere = std::make_unique<Handle::Place[]>(node_count() - 1);
  if (room_.any()) data->residence = std::make_unique<Residence>(node_count());
  PrivateCopy& copy = handle.private_copies->emplace_back(PrivateCopy{.of = handle, .data = data.get()});
  data->copy_number = base::narrow<std::uint32_t>(handle.private_copies->size());
  data.release()->private_copy = &copy;
  return copy;
}

/// Makes `copy`, which has no contributions, neutral in main memory. False: its old value is being moved. By the task
/// that has it.
bool Memory::start_private_copy(PrivateCopy& copy) {
  Handle& data = *copy.data;
  if (!forget_value(data)) return false;
  ensure_allocated(data, 0);
  copy.of.reduction->init(data.home.pointer, data.home.ld, data.shape);
  data.valid.store(1, std::memory_order_release);
  return true;
}

void Memory::return_private_copies(Task& task, CopyFate fate) noexcept {
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    PrivateCopy* const copy = slot.handle()->private_copy;
    if (copy == nullptr) continue;
    slot.set(&copy->of, AccessMode::reduce);
    if (fate == CopyFate::lost) forget_value(*copy->data);
    const std::lock_guard guard(copy->of.lock);
    if (fate != CopyFate::unchanged) copy->filled = fate == CopyFate::added;
    copy->in_use = false;
  }
}

// --- the task that combines

bool Memory::has_private_copies_home(const Handle& handle) noexcept {
  if (handle.private_copies == nullptr) return true;
  for (const PrivateCopy& copy : *handle.private_copies)
    if (copy.filled && !copy.data->valid_on(0)) return false;
  return true;
}

/// Starts the transfers of filled copies to main memory. While there are any, the combining task is the only one that
/// sees the value. True: the task waits for some of them, which may have ended by now.
bool Memory::bring_private_copies(Task& task, Handle& handle) {
  bool waits = false;
  for (PrivateCopy& copy : *handle.private_copies)
    if (copy.filled) waits |= fetch(task, *copy.data, copy.link, 0);
  return waits;
}

// --- their ends

/// Makes all replicas of `handle`, which no task uses, invalid. False: its only one is being moved, and will be valid
/// where it arrives.
bool Memory::forget_value(Handle& handle) noexcept {
  std::unique_lock<std::mutex> room(room_.mutex(), std::defer_lock);
  if (room_.any()) room.lock();
  const std::lock_guard guard(handle.lock);
  if ((handle.valid.load(std::memory_order_acquire) & Handle::kMoving) != 0) return false;
  handle.valid.store(0, std::memory_order_release);
  return true;
}

void Memory::free_private_copies(Handle& handle) noexcept {
  for (PrivateCopy& copy : *handle.private_copies) {
    free_replicas(*copy.data);
    copy.data->drop_reference();
  }
  handle.private_copies.reset();
}

}  // namespace tandem::runtime
