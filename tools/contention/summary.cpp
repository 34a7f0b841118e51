// tools/contention/summary.cpp: gathers repetitions, and compares medians.
#include "tools/contention/summary.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"

namespace tandem::tools::contention {
namespace {

/// The change of the median beside the other stream.
std::string change(const Cell& together, const Cell& alone) {
  if (together.values.empty() || alone.values.empty() || median(alone.values) == 0) return "";
  // no "-0"
  return fmt::format(" {:+.0f} %", std::round(100 * (median(together.values) / median(alone.values) - 1)) + 0.0);
}

}  // namespace

std::optional<std::string> other_programs(const std::vector<Measurement>& all) {
  constexpr double undisturbed = 0.97;
  double least = 1;
  std::size_t disturbed = 0;
  for (const Measurement& m : all) {
    least = std::min(least, m.cpu_share.value_or(1));
    disturbed += m.cpu_share.value_or(1) < undisturbed;
  }
  if (disturbed == 0) return std::nullopt;
  return fmt::format(
      "other programs ran on the computing cores: in {} of {} measurements a core had less than {:.0f} % of its time, "
      "{:.0f} % at least (column cpu_share): measure again on an idle host",
      disturbed, all.size(), 100 * undisturbed, 100 * least);
}

std::string Cell::text(double scale, int digits) const {
  if (values.empty()) return "-";
  const auto [least, most] = std::ranges::minmax_element(values);
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", median(values) * scale, digits, *least * scale, digits,
                     *most * scale, digits);
}

std::vector<SummaryRow> summary_of(const std::vector<Measurement>& all) {
  std::map<std::tuple<std::string, unsigned, std::uint64_t, unsigned, unsigned, unsigned>, SummaryRow> rows;
  for (const Measurement& m : all) {
    if (m.step != "both") continue;
    SummaryRow& row = rows[{m.kernel, m.cursor, m.message_bytes, *m.computation_node, *m.communication_node, m.cores}];
    row.of = m;
    row.in_iterations = !m.computation_mb_s;
    row.is_latency = m.latency_us.has_value();
    row.computation.values.push_back(m.computation_mb_s ? *m.computation_mb_s : m.iterations_per_s.value_or(0));
    row.communication.values.push_back(m.latency_us ? *m.latency_us : m.communication_mb_s.value_or(0));
  }
  std::vector<SummaryRow> list;
  for (auto& [key, row] : rows) {
    for (const Measurement& m : all) {
      if (m.step == "computation" && m.kernel == row.of.kernel && m.cursor == row.of.cursor &&
          m.computation_node == row.of.computation_node && m.cores == row.of.cores)
        row.computation_alone.values.push_back(m.computation_mb_s ? *m.computation_mb_s
                                                                  : m.iterations_per_s.value_or(0));
      if (m.step == "communication" && m.message_bytes == row.of.message_bytes &&
          m.communication_node == row.of.communication_node)
        row.communication_alone.values.push_back(m.latency_us ? *m.latency_us : m.communication_mb_s.value_or(0));
    }
    list.push_back(std::move(row));
  }
  return list;
}

std::string summary_title(std::size_t repetitions) {
  return fmt::format(
      "medians [least, greatest] of {}; GB/s, or it/s (iterations per second) and us (half a round trip)",
      counted(repetitions, "repetition"));
}

std::array<std::string, summary_columns> summary_names() {
  return {
      "kernel",          "cores", "nodes", "messages", "computation alone", "with communication", "communication alone",
      "with computation"};
}

std::array<std::string, summary_columns> cells_of(const SummaryRow& row) {
  const auto of_cores = [&](const Cell& cell) {
    return row.in_iterations ? cell.text(1, 0) + " it/s" : cell.text(1e-3, 2);
  };
  const auto of_network = [&](const Cell& cell) {
    return row.is_latency ? cell.text(1, 2) + " us" : cell.text(1e-3, 2);
  };
  return {row.of.cursor == 1 ? row.of.kernel : fmt::format("{} x {}", row.of.kernel, row.of.cursor),
          std::to_string(row.of.cores),
          fmt::format("{}/{}", *row.of.computation_node, *row.of.communication_node),
          short_bytes(row.of.message_bytes),
          of_cores(row.computation_alone),
          of_cores(row.computation) + change(row.computation, row.computation_alone),
          of_network(row.communication_alone),
          of_network(row.communication) + change(row.communication, row.communication_alone)};
}

}  // namespace tandem::tools::contention
