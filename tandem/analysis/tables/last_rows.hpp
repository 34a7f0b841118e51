// tandem/analysis/tables/last_rows.hpp: which row of a table is the last one of each task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/analysis/tables/spill_vector.hpp"
#include "tandem/analysis/tables/unknown.hpp"

namespace tandem::analysis {

/// By task, of `tasks` in all, the last of `rows` with this `task`; no_number: there is none.
template <class Row>
std::vector<std::uint32_t> last_rows(const SpillVector<Row>& rows, std::size_t tasks) {
  std::vector<std::uint32_t> last(tasks, no_number);
  for (std::uint32_t i = 0; i < rows.size(); ++i) last[rows[i].task] = i;
  return last;
}

}  // namespace tandem::analysis
