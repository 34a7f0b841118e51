// tandem/analysis/worker_speed.cpp: the durations of each worker's tasks, as multiples of the medians.
#include "tandem/analysis/worker_speed.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>

#include "tandem/analysis/quartiles.hpp"

namespace tandem::analysis {

std::vector<WorkerSpeed> worker_speeds(const History& history, const std::vector<KernelProfile>& kernels) {
  std::unordered_map<Texts::Id, std::int64_t> medians;
  for (const KernelProfile& kernel : kernels) medians.emplace(kernel.codelet, std::max<std::int64_t>(kernel.median_ns, 1));
  struct Worker {
    std::vector<double> multiples;
    std::int64_t excess_ns = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint16_t>, Worker> workers;
  for (const TaskRow& task : history.tasks) {
    if (!task.has_run() || task.worker == no_worker) continue;
    const std::int64_t median_ns = medians.at(task.codelet), duration_ns = task.end_ns - task.start_ns;
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
