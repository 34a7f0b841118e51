// tools/contention/application_job.hpp: runs applications on the task runtime of two ranks, and reads their traces.
#pragma once

#include <filesystem>
#include <functional>

#include "tandem/base/result.hpp"
#include "tools/contention/applications.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools::contention {

/// Why this machine has no counters of stalled cycles; empty: it has them.
std::string why_no_counters();

/// Rank 0: makes the runs of the plan that the file lacks, one after the other. Rank 1 must be in `serve_applications`
/// meanwhile. No endpoint of this process may be open: each run has a runtime of its own, and between two runs the
/// ranks meet to exchange data. A run in which no task ends for the time of option `watchdog` fails. `made` is called
/// after each run with the number of the remaining ones; its error ends all. Errors: io, when rank 1 is gone;
/// invalid_argument, an option of the runtime; those of an application.
base::Result<void> run_applications(
    const ToolContext& context, const ApplicationOptions& options, const std::vector<ApplicationRun>& plan,
    RowFile<ApplicationRun>& results,
    const std::function<base::Result<void>(const ApplicationRun&, std::size_t left)>& made);
/// Rank 1: takes part until rank 0 has no more runs. Errors: as for `run_applications`.
base::Result<void> serve_applications(const ToolContext& context, const ApplicationOptions& options);

/// Adds to `run` the messages and stalls in the trace of its ranks. Errors: those of reading a trace.
base::Result<void> read_messages(const std::filesystem::path& traced, ApplicationRun& run);

}  // namespace tandem::tools::contention
