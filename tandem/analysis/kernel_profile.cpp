// tandem/analysis/kernel_profile.cpp: quartiles of the durations of each codelet.
#include "tandem/analysis/kernel_profile.hpp"

#include <algorithm>
#include <map>

namespace tandem::analysis {
namespace {

/// The k-th smallest; reorders `values`, which is not empty.
std::int64_t smallest(std::vector<std::int64_t>& values, std::size_t k) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(k);
  std::ranges::nth_element(values, at);
  return *at;
}

KernelProfile profile(Texts::Id codelet, std::vector<std::int64_t>& durations) {
  KernelProfile result{.codelet = codelet, .tasks = durations.size()};
  const std::size_t last = durations.size() - 1;
  result.min_ns = smallest(durations, 0);
  result.first_quartile_ns = smallest(durations, last / 4);
  result.median_ns = smallest(durations, last / 2);
  result.third_quartile_ns = smallest(durations, last - last / 4);
  result.max_ns = smallest(durations, last);
  const auto fence = static_cast<double>(result.third_quartile_ns) +
                     1.5 * static_cast<double>(result.third_quartile_ns - result.first_quartile_ns);
  for (const std::int64_t ns : durations) {
    result.total_ns += ns;
    if (static_cast<double>(ns) <= fence) continue;
    ++result.outliers;
    result.outlier_excess_ns += ns - result.median_ns;
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
