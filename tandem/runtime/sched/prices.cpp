// tandem/runtime/sched/prices.cpp: the duals of the area bound, by iteration.
#include "tandem/runtime/sched/prices.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::runtime {

std::vector<double> prices_of(std::span<const ReadyKind> kinds, const Machine& machine) {
  std::vector<std::pair<DeviceKind, unsigned>> classes;  // and how many workers
  for (const MachineWorker& worker : machine.workers) {
    const auto known = std::ranges::find(classes, worker.kind, &std::pair<DeviceKind, unsigned>::first);
    if (known != classes.end()) ++known->second;
    else classes.emplace_back(worker.kind, 1U);
  }
  const std::size_t count = classes.size();
  struct Work {  // by class
    std::vector<double> ns;  // 0: not known
    std::vector<double> draw;
    std::vector<double> load;  // of each worker, if all is done there
  };
  std::vector<Work> work;
  for (const ReadyKind& kind : kinds) {
    if (kind.seen <= 0) continue;
    Work& one = work.emplace_back(Work{std::vector<double>(count), std::vector<double>(count), std::vector<double>(count)});
    for (std::size_t c = 0; c < count; ++c) {
      one.draw[c] = kind.draw_on(classes[c].first);
      if (const Estimate kernel = kind.kernel_on(classes[c].first); kernel.known) one.ns[c] = std::max(1.0, kernel.mean_ns);
      one.load[c] = kind.seen * one.ns[c] / classes[c].second;
    }
  }
  std::vector<double> price(count, 1.0 / static_cast<double>(machine.workers.size()));
  std::vector<double> mean = price;
  std::vector<double> load(count);  // of a worker
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    std::ranges::fill(load, 0);
    double total = 0;
    for (const Work& one : work) {
      std::size_t best = count;
      double least = 0;
      for (std::size_t c = 0; c < count; ++c) {
        const double cost = one.ns[c] * (price[c] + one.draw[c]);
        if (one.ns[c] <= 0 || (best != count && cost >= least)) continue;
        best = c;
        least = cost;
      }
      if (best == count) continue;
      load[best] += one.load[best];
      total = std::max(total, load[best]);
    }
    if (total == 0) break;
    const double step = 1.0 / (1 + round / 4.0);
    double sum = 0;
    for (std::size_t c = 0; c < count; ++c) {
      price[c] = std::clamp(price[c] * std::exp(step * (load[c] / total - 0.5)), 1e-9, 1e9);
      sum += price[c] * classes[c].second;
    }
    for (std::size_t c = 0; c < count; ++c) {
      price[c] /= sum;
      mean[c] = round < kRounds / 2 ? price[c] : mean[c] + (price[c] - mean[c]) / (round - kRounds / 2 + 2);
    }
  }
  std::vector<double> prices;
  for (const MachineWorker& worker : machine.workers)
    prices.push_back(mean[static_cast<std::size_t>(std::ranges::find(classes, worker.kind, &std::pair<DeviceKind, unsigned>::first) - classes.begin())]);
  return prices;
}

}  // namespace tandem::runtime
