// tandem/runtime/memory/memory.cpp: coherence of replicas, and transfers.
#include "tandem/runtime/memory/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "tandem/runtime/memory/device_error.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/runtime/memory/seen_by_copier.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::runtime {

template <trace::Type T, class... Fields>
void Memory::emit(Fields... fields) const {
  if (trace::Session* const session = trace_.load(std::memory_order_acquire)) session->emit_shared<T>(fields...);
}

namespace {

/// Copies in two steps through `between`, each by `copy(request, ended)`, and calls `ended` once. The memory between
/// may outlive all nodes, since an abandoned copier keeps it.
template <class Copy>
void copy_in_two(const CopyRequest& request, const std::shared_ptr<void>& between, const Copy& copy,
                 const CopyEnded& ended) {
  if (between == nullptr)
    return ended(
        std::make_exception_ptr(OutOfMemory(fmt::format("no memory to pass {} bytes on", request.shape.bytes()))));
  CopyRequest in = request, out = request;
  in.to_node = out.from_node = 0;
  in.to = between.get();
  out.from = between.get();
  in.to_ld = out.from_ld = request.shape.rows;
  copy(in, [copy, out, between, ended](const std::exception_ptr& failure) {
    if (failure != nullptr) return ended(failure);
    copy(out, [between, ended](const std::exception_ptr& last) { ended(last); });
  });
}

}  // namespace

Memory::Memory(StagingListener& listener) : listener_(listener) { nodes_.push_back({make_main_memory(), nullptr}); }

NodeIndex Memory::add_node(std::unique_ptr<MemoryNode> node, std::unique_ptr<Copier> copier) {
  TANDEM_ASSERT(nodes_.size() < kMaxNodes);
  message_nodes_[static_cast<unsigned>(node->messages())] |= 1U << nodes_.size();
  nodes_.push_back({std::move(node), std::move(copier)});
  return static_cast<NodeIndex>(nodes_.size() - 1);
}

void Memory::set_page_locked(std::shared_ptr<PageLockedPool> pool) {
  plain_main_memory_ = std::exchange(nodes_[0].node, make_page_locked_memory(pool));
  page_locked_ = std::move(pool);
}

void Memory::limit(NodeIndex node, std::size_t bytes, unsigned kernels) { room_.limit(node, bytes, kernels); }

void Memory::settle_home_on_numa_nodes(Handle& handle) const {
  if (handle.object != nullptr) {
    handle.at_home = reach_home_;
    return;
  }
  if (!handle.user_memory || handle.is_strided_at_home() || !numa_node_of_) return;
  const auto place = numa_node_of_(handle.home.pointer, handle.shape.bytes());
  if (!place) return;
  for (NodeIndex node = 1; node < node_count(); ++node)
    if (nodes_[node].numa_place == *place) handle.at_home = 1U << node;
}

std::string Memory::described(NodeIndex index) const {
  return nodes_[index].node->name() + (owner_.empty() ? "" : " " + owner_);
}

Memory::Staging Memory::acquire(Task& task, NodeIndex node) {
  // One guard beside the transfers keeps them from ending the staging before all have been started.
  task.waits.store(1, std::memory_order_relaxed);
  if (room_.is_limited(node) && !task.room.is_pinned()) {
    if (task.kind == TaskKind::event) {
      if (task.extra->asks && task.room.memory == RoomState::Memory::none) return Staging::ready;
      if (task.extra->memory != EventMemory::within) return acquire_beside(task, node);
    }
    // The trace is written first: once the task is in the queue, another thread may end its wait.
    const bool reserved = room_.reserve(task, node, [&] { note_stage(task, trace::StagingState::memory); });
    follow_orders();
    if (!reserved) return Staging::pending;  // the thread that makes room goes on with it
  }
  if (!give_memory(task, node)) {
    follow_orders();
    return Staging::pending;
  }
  const bool has_waited = bring(task, node) && room_.any();
  if (has_waited) note_stage(task, trace::StagingState::data);
  const bool is_over = task.waits.fetch_sub(1, std::memory_order_acq_rel) == 1;
  // The end for which the task waited has come already. It goes on as if that had come later: after a move its data is
  // still to be fetched, and a move may have failed.
  if (is_over && has_waited) staged(task);
  follow_orders();
  return is_over && !has_waited ? Staging::ready : Staging::pending;
}

