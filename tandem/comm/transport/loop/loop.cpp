// tandem/comm/transport/loop/loop.cpp: packets handed from one rank of the process to another.
#include "tandem/comm/transport/loop/loop.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/base/splitmix64.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"
#include "tandem/comm/transport/loop/message.hpp"

namespace tandem::comm {

namespace {

/// A number of the way to a rank by a rail.
constexpr std::uint64_t way(Rank to, unsigned rail) noexcept { return (std::uint64_t{to.value()} << 8) | rail; }

}  // namespace

/// Messages that wait for one rank. The lock is held to put and to take, never while a sink is called.
struct LoopNetwork::Box {
  std::mutex mutex;
  Queue inbox;
  Queue held;  ///< from this rank, while it is stopped
  std::function<void()> wake;
  bool attached = false;
  bool gone = false;  ///< it was attached, and is not any more
  bool dead = false;
  bool stopped = false;
};

/// Sends one packet at a time, and receives one.
struct LoopNetwork::Port {
  std::int64_t sent_ns = 0, received_ns = 0;  ///< when it has sent, and received, the last one
};

/// What a rank's packets wait for in manual time.
struct LoopNetwork::Timing {
  Port near;  ///< to and from ranks of its host
  Port far;   ///< to and from other hosts: where hosts are told apart, that of the host's first rank
  std::unordered_map<std::uint64_t, std::int64_t> last_ns;  ///< by way
  /// Ways on which something of this dead rank was lost.
  std::unordered_set<std::uint64_t> torn = {};
};

/// One rail to one peer. Its own rank alone accesses `in_flight_`: the peer answers each packet with a `taken`. Where
/// packets are in flight until they have left, a full link tells itself by a `taken` when half of them have.
class LoopLink final : public Link {
 public:
  LoopLink(LoopNetwork& network, Rank self, Rank peer, unsigned rail)
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
  std::size_t half() const noexcept { return (network_.options().packets_in_flight + 1) / 2; }
  /// Notes a packet in flight that leaves at `left_ns`.
  void note_sent(std::int64_t left_ns) {
    last_left_ns_ = left_ns;
    if (++in_flight_ == half()) half_left_ns_ = left_ns;
    if (in_flight_ == network_.options().packets_in_flight && network_.options().in_flight_until_left) {
      if (half_left_ns_ <= network_.loop_->now_ns())
        take_back_half();
      else
        network_.deliver_at(half_left_ns_, network_.make(LoopNetwork::Kind::taken, peer(), self_, rail()));
    }
    offer_line();
  }
  void take_back_half() noexcept {
    in_flight_ -= half();
    half_left_ns_ = last_left_ns_;  // the packets left are at most half of all
  }
  void note_taken() noexcept {
    if (network_.options().in_flight_until_left)
      take_back_half();
    else
      --in_flight_;
    offer_line();
  }
  LoopNetwork& network_;
  Rank self_;
  std::int64_t* last_ns_ = nullptr;  ///< null: there is no event loop, or nothing was sent
  std::size_t in_flight_ = 0;
  std::int64_t half_left_ns_ = 0, last_left_ns_ = 0;  ///< when the oldest half of these have left, and all
  std::list<std::shared_ptr<LoopNetwork::Payload>> posted_;  ///< payloads in the sender's memory, oldest first
  alignas(8) std::array<std::byte, kFirstBytes> own_line_;
  bool blocked_ = false;
  bool failed_ = false;
  unsigned remote_copies_ = 0;
};

/// Links by their way. They stay where they are. Each packet searches for its link, so a search reads one line of
/// memory as a rule, and not those of a tree or a chain.
class LoopLinks {
 public:
  /// Null: there is none.
  LoopLink* find(std::uint64_t way) noexcept {
    if (table_.empty()) return nullptr;
    for (std::size_t at = place(way);; at = next(at)) {
      if (table_[at].link == nullptr) return nullptr;
      if (table_[at].way == way) return table_[at].link;
    }
  }
  /// There was none.
  LoopLink& add(LoopNetwork& network, Rank self, Rank peer, unsigned rail) {
    links_.emplace_back(network, self, peer, rail);
    if (table_.size() < 2 * links_.size())
      grow();
    else
      put({way(peer, rail), &links_.back()});
    return links_.back();
  }
  auto begin() noexcept { return links_.begin(); }
  auto end() noexcept { return links_.end(); }

 private:
  struct Entry {
    std::uint64_t way = 0;
    LoopLink* link = nullptr;
  };
  std::size_t place(std::uint64_t way) const noexcept { return base::mix64(way) & (table_.size() - 1); }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & (table_.size() - 1); }
  void put(const Entry& entry) noexcept {
    std::size_t at = place(entry.way);
    while (table_[at].link != nullptr) at = next(at);
    table_[at] = entry;
  }
  void grow() {
    table_.assign(std::max<std::size_t>(8, 2 * table_.size()), {});
    for (LoopLink& link : links_) put({way(link.peer(), link.rail()), &link});
  }

