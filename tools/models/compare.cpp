// tools/models/compare.cpp: `tandem models compare`: compares the durations in two folders of models.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "tandem/analysis/tables/short_time.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/models/command.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

using Key = std::tuple<std::string, model::WorkKind, std::uint64_t, std::uint64_t>;  // codelet, kind, bytes, shape

base::Result<std::map<Key, model::Estimate>> known_in(const std::filesystem::path& folder) {
  const auto files = ModelFolder(folder, "").read_all();
  if (!files.ok()) return files.error();
  std::map<Key, model::Estimate> known;
  for (const ModelFolder::File& file : files.value()) {
    if (!file.models.ok()) continue;
    for (const ModelRow& row : rows_of(file.models.value()))
      if (const model::Estimate estimate = row.history.estimate(); estimate.known)
        known[{file.models.value().codelet, row.kind, row.footprint.bytes, row.footprint.shape}] = estimate;
  }
  if (known.empty())
    return base::Error{base::ErrorCode::not_found,
                       fmt::format("{}: holds no performance models that are known; a folder of one machine is meant",
                                   folder.string())};
  return known;
}

/// Standard error of b.mean / a.mean.
double error_of_ratio(const model::Estimate& a, const model::Estimate& b) {
  const auto relative = [](const model::Estimate& e) {
    return e.deviation_ns / e.mean_ns /
           std::sqrt(static_cast<double>(std::min<std::uint64_t>(e.samples, model::History::kWindow)));
  };
  return b.mean_ns / a.mean_ns * std::hypot(relative(a), relative(b));
}

}  // namespace

base::Result<void> compare_models(const std::filesystem::path& a, const std::filesystem::path& b, bool json) {
  const auto first = known_in(a), second = known_in(b);
  if (!first.ok()) return first.error();
  if (!second.ok()) return second.error();
  Json rows = Json::array();
  if (!json)
    fmt::print("{:<16}  {:<12}  {:>10}  {:>9}  {:>9}  {:>6}\n", "codelet", "worker", "data", "A", "B", "B / A");
  std::size_t both = 0;
  for (const auto& [key, in_a] : first.value()) {
    const auto at = second.value().find(key);
    if (at == second.value().end()) continue;
    ++both;
    const model::Estimate& in_b = at->second;
    const auto& [codelet, kind, bytes, shape] = key;
    const double ratio = in_b.mean_ns / in_a.mean_ns, error = error_of_ratio(in_a, in_b);
    if (json)
      rows.push_back({{"codelet", codelet}, {"worker", kind.worker}, {"implementation", kind.implementation}, {"distance", kind.distance}, {"bytes", bytes},
                      {"shape", fmt::format("{:x}", shape)}, {"a_ns", in_a.mean_ns}, {"b_ns", in_b.mean_ns}, {"ratio", ratio}, {"ratio_error", error}});
    else
      fmt::print("{:<16}  {:<12}  {:>10}  {:>9}  {:>9}  {:.2f} +- {:.2f}\n", codelet, kind_text(kind),
                 short_bytes(bytes), analysis::short_time(in_a.mean_ns), analysis::short_time(in_b.mean_ns), ratio,
                 error);
  }
  const std::size_t only_a = first.value().size() - both, only_b = second.value().size() - both;
  if (json) print({{"tandem", version}, {"commit", commit}, {"a", a.string()}, {"b", b.string()}, {"rows", rows}, {"only_a", only_a}, {"only_b", only_b}});
  else fmt::print("{} in both, {} in A alone, {} in B alone\n", both, only_a, only_b);
  return {};
}

}  // namespace tandem::tools
