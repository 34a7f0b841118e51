// tandem/trace/event.hpp: the events: name, category, fields. The one source of metadata, readers and documents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tandem::trace {

/// Groups of events, for selections.
enum class Category : std::uint8_t {
  about,      ///< descriptions: names, source lines, clocks. Always on, without stamps of their own
  task,       ///< the life of tasks
  sched,      ///< queues of ready tasks
  worker,     ///< what workers do
  data,       ///< memory and transfers between the memories of a machine
  comm,       ///< messages and the progress engine
  broadcast,  ///< bags of recipients, trees, forwarding
  dist,       ///< data that the flow sends from rank to rank
  flow,       ///< submission, throttling, waiting
  tracer,     ///< the tracer itself
  user,       ///< the program's own events
};
inline constexpr std::size_t kCategories = 11;
std::string_view name_of(Category category) noexcept;

/// The layout of a field in a record: little-endian, packed, without padding.
enum class Field : std::uint8_t {
  u8, u16, u32, u64, i16, i32, i64, f64,
  text,   ///< UTF-8 with a zero byte at the end
  list16,  ///< u16 values; their number is in an earlier u8 field called `NAME_count`
  list32,  ///< u32 values, counted like those of list16
};

struct FieldSpec {
  std::string_view name = {};
  Field field = Field::u32;
};

/// The event types. Their numbers are part of the format: new ones go to the end, and no number is used again.
enum class Type : std::uint16_t {
  none = 0,  ///< ends the records of a live packet
  // about: descriptions
  actor = 1,
  site = 2,
  data = 3,
  name = 4,
  task_name = 5,
  clock_point = 6,
  option = 7,
  // task
  task_submitted = 10,
  task_accesses = 11,
  task_deps = 12,
  task_ready = 13,
  task_started = 14,
  task_ended = 15,
  task_failed = 16,
  task_cancelled = 17,
  task_replayed = 18,
  task_submitted_wide = 19,
  // sched
  task_pushed = 20,
  task_popped = 21,
  task_stolen = 22,
  // worker
  worker_state = 25,
  // data
  data_allocated = 30,
  data_freed = 31,
  transfer_started = 32,
  transfer_ended = 33,
  data_numa = 34,
  // comm
  send_posted = 40,
  receive_posted = 41,
  send_announced = 42,
  send_granted = 43,
  message_sent = 44,
  message_arrived = 45,
  message_released = 46,
  packet_sent = 47,
  packet_received = 48,
  progress_state = 49,
  message_failed = 50,
  // broadcast
  mcast_posted = 55,
  mcast_routed = 56,
  mcast_forwarded = 57,
  mcast_declined = 58,
  mcast_recipient = 59,
  bag_opened = 60,
  bag_joined = 61,
  bag_closed = 62,
  // dist
  data_sent = 65,
  data_expected = 66,
  data_received = 67,
  data_dropped = 68,
  data_migrated = 69,
  // flow
  submission_throttled = 75,
  submission_resumed = 76,
  wait_began = 77,
  wait_ended = 78,
  flow_cancelled = 79,
  // tracer
  events_lost = 85,
  tracer_waited = 86,
  flush_began = 87,
  flush_ended = 88,
  selection_changed = 89,
  quiet_began = 90,
  quiet_ended = 91,
  // user
  mark = 95,
  counter = 96,
  span_began = 97,
  span_ended = 98,
  declared = 99,  ///< in a selection: all types that the program has declared
  // task, continued
  task_iteration = 100,
  task_flops = 101,
  task_note = 102,
  // task and sched: records that stand for several of the events above (read/record_events.hpp)
  task_ran = 103,
  task_ran_popped = 104,
  task_ran_stolen = 105,
  task_ran_kept = 106,
  task_released = 107,
  task_submitted_next = 108,
  task_submitted_alike = 109,
  // about, data and task, continued
  codelet_colour = 110,
  data_staging = 111,
  task_counters = 112,
  task_expected = 113,
  // records that stand for several events, continued
  task_submitted_next_wide = 114,
  task_submitted_alike_wide = 115,
  // task, continued
  task_implementation = 116,
  // worker, continued
  energy = 117,
  // data, continued
  data_page_locked = 118,
  // task, continued
  task_id = 119,
  // not a type: marks a header with a full stamp
  extended = 127,
};
inline constexpr std::size_t kTypes = 128;
/// Types that the program has declared have the numbers from here on, in the order of their declaration (declared.hpp).
/// Their records have extended headers, since 7 bits do not hold the number.
inline constexpr std::size_t kFirstDeclared = 128;
inline constexpr std::size_t kMostDeclared = 256;