  std::deque<LoopLink> links_;  ///< in the order in which they were made
  std::vector<Entry> table_;    ///< a power of two of entries, at most half of them used
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
      while (const auto unread = box.inbox.pop())
        if (!has_link(unread->from)) strangers.insert(unread->from.value());
      dead = box.dead;
    }
    if (dead) return;
    // Behaves as a socket does.
    using Kind = LoopNetwork::Kind;
    for (const LoopLink& link : links_)
      if (link.rail() == 0) notify(link.peer(), Kind::closed);
    for (const std::uint32_t peer : strangers) notify(Rank{peer}, Kind::refused);
  }

  std::string_view name() const noexcept override { return "loop"; }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  std::string card() const override { return "loop"; }
  std::size_t unsent_bytes() const override { return network_.unsent_bytes(self_); }
  bool reaches(Rank, std::string_view card) override { return card == "loop"; }
  Link& connect(Rank peer, std::string_view, unsigned rail) override {
    const bool fresh = !has_link(peer);
    Link& made = link(peer, rail);
    if (fresh && !network_.options().deaths_are_seen_by_all && network_.is_dead(peer))
      network_.report_death(peer, self_);
    return made;
  }

  unsigned poll(std::int64_t) override {
    LoopNetwork::Box& box = network_.box(self_);
    unsigned events = 0;
    for (; events < kMostPerPoll; ++events) {
      LoopNetwork::Owned message;
      {
        const std::lock_guard lock(box.mutex);
        if (box.dead || box.stopped || box.inbox.empty()) break;
        message = box.inbox.pop();
      }
      handle(*message);
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
    notify(peer, LoopNetwork::Kind::closed);
  }

 private:
  static constexpr unsigned kMostPerPoll = 64;

  void notify(Rank peer, LoopNetwork::Kind what) { network_.send(network_.make(what, self_, peer)); }

  bool has_link(Rank peer) noexcept { return links_.find(way(peer, 0)) != nullptr; }
  /// The links to a peer begin with that of rail 0.
  LoopLink& link(Rank peer, unsigned rail) {
    LoopLink* found = links_.find(way(peer, rail));
    for (unsigned one = 0; found == nullptr; ++one) {
      if (links_.find(way(peer, one)) != nullptr) continue;
      LoopLink& made = links_.add(network_, self_, peer, one);
      if (one == rail) found = &made;
    }
    return *found;
  }

  void handle(LoopNetwork::Message& message) {
    if (message.kind == LoopNetwork::Kind::closed && !has_link(message.from)) return;
    const bool seen = network_.options().deaths_are_seen_by_all || has_link(message.from);
    if (message.kind == LoopNetwork::Kind::failed && !seen) return;
    LoopLink& from = link(message.from, message.rail);
    switch (message.kind) {
      case LoopNetwork::Kind::packet: return take(from, message);
      case LoopNetwork::Kind::taken:
        from.note_taken();
        if (message.posted && !from.posted_.empty()) from.posted_.pop_front();
        if (from.failed_) return;
        if (message.posted) sink_.sent(from, message.cookie);
        if (std::exchange(from.blocked_, false)) sink_.writable(from);
        return;
      case LoopNetwork::Kind::failed:
        if (!from.fail()) return;
        sink_.peer_failed(message.from, "it was killed");
        return;
      case LoopNetwork::Kind::closed:
        if (from.fail()) sink_.peer_failed(message.from, "it closed its endpoint");
        return;
      case LoopNetwork::Kind::refused:
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
        if (landing.message_bytes <= network_.options().carried_bytes()) message.read_payload(landing.pieces);
        sink_.landed(from, landing.token);
      }
    }
    if (network_.options().wire == nullptr && !network_.options().in_flight_until_left)
      network_.deliver(network_.answer_to(message));
  }

  friend class LoopLink;
  LoopNetwork& network_;
  Rank self_;
  PacketSink& sink_;
  Capabilities capabilities_;
  LoopLinks links_;
};

