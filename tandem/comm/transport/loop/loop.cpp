// tandem/comm/transport/loop/loop.cpp: packets handed from one rank of the process to another.
#include "tandem/comm/transport/loop/loop.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "tandem/base/assert.hpp"
#include "tandem/base/narrow.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"

namespace tandem::comm {

namespace {

using Bytes = std::vector<std::byte>;

/// Copies `from` into the pieces of `to`, as far as both go; pieces of more than `most` bytes stay as they are, and so
/// does what pieces without an address would fill.
void copy(std::span<const iovec> from, std::span<const iovec> to, std::size_t most = SIZE_MAX) {
  std::size_t i = 0;
  std::size_t at = 0;
  for (const iovec& place : to) {
    for (std::size_t done = 0; done < place.iov_len && i < from.size();) {
      const std::size_t part = std::min(place.iov_len - done, from[i].iov_len - at);
      if (place.iov_len <= most && from[i].iov_base != nullptr)
        std::memcpy(static_cast<std::byte*>(place.iov_base) + done, static_cast<std::byte*>(from[i].iov_base) + at,
                    part);
      done += part;
      at += part;
      if (at == from[i].iov_len) ++i, at = 0;
    }
  }
}

Bytes joined(std::span<const iovec> pieces) {
  std::size_t total = 0;
  for (const iovec& piece : pieces) total += piece.iov_len;
  Bytes bytes(total);
  const iovec whole{bytes.data(), bytes.size()};
  copy(pieces, {&whole, 1});
  return bytes;
}

}  // namespace

/// A payload on its way. The receiver reads it from the sender's memory, as a network card does; if the sender
/// closes the link first, it is copied: what has left a rank arrives, and so does what the rank sends behind it.
class LoopNetwork::Payload {
 public:
  Payload(std::span<const iovec> pieces, bool stays_with_sender) {
    if (stays_with_sender) pieces_.assign(pieces.begin(), pieces.end());
    else copy_ = joined(pieces);
  }
  /// From another process: pieces without an address have stayed there.
  Payload(Bytes content, std::vector<iovec> pieces) : pieces_(std::move(pieces)), copy_(std::move(content)) {}
  std::span<const iovec> pieces() const noexcept { return pieces_; }
  /// Pieces of more than `most` bytes stay as they are.
  void read(std::span<const iovec> to, std::size_t most) {
    const std::lock_guard lock(mutex_);
    const iovec whole{copy_.data(), copy_.size()};
    copy(pieces_.empty() ? std::span<const iovec>(&whole, 1) : pieces_, to, most);
  }
  void leave_sender() {
    const std::lock_guard lock(mutex_);
    copy_ = joined(pieces_);
    pieces_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<iovec> pieces_;  ///< in the sender's memory, or what has come of them from another process
  Bytes copy_;                 ///< without `pieces_`, or that which they point to
};

struct LoopNetwork::Message {
  enum class Kind { packet, taken, failed, closed, refused } kind = Kind::packet;
  Rank from{0};
  unsigned rail = 0;
  std::vector<std::uint64_t> control = {};  ///< aligned to 8 bytes
  std::size_t control_bytes = 0;
  std::shared_ptr<Payload> payload = nullptr;
  std::size_t payload_bytes = 0;
  std::uint64_t cookie = 0;
  bool posted = false;  ///< the payload stays in the sender's memory until it is taken

  /// The answer to a packet that `by` has taken.
  Message taken_by(Rank by) const {
    Message answer;
    answer.kind = Kind::taken;
    answer.from = by;
    answer.rail = rail;
    answer.posted = posted;
    answer.cookie = cookie;
    return answer;
  }
  std::string to_bytes(std::size_t most_piece_bytes) const;
  static base::Result<Message> of_bytes(std::string_view bytes, const LoopOptions& options);
};

/// Messages that wait for one rank. The lock is held to put and to take, never while a sink is called.
struct LoopNetwork::Box {
  std::mutex mutex;
  std::deque<Message> inbox;
  std::deque<std::pair<Rank, Message>> held;  ///< from this rank, while it is stopped
  std::function<void()> wake;
  bool attached = false;
  bool gone = false;  ///< it was attached, and is not any more
  bool dead = false;
  bool stopped = false;
};

/// One rail to one peer. Its own rank alone accesses `in_flight_`: the peer answers each packet with a `taken`.
class LoopLink final : public Link {
 public:
  LoopLink(LoopNetwork& network, Rank self, Rank peer, unsigned rail) noexcept
      : Link(peer, rail), network_(network), self_(self) {
    offer_line();
  }

