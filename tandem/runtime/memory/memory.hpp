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

/// Is told when a task's transfers have ended.
class StagingListener {
 public:
  virtual ~StagingListener() = default;
  /// All data of `task` is valid on its node now. Called from the thread that ended the last transfer.
  virtual void staged(Task& task) = 0;
  /// A transfer for `task` threw `exception`. Other transfers of the task may be under way; `staged` follows.
  virtual void staging_failed(Task& task, const std::exception_ptr& exception) = 0;
  /// Tasks wait for memory that only accesses of the application keep (`Room::blocks`), so the submitting thread must
  /// be woken. Any thread.
  virtual void memory_is_blocked() {}
};

/// The memory nodes of a runtime and the transfers between them.
///
/// `acquire` and `release_written` implement the coherence that `Handle` describes. A replica gets one transfer however
/// many tasks want it; the tasks queue at the replica. Nothing here waits.
class Memory {
 public:
  explicit Memory(StagingListener& listener);

  /// Adds a node, to and from which `copier` copies. Before any handle exists. Returns its index.
  NodeIndex add_node(std::unique_ptr<MemoryNode> node, std::unique_ptr<Copier> copier);

  /// Makes `pool` the source of main memory for copies and for data, except objects, which no device sees. Before any
  /// handle exists.
  void set_page_locked(std::shared_ptr<PageLockedPool> pool);
  /// Allocates data that messages bring (`Handle::is_received`) from `memory`, a part of main memory, unless there is
  /// page-locked memory, which devices need more. Before any handle exists.
  void set_message_memory(std::unique_ptr<MemoryNode> memory) { message_memory_ = std::move(memory); }
  /// Limits the replicas on `node` to `bytes`: old ones leave for new ones; `kernels` as in `Room::limit`. Before any
  /// handle exists.
  void limit(NodeIndex node, std::size_t bytes, unsigned kernels = Room::kNoLimit);
  /// Lets replicas go to `node`, where no worker works, when main memory has no room. Before any handle exists.
  void set_storage(NodeIndex node) {
    room_.set_storage(node);
    keep_messages_out_of(node);
  }
  /// Whether some node is limited: then replicas come and go, and tasks go through `acquire` each time.
  bool is_limited() const noexcept { return room_.any(); }
  bool is_limited(NodeIndex node) const noexcept { return room_.is_limited(node); }
  Room& room() noexcept { return room_; }
  /// Sets the function that gets the bytes of data that no longer count beside a budget (`EventMemory::counted`). It
  /// may run on any thread, and must not submit. Before any such event.
  void on_settled(std::function<void(std::size_t bytes)> call) { settled_ = std::move(call); }

  /// Returns the NUMA node of memory, counted from 0; empty, or without a value: unknown. Any thread calls it.
  using NumaNodeOf = std::function<std::optional<std::size_t>(const void* memory, std::size_t bytes)>;
  /// Sets the function for the trace and `settle_home`. Before any handle exists.
  void set_numa(NumaNodeOf numa_node_of) { numa_node_of_ = std::move(numa_node_of); }
  /// Makes `node` the memory of a NUMA node, whose workers reach main memory, too. Before any handle exists.
  void set_numa_place(NodeIndex node, std::size_t numa_place) {
    nodes_[node].numa_place = numa_place;
    reach_home_ |= 1U << node;
    keep_messages_out_of(node);
  }
  /// The memories other than main memory in which messages of this kind may be read and written; bit n: memory n.
  std::uint32_t message_nodes(MessageMemory kind) const noexcept {
    return message_nodes_[static_cast<unsigned>(kind)] & ~no_messages_.load(std::memory_order_relaxed);
  }
  /// Notes that the device of `node` is lost: messages read its data from main memory, where it arrives or fails, and
  /// no message arrives in `node`. Any thread.
  void end_messages_from(NodeIndex node) noexcept { no_messages_.fetch_or(1U << node, std::memory_order_relaxed); }
  /// Why the device of memory `node` is lost, as a copy from or to that memory reported; null: no copy did. Any thread.
  std::exception_ptr why_lost(NodeIndex node) const noexcept {
    // Pairs with the release of `note_lost_device`, which has stored the failure.
    return (lost_.load(std::memory_order_acquire) >> node & 1U) != 0 ? losses_[node] : nullptr;
  }
  /// True if `node` is the memory of a NUMA node, whose workers reach main memory, too.
  bool reaches_home(NodeIndex node) const noexcept { return (reach_home_ >> node & 1U) != 0; }
  /// Decides which workers use `handle` in main memory: all NUMA nodes for objects, which do not move; for the
  /// program's memory the NUMA node where it lies. Called when it is registered.
  void settle_home(Handle& handle) const {
    if (reach_home_ != 0) settle_home_on_numa_nodes(handle);
  }
  /// Sets the trace of allocations and copies; it outlives this. Any thread may be at work.
  void set_trace(trace::Session* session) noexcept { trace_.store(session, std::memory_order_release); }
  /// Traces the NUMA node of a replica in main memory, which the first touch has decided, before the replica is freed.
  void trace_numa(const Handle& handle, const void* memory) const noexcept;

