// tandem/comm/transport/shm/connector.cpp: listens and accepts callers.
#include "tandem/comm/transport/shm/connector.hpp"

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

#include "tandem/base/fork.hpp"

namespace tandem::comm::internal {
namespace {

constexpr std::int64_t kCallerTimeoutNs = 10'000'000'000;
constexpr std::int64_t kCallerTickNs = 1'000'000'000;
constexpr std::int64_t kBusyLogNs = 10'000'000'000;
constexpr std::int64_t kRetryTickNs = 10'000'000;
constexpr std::size_t kMostCallers = 128;
constexpr unsigned kAcceptedAtOnce = 16;

std::span<const std::byte> bytes_of(const HandshakeMessage& message) { return std::as_bytes(std::span(&message, 1)); }

}  // namespace

base::FileDescriptor watch_process(const PeerIdentity& identity) {
  if (identity.pid == 0 || identity.pid == ::getpid()) return {};
  return base::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, identity.pid, 0)));
}

Connector::Connector(const ShmOptions& options, EventSet& events, int doorbell, ConnectorOwner& owner)
    : options_(options), events_(events), owner_(owner), doorbell_(doorbell) {}

base::Result<std::unique_ptr<Connector>> Connector::make(const ShmOptions& options, EventSet& events, int doorbell,
                                                         ConnectorOwner& owner) {
  std::unique_ptr<Connector> connector(new Connector(options, events, doorbell, owner));
  if (base::Result<void> opened = connector->open(); !opened) return opened.error();
  return connector;
}

