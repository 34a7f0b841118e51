// tandem/comm/transport/tcp/tcp_transport.cpp: opening, and the paths that every packet takes: sending, polling, sleeping.
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
#include "tandem/base/host.hpp"

namespace tandem::comm {

namespace internal {

namespace {

constexpr unsigned most_polls_per_epoll =
    32;  // of `FrameReader::enough_bytes` at most for each of the hot: so long others may wait
constexpr unsigned idle_polls_until_cool = 256;
constexpr int events_per_epoll = 64;
constexpr std::uint64_t judged_bytes = std::uint64_t{256} << 10;  // more than what a rate limiter lets through at once
constexpr std::uint64_t one_unit_bytes = std::uint64_t{64} << 10;  // the kernel takes what it has begun, over its bound
constexpr std::uint64_t carried_bytes = std::uint64_t{128} << 10;  // twice what a rate limiter is likely to let through at once
constexpr double held_ns = 1'000'000;  // of the network's time are in the send buffer of a connection that is not fast
constexpr std::uint64_t fast_ns_per_byte = 4;                      // see `TcpOptions::first_send_buffer_bytes`
constexpr std::size_t most_low_water_bytes = std::size_t{32} << 10;  // the kernel's first receive buffer has room for it
constexpr std::int64_t watch_interval_ns = 1'000'000'000;

base::Error io_error(std::string_view what) {
  return {base::ErrorCode::io, fmt::format("{}: {}", what, error_text(errno))};
}

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
          // A tree made for a slow network costs little on a fast one; the other way round it costs everything.
          .bytes_per_ns = 0.125,
          .message_ns = 5'000,
          // Counts where ranks share a machine and yet use sockets: between namespaces, so with the work of the bridge.
          .copy_ns_per_byte = 1.0};
}

}  // namespace

SendStatus TcpLink::try_send(const Packet& packet) {
  if (out == nullptr || out->stage != Connection::Stage::open || out->writer.unfinished() || out->write_error != 0) [[unlikely]] {
    wants_writable = true;
    return SendStatus::retry;
  }
  if (out->writer.written_bytes() == 0) [[unlikely]] transport.choose_way(*this);
  if (!out->fast) transport.look_for_speed(*out);
  const bool lends = transport.can_lend(*this, packet);
  const FrameWriter::Progress progress = lends ? out->writer.lend(out->socket.get(), packet, loans_read, transport.pipe())
                                               : out->writer.write(out->socket.get(), packet, loans_read);
  if (progress == FrameWriter::Progress::whole || progress == FrameWriter::Progress::partial) {
    loans_read_told = loans_read;
    if (lends) {
      ++loans;
      lending = true;
      loan_cookie = packet.cookie;
    }
  }
  switch (progress) {
    case FrameWriter::Progress::whole:
      transport.watch(*out);
      return lends ? SendStatus::posted : SendStatus::done;
    case FrameWriter::Progress::partial:
      transport.block(*out);
      return lends || out->writer.owes() ? SendStatus::posted : SendStatus::done;
    case FrameWriter::Progress::blocked:
      transport.block(*out);
      break;
    case FrameWriter::Progress::broken:
      // What the peer said before is still to be read, perhaps its goodbye: reading finds the end, and decides.
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
  // The rest of a last word, when we hold its bytes ourselves, has this long to go out.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  for (Connection* connection : blocked_) {
    FrameWriter& writer = connection->writer;
    while (connection->stage == Stage::open && writer.unfinished() && !writer.owes()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd wait{connection->socket.get(), POLLOUT, 0};
      if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) break;
      if (writer.resume(connection->socket.get()) == FrameWriter::Progress::broken) break;
    }
  }
  for (const auto& connection : connections_) {
    if (connection->link != nullptr && connection->link->out == connection.get()) take_loan_back(*connection->link);
  }
}

base::Result<void> TcpTransport::open() {
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
  // One address can be bound to itself, so that nothing else of the host is open; several need one listener for all.
  const auto has_family = [&](int family) {
    return std::any_of(own_addresses_.begin(), own_addresses_.end(),
                       [family](const LocalAddress& local) { return local.address.family() == family; });
  };
  const int family = has_family(AF_INET6) ? AF_INET6 : AF_INET;
  const SocketAddress at = own_addresses_.size() == 1 ? own_addresses_[0].address : SocketAddress::any(family, 0);
  auto listener = listen_in_range(at, options_.first_port, options_.last_port);
  if (!listener) return listener.error();
  listener_ = std::move(listener).value();
  card_.port = bound_address(listener_.get()).port();
  card_.host = base::host_identity().text();
  for (const LocalAddress& local : own_addresses_) card_.addresses.push_back(local.address);
  epoll_ = base::FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  timer_ = base::FileDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
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
  // Who has just slept was woken by the set, which says where something is.
  const bool just_woken = polls_awake_ <= polls_after_sleep;
  if (!paused_.empty()) [[unlikely]] read_paused();
  if (!just_woken) poll_hot();
  if (!blocked_.empty()) poll_blocked();
  if (just_woken || --polls_until_epoll_ == 0) poll_epoll();
  if (!owing_words_.empty()) [[unlikely]] tell_of_loans(false);
  if (!losing_.empty()) [[unlikely]] settle_losses();
  return events_;
}

