// tandem/api/report.cpp: starts `tandem trace report`, and waits for it.
#include "tandem/api/report.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
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

/// True: it ended well.
bool ran(const std::string& folder, const std::string& file) {
  std::string words[] = {command(), "trace", "report", folder, "-o", file};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data(), words[5].data(), nullptr};
  // What the program prints belongs to it: what the command says goes to standard error.
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return false;
  pid_t process = 0;
  const bool started = ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO) == 0 &&
                       ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments, environ) == 0;
  ::posix_spawn_file_actions_destroy(&actions);
  if (!started) return false;
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::filesystem::path report_trace_folder(const std::string& report) { return fmt::format("{}.trace-{}", report, ::getpid()); }

void make_report(const base::Config& config, const std::filesystem::path& folder, unsigned ranks, unsigned rank, base::Log& log) {
  const std::string& file = config.get_string("report");
  if (ranks > 1) {
    if (rank == 0)
      log.warn("option report: this is one rank of several, whose traces may not be complete yet. Once all have ended: tandem trace "
               "report {} -o {}; or start them with tandem run --report {}", folder.string(), file, file);
    return;
  }
  if (!ran(folder.string(), file)) {
    log.warn("option report: {} was not made; the trace is in {}: tandem trace report {} -o {}", file, folder.string(), folder.string(),
             file);
    return;
  }
  std::error_code ignored;
  if (config.get_string("trace.folder").empty()) std::filesystem::remove_all(folder, ignored);
}

}  // namespace tandem
