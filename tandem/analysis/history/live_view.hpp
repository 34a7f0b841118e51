// tandem/analysis/history/live_view.hpp: what a running rank does now, and did since the last view, from its events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/history/live_tasks.hpp"
#include "tandem/trace/read/live_rank.hpp"

namespace tandem::analysis {

/// Categories of a worker's time that are known at once. `idle` includes polling the network and keeping a core free
/// for an urgent task; `program` is the submitting thread outside of waits.
enum class LiveSpent : std::uint8_t { kernels, runtime, idle, program };
inline constexpr std::size_t live_spent_kinds = 4;
std::string_view name_of(LiveSpent spent) noexcept;

struct LiveWorker {
  std::uint16_t worker = 0;
  std::int32_t core = -1;
  std::optional<ActorState> state;   ///< empty: not known
  std::int64_t state_ns = 0;         ///< time in this state
  std::string kernel;                ///< of the running task; "?": not known
  std::uint64_t task = no_number;    ///< number of the running task, as people know it
  std::array<std::int64_t, live_spent_kinds> ns = {};  ///< of the interval; the rest is not known
  std::uint64_t tasks = 0;           ///< that ended in the interval
};

struct LiveKernel {
  std::string name;
  std::uint64_t tasks = 0;  ///< that ended in the interval
  std::int64_t ns = 0;      ///< on all workers, running tasks included
};

/// Receives of the flow that are posted and have not arrived.
struct LiveReceives {
  std::uint32_t peer = 0;
  std::uint64_t count = 0;
  std::int64_t oldest_ns = 0;  ///< age of the oldest
  std::string data;            ///< of the oldest
};

enum class LiveProgram : std::uint8_t { submitting, waiting, throttled };
std::string_view name_of(LiveProgram program) noexcept;

struct LiveMessages {
  std::uint64_t sent = 0, sent_bytes = 0;        ///< posted; a broadcast counts once for each recipient
  std::uint64_t arrived = 0, arrived_bytes = 0;

  LiveMessages& operator+=(const LiveMessages& other) noexcept {
    sent += other.sent;
    sent_bytes += other.sent_bytes;
    arrived += other.arrived;
    arrived_bytes += other.arrived_bytes;
    return *this;
  }
};

/// One interval of a rank.
struct LiveInterval {
  std::int64_t now_ns = 0, length_ns = 0;  ///< of the rank's clock
  std::vector<LiveWorker> workers;         ///< by number
  std::vector<LiveKernel> kernels;         ///< the longest first
  struct Tasks {
    std::uint64_t submitted = 0, ended = 0, failed = 0, cancelled = 0;

    Tasks& operator+=(const Tasks& other) noexcept {
      submitted += other.submitted;
      ended += other.ended;
      failed += other.failed;
      cancelled += other.cancelled;
      return *this;
    }
  } tasks, all_tasks;                      ///< in the interval; since the rank began, as far as it was read
  std::optional<std::uint64_t> waiting, ready;  ///< tasks now; empty: not recorded, or events are missing
  std::uint64_t running = 0;
  LiveMessages messages, all_messages;
  std::vector<LiveReceives> receives;      ///< by peer
  std::optional<LiveProgram> program;
  std::int64_t program_ns = 0;             ///< duration
  std::map<std::string, double> counters;  ///< of the program: their values
  std::int64_t tracer_waited_ns = 0;       ///< of all threads in the interval, for the tracer's buffers
  std::uint64_t missed_packets = 0;        ///< in the interval: the numbers above are of what was read
};

/// Follows one rank. Give it to `trace::LiveRank::poll`, then call `take`.
class LiveView final : public trace::LiveListener {
 public:
  /// `rank` outlives it.
  explicit LiveView(const trace::LiveRank& rank) : rank_(rank) {}

  void event(const trace::Event& event) override;
  void missed(std::uint32_t actor, std::uint64_t packets) override;
  /// The interval from the last call until `now_ns`, where the next one begins. The first call's interval has no
  /// length.
  LiveInterval take(std::int64_t now_ns);

  /// Categories that the views above need and the rank does not record: "worker", ...
  std::vector<std::string> lacks() const;

 private:
  struct Running {
    std::uint32_t task = 0;
    std::uint16_t site = LiveTasks::no_site;
    std::int64_t since_ns = 0;
  };
  struct Actor {
    std::optional<ActorState> base;  ///< between tasks
    std::vector<Running> running;    ///< one within the other
    std::int64_t since_ns = no_time; ///< of the present state, or of its part in this interval
    std::int64_t state_since_ns = no_time;
    std::array<std::int64_t, live_spent_kinds> ns = {};
    std::uint64_t tasks = 0;
  };
  struct Kernel {
    std::uint64_t tasks = 0;
    std::int64_t ns = 0;
  };
  struct Expected {
    std::uint32_t data = 0, peer = 0;
    std::int64_t since_ns = no_time;  ///< it is posted; no_time: it waits for the data's readers
  };

  Actor& actor_of(std::uint32_t number);
  std::uint64_t number_of(std::uint32_t task) const;
  bool is_worker(std::uint32_t number) const;
  void add_task(const trace::Event& event);
  void add_submission(const trace::Event& event);
  void add_message(const trace::Event& event);
  void add_flow(const trace::Event& event);
  void add_program(const trace::Event& event);
  /// Counts the time of the present state up to `until_ns`.
  void account(Actor& actor, std::int64_t until_ns);
  Kernel& kernel_of(std::uint16_t site);
  LiveWorker worker_now(std::uint32_t number, const Actor& actor, std::int64_t now_ns) const;
  std::string codelet(std::uint16_t site) const;

  const trace::LiveRank& rank_;
  std::int64_t begin_ns_ = no_time;  ///< of the interval
  std::vector<Actor> actors_;
  std::uint64_t told_id_ = 0;  ///< of a task, recorded lately; 0: all ids so far are small
  LiveTasks tasks_;
  std::vector<Kernel> kernels_;  ///< by site
  LiveInterval::Tasks interval_tasks_, all_tasks_;
  LiveMessages messages_, all_messages_;
  std::unordered_map<std::uint32_t, std::uint64_t> broadcast_bytes_;  ///< by request, of those under way
  std::unordered_map<std::uint32_t, Expected> expected_;              ///< by node of the graph
  std::optional<LiveProgram> program_;
  std::int64_t program_since_ns_ = no_time;
  std::unordered_map<std::uint32_t, double> counters_;
  std::int64_t tracer_waited_ns_ = 0;
  std::uint64_t missed_ = 0, all_missed_ = 0;
};

}  // namespace tandem::analysis
