// tandem/runtime/task/task.hpp: a task of the runtime: one cache line of state, then its accesses, then its values.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <typeinfo>

#include "tandem/base/sealed_list.hpp"
#include "tandem/model/tasks/footprint.hpp"
#include "tandem/runtime/data/access.hpp"

namespace tandem::runtime {

class Handle;
class CodeletCore;
struct WorkerGroup;
struct Task;
struct KernelCall;

/// The most bytes of a task with its accesses and values; a task that names lists of data may have more.
inline constexpr std::size_t kMaxTaskBytes = 4096;
/// The most accesses of a task that names lists of data.
inline constexpr unsigned kMaxAccesses = 4096;

/// Position in the sequential flow, from 1; never used twice. It is also the generation of a pooled task.
using TaskId = std::uint64_t;

/// An edge of the graph, as an entry in the predecessor's list of successors. It lives in the successor (in an access
/// slot, or in an extra link), and is read by the predecessor's end only before that end counts the successor down.
struct Link {
  Link* next = nullptr;

  void lead_to(Task* task, bool explicitly = false) noexcept {
    bits_ = reinterpret_cast<std::uintptr_t>(task) | static_cast<std::uintptr_t>(explicitly);
  }
  Task* task() const noexcept { return reinterpret_cast<Task*>(bits_ & ~std::uintptr_t{1}); }
  /// True: the user asked for this order, so the successor is cancelled when the predecessor fails, whatever data they
  /// use.
  bool explicitly() const noexcept { return (bits_ & 1) != 0; }

 private:
  std::uintptr_t bits_ = 0;
};

/// State of a commuting access, from the moment when its task waits for no other until it is inside the turnstile of
/// the data.
struct Turn {
  Task* child;                ///< used by the turnstile (`base::Turnstile`)
  std::uint64_t number : 48;  ///< used by the turnstile
  /// Index plus one of the access whose turnstile the task enters next; 0: this is the last one.
  std::uint64_t next : 16;
};
static_assert(kMaxAccesses < 1U << 16);

/// One access of a task: the handle, with the mode in its low bits (handles are aligned to 64 bytes), and the link of
/// the edge that this access most often needs. While the task fetches data the link queues it at the replica. The task
/// has no turnstile to enter while its links are in use, so `turn` then shares the memory of the link. A thread that
/// looks at links of another thread's tasks uses `visit_successors`.
class AccessSlot {
 public:
  void set(Handle* handle, AccessMode mode) noexcept {
    bits_ = reinterpret_cast<std::uintptr_t>(handle) | static_cast<std::uintptr_t>(mode);
  }
  Handle* handle() const noexcept { return reinterpret_cast<Handle*>(bits_ & ~kModeMask); }
  AccessMode mode() const noexcept { return static_cast<AccessMode>(bits_ & 7); }
  /// A second access of one task to one handle: it gets the data, and the first access carries the dependency of both.
  void mark_alias() noexcept { bits_ |= kAlias; }
  /// Replaces the data, with the same mode.
  void rebind(Handle* handle) noexcept {
    bits_ = reinterpret_cast<std::uintptr_t>(handle) | (bits_ & kModeMask);
  }
  bool alias() const noexcept { return (bits_ & kAlias) != 0; }

  union {
    Link link = {};
    Turn turn;
  };

