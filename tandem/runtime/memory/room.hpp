// tandem/runtime/memory/room.hpp: budgets of memory nodes: which task gets memory, and which replica leaves.
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

/// The budgets of memory nodes. It decides, and `Memory` allocates and copies.
///
/// A task gets memory for all its data at once, or waits. One of the waiting tasks is the next one: it alone makes
/// replicas leave, and stays the next one until it has its memory; the others have no memory pinned. Tasks with pinned
/// memory wait for no other memory, so they end, and the next one goes on: there is no deadlock and no livelock.
///
/// The next one is the task with the fewest missing bytes (StarPU's policy `dmdar` sorts by present data, too). Among
/// tasks that miss nothing the highest priority is first. Tasks that miss something come in the order of the flow,
/// which also decides what leaves: in another order, data would leave just before its use. No task waits while more
/// than `kPatience` others get memory. Only a few kernels have memory pinned at a time (`limit`), so that the choice is
/// made late, when the present data is known, and little memory is pinned.
///
/// The data used last leaves first (Belady), by the submitted tasks: first the data that none of them uses, the one
/// unused for longest before the others, then the one whose next task is furthest in the flow. Replicas with a valid
/// copy elsewhere, or without a value, are dropped. The only valid replica is moved (`Move`) first: from a device to
/// main memory, or to the storage node if main memory has no room; from main memory to the storage node.
///
/// Scratch memory counts as data does, from the reservation of its task to the task's end.
///
/// A budget is what a node is expected to have. When the node allocates less, the budget shrinks below what is charged
/// at that time (`wait_again`): the task gives back its memory and waits as others do, so that data leaves for it, or
/// it fails with the numbers if nothing else can leave. Each failure shrinks the budget, so a task does not wait for
/// ever. A budget that has shrunk does not grow again.
///
/// Memory that the application keeps. The submitting thread alone ends the accesses that it holds, so while it waits, a
/// task may wait for memory that no thread releases: it is *blocked* when only such accesses pin memory on the node,
/// and the node has been served since the last task ended there. The waiting thread is told (`blocks`), and checks
/// whether it waits for a blocked task. An access comes before all waiting tasks, also before the next one.
///
/// Data beside the budget. An event that waits for something outside, such as the end of a message, may need memory
/// while it waits. If that counted, tasks would wait for the memory, and the event might wait for these tasks: on
/// another rank, which has its own budget. So such an event pins its memory beside the budget (`hold_beside`), and its
/// submitter bounds these bytes. When it has ended, its data comes into the budget: with the first task that uses it,
/// or when there is room and no task waits for it.
///
/// Threads. Any thread may call all functions, except those that say the submitting one. One mutex guards everything,
/// residences of data included; `Handle::lock` may be taken under it, never the other way round. Under it only
/// `MemoryNode::release`, `footprint`, and `on_wait` of `reserve` and `wait_again` are called.
///
/// A move and the program's tasks. While a move is under way `Handle::valid` has the bit `kMoving`. A task that writes
/// waits for its end, so no copy is torn and no bit of `valid` comes late; the task's own transfers begin after it
/// (`Memory::acquire`). A task that replaces the value makes other replicas invalid before it runs, so none of them is
/// moved meanwhile. Readers need not wait.
class Room {
 public:
  /// Work for the caller outside of the mutex, in this order.
  struct Move {
    Handle* handle = nullptr;
    NodeIndex from = 0;
    NodeIndex to = 0;
  };
  struct Granted {
    Task* task = nullptr;
    NodeIndex node = 0;
    std::string refusal;  ///< why the memory cannot be reserved; empty: it is reserved
  };
  struct Orders {
    std::deque<Move> moves;
    std::deque<Granted> granted;
    /// Bytes of data that no longer count beside the budget (`EventMemory::counted`).
    std::vector<std::size_t> settled;
    bool is_blocked = false;           ///< `blocks` has grown
    bool empty() const noexcept { return moves.empty() && granted.empty() && settled.empty() && !is_blocked; }
  };

  static constexpr unsigned kNoLimit = std::numeric_limits<unsigned>::max();
  /// The most tasks that may overtake one that waits for memory.
  static constexpr std::uint64_t kPatience = 1U << 16;

  explicit Room(Memory& memory) : memory_(memory) {}

  // --- before any data exists
  /// Limits `node` to `bytes`, and to `kernels` tasks that run there or wait for their copies.
  void limit(NodeIndex node, std::size_t bytes, unsigned kernels = kNoLimit);
  void set_storage(NodeIndex node) { storage_ = node; }

  bool is_limited(NodeIndex node) const noexcept { return node < nodes_.size() && nodes_[node].limited; }
  /// Budget of a limited node in bytes; it may shrink. Any thread.
  std::size_t budget(NodeIndex node) const noexcept { return nodes_[node].budget.load(std::memory_order_relaxed); }
  /// Whether some node is limited.
  bool any() const noexcept { return any_; }
  bool is_storage(NodeIndex node) const noexcept { return storage_ && *storage_ == node; }
  /// Bytes that the data of `task` and its scratch memory take on `node`; the program's memory counts nowhere.
  std::size_t bytes_of(Task& task, NodeIndex node) const noexcept;
  static bool counts(const Handle& handle, NodeIndex node) noexcept;
  /// Bytes that a replica of `handle` on `node` takes of its budget.
  std::size_t bytes_on(const Handle& handle, NodeIndex node) const noexcept;

