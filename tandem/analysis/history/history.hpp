// tandem/analysis/history/history.hpp: what happened in a run, as tables: the one interpretation of a trace's events
// that all exports share.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/analysis/tables/dependency_table.hpp"
#include "tandem/analysis/tables/spill_memory.hpp"
#include "tandem/analysis/tables/spill_vector.hpp"
#include "tandem/analysis/tables/state_table.hpp"
#include "tandem/analysis/tables/task_table.hpp"
#include "tandem/analysis/tables/texts.hpp"
#include "tandem/analysis/tables/unknown.hpp"
#include "tandem/base/result.hpp"
#include "tandem/clock/correction.hpp"
#include "tandem/trace/read/reader.hpp"

namespace tandem::analysis {

struct AccessRow {
  std::uint32_t task = 0;  ///< row
  std::uint32_t data = 0;  ///< number on the rank
  std::uint8_t mode = 0;   ///< 0 read, 1 write, 2 read_write, 3 commute, 4 reduce, 5 scratch
};
std::string_view name_of_mode(std::uint8_t mode) noexcept;

/// A message, or the part of a broadcast for one recipient: its send and its receive, either of which may be missing.
struct CommunicationRow {
  std::uint32_t source = no_number, destination = no_number;  ///< ranks; no_number: an unmatched receive from any
  std::uint32_t channel = 0;
  std::int32_t priority = 0;
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  std::int64_t posted_ns = no_time, announced_ns = no_time, granted_ns = no_time, sent_ns = no_time,
               send_released_ns = no_time;
  std::int64_t receive_posted_ns = no_time, arrived_ns = no_time, receive_released_ns = no_time;
  std::uint32_t send_request = no_number, receive_request = no_number;
  std::uint32_t broadcast = no_number;  ///< row; no_number: a plain message
  std::uint32_t send_data = no_number, receive_data = no_number;  ///< numbers of data of the flow
  std::uint32_t send_task = no_number, receive_task = no_number;  ///< rows
  std::uint32_t version = no_number;    ///< of the data
  bool failed = false;

  bool has_send() const noexcept { return posted_ns != no_time; }
  bool has_receive() const noexcept { return receive_posted_ns != no_time || arrived_ns != no_time; }
  bool is_whole() const noexcept { return posted_ns != no_time && arrived_ns != no_time; }
};

struct BroadcastRow {
  std::uint32_t root = 0;
  std::uint32_t request = 0;
  std::uint32_t channel = 0;
  std::uint32_t recipients = 0;  ///< when it was posted
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  std::int64_t posted_ns = no_time, routed_ns = no_time, sent_ns = no_time, released_ns = no_time;
  std::uint32_t tree = no_number;      ///< its kind
  std::uint32_t segment_bytes = 0;
  Texts::Id children = 0;              ///< of the root: ranks separated by blanks, strands by ";"
  std::uint32_t bag = no_number;       ///< the bag that it was made from
  std::uint32_t data = no_number, version = no_number;
  bool failed = false;
};

/// The recipients of a version of data, while they become known.
struct BagRow {
  std::uint32_t rank = 0;
  std::uint32_t bag = 0;
  std::uint32_t data = no_number, version = no_number;
  std::int64_t opened_ns = no_time, closed_ns = no_time;
  std::uint32_t recipients = 0;  ///< that have joined
  std::uint32_t request = no_number;
};
struct BagRecipientRow {
  std::uint32_t rank = 0, bag = 0, recipient = 0;
  std::int32_t priority = 0;
  std::int64_t joined_ns = no_time;
};
/// A rank forwards a broadcast to a child, or lacks room for that.
struct ForwardRow {
  std::uint32_t rank = 0, root = 0, child = 0;
  std::uint64_t tag = 0, bytes = 0;
  std::int64_t time_ns = no_time;
  bool declined = false;
};

struct TransferRow {
  std::uint32_t rank = 0, data = 0;
  std::uint16_t from = 0, to = 0;  ///< memory nodes
  std::uint64_t bytes = 0;
  std::int64_t start_ns = no_time, end_ns = no_time;
};
struct MemoryRow {
  std::uint32_t rank = 0, data = 0;
  std::uint16_t node = 0;
  std::int64_t time_ns = no_time;
  std::int64_t bytes = 0;       ///< negative: freed
  std::int64_t used_bytes = 0;  ///< on the node from now on, as far as recorded
};

/// A mark, or the value of a counter from now on.
struct ValueRow {
  std::uint32_t rank = 0, actor = 0;
  Texts::Id name = 0;
  std::uint32_t task = no_number;  ///< row, of the task whose kernel recorded it
  std::int64_t time_ns = 0;
  double value = 0;
};
/// A part of the program that the program has named.
struct SpanRow {
  std::uint32_t rank = 0, actor = 0;
  Texts::Id name = 0;
  std::uint32_t task = no_number;  ///< row, of the task in whose kernel it began
  std::int64_t start_ns = no_time, end_ns = no_time;
};
/// A type of events that the program has declared, and its events.
struct DeclaredEvents {
  std::string name;
  std::vector<std::string> fields;
  std::vector<trace::Field> kinds;
  struct Row {
    std::uint32_t rank = 0, actor = 0;
    std::uint32_t task = no_number;  ///< row, of the task in whose kernel it happened
    std::int64_t time_ns = 0;
  };
  SpillVector<Row> rows;
  SpillVector<std::uint64_t> values;  ///< of a row one after the other: a number, the bits of an f64, a text's id