 private:
  static constexpr std::uintptr_t kAlias = 8;
  static constexpr std::uintptr_t kModeMask = 63;
  std::uintptr_t bits_ = 0;
};
static_assert(sizeof(AccessSlot) == 24);

/// Kind of a node of the task graph.
enum class TaskKind : std::uint8_t {
  kernel,       ///< a codelet that a worker runs
  join,         ///< no work: stands for a group of predecessors
  event,        ///< starts something when ready, and is completed from outside later
  application,  ///< the application's own access: granted when ready, until it is released
};

/// Functions that the front end generates for each combination of codelet and arguments.
struct TaskOps {
  /// Runs implementation `call.implementation` of the codelet on the task's values and data. May throw what the kernel
  /// throws.
  void (*invoke)(KernelCall& call) = nullptr;
  /// Destroys the values; null when there is nothing to destroy.
  void (*destroy_values)(Task& task) noexcept = nullptr;
  /// Copies the values of `from` to `to`: constructs them, or replaces those that are there. Null: they cannot be
  /// copied.
  void (*copy_values)(Task& from, Task& to, bool construct) = nullptr;
  /// Called instead of `invoke` when the task does not run after all; null: there is nothing to do.
  void (*skip)(Task& task) noexcept = nullptr;
  /// True: the task only combines values that exist, so it runs in a cancelled flow, too.
  bool always = false;
  const std::type_info* value_types = nullptr;  ///< type of the tuple of values
  std::uint32_t value_bytes = 0;
  std::uint32_t value_alignment = 1;
  /// True: the task moves data for other tasks, and is none of the program's. It is not emulated, and not counted when
  /// it is cancelled.
  bool serves = false;
};

/// Facts that the program gives about a task for traces. They do not change how the task runs.
struct TaskFacts {
  static constexpr std::int32_t kNoIteration = INT32_MIN;  ///< the task belongs to no iteration

  std::int32_t iteration = kNoIteration;  ///< iteration of the program's outer loop
  double flops = 0;                       ///< floating-point operations of the kernel; 0: not known
  std::uint64_t tag = 0;                  ///< a number of the program's own
  std::string parameters;                 ///< a text of the program's own
};

/// The placement of a task by a placing policy. Belongs to `Placer`.
struct PlacedTask {
  static constexpr unsigned kNowhere = UINT32_MAX;  ///< no worker, or no kind

  unsigned worker = kNowhere;   ///< worker that is charged with the task
  std::int32_t priority = 0;    ///< priority by which it was charged
  std::int64_t charged_ns = 0;  ///< time charged to that worker: the kernel, and a wait for copies before it
  std::int64_t kernel_ns = 0;   ///< duration of the kernel in `charged_ns`; 0: not known
  model::Footprint footprint = {};  ///< footprint of the data
  unsigned kind = kNowhere;     ///< number of its codelet and footprint among `Placer`'s
  float demand = 0;             ///< demand for memory on a core, by which it was charged; see `MemoryLoad`
  bool is_present = true;       ///< the worker is no caller that does not wait
};

/// What a task has of a memory with a budget. `Room` changes it.
struct RoomState {
  /// From nothing to memory that is pinned.
  enum class Memory : std::uint8_t {
    none,
    asked,   ///< an event that asks for its memory has done so
    pinned,  ///< its data is pinned on its node
    behind,  ///< as `pinned`, but it does not count among the kernels; see `Room::AtOnce`
    beside,  ///< its data is pinned, and counts beside the budget
  };
  Memory memory : 4 = Memory::none;  ///< what it has
  bool is_noted : 1 = false;  ///< the task is among the upcoming uses of its data

