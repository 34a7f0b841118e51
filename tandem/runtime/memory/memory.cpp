// tandem/runtime/memory/memory.cpp: coherence of replicas, and transfers.
#include "tandem/runtime/memory/memory.hpp"

#include <fmt/format.h>

#include <bit>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::runtime {

template <trace::Type T, class... Fields>
void Memory::emit(Fields... fields) const {
  if (trace::Session* const session = trace_.load(std::memory_order_acquire)) session->emit_shared<T>(fields...);
}

Memory::Memory(StagingListener& listener) : listener_(listener) { nodes_.push_back({make_main_memory(), nullptr}); }

NodeIndex Memory::add_node(std::unique_ptr<MemoryNode> node, std::unique_ptr<Copier> copier) {
  TANDEM_ASSERT(nodes_.size() < kMaxNodes);
  nodes_.push_back({std::move(node), std::move(copier)});
  return static_cast<NodeIndex>(nodes_.size() - 1);
}

Memory::Staging Memory::acquire(Task& task, NodeIndex node) {
  // One guard beside the transfers, so that none of them ends the staging before all have been started.
  task.waits.store(1, std::memory_order_relaxed);
  // Memory first: when there is none left, no transfer knows the task.
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    if (slot.mode() != AccessMode::reduce && slot.mode() != AccessMode::scratch) ensure_allocated(*slot.handle(), node);
  }
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    if (sees_value(slot.mode())) fetch(task, slot, node);
  }
  return task.waits.fetch_sub(1, std::memory_order_acq_rel) == 1 ? Staging::ready : Staging::pending;
}

void Memory::ensure_allocated(Handle& handle, NodeIndex node) {
  std::lock_guard guard(handle.lock);
  Replica& replica = handle.replica(node);
  if (replica.pointer != nullptr) return;
  replica.pointer = allocate(handle, node);
  replica.ld = handle.shape.rows;
  replica.owned = true;
}

void* Memory::allocate(const Handle& handle, NodeIndex node) {
  if (handle.object != nullptr && node != 0)
    throw std::logic_error(fmt::format("{} is an object, and objects stay in main memory: a task that uses it cannot run in {}; "
                                       "give its codelet an implementation for the CPU alone, or a can_run",
                                       handle.described(), nodes_[node].node->name()));
  void* const memory = nodes_[node].node->allocate(handle.shape.bytes());
  if (memory == nullptr) refuse_memory(handle, node);
  nodes_[node].bytes->fetch_add(handle.shape.bytes(), std::memory_order_relaxed);
  emit<trace::Type::data_allocated>(handle.number, node, handle.shape.bytes());
  if (handle.object == nullptr) return memory;
  try {
    handle.object->construct(memory);
  } catch (...) {
    nodes_[node].node->release(memory, handle.shape.bytes());
    nodes_[node].bytes->fetch_sub(handle.shape.bytes(), std::memory_order_relaxed);
    throw;
  }
  return memory;
}

void Memory::release(const Handle& handle, NodeIndex node, void* memory) noexcept {
  if (handle.object != nullptr) handle.object->destroy(memory);
  nodes_[node].node->release(memory, handle.shape.bytes());
  nodes_[node].bytes->fetch_sub(handle.shape.bytes(), std::memory_order_relaxed);
  emit<trace::Type::data_freed>(handle.number, node, handle.shape.bytes());
}

void Memory::refuse_memory(const Handle& handle, NodeIndex node) const {
  throw OutOfMemory(fmt::format("no memory for {}: it takes {} bytes in {}, where Tandem has allocated {} bytes for other data; drop data "
                                "that is no longer needed, or split the data and use fewer pieces at a time",
                                handle.described(), handle.shape.bytes(), nodes_[node].node->name(),
                                nodes_[node].bytes->load(std::memory_order_relaxed)));
}