bool Memory::acquire_behind(Task& task, const Task& before, NodeIndex node) {
  const auto is_written_before = [&](const Handle& handle) {
    const AccessSlot* const slots = before.accesses();
    return std::any_of(slots, slots + before.access_count,
                       [&](const AccessSlot& slot) { return slot.handle() == &handle && makes_value(slot.mode()); });
  };
  const auto is_there = [&] {
    for (unsigned i = 0; i < task.access_count; ++i) {
      const AccessSlot& slot = task.accesses()[i];
      const Handle& handle = *slot.handle();
      if (handle.poison.any() || handle.private_copies != nullptr || handle.private_copy != nullptr) return false;
      if (sees_value(slot.mode()) && !handle.valid_on(node) && !is_written_before(handle)) return false;
    }
    return true;
  };
  if (!is_there()) return false;
  if (room_.is_limited(node) && !room_.reserve_at_once(task, node, Room::AtOnce::behind)) return false;
  const bool is_ready = [&] {
    if (!is_there()) return false;  // a replica may have left before the reservation
    try {
      for (unsigned i = 0; i < task.access_count; ++i) ensure_allocated(*task.accesses()[i].handle(), node);
    } catch (...) {  // reported when its turn comes
      return false;
    }
    return meets_no_move(task, node);
  }();
  if (!is_ready) give_back(task, node);
  return is_ready;
}

/// Whether nothing that `task` writes is being moved. If so, no move of it begins: data that it replaces on `node`
/// becomes invalid elsewhere.
bool Memory::meets_no_move(Task& task, NodeIndex node) {
  if (!room_.any()) return true;
  const std::lock_guard guard(room_.mutex());
  for (const bool gives_up : {false, true}) {
    for (unsigned i = 0; i < task.access_count; ++i) {
      const AccessSlot& slot = task.accesses()[i];
      Handle& handle = *slot.handle();
      if (slot.alias() || !makes_value(slot.mode())) continue;
      if (handle.residence->leaves != Residence::kNowhere) return false;
      if (!gives_up || slot.mode() != AccessMode::write) continue;
      const std::lock_guard lock(handle.lock);
      handle.valid.fetch_and(1U << handle.node_at(node), std::memory_order_acq_rel);
    }
  }
  return true;
}

/// Acquires for an event that replaces the value of its one datum.
Memory::Staging Memory::acquire_beside(Task& event, NodeIndex node) {
  while (!room_.hold_beside(event, node)) {
    event.waits.store(1, std::memory_order_relaxed);
    if (waits_for_move(event, event.accesses()[0], node) && event.waits.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return Staging::pending;  // the event comes here again
  }
  follow_orders();
  if (event.extra->memory != EventMemory::none) ensure_allocated(*event.accesses()[0].handle(), node);
  return Staging::ready;
}

NodeIndex Memory::source_of(Task& event) {
  const Handle& handle = *event.accesses()[0].handle();
  const std::uint32_t valid = handle.seen_valid();
  const std::uint32_t there = valid & event.extra->sources & ~no_messages_.load(std::memory_order_relaxed);
  if ((valid & 1U) != 0 || there == 0) return 0;
  const auto node = static_cast<NodeIndex>(std::countr_zero(there));
  // Without its memory the event has only seen where the value is; it may leave before the event asks.
  const bool asks = room_.is_limited(node) && event.room.memory != RoomState::Memory::none;
  return asks && !room_.reserve_at_once(event, node, Room::AtOnce::valid) ? 0 : node;
}

Memory::Staging Memory::prefetch(Task& task, NodeIndex node) {
  Handle& handle = *task.accesses()[0].handle();
  prefetches_.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t valid = handle.seen_valid();
  if ((valid >> node & 1U) != 0) {
    prefetches_present_.fetch_add(1, std::memory_order_relaxed);
    return Staging::ready;
  }
  if (valid == 0 || (room_.is_limited(node) && !room_.reserve_at_once(task, node, Room::AtOnce::hint))) {
    prefetches_lost_.fetch_add(1, std::memory_order_relaxed);
    follow_orders();
    return Staging::ready;
  }
  task.waits.store(1, std::memory_order_relaxed);
  const std::uint64_t given_up = room_.is_limited(node) ? room_.given_up(node) : 0;
  try {
    ensure_allocated(handle, node);
  } catch (const OutOfMemory&) {
    if (!room_.is_limited(node) || !Room::counts(handle, node)) throw;
    room_.shrink(task, node, given_up);
    note_lost_prefetch();
    follow_orders();
    return Staging::ready;
  }
  bring(task, node);
  const Staging staging = task.waits.fetch_sub(1, std::memory_order_acq_rel) == 1 ? Staging::ready : Staging::pending;
  follow_orders();
  return staging;
}

PrefetchReport Memory::prefetches() const noexcept {
  PrefetchReport report;
  report.hints = prefetches_.load(std::memory_order_relaxed);
  report.present = prefetches_present_.load(std::memory_order_relaxed);
  report.lost = prefetches_lost_.load(std::memory_order_relaxed);
  report.copied = report.hints - report.present - report.lost;
  return report;
}

/// Allocates memory for all data of `task` on `node`, before any transfer knows the task. False: the node has less than
/// its budget says, and the task, which had pinned memory, waits again.
bool Memory::give_memory(Task& task, NodeIndex node) {
  // A message for a device may go to main memory as well, so nothing leaves for it.
  const bool has_other_place = task.kind == TaskKind::event && node != 0 && task.extra->sources == 0;
  const bool may_wait = !has_other_place && room_.is_limited(node) && task.room.is_pinned_within_budget();
  const std::uint64_t given_up = may_wait ? room_.given_up(node) : 0;
  const Handle* at = nullptr;
  try {
    allocate_all(task, node, at);
    return true;
  } catch (const OutOfMemory&) {
    if (!may_wait || !Room::counts(*at, node)) throw;
  }
  room_.wait_again(task, node, given_up, [&] { note_stage(task, trace::StagingState::memory); });
  return false;
}

/// `at` is the datum that was handled last.
void Memory::allocate_all(Task& task, NodeIndex node, const Handle*& at) {
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    if (slot.mode() == AccessMode::reduce || slot.mode() == AccessMode::scratch) continue;
    at = slot.handle();
    ensure_allocated(*slot.handle(), node);
  }
}

