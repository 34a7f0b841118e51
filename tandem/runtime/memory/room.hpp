// tandem/runtime/memory/room.hpp: memory nodes with budgets: which task gets memory, and which replica leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

class Memory;

/// The budgets of memory nodes. It decides; `Memory` allocates and copies.
///
/// A task gets memory for all its data at once, or waits in the node's queue, first come, first served. Only the task at the head of a
/// queue makes replicas leave, and nobody behind it holds anything. Tasks that hold memory wait for no other memory, so they end,
/// and the head goes on: there is no deadlock and no livelock.
///
/// What leaves is what is used last (Belady), as far as the submitted tasks tell: first the data that none of them uses, the one
/// unused for longest before the others, then the one whose next task stands furthest in the flow. Replicas with a valid copy elsewhere,
/// or without a value, are dropped; the only valid one is moved (`Move`) first: from a device to main memory, from there, or when
/// there is no room, to the storage node.
///
/// Threads. All functions may be called from any thread, `note_uses` by the submitting one. One mutex guards everything, residences of
/// data included; `Handle::lock` may be taken under it, never the other way round. Nothing is called under it but
/// `MemoryNode::release`.
///
/// A move and the program's tasks. While a move is under way `Handle::valid` has the bit `kMoving`. A task that writes waits for its
/// end, so no copy is torn and no bit of `valid` comes late. A task that replaces the value makes other replicas invalid before it
/// runs, so none of them is moved meanwhile. Readers need not wait.
class Room {
 public:
  /// What is to be done outside of the mutex, in this order.
  struct Move {
    Handle* handle = nullptr;
    NodeIndex from = 0;
    NodeIndex to = 0;
  };
  struct Granted {
    Task* task = nullptr;
    NodeIndex node = 0;
    std::string refusal;  ///< empty: its memory is reserved; else why it cannot be
  };
  struct Orders {
    std::deque<Move> moves;
    std::deque<Granted> granted;
    bool empty() const noexcept { return moves.empty() && granted.empty(); }
  };

  /// How the parts of `Task::room` are used.
  static constexpr std::uint8_t kNoted = 1;  ///< the task stands among the upcoming uses of its data
  static constexpr std::uint8_t kHolds = 2;  ///< its data is pinned on its node

  explicit Room(Memory& memory) : memory_(memory) {}

  // --- before any data exists
  void limit(NodeIndex node, std::size_t bytes);
  void set_storage(NodeIndex node) { storage_ = node; }

  bool is_limited(NodeIndex node) const noexcept { return node < nodes_.size() && nodes_[node].limited; }
  /// Some node is limited.
  bool any() const noexcept { return any_; }
  bool is_storage(NodeIndex node) const noexcept { return storage_ && *storage_ == node; }
  /// What the data of `task` takes on `node`: memory of the program's counts nowhere.
  static std::size_t bytes_of(Task& task, NodeIndex node) noexcept;

  /// `task` is submitted.
  void note_uses(Task& task);

  /// True: all data of `task` has memory on the limited `node`, and stays there until its end. False: it waits, and is among the
  /// orders of this call or a later one.
  bool reserve(Task& task, NodeIndex node);
  /// `task` has ended; it worked on `node`.
  void end(Task& task, NodeIndex node);
  /// `task`, which holds memory on `node`, will work elsewhere.
  void give_back(Task& task, NodeIndex node);

  /// The replica on `node` is being copied from, until `end_reading`.
  void begin_reading(Handle& handle, NodeIndex node);
  void end_reading(Handle& handle, NodeIndex node);

  struct EndedMove {
    Link* waiting = nullptr;  ///< tasks that waited for its end
    bool is_last = false;     ///< the data is gone: the caller frees its replicas, and the reference that `forget` took
  };
  /// The move of `handle` has ended; `arrived` false: it has failed.
  EndedMove end_move(Handle& handle, bool arrived);
  bool is_moving(Handle& handle);

  /// The replicas of `handle` count no more. True: the caller frees them; false: the handle is kept until its move has ended.
  bool forget(Handle& handle);
  /// No move ends any more, and none begins. Returns the data that `forget` has left to moves.
  std::vector<Handle*> stop();

  /// What is to be done; empty: nothing.
  Orders take_orders();

  /// Guards what `fetch` decides about a source.
  std::mutex& mutex() noexcept { return mutex_; }

  /// For tests and messages, at rest.
  std::size_t used(NodeIndex node);
  /// The structures agree with each other. At any time.
  bool check_invariants(NodeIndex node);

 private:
  struct Candidate {
    std::uint64_t next_use = 0;
    std::uint64_t last_use = 0;
    Handle* handle = nullptr;
    /// Who leaves first stands first.
    bool operator<(const Candidate& other) const noexcept {
      if (next_use != other.next_use) return next_use > other.next_use;
      if (last_use != other.last_use) return last_use < other.last_use;
      return handle < other.handle;
    }
  };
  struct Node {
    bool limited = false;
    std::size_t budget = 0;
    std::size_t used = 0;               ///< charged bytes
    std::size_t leaving = 0;            ///< of these, bytes that are being moved away
    unsigned holders = 0;               ///< tasks and transfers with pins
    std::set<Candidate> candidates;     ///< replicas that may leave
    std::deque<Task*> queue;            ///< tasks that wait for memory
    std::vector<char> head_pins;        ///< by access of the head: pinned for it already
  };

  // All under the mutex.
  static bool counts(const Handle& handle, NodeIndex node) noexcept;
  void pin(Handle& handle, NodeIndex node);
  void unpin(Handle& handle, NodeIndex node);
  void list(Handle& handle, NodeIndex node);
  void unlist(Handle& handle, NodeIndex node);
  void use_changed(Handle& handle);
  std::size_t missing(Task& task, NodeIndex node);
  void hold(Task& task, NodeIndex node);
  bool grant_head(NodeIndex node);
  void release_head(Task& task, NodeIndex node);
  bool make_room(NodeIndex node, std::size_t bytes);
  void evict(Handle& handle, NodeIndex node);
  void charge(Handle& handle, NodeIndex node);
  void discharge(Handle& handle, NodeIndex node);
  void discharge_everywhere(Handle& handle);
  void drop(Handle& handle, NodeIndex node);
  std::optional<NodeIndex> target_for(const Handle& handle, NodeIndex node) const;
  void serve(NodeIndex node);
  void serve_all();
  std::string why_refused(Task& task, NodeIndex node);

  Memory& memory_;
  std::mutex mutex_;
  std::vector<Node> nodes_;
  std::optional<NodeIndex> storage_;
  bool any_ = false;
  bool stopped_ = false;
  std::uint64_t ended_ = 0;  ///< accesses
  std::vector<Handle*> moving_;
  Orders orders_;
};

}  // namespace tandem::runtime
