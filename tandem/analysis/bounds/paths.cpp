// tandem/analysis/bounds/paths.cpp: the longest path forwards, and the realised path backwards.
#include "tandem/analysis/bounds/paths.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "tandem/analysis/bounds/measured_order.hpp"

namespace tandem::analysis {
namespace {

std::int64_t duration_ns(const TaskTable& tasks, std::uint32_t row) noexcept {
  return tasks.has_run(row) ? std::max<std::int64_t>(tasks.end_ns[row] - tasks.start_ns[row], 0) : 0;
}

std::int64_t message_ns(const History& history, const TaskGraph::Edge& edge, Messages messages) {
  if (messages == Messages::free || edge.message == no_number) return 0;
  const CommunicationRow& row = history.communications[edge.message];
  return std::max<std::int64_t>(row.arrived_ns - row.posted_ns, 0);
}

/// The last event that had to happen before a task or another node of the graph could begin.
struct Cause {
  std::int64_t at_ns = no_time;
  StepKind kind = StepKind::submission;
  std::uint32_t task = no_number;     ///< whose end it was; for a message: the node that sent it
  std::uint32_t message = no_number;
};

class Backwards {
 public:
  Backwards(const History& history, const TaskGraph& graph, std::int64_t begin_ns)
      : history_(history), graph_(graph), order_(history), waits_(history), begin_ns_(begin_ns) {
    path_.steps = SpillVector<PathStep>(history.memory_of_tables());
  }

  RealisedPath walk(std::uint32_t last) {
    path_.begin_ns = begin_ns_;
    std::uint32_t task = last;
    StepKind executes = StepKind::execution;
    std::int64_t until_ns = history_.tasks.end_ns[last];
    SpillMemory& memory = *history_.memory_of_tables();
    // Each round goes back in time or to a predecessor; the limit keeps damaged traces from looping for ever.
    for (std::size_t rounds = 0; rounds <= 2 * history_.tasks.size() && until_ns > begin_ns_; ++rounds) {
      memory.touch();
      const std::int64_t start_ns = history_.tasks.start_ns[task];
      add(executes, task, no_number, start_ns, until_ns);
      until_ns = std::min(until_ns, start_ns);
      const Cause cause = last_cause(task, until_ns);
      if (cause.at_ns == no_time) break;
      add(StepKind::overhead, task, no_number, cause.at_ns, until_ns);
      until_ns = std::min(until_ns, cause.at_ns);
      executes = cause.kind == StepKind::busy ? StepKind::busy : StepKind::execution;
      if (cause.kind == StepKind::message) {
        const auto sender = before_message(task, cause.message, until_ns);
        if (!sender) break;
        task = *sender;
      } else if (cause.kind == StepKind::submission) {
        const auto awaited = before_submission(task, until_ns);
        if (!awaited) break;
        task = *awaited;
      } else {
        task = cause.task;
      }
      until_ns = std::min(until_ns, history_.tasks.end_ns[task]);
    }
    if (!path_.steps.empty() && path_.steps.back().start_ns > begin_ns_)
      add(StepKind::submission, path_.steps.back().task, no_number, begin_ns_, path_.steps.back().start_ns);
    std::ranges::reverse(path_.steps);
    return std::move(path_);
  }

 private:
  void add(StepKind kind, std::uint32_t task, std::uint32_t from, std::int64_t start_ns, std::int64_t end_ns) {
    start_ns = std::max(start_ns, begin_ns_);
    if (!path_.steps.empty()) end_ns = path_.steps.back().start_ns;  // without gaps
    if (start_ns >= end_ns) return;
    path_.steps.push_back({.kind = kind, .task = task, .from = from, .start_ns = start_ns, .end_ns = end_ns});
  }

  /// The last event that a task waited for, before `limit_ns`. Nodes that do not run, such as receives and joins, pass
  /// on what they waited for.
  Cause last_cause(std::uint32_t task, std::int64_t limit_ns) const {
    Cause cause;
    const auto offer = [&](std::int64_t at_ns, StepKind kind, std::uint32_t of, std::uint32_t message) {
      if (at_ns == no_time || at_ns > limit_ns) return;
      if (cause.at_ns == no_time || at_ns > cause.at_ns) cause = {at_ns, kind, of, message};
    };
    // Submission is offered first: at equal times a cause by another task says more.
    offer(history_.tasks.submit_ns[task], StepKind::submission, task, no_number);
    std::vector<std::uint32_t> nodes{task};
    for (std::size_t i = 0; i < nodes.size() && i < most_nodes; ++i) {
      for (const TaskGraph::Edge& edge : graph_.into(nodes[i])) {
        if (edge.message != no_number) {
          offer(history_.communications[edge.message].arrived_ns, StepKind::message, edge.from, edge.message);
        } else if (history_.tasks.has_run(edge.from)) {
          offer(history_.tasks.end_ns[edge.from], StepKind::execution, edge.from, no_number);
        } else {
          nodes.push_back(edge.from);
        }
      }
    }
    const std::uint32_t before = order_.before(task);
    if (before != no_number) {
      const std::int64_t end_ns = history_.tasks.end_ns[before];
      // The worker's previous task counts if this one could have begun during it.
      if (cause.at_ns == no_time || end_ns > cause.at_ns) offer(end_ns, StepKind::busy, before, no_number);
    }
    return cause;
  }

