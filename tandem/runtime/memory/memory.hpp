// tandem/runtime/memory/memory.hpp: makes the data of a task present and valid on the node where it will run.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
#include "tandem/runtime/memory/page_locked_pool.hpp"
#include "tandem/runtime/memory/prefetch_report.hpp"
#include "tandem/runtime/memory/room.hpp"
#include "tandem/runtime/task/call_count.hpp"
#include "tandem/runtime/task/task.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::runtime {

/// Hears that a task's transfers have ended.
class StagingListener {
 public:
  virtual ~StagingListener() = default;
  /// All data of `task` is valid on its node now. Called from whichever thread ended the last transfer.
  virtual void staged(Task& task) = 0;
  /// A transfer for `task` threw `exception`. Its other transfers may be under way; `staged` follows.
  virtual void staging_failed(Task& task, const std::exception_ptr& exception) = 0;
  /// Tasks wait for memory that only accesses of the application keep (`Room::blocks`): the submitting thread is to be woken. Any thread calls it.
  virtual void memory_is_blocked() {}
};

/// The memory nodes of a runtime and the transfers between them.
///
/// `acquire` and `release_written` implement the coherence that `Handle` describes. Transfers towards one replica are done once,
/// however many tasks want it; the tasks queue at the replica. Nothing here waits.
class Memory {
 public:
  explicit Memory(StagingListener& listener);

  /// A further node, reached from and to all others by `copier`. Before any handle exists. Returns its index.
  NodeIndex add_node(std::unique_ptr<MemoryNode> node, std::unique_ptr<Copier> copier);

  /// Data in main memory comes from `pool`, but for objects, which no device sees, and so does memory that copies need. Before any handle exists.
  void set_page_locked(std::shared_ptr<PageLockedPool> pool);
  /// What messages bring (`Handle::is_received`) comes into memory of `memory`, which is main memory somewhere; not where there is page-locked memory,
  /// which devices need more. Before any handle exists.
  void set_message_memory(std::unique_ptr<MemoryNode> memory) { message_memory_ = std::move(memory); }
  /// At most `bytes` of replicas are on `node`: others leave for new ones; `kernels` as `Room::limit` has it. Before any handle exists.
  void limit(NodeIndex node, std::size_t bytes, unsigned kernels = Room::kNoLimit);
  /// Replicas may go to `node`, where no worker works, when main memory has no room. Before any handle exists.
  void set_storage(NodeIndex node) {
    room_.set_storage(node);
    keep_messages_out_of(node);
  }
  /// Some node is limited: replicas come and go, and tasks go through `acquire` each time.
  bool is_limited() const noexcept { return room_.any(); }
  bool is_limited(NodeIndex node) const noexcept { return room_.is_limited(node); }
  Room& room() noexcept { return room_; }
  /// `call` is told the bytes of data that no longer count beside a budget (`EventMemory::counted`). It may run on any thread, and may submit
  /// nothing. Before any such event.
  void on_settled(std::function<void(std::size_t bytes)> call) { settled_ = std::move(call); }

  /// On which NUMA node, counted from 0, memory lies; empty, or nothing returned: unknown. Any thread calls it.
  using NumaNodeOf = std::function<std::optional<std::size_t>(const void* memory, std::size_t bytes)>;
  /// For the trace, and for `settle_home`. Before any handle exists.
  void set_numa(NumaNodeOf numa_node_of) { numa_node_of_ = std::move(numa_node_of); }
  /// `node` is that of a NUMA node: its workers reach main memory, too. Before any handle exists.
  void set_numa_place(NodeIndex node, std::size_t numa_place) {
    nodes_[node].numa_place = numa_place;
    reach_home_ |= 1U << node;
    keep_messages_out_of(node);
  }
  /// The memories but main memory in which messages of this kind may be read and written; bit n: n.
  std::uint32_t message_nodes(MessageMemory kind) const noexcept {
    return message_nodes_[static_cast<unsigned>(kind)] & ~no_messages_.load(std::memory_order_relaxed);
  }
  /// The device that works in `node` is lost: what lies there is brought to main memory for messages, or fails there; no message comes there. Any thread.
  void end_messages_from(NodeIndex node) noexcept { no_messages_.fetch_or(1U << node, std::memory_order_relaxed); }
  /// Why the device of memory `node` is lost, as a copy from or to that memory has said; null: none has said it. Any
  /// thread.
  std::exception_ptr why_lost(NodeIndex node) const noexcept {
    // Pairs with the release of `note_lost_device`, which has stored the failure.
    return (lost_.load(std::memory_order_acquire) >> node & 1U) != 0 ? losses_[node] : nullptr;
  }
  /// The workers of `node`, the memory of a NUMA node, reach main memory, too.
  bool reaches_home(NodeIndex node) const noexcept { return (reach_home_ >> node & 1U) != 0; }
  /// Decides which workers use `handle` where it lies in main memory: objects, which do not move, from all NUMA nodes; memory of the program's
  /// from the one on which it lies. When it is registered.
  void settle_home(Handle& handle) const {
    if (reach_home_ != 0) settle_home_on_numa_nodes(handle);
  }
  /// Of what is allocated and copied; outlives this. Any thread may be at work.
  void set_trace(trace::Session* session) noexcept { trace_.store(session, std::memory_order_release); }
  /// Writes down on which NUMA node a replica in main memory lies, which the first touch has decided, before it is let go.
  void trace_numa(const Handle& handle, const void* memory) const noexcept;

