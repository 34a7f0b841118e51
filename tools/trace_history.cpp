// tools/trace_history.cpp: reads the events of a run, and makes tables of tasks, states, data and marks of them.
#include "tools/trace_history.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "tools/trace_fields.hpp"
#include "tools/trace_history_messages.hpp"

namespace tandem::tools {

using trace::Event;
using trace::RankTrace;
using trace::Type;

Texts::Id Texts::add(std::string_view text) {
  const auto [at, added] = ids_.try_emplace(std::string(text), static_cast<Id>(texts_.size()));
  if (added) texts_.push_back(&at->first);
  return at->second;
}

std::string_view name_of(TaskStatus status) noexcept {
  constexpr std::array<std::string_view, 7> names{"unknown", "submitted", "ready", "running", "done", "failed", "cancelled"};
  return names[static_cast<std::size_t>(status)];
}

std::string_view name_of_mode(std::uint8_t mode) noexcept {
  constexpr std::array<std::string_view, 6> names{"read", "write", "read_write", "commute", "reduce", "scratch"};
  return mode < names.size() ? names[mode] : "unknown";
}

std::string_view name_of(ActorState state) noexcept {
  constexpr std::array<std::string_view, actor_states> names{
      "absent",    "scheduling",     "polling",        "sleeping",        "fetching", "progressing", "holding",
      "executing", "engine_working", "engine_polling", "engine_sleeping", "other"};
  return names[static_cast<std::size_t>(state)];
}

std::string_view name_of(WaitKind kind) noexcept { return kind == WaitKind::waiting ? "waiting" : "throttled"; }

std::string_view name_of(TracerKind kind) noexcept {
  constexpr std::array<std::string_view, 4> names{"flush", "waited", "lost", "quiet"};
  return names[static_cast<std::size_t>(kind)];
}

std::uint32_t* TaskIndex::find_or_add(std::int64_t id) {
  const std::int64_t number = id >> page_bits;
  if (number != last_number_ || last_ == nullptr) {
    auto& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    last_number_ = number;
    last_ = page.get();
  }
  return &last_->rows[id & ((std::int64_t{1} << page_bits) - 1)];
}

std::uint32_t TaskIndex::find(std::int64_t id) const {
  const auto page = pages_.find(id >> page_bits);
  return page == pages_.end() ? no_number : page->second->rows[id & ((std::int64_t{1} << page_bits) - 1)];
}

std::optional<std::uint32_t> History::find_task(std::uint32_t rank, std::uint64_t id) const {
  const auto index = task_index_.find(rank);
  if (index == task_index_.end()) return std::nullopt;
  const std::uint32_t row = index->second.find(static_cast<std::int64_t>(id) + index->second.epoch);
  return row == no_number ? std::nullopt : std::optional(row);
}

namespace {

template <class Rows, class Key, class KeyOf>
auto find_sorted(const Rows& rows, const Key& key, KeyOf key_of) -> decltype(rows.data()) {
  const auto found = std::ranges::lower_bound(rows, key, {}, key_of);
  return found != rows.end() && key_of(*found) == key ? &*found : nullptr;
}

}  // namespace

const DataRow* History::find_data(std::uint32_t rank, std::uint32_t number) const {
  return find_sorted(data, std::pair(rank, number), [](const DataRow& row) { return std::pair(row.rank, row.data); });
}

const ActorFacts* History::find_actor(std::uint32_t rank, std::uint32_t actor) const {
  return find_sorted(actors, std::pair(rank, actor), [](const ActorFacts& facts) { return std::pair(facts.rank, facts.actor); });
}

/// Follows the events of all ranks in the order of each rank's own clock. Times are local until `correct_history`.
class HistoryBuilder {
 public:
  HistoryBuilder(History& history, trace::TraceReader& run) : history_(history), messages_(history) {
    for (const auto& rank : run.ranks) open_rank(*rank);
    for (const trace::EventSpec* spec : run.declared) {
      DeclaredEvents& type = history_.declared.emplace_back();
      type.name = spec->name;
      for (std::size_t i = 0; i < field_count(*spec); ++i) {
        type.fields.emplace_back(spec->fields[i].name);
        type.kinds.push_back(spec->fields[i].field);
      }
    }
  }

