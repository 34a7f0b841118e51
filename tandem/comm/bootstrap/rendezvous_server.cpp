// tandem/comm/bootstrap/rendezvous_server.cpp: one epoll set, one small state machine per connection.
#include "tandem/comm/bootstrap/rendezvous_server.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>

#include <fmt/core.h>

#include "tandem/base/assert.hpp"
#include "tandem/base/fork.hpp"
#include "tandem/base/shortage.hpp"
#include "tandem/comm/bootstrap/card.hpp"
#include "tandem/comm/bootstrap/proof.hpp"

namespace tandem::comm {

using base::Error;
using base::ErrorCode;
using base::Result;
using internal::ByteReader;
using internal::ByteWriter;
using base::FileDescriptor;
using internal::Frame;
namespace rendezvous = internal::rendezvous;

namespace {

constexpr unsigned most_complaints = 100;              // so that connections without a proof cannot fill the log
constexpr std::size_t unproved_beyond_size = 64;
constexpr std::size_t most_output_bytes = 64u << 20;   // to a member that asks and never reads
constexpr std::int64_t stranger_after_ns = 2'000'000'000;  // a rank proves at once; longer silence makes room

}  // namespace

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::listen(RendezvousOptions options, base::Log& log) {
  std::unique_ptr<RendezvousServer> server(new RendezvousServer(std::move(options), log));
  if (auto opened = server->open(); !opened) return opened.error();
  return server;
}

RendezvousServer::~RendezvousServer() = default;

Result<void> RendezvousServer::open() {
  base::raise_descriptor_limit();  // one for each rank
  base::set_spare_descriptor_aside();
  auto listener = internal::listen_at({options_.host, options_.port});
  if (!listener) {
    const std::string origin =
        options_.port_origin.empty() ? "" : fmt::format(" ({} chose the port)", options_.port_origin);
    return Error{listener.error().code, listener.error().message + origin};
  }
  listener_ = std::move(listener).value();
  epoll_ = base::kept_from_children(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener_.socket.get();
  if (!epoll_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event.data.fd, &event) != 0)
    return Error{ErrorCode::io,
                 fmt::format("the rendezvous server has no epoll set: {}", base::system_error_text(errno))};
  return {};
}

std::int64_t RendezvousServer::serve(std::int64_t now_ns) {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < count; ++i) {
    const int socket = events[i].data.fd;
    if (socket == listener_.socket.get()) {
      accept_all(now_ns);
      continue;
    }
    // An earlier event of this round may have dropped it.
    if ((events[i].events & EPOLLOUT) != 0)
      if (const auto found = connections_.find(socket); found != connections_.end()) write_to(*found->second);
    if ((events[i].events & ~std::uint32_t(EPOLLOUT)) != 0) read_from(socket);
  }
  drop_late(now_ns);
  if (count == 64) return now_ns;
  return unproved_.empty() ? std::numeric_limits<std::int64_t>::max() : unproved_.begin()->first;
}

void RendezvousServer::drop_late(std::int64_t now_ns) {
  while (!unproved_.empty() && unproved_.begin()->first <= now_ns) {
    const int socket = unproved_.begin()->second;
    complain(*connections_.at(socket), "it did not prove the job's secret in time");
    drop(socket);
  }
}

void RendezvousServer::accept_all(std::int64_t now_ns) {
  for (;;) {
    auto socket =
        base::kept_from_children(accept4(listener_.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EMFILE || errno == ENFILE) refuse_for_want_of_descriptors(errno, now_ns);
      return;
    }
    internal::notice_dead_host(socket.get());
    if (unproved_.size() >= options_.size + unproved_beyond_size) make_room(now_ns);
    const int number = socket.get();
    auto connection = std::make_unique<Connection>(std::move(socket));
    connection->name = internal::peer_name(number);
    connection->prove_until_ns = now_ns + options_.proof_timeout_ns;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = number;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, number, &event) != 0) continue;
    unproved_.emplace(connection->prove_until_ns, number);
    connections_[number] = std::move(connection);
  }
}

