// tools/report/run_tables.hpp: the tables of a run for the page of a report.
#pragma once

#include "tandem/analysis/verdict/broadcasts.hpp"
#include "tandem/analysis/verdict/verdict.hpp"
#include "tools/json/json.hpp"
#include "tools/report/columns.hpp"

namespace tandem::tools {

struct RunTables {
  Json facts;       ///< names, units, limits
  Columns columns;  ///< tables of tasks, messages, broadcasts, idle time, memory, and of the realised path
};

/// Times are counted from the start of the makespan, in units of `facts.unit_ns`: nanoseconds, or a power of ten of
/// them that is at most a thousandth of the median task. Of runs with more tasks than `detailed_tasks` the data that
/// tasks access are left out.
RunTables tables_of(const analysis::History& history, const analysis::TaskGraph& graph,
                    const analysis::Summary& summary, const analysis::Broadcasts& broadcasts);

inline constexpr std::size_t detailed_tasks = 200'000;

}  // namespace tandem::tools
