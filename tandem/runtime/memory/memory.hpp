// tandem/runtime/memory/memory.hpp: makes the data of a task present and valid on the node where it will run.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
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

  /// Of what is allocated and copied; outlives this. Any thread may be at work.
  void set_trace(trace::Session* session) noexcept { trace_.store(session, std::memory_order_release); }

  unsigned node_count() const noexcept { return static_cast<unsigned>(nodes_.size()); }
  MemoryNode& node(NodeIndex index) noexcept { return *nodes_[index].node; }

  enum class Staging { ready, pending };

  /// Makes every datum of `task` present on `node`, and valid where the task sees its value. `pending`: transfers are under way
  /// and the listener will be called. Throws OutOfMemory when a node has no memory left, std::logic_error for objects, which
  /// stay in main memory, on another node, and what the constructor of an object throws. By the worker that will run the task.
  Staging acquire(Task& task, NodeIndex node);

  /// The kernel has written through `slot` on `node`: other replicas are out of date.
  static void note_written(Handle& handle, NodeIndex node) noexcept {
    const std::uint32_t only = 1U << node;
    if (handle.valid.load(std::memory_order_relaxed) != only) handle.valid.store(only, std::memory_order_release);
  }

  /// A private copy for a `reduce` access, initialised if it is new to this group. Thread-safe. Throws OutOfMemory, and what
  /// the initialisation throws.
  void* take_partial(Handle& handle);
  /// `filled` false: the kernel threw, so the copy counts for nothing.
  static void return_partial(Handle& handle, void* partial, bool filled) noexcept;
  /// Adds all filled private copies to the value at `into`. By the combining task, alone.
  static void combine_partials(Handle& handle, void* into, std::size_t into_ld);

  /// Forgets what the private copies hold.
  static void discard_partials(Handle& handle) noexcept;

  /// No more transfers will end: waits for calls of the listener that are under way.
  void drain() const noexcept { calls_.drain(); }

  /// Frees what Tandem has allocated for `handle`, which nobody uses any more.
  void free_replicas(Handle& handle) noexcept;

 private:
  struct Node {
    std::unique_ptr<MemoryNode> node;
    std::unique_ptr<Copier> copier;  ///< of transfers from or to this node; null for main memory
    std::unique_ptr<std::atomic<std::size_t>> bytes = std::make_unique<std::atomic<std::size_t>>(0);  ///< allocated there
  };

  void ensure_allocated(Handle& handle, NodeIndex node);
  /// Memory for a value, in which an object has begun.
  void* allocate(const Handle& handle, NodeIndex node);
  void release(const Handle& handle, NodeIndex node, void* memory) noexcept;
  [[noreturn]] void refuse_memory(const Handle& handle, NodeIndex node) const;
  bool fetch(Task& task, AccessSlot& slot, NodeIndex node);
  void fetched(Handle& handle, NodeIndex node);
  void fetch_failed(Handle& handle, NodeIndex node, const std::exception_ptr& exception);
  void count_down(Link* waiting);

  template <trace::Type T, class... Fields>
  void emit(Fields... fields) const;

  std::atomic<trace::Session*> trace_{nullptr};
  StagingListener& listener_;
  CallCount calls_;
  std::vector<Node> nodes_;
};

}  // namespace tandem::runtime