  /// Notes that `task` is submitted, or will run in a replay that begins. By the submitting thread.
  void note_uses(Task& task);

  /// Notes that the program will not use the data soon, beyond the submitted tasks: it leaves before other data. `now`:
  /// it leaves when these have ended, even if no task wants the memory. A task that is submitted later takes that back.
  /// By the submitting thread.
  void note_unwanted(Handle& handle, bool now);

  /// Notes that the program has dropped the data, which lies in memory of Tandem's and is no part of other data: when
  /// its submitted tasks have ended it leaves without being moved. Until then it is *passing*. By the submitting
  /// thread.
  void note_abandoned(Handle& handle);
  /// Bytes of passing data in main memory. Any thread.
  std::size_t passing_bytes() const noexcept { return passing_bytes_.load(std::memory_order_acquire); }
  /// Sum of the budgets of main memory and of NUMA nodes that are memories of their own; 0: main memory has no budget.
  std::size_t processor_budget() const noexcept;

  /// Pins memory for all data of `task` on the limited `node` until its end, and reserves room for its scratch memory.
  /// False: the task waits, and is among the orders of this call or a later one; `on_wait` was called under the mutex.
  bool reserve(Task& task, NodeIndex node, const std::function<void()>& on_wait = {});
  /// Bytes of `node` that were charged and given up so far, for `wait_again`. Any thread.
  std::uint64_t given_up(NodeIndex node) const noexcept {
    return nodes_[node].given_up.load(std::memory_order_acquire);
  }
  /// The limited `node` has no memory for `task`, which has some pinned there, though its budget says so: the budget
  /// shrinks, and the task gives back its memory and waits as after `reserve`. `given_up_before`: the result of
  /// `given_up` before the node was asked for memory, since bytes given up later may have been missing. `on_wait` as in
  /// `reserve`.
  void wait_again(Task& task, NodeIndex node, std::uint64_t given_up_before, const std::function<void()>& on_wait = {});
  /// As `wait_again`, for a hint, which does not wait: it gives back its memory.
  void shrink(Task& hint, NodeIndex node, std::uint64_t given_up_before);
  /// Tasks that get memory at once, or not at all.
  enum class AtOnce : std::uint8_t {
    /// A hint: its data may take free memory, or that of replicas that are valid elsewhere, too, and are used later;
    /// nothing while a task waits for memory there.
    hint,
    /// An event that reads its one datum: if its value is there. Nothing is copied, and nothing leaves.
    valid,
    /// A task that will run after one that has memory pinned there and waits for nothing any more: it may take free
    /// memory. It ends without waiting, so it does not count among the kernels. While any task waits for memory there,
    /// it gets none, since what the next task needs would stay pinned for longer.
    behind,
  };
  /// As `reserve`, without waiting. False: nothing has changed.
  bool reserve_at_once(Task& task, NodeIndex node, AtOnce terms);
  /// Pins memory for the one datum of `event`, which replaces its value, on the limited `node` beside the budget; its
  /// bytes within the budget become free for others. With `EventMemory::none` the datum keeps its memory. False: the
  /// datum is being moved, and the event must first wait for the end of that.
  bool hold_beside(Task& event, NodeIndex node);
  /// Notes that `task`, which worked on `node`, has ended. True: its memory there is free, and the caller must call
  /// `go_on`, maybe later: tasks that its end makes ready may then get the memory before others.
  bool end(Task& task, NodeIndex node);
  void go_on(NodeIndex node);
  /// Releases the pinned memory of `task` on `node`, since it will work elsewhere.
  void give_back(Task& task, NodeIndex node);

  /// Keeps what `event`, with pinned memory on the limited `node`, has written there until `let_go`, also beyond its
  /// end: the program's event releases it later than it makes it readable. Kept data waits for no memory. Returns the
  /// data, for `let_go`.
  std::vector<Handle*> keep_written(const Task& event, NodeIndex node);
  void let_go(const std::vector<Handle*>& kept, NodeIndex node);

  /// Pins the replica on `node` as the source of a copy, until `end_reading`.
  void begin_reading(Handle& handle, NodeIndex node);
  void end_reading(Handle& handle, NodeIndex node);

  /// The application holds `access` on `node` from now on, or, with `is_held` false, no longer, before its end. By the
  /// submitting thread.
  void note_held(const Task& access, NodeIndex node, bool is_held);
  /// Counter that grows when tasks are blocked, or are still so after a change. Written under the mutex before the
  /// submitting thread is woken; a thread that reads a new number finds these tasks with `blocked`. Any thread.
  const std::atomic<std::uint64_t>& blocks() const noexcept { return blocks_; }
  /// The blocked tasks. They begin no sooner than the application releases an access.
  std::vector<const Task*> blocked();
  /// Text for messages: that `task` waits for memory, and what keeps it; empty: it does not wait.
  std::string why_waits(Task& task);

