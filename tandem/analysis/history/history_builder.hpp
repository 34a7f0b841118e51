// tandem/analysis/history/history_builder.hpp: follows the events of a run, and fills the tables of its history.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/analysis/history/event_fields.hpp"
#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/history/history_messages.hpp"

namespace tandem::analysis {

/// Follows the events of all ranks in the order of each rank's own clock. Times are local until `correct_history`.
class HistoryBuilder {
 public:
  HistoryBuilder(History& history, trace::TraceReader& run, HistoryContent content)
      : history_(history), memory_(*history.memory_of_tables()), keeps_all_(content == HistoryContent::all), messages_(history) {
    for (const auto& rank : run.ranks) open_rank(*rank);
    for (const trace::EventSpec* spec : run.declared) {
      DeclaredEvents& type = history_.declared.emplace_back();
      type.rows = SpillVector<DeclaredEvents::Row>(history_.memory_of_tables(), SpillUse::table);
      type.values = SpillVector<std::uint64_t>(history_.memory_of_tables(), SpillUse::table);
      type.name = spec->name;
      for (std::size_t i = 0; i < field_count(*spec); ++i) {
        type.fields.emplace_back(spec->fields[i].name);
        type.kinds.push_back(spec->fields[i].field);
      }
    }
  }

  void add(const trace::Event& event) {
    ++history_.events;
    memory_.touch();
    Rank& rank = rank_of(event.rank);
    Actor& actor = actor_of(rank, event.actor);
    if (rank.first_ns == no_time) rank.first_ns = event.local_ns;
    rank.last_ns = std::max(rank.last_ns, event.local_ns);
    switch (event.spec().category) {
      case trace::Category::task:
      case trace::Category::sched: add_task(event, rank, actor); break;
      case trace::Category::worker:
        if (event.type == trace::Type::energy) {
          add_energy(event, rank);
          break;
        }
        if (actor.events == 0) begin_worker(rank, actor);
        set_state(
            event, rank, actor,
            event.number(0) < trace::kWorkerStates ? static_cast<ActorState>(event.number(0)) : ActorState::other);
        break;
      case trace::Category::data: add_memory(event, rank); break;
      case trace::Category::comm:
        if (event.type == trace::Type::progress_state) {
          const auto state =
              static_cast<std::size_t>(event.number(0)) + static_cast<std::size_t>(ActorState::engine_working);
          set_state(event, rank, actor, state < actor_states ? static_cast<ActorState>(state) : ActorState::other);
        } else {
          messages_.add(event);
        }
        break;
      case trace::Category::broadcast: messages_.add(event); break;
      case trace::Category::dist:
        // Tasks of the flow are named by the low 32 bits of their ids, as everywhere.
        messages_.add_flow(event, event.type == trace::Type::data_sent || event.type == trace::Type::data_received ||
                                          event.type == trace::Type::data_expected
                                      ? near_id(rank, u32(event, 2))
                                      : 0);
        break;
      case trace::Category::flow: add_wait(event, actor); break;
      case trace::Category::tracer: add_tracer(event, rank, actor); break;
      case trace::Category::user: add_user(event, rank, actor); break;
      case trace::Category::about: break;
    }
    actor.last_ns = event.local_ns;
    ++actor.events;
  }

  void finish(trace::TraceReader& run);

 private:
  struct Interval {
    std::size_t row = 0;
    std::uint64_t key = 0;
  };
  struct Actor {
    std::uint32_t number = 0;
    std::uint16_t worker = no_worker;      ///< no_worker: it is none
    StateTable::Actor* states = nullptr;   ///< its list; null: none yet
    std::optional<ActorState> base;        ///< between tasks
    std::vector<std::uint32_t> running;    ///< rows of tasks, one within the other
    std::int64_t since_ns = no_time;       ///< beginning of its present state
    std::int64_t last_ns = no_time;        ///< of its last event
    std::uint64_t events = 0;
    std::vector<Interval> spans, waits, flushes, quiets;  ///< open ones
  };
  /// A recorded graph: the tasks of its first replay, which were described one by one.
  struct Graph {
    std::int64_t first = 0;
    std::uint32_t count = 0;
    std::vector<std::vector<std::pair<std::uint32_t, std::uint8_t>>> accesses;  ///< data and mode
    std::vector<std::vector<std::uint32_t>> predecessors;                         ///< positions in the graph
    std::int32_t iteration = no_iteration;  ///< of the first replay; tasks with another one were recorded in it
  };
  struct Rank {
    const trace::RankTrace* trace = nullptr;
    std::uint32_t rank = 0;
    Unwrapper ids;
    std::uint32_t submitted = 0;
    bool tells_ready = false;
    std::int64_t first_ns = no_time, last_ns = no_time;
    TaskIndex* index = nullptr;
    std::map<std::uint32_t, Actor> actors;
    Actor* last_actor = nullptr;
    std::unordered_map<std::uint32_t, Graph> graphs;
    std::unordered_map<std::uint32_t, std::size_t> stagings;  ///< open ones, by row of their task
    std::map<std::uint16_t, std::int64_t> used_bytes;                                          ///< of each memory node
    std::map<std::tuple<std::uint32_t, std::uint16_t, std::uint16_t>, std::deque<std::size_t>>
        transfers;                           ///< open ones
    std::vector<std::uint32_t> places;       ///< of each site, in the table of tasks
    std::vector<double> flops;               ///< of each site's next tasks
    std::int32_t iteration = no_iteration;   ///< of the next tasks
    std::map<std::uint32_t, std::uint32_t> energy_counters;  ///< by the number of their name
    std::size_t first_access = 0, first_dependency = 0;  ///< where to look for those of the next graph
  };

