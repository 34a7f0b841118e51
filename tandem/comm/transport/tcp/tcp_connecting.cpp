// tandem/comm/transport/tcp/tcp_connecting.cpp: making connections: ours and those of peers; dropping others.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "tandem/base/assert.hpp"
#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/fork.hpp"
#include "tandem/comm/transport/tcp/tcp_transport.hpp"

namespace tandem::comm::internal {

namespace {

constexpr std::int64_t first_look_ns = 500'000'000;         // for each address in the first round, if others follow
constexpr std::int64_t pause_ns = 100'000'000;              // between two rounds of attempts
constexpr std::int64_t silence_ns = 10'000'000'000;         // until a peer that does not answer is logged
constexpr std::int64_t descriptors_pause_ns = 500'000'000;  // until accepting is tried again when descriptors ran out
constexpr std::int64_t busy_log_ns = 10'000'000'000;
constexpr unsigned most_accepted = 16;                      // per poll
constexpr std::size_t most_logged_hosts = 1024;                // hosts that are remembered

// Whether an error may pass by itself. A refusal does not: a peer listens before it publishes its address.
bool may_pass(int error) {
  return error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT || error == ECONNRESET ||
         error == EADDRNOTAVAIL || error == EAGAIN;
}

// Whether this process or machine has no room for a connection now, which says nothing about the peer.
bool is_busy(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

}  // namespace

bool TcpTransport::reaches(Rank peer, std::string_view card) {
  const auto parsed = TcpCard::parse(card);
  return parsed && peer.value() < options_.self.size && !candidates(*parsed, own_addresses_, card_.host, 0).empty();
}

Link& TcpTransport::connect(Rank peer, std::string_view card, unsigned rail) {
  TANDEM_ASSERT(peer != options_.self.rank && peer.value() < options_.self.size && rail < options_.rails);
  TcpPeer& known = peer_of(peer);
  TcpLink& link = link_of(known, rail);
  if (link.ours != nullptr || link.theirs != nullptr || known.left || known.state != TcpPeer::State::present)
    return link;
  if (const auto parsed = TcpCard::parse(card)) link.candidates = candidates(*parsed, own_addresses_, card_.host, rail);
  // The rest waits for the next poll, since only a poll may call the sink.
  link.ours = &new_connection();
  link.ours->link = &link;
  link.ours->stage = Stage::pausing;
  link.ours->deadline_ns = at_once;
  note_deadline(at_once);
  return link;
}

TcpPeer& TcpTransport::peer_of(Rank rank) {
  std::unique_ptr<TcpPeer>& peer = peers_[rank.value()];
  if (!peer) peer = std::make_unique<TcpPeer>(rank);
  return *peer;
}

TcpLink& TcpTransport::link_of(TcpPeer& peer, unsigned rail) {
  if (peer.links.size() <= rail) peer.links.resize(rail + 1);
  std::unique_ptr<TcpLink>& link = peer.links[rail];
  if (!link) link = std::make_unique<TcpLink>(*this, peer, peer.rank, rail);
  return *link;
}

Connection& TcpTransport::new_connection() {
  const FrameReader::Limits limits{capabilities_.max_control_bytes, capabilities_.max_payload_bytes};
  Connection& connection = *connections_.emplace_back(std::make_unique<Connection>(limits));
  connection.send_buffer_bytes = options_.first_send_buffer_bytes;
  connection.writer.set_burst(options_.burst_bytes);
  return connection;
}

void TcpTransport::try_candidate(TcpLink& link) {
  Connection& connection = *link.ours;
  if (link.candidates.empty()) return lost(connection, "it has published no TCP address that can be reached from here");
  const SocketAddress& to = link.candidates[link.next_candidate];
  const bool choose_source = !options_.interfaces.empty() && own_addresses_.size() > 1;
  const SocketAddress* from = choose_source ? &own_addresses_[link.rail() % own_addresses_.size()].address : nullptr;
  int error = 0;
  const bool within_host = options_.host_segment_bytes > 0 &&
                           (to.is_loopback() || std::ranges::any_of(own_addresses_, [&](const LocalAddress& own) {
                              return own.address.host() == to.host();
                            }));
  connection.socket = begin_connecting(
      to, {.from = from, .send_buffer_bytes = options_.first_send_buffer_bytes, .within_host = within_host}, error);
  if (!connection.socket) return connecting_failed(connection, error);
  connecting_shortage_.end();
  connection.stage = Stage::connecting;
  // An address that drops packets delays the others only briefly; in later rounds each has its full time.
  const bool others_follow = link.give_up_ns == 0 && link.next_candidate + 1 < link.candidates.size();
  connection.deadline_ns =
      now_ns_ + (others_follow ? std::min(first_look_ns, options_.connect_timeout_ns) : options_.connect_timeout_ns);
  note_deadline(connection.deadline_ns);
  watch_events(connection, EPOLLOUT);
}

// One of our attempts has failed: there may be other addresses, and, if the failure may pass, another round.
void TcpTransport::attempt_failed(Connection& connection, std::string reason, bool may_succeed_later) {
  TcpLink& link = *connection.link;
  link.failure = std::move(reason);
  link.may_succeed_later |= may_succeed_later;
  close_socket(connection);
  connection.proof.reset();
  connection.stage = Stage::pausing;
  if (++link.next_candidate < link.candidates.size()) {
    connection.deadline_ns = at_once;
  } else if (link.may_succeed_later && (link.give_up_ns == 0 || now_ns_ < link.give_up_ns)) {
    if (link.give_up_ns == 0) link.give_up_ns = now_ns_ + options_.connect_timeout_ns;
    link.next_candidate = 0;
    link.may_succeed_later = false;
    connection.deadline_ns = now_ns_ + pause_ns;
  } else if (link.theirs != nullptr && link.theirs->stage == Stage::open) {
    link.out = link.theirs;  // nothing was sent yet, so no packet can overtake another
    end(connection);
    return block(*link.out);
  } else {
    return lost(connection, link.failure);
  }
  note_deadline(connection.deadline_ns);
}

void TcpTransport::connecting_failed(Connection& connection, int error) {
  if (is_busy(error)) return connect_later(connection, error);
  const std::string at = connection.link->candidates[connection.link->next_candidate].text();
  attempt_failed(connection, fmt::format("cannot connect to {}: {}", at, error_text(error)), may_pass(error));
}

// Tries this address again, until there is room.
void TcpTransport::connect_later(Connection& connection, int error) {
  if (connecting_shortage_.lasts(now_ns_)) {
    log_.error("tcp: no connection to rank {}: {}", connection.link->peer().value(), base::system_error_text(error));
    return lost(connection, fmt::format("this rank has no file descriptor for a connection to it: {}",
                                        base::system_error_text(error)));
  }
  if (now_ns_ >= next_busy_log_ns_) {
    next_busy_log_ns_ = now_ns_ + busy_log_ns;
    log_.warn("tcp: cannot connect to rank {} now: {}; trying again for {} s", connection.link->peer().value(),
              base::system_error_text(error), options_.descriptor_patience_ns / 1'000'000'000);
  }
  close_socket(connection);
  connection.stage = Stage::pausing;
  connection.deadline_ns = now_ns_ + descriptors_pause_ns;
  note_deadline(connection.deadline_ns);
}

void TcpTransport::continue_connecting(Connection& connection) {
  int error = 0;
  switch (connecting_state(connection.socket.get(), error)) {
    case Connecting::pending: return;
    case Connecting::failed: return connecting_failed(connection, error);
    case Connecting::yes: break;
  }
  connection.stage = Stage::proving;
  connection.proof = std::make_unique<ConnectionProof>(
      ConnectionProof::opener(options_.self, connection.link->peer(), connection.link->rail()));
  // A stopped peer's kernel has taken the connection, and the peer itself answers when it continues: there is no limit.
  connection.deadline_ns = now_ns_ + silence_ns;
  note_deadline(connection.deadline_ns);
  continue_proof(connection);
}

void TcpTransport::accept_some() {
  for (unsigned i = 0; i < most_accepted && unproved_ < most_unproved; ++i) {
    auto socket = base::kept_from_children(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (errno == ECONNABORTED || errno == EINTR) continue;
      no_room_to_accept(errno);
      stop_listening();
      return note_deadline(now_ns_ + descriptors_pause_ns);
    }
    accepting_shortage_.end();
    Connection& connection = new_connection();
    prepare_connection(socket.get(), options_.first_send_buffer_bytes);
    if (!stays_within_host(socket.get())) set_congestion_control(socket.get(), congestion_control_);
    connection.socket = std::move(socket);
    connection.stage = Stage::proving;
    connection.proof = std::make_unique<ConnectionProof>(ConnectionProof::accepter(options_.self));
    connection.deadline_ns = now_ns_ + options_.proof_timeout_ns;
    note_deadline(connection.deadline_ns);
    ++unproved_;
    watch_events(connection, EPOLLIN);
  }
  // The others wait in the kernel's queue, where they cost nothing.
  if (unproved_ == most_unproved) stop_listening();
}

// Peers wait for the answer of a process that may be stopped, without limit. So when descriptors stay exhausted, the
// spare one takes the waiting connections, and closes them: the peers give up, and report that this rank did not
// answer.
void TcpTransport::no_room_to_accept(int error) {
  const bool lasts = is_busy(error) && accepting_shortage_.lasts(now_ns_);
  std::int64_t& next_log_ns = lasts ? next_refusal_log_ns_ : next_busy_log_ns_;
  if (now_ns_ >= next_log_ns) {
    next_log_ns = now_ns_ + busy_log_ns;
    const std::string why = base::system_error_text(error);
    if (lasts) log_.error("tcp: this rank turns away the connections of peers: {}", why);
    else log_.warn("tcp: cannot accept a connection: {}; trying again soon", why);
  }
  if (!lasts) return;
  base::with_spare_descriptor([this] {
    for (unsigned i = 0; i < most_accepted; ++i)
      if (!base::FileDescriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC))) return;
  });
}

void TcpTransport::stop_listening() {
  if (std::exchange(listening_, false)) (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
}

void TcpTransport::listen_again() {
  if (listening_ || unproved_ >= most_unproved) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &listener_;
  listening_ = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0;
}

void TcpTransport::continue_proof(Connection& connection) {
  const bool alive = move_proof_bytes(connection);
  const ConnectionProof& proof = *connection.proof;
  const bool written = proof.output().empty();
  if (proof.state() == ConnectionProof::State::refused) return refused(connection);
  if (!alive) return cut_off(connection);
  if (proof.state() == ConnectionProof::State::proved && written) return proved(connection);
  watch_events(connection, written ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

// Sends and receives bytes of the proof. False: the connection is gone.
bool TcpTransport::move_proof_bytes(Connection& connection) {
  ConnectionProof& proof = *connection.proof;
  const int fd = connection.socket.get();
  for (;;) {
    if (const auto output = proof.output(); !output.empty()) {
      const ssize_t sent = send(fd, output.data(), output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      proof.sent(static_cast<std::size_t>(sent));
      continue;
    }
    const auto input = proof.input();
    if (input.empty()) return true;
    const ssize_t got = recv(fd, input.data(), input.size(), MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    proof.received(static_cast<std::size_t>(got));
  }
}

void TcpTransport::proved(Connection& connection) {
  if (connection.link == nullptr) {
    const ConnectionProof& proof = *connection.proof;
    TcpPeer& peer = peer_of(proof.peer());
    if (proof.rail() >= TcpOptions::most_rails) return drop_unproved(connection, "asked for a rail that cannot exist");
    if (peer.left || peer.state != TcpPeer::State::present) return end(connection);  // the reason is known
    TcpLink& link = link_of(peer, proof.rail());
    if (link.theirs != nullptr) return drop_unproved(connection, "opened a second connection for one rail");
    link.theirs = &connection;
    connection.link = &link;
    --unproved_;
    listen_again();
    if (link.ours == nullptr) link.out = &connection;
  } else {
    connection.link->out = &connection;
  }
  TcpLink& link = *connection.link;
  link.owner_peer.met = true;
  connection.stage = Stage::open;
  connection.deadline_ns = never;
  connection.proof.reset();
  set_probe_pause(connection.socket.get(), probe_pause_s(connections_.size()));
  if (options_.host_segment_bytes > 0 && stays_within_host(connection.socket.get())) trust(connection);
  watch_events(connection, EPOLLIN);
  heat(connection);
  if (link.theirs == &connection) sink_.opened(link);
  if (connection.stage == Stage::ended) return;
  if (link.out == &connection && (link.ours == &connection || link.wants_writable)) {
    link.wants_writable = false;
    ++events_;
    sink_.writable(link);
  }
}

// Opens a proved connection. One within the host is as fast as the processors: nothing of it is measured.
void TcpTransport::trust(Connection& connection) {
  connection.within_host = connection.fast = true;
  connection.writer.set_burst(SIZE_MAX);
  set_buffer(connection, options_.send_buffer_bytes);
  connection.link->segment_bytes = options_.host_segment_bytes;
}

// The other end closed before the end of the proof.
void TcpTransport::cut_off(Connection& connection) {
  if (connection.link == nullptr)
    return drop_unproved(connection, "closed before it had proved that it belongs to this job");
  const std::string at = connection.link->candidates[connection.link->next_candidate].text();
  attempt_failed(
      connection,
      fmt::format("what listens at {} closed the connection before the proof had ended; its log may say why", at),
      true);
}

void TcpTransport::refused(Connection& connection) {
  const ConnectionProof& proof = *connection.proof;
  if (proof.authentic()) {  // a rank of this job, of another build
    const std::string reason = "it " + proof.reason();
    log_.error("tcp: no connection with rank {}: {}", proof.peer().value(), reason);
    TcpPeer& peer = peer_of(proof.peer());
    end(connection);
    return fail(peer, reason);
  }
  if (connection.link == nullptr) return drop_unproved(connection, proof.reason());
  const std::string at = connection.link->candidates[connection.link->next_candidate].text();
  attempt_failed(connection, fmt::format("what listens at {} {}", at, proof.reason()), false);
}

void TcpTransport::drop_unproved(Connection& connection, std::string_view why) {
  std::string host = remote_text(connection.socket.get(), false);
  if (logged_hosts_.size() < most_logged_hosts && !logged_hosts_.contains(host)) {
    log_.warn("tcp: dropped a connection from {}: it {} (said once per host)",
              remote_text(connection.socket.get(), true), why);
    logged_hosts_.insert(std::move(host));
  }
  end(connection);
}

}  // namespace tandem::comm::internal
