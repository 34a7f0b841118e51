// tandem/analysis/worker_speed.cpp: the durations of each worker's tasks, as multiples of the medians.
#include "tandem/analysis/worker_speed.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "tandem/analysis/quartiles.hpp"

namespace tandem::analysis {
namespace {

using Place = std::pair<std::uint32_t, std::uint16_t>;  ///< rank, worker

/// The kind of each worker, as a number; of one kind all have 0.
std::map<Place, std::uint32_t> kinds_of(const History& history) {
  std::map<Place, std::uint32_t> result;
  std::map<std::string_view, std::uint32_t> numbers;
  for (const ActorFacts& actor : history.actors)
    if (actor.kind == trace::ActorKind::worker)
      result[{actor.rank, actor.index}] = numbers.try_emplace(actor.kind_of_worker(), static_cast<std::uint32_t>(numbers.size())).first->second;
  return result;
}

/// Of each codelet on each kind of worker, the median, at least 1.
class Medians {
 public:
  Medians(const History& history, const std::vector<KernelProfile>& kernels) : kinds_(kinds_of(history)) {
    if (std::ranges::all_of(kinds_, [](const auto& entry) { return entry.second == 0; })) {
      for (const KernelProfile& kernel : kernels) medians_[{kernel.codelet, 0}] = std::max<std::int64_t>(kernel.median_ns, 1);
      return;
    }
    std::map<std::pair<Texts::Id, std::uint32_t>, std::vector<std::int64_t>> durations;
    for (const TaskRow& task : history.tasks)
      if (task.has_run() && task.worker != no_worker) durations[{task.codelet, kind(task)}].push_back(task.end_ns - task.start_ns);
    for (auto& [place, ns] : durations) medians_[place] = std::max<std::int64_t>(smallest(ns, (ns.size() - 1) / 2), 1);
  }
  std::int64_t of(const TaskRow& task) const { return medians_.at({task.codelet, kind(task)}); }

 private:
  std::uint32_t kind(const TaskRow& task) const {
    const auto found = kinds_.find({task.rank, task.worker});
    return found == kinds_.end() ? 0 : found->second;
  }

  std::map<Place, std::uint32_t> kinds_;
  std::map<std::pair<Texts::Id, std::uint32_t>, std::int64_t> medians_;
};

}  // namespace

std::vector<WorkerSpeed> worker_speeds(const History& history, const std::vector<KernelProfile>& kernels) {
  const Medians medians(history, kernels);
  struct Worker {
    std::vector<double> multiples;
    std::int64_t excess_ns = 0;
  };
  std::map<Place, Worker> workers;
  for (const TaskRow& task : history.tasks) {
    if (!task.has_run() || task.worker == no_worker) continue;
    const std::int64_t median_ns = medians.of(task), duration_ns = task.end_ns - task.start_ns;
    Worker& worker = workers[{task.rank, task.worker}];
    worker.multiples.push_back(static_cast<double>(duration_ns) / static_cast<double>(median_ns));
    worker.excess_ns += duration_ns - median_ns;
  }
  std::vector<WorkerSpeed> speeds;
  for (auto& [place, worker] : workers) {
    const std::size_t tasks = worker.multiples.size();
    speeds.push_back({.rank = place.first, .worker = place.second, .tasks = tasks, .slowness = smallest(worker.multiples, tasks / 2),
                      .excess_ns = worker.excess_ns});
  }
  return speeds;
}

}  // namespace tandem::analysis