std::size_t TcpTransport::unsent_bytes() const {
  std::size_t bytes = 0;
  for (const auto& connection : connections_) {
    if (connection->stage != Stage::open) continue;
    int waiting = 0;  // in the socket: what is acknowledged late has left nevertheless
    if (ioctl(connection->socket.get(), SIOCOUTQNSD, &waiting) == 0) bytes += static_cast<std::size_t>(waiting);
    bytes += connection->writer.unfinished_bytes();
  }
  return bytes;
}

void TcpTransport::poll_awakening() {
  if (++polls_awake_ < polls_until_direct) return;
  for (std::size_t i = 0; i < hot_count_; ++i) update_events(*hot_[i]);
}

void TcpTransport::poll_hot() {
  // From the last one down: whoever leaves the list is replaced by one that has had its turn.
  for (std::size_t i = hot_count_; i-- > 0;) {
    Connection& connection = *hot_[i];
    if (receive(connection)) {
      connection.idle_polls = 0;
    } else if (++connection.idle_polls > idle_polls_until_cool && hot_count_ > 1 && connection.hot) {
      cool(connection);
    }
  }
}

// Where a loan came back, and more lies behind.
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
  bool elsewhere = false;  // something happened where nobody looks directly
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

// Whether anything was there.
bool TcpTransport::receive(Connection& connection) {
  const unsigned before = events_;
  FrameReader& reader = connection.reader;
  if (reader.paused() && connection.paused_at_poll == poll_number_) [[unlikely]] return true;
  const bool inside = reader.inside_packet();
  const std::uint32_t read_before = reader.loans_read();
  const std::uint32_t peer_read_before = reader.peer_loans_read();
  const FrameReader::Outcome outcome = reader.read(connection.socket.get(), area_, *connection.link, sink_, events_);
  if (reader.paused()) {
    connection.paused_at_poll = poll_number_;
    paused_.push_back(&connection);
  }
  if (!note_loans(connection, read_before, peer_read_before)) return true;
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

// What a read has brought about loans. False: it was impossible, and the peer has failed.
bool TcpTransport::note_loans(Connection& connection, std::uint32_t read_before, std::uint32_t peer_read_before) {
  TcpLink& link = *connection.link;
  if (connection.reader.loans_read() != read_before) {
    link.loans_read += connection.reader.loans_read() - read_before;
    link.loan_read_at_poll = poll_number_;
    if (!std::exchange(link.owes_word, true)) owing_words_.push_back(&link);
  }
  if (connection.reader.peer_loans_read() == peer_read_before) return true;
  const bool all_lent = link.lending && link.out != nullptr && !link.out->writer.lends();
  if (!all_lent || connection.reader.peer_loans_read() != link.loans) {
    fail(link.owner_peer, "it sent malformed bytes: it says that it has read what was not lent");
    return false;
  }
  link.lending = false;
  ++events_;
  sink_.sent(link, link.loan_cookie);
  return true;
}

bool TcpTransport::can_lend(const TcpLink& link, const Packet& packet) {
  return packet.payload_bytes >= options_.least_lent_bytes && link.out->fast && !link.lending &&
         packet.payload.size() <= LendingPipe::most_pieces && pipe_.open_to(&link.out->writer);
}

// Those to whom something was sent since were told by the way. A loan that this poll has read waits for the next, since its
// message may be answered meanwhile; who is about to sleep does not wait.
void TcpTransport::tell_of_loans(bool before_sleep) {
  std::erase_if(owing_words_, [&](TcpLink* link) {
    const bool waits = link->loan_read_at_poll == poll_number_ && !before_sleep;
    const bool settled = link->loans_read_told == link->loans_read || link->owner_peer.state == TcpPeer::State::gone;
    if (!settled && (waits || !tell_of_loans(*link))) return false;
    link->owes_word = false;
    return true;
  });
}

// False: not now. What the connection waits for leads to another poll.
bool TcpTransport::tell_of_loans(TcpLink& link) {
  if (link.out == nullptr || link.out->stage != Stage::open || link.out->writer.unfinished()) return false;
  if (link.out->writer.written_bytes() == 0) choose_way(link);
  Connection& out = *link.out;
  if (out.write_error != 0) return true;  // the peer learns nothing any more
  switch (out.writer.write_header(out.socket.get(), link.loans_read)) {
    case FrameWriter::Progress::whole: watch(out); break;
    case FrameWriter::Progress::partial: block(out); break;
    case FrameWriter::Progress::blocked: block(out); return false;
    case FrameWriter::Progress::broken: out.write_error = out.writer.error(); break;  // reading finds the end
  }
  link.loans_read_told = link.loans_read;
  return true;
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
  if (writer.owes()) {
    writer.settle();
    ++events_;
    sink_.sent(link, writer.cookie());
  }
  if (link.wants_writable && link.out == &connection) {
    link.wants_writable = false;
    ++events_;
    sink_.writable(link);
  }
}

// While a connection waits to write, the kernel sends, and what it takes at once afterwards is what it has sent meanwhile. What
// it takes without any waiting (its buffer, the first time) makes the network look faster than it is, by less than a factor of
// two.
void TcpTransport::judge_speed(Connection& connection) {
  const std::uint64_t bytes = connection.writer.written_bytes() - connection.judged_at_bytes;
  if (bytes < judged_bytes) return;
  judged(connection, fast_ns_per_byte * bytes >= static_cast<std::uint64_t>(connection.blocked_ns));
}

// In the midst of many bytes, so that what a rate limiter lets through at once has gone, and round trips show what waits behind
// it. The kernels' rate may be that of such a burst, hence not more than what they hold at least, in a round trip. For
// connections that are not fast.
void TcpTransport::note_carriage(Connection& connection) {
  connection.carried_at_bytes = connection.writer.written_bytes();
  const Carriage carriage = carriage_of(connection.socket.get());
  const double round_trip = static_cast<double>(std::max<std::int64_t>(carriage.round_trip_ns, 1));
  const double rate = std::min(carriage.bytes_per_ns, static_cast<double>(options_.first_send_buffer_bytes) / round_trip);
  if (rate > 0) bytes_per_ns_ = bytes_per_ns_ > 0 ? bytes_per_ns_ * 0.75 + rate * 0.25 : rate;
  const auto wanted = std::bit_floor(static_cast<std::size_t>(rate * held_ns));
  set_buffer(connection, std::clamp(wanted, options_.first_send_buffer_bytes, options_.send_buffer_bytes));
}

void TcpTransport::set_buffer(Connection& connection, std::size_t bytes) {
  if (bytes == connection.send_buffer_bytes) return;
  connection.send_buffer_bytes = bytes;
  set_send_buffer(connection.socket.get(), bytes);
}

// Both sides on one connection spare it acknowledgements that carry nothing, which cost as much as a packet. When both sides have
// opened one, the first that writes decides; when nobody has, that of the lower rank it is. So they never pass each other.
void TcpTransport::choose_way(TcpLink& link) const {
  const Connection* const theirs = link.theirs;
  if (link.out != link.ours || theirs == nullptr || theirs->stage != Stage::open) return;
  if (theirs->reader.begun() || link.peer() < options_.self.rank) link.out = link.theirs;
}

// A connection may be fast and yet never wait, when messages take turns. Of what was written before the last poll, all that the
// kernel cannot hold had left by then.
void TcpTransport::look_for_speed(Connection& connection) {
  if (connection.writer.written_bytes() - connection.carried_at_bytes >= carried_bytes) note_carriage(connection);
  if (connection.looked_at_poll == poll_number_) return;
  connection.looked_at_poll = poll_number_;
  const std::uint64_t bytes = connection.writer.written_bytes() - connection.looked_from_bytes;
  const auto took_ns = static_cast<std::uint64_t>(now_ns_ - connection.looked_from_ns);
  const std::uint64_t held_bytes = 2 * connection.send_buffer_bytes + one_unit_bytes;
  if (bytes >= held_bytes + judged_bytes && took_ns <= fast_ns_per_byte * judged_bytes) return judged(connection, true);
  if (bytes > 0 && took_ns <= fast_ns_per_byte * judged_bytes) return;
  connection.looked_from_bytes += bytes;
  connection.looked_from_ns = now_ns_;
}

void TcpTransport::judged(Connection& connection, bool fast) {
  connection.judged_at_bytes = connection.writer.written_bytes();
  connection.blocked_ns = 0;
  connection.fast = fast;
  connection.writer.set_burst(fast ? SIZE_MAX : options_.burst_bytes);
  if (fast) set_buffer(connection, std::min(2 * connection.send_buffer_bytes, options_.send_buffer_bytes));
  else note_carriage(connection);
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

// Inside a payload nothing can be told before it ends, so that a sleeper is woken for much of it at once. While somebody polls,
// the mark may be higher than what is still awaited: only connections that are then read directly have one.
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

// Brings what the epoll set watches of an open connection in line with the lists that it is in.
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
  tell_of_loans(true);
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