  SendStatus try_send(const Packet& packet) override;
  bool read_remote(std::uint64_t address, std::span<std::byte> to) override {
    if (!may_copy()) return false;
    std::memcpy(to.data(), reinterpret_cast<const void*>(address), to.size());
    return true;
  }
  bool write_remote(std::uint64_t address, std::span<const std::byte> from) override {
    if (!may_copy() || network_.is_dead(peer())) return false;
    std::memcpy(reinterpret_cast<void*>(address), from.data(), from.size());
    return true;
  }
  std::atomic<std::uint64_t>* shared_word(Direction direction) noexcept override {
    if (!network_.options().remote_copy) return nullptr;
    return direction == Direction::outgoing ? &network_.word(self_, peer()) : &network_.word(peer(), self_);
  }

 private:
  friend class LoopTransport;
  void offer_line() noexcept {
    line = failed_ || in_flight_ >= network_.options().packets_in_flight ? nullptr : own_line_.data();
  }
  /// Ends the need for this rank's memory of what the peer has not read yet.
  void leave_payloads() {
    for (const auto& payload : posted_) payload->leave_sender();
    posted_.clear();
  }
  /// Marks the link as failed. False: it had failed before.
  bool fail() noexcept {
    line = nullptr;
    return !std::exchange(failed_, true);
  }
  bool may_copy() noexcept {
    const LoopOptions& options = network_.options();
    return options.remote_copy && !failed_ && remote_copies_++ < options.remote_copies_allowed;
  }
  LoopNetwork& network_;
  Rank self_;
  std::size_t in_flight_ = 0;
  std::deque<std::shared_ptr<LoopNetwork::Payload>> posted_;  ///< payloads in the sender's memory, oldest first
  alignas(8) std::array<std::byte, kFirstBytes> own_line_;
  bool blocked_ = false;
  bool failed_ = false;
  unsigned remote_copies_ = 0;
};

class LoopTransport final : public Transport {
 public:
  LoopTransport(LoopNetwork& network, Rank self, PacketSink& sink) : network_(network), self_(self), sink_(sink) {
    const LoopOptions& options = network.options();
    capabilities_ = Capabilities{.max_control_bytes = 8192,
                                 .max_payload_bytes = std::max(options.segment_bytes, options.payload_bytes),
                                 .segment_bytes = options.segment_bytes,
                                 .eager_bytes = options.eager_bytes,
                                 .rails = options.rails,
                                 .remote_read = options.remote_copy,
                                 .remote_copy_bytes = options.remote_copy ? options.eager_bytes * 2 : 0,
                                 .remote_broadcast_bytes = options.remote_copy ? options.eager_bytes * 2 : 0,
                                 .cuda_memory = options.cuda_memory,
                                 .shared_memory = options.remote_copy,
                                 .latency_ns = std::max<std::int64_t>(1000, options.latency_max_ns),
                                 .bytes_per_ns = options.bytes_per_ns > 0 ? options.bytes_per_ns : 10.0};
  }
  ~LoopTransport() override {
    LoopNetwork::Box& box = network_.box(self_);
    bool dead = false;
    std::unordered_set<std::uint32_t> strangers;  ///< whose first words were not read
    {
      const std::lock_guard lock(box.mutex);
      box.gone = true;
      box.wake = {};
      for (const LoopNetwork::Message& unread : box.inbox)
        if (!links_.contains(unread.from.value())) strangers.insert(unread.from.value());
      box.inbox.clear();
      dead = box.dead;
    }
    if (dead) return;
    // Behaves as a socket does.
    using Kind = LoopNetwork::Message::Kind;
    for (const auto& [peer, links] : links_) notify(Rank{peer}, Kind::closed);
    for (const std::uint32_t peer : strangers) notify(Rank{peer}, Kind::refused);
  }

