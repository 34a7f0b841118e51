// tandem/comm/transport/shm/gate.cpp: the door: who listens and lets callers in.
#include "tandem/comm/transport/shm/gate.hpp"

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace tandem::comm::internal {
namespace {

constexpr std::int64_t kVisitorPatienceNs = 10'000'000'000;
constexpr std::int64_t kVisitorTickNs = 1'000'000'000;
constexpr std::int64_t kRedialTickNs = 10'000'000;
constexpr std::size_t kMostVisitors = 128;
constexpr unsigned kAcceptedAtOnce = 16;

std::span<const std::byte> bytes_of(const HandshakeMessage& message) { return std::as_bytes(std::span(&message, 1)); }

}  // namespace

base::FileDescriptor watch_process(const PeerIdentity& identity) {
  if (identity.pid == 0 || identity.pid == ::getpid()) return {};
  return base::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, identity.pid, 0)));
}

Gate::Gate(const ShmOptions& options, EventSet& events, int doorbell, GateOwner& owner)
    : options_(options), events_(events), owner_(owner), doorbell_(doorbell) {}

base::Result<std::unique_ptr<Gate>> Gate::make(const ShmOptions& options, EventSet& events, int doorbell, GateOwner& owner) {
  std::unique_ptr<Gate> gate(new Gate(options, events, doorbell, owner));
  if (base::Result<void> opened = gate->open(); !opened) return opened.error();
  return gate;
}

base::Result<void> Gate::open() {
  base::Result<ShmCard> card = make_card(options_.job_id, options_.rank);
  if (!card) return card.error();
  card_ = std::move(card).value();
  base::Result<base::FileDescriptor> file = make_shared_file("tandem-hub", kHubBytes);
  if (!file) return file.error();
  hub_file_ = std::move(file).value();
  base::Result<Mapping> hub = map_hub(hub_file_.get());
  if (!hub) return hub.error();
  hub_ = std::move(hub).value();
  base::Result<base::FileDescriptor> listener = listen_on(card_.name);
  if (!listener) return listener.error();
  listener_ = std::move(listener).value();
  timer_ = base::FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  listener_watch_ = events_.add(listener_.get(), [this] { answer_door(); });
  timer_watch_ = timer_ ? events_.add(timer_.get(), [this] { tick(); }) : 0;
  if (listener_watch_ == 0 || timer_watch_ == 0)
    return base::Error{base::ErrorCode::exhausted,
                       fmt::format("shm: no descriptors left ({}); see `ulimit -n`", std::strerror(errno))};
  return {};
}

Gate::~Gate() {
  for (auto& [id, visitor] : visiting_) events_.remove(visitor.watch);
  for (auto& [peer, call] : calls_) events_.remove(call->watch);
  events_.remove(listener_watch_);
  events_.remove(timer_watch_);
}

HandshakeMessage Gate::message(MessageKind kind, Rank to) const {
  HandshakeMessage message;
  message.kind = kind;
  message.from = options_.rank.value();
  message.to = to.value();
  return message;
}

void Gate::answer_door() {
  for (unsigned i = 0; i < kAcceptedAtOnce && visitors_ < kMostVisitors; ++i) {
    base::FileDescriptor socket = accept_from(listener_);
    if (socket) {
      let_in(std::move(socket));
      continue;
    }
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;
    warn("shm: rank {} cannot accept a peer now: {}; see `ulimit -n`", options_.rank.value(), std::strerror(errno));
    break;
  }
  // The rest wait in the kernel's queue until the next tick, or a readable listener would keep this rank from sleeping.
  events_.remove(std::exchange(listener_watch_, 0));
  set_timer();
}

