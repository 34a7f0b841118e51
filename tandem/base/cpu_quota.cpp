// tandem/base/cpu_quota.cpp: reading cpu.max (cgroup version 2) and cpu.cfs_quota_us (version 1).
#include "tandem/base/cpu_quota.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace tandem::base {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> content_of(const fs::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

std::optional<double> ratio(double quota, double period) {
  if (quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> quota_of_version_1(const fs::path& folder) {
  const auto quota = content_of(folder / "cpu.cfs_quota_us"), period = content_of(folder / "cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  // no limit is written as -1
  return ratio(std::strtod(quota->c_str(), nullptr), std::strtod(period->c_str(), nullptr));
}

std::optional<double> quota_of_version_2(const fs::path& folder) {
  const auto content = content_of(folder / "cpu.max");
  return content ? parse_cpu_max(*content) : std::nullopt;
}

/// The least quota of a folder and those above it up to the root.
template <class QuotaOf>
std::optional<double> least_upwards(const fs::path& root, const fs::path& relative, QuotaOf quota_of) {
  std::optional<double> least;
  for (fs::path below = relative;; below = below.parent_path()) {
    if (const auto quota = quota_of(root / below)) least = std::min(least.value_or(*quota), *quota);
    if (below.empty()) return least;
  }
}

}  // namespace

std::optional<double> parse_cpu_max(std::string_view content) {
  std::istringstream words{std::string(content)};
  double quota = 0, period = 0;
  if (words >> quota >> period) return ratio(quota, period);
  return std::nullopt;
}

std::optional<double> cpu_quota(const fs::path& cgroup_root, const fs::path& own_cgroup) {
  const auto memberships = content_of(own_cgroup);
  if (!memberships) return std::nullopt;
  std::istringstream lines(*memberships);
  std::optional<double> least;
  // A line is "hierarchy:controllers:path"; version 2 is hierarchy 0 without controllers.
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path path = fs::path(line.substr(second + 1)).relative_path();
    std::optional<double> quota;
    if (controllers.empty()) quota = least_upwards(cgroup_root, path, quota_of_version_2);
    else if (("," + controllers + ",").find(",cpu,") != std::string::npos)
      quota = least_upwards(cgroup_root / "cpu", path, quota_of_version_1);
    if (quota) least = std::min(least.value_or(*quota), *quota);
  }
  return least;
}

}  // namespace tandem::base
