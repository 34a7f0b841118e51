// tandem/comm/bootstrap/rendezvous_client.cpp: the handshake, then addresses as they are asked for.
#include "tandem/comm/bootstrap/rendezvous_client.hpp"

#include <fmt/core.h>

#include "tandem/comm/bootstrap/proof.hpp"

namespace tandem::comm::internal {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::chrono::seconds longest_question(2);  ///< of `missing`, which a watchdog asks for its message

}  // namespace

Deadline RendezvousClient::deadline() const {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(access_.timeout_ns);
}

Result<std::unique_ptr<RendezvousClient>> RendezvousClient::join(const RendezvousAccess& access) {
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(access.timeout_ns);
  const auto failed = [&](const Error& error) {
    return Error{error.code, fmt::format("rank {} of {} cannot join its job by the rendezvous server at {}: {}",
                                         access.rank, access.size, text_of(access.servers), error.message)};
  };
  auto socket = TimedSocket::connect(access.servers, deadline);
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
    return Error{ErrorCode::invalid_argument,
                 "it does not prove that it knows the job's secret: it belongs to another job"};
  }
  auto membership = rendezvous::Membership::decode(bytes);
  if (!membership) return membership.error();
  membership_ = std::move(membership).value();
  return {};
}

/// Receives the next frame, which must be of this kind.
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

/// Reads once from the socket; false at its end. Called only before there are other threads.
Result<bool> RendezvousClient::read_more(Deadline deadline) {
  std::string bytes;
  auto more = socket_.receive(bytes, deadline);
  input_.add(bytes);
  return more;
}

Result<void> RendezvousClient::put(Entry entry, const std::string& bytes) {
  const std::scoped_lock lock(mutex_);
  const std::string body = ByteWriter().u8(std::uint8_t(entry)).raw(bytes).take();
  auto sent = socket_.send(frame_bytes(std::uint8_t(Kind::publish), body), deadline());
  if (sent) return sent;
  return Error{sent.error().code,
               fmt::format("rank {} cannot publish its card: {}", access_.rank, sent.error().message)};
}

Result<std::string> RendezvousClient::get(Entry entry, Rank peer, std::int64_t timeout_ns) {
  if (timeout_ns == 0) timeout_ns = patience_ns();
  const Deadline until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  const std::pair key(peer.value(), entry);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto found = entries_.find(key); found != entries_.end()) {
      if (!reading_) answered_.notify_one();
      return found->second;
    }
    if (const auto absent = absent_.find(peer.value()); absent != absent_.end()) {
      return Error{ErrorCode::io, fmt::format("rank {} cannot be reached: {}", peer.value(), absent->second)};
    }
    if (gave_up_) {
      return Error{ErrorCode::io,
                   fmt::format("rank {} leaves, and looks for rank {} no more", access_.rank, peer.value())};
    }
    if (over_) {
      return Error{ErrorCode::io, fmt::format("rank {} cannot be found: the rendezvous server at {} is gone",
                                              peer.value(), text_of(access_.servers))};
    }
    if (std::chrono::steady_clock::now() >= until) {
      if (!reading_) answered_.notify_one();
      return Error{
          ErrorCode::exhausted,
          fmt::format("rank {} waited {} s for rank {}, which has not published where it can be reached: does it run?",
                      access_.rank, timeout_ns / 1'000'000'000, peer.value())};
    }
    if (asked_.insert(key).second) ask(entry, peer, until);
    read_some(lock, until);
  }
}

std::vector<Rank> RendezvousClient::missing() {
  const Deadline until = std::chrono::steady_clock::now() + longest_question;
  std::unique_lock lock(mutex_);
  missing_.reset();
  if (over_ || !socket_.send(frame_bytes(std::uint8_t(Kind::who), {}), until).ok()) return {};
  while (!missing_ && !over_ && std::chrono::steady_clock::now() < until) read_some(lock, until);
  return missing_.value_or(std::vector<Rank>());
}

/// Reads once from the socket, or waits for the thread that reads. Releases the mutex meanwhile.
void RendezvousClient::read_some(std::unique_lock<std::mutex>& lock, Deadline until) {
  if (reading_) {
    answered_.wait_until(lock, until);
    return;
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
  // Without news, threads whose time is over leave by themselves.
  more.ok() ? answered_.notify_all() : answered_.notify_one();
}

void RendezvousClient::give_up() {
  const std::scoped_lock lock(mutex_);
  gave_up_ = true;
  socket_.shut_down();  // ends the wait of the thread that reads
  answered_.notify_all();
}

/// Does not report a failed send: what the server sent before it left is still there, and reading finds the failure.
void RendezvousClient::ask(Entry entry, Rank peer, Deadline deadline) {
  const std::string body = ByteWriter().u8(std::uint8_t(entry)).u32(peer.value()).take();
  (void)socket_.send(frame_bytes(std::uint8_t(Kind::lookup), body), deadline).ok();
}

void RendezvousClient::store_frames() {
  Frame frame;
  while (input_.next(frame)) {
    ByteReader reader(frame.body);
    if (frame.kind == std::uint8_t(Kind::published)) {
      const auto entry = static_cast<Entry>(reader.u8());
      const std::uint32_t rank = reader.u32();
      if (reader.ok()) entries_[{rank, entry}] = reader.rest();
    } else if (frame.kind == std::uint8_t(Kind::absent)) {
      const std::uint32_t rank = reader.u32();
      if (reader.ok()) absent_[rank] = reader.text(rendezvous::most_reason_bytes);
    } else if (frame.kind == std::uint8_t(Kind::missing)) {
      missing_.emplace();
      while (reader.ok() && !reader.finished() && missing_->size() < rendezvous::most_missing)
        missing_->emplace_back(reader.u32());
    }
  }
  if (input_.malformed()) over_ = true;
}

}  // namespace tandem::comm::internal