  std::uint64_t value(std::size_t row, std::size_t field) const { return values[row * fields.size() + field]; }
};
enum class WaitKind : std::uint8_t { waiting, throttled };
std::string_view name_of(WaitKind kind) noexcept;
struct WaitRow {
  std::uint32_t rank = 0, actor = 0;
  WaitKind kind = WaitKind::waiting;
  std::int64_t start_ns = no_time, end_ns = no_time;
};
/// What the tracer did or suffered: `amount` is in bytes for a flush, in events for a loss.
enum class TracerKind : std::uint8_t { flush, waited, lost, quiet };
std::string_view name_of(TracerKind kind) noexcept;
struct TracerRow {
  std::uint32_t rank = 0, actor = 0;
  TracerKind kind = TracerKind::flush;
  std::uint32_t of_actor = no_number;  ///< whose buffer was written
  std::int64_t start_ns = no_time, end_ns = no_time;
  std::uint64_t amount = 0;
};

/// A task that a worker has taken waits for room in a memory with a budget, or for its data.
struct StagingRow {
  std::uint32_t task = 0;  ///< row
  trace::StagingState stage = trace::StagingState::memory;
  std::int64_t start_ns = no_time, end_ns = no_time;
};
/// What the processor counted while the kernel of a task ran; `not_counted`: nothing.
struct CountsRow {
  static constexpr std::uint64_t not_counted = UINT64_MAX;

  std::uint32_t task = 0;  ///< row
  std::uint64_t cycles = not_counted, instructions = not_counted, stalled = not_counted, misses = not_counted;
};

/// What a scheduler expected of a task when it chose its worker.
struct ExpectedRow {
  std::uint32_t task = 0;     ///< row
  std::int64_t kernel_ns = 0;  ///< expected duration of its kernel
  std::int64_t copies_ns = 0;  ///< expected wait for copies before it
};

/// A rank's pool of page-locked memory, from which its data in main memory comes where it has CUDA devices: the
/// greatest values recorded in the run.
struct PageLockedRow {
  std::uint32_t rank = 0;
  std::uint64_t most_used = 0;    ///< bytes that data and copies had at one moment
  std::uint64_t most_locked = 0;  ///< bytes that were locked at one moment
  std::uint64_t bound = 0;        ///< limit of locked bytes
  std::uint64_t allocations = 0;  ///< allocations that the pool has served
  std::uint64_t from_driver = 0;  ///< of these, allocations from the driver, which are slow
  std::uint64_t refused = 0;      ///< allocations from other memory, for lack of room
  std::uint64_t refused_bytes = 0;
};

/// A counter of energy, and the workers of its rank whose energy it shows.
struct EnergyCounter {
  std::uint32_t rank = 0;
  std::string name;
  std::vector<unsigned> workers = {};
};
/// What such a counter has measured in an interval.
struct EnergyRow {
  std::uint32_t rank = 0;
  std::uint32_t counter = 0;  ///< among `History::energy_counters`
  double joules = 0;
  std::int64_t start_ns = no_time, end_ns = no_time;
};

struct DataRow {
  std::uint32_t rank = 0, data = 0;
  std::uint32_t owner = no_number;  ///< no_number: each rank has its own
  std::uint64_t bytes = 0, rows = 0, cols = 0;
  Texts::Id name = 0, file = 0;
  std::uint32_t line = 0;
  std::uint32_t numa_node = no_number;  ///< of its main memory on this rank when it was released
};

struct ActorFacts {
  std::uint32_t rank = 0, actor = 0;
  trace::ActorKind kind = trace::ActorKind::user;
  std::uint16_t index = 0;
  std::int32_t core = -1;
  std::string name;
  std::uint64_t events = 0, bytes = 0, lost_events = 0;
  bool has_first = true;  ///< its first event was not overwritten, as in a flight recorder

