// tools/launcher/cleanup.cpp: a loop around read(), and kill() at its end.
#include "tools/launcher/cleanup.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/core.h>

namespace tandem::tools {
namespace {

using base::FileDescriptor;

/// Calls close_range by number: glibc before 2.34 has no function for it, and Linux before 5.9 does not have the call.
void close_from(int low) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, low, ~0u, 0) == 0) return;
#endif
  std::set<int> open;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc/self/fd", failed), end; !failed && at != end; at.increment(failed))
    open.insert(std::atoi(at->path().filename().c_str()));
  for (auto at = open.lower_bound(low); at != open.end(); ++at) close(*at);
}

/// Runs in the child. The launcher has one thread, so that all functions may be called here.
[[noreturn]] void watch_over(int pipe) {
  setsid();  // signals of the terminal, and those to the launcher's group, are not for us
  prctl(PR_SET_NAME, "tandem-cleanup");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  // Descriptors from the launcher's parent (a pipe that is read to its end) must not stay open because of this process.
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard < 3; ++standard) dup2(nothing, standard);
  const int low = 3;
  dup2(pipe, low);
  close_from(low + 1);
  (void)!chdir("/");
  std::set<pid_t> groups;
  for (;;) {
    pid_t message;
    const ssize_t count = read(low, &message, sizeof message);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof message) break;
    message > 0 ? void(groups.insert(message)) : void(groups.erase(-message));
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

base::Result<CleanupProcess> CleanupProcess::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return base::Error{base::ErrorCode::io,
                       fmt::format("no pipe for the launcher: {}", base::system_error_text(errno))};
  FileDescriptor read_end(ends[0]), write_end(ends[1]);
  const pid_t child = fork();
  if (child < 0)
    return base::Error{base::ErrorCode::io,
                       fmt::format("no process for the launcher: {}", base::system_error_text(errno))};
  if (child == 0) watch_over(read_end.get());
  return CleanupProcess(std::move(write_end), child);
}

CleanupProcess::~CleanupProcess() {
  if (child_ < 0) return;
  pipe_.close();
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {}
}

/// Sends a message; a pipe takes so few bytes at once. If the child was killed, nothing kills the ranks.
void CleanupProcess::send(pid_t message) { (void)!write(pipe_.get(), &message, sizeof message); }

}  // namespace tandem::tools