SendStatus LoopLink::try_send(const Packet& packet) {
  const LoopOptions& options = network_.options();
  if (failed_ || in_flight_ >= options.packets_in_flight) {
    blocked_ = true;
    return SendStatus::retry;
  }
  auto message = network_.make(LoopNetwork::Kind::packet, self_, peer(), rail());
  message->control.resize((packet.control.size() + 7) / 8);
  std::memcpy(message->control.data(), packet.control.data(), packet.control.size());
  message->control_bytes = packet.control.size();
  message->payload_bytes = packet.payload_bytes;
  message->cookie = packet.cookie;
  message->posted = packet.payload_bytes > 0 && !options.copies;
  if (packet.payload_bytes > 0 &&
      std::max(packet.message_bytes, std::uint64_t{packet.payload_bytes}) <= options.carried_bytes()) {
    if (message->posted)
      posted_.push_back(message->payload = std::make_shared<LoopNetwork::Payload>(packet.payload));
    else
      message->copy_content(packet.payload);
  }
  const bool posted = message->posted;
  if (last_ns_ == nullptr && network_.loop_ != nullptr) last_ns_ = &network_.last_ns(self_, peer(), rail());
  network_.send(std::move(message), last_ns_);
  note_sent(last_ns_ != nullptr ? network_.left_ns(self_, peer()) : 0);
  return posted ? SendStatus::posted : SendStatus::done;
}

LoopNetwork::LoopNetwork(const LoopOptions& options, base::EventLoop* loop)
    : options_(options),
      loop_(loop),
      messages_(std::make_unique<Messages>()),
      boxes_(options.ranks),
      timing_(loop != nullptr ? options.ranks : 0) {}
LoopNetwork::~LoopNetwork() = default;

LoopNetwork::Box& LoopNetwork::box(Rank rank) noexcept { return boxes_[rank.value()]; }

LoopNetwork::Owned LoopNetwork::make(Kind kind, Rank from, Rank to, unsigned rail) {
  return messages_->make(kind, from, to, rail);
}

