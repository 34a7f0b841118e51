// tools/trace/check_tasks.cpp: checks that each task of one rank was submitted, and runs once or is cancelled.
#include "tools/trace/check_tasks.hpp"

#include <fmt/format.h>

#include "tools/counted.hpp"
#include "tools/trace/command.hpp"
#include "tandem/analysis/history/event_fields.hpp"

namespace tandem::tools {

using trace::Event;
using trace::Type;

namespace {

constexpr const char* account_name = "tasks";

void count(std::uint8_t& counter) noexcept {
  if (counter < UINT8_MAX) ++counter;
}

}  // namespace

TaskBook::TaskBook(const trace::RankTrace& rank, const Recorded& recorded) : rank_(rank), recorded_(recorded) {
  using enum Type;
  gap_ = recorded.gap({task_submitted, task_replayed, task_started, task_ended, task_cancelled});
  const double ns_per_tick = static_cast<double>(rank.scale.multiplier) / 4294967296.0;
  slack_ticks_ = static_cast<std::uint64_t>(static_cast<double>(slack_ns) / ns_per_tick);
}

TaskBook::Life& TaskBook::life(std::int64_t id) {
  std::uint32_t* const row = index_.find_or_add(id);
  if (*row == no_number) {
    *row = static_cast<std::uint32_t>(lives_.size());
    lives_.push_back({.id = id});
  }
  return lives_[*row];
}

const TaskBook::Life* TaskBook::find(std::int64_t id) const {
  const std::uint32_t row = index_.find(id);
  return row == no_number ? nullptr : &lives_[row];
}

std::string TaskBook::name(const Life& life) const {
  return fmt::format("rank {}: task {}", rank_.rank, number_of(life.id));
}

std::uint64_t TaskBook::number_of(std::int64_t id) const noexcept {
  const auto whole = static_cast<std::uint64_t>(id - Unwrapper::first_epoch);
  return rank_.size > 1 ? whole >> trace::kIdBitsBelowPosition : whole;
}

void TaskBook::report(Findings& findings, const std::string& promise, const Life& life, const std::string& what) const {
  findings.add(promise, fmt::format("{} {}", name(life), what));
}

void TaskBook::enter(Life& life, std::uint64_t ticks, Kind kind, Findings& findings) {
  count(life.submissions);
  if (life.submissions > 1) return report(findings, "each task is submitted once", life, "is submitted again");
  life.submitted = ticks;
  life.kind = kind;
}

void TaskBook::submit(const Event& event, std::int64_t id, Findings& findings) {
  const auto site = event.number(2);
  Kind kind = Kind::unknown;
  if (site < rank_.sites.size()) kind = analysis::is_node(rank_.sites[site].codelet) ? Kind::other : Kind::kernel;
  enter(life(id), event.ticks, kind, findings);
  // Differences are taken modulo 2^32: a join that is made while a task is entered has a greater number than that task.
  for (std::size_t i = 0; i < event.list_size(6); ++i)
    edges_.push_back({id, id - static_cast<std::int32_t>(event.list_entry(6, i))});
}

void TaskBook::replay(const Event& event, Findings& findings) {
  const std::int64_t first = ids_.unwrap(u32(event, 1));
  const std::uint32_t count = u32(event, 2);
  const auto [at, is_first] = graphs_.try_emplace(u32(event, 0));
  Graph& graph = at->second;
  if (is_first) {
    // Its tasks have just been described, one by one.
    if (count > lives_.size())
      findings.add("a graph's tasks are described before its first replay",
                   fmt::format("rank {}: graph {}: has {} tasks, of {} that are known", rank_.rank, at->first, count,
                               lives_.size()));
    graph = {.first = first, .count = count, .first_edge = edges_.size(), .last_edge = edges_.size()};
    while (graph.first_edge > 0 && edges_[graph.first_edge - 1].task >= first) --graph.first_edge;
    return;
  }
  if (count != graph.count)
    return findings.add(
        "a graph is replayed with as many tasks as at first",
        fmt::format("rank {}: graph {}: {} tasks, and {} at first", rank_.rank, at->first, count, graph.count));
  if (count > lives_.size()) return;
  replays_.push_back({first, at->first});
  for (std::uint32_t i = 0; i < count; ++i) {
    const Life* const model = find(graph.first + i);
    const Kind kind = model == nullptr ? Kind::unknown : model->kind;
    if (kind != Kind::other) ++replayed_;
    enter(life(first + i), event.ticks, kind, findings);
  }
  if (count > 0) ids_.unwrap(static_cast<std::uint32_t>(first + count - 1));
}

void TaskBook::cancel(Life& life, std::uint64_t ticks) {
  count(life.cancels);
  life.began = std::min(life.began, ticks);
  if (life.done == never) life.done = ticks;
}

void TaskBook::add(const Event& event, Findings& findings) {
  switch (event.type) {
    case Type::task_replayed: return replay(event, findings);
    case Type::task_id: return ids_.go_on_from(event.number(0));
    case Type::task_iteration:  // events about tasks that are no steps in their lives
    case Type::task_flops:
    case Type::task_note:
    case Type::task_counters:
    case Type::task_expected:
    case Type::task_implementation: return;
    default: break;
  }
  const auto last = last_stamp_.find(event.actor);
  const bool is_fresh = last == last_stamp_.end() || last->second < event.ticks;
  const bool is_new = event.type == Type::task_submitted || event.type == Type::task_submitted_wide;
  const auto is_known = [this](std::int64_t known) { return find(known) != nullptr; };
  const std::int64_t id = is_new ? ids_.unwrap(u32(event, 0)) : ids_.unwrap_known(u32(event, 0), is_known);
  switch (event.type) {
    case Type::task_submitted:
    case Type::task_submitted_wide: return submit(event, id, findings);
    case Type::task_deps: return edges_.push_back({id, ids_.near_known(u32(event, 1), is_known)});
    case Type::task_ready: {
      Life& task = life(id);
      count(task.readies);
      task.ready = std::min(task.ready, event.ticks);
      return;
    }
    case Type::task_pushed: {
      Life& task = life(id);
      task.pushed = std::min(task.pushed, event.ticks);
      return;
    }
    case Type::task_popped:
    case Type::task_stolen: {
      Life& task = life(id);
      task.popped = std::min(task.popped, event.ticks);
      if (is_fresh) task.began = std::min(task.began, event.ticks);
      return;
    }
    case Type::task_started: {
      Life& task = life(id);
      count(task.starts);
      task.started = std::min(task.started, event.ticks);
      if (is_fresh) task.began = std::min(task.began, event.ticks);
      return;
    }
    case Type::task_ended: {
      Life& task = life(id);
      ++task.ends;
      task.began = std::min(task.began, event.ticks);
      if (task.done == never) task.done = event.ticks;
      return;
    }
    case Type::task_failed: return count(life(id).failures);
    case Type::task_cancelled: return cancel(life(id), event.ticks);
    default: return;
  }
}

double TaskBook::ns_between(std::uint64_t from, std::uint64_t to) const {
  return static_cast<double>(to - from) * static_cast<double>(rank_.scale.multiplier) / 4294967296.0;
}

void TaskBook::check_life(const Life& task, Findings& findings) const {
  if (task.submissions == 0)
    return report(findings, "whatever a task's events name was submitted", task, "was not submitted");
  if (task.kind == Kind::other) {
    if (task.starts > 0 || task.cancels > 0)
      report(findings, "joins, events and accesses of the program are not executed", task,
             "is one of them, and has begun");
    return;
  }
  if (task.starts > 1)
    report(findings, "each task is started once", task, fmt::format("is started {} times", task.starts));
  if (task.ends > task.starts)
    report(findings, "each task ends once, after it was started", task,
           fmt::format("is started {} and ends {}", counted(task.starts, "time"), counted(task.ends, "time")));
  if (task.cancels > 1)
    report(findings, "each task is cancelled once", task, fmt::format("is cancelled {} times", task.cancels));
  if (task.cancels > 0 && task.starts > 0) report(findings, "no task both runs and is cancelled", task, "does");
  if (task.failures > 1 || (task.failures > 0 && task.starts == 0 && task.cancels == 0 && recorded_.ended()))
    report(findings, "a task fails once, when it runs or is cancelled", task,
           fmt::format("fails {}, is started {}", counted(task.failures, "time"), counted(task.starts, "time")));
  if (task.readies > 1)
    report(findings, "each task becomes ready once", task, fmt::format("becomes ready {} times", task.readies));
  if (recorded_.ended() && task.kind == Kind::kernel && task.cancels == 0 && task.starts == 0)
    report(findings, "each task that was submitted runs or is cancelled", task, "does neither");
  if (recorded_.ended() && task.starts > task.ends)
    report(findings, "each task that was started ends", task, "does not");

  const auto after = [&](std::uint64_t before, const char* what) {
    if (before != never && task.began != never && before > task.began && before - task.began > slack_ticks_)
      report(findings, fmt::format("no task begins before it {}", what), task,
           fmt::format("begins {:.0f} ns before it {}", ns_between(task.began, before), what));
  };
  after(task.submitted, "was submitted");
  after(task.ready, "is ready");
  after(task.pushed, "was put into a queue");
  if (task.popped != never && task.started != never && task.popped > task.started &&
      task.popped - task.started > slack_ticks_)
    report(findings, "no task is taken from a queue after it was started", task,
         fmt::format("is, by {:.0f} ns", ns_between(task.started, task.popped)));
}

/// The earliest end of a node: joins and events have no events of their own, but end after all their predecessors.
std::uint64_t TaskBook::done_by(std::int64_t id) {
  std::vector<std::int64_t> open{id};  // a chain of joins may be longer than a stack is deep
  while (!open.empty()) {
    const std::int64_t node = open.back();
    const Life* const life = find(node);
    if (life == nullptr || life->kind != Kind::other) {
      joins_done_[node] = life == nullptr || life->kind == Kind::unknown ? 0 : life->done;
      open.pop_back();
      continue;
    }
    const auto [known, is_new] = joins_done_.try_emplace(node, 0);
    const auto before = joins_.find(node);
    if (is_new && before != joins_.end()) {
      const std::size_t known_open = open.size();
      for (const std::int64_t predecessor : before->second)
        if (!joins_done_.contains(predecessor)) open.push_back(predecessor);
      if (open.size() > known_open) continue;  // it is visited again after them
    }
    std::uint64_t done = 0;
    if (before != joins_.end())
      for (const std::int64_t predecessor : before->second) done = std::max(done, joins_done_[predecessor]);
    joins_done_[node] = done;
    open.pop_back();
  }
  return joins_done_[id];
}

void TaskBook::check_edge(const Edge& edge, Findings& findings) {
  const Life* const predecessor = find(edge.predecessor);
  const Life* const task = find(edge.task);
  if (task == nullptr || task->submissions == 0) return;
  if (predecessor == nullptr || predecessor->submissions == 0)
    return report(findings, "whatever comes before a task was submitted", *task,
                fmt::format("comes after task {}, which was not submitted", number_of(edge.predecessor)));
  if (task->kind == Kind::other || task->began == never) return;
  const std::uint64_t done = predecessor->kind == Kind::kernel ? predecessor->done : done_by(edge.predecessor);
  if (done == never || (done > task->began && done - task->began > slack_ticks_))
    report(
        findings, "no task begins before what comes before it has ended", *task,
        fmt::format("begins before the end of task {}{}", number_of(edge.predecessor),
                    done == never ? ", which has none" : fmt::format(", by {:.0f} ns", ns_between(task->began, done))));
}

void TaskBook::finish(TraceCheck& result, Findings& findings) {
  if (!gap_.empty()) return skip_account(result, account_name, rank_.rank, gap_);
  std::uint64_t submitted = 0, others = 0, started = 0, ended = 0, failed = 0, cancelled = 0;
  for (const Life& task : lives_) {
    check_life(task, findings);
    (task.kind == Kind::other ? others : submitted) += task.submissions;
    started += task.starts;
    ended += task.ends;
    failed += task.failures;
    cancelled += task.cancels;
  }
  const auto each_edge = [&](auto&& use) {
    for (const Edge& edge : edges_) use(edge);
    for (const Replay& replay : replays_) {
      const Graph& graph = graphs_.at(replay.graph);
      for (std::size_t i = graph.first_edge; i < graph.last_edge; ++i) {
        // A task's edges may name joins that were entered before it, and have greater numbers.
        if (edges_[i].task - graph.first >= graph.count) continue;
        const std::int64_t shift = replay.first - graph.first;
        use(Edge{edges_[i].task + shift, edges_[i].predecessor + shift});
      }
    }
  };
  each_edge([&](const Edge& edge) {
    if (const Life* const task = find(edge.task); task != nullptr && task->kind == Kind::other)
      joins_[edge.task].push_back(edge.predecessor);
  });
  each_edge([&](const Edge& edge) { check_edge(edge, findings); });
  add_to_account(result, account_name,
                 {{"submitted", submitted - std::min(replayed_, submitted)},
                  {"replayed", replayed_},
                  {"started", started},
                  {"ended", ended},
                  {"failed", failed},
                  {"cancelled", cancelled},
                  {"joins and events", others}});
}

}  // namespace tandem::tools
