// tools/python_script.cpp: finds a Python, and the package `tandem` that comes with the command.
#include "tools/python_script.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

#include "tools/subprocess.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;

bool can_run(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

/// Beside the command when it is installed, else in the sources that it was built from.
std::optional<fs::path> package_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder : {error ? fs::path() : (self.parent_path() / TANDEM_PYTHON_FROM_BIN).lexically_normal(),
                                 fs::path(TANDEM_SOURCE_PYTHON)})
    if (!folder.empty() && fs::is_regular_file(folder / "__main__.py", error)) return folder;
  return std::nullopt;
}

std::optional<fs::path> in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const fs::path file = fs::path(folder.empty() ? "." : folder) / name; can_run(file)) return file;
  return std::nullopt;
}

base::Result<fs::path> find_python(const std::string& chosen, const fs::path& package) {
  if (!chosen.empty()) {
    if (chosen.find('/') == std::string::npos) {
      if (auto found = in_path(chosen)) return *found;
    } else if (can_run(chosen)) {
      return fs::path(chosen);
    }
    return base::Error{base::ErrorCode::unsupported, "option python: " + chosen + " is no program"};
  }
  // In the sources, the package lies in python/ and the environment at the root; installed, both lie in one folder.
  for (const fs::path& beside : {package, package.parent_path()})
    if (const fs::path file = beside / ".venv/bin/python"; can_run(file)) return file;
  if (auto found = in_path("python3")) return *found;
  return base::Error{base::ErrorCode::unsupported, "no python3 is in PATH: install it, or set option python"};
}

}  // namespace

base::Result<std::string> run_python(const std::string& python, const std::string& name,
                                     const std::vector<std::string>& arguments) {
  const auto package = package_folder();
  if (!package)
    return base::Error{base::ErrorCode::unsupported,
                       "the Python package that comes with Tandem is neither installed nor in " TANDEM_SOURCE_PYTHON};
  const auto program = find_python(python, *package);
  if (!program) return program.error();
  Command command{.file = program.value(), .arguments = {package->string(), name}, .environment = {}};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  const auto run = run_program(command, std::chrono::hours(12));
  if (!run) return run.error();
  return run.value().output;
}

}  // namespace tandem::tools