  void add(const Event& event) {
    ++history_.events;
    Rank& rank = rank_of(event.rank);
    Actor& actor = rank.actors[event.actor];
    if (rank.first_ns == no_time) rank.first_ns = event.local_ns;
    rank.last_ns = std::max(rank.last_ns, event.local_ns);
    switch (event.spec().category) {
      case trace::Category::task:
      case trace::Category::sched: add_task(event, rank, actor); break;
      case trace::Category::worker:
        set_state(event, rank, actor,
                  event.number(0) < trace::kWorkerStates ? static_cast<ActorState>(event.number(0)) : ActorState::other);
        break;
      case trace::Category::data: add_memory(event, rank); break;
      case trace::Category::comm:
        if (event.type == Type::progress_state) {
          const auto state = static_cast<std::size_t>(event.number(0)) + static_cast<std::size_t>(ActorState::engine_working);
          set_state(event, rank, actor, state < actor_states ? static_cast<ActorState>(state) : ActorState::other);
        } else {
          messages_.add(event);
        }
        break;
      case trace::Category::broadcast: messages_.add(event); break;
      case trace::Category::dist:
        // Tasks of the flow are named by the low 32 bits of their ids, as everywhere.
        messages_.add_flow(event,
                           event.type == Type::data_sent || event.type == Type::data_received || event.type == Type::data_expected
                               ? rank.ids.near(u32(event, 2))
                               : 0);
        break;
      case trace::Category::flow: add_wait(event, actor); break;
      case trace::Category::tracer: add_tracer(event, rank, actor); break;
      case trace::Category::user: add_user(event, rank, actor); break;
      case trace::Category::about: break;
    }
    actor.last_ns = event.local_ns;
  }

  void finish(trace::TraceReader& run);

 private:
  struct Interval {
    std::size_t row = 0;
    std::uint64_t key = 0;
  };
  struct Actor {
    std::optional<ActorState> base;        ///< between tasks
    std::vector<std::uint32_t> running;    ///< rows of tasks, one within the other
    std::int64_t since_ns = no_time;       ///< of what it does now
    std::int64_t last_ns = no_time;        ///< of its last event
    std::vector<Interval> spans, waits, flushes, quiets;  ///< open ones
  };
  /// A recorded graph: the tasks of its first replay, which were described one by one.
  struct Graph {
    std::int64_t first = 0;
    std::uint32_t count = 0;
    std::vector<std::vector<std::pair<std::uint32_t, std::uint8_t>>> accesses;  ///< data and mode
    std::vector<std::vector<std::uint32_t>> predecessors;                         ///< positions in the graph
  };
  struct Rank {
    const RankTrace* trace = nullptr;
    std::uint32_t rank = 0;
    Unwrapper ids;
    std::uint32_t submitted = 0;
    bool tells_ready = false;
    std::int64_t first_ns = no_time, last_ns = no_time;
    std::map<std::uint32_t, Actor> actors;
    std::unordered_map<std::uint32_t, Graph> graphs;
    std::map<std::uint16_t, std::int64_t> used_bytes;                                          ///< of each memory node
    std::map<std::tuple<std::uint32_t, std::uint16_t, std::uint16_t>, std::deque<std::size_t>> transfers;  ///< open ones
    std::vector<Texts::Id> codelets, files;  ///< of each site
    std::size_t first_access = 0, first_dependency = 0;  ///< where to look for those of a graph that comes next
  };

  void open_rank(const RankTrace& trace);
  Rank& rank_of(std::uint32_t rank) {
    if (last_ == nullptr || last_->rank != rank) last_ = &ranks_.at(rank);
    return *last_;
  }

  std::uint32_t row_of(Rank& rank, std::int64_t id) {
    std::uint32_t& row = *history_.task_index_[rank.rank].find_or_add(id);
    if (row == no_number) {
      row = static_cast<std::uint32_t>(history_.tasks.size());
      TaskRow& task = history_.tasks.emplace_back();
      task.rank = rank.rank;
      task.id = static_cast<std::uint64_t>(id);
    }
    return row;
  }
  void advance(TaskRow& task, TaskStatus status) noexcept { task.status = std::max(task.status, status); }

  void add_task(const Event& event, Rank& rank, Actor& actor);
  void submit(const Event& event, Rank& rank);
  void replay(const Event& event, Rank& rank);
  void learn_graph(Rank& rank, Graph& graph);
  void start(const Event& event, Rank& rank, Actor& actor, std::uint32_t row);
  void end(const Event& event, Rank& rank, Actor& actor, std::uint32_t row);