/// Whether records of this type stand for events of other types: writers choose them, readers and selections do not
/// know them.
constexpr bool is_compound(Type type) noexcept {
  return (type >= Type::task_ran && type <= Type::task_submitted_alike) || type == Type::task_submitted_next_wide ||
         type == Type::task_submitted_alike_wide;
}
/// `task.submitted_next`, with entries of either width.
constexpr bool is_next(Type type) noexcept {
  return type == Type::task_submitted_next || type == Type::task_submitted_next_wide;
}
/// `task.submitted_alike`, with entries of either width.
constexpr bool is_alike(Type type) noexcept {
  return type == Type::task_submitted_alike || type == Type::task_submitted_alike_wide;
}

struct EventSpec {
  Type type = Type::none;
  Category category = Category::about;
  std::string_view name = {};  ///< `category.event`, in metadata and in selections
  std::array<FieldSpec, 8> fields = {};
  std::string_view help = {};
};

/// The field `kind` of `about.actor`.
enum class ActorKind : std::uint8_t { catalogue, submitter, worker, progress, others, flusher, user, callbacks };
std::string_view name_of(ActorKind kind) noexcept;

/// The field of `worker_state`. Between `task.started` and `task.ended` the worker executes, and its state is not
/// changed.
enum class WorkerState : std::uint8_t {
  absent,       ///< the caller's worker, outside of waits
  scheduling,   ///< looks for a task, or prepares one
  polling,      ///< has found none, and polls
  sleeping,
  fetching,     ///< brings a task's data to its memory
  progressing,  ///< polls the network
  holding,      ///< waits for an urgent task although another is ready
};
inline constexpr std::size_t kWorkerStates = 7;
std::string_view name_of(WorkerState state) noexcept;

/// The field of `progress_state`.
enum class ProgressState : std::uint8_t { working, polling, sleeping };
std::string_view name_of(ProgressState state) noexcept;

/// The field `kind` of `about.name`.
enum class NameKind : std::uint8_t {
  mark, counter, span,
  node,     ///< a memory node: its number, a blank, and its name
  channel,  ///< its hash, a blank, and its name
  any,  ///< a mark, counter or span that the program has not used yet
  energy,  ///< a counter of energy: the workers that it covers, such as 0-3,7, a blank, and its name
};
std::string_view name_of(NameKind kind) noexcept;

/// The field `stage` of `data.staging`: what keeps a task from its memory while some memory has a budget.
enum class StagingState : std::uint8_t {
  memory,  ///< it waits for room within the budget
  data,    ///< it has room, and waits for its data: for copies, or until data has left
  done,    ///< all data is there; the task waits only for its worker
};
inline constexpr std::size_t kStagingStates = 3;
std::string_view name_of(StagingState state) noexcept;

/// The field `kind` of `about.clock_point`.
enum class ClockPointKind : std::uint8_t {
  barrier,     ///< a barrier that all ranks left at one instant, for which they waited (thesis 3.4.2)
  background,  ///< the running clock synchronisation's estimate
};

/// An entry of `task.submitted`'s accesses: the data's number times 8, plus the mode (`AccessMode`: 0 read, 1 write, 2
/// read_write, 3 commute, 4 reduce, 5 scratch).
constexpr std::uint32_t access_word(std::uint32_t data, unsigned mode) noexcept { return data << 3 | mode; }
constexpr std::uint32_t data_of_access(std::uint32_t word) noexcept { return word >> 3; }
constexpr unsigned mode_of_access(std::uint32_t word) noexcept { return word & 7; }

