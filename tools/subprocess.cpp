// tools/subprocess.cpp: one child, two pipes, and a descriptor that becomes readable at its end: one poll waits for
// all.
#include "tools/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/bootstrap/socket.hpp"
#include "tools/launcher/exec_words.hpp"

namespace tandem::tools {
namespace {

using Clock = std::chrono::steady_clock;
using base::FileDescriptor;

constexpr std::size_t kept_bytes = std::size_t(16) << 20;
constexpr int cannot_execute = 127;

struct OutputPipe {
  FileDescriptor read_end, write_end;

  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  }
};

base::Error system_error(const std::string& what) {
  return {base::ErrorCode::io, fmt::format("{}: {}", what, base::system_error_text(errno))};
}

/// Executes the program in the child, after fork: only calls that are safe there.
[[noreturn]] void become(const char* file, char* const* argv, char* const* envp, int output, int errors, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(cannot_execute);  // the parent died before the line above
  const int nothing = open("/dev/null", O_RDONLY);  // inherited: it may be standard input already
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(errors, STDERR_FILENO) < 0)
    _exit(cannot_execute);
  execve(file, argv, envp);
  dprintf(STDERR_FILENO, "cannot be executed: %s\n", strerror(errno));
  _exit(cannot_execute);
}

/// Reads the bytes that the pipe has now. False: no more will come.
bool drain(const FileDescriptor& pipe, std::string& text) {
  char buffer[65536];
  for (;;) {
    const ssize_t count = ::read(pipe.get(), buffer, sizeof buffer);
    if (count > 0) text.append(buffer, std::min(static_cast<std::size_t>(count), kept_bytes - text.size()));
    else if (count == 0) return false;
    else if (errno != EINTR) return errno == EAGAIN;
  }
}

/// Reads both streams until the child ends; false at the deadline. Only the child's own end counts: others may still
/// have its pipes then, and it may close them and go on.
bool read_until_end(const FileDescriptor& child, OutputPipe& output, OutputPipe& errors, ProgramOutput& written,
                    Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    // poll() ignores the negative number of a closed descriptor.
    pollfd waited[] = {
        {output.read_end.get(), POLLIN, 0}, {errors.read_end.get(), POLLIN, 0}, {child.get(), POLLIN, 0}};
    if (poll(waited, 3, static_cast<int>(std::min<long long>(left, 1'000'000))) < 0 && errno != EINTR) return false;
    if (waited[0].revents != 0 && !drain(output.read_end, written.output)) output.read_end.close();
    if (waited[1].revents != 0 && !drain(errors.read_end, written.errors)) errors.read_end.close();
    if (waited[2].revents == 0) continue;
    if (output.read_end) drain(output.read_end, written.output);
    if (errors.read_end) drain(errors.read_end, written.errors);
    return true;
  }
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  const auto line_end = text.find_last_of('\n', end);
  const std::size_t begin = line_end == std::string::npos ? 0 : line_end + 1;
  return text.substr(begin, end + 1 - begin);
}

/// The cause of a failure, from the status of wait(); empty: it succeeded.
std::string failure_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

base::Result<ProgramOutput> run_program(const Command& command, std::chrono::milliseconds limit) {
  OutputPipe output, errors;
  if (!output.open() || !errors.open()) return system_error("no pipe");
  std::vector<std::string> words{command.file.string()};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> entries = environment_with(command.environment);
  const std::vector<char*> argv = pointers_to(words), envp = pointers_to(entries);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return system_error("no process");
  if (pid == 0) become(argv[0], argv.data(), envp.data(), output.write_end.get(), errors.write_end.get(), parent);
  setpgid(pid, pid);  // the child does it too; the first call takes effect
  output.write_end.close();
  errors.write_end.close();

  ProgramOutput written;
  const FileDescriptor child(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const bool watched{child};
  const base::Error unwatched = system_error("its end cannot be waited for");
  const bool ended = watched && read_until_end(child, output, errors, written, Clock::now() + limit);
  kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!watched) return unwatched;
  const double limit_s = std::chrono::duration<double>(limit).count();
  std::string what = ended ? failure_of(status) : fmt::format("still running after {:g} s, killed", limit_s);
  if (what.empty()) return written;
  if (const std::string line = last_line(written.errors); !line.empty())
    what = command.explains && ended && WIFEXITED(status) ? line : what + ": " + line;
  return base::Error{base::ErrorCode::io, what};
}

}  // namespace tandem::tools