  bool is_clear() const noexcept { return memory == Memory::none && !is_noted; }  ///< nothing is known of it
  /// Whether its data is pinned, on whatever terms.
  bool is_pinned() const noexcept { return memory >= Memory::pinned; }
  /// Whether its pinned data counts within the budget.
  bool is_pinned_within_budget() const noexcept { return is_pinned() && memory != Memory::beside; }
};
static_assert(sizeof(RoomState) == 1);

/// How the budget of a memory counts an event's data; see `Room::hold_beside`.
enum class EventMemory : std::uint8_t {
  within,   ///< within the budget, as for tasks
  beside,   ///< beside the budget
  counted,  ///< beside the budget, and `Memory::on_settled` is called when it no longer counts there
  none,     ///< the event frees existing memory, and gets none
  later,    ///< the event gets no memory until `ExternalEvents::write_in` has decided where it writes
};

/// Parts that few tasks have, kept apart so that the others stay small. Owned by the task, reused with it.
struct TaskExtra {
  std::string name;                               ///< replaces the codelet's name
  void (*on_ready)(Task&, void*) = nullptr;  ///< event and application tasks: called when every predecessor has ended
  /// Event tasks: called when a predecessor's kernel begins, which is expected to end in so many ns. Null: not needed.
  void (*on_expected)(void* context, std::int64_t in_ns) = nullptr;
  void* context = nullptr;
  std::function<void()> callback;                 ///< called after a kernel's successful end, before successors start
  struct LinkChunk* links = nullptr;              ///< edges beyond one per access
  WorkerGroup* group = nullptr;                   ///< restricted tasks: the workers that can run it
  PlacedTask placed;                              ///< used with a placing policy
  std::uint32_t depth = 0;                        ///< used with a policy by depth: see `Submission::note_depth`
  unsigned node = 0;                              ///< event and application tasks: the memory to which their data comes
  bool is_hint = false;  ///< event tasks: the event only brings its data there, if there is room
  bool asks = false;  ///< event tasks, of data with a budget: the event gets memory only after `ExternalEvents::ask`
  std::uint32_t sources = 0;  ///< event tasks that only read one datum: see `ExternalEvents::may_read_in`
  EventMemory memory = EventMemory::within;       ///< event tasks
  TaskFacts facts;                                ///< used while tasks are recorded, now or at a replay

  /// Copies the options of a model from which the task is made.
  void take_options(const TaskExtra& model) {
    name = model.name;
    callback = model.callback;
    facts = model.facts;
  }
};

class RecordedGraph;

/// State that all tasks of one replay share.
struct ReplayState {
  TaskId base = 0;      ///< position in the flow of the first task
  std::uint32_t depth = 0;  ///< difference between the depths of its tasks now and when they were recorded
  Task* end = nullptr;  ///< the node that follows all others
  Task* const* tasks = nullptr;    ///< by index in the recording
  RecordedGraph* graph = nullptr;  ///< null once it is gone
};

/// The part of a task that belongs to a recorded graph: its successors never change.
struct RecordedPart {
  Task** successors = nullptr;
  std::uint32_t successor_count = 0;
  std::uint32_t explicit_from = 0;     ///< successors from this index on were asked for by `after`
  /// `waits` at the start of each replay, with the guard of tasks that have live predecessors.
  std::int32_t predecessor_count = 0;
  std::uint32_t index = 0;             ///< index in the recording
  const ReplayState* replay = nullptr;
  bool boundary = false;  ///< handles refer to the task, so live tasks may depend on it through `successors`
};

/// A node of the task graph.
///
/// Ownership and threads. The submitting thread takes it from the pool, fills it and enters it into the graph (`Flow`).
/// When `waits` falls to zero it belongs to the thread that made it fall, then to the scheduler, then to the worker
/// that runs it. This worker ends it: seals `successors`, counts the successors down, and hands the task back to the
/// submitting thread. Only that thread reuses it. Therefore the submitting thread checks a `TaskRef` (pointer and id)
/// by comparing ids, without any atomic operation: a different id means that the task ended, and that its end was seen.
///
/// `waits`: unfinished predecessors, plus a guard while the task is being entered. The thread that brings it to zero
/// (acquire-release, so that all predecessors' effects are seen) makes the task ready.
struct Task {
  base::SealedList<Link> successors;
  Task* next = nullptr;  ///< in a queue, an inbox, or the pool
  TaskId id = 0;
  const TaskOps* ops = nullptr;
  CodeletCore* codelet = nullptr;
  TaskExtra* extra = nullptr;
  std::atomic<std::int32_t> waits{0};
  std::int32_t priority = 0;
  std::uint16_t access_count = 0;
  std::uint8_t size_class = 0;
  TaskKind kind : 2 = TaskKind::kernel;
  bool special : 1 = false;     ///< takes the long path: it has commute, reduce or scratch accesses, or all do
  bool restricted : 1 = false;  ///< not all workers can run it
  bool chooses : 1 = false;     ///< its codelet has several implementations for one kind of worker
  bool recorded : 1 = false;    ///< belongs to a recorded graph; `recording` follows the values
  bool budgeted : 1 = false;    ///< gets its memory when it is ready, before a worker takes it; see `Room`
  /// It failed or is cancelled; predecessors write it before they count `waits` down.
  std::atomic<bool> poisoned{false};
  RoomState room;                     ///< what it has of a memory with a budget
  std::uint16_t progress = 0;         ///< index plus one of the access whose turnstile it has entered last
  // --- second line
  SourceLine where;
  RecordedPart* recording = nullptr;
  // followed by AccessSlot[access_count], then the values

