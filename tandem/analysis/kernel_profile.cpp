// tandem/analysis/kernel_profile.cpp: quartiles of the durations of each codelet.
#include "tandem/analysis/kernel_profile.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "tandem/analysis/quartiles.hpp"

namespace tandem::analysis {
namespace {

KernelProfile profile(Texts::Id codelet, std::vector<std::int64_t>& durations) {
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

}  // namespace

std::vector<KernelProfile> profile_kernels(const History& history) {
  std::map<Texts::Id, std::vector<std::int64_t>> durations;
  for (const TaskRow& task : history.tasks)
    if (task.has_run()) durations[task.codelet].push_back(std::max<std::int64_t>(task.end_ns - task.start_ns, 0));
  std::vector<KernelProfile> result;
  for (auto& [codelet, of_codelet] : durations) result.push_back(profile(codelet, of_codelet));
  std::ranges::stable_sort(result, std::greater(), &KernelProfile::total_ns);
  return result;
}

}  // namespace tandem::analysis
