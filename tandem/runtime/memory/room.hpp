// tandem/runtime/memory/room.hpp: memory nodes with budgets: which task gets memory, and which replica leaves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
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
/// A task gets memory for all its data at once, or waits. Of the waiting tasks one is chosen to be the next; it alone makes replicas
/// leave, it stays the next one until it has its memory, and the others hold nothing. Tasks that hold memory wait for no other memory,
/// so they end, and the next one goes on: there is no deadlock and no livelock.
///
/// The next one is the task of which the fewest bytes are missing (StarPU's policy `dmdar` sorts by what is there, too). Of tasks that miss nothing it is
/// that of the highest priority. Those that miss something come in the order of the flow, by which is chosen what leaves: in another one, data would leave
/// just before it is used. No task waits while more than `kPatience` others get memory. Only a few kernels hold memory at a time (`limit`), so that the
/// choice is made late, when what is there is known, and what they hold is little.
///
/// What leaves is what is used last (Belady), as far as the submitted tasks tell: first the data that none of them uses, the one
/// unused for longest before the others, then the one whose next task stands furthest in the flow. Replicas with a valid copy elsewhere,
/// or without a value, are dropped; the only valid one is moved (`Move`) first: from a device to main memory, from there, or when
/// there is no room, to the storage node.
///
/// Scratch memory counts as data does, from the moment when its task gets memory to the task's end.
///
/// A budget is what a node is expected to have. When the node allocates less, the budget shrinks below what is charged
/// at that time (`wait_again`): the task gives back what it holds and waits as others do, so that data leaves for it,
/// or it fails with the numbers if nothing else can leave. Each failure makes the budget smaller, so a task does not
/// wait for ever. A budget that has shrunk does not grow again.
///
/// Memory that the application keeps. The submitting thread alone ends the accesses that it holds, so while it waits, a task may wait for memory that
/// nobody gives up: it is *blocked* when all that holds memory on the node are such accesses. The thread that waits is told (`blocks`), and looks
/// whether it waits for one of these tasks. An access comes before all tasks that wait, also before the next one.
///
/// Data beside the budget. An event that waits for something outside, such as the end of a message, may need memory while it waits. If that
/// counted, tasks would wait for the memory, and what the event waits for might wait for these tasks: on another rank, which has its own
/// budget. So such an event holds its memory beside the budget (`hold_beside`), and who submits it bounds these bytes. When it
/// has ended, its data comes into the budget: with the first task that uses it, or when there is room and no task waits for it.
///
/// Threads. All functions may be called from any thread, those that say so by the submitting one. One mutex guards everything, residences of
/// data included; `Handle::lock` may be taken under it, never the other way round. Nothing is called under it but
/// `MemoryNode::release` and `footprint`, and `on_wait` of `reserve` and `wait_again`.
///
/// A move and the program's tasks. While a move is under way `Handle::valid` has the bit `kMoving`. A task that writes waits for its
/// end, so no copy is torn and no bit of `valid` comes late; its own transfers begin behind that (`Memory::acquire`). A task that
/// replaces the value makes other replicas invalid before it runs, so none of them is moved meanwhile. Readers need not wait.
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
    std::vector<std::size_t> settled;  ///< bytes of data that no longer count beside the budget (`EventMemory::counted`)
    bool is_blocked = false;           ///< `blocks` has grown
    bool empty() const noexcept { return moves.empty() && granted.empty() && settled.empty() && !is_blocked; }
  };

  /// How the parts of `Task::room` are used.
  static constexpr std::uint8_t kNoted = 1;  ///< the task stands among the upcoming uses of its data
  static constexpr std::uint8_t kHolds = 2;  ///< its data is pinned on its node
  static constexpr std::uint8_t kAsks = 4;   ///< an event that asks for its memory has done so
  static constexpr std::uint8_t kBeside = 8; ///< what it holds counts beside the budget
  static constexpr std::uint8_t kBehind = 16;  ///< it does not count among the kernels: see `reserve_behind`

  static constexpr unsigned kNoLimit = std::numeric_limits<unsigned>::max();
  /// So many tasks may overtake one that waits for memory.
  static constexpr std::uint64_t kPatience = 1U << 16;

  explicit Room(Memory& memory) : memory_(memory) {}

  // --- before any data exists
  /// At most `bytes` on `node`, and at most `kernels` tasks that run there or wait for their copies.
  void limit(NodeIndex node, std::size_t bytes, unsigned kernels = kNoLimit);
  void set_storage(NodeIndex node) { storage_ = node; }

  bool is_limited(NodeIndex node) const noexcept { return node < nodes_.size() && nodes_[node].limited; }
  /// Of a limited node, in bytes; it may shrink. Any thread.
  std::size_t budget(NodeIndex node) const noexcept { return nodes_[node].budget.load(std::memory_order_relaxed); }
  /// Some node is limited.
  bool any() const noexcept { return any_; }
  bool is_storage(NodeIndex node) const noexcept { return storage_ && *storage_ == node; }
  /// What the data of `task` and its scratch memory take on `node`: memory of the program's counts nowhere.
  std::size_t bytes_of(Task& task, NodeIndex node) const noexcept;
  static bool counts(const Handle& handle, NodeIndex node) noexcept;
  /// What a replica of `handle` on `node` takes of its budget.
  std::size_t bytes_on(const Handle& handle, NodeIndex node) const noexcept;

  /// `task` is submitted, or will run in a replay that begins. By the submitting thread.
  void note_uses(Task& task);

  /// The program will not use the data soon, beyond the tasks that it has submitted: it leaves before other data. `now`: it leaves when
  /// these have ended, also where nobody wants the memory. A task that is submitted later takes that back. By the submitting thread.
  void note_unwanted(Handle& handle, bool now);

  /// The program has dropped the data, which lies in memory of Tandem's and is no part of other data: when its submitted tasks have ended
  /// it leaves without being moved. Until then it is *passing*. By the submitting thread.
  void note_abandoned(Handle& handle);
  /// What passing data takes in main memory. Any thread.
  std::size_t passing_bytes() const noexcept { return passing_bytes_.load(std::memory_order_acquire); }
  /// The budgets of main memory and of the NUMA nodes that are memories of their own; 0: main memory has none.
  std::size_t processor_budget() const noexcept;

  /// True: all data of `task` has memory on the limited `node`, and stays there until its end; and its scratch memory has room. False: it waits, and is among the
  /// orders of this call or a later one; `on_wait` was called then, under the mutex.
  bool reserve(Task& task, NodeIndex node, const std::function<void()>& on_wait = {});
  /// How many bytes of `node` were charged and given up so far, for `wait_again`. Any thread.
  std::uint64_t given_up(NodeIndex node) const noexcept {
    return nodes_[node].given_up.load(std::memory_order_acquire);
  }
  /// The limited `node` has no memory for `task`, which holds some there, though its budget says so: the budget
  /// shrinks, and the task gives back what it holds, and waits as after `reserve`. `given_up_before`: what `given_up`
  /// returned before the node was asked for memory: what was given up since then may have been missing. `on_wait` as in
  /// `reserve`.
  void wait_again(Task& task, NodeIndex node, std::uint64_t given_up_before, const std::function<void()>& on_wait = {});
  /// The same for a hint, which waits for nobody: it holds nothing from now on.
  void give_up_hint(Task& hint, NodeIndex node, std::uint64_t given_up_before);
  /// As `reserve`, for a hint, which waits for nobody: true if its data has memory there, or gets some that is free, or
  /// that of replicas that are valid elsewhere, too, and are used later; not while a task waits for memory there.
  bool reserve_spare(Task& hint, NodeIndex node);
  /// The same for an event that reads its one datum, if its value is there: nothing is brought, and nobody leaves.
  bool reserve_valid(Task& event, NodeIndex node);
  /// The same for a task that will run behind one which holds memory on the limited `node` and waits for nothing any more. So it ends without
  /// waiting, and does not count among the kernels. True: all its data has memory there, or gets some that is free. While any task waits for memory
  /// there, nothing is reserved: what the next one needs would stay for longer.
  bool reserve_behind(Task& task, NodeIndex node);
  /// The one datum of `event`, which replaces its value, has memory on the limited `node` beside the budget: what it had within it is
  /// free for others. With `EventMemory::none` it keeps what it has. False: the datum is being moved, and the end of that is to be waited for first.
  bool hold_beside(Task& event, NodeIndex node);
  /// `task` has ended; it worked on `node`. True: what it held there is free, and `go_on` is to be called, which may be later: those who
  /// become ready by its end may have it before others.
  bool end(Task& task, NodeIndex node);
  void go_on(NodeIndex node);
  /// `task`, which holds memory on `node`, will work elsewhere.
  void give_back(Task& task, NodeIndex node);

  /// What `event` has written, which holds memory on the limited `node`, stays there until `let_go`, also beyond its end: the program's event gives it
  /// up later than it makes it readable. Who keeps data waits for no memory. Returns the data, for `let_go`.
  std::vector<Handle*> keep_written(const Task& event, NodeIndex node);
  void let_go(const std::vector<Handle*>& kept, NodeIndex node);

  /// The replica on `node` is being copied from, until `end_reading`.
  void begin_reading(Handle& handle, NodeIndex node);
  void end_reading(Handle& handle, NodeIndex node);

  /// The application holds `access` on `node` from now on, or, with `is_held` false, does no longer, before its end. By the submitting thread.
  void note_held(const Task& access, NodeIndex node, bool is_held);
  /// Grows when tasks are blocked, or one more is. Written under the mutex before the submitting thread is woken; who reads a new number finds these
  /// tasks with `blocked`. Any thread.
  const std::atomic<std::uint64_t>& blocks() const noexcept { return blocks_; }
  /// The tasks that are blocked. They begin no sooner than the application releases an access.
  std::vector<const Task*> blocked();
  /// For messages: that `task` waits for memory, and who keeps it; empty: it does not.
  std::string why_waits(Task& task);

  struct EndedMove {
    Link* waiting = nullptr;  ///< tasks that waited for its end
    bool is_last = false;     ///< the data is gone: the caller frees its replicas, and the reference that `forget` took
  };
  /// The move of `handle` has ended. `failure`: why it has failed; none: the data has arrived.
  EndedMove end_move(Handle& handle, const std::optional<std::string>& failure);
  /// Its value is being moved to main memory, or is elsewhere alone, so that such a move may begin.
  bool may_come_home(Handle& handle);

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
  /// Bytes that were beside the budget of `node` at a time.
  std::size_t most_beside(NodeIndex node);
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
      if (handle->number != other.handle->number) return handle->number < other.handle->number;  // the same in each run
      if (handle->copy_number != other.handle->copy_number) return handle->copy_number < other.handle->copy_number;  // of one datum
      return handle < other.handle;
    }
  };
  struct Sooner {
    bool operator()(const WaitingTask* a, const WaitingTask* b) const noexcept;
  };
  struct Node {
    bool limited = false;
    std::atomic<std::size_t> budget{0};  ///< written under the mutex
    std::size_t first_budget = 0;        ///< before it has shrunk
    unsigned most_kernels = kNoLimit;
    std::size_t used = 0;            ///< charged bytes
    std::size_t leaving = 0;         ///< of these, bytes that are being moved away
    /// Bytes that were charged and are not any more, so far; written under the mutex.
    std::atomic<std::uint64_t> given_up{0};
    std::string why_stuck;           ///< why the last move from there failed; empty: none has
    unsigned holders = 0;            ///< tasks, transfers and kept events with pins
    unsigned kernels = 0;            ///< of these, tasks that a worker runs
    unsigned held = 0;               ///< of these, accesses that the application holds
    std::set<Candidate> candidates;  ///< replicas that may leave
    std::uint64_t granted = 0;       ///< tasks that have got memory
    std::uint64_t came = 0;          ///< tasks that have waited
    std::map<std::uint64_t, WaitingTask> waiting;  ///< for memory, by `number`; without the next one
    std::set<WaitingTask*, Sooner> order;  ///< the same ones
    Task* next = nullptr;            ///< the one that gets memory next
    std::vector<char> next_pins;     ///< by its accesses: pinned for it already
    std::size_t beside = 0;          ///< bytes beside the budget
    std::size_t most_beside = 0;     ///< so far
    std::deque<Handle*> arrived;     ///< data there whose event has ended: it comes into the budget as soon as there is room
  };

  // All under the mutex.
  void pin(Handle& handle, NodeIndex node);
  void unpin(Handle& handle, NodeIndex node);
  void list(Handle& handle, NodeIndex node);
  void unlist(Handle& handle, NodeIndex node);
  void use_changed(Handle& handle);
  void leave_if_evicted(Handle& handle);
  void count_passing(Handle& handle);
  std::size_t missing(Task& task, NodeIndex node);
  std::size_t scratch_bytes(Task& task, NodeIndex node) const noexcept;
  void hold(Task& task, NodeIndex node);
  void unhold(Task& task, NodeIndex node);
  void shrink(NodeIndex node, std::uint64_t given_up_before);
  bool may_hold(const Task& task, NodeIndex node) const noexcept;
  void wait(Task& task, NodeIndex node);
  void change_missing(Handle& handle, NodeIndex node, bool more);
  void put_back_next(NodeIndex node);
  bool choose_next(NodeIndex node);
  bool grant_next(NodeIndex node);
  void release_next(NodeIndex node);
  bool make_room(NodeIndex node, std::size_t bytes);
  bool make_spare_room(NodeIndex node, std::size_t bytes, std::uint64_t next_use);
  void evict(Handle& handle, NodeIndex node);
  void charge(Handle& handle, NodeIndex node);
  void discharge(Handle& handle, NodeIndex node);
  void discharge_everywhere(Handle& handle);
  void drop(Handle& handle, NodeIndex node);
  void leave_beside(Handle& handle, NodeIndex node);
  void settle(Handle& handle, NodeIndex node);
  void admit_arrived(NodeIndex node);
  std::optional<NodeIndex> target_for(const Handle& handle, NodeIndex node) const;
  bool is_sound(NodeIndex node);
  static bool is_blocked(const Node& node) noexcept;
  void note_blocked(NodeIndex node);
  bool serve(NodeIndex node, const Task* asking = nullptr);
  void serve_all();
  std::string why_refused(Task& task, NodeIndex node);

  Memory& memory_;
  std::mutex mutex_;
  std::deque<Node> nodes_;
  std::optional<NodeIndex> storage_;
  bool any_ = false;
  bool stopped_ = false;
  std::uint64_t ended_ = 0;  ///< accesses
  std::atomic<std::size_t> passing_bytes_{0};  ///< written under the mutex
  std::atomic<std::uint64_t> blocks_{0};       ///< written under the mutex
  std::vector<Handle*> moving_;
  Orders orders_;
};

}  // namespace tandem::runtime