  void set_state(const Event& event, const Rank& rank, Actor& actor, ActorState state);
  void close_state(std::uint32_t rank, std::uint32_t actor_number, Actor& actor, std::int64_t until_ns);
  void add_memory(const Event& event, Rank& rank);
  void add_wait(const Event& event, Actor& actor);
  void add_tracer(const Event& event, const Rank& rank, Actor& actor);
  void add_user(const Event& event, const Rank& rank, Actor& actor);
  void add_declared(const Event& event, std::uint32_t task);
  Texts::Id name_of_number(const Rank& rank, std::uint32_t number);
  void describe_data(const RankTrace& trace);
  void name_tasks(RankTrace& trace, const Rank& rank);

  History& history_;
  MessagePairing messages_;
  std::unordered_map<std::uint32_t, Rank> ranks_;
  Rank* last_ = nullptr;
};

void HistoryBuilder::open_rank(const RankTrace& trace) {
  Rank& rank = ranks_[trace.rank];
  rank.trace = &trace;
  rank.rank = trace.rank;
  for (const trace::Site& site : trace.sites) {
    rank.codelets.push_back(history_.texts.add(site.codelet));
    rank.files.push_back(history_.texts.add(site.file));
  }
  for (const auto& stream : trace.streams) {
    const trace::StreamSummary& summary = stream->summary();
    if (summary.kind == trace::ActorKind::catalogue) continue;
    history_.actors.push_back({.rank = trace.rank, .actor = summary.actor, .kind = summary.kind, .index = summary.index,
                               .core = summary.core, .name = summary.name, .events = summary.events, .bytes = summary.bytes,
                               .lost_events = summary.lost_events});
  }
  describe_data(trace);
}

void HistoryBuilder::describe_data(const RankTrace& trace) {
  for (std::size_t i = 0; i < trace.data.size(); ++i) {
    const trace::DataDescription& datum = trace.data[i];
    if (datum.name.empty() && datum.owner == no_number && datum.bytes == 0) continue;  // nobody described it
    DataRow& row = history_.data.emplace_back(DataRow{.rank = trace.rank,
                                                      .data = static_cast<std::uint32_t>(i),
                                                      .owner = datum.owner,
                                                      .bytes = datum.bytes,
                                                      .rows = datum.rows,
                                                      .cols = datum.cols,
                                                      .name = history_.texts.add(datum.name)});
    if (datum.site >= trace.sites.size()) continue;
    row.file = history_.texts.add(trace.sites[datum.site].file);
    row.line = trace.sites[datum.site].line;
  }
}

// --- tasks

void HistoryBuilder::add_task(const Event& event, Rank& rank, Actor& actor) {
  if (event.type == Type::task_submitted || event.type == Type::task_submitted_wide) return submit(event, rank);
  if (event.type == Type::task_replayed) return replay(event, rank);
  const std::int64_t id = rank.ids.unwrap(u32(event, 0));
  const std::uint32_t row = row_of(rank, id);
  TaskRow& task = history_.tasks[row];
  switch (event.type) {
    case Type::task_accesses:
      history_.accesses.push_back(
          {row, trace::data_of_access(u32(event, 1)), static_cast<std::uint8_t>(trace::mode_of_access(u32(event, 1)))});
      break;
    case Type::task_deps:
      history_.dependencies.push_back({row, static_cast<std::uint64_t>(rank.ids.near(u32(event, 1)))});
      break;
    case Type::task_ready:
      rank.tells_ready = true;
      task.ready_ns = event.local_ns;
      advance(task, TaskStatus::ready);
      break;
    case Type::task_pushed:
      task.pushed_ns = event.local_ns;
      task.pushed_to = u16(event, 1);
      break;
    case Type::task_popped:
    case Type::task_stolen:
      task.popped_ns = event.local_ns;
      task.stolen = event.type == Type::task_stolen;
      break;
    case Type::task_started: start(event, rank, actor, row); break;
    case Type::task_ended: end(event, rank, actor, row); break;
    case Type::task_failed: advance(task, TaskStatus::failed); break;
    case Type::task_cancelled:
      advance(task, TaskStatus::cancelled);
      if (task.end_ns == no_time) task.end_ns = event.local_ns;
      break;
    default: break;
  }
}

void HistoryBuilder::submit(const Event& event, Rank& rank) {
  const std::int64_t id = rank.ids.unwrap(u32(event, 0));
  const std::uint32_t row = row_of(rank, id);
  TaskRow& task = history_.tasks[row];
  task.submit_ns = event.local_ns;
  task.submit_order = rank.submitted++;
  task.priority = static_cast<std::int32_t>(event.integer(1));
  advance(task, TaskStatus::submitted);
  if (const std::uint64_t site = event.number(2); site < rank.codelets.size()) {
    task.name = task.codelet = rank.codelets[site];
    task.file = rank.files[site];
    task.line = rank.trace->sites[site].line;
  }
  for (std::size_t i = 0; i < event.list_size(5); ++i) {
    const std::uint32_t word = event.list_entry(5, i);
    history_.accesses.push_back({row, trace::data_of_access(word), static_cast<std::uint8_t>(trace::mode_of_access(word))});
  }
  // Modulo 2^32: a join that is made while a task is entered has a greater number than that task.
  for (std::size_t i = 0; i < event.list_size(6); ++i)
    history_.dependencies.push_back({row, static_cast<std::uint64_t>(id - static_cast<std::int32_t>(event.list_entry(6, i)))});
}

/// The accesses and predecessors of the tasks of a first replay: they are among the last rows.
void HistoryBuilder::learn_graph(Rank& rank, Graph& graph) {
  graph.accesses.resize(graph.count);
  graph.predecessors.resize(graph.count);
  const auto position = [&](std::uint64_t id) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(id) - graph.first); };
  const auto belongs = [&](const TaskRow& task) { return task.rank == rank.rank && position(task.id) < graph.count; };
  for (std::size_t i = rank.first_access; i < history_.accesses.size(); ++i) {
    const AccessRow& access = history_.accesses[i];
    const TaskRow& task = history_.tasks[access.task];
    if (belongs(task)) graph.accesses[position(task.id)].emplace_back(access.data, access.mode);
  }
  for (std::size_t i = rank.first_dependency; i < history_.dependencies.size(); ++i) {
    const DependencyRow& dependency = history_.dependencies[i];
    const TaskRow& task = history_.tasks[dependency.task];
    if (belongs(task) && position(dependency.predecessor) < graph.count)
      graph.predecessors[position(task.id)].push_back(static_cast<std::uint32_t>(position(dependency.predecessor)));
  }
  rank.first_access = history_.accesses.size();
  rank.first_dependency = history_.dependencies.size();
}

