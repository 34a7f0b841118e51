// tools/python_script.hpp: runs the Python programs that come with Tandem.
#pragma once

#include <string>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// Runs `python/scripts/NAME` with these arguments, by `python` where that is not empty (option `python`), else by
/// `.venv/bin/python` beside the sources or the installed scripts (`scripts/setup --analysis` makes it), else by the python3 in
/// PATH. Returns what it printed. Errors: unsupported when no script or no Python is found, and what `run_program` says, of which
/// the last line is the script's.
base::Result<std::string> run_python(const std::string& python, const std::string& name,
                                     const std::vector<std::string>& arguments);

}  // namespace tandem::tools
