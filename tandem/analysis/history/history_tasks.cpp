// tandem/analysis/history/history_tasks.cpp: the lives of tasks, and the states of workers.
#include <algorithm>

#include "tandem/analysis/history/history_builder.hpp"

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
      history_.counts.push_back({.task = row_of(rank, near_id(rank, u32(event, 0))), .cycles = event.number(1), .instructions = event.number(2),
                                 .stalled = event.number(3), .misses = event.number(4)});
      return;
    case Type::task_expected:
      history_.expected.push_back({.task = row_of(rank, near_id(rank, u32(event, 0))),
                                   .kernel_ns = static_cast<std::int64_t>(event.number(1)),
                                   .copies_ns = static_cast<std::int64_t>(event.number(2))});
      return;
    case Type::task_implementation: return implement(event, rank);
    case Type::task_id: return rank.ids.go_on_from(event.number(0));
    default: break;
  }
  const std::int64_t id = id_of(rank, u32(event, 0));
  const std::uint32_t row = row_of(rank, id);
  TaskTable& tasks = history_.tasks;
  switch (event.type) {
    case Type::task_accesses: add_access(row, u32(event, 1)); break;
    case Type::task_deps:
      history_.dependencies.add(row, static_cast<std::uint64_t>(near_id(rank, u32(event, 1))));
      break;
    case Type::task_ready:
      rank.tells_ready = true;
      tasks.ready(row, event.local_ns);
      if (keeps_all_) tasks.ready_by.set(row, actor.worker);
      tasks.advance(row, TaskStatus::ready);
      break;
    case Type::task_pushed:
      if (event.local_ns == tasks.submit_ns[row]) tasks.ready(row, event.local_ns);  // it was ready at once
      if (!keeps_all_) break;
      tasks.pushed_ns.set(row, event.local_ns);
      tasks.pushed_to.set(row, u16(event, 1));
      break;
    case Type::task_popped:
    case Type::task_stolen: {
      if (!keeps_all_) break;
      const bool stolen = event.type == Type::task_stolen;
      tasks.popped_ns.set(row, event.local_ns);
      tasks.set_stolen(row, stolen);
      tasks.stolen_from.set(row, stolen ? u16(event, 1) : no_worker);
      break;
    }
    case Type::task_started: start(event, rank, actor, row); break;
    case Type::task_ended: end(event, rank, actor, row); break;
    case Type::task_failed: tasks.advance(row, TaskStatus::failed); break;
    case Type::task_cancelled:
      tasks.advance(row, TaskStatus::cancelled);
      if (tasks.end_ns[row] == no_time) tasks.end(row, event.local_ns);
      break;
    default: break;
  }
}

void HistoryBuilder::add_access(std::uint32_t row, std::uint32_t word) {
  if (keeps_all_)
    history_.accesses.push_back(
        {row, trace::data_of_access(word), static_cast<std::uint8_t>(trace::mode_of_access(word))});
}

void HistoryBuilder::submit(const Event& event, Rank& rank) {
  const std::int64_t id = rank.ids.unwrap(u32(event, 0));
  const std::uint32_t row = row_of(rank, id);
  TaskTable& tasks = history_.tasks;
  tasks.submit_ns.set(row, event.local_ns);
  tasks.advance(row, TaskStatus::submitted);
  if (const std::uint64_t site = event.number(2); site < rank.places.size()) {
    tasks.set_place(row, rank.places[site]);
    tasks.set_flops(row, rank.flops[site]);
  }
  const std::uint32_t order = rank.submitted++;
  if (keeps_all_) {
    tasks.submit_order.set(row, order);
    tasks.priority.set(row, static_cast<std::int32_t>(event.integer(1)));
    tasks.iteration.set(row, rank.iteration);
    for (std::size_t i = 0; i < event.list_size(5); ++i) add_access(row, event.list_entry(5, i));
  }
  // Modulo 2^32: a join made while a task is entered has a greater number than that task.
  const std::size_t predecessors = event.list_size(6);
  for (std::size_t i = 0; i < predecessors; ++i)
    history_.dependencies.add(row, static_cast<std::uint64_t>(id - static_cast<std::int32_t>(event.list_entry(6, i))));
}