bool Memory::fetch(Task& task, AccessSlot& slot, NodeIndex node) {
  Handle& handle = *slot.handle();
  CopyRequest request;
  {
    std::lock_guard guard(handle.lock);
    if (handle.valid_on(node)) return false;
    Replica& target = handle.replica(node);
    task.waits.fetch_add(1, std::memory_order_relaxed);
    slot.link.lead_to(&task);
    Transfer& transfer = handle.transfer_to(node);
    slot.link.next = transfer.waiting;
    transfer.waiting = &slot.link;
    if (transfer.under_way) return true;
    transfer.under_way = true;
    const auto source = static_cast<NodeIndex>(std::countr_zero(handle.valid.load(std::memory_order_relaxed)));
    TANDEM_ASSERT(source < node_count());  // reading what nobody wrote is refused at submission
    const Replica& from = handle.replica(source);
    request = {source, node, from.pointer, target.pointer, from.ld, target.ld, handle.shape};
  }
  emit<trace::Type::transfer_started>(handle.number, request.from_node, node, handle.shape.bytes());
  const NodeIndex source = request.from_node;
  Copier& copier = *(node != 0 ? nodes_[node].copier : nodes_[request.from_node].copier);
  const auto arrived = [this, &handle, node, source] {
    const CallCount::Guard guard(calls_);
    emit<trace::Type::transfer_ended>(handle.number, source, node);
    fetched(handle, node);
  };
  CopyState state = CopyState::posted;
  try {
    state = copier.start(request, arrived);
  } catch (...) {
    emit<trace::Type::transfer_ended>(handle.number, source, node);
    fetch_failed(handle, node, std::current_exception());
    return true;
  }
  if (state == CopyState::done) {
    emit<trace::Type::transfer_ended>(handle.number, source, node);
    fetched(handle, node);
  }
  return true;
}

void Memory::fetch_failed(Handle& handle, NodeIndex node, const std::exception_ptr& exception) {
  Link* waiting;
  {
    std::lock_guard guard(handle.lock);
    waiting = std::exchange(handle.transfer_to(node), Transfer{}).waiting;
  }
  for (const Link* link = waiting; link != nullptr; link = link->next) listener_.staging_failed(*link->task(), exception);
  count_down(waiting);
}

void Memory::fetched(Handle& handle, NodeIndex node) {
  Link* waiting;
  {
    std::lock_guard guard(handle.lock);
    waiting = std::exchange(handle.transfer_to(node), Transfer{}).waiting;
    handle.valid.fetch_or(1U << node, std::memory_order_release);
  }
  count_down(waiting);
}

void Memory::count_down(Link* waiting) {
  while (waiting != nullptr) {
    Link* next = waiting->next;
    Task& task = *waiting->task();
    if (task.waits.fetch_sub(1, std::memory_order_acq_rel) == 1) listener_.staged(task);
    waiting = next;
  }
}

void* Memory::take_partial(Handle& handle) {
  void* memory = nullptr;
  {
    std::lock_guard guard(handle.lock);
    Handle::Partial* taken = nullptr;
    for (Handle::Partial& partial : handle.partials)
      if (!partial.in_use && (taken == nullptr || partial.filled)) taken = &partial;
    if (taken == nullptr) {
      taken = &handle.partials.emplace_back();
      try {
        taken->pointer = allocate(handle, 0);
      } catch (...) {
        handle.partials.pop_back();
        throw;
      }
    }
    taken->in_use = true;
    memory = taken->pointer;
    if (std::exchange(taken->filled, true)) return memory;
  }
  try {
    handle.reduction->init(memory, handle.shape.rows, handle.shape);
  } catch (...) {
    return_partial(handle, memory, false);
    throw;
  }
  return memory;
}

void Memory::return_partial(Handle& handle, void* partial, bool filled) noexcept {
  std::lock_guard guard(handle.lock);
  for (Handle::Partial& known : handle.partials) {
    if (known.pointer != partial) continue;
    known.in_use = false;
    known.filled = filled;
  }
}

void Memory::combine_partials(Handle& handle, void* into, std::size_t into_ld) {
  try {
    for (Handle::Partial& partial : handle.partials) {
      TANDEM_ASSERT(!partial.in_use);
      if (!std::exchange(partial.filled, false)) continue;
      handle.reduction->combine(into, into_ld, partial.pointer, handle.shape.rows, handle.shape);
    }
  } catch (...) {
    discard_partials(handle);
    throw;
  }
}

void Memory::discard_partials(Handle& handle) noexcept {
  for (Handle::Partial& partial : handle.partials) partial.filled = false;
}

void Memory::free_replicas(Handle& handle) noexcept {
  for (NodeIndex node = 0; node < node_count(); ++node) {
    Replica& replica = handle.replica(node);
    if (replica.owned) release(handle, node, replica.pointer);
    replica = Replica{};
  }
  for (Handle::Partial& partial : handle.partials)
    if (partial.pointer != nullptr) release(handle, 0, partial.pointer);
  handle.partials.clear();
}

}  // namespace tandem::runtime