  struct EndedMove {
    Link* waiting = nullptr;  ///< tasks that waited for the move's end
    bool is_last = false;     ///< the data is gone: the caller frees its replicas, and the reference that `forget` took
  };
  /// Notes that the move of `handle` has ended. `failure`: why it has failed; none: the data has arrived.
  EndedMove end_move(Handle& handle, const std::optional<std::string>& failure);
  /// Whether the value is being moved to main memory, or is only elsewhere, so that such a move may begin.
  bool may_come_home(Handle& handle);

  /// Stops counting the replicas of `handle`. True: the caller frees them; false: the handle is kept until its move has
  /// ended.
  bool forget(Handle& handle);
  /// Stops moves: none ends any more, and none begins. Returns the data that `forget` has left to moves.
  std::vector<Handle*> stop();

  /// Returns and clears the work for the caller; empty: none.
  Orders take_orders();

  /// The mutex, which also guards the decisions of `fetch` about a source.
  std::mutex& mutex() noexcept { return mutex_; }

  /// Charged bytes of `node`. For tests and messages, at rest.
  std::size_t used(NodeIndex node);
  /// The most bytes that were beside the budget of `node` at a time.
  std::size_t most_beside(NodeIndex node);
  /// Checks that the structures agree. At any time.
  bool check_invariants(NodeIndex node);

 private:
  struct Candidate {
    std::uint64_t next_use = 0;
    std::uint64_t last_use = 0;
    Handle* handle = nullptr;
    /// Order in which candidates leave: the first one leaves first.
    bool operator<(const Candidate& other) const noexcept {
      if (next_use != other.next_use) return next_use > other.next_use;
      if (last_use != other.last_use) return last_use < other.last_use;
      if (handle->number != other.handle->number) return handle->number < other.handle->number;  // the same in each run
      // Copies of one datum.
      if (handle->copy_number != other.handle->copy_number) return handle->copy_number < other.handle->copy_number;
      return handle < other.handle;
    }
  };
  struct Sooner {
    bool operator()(const WaitingTask* a, const WaitingTask* b) const noexcept;
  };
  struct Node {
    bool limited = false;
    std::atomic<std::size_t> budget{0};  ///< written under the mutex
    std::size_t first_budget = 0;        ///< budget before it has shrunk
    unsigned most_kernels = kNoLimit;
    std::size_t used = 0;            ///< charged bytes
    std::size_t leaving = 0;         ///< charged bytes that are being moved away
    /// Sum of the bytes that were charged and given up; written under the mutex.
    std::atomic<std::uint64_t> given_up{0};
    std::string why_stuck;           ///< why the last move from there failed; empty: none failed
    unsigned holders = 0;            ///< tasks, transfers and kept events with pins
    unsigned kernels = 0;            ///< holders that a worker runs
    unsigned held = 0;               ///< holders that are accesses of the application
    bool is_due = false;             ///< a task has ended there, and the node has not been served since (`go_on`)
    std::set<Candidate> candidates;  ///< replicas that may leave
    std::uint64_t granted = 0;       ///< tasks that have got memory
    std::uint64_t came = 0;          ///< tasks that have waited
    std::map<std::uint64_t, WaitingTask> waiting;  ///< tasks that wait for memory, by `number`; without the next one
    std::set<WaitingTask*, Sooner> order;  ///< the waiting tasks, the one to choose first at the front
    Task* next = nullptr;            ///< task that gets memory next
    std::vector<char> next_pins;     ///< by access of `next`: pinned already
    std::size_t beside = 0;          ///< bytes beside the budget
    std::size_t most_beside = 0;     ///< largest value of `beside`
    /// Data there whose event has ended: it comes into the budget as soon as there is room.
    std::deque<Handle*> arrived;
  };

  // All functions below are called under the mutex.
  void pin(Handle& handle, NodeIndex node);
  void unpin(Handle& handle, NodeIndex node);
  void list(Handle& handle, NodeIndex node);
  void unlist(Handle& handle, NodeIndex node);
  void use_changed(Handle& handle);
  void leave_if_evicted(Handle& handle);
  void count_passing(Handle& handle);
  std::size_t missing(Task& task, NodeIndex node);
  std::size_t scratch_bytes(Task& task, NodeIndex node) const noexcept;
  void hold(Task& task, NodeIndex node, RoomState::Memory memory = RoomState::Memory::pinned);
  void unhold(Task& task, NodeIndex node);
  void end_hold(Task& task, NodeIndex node);
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
  std::uint64_t ended_ = 0;  ///< accesses that have ended
  std::atomic<std::size_t> passing_bytes_{0};  ///< written under the mutex
  std::atomic<std::uint64_t> blocks_{0};       ///< written under the mutex
  std::vector<Handle*> moving_;
  Orders orders_;
};

}  // namespace tandem::runtime