void HistoryBuilder::replay(const Event& event, Rank& rank) {
  const std::uint32_t number = u32(event, 0);
  const std::int64_t first = rank.ids.unwrap(u32(event, 1));
  const auto [at, is_first] = rank.graphs.try_emplace(number);
  Graph& graph = at->second;
  if (is_first) {
    // Its tasks have just been described; where events were lost, rows would be made of unknown values.
    graph.first = first;
    graph.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(event.number(2), history_.tasks.size()));
    learn_graph(rank, graph);
    for (std::uint32_t i = 0; i < graph.count; ++i)
      if (const std::uint32_t row = history_.task_index_[rank.rank].find(first + i); row != no_number)
        history_.tasks[row].graph = number;
    return;
  }
  const std::uint32_t count = std::min(graph.count, u32(event, 2));
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t model_row = history_.task_index_[rank.rank].find(graph.first + i);
    const std::uint32_t row = row_of(rank, first + i);
    TaskRow& task = history_.tasks[row];
    task.submit_ns = event.local_ns;
    task.submit_order = rank.submitted++;
    task.graph = number;
    advance(task, TaskStatus::submitted);
    if (model_row != no_number) {
      const TaskRow& model = history_.tasks[model_row];
      task.name = model.name;
      task.codelet = model.codelet;
      task.file = model.file;
      task.line = model.line;
      task.priority = model.priority;
    }
    for (const auto& [data, mode] : graph.accesses[i]) history_.accesses.push_back({row, data, mode});
    for (const std::uint32_t position : graph.predecessors[i])
      history_.dependencies.push_back({row, static_cast<std::uint64_t>(first + position)});
  }
  if (count > 0) rank.ids.unwrap(static_cast<std::uint32_t>(first + count - 1));
}