  unsigned node_count() const noexcept { return static_cast<unsigned>(nodes_.size()); }
  MemoryNode& node(NodeIndex index) noexcept { return *nodes_[index].node; }
  /// Of several ranks: "of rank 3", for messages that name a memory. Before any handle exists.
  void set_owner(std::string owner) { owner_ = std::move(owner); }
  /// What to call a node in a message.
  std::string described(NodeIndex index) const;

  enum class Staging { ready, pending };

  /// Makes every datum of `task` present on `node`, and valid where the task sees its value. `ready`: so it is, but for transfers that have failed
  /// at once, of which the listener knows. `pending`: transfers are under way, and the listener will be called, or has been. Throws OutOfMemory
  /// when a node has no memory left, std::logic_error for objects, which stay in main memory, on another node, and what the constructor of an
  /// object throws. By the worker that will run the task.
  ///
  /// With limited memories the listener's call does not say that all is there: the task may have waited for the end of a move, behind which its
  /// own transfers begin. Who hears it asks `is_present`, or calls this again until it is `ready`.
  Staging acquire(Task& task, NodeIndex node);
  /// Without waiting, for a task that waits for `before` alone, which is in flight on `node`: true, all its data has memory there, and is valid or
  /// will be when `before` has ended. False: nothing has changed. By the worker that will run both.
  bool acquire_behind(Task& task, const Task& before, NodeIndex node);
  /// Where `event`, which may read its one datum in `TaskExtra::sources`, finds it: main memory if its value is there, or in none of these. In a
  /// memory with a budget the datum stays until the event's end or `give_back`, if the event has asked for its memory. By the thread that made
  /// the event ready.
  NodeIndex source_of(Task& event);
  /// The same for a hint, a task with one access that reads: without room that nobody else needs, nothing is done. `pending`: a transfer is
  /// under way, at whose end the listener is called once. By the thread that made the hint ready.
  Staging prefetch(Task& task, NodeIndex node);
  /// The transfer of a hint has failed.
  void note_lost_prefetch() noexcept { prefetches_lost_.fetch_add(1, std::memory_order_relaxed); }
  /// A hint that is not followed at all.
  void note_ignored_prefetch() noexcept {
    prefetches_.fetch_add(1, std::memory_order_relaxed);
    note_lost_prefetch();
  }
  /// What became of the hints so far. Any thread.
  PrefetchReport prefetches() const noexcept;
  /// With limited memories: `task` may run on `node` now. Without memory that is reserved for it a task cannot know that its data
  /// stays, and one that writes must meet no move. By the worker that would run it.
  bool is_present(const Task& task, NodeIndex node) const noexcept;
  /// `task`, whose `room` is not 0, has ended; it worked on `node`. True: `go_on` is to be called once its successors are ready.
  bool end(Task& task, NodeIndex node);
  /// Memory of `node` is free for those who wait.
  void go_on(NodeIndex node);
  /// `task` will work on another node than `node`: it keeps no memory there. By the worker that would have run it.
  void give_back(Task& task, NodeIndex node);
  /// What `event`, which holds its memory, has written stays where it is in main memory until `let_go`. Empty where nothing leaves main memory.
  std::vector<Handle*> keep_written(const Task& event) {
    return is_limited(0) ? room_.keep_written(event, 0) : std::vector<Handle*>();
  }
  /// Of what `keep_written` has returned, once; before the data may go.
  void let_go(const std::vector<Handle*>& kept);
  /// What `task` should have written on `node` is undefined there. False, and nothing has changed: the task needs a value that is
  /// nowhere else. By the worker that ran it, before its end.
  bool drop_damaged(Task& task, NodeIndex node);