/// Starts the transfers that the data of `task`, which has memory on `node`, needs. True: the task waits for some of
/// them, which may have ended by now.
bool Memory::bring(Task& task, NodeIndex node) {
  bool waits = false;
  for (unsigned i = 0; i < task.access_count; ++i) {
    AccessSlot& slot = task.accesses()[i];
    if (slot.alias()) continue;  // the first access to the data has the mode of both
    if (room_.any() && makes_value(slot.mode()) && waits_for_move(task, slot, node)) {
      waits = true;
      continue;
    }
    if (!sees_value(slot.mode())) continue;
    waits |= fetch(task, *slot.handle(), slot.link, node);
    if (slot.handle()->private_copies != nullptr) [[unlikely]] waits |= bring_private_copies(task, *slot.handle());
  }
  return waits;
}

void Memory::wait_for(Transfer& transfer, Task& task, Link& link) {
  task.waits.fetch_add(1, std::memory_order_relaxed);
  link.lead_to(&task);
  link.next = transfer.waiting;
  transfer.waiting = &link;
}

/// Whether `task`, which writes, waits for the end of a move, and comes here again. False: the data is not being moved;
/// a value that will be replaced on `node` is dropped elsewhere, so that no move of it begins.
bool Memory::waits_for_move(Task& task, AccessSlot& slot, NodeIndex node) {
  Handle& handle = *slot.handle();
  const std::lock_guard guard(room_.mutex());
  const std::lock_guard lock(handle.lock);
  if (handle.residence->leaves != Residence::kNowhere) {
    wait_for(handle.transfer_to(handle.residence->goes_to), task, slot.link);
    return true;
  }
  if (slot.mode() == AccessMode::write) handle.valid.fetch_and(1U << handle.node_at(node), std::memory_order_acq_rel);
  return false;
}

void Memory::ensure_allocated(Handle& handle, NodeIndex worker_node) {
  const NodeIndex node = handle.node_at(worker_node);
  std::lock_guard guard(handle.lock);
  Replica& replica = handle.replica(node);
  if (replica.pointer != nullptr) return;
  replica.give_memory(allocate(handle, node), handle.shape.rows);
}