/// The next connection waits in the kernel's queue, and would wait for ever. If no silent stranger can make room, it is
/// accepted with the spare descriptor and gets the reason, so that the job ends with an error that names it.
void RendezvousServer::refuse_for_want_of_descriptors(int reason, std::int64_t now_ns) {
  if (make_room(now_ns - stranger_after_ns)) return;  // the next round accepts
  base::with_spare_descriptor([&] {
    const FileDescriptor socket(accept4(listener_.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    const std::string why = fmt::format("the rendezvous server has no file descriptor for one more of {} ranks: {}",
                                        options_.size, base::system_error_text(reason));
    const std::string body = ByteWriter().text(why.substr(0, rendezvous::most_reason_bytes)).take();
    const std::string bytes = internal::frame_bytes(static_cast<std::uint8_t>(Kind::refusal), body);
    char greeting[rendezvous::most_unproved_bytes];
    (void)!recv(socket.get(), greeting, sizeof greeting, 0);  // unread bytes would turn the end into a reset
    (void)!::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (++complaints_ <= most_complaints) log_.error("{}", why);
  });
}

/// Drops the connection that has been unproved for longest, if it has been since that time.
bool RendezvousServer::make_room(std::int64_t silent_since_ns) {
  if (unproved_.empty() || unproved_.begin()->first - options_.proof_timeout_ns > silent_since_ns) return false;
  const int oldest = unproved_.begin()->second;
  complain(*connections_.at(oldest), "too many connections have not proved the job's secret");
  drop(oldest);
  return true;
}

void RendezvousServer::read_from(int socket) {
  const auto found = connections_.find(socket);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  char buffer[16384];
  const ssize_t count = recv(socket, buffer, sizeof buffer, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    if (connection.state != State::member && !connection.closing)
      complain(connection, "it closed without proving the job's secret");
    return drop(socket);
  }
  if (connection.closing) return;  // refused: its bytes are ignored
  connection.input.add({buffer, static_cast<std::size_t>(count)});
  Frame frame;
  while (!connection.closing && connection.input.next(frame))
    if (const std::string objection = handle(connection, frame); !objection.empty()) {
      complain(connection, objection);
      refuse(connection, objection);
    }
  if (connection.input.malformed() && !connection.closing) {
    complain(connection, "what it sent does not follow the format");
    connection.closing = true;
  }
  if (connection.output.size() > most_output_bytes || (connection.closing && connection.output.empty()))
    return drop(socket);
  write_to(connection);
}

/// Why the connection has to end; empty when all is well.
std::string RendezvousServer::handle(Connection& connection, const Frame& frame) {
  const auto kind = static_cast<Kind>(frame.kind);
  if (connection.state == State::greeting && kind == Kind::hello) return greet(connection, frame.body);
  if (connection.state == State::proving && kind == Kind::proof) return welcome(connection, frame.body);
  if (connection.state == State::member && kind == Kind::publish) return publish(connection, frame.body);
  if (connection.state == State::member && kind == Kind::lookup) return look_up(connection, frame.body);
  if (connection.state == State::member && kind == Kind::who) return list_missing(connection);
  return fmt::format("a message of kind {} is out of place", frame.kind);
}

std::string RendezvousServer::greet(Connection& connection, const std::string& body) {
  const auto hello = rendezvous::Hello::decode(body);
  if (!hello) return hello.error().message;
  if (hello.value().rendezvous_version != rendezvous::version) {
    return fmt::format("a rank of {} cannot join a job that was started by {}: start one build everywhere",
                       rendezvous::describe(hello.value().tandem_version, hello.value().rendezvous_version),
                       rendezvous::describe(rendezvous::own_version(), rendezvous::version));
  }
  if (hello.value().size != options_.size || hello.value().rank >= options_.size) {
    return fmt::format("rank {} of {} does not belong to a job of {} ranks", hello.value().rank, hello.value().size,
                       options_.size);
  }
  connection.rank = hello.value().rank;
  connection.hello = body;
  connection.challenge = ByteWriter().u32(rendezvous::version).text(rendezvous::own_version())
                             .raw(internal::text_of(internal::fresh_nonce())).take();
  connection.state = State::proving;
  send(connection, Kind::challenge, connection.challenge);
  return {};
}

std::string RendezvousServer::welcome(Connection& connection, const std::string& proof) {
  if (!internal::proves(options_.secret, rendezvous::rank_purpose, {connection.hello, connection.challenge}, proof))
    return "its proof of the job's secret is wrong: it does not belong to this job";
  if (is_taken(connection.rank)) {
    return fmt::format(
        "rank {} has joined already: two processes say that they are this rank (a program started by a rank must "
        "not join the job while that rank is a member)",
        connection.rank);
  }
  connection.generation = roll_.join(connection.rank);
  connection.state = State::member;
  unproved_.erase({connection.prove_until_ns, connection.socket.get()});
  connection.input.set_limit(rendezvous::most_proved_bytes);
  members_[connection.rank] = connection.socket.get();
  forget_old_generations();
  const std::string membership = rendezvous::Membership{options_.job_id, connection.generation}.encode();
  const auto answer = internal::prove(options_.secret, rendezvous::server_purpose,
                                      {connection.hello, connection.challenge, membership});
  send(connection, Kind::welcome, ByteWriter().raw(internal::text_of(answer)).raw(membership).take());
  return {};
}

/// Whether the rank is still a member. Its former program may have closed the connection, which this server has not
/// noticed yet.
bool RendezvousServer::is_taken(std::uint32_t rank) {
  const auto member = members_.find(rank);
  if (member == members_.end()) return false;
  char byte;
  const ssize_t count = recv(member->second, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) return true;
  drop(member->second);
  return false;
}

std::string RendezvousServer::publish(Connection& connection, const std::string& body) {
  ByteReader reader(body);
  const std::uint8_t kind = reader.u8();
  const std::string bytes(reader.rest());
  if (!reader.ok() || kind >= internal::entry_kinds) return fmt::format("it published an entry of kind {}", kind);
  const Key key{connection.rank, static_cast<internal::Entry>(kind)};
  Generation& generation = generations_[connection.generation];
  if (bytes.size() > internal::most_card_bytes || !generation.entries.emplace(key, bytes).second)
    return fmt::format("rank {} published a second card, or one of {} bytes", connection.rank, bytes.size());
  if (key.second == internal::Entry::card) roll_.publish(connection.rank, connection.generation);
  const auto waiting = generation.waiting.extract(key);
  if (waiting.empty()) return {};
  for (const int socket : waiting.mapped())
    if (const auto found = connections_.find(socket); found != connections_.end() && &*found->second != &connection) {
      send_entry(*found->second, key, bytes);
      write_to(*found->second);
    }
  return {};
}

std::string RendezvousServer::look_up(Connection& connection, const std::string& body) {
  ByteReader reader(body);
  const std::uint8_t kind = reader.u8();
  const std::uint32_t rank = reader.u32();
  if (!reader.finished() || rank >= options_.size || kind >= internal::entry_kinds)
    return "it asked for a rank or an entry that does not exist";
  const Key key{rank, static_cast<internal::Entry>(kind)};
  Generation& generation = generations_[connection.generation];
  if (const auto found = generation.entries.find(key); found != generation.entries.end()) {
    send_entry(connection, key, found->second);
  } else if (const std::string* const reason = roll_.reason_of_end(rank); reason != nullptr) {
    send(connection, Kind::absent, ByteWriter().u32(rank).text(*reason).take());
  } else {
    generation.waiting[key].insert(connection.socket.get());
    connection.asked.insert(key);
  }
  return {};
}

std::string RendezvousServer::list_missing(Connection& connection) {
  const Generation& generation = generations_[connection.generation];
  ByteWriter ranks;
  std::uint32_t count = 0;
  for (std::uint32_t rank = 0; rank < options_.size && count < rendezvous::most_missing; ++rank) {
    if (generation.entries.contains({rank, internal::Entry::card})) continue;
    ranks.u32(rank);
    ++count;
  }
  send(connection, Kind::missing, ranks.take());
  return {};
}

void RendezvousServer::rank_ended(Rank rank, const std::string& reason) {
  const std::string shown = reason.substr(0, rendezvous::most_reason_bytes);
  roll_.end(rank.value(), shown);
  for (auto& [number, generation] : generations_) {
    for (std::uint8_t kind = 0; kind < internal::entry_kinds; ++kind) {
      const auto waiting = generation.waiting.extract({rank.value(), static_cast<internal::Entry>(kind)});
      if (waiting.empty()) continue;
      for (const int socket : waiting.mapped())
        if (const auto found = connections_.find(socket); found != connections_.end()) {
          send(*found->second, Kind::absent, ByteWriter().u32(rank.value()).text(shown).take());
          write_to(*found->second);
        }
    }
  }
}

std::optional<Rank> RendezvousServer::never_came() const {
  const auto rank = roll_.never_came();
  return rank ? std::optional(Rank(*rank)) : std::nullopt;
}

void RendezvousServer::hand_over() {
  // Each connection gets its next entries when the ones before have left: all entries for all ranks at once would take
  // memory that grows with the square of the ranks.
  constexpr std::size_t most_unsent_bytes = std::size_t{64} << 10;
  std::map<int, Key> next;  // by socket
  const auto send_more = [&](int socket, Connection& connection) {
    const auto& entries = generations_[connection.generation].entries;
    auto entry = entries.lower_bound(next[socket]);
    for (; entry != entries.end() && connection.output.size() < most_unsent_bytes; ++entry)
      if (!connection.sent.contains(entry->first) && entry->first.first != connection.rank)
        send(connection, Kind::published,
             published(entry->first, entry->second));  // not noted: `next` goes on behind it
    next[socket] = entry != entries.end() ? entry->first : Key{options_.size, {}};
    write_to(connection);
    return connection.output.empty() && entry != entries.end();
  };
  for (auto& [socket, connection] : connections_)
    while (connection->state == State::member && send_more(socket, *connection)) {
    }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (;;) {
    std::vector<pollfd> unsent;
    for (auto& [socket, connection] : connections_)
      if (connection->state == State::member && !connection->output.empty()) unsent.push_back({socket, POLLOUT, 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (unsent.empty() || left <= 0) return;
    if (poll(unsent.data(), unsent.size(), static_cast<int>(left)) <= 0) continue;
    for (const pollfd& ready : unsent)
      while (ready.revents != 0 && send_more(ready.fd, *connections_.at(ready.fd))) {
      }
  }
}

void RendezvousServer::refuse(Connection& connection, const std::string& reason) {
  connection.closing = true;
  send(connection, Kind::refusal, ByteWriter().text(reason.substr(0, rendezvous::most_reason_bytes)).take());
}

void RendezvousServer::send(Connection& connection, Kind kind, std::string_view body) {
  connection.output += internal::frame_bytes(static_cast<std::uint8_t>(kind), body);
}

std::string RendezvousServer::published(const Key& key, const std::string& bytes) {
  return ByteWriter().u8(std::uint8_t(key.second)).u32(key.first).raw(bytes).take();
}

void RendezvousServer::send_entry(Connection& connection, const Key& key, const std::string& bytes) {
  connection.sent.insert(key);
  send(connection, Kind::published, published(key, bytes));
}

/// Sends what the socket takes, and watches for when it takes more. It never removes the connection, since callers
/// iterate over them: a failed one is shut down, and the next round reads its end.
void RendezvousServer::write_to(Connection& connection) {
  const int socket = connection.socket.get();
  while (!connection.output.empty()) {
    const ssize_t count = ::send(socket, connection.output.data(), connection.output.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) {
      connection.output.clear();
      connection.closing = true;
    }
    if (count < 0) break;
    connection.output.erase(0, static_cast<std::size_t>(count));
  }
  if (connection.closing && connection.output.empty()) shutdown(socket, SHUT_RDWR);
  const bool waits = !connection.output.empty();
  if (waits == connection.waits_to_write) return;
  connection.waits_to_write = waits;
  epoll_event event{};
  event.events = EPOLLIN | (waits ? std::uint32_t(EPOLLOUT) : 0u);
  event.data.fd = socket;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event);
}

void RendezvousServer::drop(int socket) {
  const auto found = connections_.find(socket);
  if (found == connections_.end()) return;
  const Connection& connection = *found->second;
  if (connection.state == State::member) {
    if (const auto member = members_.find(connection.rank); member != members_.end() && member->second == socket)
      members_.erase(member);
    roll_.leave(connection.rank, connection.generation);
    stop_waiting(connection);
  } else {
    unproved_.erase({connection.prove_until_ns, socket});
  }
  // A forked child may hold the socket open: closing alone would leave it in the set.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
  connections_.erase(found);
}

void RendezvousServer::stop_waiting(const Connection& connection) {
  const auto generation = generations_.find(connection.generation);
  if (generation == generations_.end()) return;
  auto& waiting = generation->second.waiting;
  for (const Key& key : connection.asked)
    if (const auto sockets = waiting.find(key); sockets != waiting.end())
      sockets->second.erase(connection.socket.get());
}

void RendezvousServer::complain(const Connection& connection, std::string_view reason) {
  if (++complaints_ > most_complaints) return;
  log_.warn("the connection from {} to the job's rendezvous is dropped: {}{}", connection.name, reason,
            complaints_ == most_complaints ? " (further ones are not reported)" : "");
}

/// Forgets the generations that every rank has left behind: no rank asks for them.
void RendezvousServer::forget_old_generations() {
  const std::uint32_t oldest = roll_.oldest_generation();
  generations_.erase(generations_.begin(), generations_.lower_bound(oldest));
  roll_.forget_before(oldest);
}

}  // namespace tandem::comm