  /// The kernel has written through `slot` on `node`: other replicas are out of date.
  static void note_written(Handle& handle, NodeIndex node) noexcept {
    const std::uint32_t only = 1U << handle.node_at(node);
    if (handle.valid.load(std::memory_order_relaxed) != only) handle.valid.store(only, std::memory_order_release);
  }

  /// @name Private copies that move
  /// @{
  /// Each `reduce` access of `task` gets a private copy, which begins in main memory if it is new to this group, and is data like other data from
  /// here on. Throws OutOfMemory, and what the initialisation throws: some accesses may have one then. Nothing for a task that holds memory. By the
  /// worker that will run the task, before `acquire`; others know the task's accesses by `Handle::private_copy`.
  void bind_private_copies(Task& task, NodeIndex node);
  /// What has become of a task's private copies.
  enum class CopyFate : std::uint8_t {
    added,      ///< they count: the task has added to them, or nothing has touched them
    unchanged,  ///< the task runs elsewhere: they are what they were before it
    lost,       ///< they count for nothing: the task has failed
  };
  /// The accesses of `task` name the data again. By the worker that ends it, or gives it to others, before that.
  void return_private_copies(Task& task, CopyFate fate) noexcept;
  /// Whether `combine_partials` finds all copies in main memory.
  static bool has_private_copies_home(const Handle& handle) noexcept;
  /// @}

  /// A private copy in main memory for a `reduce` access, initialised if it is new to this group. Thread-safe. Throws OutOfMemory, and what
  /// the initialisation throws.
  void* take_partial(Handle& handle);
  /// `filled` false: the kernel threw, so the copy counts for nothing.
  static void return_partial(Handle& handle, void* partial, bool filled) noexcept;
  /// Adds all filled private copies to the value at `into`; those that move are in main memory. By the combining task, alone.
  static void combine_partials(Handle& handle, void* into, std::size_t into_ld);

  /// Forgets what the private copies hold.
  static void discard_partials(Handle& handle) noexcept;

  /// No more transfers will end: waits for calls of the listener that are under way.
  void drain() noexcept;

  /// As `Room::note_held`.
  void note_held(const Task& access, NodeIndex node, bool is_held) {
    if (!is_limited(node)) return;
    room_.note_held(access, node, is_held);
    follow_orders();
  }
  /// As `Room::note_unwanted`; nothing where no memory is limited.
  void note_unwanted(Handle& handle, bool now) {
    if (handle.residence == nullptr) return;
    room_.note_unwanted(handle, now);
    follow_orders();
  }
  /// As `Room::note_abandoned`; nothing where no memory is limited.
  void note_abandoned(Handle& handle) {
    if (handle.residence == nullptr) return;
    room_.note_abandoned(handle);
    follow_orders();
  }
  /// Memory for `handle` in main memory, as the first task that writes it there would have it. Throws OutOfMemory.
  void allocate_home(Handle& handle) { ensure_allocated(handle, 0); }
  /// With limited memories: its value may come to main memory though no task asks for it.
  bool may_come_home(Handle& handle) { return room_.any() && room_.may_come_home(handle); }
  /// Frees what Tandem has allocated for `handle`, which nobody uses any more; while it is being moved, at the move's end.
  void free_replicas(Handle& handle) noexcept;
  /// Frees the replica on one node, if Tandem has allocated it. Under `handle.lock`.
  void free_replica(Handle& handle, NodeIndex node) noexcept;

 private:
  struct Node {
    std::unique_ptr<MemoryNode> node;
    std::unique_ptr<Copier> copier;  ///< of transfers from or to this node; null for main memory
    std::unique_ptr<std::atomic<std::size_t>> bytes = std::make_unique<std::atomic<std::size_t>>(0);  ///< allocated there
    std::optional<std::size_t> numa_place = {};  ///< where it is that of a NUMA node
  };

