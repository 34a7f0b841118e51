// tandem/comm/transport/tcp/tcp_ending.cpp: how connections and peers end, and what deadlines cause.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "tandem/base/assert.hpp"
#include "tandem/comm/transport/tcp/tcp_transport.hpp"

namespace tandem::comm::internal {

namespace {

// A process that dies or leaves closes all its connections at once; their ends, and a goodbye in one, may arrive in any
// order.
constexpr std::int64_t grace_ns = 500'000'000;

}  // namespace

void TcpTransport::peer_left(Rank rank) {
  const auto found = peers_.find(rank.value());
  if (found == peers_.end()) return;
  TcpPeer& peer = *found->second;
  peer.left = true;
  std::erase(losing_, &peer);
  if (!has_connection(peer)) peer.state = TcpPeer::State::gone;
}

void TcpTransport::disconnect(Rank rank) {
  TcpPeer& peer = peer_of(rank);
  close_all(peer);
  peer.state = TcpPeer::State::gone;
}

std::size_t TcpTransport::open_connections() const noexcept {
  return count_open([](const Connection&) { return true; });
}

std::size_t TcpTransport::used_connections() const noexcept {
  return count_open([](const Connection& connection) {
    return connection.writer.written_bytes() > 0 || connection.reader.begun();
  });
}

std::size_t TcpTransport::fast_connections() const noexcept {
  return count_open([](const Connection& connection) { return connection.fast; });
}

std::vector<std::string> TcpTransport::congestion_controls() const {
  std::vector<std::string> names;
  for (const auto& connection : connections_) {
    if (connection->stage == Stage::open) names.push_back(congestion_control(connection->socket.get()));
  }
  return names;
}

std::size_t TcpTransport::count_open(bool (*counts)(const Connection&)) const noexcept {
  const auto counted = [counts](const auto& connection) {
    return connection->stage == Stage::open && counts(*connection);
  };
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(), counted));
}

bool TcpTransport::has_connection(const TcpPeer& peer) const {
  return std::any_of(peer.links.begin(), peer.links.end(),
                     [](const auto& link) { return link && (link->ours != nullptr || link->theirs != nullptr); });
}

// Closes one connection, and removes it from everywhere. Its memory stays until the next poll.
void TcpTransport::end(Connection& connection) {
  if (connection.stage == Stage::ended) return;
  connection.stage = Stage::ended;
  if (TcpLink* link = connection.link; link != nullptr) {
    if (link->out == &connection) cancel_splice(*link);
    if (link->ours == &connection) link->ours = nullptr;
    if (link->theirs == &connection) link->theirs = nullptr;
    if (link->out == &connection) link->out = nullptr;
  } else {
    --unproved_;
  }
  cool(connection);
  unblock(connection);
  if (connection.watched) std::erase(watched_, &connection);
  connection.watched = false;
  std::erase(paused_, &connection);
  connection.writer.abandon();
  connection.proof.reset();
  close_socket(connection);
  const auto same = [&](const auto& owned) { return owned.get() == &connection; };
  const auto found = std::find_if(connections_.begin(), connections_.end(), same);
  TANDEM_ASSERT(found != connections_.end());
  ended_.push_back(std::move(*found));
  *found = std::move(connections_.back());
  connections_.pop_back();
  listen_again();
}

// Takes the socket out of the epoll set first: a child process may hold it open, which would keep it in the set, with a
// pointer to this connection.
void TcpTransport::close_socket(Connection& connection) {
  watch_events(connection, 0);
  connection.socket.close();
}

// The application may reuse a spliced payload that is not known to be read as soon as it learns of the end. So nothing
// of it may leave any more, and a peer that reads it now sees the reset (`FrameReader`) before it reports the payload.
void TcpTransport::cancel_splice(TcpLink& link) {
  if (link.splices_unread() > 0) reset_when_closed(link.out->socket.get());
  link.splices_known_read = link.splices;
}