void Gate::let_in(base::FileDescriptor socket) {
  const PeerIdentity identity = identity_of(socket);
  if (identity.uid != ::geteuid()) {
    warn("shm: rank {} turned away a process of user {} (pid {})", options_.rank.value(), identity.uid, identity.pid);
    return;
  }
  const VisitorId id = ++last_visitor_;
  Visitor visitor{.socket = std::move(socket),
                  .deadline_ns = now_ns_ + kVisitorPatienceNs,
                  .nonce = std::make_unique<Nonce>(fresh_nonce())};
  HandshakeMessage challenge = message(MessageKind::challenge, options_.rank);
  challenge.nonce = *visitor.nonce;
  if (!send_message(visitor.socket, bytes_of(challenge))) return;
  visitor.watch = events_.add(visitor.socket.get(), [this, id] { hear_visitor(id); });
  if (visitor.watch == 0) return;
  visiting_.emplace(id, std::move(visitor));
  ++visitors_;
  set_timer();
}

void Gate::hear_visitor(VisitorId id) {
  Visitor& visitor = visiting_.at(id);
  HandshakeMessage hello;
  // One byte more than a message has, so that longer ones are noticed.
  std::array<std::byte, sizeof hello + 1> room;
  Received received = receive_message(visitor.socket, room);
  if (received.outcome == Received::Outcome::nothing_yet) return;
  if (received.outcome == Received::Outcome::closed) {
    // A rank that leaves, or that was called meanwhile and has answered, does so too: no warning.
    if (!visitor.crossed && options_.log != nullptr)
      options_.log->info("shm: rank {} dropped a caller (pid {}): it closed during the handshake", options_.rank.value(),
                         identity_of(visitor.socket).pid);
    return dismiss(id, {});
  }
  if (visitor.crossed) return dismiss(id, "it spoke out of turn");
  const auto read = read_message({room.data(), received.bytes}, MessageKind::hello);
  if (!read) return dismiss(id, "it does not speak Tandem's handshake");
  hello = *read;
  if (hello.format != kShmFormat) {
    refuse(visitor, hello, Refusal::format);
    return dismiss(id, fmt::format("its build shares memory in format {}, ours in {}", hello.format, kShmFormat));
  }
  if (!is_proven(hello, options_.secret, *visitor.nonce)) {
    refuse(visitor, hello, Refusal::proof);
    return dismiss(id, "it does not have the job's secret");
  }
  if (hello.to != options_.rank.value() || hello.from >= options_.job_size || hello.from == hello.to || !hello.sizes.valid() ||
      received.fd_count != 3)
    return dismiss(id, fmt::format("its hello, from rank {} to rank {}, makes no sense", hello.from, hello.to));

  const Rank peer(hello.from);
  if (calls_.contains(peer) && options_.rank < peer) {
    visitor.crossed = true;
    --visitors_;
    return refuse(visitor, hello, Refusal::crossed);
  }
  if (const Refusal verdict = owner_.admit(peer); verdict != Refusal::none) {
    refuse(visitor, hello, verdict);
    // Two ranks that call each other at once meet here when our call was answered first: no warning.
    if (options_.log != nullptr)
      options_.log->debug("shm: rank {} dropped a caller: rank {} called a second time", options_.rank.value(), peer.value());
    return dismiss(id, {});
  }
  Attachment attachment;
  if (!welcome(visitor, hello, received, attachment)) {
    refuse(visitor, hello, Refusal::resources);
    return dismiss(id, fmt::format("no memory could be shared with rank {}", hello.from));
  }
  events_.remove(visitor.watch);
  visiting_.erase(id);
  --visitors_;
  hang_up(peer);
  set_timer();
  owner_.attached(peer, std::move(attachment));
}

