// tandem/api/report.hpp: option `report`: makes a page that shows a run, at its end.
#pragma once

#include <filesystem>
#include <string>

namespace tandem::base {
class Config;
class Log;
}

namespace tandem {

/// The folder of a trace that is recorded for the report alone, beside it.
std::filesystem::path report_trace_folder(const std::string& report);

/// Makes the page by the `tandem` command after the run has ended, from its trace in `folder`, and removes the folder
/// if it was recorded only for the page. One of several ranks says what to do instead, since the others may still
/// write. The command is searched beside the program, then on the PATH.
void make_report(const base::Config& config, const std::filesystem::path& folder, unsigned ranks, unsigned rank,
                 base::Log& log);

}  // namespace tandem
