// tools/launcher/launcher.cpp: the loop, and what ends a job.
#include "tools/launcher/launcher.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>

#include <fmt/core.h>

#include "tandem/base/pu_list.hpp"
#include "tandem/base/units.hpp"
#include "tandem/comm/bootstrap/rendezvous_server.hpp"
#include "tandem/comm/bootstrap/secret.hpp"
#include "tools/launcher/group.hpp"
#include "tools/launcher/local.hpp"
#include "tools/launcher/output.hpp"
#include "tools/launcher/remote.hpp"
#include "tools/launcher/signals.hpp"
#include "tools/launcher/spawn.hpp"
#include "tools/launcher/ssh_alias.hpp"
#include "tools/standard_output.hpp"

namespace tandem::tools {
namespace {

using base::Error;
using base::Result;

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
/// Between SIGTERM and SIGKILL, and again before hosts are given up.
constexpr std::int64_t grace_ns = 2 * base::ns_per_s;
constexpr std::size_t most_queued_bytes = 1 << 20;     ///< of unread output; then the ranks wait
constexpr int time_limit_code = 124;

std::int64_t now_ns() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// One run. One thread uses it; groups call it back from inside `serve`.
class Launcher final : GroupEvents {
 public:
  Launcher(const LaunchOptions& options, base::Log& log, CleanupProcess& cleanup)
      : options_(options), log_(log), cleanup_(cleanup), lines_{LineMerger(options.labels, options.objects), LineMerger(options.labels)} {}

  /// Starts the ranks. Errors: the exit code has been set as well, and started ranks die with this object.
  Result<void> start();
  int run();
  int exit_code() const noexcept { return exit_code_; }

 private:
  enum class Phase { running, asked_to_end, killed, given_up };

  void output(std::uint32_t rank, Stream stream, std::string_view bytes) override {
    lines_[static_cast<std::size_t>(stream)].add(rank, bytes);
  }
  void ended(std::uint32_t rank, int wait_status) override;
  void failed(const std::string& reason, int exit_code) override;

  Result<void> open_rendezvous();
  Result<std::string> server_towards(const std::string& host) const;
  Input input_of(const HostRanks& place) const;
  static void forget_input();
  Result<GroupPlan> plan_for(const HostRanks& place) const;
  Result<void> start_group(const HostRanks& place, const GroupPlan& plan);
  void collect();
  void serve();
  void take_signals();
  void take_signal(int number);
  void take_input();
  void write_output();
  void end_without_who_never_came();
  void end_all(Phase phase);
  void check_time(std::int64_t now);
  void signal_all(int number);
  bool is_over() const;
  RankGroup* fed_group() const { return groups_.empty() ? nullptr : groups_.front().get(); }

