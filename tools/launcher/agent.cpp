// tools/launcher/agent.cpp: local ranks, reported to the launcher in frames.
#include "tools/launcher/agent.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include <fmt/core.h>

#include "tandem/comm/bootstrap/bytes.hpp"
#include "tools/launcher/local.hpp"
#include "tools/launcher/output.hpp"
#include "tools/launcher/spawn.hpp"
#include "tools/launcher/wire.hpp"
#include "tools/standard_output.hpp"

namespace tandem::tools {
namespace {

using comm::internal::ByteReader;
using comm::internal::ByteWriter;
using comm::internal::Frame;

constexpr std::size_t most_unsent_bytes = 1 << 20;

/// One thread; the ranks call it back from inside `serve`.
class Agent final : GroupEvents {
 public:
  explicit Agent(CleanupProcess& cleanup) : cleanup_(cleanup) { queue_ = wire::greeting; }

  int run() {
    while (!is_over()) {
      polls_.clear();
      polls_.watch(STDIN_FILENO, POLLIN);
      writer_.collect(polls_, queue_);
      if (ranks_ != nullptr) ranks_->collect(polls_, queue_.size() < most_unsent_bytes);
      polls_.wait(-1);
      if (ranks_ != nullptr) ranks_->serve(polls_);
      if (polls_.ready(STDIN_FILENO) && !read_frames()) return 1;  // the destructor of the ranks kills them
      if (ranks_ != nullptr && waits_for_input_ && ranks_->wants_input()) {
        waits_for_input_ = false;
        send(wire::Kind::input_taken, {});
      }
      writer_.write_some(queue_);
      if (writer_.broken()) return 1;
    }
    return 0;
  }

 private:
  bool is_over() const { return (failed_ || (ranks_ != nullptr && ranks_->is_over())) && queue_.empty(); }

  void output(std::uint32_t rank, Stream stream, std::string_view bytes) override {
    send(wire::Kind::output, ByteWriter().u32(rank).u8(static_cast<std::uint8_t>(stream)).raw(bytes).take());
  }
  void ended(std::uint32_t rank, int wait_status) override {
    send(wire::Kind::ended, ByteWriter().u32(rank).u32(static_cast<std::uint32_t>(wait_status)).take());
  }
  void failed(const std::string& reason, int exit_code) override {
    failed_ = true;
    send(wire::Kind::failed, ByteWriter().u32(static_cast<std::uint32_t>(exit_code)).text(reason).take());
  }

  void send(wire::Kind kind, std::string_view body) {
    queue_ += comm::internal::frame_bytes(static_cast<std::uint8_t>(kind), body);
  }

  /// Reads frames. False at the end of the input, or when it is invalid.
  bool read_frames() {
    char buffer[65536];
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count <= 0) return false;
    frames_.add({buffer, static_cast<std::size_t>(count)});
    Frame frame;
    while (frames_.next(frame)) take(frame);
    return !frames_.malformed();
  }

  void take(const Frame& frame) {
    const auto kind = static_cast<wire::Kind>(frame.kind);
    if (kind == wire::Kind::start && ranks_ == nullptr) return start(frame.body);
    if (ranks_ == nullptr) return;
    if (kind == wire::Kind::signal) ranks_->signal(static_cast<int>(ByteReader(frame.body).u32()));
    if (kind == wire::Kind::input_end) ranks_->end_input();
    if (kind == wire::Kind::input) {
      ranks_->feed(frame.body);
      waits_for_input_ = true;
    }
  }

  void start(std::string_view body) {
    const auto plan = wire::decode_plan(body);
    if (!plan) return failed(plan.error().message, 1);
    auto ranks = LocalRanks::start(plan.value(), *this, cleanup_);
    if (!ranks) return failed(ranks.error().message, exit_code_of(ranks.error()));
    ranks_ = std::move(ranks).value();
  }

  CleanupProcess& cleanup_;
  PollSet polls_;
  StreamWriter writer_{STDOUT_FILENO};
  std::string queue_;
  comm::internal::FrameBuffer frames_{wire::most_frame_bytes};
  std::unique_ptr<LocalRanks> ranks_;
  bool waits_for_input_ = false;
  bool failed_ = false;
};

}  // namespace

int run_agent() {
  prepare_launcher();
  auto cleanup = CleanupProcess::start();
  if (!cleanup) {
    print_note("tandem: error: {}\n", cleanup.error().message);
    return 1;
  }
  return Agent(cleanup.value()).run();
}

}  // namespace tandem::tools