void HistoryBuilder::start(const Event& event, Rank& rank, Actor& actor, std::uint32_t row) {
  TaskRow& task = history_.tasks[row];
  task.start_ns = event.local_ns;
  advance(task, TaskStatus::running);
  if (const ActorFacts* facts = history_.find_actor(rank.rank, event.actor);
      facts != nullptr && facts->kind == trace::ActorKind::worker)
    task.worker = facts->index;
  close_state(rank.rank, event.actor, actor, event.local_ns);
  actor.running.push_back(row);
}

void HistoryBuilder::end(const Event& event, Rank& rank, Actor& actor, std::uint32_t row) {
  TaskRow& task = history_.tasks[row];
  task.end_ns = event.local_ns;
  advance(task, TaskStatus::done);
  const auto open = std::ranges::find(actor.running, row);
  if (open == actor.running.end()) return;  // its beginning was lost
  close_state(rank.rank, event.actor, actor, event.local_ns);
  actor.running.erase(open, actor.running.end());
}

// --- states

void HistoryBuilder::close_state(std::uint32_t rank, std::uint32_t actor_number, Actor& actor, std::int64_t until_ns) {
  const bool executes = !actor.running.empty();
  if (actor.since_ns != no_time && (executes || actor.base) && until_ns > actor.since_ns) {
    const ActorFacts* facts = history_.find_actor(rank, actor_number);
    const bool is_worker = facts != nullptr && facts->kind == trace::ActorKind::worker;
    history_.states.push_back(
        {.start_ns = actor.since_ns,
         .end_ns = until_ns,
         .rank = rank,
         .actor = actor_number,
         .task = executes ? actor.running.back() : no_number,
         .worker = is_worker ? facts->index : no_worker,
         .state = executes ? ActorState::executing : *actor.base,
         .depth = static_cast<std::uint8_t>(executes ? std::min<std::size_t>(actor.running.size() - 1, 255) : 0)});
  }
  actor.since_ns = until_ns;
}

void HistoryBuilder::set_state(const Event& event, const Rank& rank, Actor& actor, ActorState state) {
  if (actor.running.empty() && (!actor.base || *actor.base != state)) close_state(rank.rank, event.actor, actor, event.local_ns);
  actor.base = state;
}

// --- memory

void HistoryBuilder::add_memory(const Event& event, Rank& rank) {
  const std::uint32_t data = u32(event, 0);
  switch (event.type) {
    case Type::data_allocated:
    case Type::data_freed: {
      const auto bytes = static_cast<std::int64_t>(event.number(2));
      const std::int64_t change = event.type == Type::data_allocated ? bytes : -bytes;
      std::int64_t& used = rank.used_bytes[u16(event, 1)];
      used += change;
      history_.memory.push_back({.rank = rank.rank,
                                 .data = data,
                                 .node = u16(event, 1),
                                 .time_ns = event.local_ns,
                                 .bytes = change,
                                 .used_bytes = used});
      break;
    }
    case Type::data_numa:
      if (const DataRow* const row = history_.find_data(rank.rank, data))
        history_.data[static_cast<std::size_t>(row - history_.data.data())].numa_node = u16(event, 1);
      break;
    case Type::transfer_started:
      rank.transfers[{data, u16(event, 1), u16(event, 2)}].push_back(history_.transfers.size());
      history_.transfers.push_back({.rank = rank.rank, .data = data, .from = u16(event, 1), .to = u16(event, 2),
                                    .bytes = event.number(3), .start_ns = event.local_ns});
      break;
    case Type::transfer_ended: {
      auto& open = rank.transfers[{data, u16(event, 1), u16(event, 2)}];
      if (open.empty()) {
        history_.transfers.push_back(
            {.rank = rank.rank, .data = data, .from = u16(event, 1), .to = u16(event, 2), .end_ns = event.local_ns});
        break;
      }
      history_.transfers[open.front()].end_ns = event.local_ns;
      open.pop_front();
      break;
    }
    default: break;
  }
}

// --- what begins and ends