// A connection to a peer has ended by itself. Whether this is a failure is decided later: the engine may not have
// called `peer_left` yet, or the goodbye may be in another connection.
void TcpTransport::lost(Connection& connection, std::string reason) {
  TcpPeer& peer = connection.link->owner_peer;
  end(connection);
  if (peer.left) {
    if (!has_connection(peer)) peer.state = TcpPeer::State::gone;
    return;
  }
  if (peer.state != TcpPeer::State::present) return;
  peer.state = TcpPeer::State::losing;
  peer.loss = std::move(reason);
  peer.lost_at_poll = poll_number_;
  peer.give_up_ns = now_ns_ + grace_ns;
  losing_.push_back(&peer);
  note_deadline(at_once);
}

void TcpTransport::settle_losses() {
  for (std::size_t i = losing_.size(); i-- > 0;) {
    TcpPeer& peer = *losing_[i];
    const bool heard_out = !has_connection(peer) || now_ns_ >= peer.give_up_ns;
    if (peer.lost_at_poll != poll_number_ && heard_out) fail(peer, std::exchange(peer.loss, {}));
  }
}

void TcpTransport::fail(TcpPeer& peer, std::string_view reason) {
  if (peer.state == TcpPeer::State::gone) return;
  close_all(peer);
  peer.state = TcpPeer::State::gone;
  if (peer.left) return;
  ++events_;
  if (peer.met) sink_.peer_failed(peer.rank, reason);
  else sink_.peer_unreachable(peer.rank, reason);
}

void TcpTransport::close_all(TcpPeer& peer) {
  std::erase(losing_, &peer);
  for (const auto& link : peer.links) {
    if (!link) continue;
    if (link->ours != nullptr) end(*link->ours);
    if (link->theirs != nullptr) end(*link->theirs);
  }
}

void TcpTransport::check_deadlines() {
  next_deadline_ns_ = never;
  for (std::size_t i = connections_.size(); i-- > 0;) {
    if (i < connections_.size()) check_deadline(*connections_[i]);
  }
  for (const auto& connection : connections_) note_deadline(connection->deadline_ns);
  for (const TcpPeer* peer : losing_) note_deadline(peer->give_up_ns);
  listen_again();
}

void TcpTransport::check_deadline(Connection& connection) {
  if (now_ns_ < connection.deadline_ns) return;
  switch (connection.stage) {
    case Stage::pausing: return try_candidate(*connection.link);
    case Stage::connecting: return connecting_failed(connection, ETIMEDOUT);
    case Stage::proving: break;
    case Stage::open:
    case Stage::ended: return;
  }
  connection.deadline_ns = never;
  if (connection.link != nullptr) {
    log_.warn("tcp: rank {} at {} does not answer; it may be stopped, and is waited for",
              connection.link->peer().value(), remote_text(connection.socket.get(), true));
    return;
  }
  // This process may not have polled in time, so it checks once more.
  continue_proof(connection);
  if (connection.stage == Stage::proving)
    drop_unproved(connection, "did not prove in time that it belongs to this job");
}

// Checks the connections on which something was written lately: is everything acknowledged, or does the peer's host
// answer nothing any more? While bytes are in flight, the kernel sends no keepalive probes, and would repeat the bytes
// for a quarter of an hour.
void TcpTransport::check_watched() {
  for (std::size_t i = watched_.size(); i-- > 0;) {
    if (i >= watched_.size()) continue;
    Connection& connection = *watched_[i];
    const Delivery delivery = delivery_of(connection.socket.get());
    if (!delivery.unanswered) connection.silent_since_ns = 0;
    if (!delivery.outstanding && !connection.writer.unfinished()) {
      connection.watched = false;
      watched_[i] = watched_.back();
      watched_.pop_back();
    } else if (delivery.unanswered && connection.silent_since_ns == 0) {
      connection.silent_since_ns = now_ns_;
    } else if (delivery.unanswered && now_ns_ - connection.silent_since_ns >= options_.host_timeout_ns) {
      fail(connection.link->owner_peer, "its host acknowledges nothing any more");
    }
  }
  next_watch_ns_ = watched_.empty() ? never : now_ns_ + watch_interval_ns;
}

}  // namespace tandem::comm::internal
