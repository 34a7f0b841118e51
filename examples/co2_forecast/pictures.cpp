// examples/co2_forecast/pictures.cpp: draws by the package `tandem`, with a Python that has matplotlib.
#include "pictures.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

extern char** environ;

namespace co2_forecast {

namespace {

using tandem::base::Error;
using tandem::base::ErrorCode;
using tandem::base::Result;

enum class Messages { shown, hidden };

/// Runs a program to its end, without a shell, so that no character of a path has a meaning. Its messages go to ours.
Result<void> run(std::vector<std::string> command, Messages messages = Messages::shown) {
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (messages == Messages::hidden) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int code = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) {
    return Error{ErrorCode::io, fmt::format("{} cannot be started: {}", command[0], std::strerror(code))};
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      return Error{ErrorCode::io, fmt::format("waiting for {}: {}", command[0], std::strerror(errno))};
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{ErrorCode::io, fmt::format("{} {} failed; its messages stand above", command[1], command[2])};
  }
  return {};
}

/// Debian's own comes first: its modules come from Debian's packages. Empty: no Python has matplotlib.
std::string python_with_matplotlib() {
  constexpr const char* probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('matplotlib') is None)";
  for (const char* python : {"/usr/bin/python3", "python3"})
    if (run({python, "-c", probe}, Messages::hidden)) return python;
  return {};
}

}  // namespace

Result<void> draw_pictures(const std::filesystem::path& folder) {
  const std::string python = python_with_matplotlib(), package = CO2_PLOT_FOLDER;
  if (python.empty())
    return Error{
        ErrorCode::unsupported,
        "no pictures: no python3 has matplotlib; install Debian's python3-matplotlib. The CSV files are written"};
  const auto in_folder = [&](const char* name) { return (folder / name).string(); };
  if (auto drawn = run({python, package, "forecast", in_folder("forecast.csv"), "--summary", in_folder("result.json"),
                        "--output", in_folder("forecast.png")});
      !drawn) {
    return drawn;
  }
  return run({python, package, "gantt", in_folder("timeline.csv"), "--output", in_folder("gantt.png")});
}

}  // namespace co2_forecast
