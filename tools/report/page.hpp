// tools/report/page.hpp: a report as one file for a browser, which loads nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// The style and the program of the page, from tools/report/page.
extern const std::string_view page_style;
extern const std::string_view page_program;

struct WrittenReport {
  std::uint64_t bytes = 0;              ///< of the file
  std::uint64_t events = 0, tasks = 0;  ///< of all runs
  double read_s = 0, analysis_s = 0;    ///< seconds to read the traces, and to analyse them
};
/// Reads the traces in `folders`, one, or two to compare, and writes the page. Errors: those of the reader; io,
/// exhausted.
base::Result<WrittenReport> write_report(const std::vector<std::string>& folders, const std::filesystem::path& file);

}  // namespace tandem::tools