bool Gate::welcome(Visitor& visitor, const HandshakeMessage& hello, Received& received, Attachment& attachment) {
  if (!is_shared_file(received.fds[0].get(), segment_file_bytes(hello.sizes))) return false;
  base::Result<Segment> segment = map_segment(received.fds[0].get(), hello.sizes);
  if (!segment) return warn("{}", segment.error().message), false;
  attachment.segment = std::move(segment).value();
  attachment.outgoing = 1;
  attachment.peer = doorbell_of(received, 1);
  if (attachment.peer.hub.base() == nullptr) return false;
  attachment.pid = probe(visitor.socket, hello);
  attachment.process = watch_process(identity_of(visitor.socket));

  HandshakeMessage welcome = message(MessageKind::welcome, Rank(hello.from));
  welcome.nonce = *visitor.nonce;
  welcome.probe_address = options_.remote_copies ? reinterpret_cast<std::uintptr_t>(visitor.nonce.get()) : 0;
  prove(welcome, options_.secret, hello.nonce);
  if (!send_message(visitor.socket, bytes_of(welcome), std::array{hub_file_.get(), doorbell_})) return false;
  attachment.nonce = std::move(visitor.nonce);
  attachment.socket = std::move(visitor.socket);
  return true;
}

Doorbell Gate::doorbell_of(Received& received, std::size_t first) {
  Doorbell doorbell;
  doorbell.eventfd = std::move(received.fds[first + 1]);
  if (!is_shared_file(received.fds[first].get(), kHubBytes)) return doorbell;
  if (base::Result<Mapping> hub = map_hub(received.fds[first].get())) doorbell.hub = std::move(hub).value();
  return doorbell;
}

pid_t Gate::probe(const base::FileDescriptor& socket, const HandshakeMessage& message) const {
  const pid_t pid = identity_of(socket).pid;
  if (!options_.remote_copies || message.probe_address == 0 || pid == 0) return 0;
  Nonce seen{};
  const iovec here{seen.data(), seen.size()};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(message.probe_address)), seen.size()};
  const bool read = ::process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(seen.size());
  return read && seen == message.nonce ? pid : 0;
}

void Gate::refuse(const Visitor& visitor, const HandshakeMessage& hello, Refusal refusal) {
  HandshakeMessage refused = message(MessageKind::refusal, Rank(hello.from));
  refused.refusal = refusal;
  (void)send_message(visitor.socket, bytes_of(refused));
}

void Gate::dismiss(VisitorId id, std::string_view reason) {
  const auto found = visiting_.find(id);
  const PeerIdentity identity = identity_of(found->second.socket);
  if (!reason.empty())
    warn("shm: rank {} dropped a caller (pid {}): {}", options_.rank.value(), identity.pid, reason);
  events_.remove(found->second.watch);
  if (!found->second.crossed) --visitors_;
  visiting_.erase(found);
  set_timer();
}

void Gate::tick() {
  std::uint64_t expirations = 0;
  (void)!::read(timer_.get(), &expirations, sizeof expirations);
  std::vector<VisitorId> overdue;
  for (const auto& [id, visitor] : visiting_)
    if (!visitor.crossed && visitor.deadline_ns <= now_ns_) overdue.push_back(id);
  for (const VisitorId id : overdue) dismiss(id, "it did not finish the handshake in time");
  std::vector<Rank> waiting;
  for (const auto& [peer, call] : calls_)
    if (call->phase == Call::Phase::to_connect) waiting.push_back(peer);
  for (const Rank peer : waiting)
    if (const auto found = calls_.find(peer); found != calls_.end()) try_connect(*found->second);
  if (listener_watch_ == 0) listener_watch_ = events_.add(listener_.get(), [this] { answer_door(); });
  set_timer();
}

void Gate::set_timer() {
  const bool redials = std::any_of(calls_.begin(), calls_.end(),
                                   [](const auto& entry) { return entry.second->phase == Call::Phase::to_connect; });
  const std::int64_t period_ns = redials || listener_watch_ == 0 ? kRedialTickNs : visitors_ > 0 ? kVisitorTickNs : 0;
  if (std::exchange(timer_period_ns_, period_ns) == period_ns) return;
  const timespec period{period_ns / 1'000'000'000, period_ns % 1'000'000'000};
  const itimerspec setting{period, period};
  (void)::timerfd_settime(timer_.get(), 0, &setting, nullptr);
}

}  // namespace tandem::comm::internal
