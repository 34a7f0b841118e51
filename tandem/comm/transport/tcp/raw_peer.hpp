// tandem/comm/transport/tcp/raw_peer.hpp: for tests, a bare socket that can send any bytes to a transport.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <span>
#include <string>
#include <thread>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/connection_proof.hpp"
#include "tandem/comm/transport/tcp/address.hpp"
#include "tandem/comm/transport/tcp/frame.hpp"
#include "tandem/comm/transport/tcp/socket.hpp"
#include "tandem/comm/transport/tcp/tcp_test_support.hpp"

namespace tandem::comm::tcp_test {

/// A bare socket that nodes can be made to call.
class RawListener {
 public:
  RawListener() {
    auto made = internal::listen_in_range(internal::SocketAddress::any(AF_INET, 0), 0, 0);
    EXPECT_TRUE(made.ok());
    socket_ = std::move(made).value();
  }
  /// A published address like that of a node on this host, with this socket's port.
  std::string card(const Node& like) const {
    auto card = *internal::TcpCard::parse(like.transport->card());
    card.port = internal::bound_address(fd()).port();
    return card.text();
  }
  int fd() const { return socket_.get(); }

 private:
  base::FileDescriptor socket_;
};

/// Connects to a node of the same process, which is polled while this waits.
class RawPeer {
 public:
  /// Accepts the call of `node` at `listener`.
  RawPeer(Node& node, const RawListener& listener) : node_(node), calls_(false) {
    EXPECT_TRUE(until([&] {
      socket_ = base::FileDescriptor(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      return static_cast<bool>(socket_);
    }));
  }
  explicit RawPeer(Node& node) : node_(node) {
    const auto card = internal::TcpCard::parse(node.transport->card());
    int error = 0;
    socket_ = internal::begin_connecting(card->addresses.at(0), {.send_buffer_bytes = std::size_t{1} << 20}, error);
    EXPECT_TRUE(socket_) << internal::error_text(error);
    EXPECT_TRUE(until([&] { return internal::connecting_state(fd(), error) != internal::Connecting::pending; }));
  }

  /// Does the proof as `rank`, with the secret of the tests.
  void prove(unsigned rank) {
    ProofParty party{
        .rank = Rank(rank), .size = 4096, .wire_version = 1, .version = "1.0", .job_id = "test", .secret = {}};
    party.secret.fill(std::byte{7});
    auto proof = calls_ ? ConnectionProof::opener(party, Rank(0), 0) : ConnectionProof::accepter(party);
    EXPECT_TRUE(until([&] {
      const auto out = proof.output();
      if (const ssize_t sent = ::send(fd(), out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL); sent > 0) {
        proof.sent(static_cast<std::size_t>(sent));
      }
      const auto in = proof.input();
      const ssize_t got = in.empty() ? 0 : recv(fd(), in.data(), in.size(), MSG_DONTWAIT);
      if (got > 0) proof.received(static_cast<std::size_t>(got));
      return proof.state() != ConnectionProof::State::working && proof.output().empty();
    }));
    EXPECT_EQ(proof.state(), ConnectionProof::State::proved) << proof.reason();
  }

  /// Writes all of `bytes`, in pieces of `piece` bytes with a poll of the node after each. False: the node has closed.
  bool write(std::span<const std::byte> bytes, std::size_t piece = SIZE_MAX) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd(), bytes.data(), std::min(piece, bytes.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      node_.transport->poll(now_ns());
    }
    return true;
  }

  /// Whether the node has closed the connection; reads and forgets what it said.
  bool closed_by_node() {
    std::byte bytes[4096];
    for (;;) {
      const ssize_t got = recv(fd(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (got > 0) continue;
      return got == 0 || errno != EAGAIN;
    }
  }
  void close() { socket_.close(); }
  int fd() const { return socket_.get(); }

 private:
  /// Polls the node until `done`, which checks this end: no event of the node would wake a sleeper.
  bool until(const std::function<bool()>& done) {
    const std::int64_t limit_ns = now_ns() + 20'000'000'000;
    while (!done()) {
      if (now_ns() > limit_ns) return false;
      if (node_.transport->poll(now_ns()) == 0) std::this_thread::yield();
    }
    return true;
  }

  Node& node_;
  base::FileDescriptor socket_;
  bool calls_ = true;
};

/// A packet as it is on the wire.
inline Bytes wire_packet(std::span<const std::byte> control, std::span<const std::byte> payload) {
  const auto header = internal::FrameHeader::of(control.size(), payload.size());
  const std::span<const std::byte> head = std::as_bytes(std::span(&header, 1));
  Bytes bytes(head.size() + control.size() + payload.size());
  auto end = bytes.begin();
  for (const auto part : {head, control, payload}) end = std::copy(part.begin(), part.end(), end);
  return bytes;
}

}  // namespace tandem::comm::tcp_test
