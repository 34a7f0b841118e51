// tandem/comm/transport/tcp/tcp_transport.cpp: opening, and the paths that every packet takes: sending, polling,
// sleeping.
#include "tandem/comm/transport/tcp/tcp_transport.hpp"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "tandem/base/assert.hpp"
#include "tandem/base/fork.hpp"
#include "tandem/base/host.hpp"

namespace tandem::comm {

namespace internal {

namespace {

// Polls, of `FrameReader::enough_bytes` of each hot connection, for which the other connections wait at most.
constexpr unsigned most_polls_per_epoll = 32;
constexpr unsigned idle_polls_until_cool = 256;
constexpr int events_per_epoll = 64;
// the kernel's first receive buffer has room for it
constexpr std::size_t most_low_water_bytes = std::size_t{32} << 10;

base::Error invalid(std::string message) { return {base::ErrorCode::invalid_argument, std::move(message)}; }

bool add_to_set(int set, int fd, void* tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = tag;
  return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0;
}

Capabilities capabilities_of(const TcpOptions& options) {
  return {.max_control_bytes = TcpTransport::most_control_bytes,
          .max_payload_bytes = TcpTransport::most_payload_bytes,
          .segment_bytes = options.segment_bytes,
          .eager_bytes = options.eager_bytes,
          .rails = options.rails,
          .poll_is_costly = true,
          .latency_ns = 15'000,
          // Rather too low: a broadcast tree for slow networks costs little on a fast one, but not the other way round.
          .bytes_per_ns = 0.125,
          .message_ns = 5'000,
          // Matters where ranks on one machine use sockets, between network namespaces: includes the work of the
          // bridge.
          .copy_ns_per_byte = 1.0};
}

}  // namespace

SendStatus TcpLink::try_send(const Packet& packet) {
  if (out == nullptr || out->stage != Connection::Stage::open || out->writer.unfinished() || out->write_error != 0)
      [[unlikely]] {
    wants_writable = true;
    return SendStatus::retry;
  }
  if (out->writer.written_bytes() == 0) [[unlikely]] transport.choose_way(*this);
  if (!out->fast) transport.look_for_speed(*out);
  const bool spliced = transport.can_splice(*this, packet);
  const int socket = out->socket.get();
  const FrameWriter::Progress progress = spliced
                                             ? out->writer.write_spliced(socket, packet, splices_read, transport.pipe())
                                             : out->writer.write(socket, packet, splices_read);
  if (progress == FrameWriter::Progress::whole || progress == FrameWriter::Progress::partial) {
    splices_acknowledged = splices_read;
    if (spliced) {
      splice_cookies[splices++ % most_splices] = packet.cookie;
    }
  }
  switch (progress) {
    case FrameWriter::Progress::whole:
      transport.watch(*out);
      return spliced ? SendStatus::posted : SendStatus::done;
    case FrameWriter::Progress::partial:
      transport.block(*out);
      return spliced || out->writer.refers_to_payload() ? SendStatus::posted : SendStatus::done;
    case FrameWriter::Progress::blocked:
      transport.block(*out);
      break;
    case FrameWriter::Progress::broken:
      // What the peer sent before, perhaps its goodbye, is still unread: the reader finds the end and decides.
      out->write_error = out->writer.error();
      out->writer.abandon();
      break;
  }
  wants_writable = true;
  return SendStatus::retry;
}

TcpTransport::TcpTransport(const TcpOptions& options, PacketSink& sink)
    : options_(options), sink_(sink), log_(*options.log), capabilities_(capabilities_of(options)) {}

TcpTransport::~TcpTransport() {
  // Gives the last unfinished packets this long to leave, where this process still holds their bytes.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  for (Connection* connection : blocked_) {
    FrameWriter& writer = connection->writer;
    while (connection->stage == Stage::open && writer.unfinished() && !writer.refers_to_payload()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd wait{connection->socket.get(), POLLOUT, 0};
      if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) break;
      if (writer.resume(connection->socket.get()) == FrameWriter::Progress::broken) break;
    }
  }
  for (const auto& connection : connections_) {
    if (connection->link != nullptr && connection->link->out == connection.get()) cancel_splice(*connection->link);
  }
}