void* Memory::allocate(const Handle& handle, NodeIndex node) {
  if (handle.object != nullptr && node != 0)
    throw std::logic_error(
        fmt::format("{} is an object, and objects stay in main memory: a task that uses it cannot run in {}; "
                    "give its codelet an implementation for the CPU alone, or a can_run",
                    handle.described(), nodes_[node].node->name()));
  void* const memory = source_for(handle, node).allocate(handle.shape.bytes());
  if (memory == nullptr) refuse_memory(handle, node);
  nodes_[node].bytes->fetch_add(handle.shape.bytes(), std::memory_order_relaxed);
  emit<trace::Type::data_allocated>(handle.number, node, handle.shape.bytes());
  if (handle.object == nullptr && node == 0 && page_locked_ != nullptr) trace_page_locked();
  if (handle.object == nullptr) return memory;
  try {
    handle.object->construct(memory);
  } catch (...) {
    source_for(handle, node).release(memory, handle.shape.bytes());
    nodes_[node].bytes->fetch_sub(handle.shape.bytes(), std::memory_order_relaxed);
    throw;
  }
  return memory;
}

void Memory::trace_numa(const Handle& handle, const void* memory) const noexcept {
  trace::Session* const session = trace_.load(std::memory_order_acquire);
  if (session == nullptr || !session->shares<trace::Type::data_numa>() || !numa_node_of_ || memory == nullptr) return;
  if (const auto node = numa_node_of_(memory, handle.shape.bytes())) emit<trace::Type::data_numa>(handle.number, *node);
}

void Memory::trace_page_locked() const {
  trace::Session* const session = trace_.load(std::memory_order_acquire);
  if (session == nullptr || !session->shares<trace::Type::data_page_locked>()) return;
  const PageLockedReport pool = page_locked_->report();
  emit<trace::Type::data_page_locked>(pool.used, pool.most_used, pool.locked, pool.bound, pool.allocations,
                                      pool.from_driver, pool.refused, pool.refused_bytes);
}

void Memory::release(const Handle& handle, NodeIndex node, void* memory) noexcept {
  if (node == 0 && handle.copy_number == 0) trace_numa(handle, memory);
  if (handle.object != nullptr) handle.object->destroy(memory);
  source_for(handle, node).release(memory, handle.shape.bytes());
  nodes_[node].bytes->fetch_sub(handle.shape.bytes(), std::memory_order_relaxed);
  emit<trace::Type::data_freed>(handle.number, node, handle.shape.bytes());
}

void Memory::refuse_memory(const Handle& handle, NodeIndex node) const {
  throw OutOfMemory(fmt::format(
      "no memory for {}: it takes {} bytes in {}, where Tandem has allocated {} bytes for other data; drop data "
      "that is no longer needed, or split the data and use fewer pieces at a time",
      handle.described(), handle.shape.bytes(), described(node), nodes_[node].bytes->load(std::memory_order_relaxed)));
}

/// Memory for the duration of a copy, page-locked if possible; null: there is none.
std::shared_ptr<void> Memory::buffer_for_copy(std::size_t bytes) {
  try {
    if (page_locked_ != nullptr)
      if (void* const memory = page_locked_->allocate(bytes); memory != nullptr)
        return {memory, [pool = page_locked_, bytes](void* locked) { pool->release(locked, bytes); }};
    if (bytes > kMostDataBytes) return {};
    return {std::aligned_alloc(64, (bytes + 64) / 64 * 64), [](void* memory) { std::free(memory); }};
  } catch (const std::bad_alloc&) {  // the shared pointer has released the memory
    return {};
  }
}

Copier& Memory::copier_for(const CopyRequest& request) noexcept {
  // Storage has its own copier for all nodes; a device its own; a NUMA node uses those of the others.
  const bool by_source = request.to_node == 0 || room_.is_storage(request.from_node);
  return *nodes_[by_source ? request.from_node : request.to_node].copier;
}

/// Storage is reached from main memory alone, and a kind of devices does not know another kind's memory: copies between
/// them pass through main memory.
bool Memory::passes_main_memory(const CopyRequest& given) const noexcept {
  const CopyRequest request = as_copied(given);
  if (request.from_node == 0 || request.to_node == 0) return false;
  if (room_.is_storage(request.from_node) || room_.is_storage(request.to_node)) return true;
  return !reach_each_other(*nodes_[request.from_node].copier, *nodes_[request.to_node].copier);
}

CopyRequest Memory::as_copied(CopyRequest request) const noexcept {
  return seen_by_copier(request, [this](NodeIndex node) { return reaches_home(node); });
}

