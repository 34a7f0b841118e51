// tandem/comm/transport/shm/shm_transport.cpp: the transport: its links, which of them to poll, deaths, sleeping.
#include "tandem/comm/transport/shm/shm_transport.hpp"

#include <sodium.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "tandem/base/fork.hpp"

namespace tandem::comm {

base::Result<std::unique_ptr<Transport>> make_shm_transport(const ShmOptions& options, PacketSink& sink) {
  return internal::ShmTransport::make(options, sink);
}

namespace internal {
namespace {

constexpr std::size_t kMostControlBytes = 16 * 1024;
constexpr std::int64_t kSocketPeriodNs = 500'000;
constexpr unsigned kSocketPeriodPolls = 4096;  ///< for callers whose clock does not move
constexpr std::int64_t kBusyPeriodNs = 5'000;  ///< while handshakes are pending
constexpr unsigned kBusyPeriodPolls = 64;
constexpr unsigned kIdleAfterPolls = 4096;     ///< after which a link is only checked in turn
constexpr std::size_t kOthersPerPoll = 4;

base::Error wrong(std::string what) { return {base::ErrorCode::invalid_argument, "shm: " + std::move(what)}; }

base::Result<void> check(const ShmOptions& options) {
  const RingSizes sizes{options.record_ring_bytes, options.data_ring_bytes};
  if (!sizes.valid())
    return wrong(fmt::format("ring sizes must be powers of two, of 32 KiB and 64 KiB to 1 GiB; got {} and {}",
                             sizes.record_bytes, sizes.data_bytes));
  if (options.rank.value() >= options.job_size) return wrong("the rank is not below the job's size");
  if (options.window_bytes < kCellBytes || options.window_bytes > options.data_ring_bytes)
    return wrong(fmt::format("the window must be from 64 bytes to the data ring's {}; got {}", options.data_ring_bytes,
                             options.window_bytes));
  if (options.inline_bytes > options.record_ring_bytes / 4)
    return wrong(fmt::format("inline payloads must fit into a quarter of the record ring, {} bytes; got {}",
                             options.record_ring_bytes / 4, options.inline_bytes));
  return {};
}

}  // namespace

base::Result<std::unique_ptr<Transport>> ShmTransport::make(const ShmOptions& options, PacketSink& sink) {
  if (base::Result<void> checked = check(options); !checked) return checked.error();
  if (sodium_init() < 0)
    return base::Error{base::ErrorCode::unsupported, "shm: libsodium finds no source of random numbers"};
  base::Result<EventSet> events = EventSet::make();
  if (!events) return events.error();
  auto doorbell = base::kept_from_children(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell)
    return base::Error{base::ErrorCode::exhausted,
                       fmt::format("shm: eventfd failed: {}", base::system_error_text(errno))};
  std::unique_ptr<ShmTransport> made(new ShmTransport(options, sink, std::move(events).value(), std::move(doorbell)));
  made->doorbell_watch_ = made->events_.add(made->doorbell_.get(), [at = made->doorbell_.get()] {
    eventfd_t rings = 0;
    (void)::eventfd_read(at, &rings);
  });
  base::Result<std::unique_ptr<Connector>> connector =
      Connector::make(options, made->events_, made->doorbell_.get(), *made);
  if (!connector) return connector.error();
  made->connector_ = std::move(connector).value();
  made->round_.set_own(made->connector_->hub().bell, made->doorbell_.get());
  return std::unique_ptr<Transport>(std::move(made));
}

ShmTransport::ShmTransport(const ShmOptions& options, PacketSink& sink, EventSet events, base::FileDescriptor doorbell)
    : options_(options),
      sink_(sink),
      limits_{.inline_bytes = options.inline_bytes, .window_bytes = static_cast<std::size_t>(options.window_bytes)},
      events_(std::move(events)),
      doorbell_(std::move(doorbell)) {
  capabilities_.max_control_bytes = std::min<std::size_t>(kMostControlBytes, options.record_ring_bytes / 8);
  capabilities_.max_payload_bytes = kMostPayloadBytes;
  capabilities_.segment_bytes = 512 * 1024;
  capabilities_.eager_bytes = 32 * 1024;
  capabilities_.remote_read = options.remote_copies;
  capabilities_.remote_copy_bytes = options.remote_copies ? capabilities_.eager_bytes : 0;
  capabilities_.remote_broadcast_bytes = options.remote_copies ? 32 * 1024 : 0;
  capabilities_.shared_memory = true;
  capabilities_.latency_ns = 200;
  capabilities_.message_ns = 200;
  capabilities_.copy_ns_per_byte = 0.15;
  capabilities_.bytes_per_ns = 15;
}

ShmTransport::~ShmTransport() = default;

ShmLink& ShmTransport::link_to(Rank peer) {
  std::unique_ptr<ShmLink>& link = links_[peer];
  if (link == nullptr) link = std::make_unique<ShmLink>(peer, limits_, round_);
  return *link;
}

bool ShmTransport::reaches(Rank peer, std::string_view card) {
  if (peer == options_.rank || peer.value() >= options_.job_size) return false;
  const std::optional<ShmCard> theirs = ShmCard::parse(card);
  const ShmCard& ours = connector_->card();
  return theirs && theirs->format == kShmFormat && theirs->boot_id == ours.boot_id && theirs->network == ours.network;
}

Link& ShmTransport::connect(Rank peer, std::string_view card, unsigned rail) {
  TANDEM_ASSERT(rail == 0 && reaches(peer, card));
  const bool known = links_.contains(peer);
  ShmLink& link = link_to(peer);
  if (!known) {
    connector_->call(peer, *ShmCard::parse(card));
    look_at_sockets_ = true;
  }
  return link;
}

unsigned ShmTransport::poll(std::int64_t now_ns) {
  unsigned events = 0;
  round_.make();  // for what was sent since the last poll
  if (sockets_due(now_ns)) [[unlikely]] {
    connector_->set_now(now_ns);
    events_.dispatch();
  }
  if (!lost_links_.empty()) [[unlikely]] events += end_lost_links();
  for (std::size_t i = 0; i < busy_.size(); ++i) {
    ShmLink& link = *busy_[i];
    if (!link.quiet()) {
      events += look(link);
      link.idle_polls = 0;
    } else if (++link.idle_polls > kIdleAfterPolls && busy_.size() > kOthersPerPoll) {
      others_.push_back(&link);
      busy_[i--] = busy_.back();
      busy_.pop_back();
    }
  }
  if (!others_.empty()) events += look_at_others();
  round_.make();  // for what the sink sent, and for room that was made
  return events;
}

inline bool ShmTransport::sockets_due(std::int64_t now_ns) noexcept {
  const bool busy = connector_->busy();
  const bool soon = now_ns - sockets_seen_ns_ < (busy ? kBusyPeriodNs : kSocketPeriodNs);
  if (!look_at_sockets_ && soon && ++polls_since_sockets_ < (busy ? kBusyPeriodPolls : kSocketPeriodPolls))
    return false;
  look_at_sockets_ = false;
  sockets_seen_ns_ = now_ns;
  polls_since_sockets_ = 0;
  return true;
}

inline unsigned ShmTransport::look(ShmLink& link) {
  const unsigned events = link.serve(sink_);
  if (link.malformed() != nullptr && !link.lost) [[unlikely]]
    lost_by_format(link);
  return events;
}

void ShmTransport::lost_by_format(ShmLink& link) {
  lost(link, fmt::format("it broke the format: {}", link.malformed()));
}

unsigned ShmTransport::look_at_others() {
  unsigned events = 0;
  for (std::size_t i = 0; i < kOthersPerPoll && !others_.empty(); ++i) {
    next_other_ = (next_other_ + 1) % others_.size();
    ShmLink& link = *others_[next_other_];
    if (link.quiet()) continue;
    events += look(link);
    link.idle_polls = 0;
    busy_.push_back(&link);
    others_[next_other_] = others_.back();
    others_.pop_back();
  }
  return events;
}

bool ShmTransport::arm() {
  TANDEM_ASSERT(!asleep_);
  if (!lost_links_.empty()) return false;  // sockets that are ready make the descriptor so
  const auto each_link = [this](auto&& act) {
    for (const std::vector<ShmLink*>* list : {&busy_, &others_})
      for (ShmLink* link : *list)
        if (act(*link)) return true;
    return false;
  };
  each_link([](ShmLink& link) { return link.receiver.settle(), link.sender.before_sleep(), false; });
  asleep_ = true;
  round_.make();
  round_.set_nobody_polls(true);
  connector_->hub().bell.fall_asleep();
  if (!each_link([](ShmLink& link) { return link.has_work(); })) return true;
  disarm();
  return false;
}

void ShmTransport::disarm() {
  if (!std::exchange(asleep_, false)) return;
  connector_->hub().bell.wake_up();
  round_.set_nobody_polls(false);
  look_at_sockets_ = true;
  for (const std::vector<ShmLink*>* list : {&busy_, &others_})
    for (ShmLink* link : *list) link->sender.after_sleep();
}

void ShmTransport::peer_left(Rank peer) {
  if (const auto found = links_.find(peer); found != links_.end()) found->second->left = true;
}

void ShmTransport::disconnect(Rank peer) {
  connector_->cancel_call(peer);
  ShmLink& link = link_to(peer);
  std::erase(lost_links_, &link);
  close_link(link);
}

/// The link is still read until it is empty; `end_lost_links` ends it.
void ShmTransport::lost(ShmLink& link, std::string why) {
  if (std::exchange(link.lost, true)) return;
  link.lost_why = std::move(why);
  events_.remove(std::exchange(link.socket_watch, 0));
  events_.remove(std::exchange(link.process_watch, 0));
  lost_links_.push_back(&link);
}

unsigned ShmTransport::end_lost_links() {
  unsigned events = 0;
  for (std::size_t i = 0; i < lost_links_.size();) {
    ShmLink& link = *lost_links_[i];
    const bool readable = link.state() == ShmLink::State::attached && link.malformed() == nullptr;
    if (readable && (link.receiver.has_work() || !std::exchange(link.last_chance, true))) {
      ++i;
      continue;
    }
    lost_links_[i] = lost_links_.back();
    lost_links_.pop_back();
    const std::string why = std::move(link.lost_why);
    close_link(link);
    if (link.left) continue;
    if (link.met) sink_.peer_failed(link.peer(), why);
    else if (link.unattachable) sink_.peer_needs_other_transport(link.peer(), why);
    else sink_.peer_unreachable(link.peer(), why);
    ++events;
  }
  return events;
}

void ShmTransport::close_link(ShmLink& link) {
  std::erase(busy_, &link);
  std::erase(others_, &link);
  events_.remove(std::exchange(link.socket_watch, 0));
  events_.remove(std::exchange(link.process_watch, 0));
  link.close();
}

Refusal ShmTransport::admit(Rank peer) {
  const auto found = links_.find(peer);
  const bool welcome =
      found == links_.end() || (found->second->state() == ShmLink::State::connecting && !found->second->lost);
  return welcome ? Refusal::none : Refusal::known;
}

void ShmTransport::attached(Rank peer, Attachment attachment) {
  ShmLink& link = link_to(peer);
  link.attach(std::move(attachment));
  link.met = true;
  busy_.push_back(&link);
  const auto gone = [this, &link] { lost(link, "its process has ended or closed its socket"); };
  link.socket_watch = events_.add(link.attachment().socket.get(), gone);
  if (link.attachment().process) link.process_watch = events_.add(link.attachment().process.get(), gone);
  if (link.socket_watch == 0) lost(link, "the kernel has no memory to watch its socket");
  sink_.opened(link);
}

void ShmTransport::unattachable(Rank peer, std::string reason) {
  link_to(peer).unattachable = true;
  lost(link_to(peer), std::move(reason));
}

void ShmTransport::unreachable(Rank peer, std::string reason) { lost(link_to(peer), std::move(reason)); }

}  // namespace internal
}  // namespace tandem::comm
