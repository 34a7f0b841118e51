// tools/report/stills.hpp: still pictures of a report's panels, for papers.
#pragma once

#include <string>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// What is to be drawn, in the words of the command line; empty words are left to python/tandem/__main__.py, which reads them.
struct StillOptions {
  std::string pdf, svg, png;             ///< files to write
  std::string panels, show;              ///< names, separated by commas
  std::string from, to, width, height;
  std::string page;                      ///< file for the page; empty: it is not kept
  bool list = false;                     ///< say which panels there are

  bool wanted() const noexcept { return list || !pdf.empty() || !svg.empty() || !png.empty(); }
};

/// Draws what `folders` hold, one run or two, by `python` (`run_python`). Looks at the options before it reads a trace. Returns the
/// names of the panels, or what is to be said. Errors: invalid_argument where an option is wrong, those of the reader, of `write_report` and of `run_python`.
base::Result<std::string> draw_stills(const std::vector<std::string>& folders, const StillOptions& options, const std::string& python);

}  // namespace tandem::tools
