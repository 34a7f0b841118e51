// tandem/runtime/wait/explain_stuck.cpp: the graph of waiting tasks as text.
#include "tandem/runtime/wait/explain_stuck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/visit_successors.hpp"
#include "tandem/runtime/wait/find_cycle.hpp"

namespace tandem::runtime {

namespace {

constexpr std::size_t kMostListed = 12;

/// The unfinished tasks and their edges, read from the lists of successors. The submitting thread owns the pool, so
/// tasks stay tasks while it looks. Workers may run meanwhile: the tasks that they end are left out.
struct WaitGraph {
  std::vector<Task*> live;
  WaitsFor<Task*> predecessors;

  explicit WaitGraph(TaskPool& pool) {
    pool.for_each([&](Task& task) {
      if (task.successors.sealed()) return;
      live.push_back(&task);
      visit_successors(task, [&](Task& successor) { predecessors[&successor].push_back(&task); });
    });
    std::sort(live.begin(), live.end(), [](const Task* a, const Task* b) { return a->id < b->id; });
  }
};

std::string why_root_stays(const Task& task, bool running, bool at_turnstile, const std::string& memory) {
  if (task.recorded) return "it ends a replay of a recorded graph, and tasks of that replay have not ended";
  if (running) return "its kernel is running";
  if (at_turnstile) return "it waits for its turn with data that another commuting task or access holds";
  if (!memory.empty()) return memory;
  switch (task.kind) {
    case TaskKind::kernel: return "it is ready, and no worker has taken it";
    case TaskKind::join: return "it is ready and was not ended: please report this";
    case TaskKind::event: return "it was started, and nobody has completed it";
    case TaskKind::application: return "the application has acquired this data and not released it";
  }
  return "?";
}

}  // namespace

std::string explain_stuck(TaskPool& pool, std::uint64_t unfinished, const std::vector<WorkerTeam::Running>& running,
                          const std::function<std::string(Task&)>& why_memory) {
  const WaitGraph graph(pool);
  const auto outside = std::count_if(graph.live.begin(), graph.live.end(),
                                     [](const Task* task) { return !task->recorded; });
  std::string out = fmt::format("{} {} not ended", unfinished, unfinished == 1 ? "task has" : "tasks have");
  auto end = std::back_inserter(out);
  if (std::cmp_less(outside, graph.live.size())) fmt::format_to(end, ", {} of them outside recorded graphs", outside);

  const auto runs = [&](const Task* task) {
    return std::ranges::find(running, task, &WorkerTeam::Running::task) != running.end();
  };
  for (std::size_t i = 0; i < running.size(); ++i)
    if (i == 0 || running[i].worker != running[i - 1].worker)
      fmt::format_to(end, "\n  worker {} is in a kernel", running[i].worker);

  std::size_t listed = 0;
  for (Task* task : graph.live) {
    const auto before = graph.predecessors.find(task);
    const bool waits = before != graph.predecessors.end();
    if (listed == kMostListed) {
      fmt::format_to(end, "\n  ... and {} more", graph.live.size() - listed);
      break;
    }
    ++listed;
    if (!waits) {
      bool at_turnstile = false;
      if (task->special && !runs(task))
        for (unsigned i = 0; i < task->access_count; ++i)
          at_turnstile = at_turnstile || (task->accesses()[i].mode() == AccessMode::commute &&
                                          !task->accesses()[i].handle()->turnstile.free());
      fmt::format_to(end, "\n  {}: {}", describe(*task),
                     why_root_stays(*task, runs(task), at_turnstile, why_memory(*task)));
      for (unsigned i = 0; i < task->access_count; ++i)
        fmt::format_to(end, "{}{} ({})", i == 0 ? "; data: " : ", ", task->accesses()[i].handle()->name,
                       tandem::name_of(shown_mode(task->accesses()[i])));
      continue;
    }
    fmt::format_to(end, "\n  {} waits for", describe(*task));
    for (std::size_t i = 0; i < before->second.size() && i < 4; ++i)
      fmt::format_to(end, "{} {}", i == 0 ? "" : ",", describe(*before->second[i]));
    if (before->second.size() > 4) fmt::format_to(end, ", and {} more", before->second.size() - 4);
  }

  const std::vector<Task*> cycle = find_cycle(graph.live, graph.predecessors);
  for (std::size_t i = 0; i < cycle.size(); ++i)
    fmt::format_to(end, "{}{}", i == 0 ? "\n  a cycle: " : " waits for ", describe(*cycle[i]));
  if (!cycle.empty()) fmt::format_to(end, " waits for the first");
  return out;
}

}  // namespace tandem::runtime
