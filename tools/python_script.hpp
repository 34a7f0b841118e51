// tools/python_script.hpp: runs the Python part of Tandem, which draws pictures and packs tables.
#pragma once

#include <string>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// Runs `NAME ARGUMENTS` of the package `tandem` (`python/tandem/__main__.py`), without its native part, by `python`
/// where that is not empty (option `python`), else by `.venv/bin/python` beside the sources or the installed package
/// (`scripts/setup --analysis` makes it), else by the first python3 in PATH, or /usr/bin/python3, that has the modules
/// it needs. Returns what it printed. Errors: unsupported when no package or no Python is found, and what `run_program`
/// says, or the last line that the package wrote.
base::Result<std::string> run_python(const std::string& python, const std::string& name,
                                     const std::vector<std::string>& arguments);

/// Replaces this process by that program, so that what it prints is seen at once: by the first of these Pythons that
/// has the modules, else by the first one. Returns only with an error, as `run_python` does.
base::Error become_python(const std::string& python, const std::string& name, const std::vector<std::string>& arguments,
                          const std::string& modules);

}  // namespace tandem::tools