  unsigned node_count() const noexcept { return static_cast<unsigned>(nodes_.size()); }
  MemoryNode& node(NodeIndex index) noexcept { return *nodes_[index].node; }
  /// Sets the rank for messages that name a memory, such as "of rank 3". Before any handle exists.
  void set_owner(std::string owner) { owner_ = std::move(owner); }
  /// Name of a node for messages.
  std::string described(NodeIndex index) const;

  enum class Staging { ready, pending };

  /// Makes every datum of `task` present on `node`, and valid where the task sees its value. `ready`: all is valid,
  /// except for transfers that failed at once, of which the listener was told. `pending`: transfers are under way, and
  /// the listener is or was called. Throws OutOfMemory when a node has no memory left, std::logic_error for objects on
  /// another node than main memory, and what an object's constructor throws. By the worker that will run the task.
  ///
  /// With limited memories the listener's call does not say that all is there: the task may have waited for the end of
  /// a move, after which its own transfers begin. The listener asks `is_present`, or calls this again until it returns
  /// `ready`.
  Staging acquire(Task& task, NodeIndex node);
  /// Acquires the data of a task that waits only for `before`, which is in flight on `node`, if that is possible
  /// without waiting. True: all data has memory there, and is valid or will be when `before` has ended. False: nothing
  /// has changed. By the worker that will run both.
  bool acquire_behind(Task& task, const Task& before, NodeIndex node);
  /// The memory where `event`, which may read its one datum in `TaskExtra::sources`, finds it: main memory if the value
  /// is there, or in none of these. In a memory with a budget the datum stays until the event's end or `give_back`, if
  /// the event has asked for its memory. By the thread that made the event ready.
  NodeIndex source_of(Task& event);
  /// As `acquire`, for a hint, a task with one access that reads: it does nothing without spare room. `pending`: a
  /// transfer is under way, at whose end the listener is called once. By the thread that made the hint ready.
  Staging prefetch(Task& task, NodeIndex node);
  /// Counts a hint whose transfer has failed.
  void note_lost_prefetch() noexcept { prefetches_lost_.fetch_add(1, std::memory_order_relaxed); }
  /// Counts a hint that is not followed at all.
  void note_ignored_prefetch() noexcept {
    prefetches_.fetch_add(1, std::memory_order_relaxed);
    note_lost_prefetch();
  }
  /// Counts of hints so far. Any thread.
  PrefetchReport prefetches() const noexcept;
  /// With limited memories: whether `task` may run on `node` now. Without reserved memory a task cannot know that its
  /// data stays, and one that writes must not meet a move. By the worker that would run it.
  bool is_present(const Task& task, NodeIndex node) const noexcept;
  /// Notes that `task`, whose `room` is not 0 and which worked on `node`, has ended. True: the caller calls `go_on`
  /// once the successors are ready.
  bool end(Task& task, NodeIndex node);
  /// Gives free memory of `node` to waiting tasks.
  void go_on(NodeIndex node);
  /// Releases the memory of `task` on `node`, since it will work elsewhere. By the worker that would have run it.
  void give_back(Task& task, NodeIndex node);
  /// Keeps what `event` has written, with pinned memory, in main memory until `let_go`. Empty if nothing leaves main
  /// memory.
  std::vector<Handle*> keep_written(const Task& event) {
    return is_limited(0) ? room_.keep_written(event, 0) : std::vector<Handle*>();
  }
  /// Ends `keep_written` for the data that it returned, once, before the data may be freed.
  void let_go(const std::vector<Handle*>& kept);
  /// Drops what `task` should have written on `node`, where it is undefined. False: the task needs a value that is
  /// nowhere else, and nothing has changed. By the worker that ran it, before its end.
  bool drop_damaged(Task& task, NodeIndex node);

  /// Marks other replicas as out of date after a kernel has written on `node`.
  static void note_written(Handle& handle, NodeIndex node) noexcept {
    const std::uint32_t only = 1U << handle.node_at(node);
    if (handle.valid.load(std::memory_order_relaxed) != only) handle.valid.store(only, std::memory_order_release);
  }

