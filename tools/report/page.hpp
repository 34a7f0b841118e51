// tools/report/page.hpp: a report as one file for a browser, which asks nobody for anything.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/analysis/history.hpp"
#include "tandem/base/result.hpp"

namespace tandem::tools {

/// The style and the program of the page, as they stand in tools/report/page.
extern const std::string_view page_style;
extern const std::string_view page_program;

/// Writes the report of a run that was read from `folder`, and returns the size of the file in bytes. Errors: io, exhausted.
base::Result<std::uint64_t> write_report(const analysis::History& history, const std::string& folder, const std::filesystem::path& file);

}  // namespace tandem::tools