  std::string_view name() const noexcept override { return "loop"; }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  std::string card() const override { return "loop"; }
  std::size_t unsent_bytes() const override { return network_.unsent_bytes(self_); }
  bool reaches(Rank, std::string_view card) override { return card == "loop"; }
  Link& connect(Rank peer, std::string_view, unsigned rail) override {
    const bool fresh = !links_.contains(peer.value());
    Link& made = link(peer, rail);
    if (fresh && !network_.options().deaths_are_seen_by_all && network_.is_dead(peer))
      network_.report_death(peer, self_);
    return made;
  }

  unsigned poll(std::int64_t) override {
    LoopNetwork::Box& box = network_.box(self_);
    unsigned events = 0;
    for (; events < kMostPerPoll; ++events) {
      LoopNetwork::Message message;
      {
        const std::lock_guard lock(box.mutex);
        if (box.dead || box.stopped || box.inbox.empty()) break;
        message = std::move(box.inbox.front());
        box.inbox.pop_front();
      }
      handle(message);
    }
    return events;
  }

  int wait_descriptor() const noexcept override { return -1; }
  bool rings() const noexcept override { return true; }
  bool arm() override {
    LoopNetwork::Box& box = network_.box(self_);
    const std::lock_guard lock(box.mutex);
    return box.dead || box.stopped || box.inbox.empty();
  }
  void disarm() override {}
  void peer_left(Rank) override {}
  void disconnect(Rank peer) override {
    for (unsigned rail = 0; rail < capabilities_.rails; ++rail) {
      LoopLink& closed = link(peer, rail);
      closed.fail();
      closed.leave_payloads();
    }
    notify(peer, LoopNetwork::Message::Kind::closed);
  }

 private:
  static constexpr unsigned kMostPerPoll = 64;

  void notify(Rank peer, LoopNetwork::Message::Kind what) {
    LoopNetwork::Message message;
    message.kind = what;
    message.from = self_;
    network_.send(peer, std::move(message));
  }

  LoopLink& link(Rank peer, unsigned rail) {
    auto& links = links_[peer.value()];
    while (links.size() <= rail) {
      links.push_back(std::make_unique<LoopLink>(network_, self_, peer, static_cast<unsigned>(links.size())));
    }
    return *links[rail];
  }

  void handle(LoopNetwork::Message& message) {
    if (message.kind == LoopNetwork::Message::Kind::closed && !links_.contains(message.from.value())) return;
    const bool seen = network_.options().deaths_are_seen_by_all || links_.contains(message.from.value());
    if (message.kind == LoopNetwork::Message::Kind::failed && !seen) return;
    LoopLink& from = link(message.from, message.rail);
    switch (message.kind) {
      case LoopNetwork::Message::Kind::packet: return take(from, message);
      case LoopNetwork::Message::Kind::taken:
        --from.in_flight_;
        from.offer_line();
        if (message.posted && !from.posted_.empty()) from.posted_.pop_front();
        if (from.failed_) return;
        if (message.posted) sink_.sent(from, message.cookie);
        if (std::exchange(from.blocked_, false)) sink_.writable(from);
        return;
      case LoopNetwork::Message::Kind::failed:
        if (!from.fail()) return;
        sink_.peer_failed(message.from, "it was killed");
        return;
      case LoopNetwork::Message::Kind::closed:
        if (from.fail()) sink_.peer_failed(message.from, "it closed its endpoint");
        return;
      case LoopNetwork::Message::Kind::refused:
        if (from.fail()) sink_.peer_unreachable(message.from, "it has closed its endpoint");
        return;
    }
  }

  void take(LoopLink& from, LoopNetwork::Message& message) {
    if (!from.failed_) {
      const auto* control = reinterpret_cast<const std::byte*>(message.control.data());
      const Landing landing = sink_.arrived(from, {control, message.control_bytes}, message.payload_bytes);
      if (landing.malformed != nullptr) {
        from.fail();
        sink_.peer_failed(message.from, landing.malformed);
      } else if (message.payload_bytes > 0) {
        const LoopOptions& options = network_.options();
        message.payload->read(landing.pieces, options.bulk_travels ? SIZE_MAX : options.eager_bytes);
        sink_.landed(from, landing.token);
      }
    }
    if (network_.options().wire == nullptr) network_.deliver(message.from, message.taken_by(self_));
  }

