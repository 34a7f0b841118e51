// tools/trace/check_tasks.hpp: checks that each task of one rank was submitted, and runs once or is cancelled.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/trace/check_findings.hpp"
#include "tandem/analysis/history/history.hpp"

namespace tandem::tools {

using namespace analysis;

/// The lives of one rank's tasks, from its events in the order of time.
///
/// Stamps. An event's stamp is never after what it records, but it may be before: what a worker does right behind the
/// end of a short task bears the stamp of that end. So "a before b" can be refuted only where b's stamp was read for b:
/// `began` is the earliest such stamp of a task's way into execution. Within a core the clock is read out of order with
/// the loads around it, hence `slack_ns`.
class TaskBook {
 public:
  TaskBook(const trace::RankTrace& rank, const Recorded& recorded);

  /// The reason why nothing is checked; empty: everything is.
  const std::string& gap() const noexcept { return gap_; }
  /// Adds an event of category task or sched.
  void add(const trace::Event& event, Findings& findings);
  /// Notes, for any event, the stamps of an actor that were read for the event that has them.
  void note_stamp(const trace::Event& event) { last_stamp_[event.actor] = event.ticks; }
  void finish(TraceCheck& result, Findings& findings);

 private:
  static constexpr std::int64_t slack_ns = 1'000;
  static constexpr std::uint64_t never = UINT64_MAX;

  /// The kind of a node of the graph. Only kernels have events of their execution.
  enum class Kind : std::uint8_t { unknown, kernel, other };
  struct Life {
    std::int64_t id = 0;
    std::uint64_t submitted = never, ready = never, pushed = never, popped = never, started = never;
    std::uint64_t began = never;  ///< as explained at `TaskBook`
    std::uint64_t done = never;   ///< ended, or cancelled
    std::uint32_t ends = 0;
    Kind kind = Kind::unknown;
    std::uint8_t submissions = 0, starts = 0, cancels = 0, failures = 0, readies = 0;  ///< up to 255
  };
  struct Edge {
    std::int64_t task = 0, predecessor = 0;
  };
  struct Graph {
    std::int64_t first = 0;
    std::uint32_t count = 0;
    std::size_t first_edge = 0, last_edge = 0;
  };
  struct Replay {
    std::int64_t first = 0;
    std::uint32_t graph = 0;
  };

  Life& life(std::int64_t id);
  const Life* find(std::int64_t id) const;
  std::string name(const Life& life) const;
  void report(Findings& findings, const std::string& promise, const Life& life, const std::string& what) const;
  void submit(const trace::Event& event, std::int64_t id, Findings& findings);
  void replay(const trace::Event& event, Findings& findings);
  void enter(Life& life, std::uint64_t ticks, Kind kind, Findings& findings);
  void cancel(Life& life, std::uint64_t ticks);
  void check_life(const Life& life, Findings& findings) const;
  void check_edge(const Edge& edge, Findings& findings);
  std::uint64_t done_by(std::int64_t id);
  double ns_between(std::uint64_t from, std::uint64_t to) const;

  /// The name of a task in reports.
  std::uint64_t number_of(std::int64_t id) const noexcept;

  const trace::RankTrace& rank_;
  const Recorded& recorded_;
  std::string gap_;
  std::uint64_t slack_ticks_ = 0;
  Unwrapper ids_;
  TaskIndex index_;
  std::vector<Life> lives_;
  std::vector<Edge> edges_;  ///< in the order of submission; those of a replayed graph once
  std::unordered_map<std::uint32_t, Graph> graphs_;
  std::vector<Replay> replays_;                                        ///< all but the first of each graph
  std::unordered_map<std::uint32_t, std::uint64_t> last_stamp_;        ///< by actor
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> joins_;  ///< predecessors of nodes that are no kernels
  std::unordered_map<std::int64_t, std::uint64_t> joins_done_;         ///< as far as `done_by` was asked
  std::uint64_t replayed_ = 0;
};

}  // namespace tandem::tools