base::Result<void> TcpTransport::open() {
  base::set_spare_descriptor_aside();
  if (options_.rails == 0 || options_.rails > TcpOptions::most_rails) {
    return invalid(fmt::format("{} TCP rails: give 1 to {}", options_.rails, TcpOptions::most_rails));
  }
  if (options_.last_port != 0 && options_.last_port < options_.first_port) {
    return invalid(fmt::format("the TCP port range {} to {} is empty", options_.first_port, options_.last_port));
  }
  const auto all = local_addresses();
  if (!all) return all.error();
  auto own = select_addresses(all.value(), options_.interfaces);
  if (!own) return own.error();
  own_addresses_ = std::move(own).value();
  // For one address the listener binds to it alone, so that the port is open nowhere else; several addresses need one
  // listener for all.
  const auto has_family = [&](int family) {
    return std::any_of(own_addresses_.begin(), own_addresses_.end(),
                       [family](const LocalAddress& local) { return local.address.family() == family; });
  };
  const int family = has_family(AF_INET6) ? AF_INET6 : AF_INET;
  const SocketAddress at = own_addresses_.size() == 1 ? own_addresses_[0].address : SocketAddress::any(family, 0);
  auto listener = listen_in_range(at, options_.first_port, options_.last_port);
  if (!listener) return listener.error();
  listener_ = std::move(listener).value();
  congestion_control_ = congestion_control(listener_.get());
  if (options_.host_segment_bytes > 0) avoid_pacing(listener_.get());
  card_.port = bound_address(listener_.get()).port();
  card_.host = base::host_identity().text();
  for (const LocalAddress& local : own_addresses_) card_.addresses.push_back(local.address);
  epoll_ = base::kept_from_children(epoll_create1(EPOLL_CLOEXEC));
  timer_ = base::kept_from_children(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!epoll_ || !timer_) return io_error("cannot make an epoll set");
  if (!add_to_set(epoll_.get(), listener_.get(), &listener_) || !add_to_set(epoll_.get(), timer_.get(), &timer_)) {
    return io_error("cannot use an epoll set");
  }
  return {};
}

unsigned TcpTransport::poll(std::int64_t now_ns) {
  now_ns_ = now_ns;
  ++poll_number_;
  events_ = 0;
  if (!ended_.empty()) [[unlikely]] ended_.clear();
  if (now_ns >= next_deadline_ns_) [[unlikely]] check_deadlines();
  if (now_ns >= next_watch_ns_) [[unlikely]] check_watched();
  if (polls_awake_ < polls_until_direct) [[unlikely]] poll_awakening();
  // After a sleep the epoll set says where something is.
  const bool just_woken = polls_awake_ <= polls_after_sleep;
  if (!paused_.empty()) [[unlikely]] read_paused();
  if (!just_woken) poll_hot();
  if (!blocked_.empty()) poll_blocked();
  if (just_woken || --polls_until_epoll_ == 0) poll_epoll();
  if (!to_acknowledge_.empty()) [[unlikely]] acknowledge_splices(false);
  if (!losing_.empty()) [[unlikely]] settle_losses();
  return events_;
}

std::size_t TcpTransport::unsent_bytes() const {
  // Other connections have written nothing that is not acknowledged.
  std::size_t bytes = 0;
  const auto add = [&bytes](const Connection& connection) {
    if (connection.stage != Stage::open) return;
    int waiting = 0;  // unsent bytes in the socket; bytes that are sent and not acknowledged have left
    if (ioctl(connection.socket.get(), SIOCOUTQNSD, &waiting) == 0) bytes += static_cast<std::size_t>(waiting);
    bytes += connection.writer.unfinished_bytes();
  };
  for (const Connection* connection : watched_) add(*connection);
  for (const Connection* connection : blocked_) {
    if (!connection->watched) add(*connection);
  }
  return bytes;
}

void TcpTransport::poll_awakening() {
  if (++polls_awake_ < polls_until_direct) return;
  for (std::size_t i = 0; i < hot_count_; ++i) update_events(*hot_[i]);
}

void TcpTransport::poll_hot() {
  // From the last one down: a connection that leaves the list is replaced by one that was already read.
  for (std::size_t i = hot_count_; i-- > 0;) {
    Connection& connection = *hot_[i];
    if (receive(connection)) {
      connection.idle_polls = 0;
    } else if (++connection.idle_polls > idle_polls_until_cool && hot_count_ > 1 && connection.hot) {
      cool(connection);
    }
  }
}

// Reads connections that stopped before a packet whose header acknowledges a splice.
void TcpTransport::read_paused() {
  while (!paused_.empty()) {
    Connection& connection = *paused_.back();
    paused_.pop_back();
    (void)receive(connection);
  }
}

void TcpTransport::poll_blocked() {
  for (std::size_t i = blocked_.size(); i-- > 0;) {
    if (i < blocked_.size() && (blocked_[i]->epoll_events & EPOLLOUT) == 0) resume(*blocked_[i]);
  }
}

