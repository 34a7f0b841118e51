// tandem/analysis/verdict/kernel_profile.cpp: quartiles of the durations of each codelet, on each kind of worker.
#include "tandem/analysis/verdict/kernel_profile.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include "tandem/analysis/tables/last_rows.hpp"
#include "tandem/analysis/tables/quartiles.hpp"

namespace tandem::analysis {
namespace {

Durations durations_of(std::span<std::int64_t> durations) {
  const Quartiles ns = quartiles(durations).value();
  Durations result{.tasks = ns.count, .total_ns = ns.total, .min_ns = ns.min, .first_quartile_ns = ns.first, .median_ns = ns.median,
                   .third_quartile_ns = ns.third, .max_ns = ns.max};
  for (const std::int64_t duration : durations) {
    if (!ns.is_outlier(duration)) continue;
    ++result.outliers;
    result.outlier_excess_ns += duration - ns.median;
  }
  return result;
}

/// The durations of a codelet's tasks, and on which kinds of worker they ran.
struct OfCodelet {
  SpillVector<std::int64_t> durations;
  std::map<std::uint32_t, SpillVector<std::int64_t>> on_kinds;  ///< only where there are several
  double flops = 0;
  std::int64_t flops_ns = 0;
};

KernelProfile profile(Texts::Id codelet, OfCodelet& of) {
  KernelProfile result;
  static_cast<Durations&>(result) = durations_of({of.durations.data(), of.durations.size()});
  result.codelet = codelet;
  result.flops = of.flops;
  result.flops_ns = of.flops_ns;
  if (of.on_kinds.empty()) return result;
  result.outliers = 0;
  result.outlier_excess_ns = 0;
  for (auto& [kind, durations] : of.on_kinds) {
    const Durations there = durations_of({durations.data(), durations.size()});
    result.kinds.push_back({there, kind});
    result.outliers += there.outliers;
    result.outlier_excess_ns += there.outlier_excess_ns;
  }
  return result;
}

/// Adds a count to `sum`, which becomes empty once a task was not counted.
void add(std::optional<double>& sum, std::uint64_t count) {
  sum = sum && count != CountsRow::not_counted ? std::optional(*sum + static_cast<double>(count)) : std::nullopt;
}

void add_counts(const History& history, std::vector<KernelProfile>& kernels) {
  std::map<Texts::Id, KernelProfile*> of_codelet;
  for (KernelProfile& kernel : kernels) of_codelet.emplace(kernel.codelet, &kernel);
  for (const CountsRow& row : history.counts) {
    const TaskRow& task = history.tasks[row.task];
    if (!task.has_run() || row.cycles == CountsRow::not_counted || row.instructions == CountsRow::not_counted) continue;
    KernelProfile& kernel = *of_codelet.at(task.codelet);
    if (kernel.counted_tasks++ == 0) kernel.stalled = kernel.misses = 0;
    kernel.cycles += static_cast<double>(row.cycles);
    kernel.instructions += static_cast<double>(row.instructions);
    add(kernel.stalled, row.stalled);
    add(kernel.misses, row.misses);
  }
}

Expectations expectations_of(std::uint32_t kind, std::vector<double>& ratios, double distance_ns, double expected_ns) {
  const std::size_t last = ratios.size() - 1;
  return {.kind = kind,
          .tasks = ratios.size(),
          .first_quartile = smallest(ratios, last / 4),
          .median = smallest(ratios, last / 2),
          .third_quartile = smallest(ratios, last - last / 4),
          .error = distance_ns / expected_ns};
}

void add_expectations(const History& history, const WorkerKinds& kinds, std::vector<KernelProfile>& kernels) {
  struct Seen {
    std::vector<double> ratios;
    double distance_ns = 0, expected_ns = 0;
  };
  const TaskTable& tasks = history.tasks;
  const std::vector<std::uint32_t> last = last_rows(history.expected, tasks.size());  // some tasks are assigned again
  std::map<Texts::Id, std::map<std::uint32_t, Seen>> by_codelet;
  for (std::uint32_t i = 0; i < history.expected.size(); ++i) {
    const auto& [task, kernel_ns, copies_ns] = history.expected[i];
    if (last[task] != i || !tasks.has_run(task) || kernel_ns <= 0) continue;
    Seen& seen = by_codelet[tasks.codelet(task)][kinds.of(tasks.rank[task], tasks.worker[task])];
    const auto expected_ns = static_cast<double>(kernel_ns);
    const auto took_ns = static_cast<double>(std::max<std::int64_t>(tasks.end_ns[task] - tasks.start_ns[task], 0));
    seen.ratios.push_back(took_ns / expected_ns);
    seen.distance_ns += std::abs(took_ns - expected_ns);
    seen.expected_ns += expected_ns;
  }
  for (KernelProfile& kernel : kernels)
    for (auto& [kind, seen] : by_codelet[kernel.codelet])
      kernel.expectations.push_back(expectations_of(kind, seen.ratios, seen.distance_ns, seen.expected_ns));
}

}  // namespace

std::vector<KernelProfile> profile_kernels(const History& history) {
  const TaskTable& tasks = history.tasks;
  const WorkerKinds kinds(history);
  std::vector<OfCodelet> codelets(history.texts.size());
  for (const std::uint32_t row : tasks.rows()) {
    if (!tasks.has_run(row)) continue;
    OfCodelet& of = codelets[tasks.codelet(row)];
    const std::int64_t duration_ns = std::max<std::int64_t>(tasks.end_ns[row] - tasks.start_ns[row], 0);
    if (of.durations.memory() == nullptr) of.durations = SpillVector<std::int64_t>(history.memory_of_tables());
    of.durations.push_back(duration_ns);
    if (kinds.are_several())
      of.on_kinds.try_emplace(kinds.of(tasks.rank[row], tasks.worker[row]), history.memory_of_tables())
          .first->second.push_back(duration_ns);
    const double flops = tasks.flops(row);
    if (flops == 0) continue;
    of.flops += flops;
    of.flops_ns += duration_ns;
  }
  std::vector<KernelProfile> result;
  for (std::size_t codelet = 0; codelet < codelets.size(); ++codelet) {
    if (codelets[codelet].durations.empty()) continue;
    result.push_back(profile(static_cast<Texts::Id>(codelet), codelets[codelet]));
    codelets[codelet] = {};
  }
  add_counts(history, result);
  if (!history.expected.empty()) add_expectations(history, kinds, result);
  std::ranges::stable_sort(result, std::greater(), &KernelProfile::total_ns);
  return result;
}

}  // namespace tandem::analysis
