// tandem/analysis/history_tasks.cpp: the lives of tasks, and the states of workers.
#include <algorithm>

#include "tandem/analysis/history_builder.hpp"

namespace tandem::analysis {

using trace::Event;
using trace::Type;

void HistoryBuilder::add_task(const Event& event, Rank& rank, Actor& actor) {
  if (event.type == Type::task_submitted || event.type == Type::task_submitted_wide) return submit(event, rank);
  switch (event.type) {
    case Type::task_replayed: return replay(event, rank);
    case Type::task_iteration: rank.iteration = static_cast<std::int32_t>(event.integer(0)); return;
    case Type::task_flops:
      if (const std::uint64_t site = event.number(0); site < rank.flops.size()) rank.flops[site] = event.real(1);
      return;
    case Type::task_note: return note(event, rank);
    case Type::task_counters:
      history_.counts.push_back({.task = row_of(rank, rank.ids.near(u32(event, 0))), .cycles = event.number(1), .instructions = event.number(2),
                                 .stalled = event.number(3), .misses = event.number(4)});
      return;
    default: break;
  }
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
      task.ready_by = worker_of(rank.rank, event.actor);
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
      task.stolen_from = task.stolen ? u16(event, 1) : no_worker;
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
    task.flops = rank.flops[site];
  }
  task.iteration = rank.iteration;
  for (std::size_t i = 0; i < event.list_size(5); ++i) {
    const std::uint32_t word = event.list_entry(5, i);
    history_.accesses.push_back({row, trace::data_of_access(word), static_cast<std::uint8_t>(trace::mode_of_access(word))});
  }
  // Modulo 2^32: a join that is made while a task is entered has a greater number than that task.
  for (std::size_t i = 0; i < event.list_size(6); ++i)
    history_.dependencies.push_back({row, static_cast<std::uint64_t>(id - static_cast<std::int32_t>(event.list_entry(6, i)))});
}

void HistoryBuilder::note(const Event& event, Rank& rank) {
  TaskRow& task = history_.tasks[row_of(rank, rank.ids.near(u32(event, 0)))];
  task.tag = event.number(1);
  task.parameters = history_.texts.add(event.text(2));
}

void HistoryBuilder::stage(const Event& event, Rank& rank) {
  const std::uint32_t row = row_of(rank, rank.ids.near(u32(event, 0)));
  end_staging(rank, row, event.local_ns);
  const auto stage = static_cast<trace::StagingState>(event.number(1));
  if (stage != trace::StagingState::memory && stage != trace::StagingState::data) return;
  rank.stagings[row] = history_.stagings.size();
  history_.stagings.push_back({.task = row, .stage = stage, .start_ns = event.local_ns, .end_ns = event.local_ns});
}

/// What the task waits for in its memory, if anything, ends.
void HistoryBuilder::end_staging(Rank& rank, std::uint32_t row, std::int64_t at_ns) {
  const auto open = rank.stagings.find(row);
  if (open == rank.stagings.end()) return;
  history_.stagings[open->second].end_ns = at_ns;
  rank.stagings.erase(open);
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
    graph.iteration = rank.iteration;
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
      task.iteration = model.iteration == graph.iteration ? rank.iteration : model.iteration;
      task.flops = model.flops;
      task.tag = model.tag;
      task.parameters = model.parameters;
    }
    for (const auto& [data, mode] : graph.accesses[i]) history_.accesses.push_back({row, data, mode});
    for (const std::uint32_t position : graph.predecessors[i])
      history_.dependencies.push_back({row, static_cast<std::uint64_t>(first + position)});
  }
  if (count > 0) rank.ids.unwrap(static_cast<std::uint32_t>(first + count - 1));
}

/// `no_worker`: the actor is none.
std::uint16_t HistoryBuilder::worker_of(std::uint32_t rank, std::uint32_t actor) const {
  const ActorFacts* const facts = history_.find_actor(rank, actor);
  return facts != nullptr && facts->kind == trace::ActorKind::worker ? facts->index : no_worker;
}

void HistoryBuilder::start(const Event& event, Rank& rank, Actor& actor, std::uint32_t row) {
  TaskRow& task = history_.tasks[row];
  task.start_ns = event.local_ns;
  if (!rank.stagings.empty()) end_staging(rank, row, event.local_ns);
  advance(task, TaskStatus::running);
  task.worker = worker_of(rank.rank, event.actor);
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

void HistoryBuilder::close_state(std::uint32_t rank, std::uint32_t actor_number, Actor& actor, std::int64_t until_ns) {
  const bool executes = !actor.running.empty();
  if (actor.since_ns != no_time && (executes || actor.base) && until_ns > actor.since_ns) {
    history_.states.push_back(
        {.start_ns = actor.since_ns,
         .end_ns = until_ns,
         .rank = rank,
         .actor = actor_number,
         .task = executes ? actor.running.back() : no_number,
         .worker = worker_of(rank, actor_number),
         .state = executes ? ActorState::executing : *actor.base,
         .depth = static_cast<std::uint8_t>(executes ? std::min<std::size_t>(actor.running.size() - 1, 255) : 0)});
  }
  actor.since_ns = until_ns;
}

void HistoryBuilder::set_state(const Event& event, const Rank& rank, Actor& actor, ActorState state) {
  if (actor.running.empty() && (!actor.base || *actor.base != state)) close_state(rank.rank, event.actor, actor, event.local_ns);
  actor.base = state;
}

}  // namespace tandem::analysis
