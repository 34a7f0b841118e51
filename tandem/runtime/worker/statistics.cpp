// tandem/runtime/worker/statistics.cpp: the table for people.
#include "tandem/runtime/worker/statistics.hpp"

#include <fmt/format.h>

#include <iterator>

namespace tandem::runtime {

std::string StatisticsReport::table() const {
  std::string out =
      fmt::format("{:<24} {:>10} {:>12} {:>12} {:>12}\n", "codelet", "count", "mean us", "deviation us", "total ms");
  auto end = std::back_inserter(out);
  for (const CodeletReport& codelet : codelets)
    fmt::format_to(end, "{:<24} {:>10} {:>12.3f} {:>12.3f} {:>12.3f}\n", codelet.name, codelet.durations.count,
                   codelet.durations.mean_ns * 1e-3, codelet.durations.deviation_ns() * 1e-3,
                   codelet.durations.total_ns() * 1e-6);
  fmt::format_to(end, "{:<24} {:>10} {:>12} {:>12} {:>12} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "worker", "tasks",
                 "busy ms", "idle ms", "overhead ms", "steals", "holds", "aside", "polls", "wakes");
  for (std::size_t i = 0; i < workers.size(); ++i)
    fmt::format_to(end, "{:<24} {:>10} {:>12.3f} {:>12.3f} {:>12.3f} {:>8} {:>8} {:>8} {:>8} {:>8}\n", i,
                   workers[i].tasks, workers[i].busy_ns * 1e-6, workers[i].idle_ns * 1e-6,
                   workers[i].overhead_ns() * 1e-6, workers[i].steals, workers[i].holds, workers[i].put_aside,
                   workers[i].polls, workers[i].wakes);
  if (prefetches.hints != 0)
    fmt::format_to(end, "{} prefetches: {} copied, {} present, {} lost\n", prefetches.hints, prefetches.copied,
                   prefetches.present, prefetches.lost);
  if (page_locked.bound != 0)
    fmt::format_to(end,
                   "page-locked memory: {} bytes of at most {}, used {} at most; {} allocations, {} from the driver, "
                   "{} without room ({} bytes)\n",
                   page_locked.locked, page_locked.bound, page_locked.most_used, page_locked.allocations,
                   page_locked.from_driver, page_locked.refused, page_locked.refused_bytes);
  return out + energy.table();
}

std::string EnergyReport::table() const {
  if (kinds.empty()) return {};
  std::string out = fmt::format("{:<24} {:<24} {:>12} {:>8} {:>12} {:>10} {:>11}\n",
                                is_measured ? "energy, measured" : "energy, by the machine's figures", "workers",
                                "joules", "share", "watts", "+-", "confidence");
  const double all = joules();
  const auto row = [&](const std::string& what, const std::string& kind, double of, const model::Watts& watts) {
    fmt::format_to(std::back_inserter(out), "{:<24} {:<24} {:>12.3f} {:>6.1f} % {:>12.2f} {:>10} {:>11}\n", what, kind,
                   of, all > 0 ? 100 * of / all : 0, watts.watts,
                   is_measured ? fmt::format("{:.2f}", watts.error) : "-",
                   is_measured ? fmt::format("{:.2f}", watts.confidence()) : "-");
  };
  for (const KernelEnergy& kernel : kernels) row(kernel.codelet, kernel.kind, kernel.joules, kernel.watts);
  for (const KindEnergy& kind : kinds) row("(idle)", kind.kind, kind.idle_joules, kind.idle);
  for (const Counter& counter : counters)
    fmt::format_to(std::back_inserter(out), "{:<49} {:>12.3f}\n", counter.name, counter.joules);
  fmt::format_to(std::back_inserter(out), "{:<49} {:>12.3f}\n", "all", all);
  return out;
}

}  // namespace tandem::runtime