base::Result<void> Connector::open() {
  base::set_spare_descriptor_aside();
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
  timer_ = base::kept_from_children(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  listener_watch_ = events_.add(listener_.get(), [this] { accept_callers(); });
  timer_watch_ = timer_ ? events_.add(timer_.get(), [this] { tick(); }) : 0;
  if (listener_watch_ == 0 || timer_watch_ == 0)
    return base::Error{base::ErrorCode::exhausted,
                       fmt::format("shm: its descriptors cannot be watched: {}", base::system_error_text(errno))};
  return {};
}

Connector::~Connector() {
  for (auto& [id, caller] : callers_) events_.remove(caller.watch);
  for (auto& [peer, call] : calls_) events_.remove(call->watch);
  events_.remove(listener_watch_);
  events_.remove(timer_watch_);
}

HandshakeMessage Connector::message(MessageKind kind, Rank to) const {
  HandshakeMessage message;
  message.kind = kind;
  message.from = options_.rank.value();
  message.to = to.value();
  return message;
}

void Connector::accept_callers() {
  for (unsigned i = 0; i < kAcceptedAtOnce && caller_count_ < kMostCallers; ++i) {
    base::FileDescriptor socket = accept_from(listener_);
    if (socket) {
      accepting_shortage_.end();
      challenge_caller(std::move(socket));
      continue;
    }
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;
    note_busy();
    if (!accepting_shortage_.lasts(now_ns_) || !turn_away()) break;
  }
  // The others wait in the kernel's queue until the next tick. While the listener is readable this rank could not
  // sleep.
  events_.remove(std::exchange(listener_watch_, 0));
  set_timer();
}

/// A caller waits for an answer without limit. When descriptors stay exhausted, the spare one serves to tell it so.
bool Connector::turn_away() {
  bool turned_away = false;
  base::with_spare_descriptor([&] {
    const base::FileDescriptor socket = accept_from(listener_);
    HandshakeMessage refused = message(MessageKind::refusal, options_.rank);
    refused.refusal = Refusal::busy;
    turned_away = socket && send_message(socket, bytes_of(refused));
  });
  return turned_away;
}

/// Notes a shortage of descriptors, which ends nothing for a while: ranks call again until there are some.
void Connector::note_busy() {
  if (busy_logged_ns_ != INT64_MIN && now_ns_ - busy_logged_ns_ < kBusyLogNs) return;
  busy_logged_ns_ = now_ns_;
  warn("shm: rank {} waits for descriptors for its connections: {}", options_.rank.value(),
       base::system_error_text(EMFILE));
}

void Connector::challenge_caller(base::FileDescriptor socket) {
  const PeerIdentity identity = identity_of(socket);
  if (identity.uid != ::geteuid()) {
    warn("shm: rank {} turned away a process of user {} (pid {})", options_.rank.value(), identity.uid, identity.pid);
    return;
  }
  const CallerId id = ++last_caller_;
  Caller caller{.socket = std::move(socket),
                .deadline_ns = now_ns_ + kCallerTimeoutNs,
                .nonce = std::make_unique<Nonce>(fresh_nonce())};
  HandshakeMessage challenge = message(MessageKind::challenge, options_.rank);
  challenge.nonce = *caller.nonce;
  if (!send_message(caller.socket, bytes_of(challenge))) return;
  caller.watch = events_.add(caller.socket.get(), [this, id] { read_from_caller(id); });
  if (caller.watch == 0) return;
  callers_.emplace(id, std::move(caller));
  ++caller_count_;
  set_timer();
}

void Connector::read_from_caller(CallerId id) {
  Caller& caller = callers_.at(id);
  HandshakeMessage hello;
  // One byte more than a message has, to notice longer ones.
  std::array<std::byte, sizeof hello + 1> room;
  Received received = receive_message(caller.socket, room);
  if (received.outcome == Received::Outcome::nothing_yet) return;
  if (received.outcome == Received::Outcome::closed) {
    // A rank that leaves, or that has answered our call meanwhile, closes its call too: no warning.
    if (!caller.crossed && options_.log != nullptr)
      options_.log->info("shm: rank {} dropped a caller (pid {}): it closed during the handshake",
                         options_.rank.value(), identity_of(caller.socket).pid);
    return drop_caller(id, {});
  }
  if (caller.crossed) return drop_caller(id, "it spoke out of turn");
  const auto read = read_message({room.data(), received.bytes}, MessageKind::hello);
  if (!read) return drop_caller(id, "it does not speak Tandem's handshake");
  hello = *read;
  if (hello.format != kShmFormat) {
    refuse(caller, hello, Refusal::format);
    return drop_caller(id, fmt::format("its build shares memory in format {}, ours in {}", hello.format, kShmFormat));
  }
  if (!is_proven(hello, options_.secret, *caller.nonce)) {
    refuse(caller, hello, Refusal::proof);
    return drop_caller(id, "it does not have the job's secret");
  }
  if (received.cut) {
    note_busy();
    refuse(caller, hello, Refusal::busy);
    return drop_caller(id, {});
  }
  if (hello.to != options_.rank.value() || hello.from >= options_.job_size || hello.from == hello.to ||
      !hello.sizes.valid() || received.fd_count != 3)
    return drop_caller(id, fmt::format("its hello, from rank {} to rank {}, makes no sense", hello.from, hello.to));

  const Rank peer(hello.from);
  if (calls_.contains(peer) && options_.rank < peer) {
    caller.crossed = true;
    --caller_count_;
    return refuse(caller, hello, Refusal::crossed);
  }
  if (const Refusal verdict = owner_.admit(peer); verdict != Refusal::none) {
    refuse(caller, hello, verdict);
    // This happens when two ranks call each other at once and our call was answered first: no warning.
    if (options_.log != nullptr)
      options_.log->debug("shm: rank {} dropped a caller: rank {} called a second time", options_.rank.value(),
                          peer.value());
    return drop_caller(id, {});
  }
  Attachment attachment;
  if (!welcome(caller, hello, received, attachment)) {
    refuse(caller, hello, Refusal::resources);
    return drop_caller(id, fmt::format("no memory could be shared with rank {}", hello.from));
  }
  events_.remove(caller.watch);
  callers_.erase(id);
  --caller_count_;
  cancel_call(peer);
  set_timer();
  owner_.attached(peer, std::move(attachment));
}

bool Connector::welcome(Caller& caller, const HandshakeMessage& hello, Received& received, Attachment& attachment) {
  if (!is_shared_file(received.fds[0].get(), segment_file_bytes(hello.sizes))) return false;
  base::Result<Segment> segment = map_segment(received.fds[0].get(), hello.sizes);
  if (!segment) return warn("{}", segment.error().message), false;
  attachment.segment = std::move(segment).value();
  attachment.outgoing = 1;
  attachment.peer = doorbell_of(received, 1);
  if (attachment.peer.hub.base() == nullptr) return false;
  attachment.pid = probe(caller.socket, hello);
  attachment.process = watch_process(identity_of(caller.socket));

  HandshakeMessage welcome = message(MessageKind::welcome, Rank(hello.from));
  welcome.nonce = *caller.nonce;
  welcome.probe_address = options_.remote_copies ? reinterpret_cast<std::uintptr_t>(caller.nonce.get()) : 0;
  prove(welcome, options_.secret, hello.nonce);
  if (!send_message(caller.socket, bytes_of(welcome), std::array{hub_file_.get(), doorbell_})) return false;
  attachment.nonce = std::move(caller.nonce);
  attachment.socket = std::move(caller.socket);
  return true;
}

Doorbell Connector::doorbell_of(Received& received, std::size_t first) {
  Doorbell doorbell;
  doorbell.eventfd = std::move(received.fds[first + 1]);
  if (!is_shared_file(received.fds[first].get(), kHubBytes)) return doorbell;
  if (base::Result<Mapping> hub = map_hub(received.fds[first].get())) doorbell.hub = std::move(hub).value();
  return doorbell;
}

pid_t Connector::probe(const base::FileDescriptor& socket, const HandshakeMessage& message) const {
  const pid_t pid = identity_of(socket).pid;
  if (!options_.remote_copies || message.probe_address == 0 || pid == 0) return 0;
  Nonce seen{};
  const iovec here{seen.data(), seen.size()};
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(message.probe_address)), seen.size()};
  const bool read = ::process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(seen.size());
  return read && seen == message.nonce ? pid : 0;
}

