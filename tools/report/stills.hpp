// tools/report/stills.hpp: still pictures of a report's panels, for papers.
#pragma once

#include <string>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// The picture that the command line asks for; empty words are left to python/tandem/__main__.py, which reads them.
struct StillOptions {
  std::string pdf, svg, png;             ///< files to write
  std::string panels, show;              ///< names, separated by commas
  std::string from, to, width, height;
  std::string page;                      ///< file for the page; empty: it is removed
  bool list = false;                     ///< list the panels

  bool wanted() const noexcept { return list || !pdf.empty() || !svg.empty() || !png.empty(); }
};

/// Draws one or two runs in `folders` by `python` (`run_python`). Checks the options before it reads a trace. Returns
/// the names of the panels, or Python's message. Errors: invalid_argument where an option is wrong, those of the
/// reader, of `write_report` and of `run_python`.
base::Result<std::string> draw_stills(const std::vector<std::string>& folders, const StillOptions& options,
                                      const std::string& python);

}  // namespace tandem::tools
