// tools/contention/summary.hpp: a campaign's results: each kernel and the network alone, and beside each other.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/contention/campaign_folder.hpp"

namespace tandem::tools::contention {

/// The values of one quantity, over repetitions.
struct Cell {
  std::vector<double> values;
  /// Text such as "median [least, greatest]", times `scale`; "-": not measured.
  std::string text(double scale, int digits) const;
};

/// A kernel on a number of cores beside messages, and both alone; in MB/s, iterations per second, or us.
struct SummaryRow {
  Measurement of;  ///< one of its measurements with both at once
  Cell computation_alone, computation, communication_alone, communication;
  bool in_iterations = false, is_latency = false;
};

/// A warning if other programs used the cores; empty: they did not.
std::optional<std::string> other_programs(const std::vector<Measurement>& all);

/// The rows by kernel, cursor, size of messages, nodes of the data and cores.
std::vector<SummaryRow> summary_of(const std::vector<Measurement>& all);

inline constexpr std::size_t summary_columns = 8;
std::string summary_title(std::size_t repetitions);
std::array<std::string, summary_columns> summary_names();
/// The cells of a row, for people, with the changes in percent.
std::array<std::string, summary_columns> cells_of(const SummaryRow& row);

}  // namespace tandem::tools::contention