CopyRequest Memory::request_for(Handle& handle, NodeIndex from, NodeIndex to) {
  const Replica& source = handle.replica(from);
  const Replica& target = handle.replica(to);
  return {from, to, source.pointer, target.pointer, source.ld, target.ld, handle.shape};
}

/// Copies, and calls `done` once with an exception or null: at once, or on the thread from which the copier reports.
template <class Done>
void Memory::copy(Handle& handle, const CopyRequest& given, const Done& done) {
  CopyRequest request = given;
  // Packed memory between memory with gaps, which copiers do not know, and the other node.
  std::shared_ptr<void> packed;
  // Memory on the way between two other nodes has no gaps. Main memory with gaps is the program's, and stays.
  const bool has_gaps = handle.is_strided_at_home();
  const bool is_from_home = has_gaps && given.from_node == 0 && given.from == handle.home.pointer;
  const bool is_to_home = has_gaps && given.to_node == 0 && given.to == handle.home.pointer;
  if (is_from_home || is_to_home) {
    packed = buffer_for_copy(handle.shape.bytes());
    if (packed == nullptr) return done(std::make_exception_ptr(std::bad_alloc()));
    if (is_from_home) {
      handle.layout->pack(given.from, static_cast<std::byte*>(packed.get()));
      request.from = packed.get();
    } else {
      request.to = packed.get();
    }
  }
  emit<trace::Type::transfer_started>(handle.number, request.from_node, request.to_node, handle.shape.bytes());
  const auto ended = [this, &handle, number = handle.number, source = request.from_node, target = request.to_node,
                      home = given.to, packed, done](const std::exception_ptr& failure) {
    if (packed != nullptr && target == 0 && failure == nullptr)
      handle.layout->unpack(static_cast<const std::byte*>(packed.get()), home);
    emit<trace::Type::transfer_ended>(number, source, target);
    done(failure);
  };
  CopyState state = CopyState::posted;
  try {
    const CopyRequest to_copy = as_copied(request);
    state = copier_for(to_copy).start(to_copy, [this, ended](const std::exception_ptr& failure) {
      const CallCount::Guard guard(calls_);
      ended(failure);
      follow_orders();
    });
  } catch (...) {
    return ended(std::current_exception());
  }
  if (state == CopyState::done) ended(nullptr);
}

/// Fetches data. True: `task` waits for a transfer, which may have ended by now.
bool Memory::fetch(Task& task, Handle& handle, Link& link, NodeIndex worker_node) {
  const NodeIndex node = handle.node_at(worker_node);
  CopyRequest request;
  {
    // The source stays while it is being read.
    std::unique_lock<std::mutex> room(room_.mutex(), std::defer_lock);
    if (room_.any()) room.lock();
    const std::lock_guard guard(handle.lock);
    if (handle.valid_on(node)) return false;
    // The hint is dropped.
    if (handle.valid.load(std::memory_order_relaxed) == 0 && task.kind == TaskKind::event && task.extra->is_hint)
      return false;
    Transfer& transfer = handle.transfer_to(node);
    wait_for(transfer, task, link);
    if (transfer.under_way) return true;
    transfer.under_way = true;
    const auto source =
        static_cast<NodeIndex>(std::countr_zero(handle.valid.load(std::memory_order_relaxed) & ~Handle::kMoving));
    TANDEM_ASSERT(source < node_count());  // submission refuses to read data without a value
    if (room_.any()) room_.begin_reading(handle, source);
    request = request_for(handle, source, node);
  }
  const auto ended = [this, &handle, source = request.from_node, node](const std::exception_ptr& failure) {
    fetched(handle, source, node, failure);
  };
  if (!passes_main_memory(request)) copy(handle, request, ended);
  else copy_in_two(request, buffer_for_copy(handle.shape.bytes()), [this, &handle](const CopyRequest& step, const CopyEnded& then) { copy(handle, step, then); }, ended);
  return true;
}

void Memory::fetched(Handle& handle, NodeIndex source, NodeIndex node, const std::exception_ptr& failure) {
  Link* waiting;
  {
    std::lock_guard guard(handle.lock);
    waiting = std::exchange(handle.transfer_to(node), Transfer{}).waiting;
    if (failure == nullptr) handle.valid.fetch_or(1U << node, std::memory_order_release);
  }
  if (room_.any()) room_.end_reading(handle, source);
  if (failure != nullptr) note_lost_device(failure, source, node);
  if (failure != nullptr)
    for (const Link* link = waiting; link != nullptr; link = link->next)
      listener_.staging_failed(*link->task(), failure);
  count_down(waiting);
}

