// tools/python_script.cpp: finds a Python, and the package `tandem` that comes with the command.
#include "tools/python_script.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
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

/// The folder of the package: beside the installed command, else in the sources of the build.
std::optional<fs::path> package_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder : {error ? fs::path() : (self.parent_path() / TANDEM_PYTHON_FROM_BIN).lexically_normal(),
                                 fs::path(TANDEM_SOURCE_PYTHON)})
    if (!folder.empty() && fs::is_regular_file(folder / "__main__.py", error)) return folder;
  return std::nullopt;
}

base::Error no_package() {
  return {base::ErrorCode::unsupported,
          "the Python package that comes with Tandem is neither installed nor in " TANDEM_SOURCE_PYTHON};
}

/// All programs with that name, in the order of PATH.
std::vector<fs::path> in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  std::vector<fs::path> found;
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const fs::path file = fs::path(folder.empty() ? "." : folder) / name; can_run(file)) found.push_back(file);
  return found;
}

/// The Pythons to try, the best first; not empty.
base::Result<std::vector<fs::path>> find_pythons(const std::string& chosen, const fs::path& package) {
  if (!chosen.empty()) {
    if (chosen.find('/') == std::string::npos) {
      if (const auto found = in_path(chosen); !found.empty()) return std::vector{found.front()};
    } else if (can_run(chosen)) {
      return std::vector{fs::path(chosen)};
    }
    return base::Error{base::ErrorCode::unsupported, "option python: " + chosen + " is no program"};
  }
  std::vector<fs::path> found;
  // In the sources, the package lies in python/ and the environment at the root; installed, both lie in one folder.
  for (const fs::path& beside : {package, package.parent_path()})
    if (const fs::path file = beside / ".venv/bin/python"; can_run(file)) found.push_back(file);
  for (const fs::path& file : in_path("python3")) found.push_back(file);
  const fs::path of_system = "/usr/bin/python3";  // the one with the distribution's modules
  if (can_run(of_system) && std::ranges::find(found, of_system) == found.end()) found.push_back(of_system);
  if (found.empty())
    return base::Error{base::ErrorCode::unsupported, "no python3 is in PATH: install it, or set option python"};
  return found;
}

}  // namespace

base::Error become_python(const std::string& python, const std::string& name, const std::vector<std::string>& arguments,
                          const std::string& modules) {
  const auto package = package_folder();
  if (!package) return no_package();
  const auto programs = find_pythons(python, *package);
  if (!programs) return programs.error();
  const auto has_modules = [&](const fs::path& program) {
    return run_program({.file = program, .arguments = {"-c", "import " + modules}, .environment = {}},
                       std::chrono::minutes(1))
        .ok();
  };
  const auto found = std::ranges::find_if(programs.value(), has_modules);
  std::vector<std::string> words{found == programs.value().end() ? programs.value().front() : *found, *package, name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  return base::Error{base::ErrorCode::io, words.front() + ": " + std::strerror(errno)};
}

base::Result<std::string> run_python(const std::string& python, const std::string& name,
                                     const std::vector<std::string>& arguments) {
  const auto package = package_folder();
  if (!package) return no_package();
  const auto programs = find_pythons(python, *package);
  if (!programs) return programs.error();
  std::optional<base::Error> first;  // the failure of the best one
  for (const fs::path& program : programs.value()) {
    Command command{.file = program, .arguments = {package->string(), name}, .environment = {}, .explains = true};
    command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
    const auto run = run_program(command, std::chrono::hours(12));
    if (run) return run.value().output;
    if (!first) first = run.error();
    if (run.error().message.find("No module named") == std::string::npos) return run.error();
  }
  return *first;
}

}  // namespace tandem::tools
