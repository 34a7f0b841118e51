// tools/launcher/local.cpp: pipes, process groups, and reaping in the right order.
#include "tools/launcher/local.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "tandem/comm/bootstrap/secret_descriptor.hpp"
#include "tools/launcher/spawn.hpp"
#include "tools/launcher/traces.hpp"

namespace tandem::tools {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::FileDescriptor;

/// Largest size of a pipe; a process that writes on after the rank has ended is not waited for.
constexpr std::size_t most_pipe_bytes = std::size_t(1) << 20;

FileDescriptor nothing_to_read() { return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

Result<Pipe> input_pipe(Input kind) {
  if (kind == Input::fed) return make_pipe(false);
  if (kind == Input::none) return Pipe{nothing_to_read(), FileDescriptor()};
  return Pipe{FileDescriptor(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)), FileDescriptor()};
}

/// The variables with a rank's place in the job.
std::vector<std::pair<std::string, std::string>> rank_environment(const GroupPlan& plan, std::uint32_t rank,
                                                                  int secret) {
  auto environment = plan.environment;
  environment.emplace_back("TANDEM_JOB_RANK", std::to_string(rank));
  environment.emplace_back("TANDEM_JOB_SIZE", std::to_string(plan.size));
  environment.emplace_back("TANDEM_JOB_LOCAL_RANK", std::to_string(plan.first_local + rank - plan.first_rank));
  environment.emplace_back("TANDEM_JOB_LOCAL_SIZE", std::to_string(plan.local_size));
  environment.emplace_back("TANDEM_JOB_LOCAL_RANKS", plan.here);
  environment.emplace_back("TANDEM_JOB_ID", plan.job_id);
  environment.emplace_back("TANDEM_JOB_SERVER", plan.server);
  // An empty variable is as good as none: a launcher that started this launcher may have set the other one.
  environment.emplace_back("TANDEM_JOB_SECRET", plan.secret_in_environment ? plan.secret : "");
  environment.emplace_back("TANDEM_JOB_SECRET_FD", plan.secret_in_environment ? "" : std::to_string(secret));
  return environment;
}

}  // namespace

Result<std::unique_ptr<LocalRanks>> LocalRanks::start(const GroupPlan& plan, GroupEvents& events,
                                                      CleanupProcess& cleanup) {
  std::unique_ptr<LocalRanks> ranks(new LocalRanks(events, cleanup));
  const auto secret = comm::internal::make_secret_descriptor(plan.secret);
  if (!secret) return secret.error();
  std::vector<base::RankCores> cores(plan.count);
  if (plan.bind != base::BindTo::none) {
    const auto host = base::Topology::discover();
    if (!host) return host.error();
    const auto all = base::plan_host(host.value(), 0, plan.local_size, plan.bind, plan.map);
    cores.assign(all.begin() + plan.first_local, all.begin() + plan.first_local + plan.count);
  }
  for (std::uint32_t i = 0; i < plan.count; ++i)
    if (auto started = ranks->start_one(plan, plan.first_rank + i, cores[i].pus, secret.value().get()); !started)
      return started.error();
  return ranks;
}

Result<void> LocalRanks::start_one(const GroupPlan& plan, std::uint32_t rank, const std::vector<unsigned>& cores,
                                   int secret) {
  auto output = make_pipe(true), errors = make_pipe(true);
  if (!output || !errors) return output ? errors.error() : output.error();
  const Input kind = rank == plan.first_rank ? plan.input : Input::none;
  auto input = input_pipe(kind);
  if (!input) return input.error();
  const auto child = spawn({.words = plan.words,
                            .environment = rank_environment(plan, rank, secret),
                            .folder = plan.folder,
                            .input = input.value().read_end.get(),
                            .output = output.value().write_end.get(),
                            .errors = errors.value().write_end.get(),
                            .cores = cores,
                            .inherited = plan.secret_in_environment ? -1 : secret});
  if (!child) return child.error();
  cleanup_.watch(child.value());
  Process& process = processes_[rank];
  process.pid = child.value();
  process.output = std::move(output.value().read_end);
  process.errors = std::move(errors.value().read_end);
  if (kind == Input::fed) input_ = std::move(input.value().write_end);
  process.end = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, child.value(), 0)));
  if (!process.end)
    return Error{ErrorCode::io, fmt::format("rank {} cannot be watched: {}", rank, base::system_error_text(errno))};
  fcntl(process.end.get(), F_SETFD, FD_CLOEXEC);
  return {};
}

LocalRanks::~LocalRanks() {
  signal(SIGKILL);
  for (auto& [rank, process] : processes_) {
    while (waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {}
    cleanup_.forget(process.pid);
  }
}

void LocalRanks::collect(PollSet& polls, bool wants_output) {
  for (const auto& [rank, process] : processes_) {
    polls.watch(process.end.get(), POLLIN);
    if (!wants_output) continue;
    polls.watch(process.output.get(), POLLIN);
    polls.watch(process.errors.get(), POLLIN);
  }
  // It is watched also without anything to write: a rank that closed its input must be noticed.
  polls.watch(input_.get(), unfed_.empty() ? short(0) : short(POLLOUT));
}

void LocalRanks::serve(const PollSet& polls) {
  if (polls.ready(input_.get())) write_input();
  for (auto at = processes_.begin(); at != processes_.end();) {
    auto& [rank, process] = *at;
    if (polls.ready(process.output.get())) read_some(rank, process.output, Stream::output, false);
    if (polls.ready(process.errors.get())) read_some(rank, process.errors, Stream::errors, false);
    if (!polls.ready(process.end.get())) {
      ++at;
      continue;
    }
    const std::uint32_t ended = rank;
    const int status = finish(rank, process);
    at = processes_.erase(at);
    events_.ended(ended, status);
  }
}

/// Reads the rest of a rank's output, which is in its pipes now: a process that it left behind, and that left the
/// group, is not waited for.
int LocalRanks::finish(std::uint32_t rank, Process& process) {
  kill(-process.pid, SIGKILL);
  read_some(rank, process.output, Stream::output, true);
  read_some(rank, process.errors, Stream::errors, true);
  int status = 0;
  while (waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {}
  cleanup_.forget(process.pid);
  // This follows all output of the rank.
  if (const std::string report = recover_traces_of(process.pid, begun_); !report.empty())
    events_.output(rank, Stream::errors, report);
  return status;
}

void LocalRanks::read_some(std::uint32_t rank, FileDescriptor& pipe, Stream stream, bool to_the_end) {
  char buffer[65536];
  std::size_t taken = 0;
  do {
    if (!pipe) return;
    const ssize_t count = read(pipe.get(), buffer, sizeof buffer);
    if (count > 0) {
      events_.output(rank, stream, {buffer, static_cast<std::size_t>(count)});
      taken += static_cast<std::size_t>(count);
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      pipe.close();
    } else if (errno == EAGAIN) {
      return;
    }
  } while (to_the_end && taken < most_pipe_bytes);
}

void LocalRanks::signal(int number) {
  for (const auto& [rank, process] : processes_) kill(-process.pid, number);
}

void LocalRanks::close_stream(Stream stream) {
  for (auto& [rank, process] : processes_) (stream == Stream::output ? process.output : process.errors).close();
}

void LocalRanks::feed(std::string_view bytes) {
  unfed_ += bytes;
  write_input();
}

void LocalRanks::end_input() {
  input_ends_ = true;
  write_input();
}

void LocalRanks::write_input() {
  write_some(input_, unfed_);
  if (input_ends_ && unfed_.empty()) input_.close();
}

}  // namespace tandem::tools