  /// For a worker: what it runs kernels on, from the beginning of its name: "cuda" of "cuda worker 3", "cpu" of "worker
  /// 3".
  std::string_view kind_of_worker() const noexcept;
};

/// Where a rank ran, and how its clock was corrected.
struct RankClock {
  std::uint32_t rank = 0;
  std::string host;
  std::vector<unsigned> pus;     ///< hardware threads that it might run on, ascending; empty: not known
  std::uint64_t points = 0;
  bool corrected = false;        ///< false: the recorded clock counts
  bool by_date = false;          ///< it was never compared, so its system's date counts
  double residual_rms_ns = 0, residual_max_ns = 0;
  std::int64_t first_offset_ns = 0,
               last_offset_ns = 0;  ///< the reference's time minus the rank's, at its first and last event
  std::int64_t first_ns = no_time, last_ns = no_time;    ///< of its events
};

/// What a history keeps of the events. Without the rest they take half the memory.
enum class HistoryContent : std::uint8_t {
  all,
  /// What `Summary` and the analyses beside it ask for. Of tasks their id, rank, codelet, name, operations, status and
  /// worker, and when they were submitted, ready, begun and ended; no accesses.
  summary,
};

struct HistoryOptions {
  /// Empty: `linear` where some rank has two points, else `none`.
  std::optional<clock::CorrectionMethod> method = {};
  HistoryContent content = HistoryContent::all;
  SpillOptions memory = {};
};

/// Rows by id, in pages, since ids are dense but need not begin at 0.
class TaskIndex {
 public:
  std::uint32_t* find_or_add(std::int64_t id);
  std::uint32_t find(std::int64_t id) const;
  std::int64_t epoch = 0;  ///< difference of an id of the index and that of the row

 private:
  static constexpr unsigned page_bits = 12;
  struct Page {
    Page() { std::fill(std::begin(rows), std::end(rows), no_number); }
    std::uint32_t rows[std::size_t{1} << page_bits];
  };
  std::unordered_map<std::int64_t, std::unique_ptr<Page>> pages_;
  std::int64_t last_number_ = std::numeric_limits<std::int64_t>::min();
  Page* last_ = nullptr;
};

/// A run. Times are nanoseconds since the first event of all ranks, on the clock of rank 0 (`origin_ns` there). Large
/// tables take main memory up to a budget, and temporary files beyond it.
class History {
 public:
  explicit History(SpillOptions options = {}) : memory_(SpillMemory::make(std::move(options))) {}
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  /// Reads all events once. Memory: some 130 bytes per task, 22 per state, 150 per message; with
  /// `HistoryContent::summary` 47 bytes per task. Errors: malformed.
  static base::Result<std::unique_ptr<History>> read(trace::TraceReader& run, const HistoryOptions& options = {});

  /// Memory for what analyses keep of each task or event.
  const std::shared_ptr<SpillMemory>& memory_of_tables() const noexcept { return memory_; }

 private:
  std::shared_ptr<SpillMemory> memory_;

 public:
  std::string program, job;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string>
      memories;                        ///< names of memory nodes, by rank and number
  std::vector<std::string> arguments;  ///< of the program of the first rank, after its name
  std::uint32_t size = 1;      ///< ranks of the job, including those that the folder lacks
  std::uint64_t events = 0;    ///< without descriptions
  std::uint64_t cut_files = 0;   ///< files that end within a packet
  std::uint64_t cut_events = 0;  ///< a lower bound of events that were written, and that no file contains
  std::uint64_t lost_events = 0;  ///< counted by the programs at the end, including those of streams without a file
  std::int64_t duration_ns = 0;
  std::int64_t origin_ns = 0;
  std::int64_t date_ns = 0;    ///< of the first event, since 1970, as rank 0's system had it
  clock::CorrectionMethod method = clock::CorrectionMethod::none;
  clock::CorrectionReport clock_report;

