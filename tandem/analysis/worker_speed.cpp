// tandem/analysis/worker_speed.cpp: the durations of each worker's tasks, as multiples of the medians.
#include "tandem/analysis/worker_speed.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
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
  Medians(const History& history, const std::vector<KernelProfile>& kernels) : tasks_(history.tasks), kinds_(kinds_of(history)) {
    if (std::ranges::all_of(kinds_, [](const auto& entry) { return entry.second == 0; })) {
      for (const KernelProfile& kernel : kernels) medians_[{kernel.codelet, 0}] = std::max<std::int64_t>(kernel.median_ns, 1);
      return;
    }
    std::map<std::pair<Texts::Id, std::uint32_t>, std::vector<std::int64_t>> durations;
    for (const std::uint32_t row : tasks_.rows())
      if (tasks_.has_run(row) && tasks_.worker[row] != no_worker)
        durations[{tasks_.codelet(row), kind(row)}].push_back(tasks_.end_ns[row] - tasks_.start_ns[row]);
    for (auto& [place, ns] : durations) medians_[place] = std::max<std::int64_t>(smallest(ns, (ns.size() - 1) / 2), 1);
  }
  std::int64_t of(std::uint32_t row) const { return medians_.at({tasks_.codelet(row), kind(row)}); }

 private:
  std::uint32_t kind(std::uint32_t row) const {
    const auto found = kinds_.find({tasks_.rank[row], tasks_.worker[row]});
    return found == kinds_.end() ? 0 : found->second;
  }

  const TaskTable& tasks_;
  std::map<Place, std::uint32_t> kinds_;
  std::map<std::pair<Texts::Id, std::uint32_t>, std::int64_t> medians_;
};

}  // namespace

std::vector<WorkerSpeed> worker_speeds(const History& history, const std::vector<KernelProfile>& kernels) {
  const Medians medians(history, kernels);
  struct Worker {
    explicit Worker(const std::shared_ptr<SpillMemory>& memory) : multiples(memory) {}
    SpillVector<double> multiples;
    std::int64_t excess_ns = 0;
  };
  const TaskTable& tasks = history.tasks;
  std::map<Place, Worker> workers;
  for (const std::uint32_t row : tasks.rows()) {
    if (!tasks.has_run(row) || tasks.worker[row] == no_worker) continue;
    const std::int64_t median_ns = medians.of(row), duration_ns = tasks.end_ns[row] - tasks.start_ns[row];
    Worker& worker = workers.try_emplace({tasks.rank[row], tasks.worker[row]}, history.memory_of_tables()).first->second;
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