void HistoryBuilder::add_wait(const Event& event, Actor& actor) {
  const auto begin = [&](WaitKind kind) {
    actor.waits.push_back({history_.waits.size(), static_cast<std::uint64_t>(kind)});
    history_.waits.push_back({.rank = event.rank, .actor = event.actor, .kind = kind, .start_ns = event.local_ns});
  };
  const auto finish = [&](WaitKind kind) {
    const auto open = std::find_if(actor.waits.rbegin(), actor.waits.rend(),
                                   [&](const Interval& wait) { return wait.key == static_cast<std::uint64_t>(kind); });
    if (open == actor.waits.rend()) {
      history_.waits.push_back({.rank = event.rank, .actor = event.actor, .kind = kind, .end_ns = event.local_ns});
      return;
    }
    history_.waits[open->row].end_ns = event.local_ns;
    actor.waits.erase(std::next(open).base());
  };
  switch (event.type) {
    case Type::wait_began: return begin(WaitKind::waiting);
    case Type::wait_ended: return finish(WaitKind::waiting);
    case Type::submission_throttled: return begin(WaitKind::throttled);
    case Type::submission_resumed: return finish(WaitKind::throttled);
    default: return;
  }
}

void HistoryBuilder::add_tracer(const Event& event, const Rank& rank, Actor& actor) {
  TracerRow row{.rank = event.rank, .actor = event.actor, .start_ns = event.local_ns};
  const auto finish = [&](std::vector<Interval>& open, std::uint64_t key) {
    const auto found = std::ranges::find(open, key, &Interval::key);
    if (found == open.end()) return;
    history_.tracer[found->row].end_ns = event.local_ns;
    open.erase(found);
  };
  switch (event.type) {
    case Type::flush_began:
      row.of_actor = u32(event, 0);
      row.amount = event.number(1);
      actor.flushes.push_back({history_.tracer.size(), event.number(0)});
      break;
    case Type::flush_ended: return finish(actor.flushes, event.number(0));
    case Type::quiet_began:
      row.kind = TracerKind::quiet;
      actor.quiets.push_back({history_.tracer.size(), 0});
      break;
    case Type::quiet_ended: return finish(actor.quiets, 0);
    case Type::tracer_waited:
      row.kind = TracerKind::waited;
      row.amount = event.number(0);  // from the event on that needed a buffer
      row.end_ns = event.local_ns + static_cast<std::int64_t>(std::min<std::uint64_t>(row.amount, std::uint64_t{1} << 60));
      break;
    case Type::events_lost:
      row.kind = TracerKind::lost;
      row.amount = event.number(0);
      row.end_ns = event.local_ns;
      if (actor.last_ns != no_time) row.start_ns = actor.last_ns;
      // It is unknown what the actor did in between; the next events show what it does now.
      if (actor.last_ns != no_time) close_state(rank.rank, event.actor, actor, actor.last_ns);
      actor.running.clear();
      actor.base.reset();
      break;
    default: return;
  }
  history_.tracer.push_back(row);
}

Texts::Id HistoryBuilder::name_of_number(const Rank& rank, std::uint32_t number) {
  if (number < rank.trace->names.size() && !rank.trace->names[number].second.empty())
    return history_.texts.add(rank.trace->names[number].second);
  return history_.texts.add(fmt::format("(name {})", number));
}

void HistoryBuilder::add_declared(const Event& event, std::uint32_t task) {
  DeclaredEvents& type = history_.declared[static_cast<std::size_t>(event.type) - trace::kFirstDeclared];
  type.rows.push_back({.rank = event.rank, .actor = event.actor, .task = task, .time_ns = event.local_ns});
  for (std::size_t i = 0; i < type.kinds.size(); ++i) {
    switch (type.kinds[i]) {
      case trace::Field::i32:
      case trace::Field::i64: type.values.push_back(static_cast<std::uint64_t>(event.integer(i))); break;
      case trace::Field::f64: type.values.push_back(std::bit_cast<std::uint64_t>(event.real(i))); break;
      case trace::Field::text: type.values.push_back(history_.texts.add(event.text(i))); break;
      default: type.values.push_back(event.number(i));
    }
  }
}