/// Values of the field `length` of `task.ran` and similar records: one more than the ticks from the start to the end of
/// the kernel. 0: it runs, or `task.ended` has its end.
constexpr std::uint32_t kNoLength = 0;
constexpr std::uint64_t kLongestRun = UINT32_MAX - 1;  ///< ticks
/// A value of the field `pushed_to` of `task.submitted_next`: the submitter has put the task into no queue.
constexpr std::uint16_t kNotPushed = UINT16_MAX - 1;

/// On several ranks the id of a task is 2^this times the position of its operation in the flow, plus a number below
/// that for the nodes of a rank for one operation. People see the position.
inline constexpr unsigned kIdBitsBelowPosition = 10;

namespace internal {

using enum Field;

// Numbers: `task` is the low 32 bits of the task's id; ids grow with submission, and `task.id` reports long steps, so a
// reader can reconstruct the rest. `data` counts registrations of the rank. The session assigns `site`, `name` and
// `actor`, and its catalogue describes them. `request` counts the operations posted at the rank's endpoint (low 32
// bits). `peer` and `rank` are ranks. Sizes are in bytes.
inline constexpr EventSpec event_table[] = {
    {Type::actor, Category::about, "about.actor",
     {{{"actor", u32}, {"kind", u8}, {"index", u16}, {"core", i32}, {"name", text}}},
     "an actor with its own stream; index: of the worker; core: the one that it is bound to, or -1"},
    {Type::site, Category::about, "about.site", {{{"site", u16}, {"line", u32}, {"codelet", text}, {"file", text}}},
     "a place in the program that submits tasks of a codelet"},
    {Type::data, Category::about, "about.data",
     {{{"data", u32}, {"owner", u32}, {"bytes", u64}, {"rows", u32}, {"cols", u32}, {"site", u16}, {"name", text}}},
     "a piece of data that was registered; owner: its rank, or 4294967295 for each rank; site: where, without a codelet"},
    {Type::name, Category::about, "about.name", {{{"name", u32}, {"kind", u8}, {"text", text}}},
     "a name of a mark, a counter or a span, or of any of them; of a channel: its number, a space, its name"},
    {Type::task_name, Category::about, "about.task_name", {{{"task", u32}, {"text", text}}}, "a task with its own name"},
    {Type::clock_point, Category::about, "about.clock_point",
     {{{"kind", u8}, {"local_ns", i64}, {"reference_ns", i64}, {"error_ns", i64}, {"late_ns", i64}}},
     "the reference's clock showed reference_ns when this rank's showed local_ns, give or take error_ns"},
    {Type::option, Category::about, "about.option", {{{"name", text}, {"value", text}, {"source", text}}},
     "a value of the run's configuration"},

    {Type::task_submitted, Category::task, "task.submitted",
     {{{"task", u32}, {"priority", i32}, {"site", u16}, {"accesses_count", u8}, {"deps_count", u8}, {"accesses", list16},
       {"deps", list16}}},
     "submitted; accesses: data * 8 + mode; deps: this task's number minus that of each predecessor, modulo 2^32. "
     "Lists of more than 255 "
     "continue in task.accesses and task.deps"},
    {Type::task_accesses, Category::task, "task.accesses", {{{"task", u32}, {"access", u32}}}, "one more access of a task"},
    {Type::task_deps, Category::task, "task.deps", {{{"task", u32}, {"predecessor", u32}}}, "one more predecessor"},
    {Type::task_ready, Category::task, "task.ready", {{{"task", u32}}},
     "its last predecessor has ended, through this actor; a task without predecessors at its submission has no such event"},
    {Type::task_started, Category::task, "task.started", {{{"task", u32}}}, "its kernel begins, on this worker"},
    {Type::task_ended, Category::task, "task.ended", {{{"task", u32}}}, "its kernel has ended"},
    {Type::task_failed, Category::task, "task.failed", {{{"task", u32}}}, "its kernel has thrown; task.ended follows"},
    {Type::task_cancelled, Category::task, "task.cancelled", {{{"task", u32}}},
     "does not run, because of a failure or because the flow has ended"},
    {Type::task_replayed, Category::task, "task.replayed", {{{"graph", u32}, {"task", u32}, {"count", u32}}},
     "a recorded graph was submitted: its tasks have the numbers from `task` on, and are like those of its first replay, which were "
     "described one by one; a changed graph gets another number"},
    {Type::task_submitted_wide, Category::task, "task.submitted_wide",
     {{{"task", u32}, {"priority", i32}, {"site", u16}, {"accesses_count", u8}, {"deps_count", u8}, {"accesses", list32},
       {"deps", list32}}},
     "like task.submitted, when a number does not fit into 16 bits"},

    {Type::task_pushed, Category::sched, "sched.pushed", {{{"task", u32}, {"worker", u16}}},
     "put into the queue of a worker; 65535: the queue that all workers share"},
    {Type::task_popped, Category::sched, "sched.popped", {{{"task", u32}}}, "taken from a queue by this worker"},
    {Type::task_stolen, Category::sched, "sched.stolen", {{{"task", u32}, {"victim", u16}}},
     "taken by this worker from the queue of the worker `victim`"},

    {Type::worker_state, Category::worker, "worker.state", {{{"state", u8}}}, "from now on this worker is in this state"},

    {Type::data_allocated, Category::data, "data.allocated", {{{"data", u32}, {"node", u16}, {"bytes", u64}}},
     "memory was allocated on a node"},
    {Type::data_freed, Category::data, "data.freed", {{{"data", u32}, {"node", u16}, {"bytes", u64}}},
     "memory was freed on a node"},
    {Type::transfer_started, Category::data,
     "data.transfer_started", {{{"data", u32}, {"from", u16}, {"to", u16}, {"bytes", u64}}},
     "a copy between memory nodes of the machine begins"},
    {Type::transfer_ended, Category::data, "data.transfer_ended", {{{"data", u32}, {"from", u16}, {"to", u16}}},
     "a copy between memory nodes has ended"},
    {Type::data_numa, Category::data, "data.numa", {{{"data", u32}, {"numa", u16}}},
     "the NUMA node, counted from 0, of its main memory, when that is released"},

    {Type::send_posted, Category::comm, "comm.send_posted",
     {{{"request", u32}, {"peer", u32}, {"channel", u32}, {"priority", i32}, {"tag", u64}, {"bytes", u64}}}, "a message was posted"},
    {Type::receive_posted, Category::comm, "comm.receive_posted",
     {{{"request", u32}, {"peer", u32}, {"channel", u32}, {"tag", u64}}},
     "a receive was posted; peer 4294967295: any; tag 18446744073709551615: any"},
    {Type::send_announced, Category::comm, "comm.send_announced", {{{"request", u32}}},
     "a large message's announcement has left"},
    {Type::send_granted, Category::comm, "comm.send_granted", {{{"request", u32}}},
     "the receiver of a large message has granted it"},
    {Type::message_sent, Category::comm, "comm.message_sent", {{{"request", u32}}}, "the last byte was given to the network"},
    {Type::message_arrived, Category::comm, "comm.message_arrived",
     {{{"request", u32}, {"peer", u32}, {"channel", u32}, {"tag", u64}, {"bytes", u64}}}, "a receive has its message"},
    {Type::message_released, Category::comm, "comm.message_released", {{{"request", u32}}}, "the program may use the buffer again"},
    {Type::packet_sent, Category::comm, "comm.packet_sent", {{{"peer", u32}, {"bytes", u32}}}, "a packet was given to a rail"},
    {Type::packet_received, Category::comm, "comm.packet_received", {{{"peer", u32}, {"bytes", u32}}}, "a packet has arrived"},
    {Type::progress_state, Category::comm, "comm.progress_state", {{{"state", u8}}},
     "from now on the progress engine is in this state"},
    {Type::message_failed, Category::comm, "comm.message_failed", {{{"request", u32}, {"outcome", u8}}},
     "a request failed: truncated, cancelled, or its peer has left or died"},

    {Type::mcast_posted, Category::broadcast, "broadcast.posted",
     {{{"request", u32}, {"channel", u32}, {"tag", u64}, {"bytes", u64}, {"recipients", u32}}},
     "a broadcast was posted; recipients: how many it has now, more may join"},
    {Type::mcast_routed, Category::broadcast, "broadcast.routed",
     {{{"request", u32}, {"tree", u8}, {"segment_bytes", u32}, {"children_count", u8}, {"children", list32}}},
     "its tree was chosen; children: those of the root. Once for each strand"},
    {Type::mcast_forwarded, Category::broadcast, "broadcast.forwarded",
     {{{"root", u32}, {"child", u32}, {"tag", u64}, {"bytes", u64}}}, "this rank begins to forward a broadcast to a child"},
    {Type::mcast_declined, Category::broadcast, "broadcast.declined", {{{"root", u32}, {"peer", u32}, {"tag", u64}}},
     "this rank has no room to forward it"},
    {Type::mcast_recipient, Category::broadcast, "broadcast.recipient", {{{"request", u32}, {"rank", u32}}},
     "a recipient of a broadcast that was posted"},
    {Type::bag_opened, Category::broadcast, "broadcast.bag_opened", {{{"bag", u32}, {"data", u32}, {"version", u32}}},
     "a version of data has a first recipient"},
    {Type::bag_joined, Category::broadcast, "broadcast.bag_joined", {{{"bag", u32}, {"rank", u32}, {"priority", i32}}},
     "another recipient of the version"},
    {Type::bag_closed, Category::broadcast, "broadcast.bag_closed", {{{"bag", u32}, {"recipients", u32}, {"request", u32}}},
     "the version is sent, by this request of the endpoint"},

    {Type::data_sent, Category::dist, "dist.sent", {{{"data", u32}, {"version", u32}, {"task", u32}, {"request", u32}}},
     "the node `task` of the graph sends a version of data"},
    {Type::data_expected, Category::dist, "dist.expected", {{{"data", u32}, {"version", u32}, {"task", u32}, {"peer", u32}}},
     "the node `task` of the graph will receive a version of data from a rank"},
    {Type::data_received, Category::dist, "dist.received", {{{"data", u32}, {"version", u32}, {"task", u32}, {"request", u32}}},
     "the node `task` of the graph has received a version of data"},
    {Type::data_dropped, Category::dist, "dist.dropped", {{{"data", u32}}}, "a received copy was dropped"},
    {Type::data_migrated, Category::dist, "dist.migrated", {{{"data", u32}, {"rank", u32}}}, "the data has a new owner"},

    {Type::submission_throttled, Category::flow, "flow.throttled", {}, "submission waits for room in the window"},
    {Type::submission_resumed, Category::flow, "flow.resumed", {}, "submission continues"},
    {Type::wait_began, Category::flow, "flow.wait_began", {}, "the program waits"},
    {Type::wait_ended, Category::flow, "flow.wait_ended", {}, "the wait of the program has ended"},
    {Type::flow_cancelled, Category::flow, "flow.cancelled", {{{"task", u32}}}, "the flow ends after this task"},

    {Type::events_lost, Category::tracer, "tracer.lost", {{{"events", u64}}},
     "number of this actor's events that were lost before this one"},
    {Type::tracer_waited, Category::tracer, "tracer.waited", {{{"ns", u64}}}, "from this stamp on the actor waited for a buffer, for this time"},
    {Type::flush_began, Category::tracer, "tracer.flush_began", {{{"actor", u32}, {"bytes", u32}}},
     "the flusher writes a buffer of an actor"},
    {Type::flush_ended, Category::tracer, "tracer.flush_ended", {{{"actor", u32}}}, "the flusher has written the buffer"},
    {Type::selection_changed, Category::tracer, "tracer.selection", {{{"low", u64}, {"high", u64}}},
     "the types that are recorded from now on, one bit each; recorded whenever any type is on"},
    {Type::quiet_began, Category::tracer, "tracer.quiet_began", {}, "a region of interest begins: nothing is flushed"},
    {Type::quiet_ended, Category::tracer, "tracer.quiet_ended", {}, "a region of interest has ended"},

    {Type::mark, Category::user, "user.mark", {{{"name", u32}, {"value", f64}}}, "the program was here"},
    {Type::counter, Category::user, "user.counter", {{{"name", u32}, {"value", f64}}},
     "from now on a number of the program has this value"},
    {Type::span_began, Category::user, "user.span_began", {{{"name", u32}}}, "a part of the program begins on this actor"},
    {Type::span_ended, Category::user, "user.span_ended", {{{"name", u32}}}, "a part of the program ends on this actor"},
    {Type::declared, Category::user, "user.event", {{{"type", u32}}},
     "the program has declared a type of events, which rank.json describes; in a selection: all events of such types"},

    {Type::task_iteration, Category::task, "task.iteration", {{{"iteration", i32}}},
     "the tasks that this actor submits from now on belong to this iteration; -2147483648: to none. Holds until the next one, or until "
     "events of this actor are lost. Of a replay: the tasks that had that of the first replay, there"},
    {Type::task_flops, Category::task, "task.flops", {{{"site", u16}, {"flops", f64}}},
     "the tasks that this actor submits at the site from now on compute so many floating-point operations each; holds as task.iteration"},
    {Type::task_note, Category::task, "task.note", {{{"task", u32}, {"tag", u64}, {"parameters", text}}},
     "what the program said of the task that is submitted next: a number and a text of its own"},

    {Type::task_ran, Category::task, "task.ran", {{{"task", u32}, {"length", u32}}},
     "task.started, and task.ended `length` - 1 ticks later; length 0: it runs, or a task.ended follows"},
    {Type::task_ran_popped, Category::task, "task.ran_popped", {{{"task", u32}, {"length", u32}}},
     "sched.popped and task.ran at once"},
    {Type::task_ran_stolen, Category::task, "task.ran_stolen", {{{"task", u32}, {"length", u32}, {"victim", u16}}},
     "sched.stolen and task.ran at once"},
    {Type::task_ran_kept, Category::task, "task.ran_kept", {{{"task", u32}, {"length", u32}}},
     "task.ready at the time of this actor's event before, and task.ran: the worker that made it ready has kept it"},
    {Type::task_released, Category::task, "task.released", {{{"task", u32}}},
     "task.ready, and sched.pushed into the queue of this worker"},
    {Type::task_submitted_next, Category::task, "task.submitted_next",
     {{{"pushed_to", u16}, {"priority", i16}, {"site", u16}, {"accesses_count", u8}, {"deps_count", u8}, {"accesses", list16},
       {"deps", list16}}},
     "task.submitted of the number after that of the packet's last submission, and sched.pushed to a worker; 65534: not pushed"},
    {Type::task_submitted_alike, Category::task, "task.submitted_alike",
     {{{"priority", i16}, {"accesses_count", u8}, {"deps_count", u8}, {"accesses", list16}, {"deps", list16}}},
     "like task.submitted_next, not pushed, at the site of the packet's last submission"},

    {Type::codelet_colour, Category::about, "about.colour", {{{"codelet", text}, {"rgb", u32}}},
     "the colour that the program gave to a codelet: red * 65536 + green * 256 + blue"},
    {Type::data_staging, Category::data, "data.staging", {{{"task", u32}, {"stage", u8}}},
     "a task that was taken waits for memory within a budget (0), or for its data (1), or has all (2)"},
    {Type::task_counters, Category::task, "task.counters",
     {{{"task", u32}, {"cycles", u64}, {"instructions", u64}, {"stalled", u64}, {"misses", u64}}},
     "what the processor counted while the kernel of a task ran, on its worker; stalled: cycles; misses: of the last "
     "cache; "
     "18446744073709551615: not counted"},
    {Type::task_expected, Category::sched, "sched.expected", {{{"task", u32}, {"kernel_ns", u64}, {"copies_ns", u64}}},
     "the scheduler chose the worker of sched.pushed for a task; it expected the kernel to take so long there, after so long a wait for "
     "copies of its data"},

    {Type::task_submitted_next_wide, Category::task, "task.submitted_next_wide",
     {{{"pushed_to", u16}, {"priority", i16}, {"site", u16}, {"accesses_count", u8}, {"deps_count", u8}, {"accesses", list32},
       {"deps", list32}}},
     "like task.submitted_next, when a number in the lists does not fit into 16 bits"},
    {Type::task_submitted_alike_wide, Category::task, "task.submitted_alike_wide",
     {{{"priority", i16}, {"accesses_count", u8}, {"deps_count", u8}, {"accesses", list32}, {"deps", list32}}},
     "like task.submitted_alike, when a number in the lists does not fit into 16 bits"},

    {Type::task_implementation, Category::task, "task.implementation", {{{"task", u32}, {"implementation", u8}}},
     "which implementation of its codelet, from 0, the task runs that this worker begins next; of codelets with several for one kind of worker"},
    {Type::energy, Category::worker, "worker.energy", {{{"counter", u32}, {"joules", f64}, {"ns", u64}}},
     "what a counter of energy has shown in the last `ns`, as far as it is this rank's; the counter is a name"},
    {Type::data_page_locked, Category::data, "data.page_locked",
     {{{"used", u64}, {"most_used", u64}, {"locked", u64}, {"bound", u64}, {"allocations", u64}, {"from_driver", u64}, {"refused", u64},
       {"refused_bytes", u64}}},
     "the rank's pool of page-locked memory, when memory for data was asked of it: bytes that data and copies have, at "
     "most so far, that are locked and "
     "that may be; allocations so far, of these for which the driver was asked, and those that got other memory, with "
     "their bytes"},
    {Type::task_id,
     Category::task,
     "task.id",
     {{{"id", u64}}},
     "the whole id of the task that is submitted next: when it is at least 2^30 more than that of the last one, and "
     "once in each packet when it is "
     "at least 2^30"},
};

constexpr std::size_t index_of(Type type) noexcept {
  for (std::size_t i = 0; i < std::size(event_table); ++i)
    if (event_table[i].type == type) return i;
  return std::size(event_table);
}

}  // namespace internal