void Connector::refuse(const Caller& caller, const HandshakeMessage& hello, Refusal refusal) {
  HandshakeMessage refused = message(MessageKind::refusal, Rank(hello.from));
  refused.refusal = refusal;
  (void)send_message(caller.socket, bytes_of(refused));
}

void Connector::drop_caller(CallerId id, std::string_view reason) {
  const auto found = callers_.find(id);
  const PeerIdentity identity = identity_of(found->second.socket);
  if (!reason.empty())
    warn("shm: rank {} dropped a caller (pid {}): {}", options_.rank.value(), identity.pid, reason);
  events_.remove(found->second.watch);
  if (!found->second.crossed) --caller_count_;
  callers_.erase(found);
  set_timer();
}

void Connector::tick() {
  std::uint64_t expirations = 0;
  (void)!::read(timer_.get(), &expirations, sizeof expirations);
  std::vector<CallerId> overdue;
  for (const auto& [id, caller] : callers_)
    if (!caller.crossed && caller.deadline_ns <= now_ns_) overdue.push_back(id);
  for (const CallerId id : overdue) drop_caller(id, "it did not finish the handshake in time");
  std::vector<Rank> waiting;
  for (const auto& [peer, call] : calls_)
    if (call->phase == Call::Phase::to_connect) waiting.push_back(peer);
  for (const Rank peer : waiting)
    if (const auto found = calls_.find(peer); found != calls_.end()) try_connect(*found->second);
  if (listener_watch_ == 0) listener_watch_ = events_.add(listener_.get(), [this] { accept_callers(); });
  set_timer();
}

void Connector::set_timer() {
  const bool retries = std::any_of(calls_.begin(), calls_.end(),
                                   [](const auto& entry) { return entry.second->phase == Call::Phase::to_connect; });
  const std::int64_t period_ns = retries || listener_watch_ == 0 ? kRetryTickNs : caller_count_ > 0 ? kCallerTickNs : 0;
  if (std::exchange(timer_period_ns_, period_ns) == period_ns) return;
  const timespec period{period_ns / 1'000'000'000, period_ns % 1'000'000'000};
  const itimerspec setting{period, period};
  (void)::timerfd_settime(timer_.get(), 0, &setting, nullptr);
}

}  // namespace tandem::comm::internal