  friend class LoopLink;
  LoopNetwork& network_;
  Rank self_;
  PacketSink& sink_;
  Capabilities capabilities_;
  std::unordered_map<std::uint32_t, std::vector<std::unique_ptr<LoopLink>>> links_;
};

SendStatus LoopLink::try_send(const Packet& packet) {
  if (failed_ || in_flight_ >= network_.options().packets_in_flight) {
    blocked_ = true;
    return SendStatus::retry;
  }
  ++in_flight_;
  offer_line();
  LoopNetwork::Message message;
  message.from = self_;
  message.rail = rail();
  message.control.resize((packet.control.size() + 7) / 8);
  std::memcpy(message.control.data(), packet.control.data(), packet.control.size());
  message.control_bytes = packet.control.size();
  message.payload_bytes = packet.payload_bytes;
  message.cookie = packet.cookie;
  message.posted = packet.payload_bytes > 0 && !network_.options().copies;
  if (packet.payload_bytes > 0) {
    message.payload = std::make_shared<LoopNetwork::Payload>(packet.payload, message.posted);
    if (message.posted) posted_.push_back(message.payload);
  }
  const bool posted = message.posted;
  network_.send(peer(), std::move(message));
  return posted ? SendStatus::posted : SendStatus::done;
}

LoopNetwork::LoopNetwork(const LoopOptions& options, base::EventLoop* loop) : options_(options), loop_(loop) {}
LoopNetwork::~LoopNetwork() = default;

LoopNetwork::Box& LoopNetwork::box(Rank rank) {
  const std::lock_guard lock(mutex_);
  auto& box = boxes_[rank.value()];
  if (!box) box = std::make_unique<Box>();
  return *box;
}

std::unique_ptr<Transport> LoopNetwork::attach(Rank rank, PacketSink& sink, std::function<void()> wake) {
  TANDEM_ASSERT(rank.value() < options_.ranks);
  Box& mine = box(rank);
  {
    const std::lock_guard lock(mine.mutex);
    TANDEM_ASSERT(!mine.attached);
    mine.attached = true;
    mine.wake = std::move(wake);
  }
  return std::make_unique<LoopTransport>(*this, rank, sink);
}

std::int64_t LoopNetwork::arrival_ns(Rank from, Rank to, unsigned rail, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Timing& timing = timing_[from.value()];
  std::int64_t when = loop_->now_ns();
  const bool near = is_near(from, to);
  if (rate(near) > 0) {
    const bool is_slowed = options_.rates != nullptr && bytes > 0;
    const double now = is_slowed ? std::min(rate(near), options_.rates->bytes_per_ns(from, to)) : rate(near);
    std::int64_t& free_ns = timing.egress_free_ns[near ? 1 : 0];
    when = free_ns = std::max(when, free_ns) + static_cast<std::int64_t>(static_cast<double>(bytes) / now);
    if (is_slowed) options_.rates->note_packet(from, to, when);
  }
  const auto spread = static_cast<std::uint64_t>(options_.latency_max_ns - options_.latency_min_ns);
  if (near) when += options_.host_latency_ns;
  else when += options_.latency_min_ns + static_cast<std::int64_t>(spread > 0 ? loop_->random() % (spread + 1) : 0);
  std::int64_t& last = timing.last_ns[(std::uint64_t{to.value()} << 8) | rail];
  last = std::max(last + 1, when);  // the loop orders by time alone
  return last;
}

std::size_t LoopNetwork::unsent_bytes(Rank from) {
  if (loop_ == nullptr || options_.bytes_per_ns <= 0) return 0;
  const std::lock_guard lock(mutex_);
  double bytes = 0;
  for (const bool near : {false, true}) {
    const std::int64_t left_ns = timing_[from.value()].egress_free_ns[near ? 1 : 0] - loop_->now_ns();
    if (left_ns > 0) bytes += static_cast<double>(left_ns) * rate(near);
  }
  return static_cast<std::size_t>(bytes);
}

/// Whether a message is lost. Of what a dead rank had in flight on a rail the first packets arrive; those that must be
/// read from its memory cannot.
bool LoopNetwork::is_lost(Rank to, const Message& message) {
  const bool lost = message.posted || loop_->random() % 2 == 0;
  const std::lock_guard lock(mutex_);
  auto& torn = timing_[message.from.value()].torn;
  const std::uint64_t rail = (std::uint64_t{to.value()} << 8) | message.rail;
  if (lost) torn.insert(rail);
  return torn.contains(rail);
}

void LoopNetwork::send(Rank to, Message message) {
  Box& source = box(message.from);
  {
    const std::lock_guard lock(source.mutex);
    if (source.dead) return;
    if (source.stopped) {
      source.held.emplace_back(to, std::move(message));
      return;
    }
  }
  if (loop_ == nullptr) return deliver(to, std::move(message));
  note_labour(message.from, to, message);
  const std::int64_t when = arrival_ns(message.from, to, message.rail, message.payload_bytes + message.control_bytes);
  if (options_.wire != nullptr) return carry(to, when, message);
  auto shared = std::make_shared<Message>(std::move(message));
  loop_->at(when, [this, to, shared] {
    if (box(shared->from).dead && is_lost(to, *shared)) return;
    receive(to, std::move(*shared));
  });
}

/// Gives it to the wire. The answer to a packet costs no message: it is known when the packet will be there.
void LoopNetwork::carry(Rank to, std::int64_t when_ns, const Message& message) {
  options_.wire->carry(to, when_ns, message.to_bytes(options_.bulk_travels ? SIZE_MAX : options_.eager_bytes));
  if (message.kind == Message::Kind::packet)
    loop_->at(when_ns, [this, self = message.from, answer = message.taken_by(to)] { deliver(self, answer); });
}

/// The message for another process, without pieces of more than `most_piece_bytes`.
std::string LoopNetwork::Message::to_bytes(std::size_t most_piece_bytes) const {
  internal::ByteWriter writer;
  writer.u8(static_cast<std::uint8_t>(kind)).u32(from.value()).u32(rail);
  writer.text({reinterpret_cast<const char*>(control.data()), control_bytes});
  const std::span<const iovec> pieces = payload == nullptr ? std::span<const iovec>() : payload->pieces();
  writer.u32(base::narrow<std::uint32_t>(pieces.size()));
  for (const iovec& piece : pieces) {
    const bool travels = piece.iov_len <= most_piece_bytes;
    writer.u64(piece.iov_len).u8(travels ? 1 : 0);
    if (travels) writer.raw({static_cast<const char*>(piece.iov_base), piece.iov_len});
  }
  return writer.take();
}

base::Result<LoopNetwork::Message> LoopNetwork::Message::of_bytes(std::string_view bytes, const LoopOptions& options) {
  internal::ByteReader reader(bytes);
  Message message;
  message.kind = static_cast<Kind>(reader.u8());
  message.from = Rank(reader.u32());
  message.rail = reader.u32();
  const std::string_view control = reader.text(bytes.size());
  message.control.resize((control.size() + 7) / 8);
  if (!control.empty()) std::memcpy(message.control.data(), control.data(), control.size());
  message.control_bytes = control.size();
  const std::size_t most_bytes = std::max(options.segment_bytes, options.payload_bytes);
  std::vector<std::pair<std::size_t, std::string_view>> pieces;  // a length, and what has come
  std::size_t come = 0;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) {
    const std::size_t length = reader.u64();
    if (length > most_bytes - message.payload_bytes) break;
    message.payload_bytes += length;
    pieces.emplace_back(length, reader.u8() != 0 ? reader.raw(length) : std::string_view());
    come += pieces.back().second.size();
  }
  if (!reader.finished() || message.kind > Kind::refused || message.from.value() >= options.ranks ||
      message.rail >= options.rails)
    return base::Error{base::ErrorCode::malformed, "a message of another process does not follow its format"};
  Bytes content(come);
  std::vector<iovec> places;
  std::byte* at = content.data();
  for (const auto& [length, piece] : pieces) {
    places.push_back({piece.empty() ? nullptr : at, length});
    at = std::copy_n(reinterpret_cast<const std::byte*>(piece.data()), piece.size(), at);
  }
  message.payload = std::make_shared<Payload>(std::move(content), std::move(places));
  return message;
}

base::Result<void> LoopNetwork::arrive(Rank to, std::string_view message) {
  auto read = Message::of_bytes(message, options_);
  if (!read) return read.error();
  receive(to, std::move(read).value());
  return {};
}

std::optional<std::string> LoopNetwork::refusal(Rank left, std::string_view message) {
  if (internal::ByteReader(message).u8() != static_cast<std::uint8_t>(Message::Kind::packet)) return {};
  Message answer;
  answer.kind = Message::Kind::refused;
  answer.from = left;
  return answer.to_bytes(0);
}

/// Delivers a message whose last byte arrives now, unless the receiver is still busy with others: then behind them.
void LoopNetwork::note_labour(Rank rank, Rank other, const Message& message) {
  if (options_.labour == nullptr || message.kind != Message::Kind::packet) return;
  options_.labour->note_packet(rank, message.payload_bytes + message.control_bytes, is_near(rank, other));
}

void LoopNetwork::receive(Rank to, Message message) {
  note_labour(to, message.from, message);
  std::int64_t when = loop_->now_ns();
  if (options_.receives_one_by_one) {
    const std::lock_guard lock(mutex_);
    const bool near = is_near(message.from, to);
    std::int64_t& free_ns = timing_[to.value()].ingress_free_ns[near ? 1 : 0];
    const auto bytes = static_cast<double>(message.payload_bytes + message.control_bytes);
    // Two messages never end at one time: the loop orders by time alone.
    when = free_ns = std::max(when, free_ns + 1 + static_cast<std::int64_t>(bytes / rate(near)));
  }
  if (when <= loop_->now_ns()) return deliver(to, std::move(message));
  auto shared = std::make_shared<Message>(std::move(message));
  loop_->at(when, [this, to, shared] { deliver(to, std::move(*shared)); });
}

void LoopNetwork::deliver(Rank to, Message message) {
  {
    Box& target = box(to);
    const std::lock_guard lock(target.mutex);  // also while it is woken: a receiver that goes waits for that
    if (target.dead) return;
    if (!target.gone) {
      target.inbox.push_back(std::move(message));
      if (target.wake) target.wake();
      return;
    }
  }
  if (message.kind != Message::Kind::packet) return;
  // Refuses like a socket whose listener has gone, behind what was sent before.
  Message refusal;
  refusal.kind = Message::Kind::refused;
  refusal.from = to;
  send(message.from, std::move(refusal));
}

void LoopNetwork::kill(Rank rank) {
  Box& victim = box(rank);
  {
    const std::lock_guard lock(victim.mutex);
    victim.dead = true;
    victim.inbox.clear();
    victim.held.clear();
  }
  for (std::uint32_t other = 0; other < options_.ranks; ++other) {
    if (other != rank.value()) report_death(rank, Rank{other});
  }
}

std::atomic<std::uint64_t>& LoopNetwork::word(Rank from, Rank to) {
  const std::lock_guard guard(mutex_);
  return words_[{from, to}];
}

bool LoopNetwork::is_dead(Rank rank) {
  Box& its = box(rank);
  const std::lock_guard lock(its.mutex);
  return its.dead;
}

void LoopNetwork::report_death(Rank dead, Rank to) {
  Message message;
  message.kind = Message::Kind::failed;
  message.from = dead;
  if (loop_ == nullptr) return deliver(to, std::move(message));
  const std::int64_t when = arrival_ns(dead, to, 0, 0) + options_.latency_max_ns;
  auto shared = std::make_shared<Message>(std::move(message));
  loop_->at(when, [this, to, shared] { deliver(to, std::move(*shared)); });
}

void LoopNetwork::stop(Rank rank, bool stopped) {
  Box& target = box(rank);
  std::deque<std::pair<Rank, Message>> held;
  {
    const std::lock_guard lock(target.mutex);
    target.stopped = stopped;
    if (!stopped) held.swap(target.held);
  }
  for (auto& [to, message] : held) send(to, std::move(message));
  const std::lock_guard lock(target.mutex);
  if (!stopped && target.wake) target.wake();
}

}  // namespace tandem::comm