  /// A program that waited could not submit: adds the time since its wait, and finds the task whose end let it
  /// continue. Empty: it did not wait before.
  std::optional<std::uint32_t> before_submission(std::uint32_t task, std::int64_t submit_ns) {
    const auto resumed_ns = waits_.last_end(history_.tasks.rank[task], submit_ns);
    const auto awaited = resumed_ns ? waits_.last_ended(*resumed_ns) : std::nullopt;
    if (!awaited || history_.tasks.end_ns[*awaited] <= begin_ns_) return std::nullopt;
    add(StepKind::submission, task, no_number, history_.tasks.end_ns[*awaited], submit_ns);
    return awaited;
  }

  /// Adds the time of a message, and finds the task that made its data. Empty: the path ends with the message.
  std::optional<std::uint32_t> before_message(std::uint32_t task, std::uint32_t message, std::int64_t arrived_ns) {
    const CommunicationRow& row = history_.communications[message];
    const Cause cause = last_cause(row.send_task, std::min(row.posted_ns, arrived_ns));
    const std::int64_t left_ns = cause.at_ns == no_time ? row.posted_ns : cause.at_ns;
    add(StepKind::message, task, row.source, left_ns, arrived_ns);
    // Data that came by another message is followed back from there in this way, too. In damaged traces messages may
    // wait for each other: each step goes back in time.
    if (cause.kind == StepKind::message)
      return cause.at_ns < arrived_ns ? before_message(row.send_task, cause.message, cause.at_ns) : std::nullopt;
    if (cause.at_ns == no_time) return std::nullopt;
    if (cause.kind == StepKind::submission) return before_submission(row.send_task, cause.at_ns);
    return cause.task;
  }

  static constexpr std::size_t most_nodes = 10'000;  ///< consecutive ones that do not run

  const History& history_;
  const TaskGraph& graph_;
  WorkerOrder order_;
  Waits waits_;
  std::int64_t begin_ns_;
  RealisedPath path_;
};

}  // namespace

std::string_view name_of(StepKind kind) noexcept {
  constexpr std::array<std::string_view, step_kinds> names{"execution", "busy", "overhead", "message", "submission"};
  return names[static_cast<std::size_t>(kind)];
}

std::int64_t RealisedPath::total_ns(StepKind kind) const noexcept {
  std::int64_t total_ns = 0;
  for (const PathStep& step : steps)
    if (step.kind == kind) total_ns += step.end_ns - step.start_ns;
  return total_ns;
}

// length(t) = duration(t) + max over edges (p, t) of length(p) + message(p, t)
CriticalPath critical_path(const History& history, const TaskGraph& graph, Messages messages) {
  const TaskTable& tasks = history.tasks;
  SpillVector<std::int64_t> length(history.memory_of_tables());
  SpillVector<std::uint32_t> through(history.memory_of_tables());  // one more than the row; 0: none
  length.resize(tasks.size());
  through.resize(tasks.size());
  std::uint32_t last = no_number;
  for (const std::uint32_t task : graph.in_order()) {
    length.touch();
    for (const TaskGraph::Edge& edge : graph.into(task)) {
      const std::int64_t before_ns = length[edge.from] + message_ns(history, edge, messages);
      if (through[task] != 0 && before_ns <= length[task]) continue;
      length[task] = before_ns;
      through[task] = edge.from + 1;
    }
    length[task] += duration_ns(tasks, task);
    if (last == no_number || length[task] > length[last]) last = task;
  }
  CriticalPath path;
  if (last == no_number) return path;
  path.length_ns = length[last];
  const auto for_each = [&](auto call) {
    for (std::uint32_t task = last; task != no_number; task = through[task] - 1) {
      length.touch();
      if (tasks.has_run(task)) call(task);
    }
  };
  std::size_t count = 0;
  for_each([&](std::uint32_t) { ++count; });
  path.tasks.resize(count);
  for_each([&](std::uint32_t task) { path.tasks[--count] = task; });
  return path;
}

RealisedPath realised_path(const History& history, const TaskGraph& graph, std::int64_t begin_ns) {
  const TaskTable& tasks = history.tasks;
  std::uint32_t last = no_number;
  for (const std::uint32_t row : tasks.rows())
    if (tasks.has_run(row) && (last == no_number || tasks.end_ns[row] > tasks.end_ns[last])) last = row;
  if (last == no_number) return {.begin_ns = begin_ns};
  return Backwards(history, graph, begin_ns).walk(last);
}

}  // namespace tandem::analysis
