// tandem/runtime/sched/policies/prices.cpp: the duals of the area bound, by iteration.
#include "tandem/runtime/sched/policies/prices.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::runtime {

std::vector<double> prices_of(std::span<const ReadyKind> kinds, const Machine& machine) {
  std::vector<std::pair<DeviceKind, unsigned>> classes;  // and the number of their workers
  for (const MachineWorker& worker : machine.workers) {
    const auto known = std::ranges::find(classes, worker.kind, &std::pair<DeviceKind, unsigned>::first);
    if (known != classes.end()) ++known->second;
    else classes.emplace_back(worker.kind, 1U);
  }
  const std::size_t count = classes.size();
  struct Cell {  // a kind of tasks on a class
    double ns = 0;  // 0: not known
    double draw = 0;
    double load = 0;  // load of each worker, if all is done there
  };
  std::vector<Cell> work;  // by class, one kind after the other
  for (const ReadyKind& kind : kinds) {
    if (kind.seen <= 0) continue;
    for (const auto& [of, workers] : classes) {
      Cell& cell = work.emplace_back();
      cell.draw = kind.draw_on(of);
      if (const Estimate kernel = kind.kernel_on(of); kernel.known) cell.ns = std::max(1.0, kernel.mean_ns);
      cell.load = kind.seen * cell.ns / workers;
    }
  }
  struct Class {
    double workers, price, mean;
    double load;  // load of each worker
  };
  std::vector<Class> of;
  for (const auto& [kind, workers] : classes) {
    const double price = 1.0 / static_cast<double>(machine.workers.size());
    of.push_back({.workers = static_cast<double>(workers), .price = price, .mean = price, .load = 0});
  }
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    for (Class& one : of) one.load = 0;
    double total = 0;
    for (std::size_t kind = 0; kind < work.size(); kind += count) {
      std::size_t best = count;
      double least = 0;
      for (std::size_t c = 0; c < count; ++c) {
        const Cell& cell = work[kind + c];
        const double cost = cell.ns * (of[c].price + cell.draw);
        if (cell.ns <= 0 || (best != count && cost >= least)) continue;
        best = c;
        least = cost;
      }
      if (best == count) continue;
      of[best].load += work[kind + best].load;
      total = std::max(total, of[best].load);
    }
    if (total == 0) break;
    const double step = 1.0 / (1 + round / 4.0);
    double sum = 0;
    for (Class& one : of) {
      one.price = std::clamp(one.price * std::exp(step * (one.load / total - 0.5)), 1e-9, 1e9);
      sum += one.price * one.workers;
    }
    for (Class& one : of) {
      one.price /= sum;
      one.mean = round < kRounds / 2 ? one.price : one.mean + (one.price - one.mean) / (round - kRounds / 2 + 2);
    }
  }
  std::vector<double> prices;
  for (const MachineWorker& worker : machine.workers) {
    const auto known = std::ranges::find(classes, worker.kind, &std::pair<DeviceKind, unsigned>::first);
    prices.push_back(of[static_cast<std::size_t>(known - classes.begin())].mean);
  }
  return prices;
}

const KindWorkers* cheapest_of(const ReadyKind& kind, std::span<const double> prices) {
  const KindWorkers* best = nullptr;
  double least = 0;
  for (const KindWorkers& some : kind.by_kind) {
    const double cost = some.kernel.mean_ns * (prices[some.first] + some.draw);
    if (!some.kernel.known || (best != nullptr && cost >= least)) continue;
    best = &some;
    least = cost;
  }
  return best;
}

std::vector<KindPart> parts_of(std::span<const ReadyKind> kinds, std::span<const double> prices) {
  std::vector<KindPart> parts;
  double all = 0;
  for (const ReadyKind& kind : kinds) {
    const KindWorkers* const best = kind.seen > 0 ? cheapest_of(kind, prices) : nullptr;
    if (best == nullptr) continue;
    all += kind.seen;
    auto part = std::ranges::find(parts, best->kind, &KindPart::kind);
    if (part == parts.end()) part = parts.insert(part, {best->kind});
    part->part += kind.seen;
  }
  for (KindPart& part : parts) part.part /= all;
  return parts;
}

}  // namespace tandem::runtime