  /// @name Private copies that move
  /// @{
  /// Gives each `reduce` access of `task` a private copy, which begins in main memory if it is new to this group, and
  /// is then data like other data. Throws OutOfMemory, and what the initialisation throws: some accesses may have a
  /// copy then. Does nothing for a task with pinned memory. By the worker that will run the task, before `acquire`;
  /// other threads see the task's accesses by `Handle::private_copy`.
  void bind_private_copies(Task& task, NodeIndex node);
  /// State of a task's private copies afterwards.
  enum class CopyFate : std::uint8_t {
    added,      ///< they count: the task has added to them, or nothing has touched them
    unchanged,  ///< the task runs elsewhere: they are as before it
    lost,       ///< they do not count: the task has failed
  };
  /// Lets the accesses of `task` name the data again. By the worker that ends it or gives it to others, before that.
  void return_private_copies(Task& task, CopyFate fate) noexcept;
  /// Whether all copies are in main memory, as `combine_partials` needs.
  static bool has_private_copies_home(const Handle& handle) noexcept;
  /// @}

  /// Takes a private copy in main memory for a `reduce` access, initialised if it is new to this group. Thread-safe.
  /// Throws OutOfMemory, and what the initialisation throws.
  void* take_partial(Handle& handle);
  /// Takes a private copy back. `filled` false: the kernel threw, so the copy does not count.
  static void return_partial(Handle& handle, void* partial, bool filled) noexcept;
  /// Adds all filled private copies to the value at `into`; copies that move must be in main memory. By the combining
  /// task, alone.
  static void combine_partials(Handle& handle, void* into, std::size_t into_ld);

  /// Discards the content of the private copies.
  static void discard_partials(Handle& handle) noexcept;

  /// Waits for calls of the listener that are under way; no more transfers will end.
  void drain() noexcept;

  /// As `Room::note_held`.
  void note_held(const Task& access, NodeIndex node, bool is_held) {
    if (!is_limited(node)) return;
    room_.note_held(access, node, is_held);
    follow_orders();
  }
  /// As `Room::note_unwanted`; does nothing without a limited memory.
  void note_unwanted(Handle& handle, bool now) {
    if (handle.residence == nullptr) return;
    room_.note_unwanted(handle, now);
    follow_orders();
  }
  /// As `Room::note_abandoned`; does nothing without a limited memory.
  void note_abandoned(Handle& handle) {
    if (handle.residence == nullptr) return;
    room_.note_abandoned(handle);
    follow_orders();
  }
  /// Allocates memory for `handle` in main memory, as the first task that writes it there would. Throws OutOfMemory.
  void allocate_home(Handle& handle) { ensure_allocated(handle, 0); }
  /// With limited memories: whether the value may come to main memory though no task asks for it.
  bool may_come_home(Handle& handle) { return room_.any() && room_.may_come_home(handle); }
  /// Frees what Tandem has allocated for `handle`, which is no longer used; during a move, at the move's end.
  void free_replicas(Handle& handle) noexcept;
  /// Frees the replica on one node, if Tandem has allocated it. Under `handle.lock`.
  void free_replica(Handle& handle, NodeIndex node) noexcept;

 private:
  struct Node {
    std::unique_ptr<MemoryNode> node;
    std::unique_ptr<Copier> copier;  ///< copier of transfers from or to this node; null for main memory
    /// Bytes allocated there.
    std::unique_ptr<std::atomic<std::size_t>> bytes = std::make_unique<std::atomic<std::size_t>>(0);
    std::optional<std::size_t> numa_place = {};  ///< index of the NUMA node, if the memory is one's
  };

  void settle_home_on_numa_nodes(Handle& handle) const;
  /// Excludes a node from messages: NUMA nodes and storage, whatever their memory.
  void keep_messages_out_of(NodeIndex node) noexcept { end_messages_from(node); }
  void ensure_allocated(Handle& handle, NodeIndex node);
  /// Allocates memory for a value, and constructs an object in it.
  void* allocate(const Handle& handle, NodeIndex node);
  void release(const Handle& handle, NodeIndex node, void* memory) noexcept;
  void trace_page_locked() const;
  MemoryNode& source_for(const Handle& handle, NodeIndex node) noexcept {
    if (node == 0 && page_locked_ == nullptr && message_memory_ != nullptr && handle.is_received &&
        !handle.travels_packed())
      return *message_memory_;
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
  std::unique_ptr<MemoryNode> plain_main_memory_;  ///< for objects, if there is page-locked memory; else null
  std::unique_ptr<MemoryNode> message_memory_;     ///< null: data that messages bring is in ordinary main memory
  std::uint32_t reach_home_ = 0;  ///< bit n: memory n is a NUMA node's
  std::array<std::uint32_t, 3> message_nodes_{};  ///< by `MessageMemory`; bit n: memory n allows it
  std::atomic<std::uint32_t> no_messages_{1};     ///< bit n: messages are not read there nevertheless
  /// Bit n: a copy has shown that the device of memory n is lost. Set under `losses_mutex_`.
  std::atomic<std::uint32_t> lost_{0};
  std::mutex losses_mutex_;
  std::array<std::exception_ptr, kMaxNodes> losses_;  ///< reported failures; each is written once, before its bit
  Room room_{*this};
};

}  // namespace tandem::runtime
