// examples/co2_forecast/pictures.cpp: starts the plot scripts with the interpreter that was found at configure time.
#include "pictures.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

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

/// Runs a program to its end, without a shell, so that no character of a path has a meaning. Its messages go to ours.
Result<void> run(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int code = posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ); code != 0) {
    return Error{ErrorCode::io, fmt::format("{} cannot be started: {}", command[0], std::strerror(code))};
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error{ErrorCode::io, fmt::format("waiting for {}: {}", command[0], std::strerror(errno))};
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{ErrorCode::io, fmt::format("{} failed; its messages stand above", command[1])};
  }
  return {};
}

}  // namespace

Result<void> draw_pictures(const std::filesystem::path& folder) {
  const std::string python = CO2_PLOT_PYTHON, scripts = CO2_PLOT_FOLDER;
  if (python.empty()) {
    return Error{ErrorCode::unsupported,
                 "no pictures: no python3 with matplotlib was found at configure time; install Debian's python3-matplotlib and "
                 "configure again. The CSV files are written"};
  }
  const auto in_folder = [&](const char* name) { return (folder / name).string(); };
  if (auto drawn = run({python, scripts + "/plot_forecast.py", in_folder("forecast.csv"), "--summary", in_folder("result.json"),
                        "--output", in_folder("forecast.png")});
      !drawn) {
    return drawn;
  }
  return run({python, scripts + "/plot_gantt.py", in_folder("timeline.csv"), "--output", in_folder("gantt.png")});
}

}  // namespace co2_forecast
