// tandem/api/report.cpp: starts `tandem trace report`, and waits for it.
#include "tandem/api/report.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"

namespace tandem {
namespace {

/// The command that was built or installed with the program, else the one on the PATH.
std::string command() {
  std::error_code unknown;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path() / "tandem";
  return !unknown && ::access(beside.c_str(), X_OK) == 0 ? beside.string() : std::string("tandem");
}

/// Runs the command. Returns why it failed; empty: it succeeded.
std::string run_command(const std::string& folder, const std::string& file) {
  std::string words[] = {command(), "trace", "report", folder, "-o", file};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                       words[4].data(), words[5].data(), nullptr};
  // Standard output belongs to the program, so the command's goes to standard error.
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return "no process could be started";
  pid_t process = 0;
  int error = ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  if (error == 0) error = ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return "there is no command tandem beside the program or in $PATH";
  if (error != 0) return std::string("the command tandem could not be started: ") + std::strerror(error);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "the command tandem failed";
}

}  // namespace

std::filesystem::path report_trace_folder(const std::string& report) {
  return fmt::format("{}.trace-{}", report, ::getpid());
}

void make_report(const base::Config& config, const std::filesystem::path& folder, unsigned ranks, unsigned rank,
                 base::Log& log) {
  const std::string& file = config.get_string("report");
  if (ranks > 1) {
    if (rank == 0)
      log.warn("option report: this is one rank of several, whose traces may not be complete yet. Once all have ended: tandem trace "
               "report {} -o {}; or start them with tandem run --report {}", folder.string(), file, file);
    return;
  }
  if (const std::string why_not = run_command(folder.string(), file); !why_not.empty()) {
    log.warn("option report: {} was not made: {}; the trace is in {}: tandem trace report {} -o {}", file, why_not,
             folder.string(), folder.string(), file);
    return;
  }
  std::error_code ignored;
  if (config.get_string("trace.folder").empty()) std::filesystem::remove_all(folder, ignored);
}

}  // namespace tandem
