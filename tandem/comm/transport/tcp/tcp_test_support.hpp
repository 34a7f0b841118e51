// tandem/comm/transport/tcp/tcp_test_support.hpp: ranks in one process or several, with a sink that records its calls.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/base/log.hpp"
#include "tandem/comm/transport/tcp/tcp.hpp"
#include "tandem/comm/transport/tcp/tcp_transport.hpp"

namespace tandem::comm::tcp_test {

using Bytes = std::vector<std::byte>;

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline Bytes bytes_of(std::string_view text) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// Bytes that differ from place to place and from seed to seed.
inline Bytes pattern(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

/// Keeps all that a transport reports.
class Recorder final : public PacketSink {
 public:
  struct Received {
    Rank from;
    unsigned rail = 0;
    Bytes control;
    Bytes payload;
    bool landed = false;
  };

  Landing arrived(Link& link, std::span<const std::byte> control, std::size_t payload_bytes) override {
    aligned &= reinterpret_cast<std::uintptr_t>(control.data()) % 8 == 0;
    const bool bad = control.size() >= 3 && std::memcmp(control.data(), "bad", 3) == 0;
    if (bad && malformed != nullptr) return {.malformed = malformed};
    auto packet =
        std::make_unique<Received>(Received{link.peer(), link.rail(), {control.begin(), control.end()}, {}, false});
    if (on_arrived) on_arrived(link, *packet);
    Landing landing{.token = packets.size()};
    const std::size_t kept = std::min(payload_bytes, most_kept);
    packet->payload.resize(kept);
    std::vector<iovec>& pieces = landings_.emplace_back();
    for (std::size_t at = 0; at < kept;) {
      const std::size_t size = std::min(piece_bytes == 0 ? kept : piece_bytes, kept - at);
      pieces.push_back({packet->payload.data() + at, size});
      at += size;
    }
    landing.pieces = landings_.back();
    packet->landed = payload_bytes == 0;
    packets.push_back(std::move(packet));
    return landing;
  }
  void landed(Link&, std::uint64_t token) override { packets.at(token)->landed = true; }
  void sent(Link&, std::uint64_t cookie) override { cookies.push_back(cookie); }
  void writable(Link& link) override {
    ++writable_count;
    if (on_writable) on_writable(link);
  }
  void peer_failed(Rank peer, std::string_view reason) override {
    EXPECT_FALSE(failures.contains(peer.value())) << "reported twice: " << reason;
    failures[peer.value()] = reason;
  }

  std::size_t landed_count() const {
    const auto is_whole = [](const auto& packet) { return packet->landed; };
    return static_cast<std::size_t>(std::count_if(packets.begin(), packets.end(), is_whole));
  }

  std::vector<std::unique_ptr<Received>> packets;
  std::vector<std::uint64_t> cookies;
  std::map<std::uint32_t, std::string> failures;
  unsigned writable_count = 0;
  bool aligned = true;
  std::size_t piece_bytes = 0;             ///< landings are cut into pieces of this size; 0: one piece
  std::size_t most_kept = SIZE_MAX;        ///< of a payload; the rest is to be dropped
  const char* malformed = nullptr;         ///< the answer to control blocks that begin with "bad"
  std::function<void(Link&, const Received&)> on_arrived;
  std::function<void(Link&)> on_writable;

 private:
  std::vector<std::vector<iovec>> landings_;  // the inner arrays stay where they are
};

/// One rank: a transport on the loopback interface, its sink and its log.
struct Node {
  explicit Node(unsigned rank, const std::function<void(TcpOptions&)>& change = {}) {
    TcpOptions options;
    options.self = {.rank = Rank(rank), .size = 4096, .wire_version = 1, .version = "1.0", .job_id = "test"};
    options.self.secret.fill(std::byte{7});
    options.log = &log;
    options.interfaces = "127.0.0.1";
    if (change) change(options);
    auto made = make_tcp_transport(options, sink);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    transport = std::move(made).value();
  }

  Link& connect(const Node& peer, unsigned peer_rank, unsigned rail = 0) {
    return transport->connect(Rank(peer_rank), peer.transport->card(), rail);
  }
  internal::TcpTransport& internals() { return static_cast<internal::TcpTransport&>(*transport); }
  bool logged(std::string_view what) const { return text.find(what) != std::string::npos; }

  std::string text;  ///< of the log
  base::Log log{base::LogLevel::debug,
                [this](base::LogLevel, std::string_view line) { text.append(line).append("\n"); }};
  Recorder sink;
  std::unique_ptr<Transport> transport;
};

/// Polls the nodes, and sleeps as an engine would when they have nothing to do, until `done` or too much time has
/// passed.
inline bool step_until(const std::vector<Node*>& nodes, const std::function<bool()>& done,
                       std::int64_t limit_ns = 20'000'000'000) {
  const std::int64_t until = now_ns() + limit_ns;
  while (!done()) {
    if (now_ns() > until) return false;
    unsigned events = 0;
    for (Node* node : nodes) events += node->transport->poll(now_ns());
    if (events > 0) continue;
    if (done()) return true;  // `done` may send: it is asked no more once it has said yes
    std::vector<pollfd> waits;
    bool sleeps = true;
    for (Node* node : nodes) {
      sleeps &= node->transport->arm();
      waits.push_back({node->transport->wait_descriptor(), POLLIN, 0});
    }
    if (sleeps) (void)::poll(waits.data(), waits.size(), 50);
    for (Node* node : nodes) node->transport->disarm();
  }
  return true;
}

/// Polls for some time.
inline void step_for(const std::vector<Node*>& nodes, std::int64_t duration_ns) {
  (void)step_until(nodes, [] { return false; }, duration_ns);
}

/// Sends, polling the nodes until the link takes the packet. The payload must live until it is sent.
inline SendStatus send(const std::vector<Node*>& nodes, Link& link, std::string_view control,
                       std::span<const iovec> payload = {}, std::uint64_t cookie = 0) {
  const Bytes block = bytes_of(control);
  Packet packet{.control = block, .payload = payload, .cookie = cookie};
  for (const iovec& piece : payload) packet.payload_bytes += piece.iov_len;
  SendStatus status = SendStatus::retry;
  EXPECT_TRUE(step_until(nodes, [&] { return (status = link.try_send(packet)) != SendStatus::retry; }));
  return status;
}

inline iovec piece_of(const Bytes& bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace tandem::comm::tcp_test