void HistoryBuilder::note(const Event& event, Rank& rank) {
  const std::uint32_t row = row_of(rank, near_id(rank, u32(event, 0)));
  if (!keeps_all_) return;
  history_.tasks.tag.set(row, event.number(1));
  history_.tasks.parameters.set(row, history_.texts.add(event.text(2)));
}

/// Treats implementations of a codelet as kernels of their own: "gemm #1". A replay may have the place of another
/// implementation from its model.
void HistoryBuilder::implement(const Event& event, Rank& rank) {
  const std::uint32_t row = row_of(rank, near_id(rank, u32(event, 0)));
  TaskTable& tasks = history_.tasks;
  const auto known = without_implementation_.find(tasks.place_number(row));
  const TaskPlace of = known != without_implementation_.end() ? known->second : tasks.place(row);
  if (of.codelet == 0) return;  // its submission is lost
  const Texts::Id name = history_.texts.add(history_.texts[of.codelet] + " #" + std::to_string(event.number(1)));
  if (const auto colour = history_.colours.find(of.codelet); colour != history_.colours.end())
    history_.colours.emplace(name, colour->second);
  const std::uint32_t place = tasks.add_place({.codelet = name, .file = of.file, .line = of.line});
  without_implementation_.emplace(place, of);
  tasks.set_place(row, place);
}

void HistoryBuilder::stage(const Event& event, Rank& rank) {
  const std::uint32_t row = row_of(rank, near_id(rank, u32(event, 0)));
  end_staging(rank, row, event.local_ns);
  const auto stage = static_cast<trace::StagingState>(event.number(1));
  if (stage != trace::StagingState::memory && stage != trace::StagingState::data) return;
  rank.stagings[row] = history_.stagings.size();
  history_.stagings.push_back({.task = row, .stage = stage, .start_ns = event.local_ns, .end_ns = event.local_ns});
}

/// Ends what the task waits for in its memory, if anything.
void HistoryBuilder::end_staging(Rank& rank, std::uint32_t row, std::int64_t at_ns) {
  const auto open = rank.stagings.find(row);
  if (open == rank.stagings.end()) return;
  history_.stagings[open->second].end_ns = at_ns;
  rank.stagings.erase(open);
}

/// Reads the accesses and predecessors of the tasks of a first replay, which are among the last rows.
void HistoryBuilder::learn_graph(Rank& rank, Graph& graph) {
  graph.accesses.resize(graph.count);
  graph.predecessors.resize(graph.count);
  const TaskTable& tasks = history_.tasks;
  const auto position = [&](std::uint64_t id) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(id) - graph.first);
  };
  const auto belongs = [&](std::uint32_t task) {
    return tasks.rank[task] == rank.rank && position(tasks.id[task]) < graph.count;
  };
  for (std::size_t i = rank.first_access; i < history_.accesses.size(); ++i) {
    const AccessRow& access = history_.accesses[i];
    if (belongs(access.task)) graph.accesses[position(tasks.id[access.task])].emplace_back(access.data, access.mode);
  }
  for (std::size_t i = rank.first_dependency; i < history_.dependencies.size(); ++i) {
    const DependencyRow dependency = history_.dependencies[i];
    if (belongs(dependency.task) && position(dependency.predecessor) < graph.count)
      graph.predecessors[position(tasks.id[dependency.task])].push_back(
          static_cast<std::uint32_t>(position(dependency.predecessor)));
  }
  rank.first_access = history_.accesses.size();
  rank.first_dependency = history_.dependencies.size();
}

