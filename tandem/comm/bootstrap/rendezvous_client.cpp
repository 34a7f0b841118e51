// tandem/comm/bootstrap/rendezvous_client.cpp: the handshake, then cards as they are asked for.
#include "tandem/comm/bootstrap/rendezvous_client.hpp"

#include <fmt/core.h>

#include "tandem/comm/bootstrap/proof.hpp"

namespace tandem::comm::internal {

using base::Error;
using base::ErrorCode;
using base::Result;

Deadline RendezvousClient::deadline() const {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(access_.timeout_ns);
}

Result<std::unique_ptr<RendezvousClient>> RendezvousClient::join(const RendezvousAccess& access) {
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(access.timeout_ns);
  const auto failed = [&](const Error& error) {
    return Error{error.code, fmt::format("rank {} of {} cannot join its job by the rendezvous server at {}: {}", access.rank,
                                         access.size, access.server.text(), error.message)};
  };
  auto socket = TimedSocket::connect(access.server, deadline);
  if (!socket) return failed(socket.error());
  std::unique_ptr<RendezvousClient> client(new RendezvousClient(access, std::move(socket).value()));
  if (auto done = client->prove_each_other(deadline); !done) return failed(done.error());
  return client;
}

Result<void> RendezvousClient::prove_each_other(Deadline deadline) {
  const std::string hello = rendezvous::Hello{rendezvous::version, std::string(rendezvous::own_version()), access_.rank,
                                              access_.size, std::string(text_of(fresh_nonce()))}.encode();
  if (auto sent = socket_.send(frame_bytes(std::uint8_t(Kind::hello), hello), deadline); !sent) return sent;
  const auto challenge = expect(Kind::challenge, deadline);
  if (!challenge) return challenge.error();
  const Proof proof = prove(access_.secret, rendezvous::rank_purpose, {hello, challenge.value().body});
  if (auto sent = socket_.send(frame_bytes(std::uint8_t(Kind::proof), text_of(proof)), deadline); !sent) return sent;
  const auto welcome = expect(Kind::welcome, deadline);
  if (!welcome) return welcome.error();
  ByteReader reader(welcome.value().body);
  const std::string_view answer = reader.raw(std::tuple_size_v<Proof>);
  const std::string_view bytes = reader.rest();
  if (!proves(access_.secret, rendezvous::server_purpose, {hello, challenge.value().body, bytes}, answer)) {
    return Error{ErrorCode::invalid_argument, "it does not prove that it knows the job's secret: it belongs to another job"};
  }
  auto membership = rendezvous::Membership::decode(bytes);
  if (!membership) return membership.error();
  membership_ = std::move(membership).value();
  return {};
}

/// The next frame, which has to be of this kind.
Result<Frame> RendezvousClient::expect(Kind kind, Deadline deadline) {
  Frame frame;
  while (!input_.next(frame)) {
    if (input_.malformed()) return Error{ErrorCode::malformed, "what answers there is no rendezvous server of Tandem"};
    const auto more = read_more(deadline);
    if (!more) return more.error();
    if (!more.value()) return Error{ErrorCode::io, "it closed the connection"};
  }
  if (frame.kind == std::uint8_t(kind)) return frame;
  if (frame.kind == std::uint8_t(Kind::refusal)) {
    ByteReader reader(frame.body);
    return Error{ErrorCode::invalid_argument,
                 fmt::format("refused, because {}", reader.text(rendezvous::most_reason_bytes))};
  }
  return Error{ErrorCode::malformed, fmt::format("a message of kind {} is out of place", frame.kind)};
}

/// Reads once from the socket; false at its end. Only before there are other threads.
Result<bool> RendezvousClient::read_more(Deadline deadline) {
  std::string bytes;
  auto more = socket_.receive(bytes, deadline);
  input_.add(bytes);
  return more;
}

Result<void> RendezvousClient::put(const std::string& card) {
  const std::scoped_lock lock(mutex_);
  auto sent = socket_.send(frame_bytes(std::uint8_t(Kind::publish), card), deadline());
  if (sent) return sent;
  return Error{sent.error().code, fmt::format("rank {} cannot publish its card: {}", access_.rank, sent.error().message)};
}

Result<std::string> RendezvousClient::get(Rank peer) {
  const Deadline until = deadline();
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto card = cards_.find(peer.value()); card != cards_.end()) return card->second;
    if (const auto absent = absent_.find(peer.value()); absent != absent_.end()) {
      return Error{ErrorCode::io, fmt::format("rank {} cannot be reached: {}", peer.value(), absent->second)};
    }
    if (over_) {
      return Error{ErrorCode::io, fmt::format("rank {} cannot be found: the rendezvous server at {} is gone", peer.value(),
                                              access_.server.text())};
    }
    if (std::chrono::steady_clock::now() >= until) {
      return Error{ErrorCode::exhausted,
                   fmt::format("rank {} waited {} s for rank {}, which has not published where it can be reached: does it run?",
                               access_.rank, access_.timeout_ns / 1'000'000'000, peer.value())};
    }
    if (asked_.insert(peer.value()).second) ask(peer, until);
    if (reading_) {
      answered_.wait_until(lock, until);
      continue;
    }
    reading_ = true;
    lock.unlock();
    std::string bytes;
    const auto more = socket_.receive(bytes, until);
    lock.lock();
    reading_ = false;
    input_.add(bytes);
    store_frames();
    if (more.ok() && !more.value()) over_ = true;
    answered_.notify_all();
  }
}

/// A failure to ask shows itself when the answer is read: what the server sent before it left is still there.
void RendezvousClient::ask(Rank peer, Deadline deadline) {
  (void)socket_.send(frame_bytes(std::uint8_t(Kind::lookup), ByteWriter().u32(peer.value()).take()), deadline).ok();
}

void RendezvousClient::store_frames() {
  Frame frame;
  while (input_.next(frame)) {
    ByteReader reader(frame.body);
    const std::uint32_t rank = reader.u32();
    if (frame.kind == std::uint8_t(Kind::card) && reader.ok()) cards_[rank] = reader.rest();
    if (frame.kind == std::uint8_t(Kind::absent) && reader.ok()) absent_[rank] = reader.text(rendezvous::most_reason_bytes);
  }
  if (input_.malformed()) over_ = true;
}

}  // namespace tandem::comm::internal
