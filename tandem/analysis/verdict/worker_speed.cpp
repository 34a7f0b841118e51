// tandem/analysis/verdict/worker_speed.cpp: the durations of each worker's tasks, as multiples of the medians.
#include "tandem/analysis/verdict/worker_speed.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/analysis/tables/quartiles.hpp"

namespace tandem::analysis {

std::vector<WorkerSpeed> worker_speeds(const History& history, const std::vector<KernelProfile>& kernels) {
  const UsualDurations usual(history, kernels);
  struct Worker {
    explicit Worker(const std::shared_ptr<SpillMemory>& memory) : multiples(memory) {}
    SpillVector<double> multiples;
    std::int64_t excess_ns = 0;
  };
  const TaskTable& tasks = history.tasks;
  std::map<std::pair<std::uint32_t, std::uint16_t>, Worker> workers;  // by rank and worker
  for (const std::uint32_t row : tasks.rows()) {
    if (!tasks.has_run(row) || tasks.worker[row] == no_worker) continue;
    const std::int64_t median_ns = std::max<std::int64_t>(usual.of(row).median_ns, 1);
    const std::int64_t duration_ns = tasks.end_ns[row] - tasks.start_ns[row];
    Worker& worker =
        workers.try_emplace({tasks.rank[row], tasks.worker[row]}, history.memory_of_tables()).first->second;
    worker.multiples.push_back(static_cast<double>(duration_ns) / static_cast<double>(median_ns));
    worker.excess_ns += duration_ns - median_ns;
  }
  std::vector<WorkerSpeed> speeds;
  for (auto& [place, worker] : workers) {
    const std::size_t count = worker.multiples.size();
    speeds.push_back({.rank = place.first, .worker = place.second, .tasks = count, .slowness = smallest(worker.multiples, count / 2),
                      .excess_ns = worker.excess_ns});
  }
  return speeds;
}

}  // namespace tandem::analysis