  Texts texts;
  std::vector<ActorFacts> actors;  ///< by rank and actor; catalogues are left out
  std::vector<RankClock> clocks;   ///< by rank
  TaskTable tasks{memory_};        ///< in the order of their first events
  SpillVector<AccessRow> accesses{memory_, SpillUse::table};
  DependencyTable dependencies{memory_, tasks};
  StateTable states{memory_};      ///< by rank, actor and time
  SpillVector<CommunicationRow> communications{memory_, SpillUse::table};
  SpillVector<BroadcastRow> broadcasts{memory_, SpillUse::table};
  SpillVector<BagRow> bags{memory_, SpillUse::table};
  SpillVector<BagRecipientRow> bag_recipients{memory_, SpillUse::table};
  SpillVector<ForwardRow> forwards{memory_, SpillUse::table};
  std::vector<DataRow> data;       ///< by rank and number
  SpillVector<TransferRow> transfers{memory_, SpillUse::table};
  SpillVector<StagingRow> stagings{memory_, SpillUse::table};
  SpillVector<CountsRow> counts{memory_, SpillUse::table};  ///< at most one per task
  SpillVector<ExpectedRow> expected{memory_, SpillUse::table};  ///< a task may have several; the last one counts
  std::unordered_map<Texts::Id, std::uint32_t> colours;  ///< one per task and assignment; the last one counts
  SpillVector<MemoryRow> memory{memory_, SpillUse::table};
  std::vector<PageLockedRow> page_locked;  ///< of the ranks that have some, by rank
  std::vector<EnergyCounter> energy_counters;
  SpillVector<EnergyRow> energy{memory_, SpillUse::table};  ///< their mean powers are among `counters`, too
  SpillVector<ValueRow> counters{memory_, SpillUse::table}, marks{memory_, SpillUse::table};
  SpillVector<SpanRow> spans{memory_, SpillUse::table};
  std::vector<DeclaredEvents> declared;  ///< by number less `trace::kFirstDeclared`
  SpillVector<WaitRow> waits{memory_, SpillUse::table};
  SpillVector<TracerRow> tracer{memory_, SpillUse::table};

  /// The number by which people know the task `id`: in errors, logs, and what is made of traces. On several ranks it is
  /// the position of its operation in the flow, which the nodes of a rank for that operation share.
  std::uint64_t number_of(std::uint64_t id) const noexcept { return size > 1 ? id >> trace::kIdBitsBelowPosition : id; }
  /// The row of a task; empty where nothing is known of it.
  std::optional<std::uint32_t> find_task(std::uint32_t rank, std::uint64_t id) const;
  /// The description of data; null where there is none.
  const DataRow* find_data(std::uint32_t rank, std::uint32_t data) const;
  const ActorFacts* find_actor(std::uint32_t rank, std::uint32_t actor) const;
  /// The name of a memory node, such as "main memory"; "memory 1" where the trace does not name it.
  std::string memory_name(std::uint32_t rank, std::uint32_t node) const;

 private:
  friend class HistoryBuilder;
  friend class MessagePairing;
  friend void correct_history(History& history, trace::TraceReader& run, const HistoryOptions& options);

  std::unordered_map<std::uint32_t, TaskIndex> task_index_;
};

/// Converts the times of a history from the ranks' clocks to nanoseconds since the first event.
void correct_history(History& history, trace::TraceReader& run, const HistoryOptions& options);

/// Finds growing numbers by their low 32 bits in a trace: the one nearest to the largest so far, or an older known one.
class Unwrapper {
 public:
  /// Offset of all numbers until it is certain that no number was smaller.
  static constexpr std::int64_t first_epoch = std::int64_t{1} << 32;

  std::int64_t unwrap(std::uint32_t low) noexcept {
    const std::int64_t whole = near(low);
    note(whole);
    return whole;
  }
  /// The trace says that numbers from `whole` on come next.
  void go_on_from(std::uint64_t whole) noexcept { note(first_epoch + static_cast<std::int64_t>(whole)); }
  /// Like `unwrap`, for a number that `exists(number)` knows already, perhaps from long ago; the nearest one where it
  /// knows none.
  template <class Exists>
  std::int64_t unwrap_known(std::uint32_t low, const Exists& exists) {
    const std::int64_t whole = near_known(low, exists);
    note(whole);
    return whole;
  }
  /// `unwrap` for a number that does not show where the others are.
  std::int64_t near(std::uint32_t low) const noexcept {
    if (!last_) return first_epoch + low;
    return *last_ + static_cast<std::int32_t>(low - static_cast<std::uint32_t>(*last_));
  }
  /// `unwrap_known` for such a number.
  template <class Exists>
  std::int64_t near_known(std::uint32_t low, const Exists& exists) const {
    const std::int64_t nearest = near(low);
    if (!last_ || *last_ - lowest_ <= INT32_MAX) return nearest;
    for (std::int64_t whole = nearest; whole >= lowest_; whole -= first_epoch)
      if (exists(whole)) return whole;
    return nearest;
  }
  /// The largest number so far.
  std::int64_t last() const noexcept { return last_.value_or(first_epoch); }
  /// The offset to be subtracted from all numbers, once all are known.
  std::int64_t epoch() const noexcept { return lowest_ < first_epoch ? 0 : first_epoch; }

 private:
  void note(std::int64_t whole) noexcept {
    lowest_ = last_ ? std::min(lowest_, whole) : whole;
    last_ = last_ ? std::max(*last_, whole) : whole;
  }

  std::optional<std::int64_t> last_;
  std::int64_t lowest_ = first_epoch;
};

}  // namespace tandem::analysis
