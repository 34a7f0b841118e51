// tools/launcher/remote.cpp: the launcher's end of an ssh.
#include "tools/launcher/remote.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fmt/core.h>

#include "tools/launcher/spawn.hpp"
#include "tools/launcher/wire.hpp"
#include "tools/standard_output.hpp"

namespace tandem::tools {
namespace {

using base::Result;
using comm::internal::ByteReader;
using comm::internal::ByteWriter;
using comm::internal::Frame;

constexpr std::size_t most_login_bytes = 65536;
constexpr int unreachable_code = 255;  // exit code of ssh that cannot connect

/// A word quoted for a shell: ssh hands one line to a shell on the other side.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) letter == '\'' ? text += "'\\''" : text += letter;
  return text + "'";
}

}  // namespace

Result<std::unique_ptr<RemoteRanks>> RemoteRanks::start(const GroupPlan& plan, const RemotePlace& place,
                                                        GroupEvents& events, CleanupProcess& cleanup) {
  std::unique_ptr<RemoteRanks> ranks(new RemoteRanks(place.host, events, cleanup));
  if (auto started = ranks->start_ssh(plan, place); !started) return started.error();
  for (std::uint32_t i = 0; i < plan.count; ++i) ranks->running_.insert(plan.first_rank + i);
  ranks->input_is_taken_ = plan.input == Input::fed;
  ranks->send(std::uint8_t(wire::Kind::start), wire::encode(plan));
  return ranks;
}

Result<void> RemoteRanks::start_ssh(const GroupPlan&, const RemotePlace& place) {
  auto input = make_pipe(false), output = make_pipe(true), errors = make_pipe(true);
  for (const auto* pipe : {&input, &output, &errors})
    if (!*pipe) return pipe->error();
  SpawnRequest request{.words = place.ssh,
                       .environment = {},
                       .folder = {},
                       .input = input.value().read_end.get(),
                       .output = output.value().write_end.get(),
                       .errors = errors.value().write_end.get()};
  request.words.push_back(place.host);
  if (place.by_shell) request.words.push_back(fmt::format("exec {} run --agent", quoted(place.tandem)));
  else request.words.insert(request.words.end(), {place.tandem, "run", "--agent"});
  const auto child = spawn(request);
  if (!child) return child.error();
  ssh_ = child.value();
  cleanup_.watch(ssh_);
  to_agent_ = std::move(input.value().write_end);
  from_agent_ = std::move(output.value().read_end);
  complaints_ = std::move(errors.value().read_end);
  return {};
}

