// tandem/analysis/kernel_profile.cpp: quartiles of the durations of each codelet.
#include "tandem/analysis/kernel_profile.hpp"

#include <algorithm>
#include <functional>
#include <span>

#include "tandem/analysis/quartiles.hpp"

namespace tandem::analysis {
namespace {

KernelProfile profile(Texts::Id codelet, std::span<std::int64_t> durations) {
  const Quartiles ns = quartiles(durations).value();
  KernelProfile result{.codelet = codelet, .tasks = ns.count, .total_ns = ns.total, .min_ns = ns.min, .first_quartile_ns = ns.first,
                       .median_ns = ns.median, .third_quartile_ns = ns.third, .max_ns = ns.max, .fence_ns = ns.fence()};
  for (const std::int64_t duration : durations) {
    if (!ns.is_outlier(duration)) continue;
    ++result.outliers;
    result.outlier_excess_ns += duration - ns.median;
  }
  return result;
}

/// Adds what was counted to `sum`, which is nothing once something was not.
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

}  // namespace

std::vector<KernelProfile> profile_kernels(const History& history) {
  struct Of {
    SpillVector<std::int64_t> durations;
    double flops = 0;
    std::int64_t flops_ns = 0;
  };
  const TaskTable& tasks = history.tasks;
  std::vector<Of> codelets(history.texts.size());
  for (const std::uint32_t row : tasks.rows()) {
    if (!tasks.has_run(row)) continue;
    Of& of = codelets[tasks.codelet(row)];
    const std::int64_t duration_ns = std::max<std::int64_t>(tasks.end_ns[row] - tasks.start_ns[row], 0);
    if (of.durations.memory() == nullptr) of.durations = SpillVector<std::int64_t>(history.memory_of_tables());
    of.durations.push_back(duration_ns);
    const double flops = tasks.flops(row);
    if (flops == 0) continue;
    of.flops += flops;
    of.flops_ns += duration_ns;
  }
  std::vector<KernelProfile> result;
  for (std::size_t codelet = 0; codelet < codelets.size(); ++codelet) {
    Of& of = codelets[codelet];
    if (of.durations.empty()) continue;
    result.push_back(profile(static_cast<Texts::Id>(codelet), {of.durations.data(), of.durations.size()}));
    result.back().flops = of.flops;
    result.back().flops_ns = of.flops_ns;
    of.durations.free();
  }
  add_counts(history, result);
  std::ranges::stable_sort(result, std::greater(), &KernelProfile::total_ns);
  return result;
}

}  // namespace tandem::analysis