/// What its receiver says when it has taken a packet.
LoopNetwork::Owned LoopNetwork::answer_to(const Message& packet) {
  Owned answer = make(Kind::taken, packet.to, packet.from, packet.rail);
  answer->posted = packet.posted;
  answer->cookie = packet.cookie;
  return answer;
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

/// How long bytes take at the present rate.
std::int64_t LoopNetwork::moving_ns(Rank from, Rank to, std::size_t bytes) {
  double now = rate(is_near(from, to));
  if (options_.rates != nullptr && bytes > 0) now = std::min(now, options_.rates->bytes_per_ns(from, to));
  return static_cast<std::int64_t>(static_cast<double>(bytes) / now);
}

LoopNetwork::Port& LoopNetwork::port(Rank rank, bool is_near) {
  if (is_near) return timing_[rank.value()].near;
  const bool tells_hosts = options_.host_bytes_per_ns > 0;
  return timing_[tells_hosts ? rank.value() - rank.value() % options_.ranks_per_host : rank.value()].far;
}

std::int64_t& LoopNetwork::last_ns(Rank from, Rank to, unsigned rail) {
  return timing_[from.value()].last_ns[way(to, rail)];
}

/// When all that was sent will have left.
std::int64_t LoopNetwork::left_ns(Rank from, Rank to) {
  return port(from, is_near(from, to)).sent_ns;
}

/// When a packet arrives; `last_ns` is when the one before it on its way does, and becomes that.
std::int64_t LoopNetwork::arrival_ns(Rank from, Rank to, std::size_t bytes, std::int64_t& last_ns) {
  std::int64_t when = loop_->now_ns();
  const bool near = is_near(from, to);
  if (rate(near) > 0) {
    std::int64_t& sent_ns = port(from, near).sent_ns;
    when = sent_ns = std::max(when, sent_ns) + moving_ns(from, to, bytes);
    if (options_.rates != nullptr && bytes > 0) options_.rates->note_packet(from, to, when);
  }
  const auto spread = static_cast<std::uint64_t>(options_.latency_max_ns - options_.latency_min_ns);
  if (near) when += options_.host_latency_ns;
  else when += options_.latency_min_ns + static_cast<std::int64_t>(spread > 0 ? loop_->random() % (spread + 1) : 0);
  last_ns = std::max(last_ns + 1, when);  // the loop orders by time alone
  return last_ns;
}

std::size_t LoopNetwork::unsent_bytes(Rank from) {
  if (loop_ == nullptr || options_.bytes_per_ns <= 0) return 0;
  double bytes = 0;
  for (const bool near : {false, true}) {
    const std::int64_t left_ns = port(from, near).sent_ns - loop_->now_ns();
    if (left_ns > 0) bytes += static_cast<double>(left_ns) * rate(near);
  }
  return static_cast<std::size_t>(bytes);
}

/// Whether a message is lost. Of what a dead rank had in flight on a rail the first packets arrive; those that must be
/// read from its memory cannot.
bool LoopNetwork::is_lost(const Message& message) {
  const bool lost = message.posted || loop_->random() % 2 == 0;
  auto& torn = timing_[message.from.value()].torn;
  const std::uint64_t lost_way = way(message.to, message.rail);
  if (lost) torn.insert(lost_way);
  return torn.contains(lost_way);
}

/// `known_last_ns`: what `last_ns` has, if the caller knows it.
void LoopNetwork::send(Owned message, std::int64_t* known_last_ns) {
  if (loop_ == nullptr || is_troubled_) {
    Box& source = box(message->from);
    const std::lock_guard lock(source.mutex);
    if (source.dead) return;
    if (source.stopped) return source.held.push(std::move(message));
  }
  if (loop_ == nullptr) return deliver(std::move(message));
  note_labour(message->from, message->to, *message);
  std::int64_t& last = known_last_ns != nullptr ? *known_last_ns : last_ns(message->from, message->to, message->rail);
  const std::int64_t when = arrival_ns(message->from, message->to, message->bytes(), last);
  if (options_.wire != nullptr) return carry(when, *message);
  at(when, std::move(message), [](LoopNetwork& network, Owned arrived) {
    const bool is_from_dead = network.is_troubled_ && network.box(arrived->from).dead;
    if (!is_from_dead || !network.is_lost(*arrived)) network.receive(std::move(arrived));
  });
}

/// Goes on with the message at a date. One whose date does not come belongs to `messages_` all the same.
void LoopNetwork::at(std::int64_t when_ns, Owned message, void (*go_on)(LoopNetwork&, Owned)) {
  message->go_on = go_on;
  loop_->at(when_ns, [this, waiting = message.release()] { waiting->go_on(*this, Owned(waiting)); });
}

/// Gives it to the wire. The answer to a packet costs no message: it is known when the packet will be there.
void LoopNetwork::carry(std::int64_t when_ns, const Message& message) {
  options_.wire->carry(message.to, when_ns, message.to_bytes());
  if (message.kind == Kind::packet && !options_.in_flight_until_left) deliver_at(when_ns, answer_to(message));
}

base::Result<void> LoopNetwork::arrive(Rank to, std::string_view message) {
  Owned arrived = make(Kind::packet, to, to);
  if (auto read = arrived->read(message, options_); !read) return read;
  receive(std::move(arrived));
  return {};
}

std::optional<std::string> LoopNetwork::refusal(Rank left, std::string_view message) {
  if (internal::ByteReader(message).u8() != static_cast<std::uint8_t>(Kind::packet)) return {};
  Messages own;
  return own.make(Kind::refused, left, left)->to_bytes();
}

void LoopNetwork::note_labour(Rank rank, Rank other, const Message& message) {
  if (options_.labour == nullptr || message.kind != Kind::packet) return;
  options_.labour->note_packet(rank, message.bytes(), is_near(rank, other));
}

/// Delivers a message whose last byte arrives now, unless the receiver was busy with others while its bytes came: then
/// as soon as it can have received them.
void LoopNetwork::receive(Owned message) {
  note_labour(message->to, message->from, *message);
  std::int64_t when = loop_->now_ns();
  if (options_.receives_one_by_one) {
    const bool near = is_near(message->from, message->to);
    std::int64_t& received_ns = port(message->to, near).received_ns;
    const std::int64_t took_ns = moving_ns(message->from, message->to, message->bytes());
    // Two messages never end at one time: the loop orders by time alone.
    when = received_ns = std::max(when, received_ns + std::max<std::int64_t>(took_ns, 1));
    if (options_.rates != nullptr) options_.rates->note_packet(message->from, message->to, when);
  }
  if (when <= loop_->now_ns()) return deliver(std::move(message));
  deliver_at(when, std::move(message));
}

void LoopNetwork::deliver_at(std::int64_t when_ns, Owned message) {
  at(when_ns, std::move(message), [](LoopNetwork& network, Owned come) { network.deliver(std::move(come)); });
}

void LoopNetwork::deliver(Owned message) {
  const bool is_packet = message->kind == Kind::packet;
  {
    Box& target = box(message->to);
    const std::lock_guard lock(target.mutex);  // also while it is woken: a receiver that goes waits for that
    if (target.dead) return;
    if (!target.gone) {
      target.inbox.push(std::move(message));
      if (target.wake) target.wake();
      return;
    }
  }
  // Refuses like a socket whose listener has gone, behind what was sent before.
  if (is_packet) send(make(Kind::refused, message->to, message->from));
}

void LoopNetwork::kill(Rank rank) {
  is_troubled_ = true;
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
  Owned message = make(Kind::failed, dead, to);
  if (loop_ == nullptr) return deliver(std::move(message));
  deliver_at(arrival_ns(dead, to, 0, last_ns(dead, to, 0)) + options_.latency_max_ns, std::move(message));
}

void LoopNetwork::stop(Rank rank, bool stopped) {
  is_troubled_ = true;
  Box& target = box(rank);
  Queue held;
  {
    const std::lock_guard lock(target.mutex);
    target.stopped = stopped;
    if (!stopped) std::swap(held, target.held);
  }
  while (Owned message = held.pop()) send(std::move(message));
  const std::lock_guard lock(target.mutex);
  if (!stopped && target.wake) target.wake();
}

}  // namespace tandem::comm
