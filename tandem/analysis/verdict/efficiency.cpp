// tandem/analysis/verdict/efficiency.cpp: which share of the workers' time was useful, as a product of factors.
#include "tandem/analysis/verdict/efficiency.hpp"

#include <algorithm>
#include <map>

namespace tandem::analysis {
namespace {

/// Useful times of some workers.
struct Useful {
  std::int64_t total_ns = 0, max_ns = 0;
  std::uint32_t workers = 0;

  void add(std::int64_t ns) {
    total_ns += ns;
    max_ns = std::max(max_ns, ns);
    ++workers;
  }
  double mean_ns() const { return static_cast<double>(total_ns) / workers; }
};

Efficiency factors(const Useful& useful, double makespan_ns, double ideal_ns) {
  const double most_ns = static_cast<double>(useful.max_ns);
  return {.parallel = useful.mean_ns() / makespan_ns,
          .load_balance = useful.max_ns == 0 ? 1 : useful.mean_ns() / most_ns,
          .serialisation = most_ns / ideal_ns,
          .transfer = ideal_ns / makespan_ns};
}

}  // namespace

std::optional<RunEfficiency> efficiency(const TimeSplit& split, std::int64_t replayed_end_ns) {
  Useful all;
  std::map<std::uint32_t, Useful> of_rank;
  for (const WorkerTimes& worker : split.workers) {
    const std::int64_t ns = worker.ns[static_cast<std::size_t>(Spent::executing)];
    all.add(ns);
    of_rank[worker.rank].add(ns);
  }
  if (all.max_ns == 0) return std::nullopt;
  RunEfficiency result;
  result.ideal_makespan_ns = std::min(std::max(replayed_end_ns - split.begin_ns, all.max_ns), split.makespan_ns);
  const auto makespan_ns = static_cast<double>(split.makespan_ns),
             ideal_ns = static_cast<double>(result.ideal_makespan_ns);
  static_cast<Efficiency&>(result) = factors(all, makespan_ns, ideal_ns);
  double most_mean_ns = 0;
  for (const auto& [rank, useful] : of_rank) {
    most_mean_ns = std::max(most_mean_ns, useful.mean_ns());
    result.ranks.push_back({factors(useful, makespan_ns, ideal_ns), rank, useful.workers, useful.total_ns});
  }
  result.across_ranks = all.mean_ns() / most_mean_ns;
  result.within_ranks = most_mean_ns / static_cast<double>(all.max_ns);
  return result;
}

}  // namespace tandem::analysis