void HistoryBuilder::replay(const Event& event, Rank& rank) {
  const std::uint32_t number = u32(event, 0);
  const std::int64_t first = rank.ids.unwrap(u32(event, 1));
  const auto [at, is_first] = rank.graphs.try_emplace(number);
  Graph& graph = at->second;
  TaskTable& tasks = history_.tasks;
  if (is_first) {
    // The graph's tasks have just been described; where events were lost, rows would be made of unknown values.
    graph.first = first;
    graph.iteration = rank.iteration;
    graph.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(event.number(2), tasks.size()));
    learn_graph(rank, graph);
    for (std::uint32_t i = 0; i < graph.count; ++i)
      if (const std::uint32_t row = rank.index->find(first + i); row != no_number && keeps_all_)
        tasks.graph.set(row, number);
    return;
  }
  const std::uint32_t count = std::min(graph.count, u32(event, 2));
  for (std::uint32_t i = 0; i < count; ++i) {
    memory_.touch();
    const std::uint32_t model = rank.index->find(graph.first + i);
    const std::uint32_t row = row_of(rank, first + i);
    tasks.submit_ns.set(row, event.local_ns);
    tasks.advance(row, TaskStatus::submitted);
    if (model != no_number) {
      tasks.set_place(row, tasks.place_number(model));
      tasks.set_flops(row, tasks.flops(model));
    }
    const std::uint32_t order = rank.submitted++;
    if (keeps_all_) {
      tasks.submit_order.set(row, order);
      tasks.graph.set(row, number);
    }
    if (keeps_all_ && model != no_number) {
      tasks.priority.set(row, tasks.priority[model]);
      tasks.iteration.set(row, tasks.iteration[model] == graph.iteration ? rank.iteration : tasks.iteration[model]);
      tasks.tag.set(row, tasks.tag[model]);
      tasks.parameters.set(row, tasks.parameters[model]);
    }
    for (const auto& [data, mode] : graph.accesses[i]) history_.accesses.push_back({row, data, mode});
    for (const std::uint32_t position : graph.predecessors[i])
      history_.dependencies.add(row, static_cast<std::uint64_t>(first + position));
  }
  if (count > 0) rank.ids.unwrap(static_cast<std::uint32_t>(first + count - 1));
}

/// The worker's number; `no_worker`: the actor is none.
std::uint16_t HistoryBuilder::worker_of(std::uint32_t rank, std::uint32_t actor) const {
  const ActorFacts* const facts = history_.find_actor(rank, actor);
  return facts != nullptr && facts->kind == trace::ActorKind::worker ? facts->index : no_worker;
}

void HistoryBuilder::start(const Event& event, Rank& rank, Actor& actor, std::uint32_t row) {
  history_.tasks.start(row, event.local_ns);
  if (!rank.stagings.empty()) end_staging(rank, row, event.local_ns);
  history_.tasks.advance(row, TaskStatus::running);
  history_.tasks.worker.set(row, actor.worker);
  close_state(rank.rank, actor, event.local_ns);
  actor.running.push_back(row);
}

void HistoryBuilder::end(const Event& event, const Rank& rank, Actor& actor, std::uint32_t row) {
  history_.tasks.end(row, event.local_ns);
  history_.tasks.advance(row, TaskStatus::done);
  const auto open = std::ranges::find(actor.running, row);
  if (open == actor.running.end()) return;  // its beginning was lost
  close_state(rank.rank, actor, event.local_ns);
  actor.running.erase(open, actor.running.end());
}

void HistoryBuilder::close_state(std::uint32_t rank, Actor& actor, std::int64_t until_ns) {
  const bool executes = !actor.running.empty();
  if (actor.since_ns != no_time && (executes || actor.base) && until_ns > actor.since_ns) {
    if (actor.states == nullptr) actor.states = &history_.states.actor(rank, actor.number, actor.worker);
    history_.states.add(
        *actor.states,
        {.start_ns = actor.since_ns,
         .end_ns = until_ns,
         .task = executes ? actor.running.back() : no_number,
         .state = executes ? ActorState::executing : *actor.base,
         .depth = static_cast<std::uint8_t>(executes ? std::min<std::size_t>(actor.running.size() - 1, 255) : 0)});
  }
  actor.since_ns = until_ns;
}

/// Begins a worker whose first event is a state: until then it did nothing, since its thread had not begun, or it slept
/// when the trace began.
void HistoryBuilder::begin_worker(const Rank& rank, Actor& actor) {
  const ActorFacts* const facts = history_.find_actor(rank.rank, actor.number);
  if (facts == nullptr || facts->kind != trace::ActorKind::worker || !facts->has_first) return;
  actor.base = ActorState::sleeping;
  actor.since_ns = rank.first_ns;
}

void HistoryBuilder::set_state(const Event& event, const Rank& rank, Actor& actor, ActorState state) {
  if (actor.running.empty() && (!actor.base || *actor.base != state)) close_state(rank.rank, actor, event.local_ns);
  actor.base = state;
}

}  // namespace tandem::analysis