void TcpTransport::poll_epoll() {
  std::array<epoll_event, events_per_epoll> events;
  const int count = epoll_wait(epoll_.get(), events.data(), events_per_epoll, 0);
  bool elsewhere = false;  // something happened outside the hot connections
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.ptr == &listener_) {
      accept_some();
      elsewhere = true;
    } else if (event.data.ptr == &timer_) {
      std::uint64_t expirations = 0;
      (void)!::read(timer_.get(), &expirations, sizeof expirations);
      timer_set_for_ns_ = never;
    } else {
      Connection& connection = *static_cast<Connection*>(event.data.ptr);
      elsewhere |= !connection.hot;
      dispatch(connection, event.events);
    }
  }
  polls_per_epoll_ = elsewhere || hot_count_ == 0 ? 1 : std::min(2 * polls_per_epoll_, most_polls_per_epoll);
  polls_until_epoll_ = polls_per_epoll_;
}

void TcpTransport::dispatch(Connection& connection, std::uint32_t events) {
  switch (connection.stage) {
    case Stage::pausing:
    case Stage::ended: return;
    case Stage::connecting: return continue_connecting(connection);
    case Stage::proving: return continue_proof(connection);
    case Stage::open: break;
  }
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && receive(connection)) heat(connection);
  if ((events & EPOLLOUT) != 0 && connection.stage == Stage::open) resume(connection);
}

// Reads a connection. Returns whether anything was there.
bool TcpTransport::receive(Connection& connection) {
  const unsigned before = events_;
  FrameReader& reader = connection.reader;
  if (reader.paused() && connection.paused_at_poll == poll_number_) [[unlikely]] return true;
  const bool inside = reader.inside_packet();
  const std::uint32_t read_before = reader.splices_read();
  const std::uint32_t peer_read_before = reader.peer_splices_read();
  if (!reader.begun() && connection.link->in != nullptr) [[unlikely]] reader.bar();
  const FrameReader::Outcome outcome = reader.read(connection.socket.get(), area_, *connection.link, sink_, events_);
  if (reader.begun()) connection.link->in = &connection;
  if (reader.paused()) {
    connection.paused_at_poll = poll_number_;
    paused_.push_back(&connection);
  }
  if (!note_splices(connection, read_before, peer_read_before)) return true;
  switch (outcome) {
    case FrameReader::Outcome::drained: return events_ != before || connection.reader.inside_packet() != inside;
    case FrameReader::Outcome::more: return true;
    case FrameReader::Outcome::ended:
      lost(connection, connection.reader.inside_packet() ? "its connection ended in the middle of a packet"
                       : connection.write_error != 0     ? error_text(connection.write_error)
                                                         : "its connection ended without a goodbye");
      return true;
    case FrameReader::Outcome::broken:
      lost(connection, error_text(connection.write_error != 0 ? connection.write_error : connection.reader.error()));
      return true;
    case FrameReader::Outcome::malformed:
      fail(connection.link->owner_peer, fmt::format("it sent malformed bytes: {}", connection.reader.reason()));
      return true;
  }
  return false;
}

void TcpTransport::resume(Connection& connection) {
  FrameWriter& writer = connection.writer;
  if (writer.unfinished()) {
    const FrameWriter::Progress progress = writer.resume(connection.socket.get());
    if (progress == FrameWriter::Progress::broken) {
      connection.write_error = writer.error();
      writer.abandon();
      return unblock(connection);  // reading finds the end
    }
    if (progress != FrameWriter::Progress::whole) return;
    watch(connection);
  } else {
    pollfd state{connection.socket.get(), POLLOUT, 0};
    if (::poll(&state, 1, 0) <= 0) return;
  }
  unblock(connection);
  judge_speed(connection);
  TcpLink& link = *connection.link;
  if (writer.refers_to_payload()) {
    writer.release_payload();
    ++events_;
    sink_.sent(link, writer.cookie());
  }
  if (link.wants_writable && link.out == &connection) {
    link.wants_writable = false;
    ++events_;
    sink_.writable(link);
  }
}

// Chooses the connection to send on. When both sides use one connection, it needs fewer empty acknowledgements, each of
// which costs as much as a packet. When both sides have opened one, the first to write decides; when neither has
// written, the lower rank's connection counts. So the packets of one direction never overtake each other.
void TcpTransport::choose_way(TcpLink& link) const {
  const Connection* const theirs = link.theirs;
  if (link.out != link.ours || theirs == nullptr || theirs->stage != Stage::open) return;
  if (theirs->reader.begun() || link.peer() < options_.self.rank) link.out = link.theirs;
}

