// tandem/api/report.hpp: option `report`: a page that shows a run, made at its end.
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

/// The run has ended, and its trace lies in `folder`: has the `tandem` command make the page, and removes the folder if it was
/// recorded for the page alone. A rank of several says what to do instead, since the others may still write. The command is
/// looked for beside the program, then on the PATH.
void make_report(const base::Config& config, const std::filesystem::path& folder, unsigned ranks, unsigned rank, base::Log& log);

}  // namespace tandem