  const LaunchOptions& options_;
  base::Log& log_;
  CleanupProcess& cleanup_;
  SignalQueue signals_;
  PollSet polls_;
  std::string secret_ = comm::internal::random_name(32);
  std::string job_id_ = "run-" + comm::internal::random_name(6);
  std::uint32_t size_ = 0;
  std::string advertised_host_;  ///< of the rendezvous for all hosts; empty: found out for each
  std::unique_ptr<comm::RendezvousServer> server_;
  std::vector<std::unique_ptr<RankGroup>> groups_;
  LineMerger lines_[2];
  StreamWriter writers_[2] = {StreamWriter(STDOUT_FILENO), StreamWriter(STDERR_FILENO)};
  bool reads_input_ = true;
  Phase phase_ = Phase::running;
  std::int64_t next_phase_ns_ = never;
  std::int64_t limit_at_ns_ = never;
  std::int64_t server_wants_ns_ = never;
  int interrupts_ = 0;      ///< SIGINT and SIGTERM so far
  int passed_on_ = 0;       ///< the last of them
  bool failed_ = false;
  bool failed_by_exit_ = false;  ///< the reason so far is a rank's exit code
  bool has_lost_output_ = false;  ///< what ranks printed could not be written
  int exit_code_ = 0;
};

Result<void> Launcher::start() {
  for (const HostRanks& place : options_.places) size_ += place.count;
  if (options_.limit_ns > 0) limit_at_ns_ = now_ns() + options_.limit_ns;
  exit_code_ = 1;
  if (auto opened = open_rendezvous(); !opened) return opened;
  for (const HostRanks& place : options_.places) {
    auto plan = plan_for(place);
    if (!plan) return plan.error();
    if (auto started = start_group(place, plan.value()); !started)
      return exit_code_ = exit_code_of(started.error()), started;
    if (plan.value().input == Input::inherited) forget_input();
  }
  exit_code_ = 0;
  return {};
}

Result<void> Launcher::open_rendezvous() {
  comm::internal::HostPort address{options_.server_address, 0};
  if (const auto whole = comm::internal::parse_host_port(options_.server_address, "--server-address"); whole) {
    if (options_.server_address.front() == '[' ||
        options_.server_address.find(':') == options_.server_address.rfind(':'))
      address = whole.value();
  }
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  const bool local = std::all_of(options_.places.begin(), options_.places.end(), [](const auto& place) {
    return is_this_host(place.host);
  });
  if (address.host.empty() && local) address.host = "127.0.0.1";
  advertised_host_ = address.host;
  const auto secret = comm::internal::secret_of_text(secret_, "the launcher");
  auto server = comm::RendezvousServer::listen({.size = size_,
                                                .secret = secret.value(),
                                                .job_id = job_id_,
                                                .host = address.host,
                                                .port = address.port,
                                                .port_origin = address.port != 0 ? "--server-address" : ""},
                                               log_);
  if (!server) return server.error();
  server_ = std::move(server).value();
  return {};
}

Result<std::string> Launcher::server_towards(const std::string& host) const {
  if (!advertised_host_.empty()) return comm::internal::HostPort{advertised_host_, server_->port()}.text();
  if (is_this_host(host)) return comm::internal::HostPort{"127.0.0.1", server_->port()}.text();
  auto own = comm::internal::own_addresses_towards(host);
  if (!own) {  // perhaps a name that ssh alone knows
    const auto name = host_name_of(options_.ssh, host);
    if (name && name.value() != host) own = comm::internal::own_addresses_towards(name.value());
  }
  if (own) {
    std::vector<comm::internal::HostPort> places;
    for (const std::string& address : own.value()) places.push_back({address, server_->port()});
    return comm::internal::text_of(places);
  }
  return Error{own.error().code,
               fmt::format("it is not known at which address {} reaches this host ({}): give --server-address", host,
                           own.error().message)};
}

/// Drops rank 0's input: its writer must notice that the rank reads no more.
void Launcher::forget_input() {
  const base::FileDescriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing) dup2(nothing.get(), STDIN_FILENO);
}

/// A terminal is read by its foreground process group alone, which contains the launcher and not the ranks.
Input Launcher::input_of(const HostRanks& place) const {
  if (!options_.reads_input) return Input::none;
  return is_this_host(place.host) && isatty(STDIN_FILENO) == 0 ? Input::inherited : Input::fed;
}

Result<GroupPlan> Launcher::plan_for(const HostRanks& place) const {
  GroupPlan plan;
  plan.words = options_.words;
  plan.folder = options_.folder;
  plan.first_rank = place.first;
  plan.count = place.count;
  plan.size = size_;
  plan.job_id = job_id_;
  plan.secret = secret_;
  plan.secret_in_environment = options_.secret_in_environment;
  plan.bind = options_.bind;
  plan.map = options_.map;
  if (place.first == 0) plan.input = input_of(place);
  std::vector<unsigned> here;
  for (const HostRanks& other : options_.places) {  // a host may be named twice
    if (other.host != place.host && !(is_this_host(other.host) && is_this_host(place.host))) continue;
    plan.local_size += other.count;
    for (std::uint32_t i = 0; i < other.count; ++i) here.push_back(other.first + i);
    if (other.first < place.first) plan.first_local += other.count;
  }
  plan.here = base::format_pu_list(here);
  auto server = server_towards(place.host);
  if (!server) return server.error();
  plan.server = std::move(server).value();
  if (!is_this_host(place.host)) {
    plan.environment = options_.remote_environment;
    std::error_code unknown;
    if (plan.folder.empty()) plan.folder = std::filesystem::current_path(unknown).string();
  }
  plan.environment.insert(plan.environment.end(), options_.environment.begin(), options_.environment.end());
  return plan;
}

Result<void> Launcher::start_group(const HostRanks& place, const GroupPlan& plan) {
  if (is_this_host(place.host)) {
    auto ranks = LocalRanks::start(plan, *this, cleanup_);
    if (!ranks) return ranks.error();
    groups_.push_back(std::move(ranks).value());
  } else {
    auto ranks = RemoteRanks::start(plan, {place.host, options_.ssh, options_.remote_tandem, options_.ssh_has_shell},
                                    *this, cleanup_);
    if (!ranks) return ranks.error();
    groups_.push_back(std::move(ranks).value());
  }
  return {};
}

int Launcher::run() {
  while (!is_over()) {
    collect();
    const std::int64_t wake_ns = std::min({next_phase_ns_, limit_at_ns_, server_wants_ns_});
    const std::int64_t left_ms = std::clamp<std::int64_t>((wake_ns - now_ns()) / base::ns_per_ms + 1, 0, 1'000'000);
    polls_.wait(wake_ns == never ? -1 : static_cast<int>(left_ms));
    serve();
  }
  groups_.clear();
  while (!lines_[0].queue.empty() || !lines_[1].queue.empty()) {
    polls_.clear();
    polls_.watch(signals_.descriptor(), POLLIN);
    for (int i = 0; i < 2; ++i) writers_[i].collect(polls_, lines_[i].queue);
    polls_.wait(-1);
    const int number = signals_.next();
    // the reader is gone, and the user wants the end
    if (number == SIGINT || number == SIGTERM || number == SIGHUP) break;
    write_output();
  }
  return exit_code_ == 0 && has_lost_output_ ? 1 : exit_code_;
}

bool Launcher::is_over() const {
  return phase_ == Phase::given_up ||
         std::all_of(groups_.begin(), groups_.end(), [](const auto& group) { return group->is_over(); });
}

void Launcher::collect() {
  polls_.clear();
  polls_.watch(signals_.descriptor(), POLLIN);
  polls_.watch(server_->descriptor(), POLLIN);
  const bool wants_output = std::max(lines_[0].queue.size(), lines_[1].queue.size()) < most_queued_bytes;
  for (const auto& group : groups_) group->collect(polls_, wants_output);
  for (int i = 0; i < 2; ++i) writers_[i].collect(polls_, lines_[i].queue);
  if (reads_input_ && fed_group() != nullptr && fed_group()->wants_input()) polls_.watch(STDIN_FILENO, POLLIN);
}

void Launcher::serve() {
  server_wants_ns_ = server_->serve(now_ns());
  take_signals();
  for (const auto& group : groups_) group->serve(polls_);
  end_without_who_never_came();
  if (polls_.ready(STDIN_FILENO)) take_input();
  write_output();
  check_time(now_ns());
}

/// A reader that left, as in `tandem run ./app | head`, ends ranks that go on writing, as it would end the program
/// alone. A full disk does not, since the ranks' results are worth more than their output: that is dropped, and the job
/// fails when it has ended.
void Launcher::write_output() {
  for (int i = 0; i < 2; ++i) {
    const StreamWriter& writer = writers_[i];
    const bool was_broken = writer.broken();
    writers_[i].write_some(lines_[i].queue);
    if (was_broken || !writer.broken()) continue;
    if (writer.error() == EPIPE) {
      for (const auto& group : groups_) group->close_stream(static_cast<Stream>(i));
      continue;
    }
    has_lost_output_ = true;
    log_.error("{} cannot be written: {}; what the ranks print there is lost, and they go on",
               name_of_standard(writer.descriptor()), std::strerror(writer.error()));
  }
}

void Launcher::take_input() {
  char buffer[65536];
  const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
  if (count > 0) return fed_group()->feed({buffer, static_cast<std::size_t>(count)});
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  reads_input_ = false;
  // A background job may not read its terminal (EIO): it is asked again when it comes to the foreground.
  if (count == 0 || errno != EIO) fed_group()->end_input();
}

void Launcher::take_signals() {
  if (!polls_.ready(signals_.descriptor())) return;
  while (const int number = signals_.next()) take_signal(number);
}

void Launcher::take_signal(int number) {
  switch (number) {
    case SIGINT:
    case SIGTERM:
      passed_on_ = number;
      if (++interrupts_ == 1) return signal_all(number);
      return end_all(interrupts_ == 2 ? Phase::asked_to_end : Phase::killed);
    case SIGHUP:
      if (!failed_) exit_code_ = 128 + SIGHUP;
      failed_ = true;
      return end_all(Phase::asked_to_end);
    case SIGTSTP:
      signal_all(SIGTSTP);
      kill(getpid(), SIGSTOP);
      return;
    case SIGCONT:
      reads_input_ = true;
      return signal_all(SIGCONT);
    default:
      passed_on_ = number;
      return signal_all(number);
  }
}

void Launcher::signal_all(int number) {
  for (const auto& group : groups_) group->signal(number);
}

void Launcher::ended(std::uint32_t rank, int wait_status) {
  for (LineMerger& lines : lines_) lines.finish(rank);
  const bool by_signal = WIFSIGNALED(wait_status);
  const int number = by_signal ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
  const std::string how = by_signal ? fmt::format("was ended by signal {} ({})", number, strsignal(number))
                                    : fmt::format("ended with exit code {}", number);
  server_->rank_ended(base::Rank(rank), "it " + how);
  if (!by_signal && number == 0) return;
  // Other ranks may have failed because of a killed one, and be seen to end before it.
  const bool killed = by_signal && number != SIGTERM && number != passed_on_ && phase_ <= Phase::asked_to_end;
  if (failed_ && !(killed && failed_by_exit_)) return;
  failed_ = true;
  failed_by_exit_ = !by_signal;
  exit_code_ = by_signal ? 128 + number : number;
  if (!by_signal || number != passed_on_)
    log_.error("rank {} {}{}", rank, how, size_ > 1 ? "; the other ranks are ended too" : "");
  end_all(Phase::asked_to_end);
}

void Launcher::failed(const std::string& reason, int exit_code) {
  if (!failed_) {
    exit_code_ = exit_code;
    log_.error("{}", reason);
  }
  failed_ = true;
  end_all(Phase::asked_to_end);
}

/// Ends the job when a rank ended with 0, perhaps intentionally, without joining it while others have joined, and may
/// wait for it for ever.
void Launcher::end_without_who_never_came() {
  if (failed_) return;
  const auto rank = server_->never_came();
  if (!rank) return;
  failed(fmt::format("rank {} ended with exit code 0 before it joined the job, which other ranks have joined and which cannot go on "
                     "without it: they are ended too", rank->value()), 1);
}

/// Advances to the phase, never back. A stopped rank would not hear SIGTERM without SIGCONT.
void Launcher::end_all(Phase phase) {
  if (phase <= phase_) return;
  phase_ = phase;
  next_phase_ns_ = now_ns() + grace_ns;
  if (phase == Phase::given_up) return;
  signal_all(phase == Phase::killed ? SIGKILL : SIGTERM);
  signal_all(SIGCONT);
}

void Launcher::check_time(std::int64_t now) {
  if (now >= limit_at_ns_) {
    limit_at_ns_ = never;
    failed(fmt::format("the job is still running after {} (--timeout): its ranks are ended",
                       base::format_duration_ns(options_.limit_ns)), time_limit_code);
  }
  if (now >= next_phase_ns_) end_all(phase_ == Phase::asked_to_end ? Phase::killed : Phase::given_up);
}

}  // namespace

int launch(const LaunchOptions& options, base::Log& log) {
  prepare_launcher();
  auto cleanup = CleanupProcess::start();
  if (!cleanup) return log.error("{}", cleanup.error().message), 1;
  Launcher launcher(options, log, cleanup.value());
  if (const auto started = launcher.start(); !started)
    return log.error("{}", started.error().message), launcher.exit_code();
  return launcher.run();
}

}  // namespace tandem::tools