void TcpTransport::heat(Connection& connection) {
  if (connection.hot || hot_count_ == most_hot || connection.stage != Stage::open) return;
  connection.hot = true;
  connection.idle_polls = 0;
  hot_[hot_count_++] = &connection;
  update_events(connection);
}

void TcpTransport::cool(Connection& connection) {
  if (!connection.hot) return;
  connection.hot = false;
  *std::find(hot_.begin(), hot_.begin() + static_cast<std::ptrdiff_t>(hot_count_), &connection) = hot_[hot_count_ - 1];
  --hot_count_;
  update_events(connection);
  set_low_water(connection, 0);
}

// Inside a payload there is nothing to report before its end, so a sleeper is woken for many bytes at once. While the
// transport is polled, the mark may exceed what is still expected: only hot connections, which are read directly, have
// one.
void TcpTransport::set_low_water(Connection& connection, std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (connection.low_water_bytes == bytes || !connection.socket) return;
  connection.low_water_bytes = bytes;
  set_receive_low_water(connection.socket.get(), bytes);
}

void TcpTransport::watch(Connection& connection) {
  if (connection.watched) return;
  connection.watched = true;
  watched_.push_back(&connection);
  if (next_watch_ns_ != never) return;
  next_watch_ns_ = now_ns_ + watch_interval_ns;
  if (armed_) set_timer();
}

void TcpTransport::block(Connection& connection) {
  watch(connection);
  if (connection.blocked) return;
  connection.blocked = true;
  connection.blocked_at_ns = now_ns_;
  blocked_.push_back(&connection);
  update_events(connection);
}

void TcpTransport::unblock(Connection& connection) {
  if (!connection.blocked) return;
  connection.blocked = false;
  connection.blocked_ns += now_ns_ - connection.blocked_at_ns;
  *std::find(blocked_.begin(), blocked_.end(), &connection) = blocked_.back();
  blocked_.pop_back();
  update_events(connection);
}

// Updates what the epoll set watches of an open connection, according to the lists that it is in.
void TcpTransport::update_events(Connection& connection) {
  if (connection.stage != Stage::open) return;
  const bool direct = connection.hot && polls_awake_ == polls_until_direct;
  const bool watch_writing = connection.blocked && (armed_ || blocked_.size() > most_directly_blocked ||
                                                    (connection.epoll_events & EPOLLOUT) != 0);
  watch_events(connection, (direct ? 0U : EPOLLIN) | (watch_writing ? EPOLLOUT : 0U));
}

void TcpTransport::watch_events(Connection& connection, std::uint32_t events) {
  if (connection.epoll_events == events || !connection.socket) return;
  epoll_event event{};
  event.events = events;
  event.data.ptr = &connection;
  const int operation = connection.epoll_events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  TANDEM_ASSERT(epoll_ctl(epoll_.get(), operation, connection.socket.get(), &event) == 0);
  connection.epoll_events = events;
}

bool TcpTransport::arm() {
  if (!paused_.empty()) return false;
  armed_ = true;
  polls_per_epoll_ = polls_until_epoll_ = 1;
  polls_awake_ = 0;
  acknowledge_splices(true);
  for (Connection* connection : blocked_) update_events(*connection);
  for (std::size_t i = 0; i < hot_count_; ++i) {
    update_events(*hot_[i]);
    set_low_water(*hot_[i], std::min(hot_[i]->reader.payload_left(), most_low_water_bytes));
  }
  set_timer();
  return true;
}

void TcpTransport::note_deadline(std::int64_t deadline_ns) {
  if (deadline_ns >= next_deadline_ns_) return;
  next_deadline_ns_ = deadline_ns;
  if (armed_) set_timer();
}

void TcpTransport::set_timer() {
  const std::int64_t target = std::min(next_deadline_ns_, next_watch_ns_);
  if (target == timer_set_for_ns_) return;
  timer_set_for_ns_ = target;
  itimerspec timer{};
  if (target != never) {
    const std::int64_t wait_ns = target <= now_ns_ ? 1 : target - now_ns_;  // zero would switch the timer off
    timer.it_value = {.tv_sec = wait_ns / 1'000'000'000, .tv_nsec = wait_ns % 1'000'000'000};
  }
  (void)timerfd_settime(timer_.get(), 0, &timer, nullptr);
}

}  // namespace internal

base::Result<std::unique_ptr<Transport>> make_tcp_transport(const TcpOptions& options, PacketSink& sink) {
  TANDEM_ASSERT(options.log != nullptr && options.self.rank.value() < options.self.size);
  auto transport = std::make_unique<internal::TcpTransport>(options, sink);
  const auto opened = transport->open();
  if (!opened) return opened.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace tandem::comm