/// Notes that a copy has failed. If a device was lost, its worker finds the failure here.
void Memory::note_lost_device(const std::exception_ptr& failure, NodeIndex source, NodeIndex target) {
  const DeviceFailure look = look_at(failure);
  if (!look.is_devices || look.effect != DeviceEffect::lost) return;
  const auto is_devices = [this](NodeIndex node) {
    return node != 0 && !reaches_home(node) && !room_.is_storage(node);
  };
  for (const auto& [node, other] : {std::pair(source, target), std::pair(target, source)}) {
    if (!is_devices(node) || (is_devices(other) && !nodes_[node].node->is_lost())) continue;
    const std::lock_guard guard(losses_mutex_);
    if ((lost_.load(std::memory_order_relaxed) >> node & 1U) != 0) continue;
    losses_[node] = failure;
    lost_.fetch_or(1U << node, std::memory_order_release);
  }
}

void Memory::count_down(Link* waiting) {
  while (waiting != nullptr) {
    Link* next = waiting->next;
    Task& task = *waiting->task();
    if (task.waits.fetch_sub(1, std::memory_order_acq_rel) == 1) staged(task);
    waiting = next;
  }
}

void Memory::staged(Task& task) {
  if (room_.any()) note_stage(task, trace::StagingState::done);
  listener_.staged(task);
}

// --- limited memories

void Memory::note_stage(const Task& task, trace::StagingState stage) const {
  if (task.kind == TaskKind::kernel)
    emit<trace::Type::data_staging>(flow_position(task), static_cast<std::uint8_t>(stage));
}

bool Memory::is_present(const Task& task, NodeIndex node) const noexcept {
  if (room_.is_limited(node) && !task.room.is_pinned()) return false;
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    Handle& handle = *slot.handle();
    const std::uint32_t own = 1U << handle.node_at(node);
    if (slot.mode() == AccessMode::scratch || slot.alias()) continue;
    if (handle.poison.any()) return false;
    if (slot.mode() == AccessMode::reduce) continue;
    const std::uint32_t valid = handle.valid.load(std::memory_order_acquire);
    if (makes_value(slot.mode()) && (valid & Handle::kMoving) != 0) return false;
    if (sees_value(slot.mode()) ? (valid & own) == 0 : !handle.replica(node).has_memory() || (valid & ~own) != 0)
      return false;
  }
  return true;
}

bool Memory::end(Task& task, NodeIndex node) {
  const bool frees = room_.end(task, node);
  if (!frees) follow_orders();
  return frees;
}

void Memory::go_on(NodeIndex node) {
  room_.go_on(node);
  follow_orders();
}

void Memory::give_back(Task& task, NodeIndex node) {
  if (!task.room.is_pinned()) return;
  room_.give_back(task, node);
  follow_orders();
}

void Memory::let_go(const std::vector<Handle*>& kept) {
  if (kept.empty()) return;
  room_.let_go(kept, 0);
  follow_orders();
}

bool Memory::drop_damaged(Task& task, NodeIndex node) {
  const auto for_each_written = [&](const auto& visit) {
    for (unsigned i = 0; i < task.access_count; ++i) {
      const AccessSlot& slot = task.accesses()[i];
      if (!slot.alias() && makes_value(slot.mode()) && !visit(slot)) return false;
    }
    return true;
  };
  const std::uint32_t others = ~(Handle::kMoving | 1U << node);
  std::unique_lock<std::mutex> room(room_.mutex(), std::defer_lock);
  if (room_.any()) room.lock();  // no other copy leaves between the two steps
  if (!for_each_written([&](const AccessSlot& slot) {
        const PrivateCopy* const copy = slot.handle()->private_copy;
        if (copy != nullptr && !copy->filled) return true;  // another one is neutral, as it was at the beginning
        return !sees_value(slot.mode()) || (slot.handle()->valid.load(std::memory_order_acquire) & others) != 0;
      }))
    return false;
  return for_each_written([&](const AccessSlot& slot) {
    const std::lock_guard guard(slot.handle()->lock);
    slot.handle()->valid.fetch_and(~(1U << node), std::memory_order_acq_rel);
    return true;
  });
}