  void settle_home_on_numa_nodes(Handle& handle) const;
  /// NUMA nodes and storage, of whatever memory they are made.
  void keep_messages_out_of(NodeIndex node) noexcept { end_messages_from(node); }
  void ensure_allocated(Handle& handle, NodeIndex node);
  /// Memory for a value, in which an object has begun.
  void* allocate(const Handle& handle, NodeIndex node);
  void release(const Handle& handle, NodeIndex node, void* memory) noexcept;
  void trace_page_locked() const;
  MemoryNode& source_for(const Handle& handle, NodeIndex node) noexcept {
    if (node == 0 && page_locked_ == nullptr && message_memory_ != nullptr && handle.is_received && !handle.travels_packed()) return *message_memory_;
    return handle.object != nullptr && plain_main_memory_ != nullptr ? *plain_main_memory_ : *nodes_[node].node;
  }
  std::shared_ptr<void> buffer_for_copy(std::size_t bytes);
  [[noreturn]] void refuse_memory(const Handle& handle, NodeIndex node) const;
  Staging acquire_beside(Task& event, NodeIndex node);
  bool give_memory(Task& task, NodeIndex node);
  void allocate_all(Task& task, NodeIndex node, const Handle*& at);
  bool bring(Task& task, NodeIndex node);
  bool fetch(Task& task, Handle& handle, Link& link, NodeIndex node);
  void fetched(Handle& handle, NodeIndex source, NodeIndex node, const std::exception_ptr& failure);
  static void wait_for(Transfer& transfer, Task& task, Link& link);
  bool waits_for_move(Task& task, AccessSlot& slot, NodeIndex node);
  bool meets_no_move(Task& task, NodeIndex node);
  void count_down(Link* waiting);
  void staged(Task& task);
  void note_stage(const Task& task, trace::StagingState stage) const;
  Copier& copier_for(const CopyRequest& request) noexcept;
  bool passes_main_memory(const CopyRequest& request) const noexcept;
  CopyRequest as_copied(CopyRequest request) const noexcept;
  static CopyRequest request_for(Handle& handle, NodeIndex from, NodeIndex to);
  template <class Done>
  void copy(Handle& handle, const CopyRequest& request, const Done& done);
  bool bring_private_copies(Task& task, Handle& handle);
  PrivateCopy& take_private_copy(Handle& handle, NodeIndex node);
  static PrivateCopy* free_private_copy(Handle& handle, NodeIndex node) noexcept;
  PrivateCopy& add_private_copy(Handle& handle);
  bool start_private_copy(PrivateCopy& copy);
  static void let_go(PrivateCopy& copy) noexcept;
  bool forget_value(Handle& handle) noexcept;
  void free_private_copies(Handle& handle) noexcept;
  void follow_orders();
  void begin_move(const Room::Move& move);
  void end_move(Handle& handle, NodeIndex from, NodeIndex to, const std::exception_ptr& failure);
  void note_lost_device(const std::exception_ptr& failure, NodeIndex source, NodeIndex target);
  void grant(const Room::Granted& granted);
  void free_everywhere(Handle& handle) noexcept;

  template <trace::Type T, class... Fields>
  void emit(Fields... fields) const;

  std::atomic<trace::Session*> trace_{nullptr};
  NumaNodeOf numa_node_of_;
  std::function<void(std::size_t)> settled_;
  std::string owner_;
  std::atomic<std::uint64_t> prefetches_{0};
  std::atomic<std::uint64_t> prefetches_present_{0};
  std::atomic<std::uint64_t> prefetches_lost_{0};
  StagingListener& listener_;
  CallCount calls_;
  std::vector<Node> nodes_;
  std::shared_ptr<PageLockedPool> page_locked_;    ///< null: there is none
  std::unique_ptr<MemoryNode> plain_main_memory_;  ///< for objects, where there is page-locked memory; else null
  std::unique_ptr<MemoryNode> message_memory_;     ///< null: what messages bring is in main memory like all else
  std::uint32_t reach_home_ = 0;  ///< bit n: the memory of a NUMA node
  std::array<std::uint32_t, 3> message_nodes_{};  ///< by `MessageMemory`; bit n: what memory n says
  std::atomic<std::uint32_t> no_messages_{1};     ///< bit n: messages are not read there all the same
  /// Bit n: a copy has shown that the device of memory n is lost. Set under `losses_mutex_`.
  std::atomic<std::uint32_t> lost_{0};
  std::mutex losses_mutex_;
  std::array<std::exception_ptr, kMaxNodes> losses_;  ///< what it has said; written once, before its bit
  Room room_{*this};
};

}  // namespace tandem::runtime