  /// Its entry among the tasks that wait for a turnstile.
  Turn& place_at_turnstile() noexcept { return accesses()[progress - 1].turn; }

  AccessSlot* accesses() noexcept { return reinterpret_cast<AccessSlot*>(this + 1); }
  const AccessSlot* accesses() const noexcept { return reinterpret_cast<const AccessSlot*>(this + 1); }

  /// Bytes from the start of the task to its values.
  /// `alignment` is a power of two.
  static constexpr std::size_t value_offset(std::size_t access_count, std::size_t alignment) noexcept {
    const std::size_t end = sizeof(Task) + access_count * sizeof(AccessSlot);
    return (end + alignment - 1) & ~(alignment - 1);
  }
  void* values() noexcept {
    return reinterpret_cast<char*>(this) + value_offset(access_count, ops != nullptr ? ops->value_alignment : 1);
  }
};
static_assert(offsetof(Task, where) == 64, "what every task touches fits one cache line");
static_assert(sizeof(Task) == 88);

/// Position of a task in the flow; for a recorded task, that of the present replay.
inline TaskId flow_position(const Task& task) noexcept {
  return task.recorded && task.recording != nullptr ? task.recording->replay->base + task.recording->index : task.id;
}

/// Length of the longest chain of tasks that ends with this one, by its data, as far as `Submission::note_depth` counts
/// it; for a recorded task in the present replay. The task must have a `TaskExtra`.
inline std::uint32_t flow_depth(const Task& task) noexcept {
  return task.extra->depth + (task.recorded && task.recording != nullptr ? task.recording->replay->depth : 0);
}

/// A reference to a task, kept by the submitting thread as long as it likes, also after the task has ended. Empty: the
/// task runs on another rank, or is behind the end of a cancelled flow.
///
/// `submit` inside a recording returns a reference to a recorded task, which never runs itself. Such a reference names
/// the recording and an index in it, and its `task` is not looked at unless the recording is known to exist.
struct TaskRef {
  Task* task = nullptr;  ///< null: empty
  TaskId id = 0;         ///< id of the task; another task may have the memory by now

  /// Makes a reference to the task of index `index` in recording number `recording`.
  static TaskRef recorded(Task* task, std::uint32_t recording, std::uint32_t index) noexcept {
    return {task, kRecorded | TaskId{recording} << 32 | index};
  }
  /// Whether it refers to a task of a recording.
  bool is_recorded() const noexcept { return (id & kRecorded) != 0; }
  /// Whether it refers to a task of recording number `recording`.
  bool is_of_recording(std::uint32_t recording) const noexcept {
    return is_recorded() && (id & ~kRecorded) >> 32 == recording;
  }
  /// Index of a recorded task in its recording.
  std::uint32_t recorded_index() const noexcept { return static_cast<std::uint32_t>(id); }

 private:
  static constexpr TaskId kRecorded = TaskId{1} << 63;  // no position of a flow is as large
};

/// True when the referenced task has ended, and for an empty reference. By the submitting thread only.
inline bool has_ended(const TaskRef& ref) noexcept {
  return ref.task == nullptr || ref.task->id != ref.id || ref.task->successors.sealed();
}

/// One replay of a graph, from `Runtime::replay`: the reference to its end, for waits and `TaskOptions::after`.
/// `Runtime::wait(replay, task)` waits for one task of the replay. A value; it may outlive the graph.
struct Replay : TaskRef {
  std::uint32_t recording = 0;  ///< number of the graph's recording
  TaskId first = 0;             ///< position of its first task in the flow; 0 on several ranks
};

}  // namespace tandem::runtime