/// Executes the orders of `room_`, which may lead to further orders.
void Memory::follow_orders() {
  if (!room_.any()) return;
  for (Room::Orders orders = room_.take_orders(); !orders.empty(); orders = room_.take_orders()) {
    for (const Room::Move& move : orders.moves) begin_move(move);
    for (const Room::Granted& granted : orders.granted) grant(granted);
    for (const std::size_t bytes : orders.settled) settled_(bytes);
    if (orders.is_blocked) listener_.memory_is_blocked();
  }
}

void Memory::begin_move(const Room::Move& move) {
  Handle& handle = *move.handle;
  try {
    ensure_allocated(handle, move.to);
  } catch (...) {  // there was no room after all
    return end_move(handle, move.from, move.to, std::current_exception());
  }
  CopyRequest request;
  {
    const std::lock_guard guard(handle.lock);
    request = request_for(handle, move.from, move.to);
  }
  const auto ended = [this, &handle, from = move.from, to = move.to](const std::exception_ptr& failure) {
    end_move(handle, from, to, failure);
  };
  if (!passes_main_memory(request)) return copy(handle, request, ended);
  copy_in_two(request, buffer_for_copy(handle.shape.bytes()),
              [this, &handle](const CopyRequest& step, const CopyEnded& then) { copy(handle, step, then); }, ended);
}

void Memory::end_move(Handle& handle, NodeIndex from, NodeIndex to, const std::exception_ptr& failure) {
  std::string why;
  if (failure != nullptr) {
    note_lost_device(failure, from, to);
    why = look_at(failure).what;
  }
  const Room::EndedMove ended = room_.end_move(handle, failure == nullptr ? std::nullopt : std::optional(why));
  count_down(ended.waiting);
  if (!ended.is_last) return;
  free_everywhere(handle);
  handle.drop_reference();
}

void Memory::grant(const Room::Granted& granted) {
  Task& task = *granted.task;
  try {
    if (!granted.refusal.empty()) throw OutOfMemory(granted.refusal);
    if (!give_memory(task, granted.node)) return;  // the task is among the orders again
    bring(task, granted.node);
  } catch (...) {
    listener_.staging_failed(task, std::current_exception());
  }
  if (task.waits.load(std::memory_order_relaxed) > 1) note_stage(task, trace::StagingState::data);
  if (task.waits.fetch_sub(1, std::memory_order_acq_rel) == 1) staged(task);
}

void Memory::drain() noexcept {
  for (const Node& node : nodes_)
    if (node.copier != nullptr) node.copier->finish();
  calls_.drain();
  for (Handle* const handle : room_.stop()) {
    free_everywhere(*handle);
    handle->drop_reference();
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
    if (handle.private_copies == nullptr) return;
    for (PrivateCopy& copy : *handle.private_copies) {
      TANDEM_ASSERT(!copy.in_use && (!copy.filled || copy.data->valid_on(0)));
      if (!std::exchange(copy.filled, false)) continue;
      const Replica& home = copy.data->home;
      handle.reduction->combine(into, into_ld, home.pointer, home.ld, handle.shape);
    }
  } catch (...) {
    discard_partials(handle);
    throw;
  }
}

void Memory::discard_partials(Handle& handle) noexcept {
  for (Handle::Partial& partial : handle.partials) partial.filled = false;
  if (handle.private_copies == nullptr) return;
  for (PrivateCopy& copy : *handle.private_copies) copy.filled = false;
}

void Memory::free_replicas(Handle& handle) noexcept {
  if (handle.residence != nullptr) {
    if (!room_.forget(handle)) return;
    follow_orders();
  }
  free_everywhere(handle);
}

void Memory::free_everywhere(Handle& handle) noexcept {
  for (NodeIndex node = 0; node < node_count(); ++node) {
    if (handle.node_at(node) != node) continue;
    free_replica(handle, node);
    handle.replica(node) = Replica{};
  }
  for (Handle::Partial& partial : handle.partials)
    if (partial.pointer != nullptr) release(handle, 0, partial.pointer);
  handle.partials.clear();
  if (handle.private_copies != nullptr) free_private_copies(handle);
}

void Memory::free_replica(Handle& handle, NodeIndex node) noexcept {
  Replica& replica = handle.replica(node);
  if (!replica.owned) return;
  release(handle, node, replica.pointer);
  replica = Replica{};
}

}  // namespace tandem::runtime
