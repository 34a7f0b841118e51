// tools/launcher/spawn.cpp: fork, and what has to be put right before exec.
#include "tools/launcher/spawn.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "tandem/base/affinity.hpp"
#include "tools/launcher/exec_words.hpp"

namespace tandem::tools {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::FileDescriptor;

constexpr int ignored_signals[] = {SIGPIPE, SIGTTIN, SIGTTOU};
std::optional<rlimit> files_before;  // limit of this process before the launcher raised it
sigset_t ignored_before;             // `ignored_signals` that were ignored when the launcher started

/// The child's failed step and its errno.
struct Failure {
  enum class Step { folder, program, other } step;
  int reason;
};

[[noreturn]] void give_up(int report, Failure::Step step) {
  const Failure failure{step, errno};
  (void)!write(report, &failure, sizeof failure);
  _exit(127);
}

/// Prepares the child and executes the program; runs between fork and exec.
[[noreturn]] void become(const SpawnRequest& request, char* const* argv, char* const* envp, pid_t parent, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before the line above
  if (dup2(request.input, STDIN_FILENO) < 0 || dup2(request.output, STDOUT_FILENO) < 0 ||
      dup2(request.errors, STDERR_FILENO) < 0 || (request.inherited >= 0 && fcntl(request.inherited, F_SETFD, 0) != 0))
    give_up(report, Failure::Step::other);
  if (!request.cores.empty() && !base::set_affinity_of_this_thread(request.cores).ok())
    give_up(report, Failure::Step::other);
  if (files_before) setrlimit(RLIMIT_NOFILE, &*files_before);
  for (const int number : ignored_signals)
    if (sigismember(&ignored_before, number) != 1) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!request.folder.empty() && chdir(request.folder.c_str()) != 0) give_up(report, Failure::Step::folder);
  execvpe(argv[0], argv, envp);
  give_up(report, Failure::Step::program);
}

Error explain(const SpawnRequest& request, const Failure& failure) {
  const std::string& program = request.words.front();
  const ErrorCode code = failure.reason == ENOENT || failure.reason == ENOTDIR ? ErrorCode::not_found : ErrorCode::io;
  const char* const reason = std::strerror(failure.reason);
  if (failure.step == Failure::Step::folder)
    return {code, fmt::format("the folder {} cannot be entered: {}", request.folder, reason)};
  if (failure.step == Failure::Step::other)
    return {ErrorCode::io, fmt::format("{} cannot be started: {}", program, reason)};
  if (code == ErrorCode::not_found && program.find('/') == std::string::npos) {
    const bool is_here = access(program.c_str(), X_OK) == 0;
    return {code, fmt::format("there is no program {} in PATH{}", program,
                              is_here ? fmt::format("; for the one in this folder write ./{}", program) : "")};
  }
  // An existing script may name a missing interpreter.
  if (code == ErrorCode::not_found && access(program.c_str(), F_OK) == 0)
    return {ErrorCode::io, fmt::format("{} cannot be executed: its interpreter is missing", program)};
  return {code, code == ErrorCode::not_found ? fmt::format("there is no program {}", program)
                                             : fmt::format("{} cannot be executed: {}", program, reason)};
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest& request) {
  auto report = make_pipe(true);
  if (!report) return report.error();
  Pipe& pipe = report.value();
  std::vector<std::string> words = request.words, entries = environment_with(request.environment);
  const std::vector<char*> argv = pointers_to(words), envp = pointers_to(entries);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0)
    return Error{ErrorCode::io,
                 fmt::format("{} cannot be started: {}", request.words.front(), base::system_error_text(errno))};
  if (child == 0) become(request, argv.data(), envp.data(), parent, pipe.write_end.get());
  setpgid(child, child);  // parent and child both call it: from now on the group can be signalled
  pipe.write_end.close();
  fcntl(pipe.read_end.get(), F_SETFL, 0);
  Failure failure;
  ssize_t count;
  do count = read(pipe.read_end.get(), &failure, sizeof failure);  // ends with exec()
  while (count < 0 && errno == EINTR);
  if (count != sizeof failure) return child;
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
  return explain(request, failure);
}

int exit_code_of(const Error& error) { return error.code == ErrorCode::not_found ? 127 : 126; }

Result<Pipe> make_pipe(bool ours_reads) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::io, fmt::format("no pipe: {}", base::system_error_text(errno))};
  fcntl(ends[ours_reads ? 0 : 1], F_SETFL, O_NONBLOCK);
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void write_some(base::FileDescriptor& pipe, std::string& unsent) {
  while (pipe && !unsent.empty()) {
    const ssize_t count = write(pipe.get(), unsent.data(), unsent.size());
    if (count >= 0) unsent.erase(0, static_cast<std::size_t>(count));
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) pipe.close();
  }
  pollfd state{pipe.get(), 0, 0};
  if (poll(&state, 1, 0) > 0 && (state.revents & POLLERR) != 0) pipe.close();
  if (!pipe) unsent.clear();
}

void prepare_launcher() {
  sigemptyset(&ignored_before);
  for (const int number : ignored_signals)
    if (signal(number, SIG_IGN) == SIG_IGN) sigaddset(&ignored_before, number);
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  files_before = limit;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace tandem::tools
