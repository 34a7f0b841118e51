// tandem/comm/transport/tcp/tcp_bench.cpp: half ping-pongs between two polling processes: a bare socket, and the
// transport.
//
// Bytes up to 1 KiB travel in the control block and larger ones as payload, in one packet or in segments. The time is
// half of a round trip. Both processes poll, so that a machine needs two idle cores for figures that mean something.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/tcp/socket.hpp"
#include "tandem/comm/transport/tcp/tcp.hpp"

namespace tandem::comm {
namespace {

using base::FileDescriptor;
using internal::SocketAddress;

constexpr std::size_t record_bytes = 48;  // of the control block besides what it carries
constexpr std::size_t inline_bytes = 1024;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// One end of a ping-pong: `send` begins to send, `receive` returns when all of the other's bytes are here.
class End {
 public:
  virtual ~End() = default;
  virtual void send() = 0;
  virtual bool receive() = 0;  ///< false: the other end has gone
};

/// A polled socket and nothing else, with the kernel's default buffers.
class BareEnd final : public End {
 public:
  BareEnd(FileDescriptor socket, std::size_t bytes) : socket_(std::move(socket)), out_(bytes), in_(bytes) {
    const int on = 1;
    (void)setsockopt(socket_.get(), IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
  }
  void send() override {
    for (std::size_t at = 0; at < out_.size();) {
      const ssize_t sent = ::send(socket_.get(), out_.data() + at, out_.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) at += static_cast<std::size_t>(sent);
      if (sent < 0 && errno != EAGAIN) return;
    }
  }
  bool receive() override {
    for (std::size_t at = 0; at < in_.size();) {
      const ssize_t got = recv(socket_.get(), in_.data() + at, in_.size() - at, MSG_DONTWAIT);
      if (got > 0) at += static_cast<std::size_t>(got);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
    }
    return true;
  }

 private:
  FileDescriptor socket_;
  std::vector<char> out_, in_;
};

/// The transport, with a sink that puts every payload behind the one before.
class TransportEnd final : public End, private PacketSink {
 public:
  TransportEnd(unsigned rank, std::size_t bytes, std::size_t segment_bytes)
      : payload_(bytes > inline_bytes ? bytes : 0),
        in_(payload_.size()),
        control_(record_bytes + bytes - payload_.size()),
        segment_bytes_(segment_bytes) {
    TcpOptions options;
    options.self = {
        .rank = Rank(rank), .size = 2, .wire_version = 1, .version = "bench", .job_id = "bench", .secret = {}};
    options.log = &log_;
    options.interfaces = "lo";
    transport_ = std::move(make_tcp_transport(options, *this)).value();
  }
  std::string card() const { return transport_->card(); }
  void connect(unsigned peer, const std::string& card) { link_ = &transport_->connect(Rank(peer), card, 0); }
  void wait_for_link() {
    while (link_ == nullptr) transport_->poll(now_ns());
  }

  void send() override {
    unsent_ = 0;
    sending_ = true;
    continue_sending();
  }
  bool receive() override {
    while (!gone_ && (landed_bytes_ < expected() || sending_ || posted_ > 0)) {
      transport_->poll(now_ns());
      if (sending_) continue_sending();
    }
    landed_bytes_ -= expected();
    in_at_ = 0;
    return !gone_;
  }

 private:
  std::size_t expected() const { return std::max<std::size_t>(payload_.size(), 1); }
  void continue_sending() {
    do {
      const std::size_t size = std::min(segment_bytes_, payload_.size() - unsent_);
      const iovec piece{payload_.data() + unsent_, size};
      const Packet packet{.control = control_, .payload = {&piece, size > 0 ? 1U : 0U}, .payload_bytes = size};
      const SendStatus status = link_->try_send(packet);
      if (status == SendStatus::retry) return;
      if (status == SendStatus::posted) ++posted_;
      unsent_ += size;
    } while (unsent_ < payload_.size());
    sending_ = false;
  }
  Landing arrived(Link& link, std::span<const std::byte>, std::size_t payload_bytes) override {
    link_ = &link;
    if (payload_bytes == 0) ++landed_bytes_;
    landing_ = {in_.data() + in_at_, payload_bytes};
    in_at_ += payload_bytes;
    return {.pieces = {&landing_, 1}};
  }
  void landed(Link&, std::uint64_t) override { landed_bytes_ += landing_.iov_len; }
  void sent(Link&, std::uint64_t) override { --posted_; }
  void writable(Link&) override {}
  void peer_failed(Rank, std::string_view) override { gone_ = true; }

  base::Log log_{base::LogLevel::warn};
  std::vector<std::byte> payload_, in_, control_;
  std::size_t segment_bytes_;
  std::unique_ptr<Transport> transport_;
  Link* link_ = nullptr;
  iovec landing_{};
  std::size_t in_at_ = 0, unsent_ = 0, landed_bytes_ = 0;
  unsigned posted_ = 0;
  bool sending_ = false, gone_ = false;
};

/// A child that answers until it is stopped.
class Child {
 public:
  explicit Child(const std::function<void()>& run) : pid_(fork()) {
    if (pid_ != 0) return;
    run();
    _exit(0);
  }
  ~Child() { waitpid(pid_, nullptr, 0); }

 private:
  pid_t pid_;
};

void measure(benchmark::State& state, End& end) {
  const auto ping = [&end] {
    end.send();
    return end.receive();
  };
  for (int i = 0; i < 20; ++i) ping();
  for (auto _ : state) {
    const std::int64_t start = now_ns();
    ping();
    state.SetIterationTime(1e-9 * static_cast<double>(now_ns() - start) / 2);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

void bare_socket(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  FileDescriptor listener = internal::listen_in_range(*SocketAddress::parse("127.0.0.1", 0), 0, 0).value();
  const SocketAddress at = internal::bound_address(listener.get());
  Child child([&] {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    if (::connect(socket.get(), at.get(), at.size()) != 0) _exit(1);
    BareEnd end(std::move(socket), bytes);
    while (end.receive()) end.send();
  });
  int fd = -1;
  while ((fd = accept(listener.get(), nullptr, nullptr)) < 0) usleep(100);
  BareEnd end{FileDescriptor(fd), bytes};
  measure(state, end);
}

void transport(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto segment_bytes = static_cast<std::size_t>(state.range(1));
  int ends[2];
  if (pipe(ends) != 0) return;
  Child child([&] {
    TransportEnd end(1, bytes, segment_bytes);
    const std::string card = end.card();
    if (write(ends[1], card.data(), card.size()) < 0) _exit(1);
    end.wait_for_link();
    while (end.receive()) end.send();
  });
  char text[512];
  const ssize_t size = read(ends[0], text, sizeof text);
  close(ends[0]);
  close(ends[1]);
  TransportEnd end(0, bytes, segment_bytes);
  end.connect(1, std::string(text, static_cast<std::size_t>(size)));
  measure(state, end);
}

const std::vector<std::int64_t> sizes = {4, 1024, 4096, 65'536, 439'296, 8 << 20};

BENCHMARK(bare_socket)->ArgsProduct({sizes})->ArgNames({"bytes"})->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(transport)
    ->ArgsProduct({sizes, {63 << 10, 32 << 20}})
    ->ArgNames({"bytes", "segment"})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ;

}  // namespace
}  // namespace tandem::comm