/// All types, in ascending order of their numbers.
inline constexpr std::size_t kEventSpecs = std::size(internal::event_table);
constexpr const EventSpec& spec_at(std::size_t index) noexcept { return internal::event_table[index]; }
/// The specification of a type; null: no such type.
constexpr const EventSpec* find_spec(Type type) noexcept {
  const std::size_t index = internal::index_of(type);
  return index < kEventSpecs ? &internal::event_table[index] : nullptr;
}
constexpr std::size_t field_count(const EventSpec& spec) noexcept {
  std::size_t count = 0;
  while (count < spec.fields.size() && !spec.fields[count].name.empty()) ++count;
  return count;
}
/// Size of a field; 0 for lists and texts.
constexpr std::size_t bytes_of(Field field) noexcept {
  switch (field) {
    case Field::u8: return 1;
    case Field::u16:
    case Field::i16: return 2;
    case Field::u32:
    case Field::i32: return 4;
    case Field::u64:
    case Field::i64:
    case Field::f64: return 8;
    case Field::text:
    case Field::list16:
    case Field::list32: return 0;
  }
  return 0;
}

/// Size of a list's entry; 0 for other fields.
constexpr std::size_t entry_bytes_of(Field field) noexcept {
  return field == Field::list16 ? 2 : field == Field::list32 ? 4 : 0;
}

}  // namespace tandem::trace