  void open_rank(const trace::RankTrace& trace);
  Rank& rank_of(std::uint32_t rank) {
    if (last_ == nullptr || last_->rank != rank) last_ = &ranks_.at(rank);
    return *last_;
  }

  /// The actor of that number. Events of an actor come in runs.
  Actor& actor_of(Rank& rank, std::uint32_t number) {
    if (rank.last_actor != nullptr && rank.last_actor->number == number) return *rank.last_actor;
    const auto [at, added] = rank.actors.try_emplace(number);
    if (added) {
      at->second.number = number;
      at->second.worker = worker_of(rank.rank, number);
    }
    return *(rank.last_actor = &at->second);
  }

  /// The id nearest to `low` of a task that events have named before.
  static std::int64_t near_id(const Rank& rank, std::uint32_t low) {
    return rank.ids.near_known(low, [&](std::int64_t id) { return rank.index->find(id) != no_number; });
  }
  static std::int64_t id_of(Rank& rank, std::uint32_t low) {
    return rank.ids.unwrap_known(low, [&](std::int64_t id) { return rank.index->find(id) != no_number; });
  }
  std::uint32_t row_of(Rank& rank, std::int64_t id) {
    std::uint32_t& row = *rank.index->find_or_add(id);
    if (row == no_number) {
      row = history_.tasks.add();
      history_.tasks.rank.set(row, rank.rank);
      history_.tasks.id.set(row, static_cast<std::uint64_t>(id));
    }
    return row;
  }

  void add_task(const trace::Event& event, Rank& rank, Actor& actor);
  void submit(const trace::Event& event, Rank& rank);
  void note(const trace::Event& event, Rank& rank);
  void implement(const trace::Event& event, Rank& rank);
  void stage(const trace::Event& event, Rank& rank);
  void end_staging(Rank& rank, std::uint32_t row, std::int64_t at_ns);
  void replay(const trace::Event& event, Rank& rank);
  void learn_graph(Rank& rank, Graph& graph);
  std::uint16_t worker_of(std::uint32_t rank, std::uint32_t actor) const;
  void add_access(std::uint32_t row, std::uint32_t word);
  void start(const trace::Event& event, Rank& rank, Actor& actor, std::uint32_t row);
  void end(const trace::Event& event, const Rank& rank, Actor& actor, std::uint32_t row);

  void begin_worker(const Rank& rank, Actor& actor);
  void set_state(const trace::Event& event, const Rank& rank, Actor& actor, ActorState state);
  void close_state(std::uint32_t rank, Actor& actor, std::int64_t until_ns);
  void add_memory(const trace::Event& event, Rank& rank);
  void add_page_locked(const trace::Event& event);
  void add_wait(const trace::Event& event, Actor& actor);
  void add_tracer(const trace::Event& event, Rank& rank, Actor& actor);
  void add_user(const trace::Event& event, const Rank& rank, Actor& actor);
  void add_declared(const trace::Event& event, std::uint32_t task);
  void add_energy(const trace::Event& event, Rank& rank);
  Texts::Id name_of_number(const Rank& rank, std::uint32_t number);
  void describe_data(const trace::RankTrace& trace);
  void name_tasks(trace::RankTrace& trace, const Rank& rank);

  History& history_;
  SpillMemory& memory_;
  bool keeps_all_;
  MessagePairing messages_;
  std::unordered_map<std::uint32_t, Rank> ranks_;
  Rank* last_ = nullptr;
  std::unordered_map<std::uint32_t, TaskPlace> without_implementation_;  ///< of places that name one, by their numbers
};

}  // namespace tandem::analysis
