// tools/simulate/processes.cpp: three kinds of processes: the launcher, beside it the one that gives turns, and the
// ranks.
#include "tools/simulate/processes.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/number_of.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"
#include "tandem/comm/bootstrap/secret.hpp"
#include "tandem/sim_rank/process_place.hpp"
#include "tandem/sim_rank/virtual_clock.hpp"
#include "tools/launcher/exec_words.hpp"
#include "tools/launcher/launcher.hpp"

namespace tandem::tools {
namespace {

using comm::internal::ByteReader;
using comm::internal::ByteWriter;
using Outcome = sim::TurnKeeper::Outcome;

std::string encode(const Outcome& outcome) {
  ByteWriter writer;
  writer.u64(static_cast<std::uint64_t>(outcome.end_ns))
      .text(outcome.error)
      .u64(static_cast<std::uint64_t>(outcome.broken_ns));
  for (const auto* const names : {&outcome.kernels, &outcome.without_model}) {
    writer.u32(static_cast<std::uint32_t>(names->size()));
    for (const std::string& name : *names) writer.text(name);
  }
  return writer.take();
}

Outcome decode_outcome(std::string_view bytes) {
  ByteReader reader(bytes);
  Outcome outcome;
  outcome.end_ns = static_cast<std::int64_t>(reader.u64());
  outcome.error = reader.text(bytes.size());
  outcome.broken_ns = static_cast<std::int64_t>(reader.u64());
  for (auto* const names : {&outcome.kernels, &outcome.without_model})
    for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left)
      names->emplace_back(reader.text(bytes.size()));
  if (!reader.finished()) outcome.error = "the process that gives turns has ended early";
  return outcome;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string read_all(int descriptor) {
  std::string bytes;
  char room[4096];
  while (true) {
    const ssize_t got = ::read(descriptor, room, sizeof room);
    if (got > 0)
      bytes.append(room, static_cast<std::size_t>(got));
    else if (got == 0 || errno != EINTR)
      return bytes;
  }
}

/// Gives turns in a process of its own: the launcher has no threads. It ends with the ranks, or with the launcher.
[[noreturn]] void give_turns(sim::TurnKeeper& keeper, const base::FileDescriptor& launcher) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);  // the launcher ends the ranks
  const bool is_written = write_all(launcher.get(), encode(keeper.run(launcher.get())));
  ::_exit(is_written ? 0 : 1);
}

/// The module that shows virtual time to a program; empty: it is not installed.
std::string clock_module() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const folder : {TANDEM_MODULES_FROM_BIN, "../modules"}) {
    const std::filesystem::path file = (own / folder / "libtandem_virtual_clock.so").lexically_normal();
    if (std::filesystem::is_regular_file(file, error)) return file;
  }
  return {};
}

/// The variables of a rank's program.
std::vector<std::pair<std::string, std::string>> rank_variables(int turns, std::size_t epoch_ns) {
  std::vector<std::pair<std::string, std::string>> variables = {{sim::turns_variable, fmt::to_string(turns)},
                                                                {sim::epoch_variable, fmt::to_string(epoch_ns)}};
  const std::string clock = clock_module();
  if (clock.empty()) return variables;
  const char* const loaded = std::getenv("LD_PRELOAD");
  const bool has_more = loaded != nullptr && *loaded != '\0';
  variables.emplace_back("LD_PRELOAD", has_more ? clock + ":" + loaded : clock);
  // A program with the address sanitizer wants to be loaded first; it allows another module by this option.
  const char* const options = std::getenv("ASAN_OPTIONS");
  variables.emplace_back("ASAN_OPTIONS", std::string(options == nullptr ? "" : options) + ":verify_asan_link_order=0");
  return variables;
}

std::int64_t date_ns() { return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count(); }

ProcessesOutcome failed(base::Log& log, const std::string& why) {
  log.error("simulate: {}", why);
  return {.exit_code = 1};
}

}  // namespace

ProcessesOutcome simulate_processes(sim::TurnKeeper::Options options, const ProgramCall& call, base::Log& log) {
  const std::uint32_t ranks = options.platform.ranks;
  const std::string name = "tandem-simulation-" + comm::internal::random_name(24);
  auto keeper = sim::TurnKeeper::listen(std::move(options), name);
  if (!keeper) return failed(log, keeper.error().message);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return failed(log, base::system_error_text(errno));
  base::FileDescriptor ours(ends[0]), theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return failed(log, base::system_error_text(errno));
  if (child == 0) {
    ours.close();
    give_turns(*keeper.value(), theirs);
  }
  theirs.close();
  keeper.value().reset();

  LaunchOptions launched;
  launched.places = {{"localhost", 0, ranks}};
  std::error_code unknown;
  launched.words = {std::filesystem::read_symlink("/proc/self/exe", unknown).string(),
                    "simulate",
                    "--as-rank-of",
                    name,
                    "--epoch",
                    fmt::to_string(date_ns())};
  launched.words.insert(launched.words.end(), call.words.begin(), call.words.end());
  launched.environment = call.variables;
  launched.labels = ranks > 1;
  ProcessesOutcome outcome{.exit_code = launch(launched, log)};
  ::shutdown(ours.get(), SHUT_WR);
  outcome.simulation = decode_outcome(read_all(ours.get()));
  ::waitpid(child, nullptr, 0);
  return outcome;
}

int become_rank(const RankRole& role, std::vector<std::string> words, base::Log& log) {
  const char* const text = std::getenv("TANDEM_JOB_RANK");
  const auto rank = base::number_of<std::uint32_t>(text == nullptr ? "" : text);
  if (!rank)
    return log.error("--as-rank-of is for `tandem simulate` itself"), 2;
  auto line = sim::TurnLine::connect(role.simulation);
  if (!line) return log.error("{}", line.error().message), 1;
  if (!line.value().send(sim::TurnKind::hello, encode(sim::Greeting{.rank = *rank})))
    return log.error("a rank cannot reach its simulation"), 1;
  const int descriptor = line.value().release().release();
  ::fcntl(descriptor, F_SETFD, 0);  // inherited by the program
  std::vector<std::string> environment = environment_with(rank_variables(descriptor, role.epoch_ns));
  ::execvpe(words.front().c_str(), pointers_to(words).data(), pointers_to(environment).data());
  const int code = errno;
  log.error("{} cannot be started: {}", words.front(), base::system_error_text(code));
  return code == ENOENT ? 127 : 126;
}

}  // namespace tandem::tools