RemoteRanks::~RemoteRanks() {
  if (ssh_ < 0) return;
  // The end of its input ends the agent, which ends ssh. A hanging ssh is killed.
  to_agent_.close();
  bool ended = false;
  for (int tries = 0; tries < 100 && !(ended = waitpid(ssh_, nullptr, WNOHANG) == ssh_); ++tries) usleep(10'000);
  if (!ended) {
    kill(-ssh_, SIGKILL);
    while (waitpid(ssh_, nullptr, 0) < 0 && errno == EINTR) {}
  }
  cleanup_.forget(ssh_);
}

void RemoteRanks::collect(PollSet& polls, bool wants_output) {
  polls.watch(to_agent_.get(), unsent_.empty() ? short(0) : short(POLLOUT));
  // Errors are read even without a consumer of output: there are few.
  polls.watch(complaints_.get(), POLLIN);
  if (wants_output) polls.watch(from_agent_.get(), POLLIN);
}

void RemoteRanks::serve(const PollSet& polls) {
  if (polls.ready(complaints_.get())) read_complaints();
  if (polls.ready(to_agent_.get())) write_some(to_agent_, unsent_);
  if (polls.ready(from_agent_.get())) read_frames();
}

void RemoteRanks::send(std::uint8_t kind, std::string_view body) {
  unsent_ += comm::internal::frame_bytes(kind, body);
  write_some(to_agent_, unsent_);  // if it fails, the other pipe shows the cause
}

void RemoteRanks::read_frames() {
  char buffer[65536];
  const ssize_t count = read(from_agent_.get(), buffer, sizeof buffer);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return lose();
  const std::string_view bytes(buffer, static_cast<std::size_t>(count));
  if (greeted_) {
    frames_.add(bytes);
  } else {
    before_greeting_ += bytes;
    if (!find_greeting()) return;
  }
  Frame frame;
  while (frames_.next(frame)) take(frame);
  if (frames_.malformed()) lose();
}

/// Looks for the agent's greeting. What a login script prints before it is shown.
bool RemoteRanks::find_greeting() {
  const auto at = before_greeting_.find(wire::greeting);
  if (at == std::string::npos) {
    if (before_greeting_.size() > most_login_bytes) lose();
    return false;
  }
  greeted_ = true;
  frames_.add(std::string_view(before_greeting_).substr(at + wire::greeting.size()));
  if (at > 0) events_.output(*running_.begin(), Stream::errors, before_greeting_.substr(0, at));
  before_greeting_.clear();
  return true;
}

void RemoteRanks::take(const Frame& frame) {
  ByteReader reader(frame.body);
  switch (static_cast<wire::Kind>(frame.kind)) {
    case wire::Kind::input_taken: input_is_taken_ = true; return;
    case wire::Kind::output: {
      const std::uint32_t rank = reader.u32();
      const auto stream = reader.u8() == 0 ? Stream::output : Stream::errors;
      if (running_.contains(rank)) events_.output(rank, stream, reader.rest());
      return;
    }
    case wire::Kind::ended: {
      const std::uint32_t rank = reader.u32();
      const auto status = static_cast<int>(reader.u32());
      if (reader.finished() && running_.erase(rank) > 0) events_.ended(rank, status);
      return;
    }
    case wire::Kind::failed: {
      const auto code = static_cast<int>(reader.u32());
      failed_ = true;
      return events_.failed(fmt::format("on {}: {}", host_, reader.text(wire::most_frame_bytes)), code);
    }
    default: return;  // a message of a newer agent
  }
}

/// Handles the agent's end, which is expected once its ranks have ended.
void RemoteRanks::lose() {
  read_complaints();
  from_agent_.close();
  to_agent_.close();
  if (running_.empty()) return;
  running_.clear();
  if (failed_) return;
  const std::string why = last_complaint_.empty() ? "without a word" : last_complaint_;
  if (greeted_) {
    const std::string reason = fmt::format("the connection to {} ended while ranks ran there: {}", host_, why);
    return events_.failed(reason, unreachable_code);
  }
  events_.failed(
      fmt::format("no ranks could be started on {}: {}; does `ssh {} tandem --version` work without a password? "
                  "(where the command is elsewhere, give --remote-tandem)",
                  host_, why, host_),
      unreachable_code);
}

void RemoteRanks::read_complaints() {
  char buffer[4096];
  for (;;) {
    const ssize_t count = complaints_ ? read(complaints_.get(), buffer, sizeof buffer) : -1;
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || (count < 0 && errno != EAGAIN)) complaints_.close();
    if (count <= 0) break;
    complaint_.append(buffer, static_cast<std::size_t>(count));
  }
  for (auto newline = complaint_.find('\n'); newline != std::string::npos; newline = complaint_.find('\n')) {
    std::string line = complaint_.substr(0, newline);
    complaint_.erase(0, newline + 1);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    print_note("[{}] {}\n", host_, line);
    last_complaint_ = std::move(line);
  }
}

void RemoteRanks::signal(int number) {
  if (!running_.empty())
    send(std::uint8_t(wire::Kind::signal), ByteWriter().u32(static_cast<std::uint32_t>(number)).take());
}

void RemoteRanks::close_stream(Stream) { signal(SIGPIPE); }

void RemoteRanks::feed(std::string_view bytes) {
  input_is_taken_ = false;
  send(std::uint8_t(wire::Kind::input), bytes);
}

void RemoteRanks::end_input() {
  input_is_taken_ = false;
  send(std::uint8_t(wire::Kind::input_end), {});
}

}  // namespace tandem::tools