void HistoryBuilder::add_user(const Event& event, const Rank& rank, Actor& actor) {
  const std::uint32_t task = actor.running.empty() ? no_number : actor.running.back();
  if (static_cast<std::size_t>(event.type) >= trace::kFirstDeclared) return add_declared(event, task);
  const std::uint32_t number = u32(event, 0);
  switch (event.type) {
    case Type::mark:
    case Type::counter: {
      auto& rows = event.type == Type::mark ? history_.marks : history_.counters;
      rows.push_back({.rank = event.rank, .actor = event.actor, .name = name_of_number(rank, number), .task = task,
                      .time_ns = event.local_ns, .value = event.real(1)});
      break;
    }
    case Type::span_began:
      actor.spans.push_back({history_.spans.size(), number});
      history_.spans.push_back({.rank = event.rank, .actor = event.actor, .name = name_of_number(rank, number), .task = task,
                                .start_ns = event.local_ns});
      break;
    case Type::span_ended: {
      const auto open =
          std::find_if(actor.spans.rbegin(), actor.spans.rend(), [&](const Interval& span) { return span.key == number; });
      if (open == actor.spans.rend()) {
        history_.spans.push_back(
            {.rank = event.rank, .actor = event.actor, .name = name_of_number(rank, number), .end_ns = event.local_ns});
        break;
      }
      history_.spans[open->row].end_ns = event.local_ns;
      actor.spans.erase(std::next(open).base());
      break;
    }
    default: break;
  }
}

// --- the end

/// Names that tasks have of their own. The catalogue has no stamps, but names tasks as they are submitted.
void HistoryBuilder::name_tasks(RankTrace& trace, const Rank& rank) {
  trace::StreamReader* catalogue = trace.stream_of(0);
  const auto index = history_.task_index_.find(rank.rank);
  if (catalogue == nullptr || index == history_.task_index_.end()) return;
  // Where the ids begin: as they were unwrapped, so that the first name is taken to be of a task near the first one.
  Unwrapper ids;
  const auto first = std::ranges::find(history_.tasks, rank.rank, &TaskRow::rank);
  if (first != history_.tasks.end()) ids.unwrap(static_cast<std::uint32_t>(first->id));
  catalogue->rewind();
  for (auto event = catalogue->next(); event && event.value(); event = catalogue->next()) {
    if (event.value()->type != Type::task_name) continue;
    const std::uint32_t row = index->second.find(ids.unwrap(u32(*event.value(), 0)));
    if (row != no_number) history_.tasks[row].name = history_.texts.add(event.value()->text(1));
  }
  catalogue->rewind();
}

void HistoryBuilder::finish(trace::TraceReader& run) {
  for (const auto& trace : run.ranks) {
    Rank& rank = ranks_.at(trace->rank);
    for (auto& [number, actor] : rank.actors) close_state(rank.rank, number, actor, rank.last_ns);
    name_tasks(*trace, rank);
    history_.clocks.push_back({.rank = rank.rank,
                               .host = trace->host,
                               .points = trace->clock_points.size(),
                               .first_ns = rank.first_ns,
                               .last_ns = rank.last_ns});
    // Now that the least id is known: for most traces, ids are their low 32 bits.
    history_.task_index_[rank.rank].epoch = rank.ids.epoch();
  }
  std::unordered_map<std::uint32_t, std::int64_t> epochs;
  for (const auto& [rank, index] : history_.task_index_) epochs[rank] = index.epoch;
  messages_.finish(epochs);
  for (DependencyRow& dependency : history_.dependencies)
    dependency.predecessor -= static_cast<std::uint64_t>(epochs[history_.tasks[dependency.task].rank]);
  for (TaskRow& task : history_.tasks) {
    task.id -= static_cast<std::uint64_t>(epochs[task.rank]);
    // What waited for nobody when it was submitted has no event that says so.
    if (task.ready_ns == no_time && task.start_ns != no_time && rank_of(task.rank).tells_ready) task.ready_ns = task.submit_ns;
  }
}

base::Result<std::unique_ptr<History>> History::read(trace::TraceReader& run, const HistoryOptions& options) {
  auto history = std::make_unique<History>();
  if (!run.ranks.empty()) {
    history->program = run.ranks.front()->program;
    history->job = run.ranks.front()->job;
    history->size = run.ranks.front()->size;
  }
  HistoryBuilder builder(*history, run);
  const auto read = run.in_order([](const Event& event) { return event.local_ns; }, [&](const Event& event, std::int64_t) {
    builder.add(event);
    return true;
  });
  if (!read) return read.error();
  builder.finish(run);
  correct_history(*history, run, options);
  return history;
}

}  // namespace tandem::tools
