// tandem/comm/engine/engine.cpp: the engine's peers, its steps, and how requests end.
#include "tandem/comm/engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::comm::internal {
namespace {

constexpr std::uint64_t kStepsPerCostlyPoll = 16;

}  // namespace

Engine::Engine(Context context, std::unique_ptr<Strategy> strategy)
    : context_(std::move(context)),
      due_messages_(std::max(1u, context_.options.credit_messages / 4)),
      due_units_(
          static_cast<std::uint32_t>(std::max<std::size_t>(1, context_.options.credit_bytes / 2 / wire::BlockHead::unit_bytes))),
      strategy_(std::move(strategy)) {}

Engine::~Engine() {
  cancel_everything();
  for (const Event& event : events_) {
    if (event.core != nullptr) event.core->drop();
  }
  RequestCore::free_orphans();
}

void Engine::add_transport(std::unique_ptr<Transport> transport) {
  if (transports_.empty()) busiest_ = transport.get();
  ports_.emplace(transport.get(), Port{});
  polled_.push_back({transport.get(), transport->capabilities().poll_is_costly});
  transports_.push_back(std::move(transport));
}

Peer& Engine::make_peer(Rank rank) {
  auto& peer = peers_[rank.value()];
  if (!peer) {
    peer = std::make_unique<Peer>(rank, strategy_->order());
    peer->head.fences_passed = started_up_to();
    ++statistics_.peers;
  }
  return *peer;
}

const PeerCard* Engine::card_of(Rank rank) {
  if (context_.directory == nullptr) return nullptr;
  const auto known = cards_.find(rank.value());
  if (known != cards_.end()) return &known->second;
  auto card = context_.directory->lookup(rank);
  if (!card) {
    context_.log->error("rank {} cannot find rank {}: {}", context_.rank.value(), rank.value(), card.error().message);
    return nullptr;
  }
  return &cards_.emplace(rank.value(), std::move(card).value()).first->second;
}

Transport* Engine::transport_to(Rank rank) {
  Peer* peer = peer_for(rank);
  return peer != nullptr ? peer->transport : nullptr;
}

/// The first transport, in the order of preference, that reaches the peer. Looked for once.
bool Engine::choose_transport(Peer& peer) {
  if (peer.transport == nullptr && !peer.unreachable) peer.unreachable = !find_transport(peer);
  return peer.transport != nullptr;
}

bool Engine::find_transport(Peer& peer) {
  const PeerCard* card = card_of(peer.rank);
  if (card == nullptr) return false;
  if (card->wire_version != wire::version) {
    context_.log->error("rank {} runs Tandem {} with wire format {}, rank {} has wire format {}: install one version everywhere",
                       peer.rank.value(), card->version, card->wire_version, context_.rank.value(), wire::version);
    return false;
  }
  for (const auto& transport : transports_) {
    for (const auto& [name, bytes] : card->transports) {
      if (name == transport->name() && transport->reaches(peer.rank, bytes)) {
        use_transport(peer, *transport);
        return true;
      }
    }
  }
  std::string ours, theirs;
  for (const auto& transport : transports_) ours += fmt::format("{}{}", ours.empty() ? "" : ", ", transport->name());
  for (const auto& [name, bytes] : card->transports) theirs += fmt::format("{}{}", theirs.empty() ? "" : ", ", name);
  context_.log->error("rank {} has no transport that reaches rank {} on {}: it has {}, that rank has {} (mpi reaches ranks that "
                     "mpirun has started); see option comm.transports",
                     context_.rank.value(), peer.rank.value(), card->host_name, ours.empty() ? "none" : ours,
                     theirs.empty() ? "none" : theirs);
  return false;
}

void Engine::use_transport(Peer& peer, Transport& transport) {
  peer.transport = &transport;
  peer.port = &ports_.find(&transport)->second;
  const Capabilities& able = transport.capabilities();
  peer.rail_states.resize(std::max(1u, able.rails));
  for (RailState& state : peer.rail_states) state = RailState{.bytes_per_ns = able.bytes_per_ns, .latency_ns = able.latency_ns};
  peer.bytes_per_ns = able.bytes_per_ns;
  peer.latency_ns = able.latency_ns;
}

Peer* Engine::find_peer(Rank rank) {
  Peer& peer = make_peer(rank);
  if (rank != context_.rank && !peer.dead) {
    if (!choose_transport(peer)) {
      mark_dirty(peer);  // what else waits for it ends there: whoever posts now is told at once
      return nullptr;
    }
    connect_rails(peer);
  }
  recent_peer_ = &peer;
  return &peer;
}

/// Makes the links on which we send.
void Engine::connect_rails(Peer& peer) {
  if (!peer.rails.empty() || peer.dead) return;
  const PeerCard* card = card_of(peer.rank);
  std::string_view bytes;
  if (card != nullptr) {
    for (const auto& [name, text] : card->transports) {
      if (name == peer.transport->name()) bytes = text;
    }
  }
  for (unsigned rail = 0; rail < peer.rail_states.size(); ++rail) {
    peer.rails.push_back(&rail_of(peer.transport->connect(peer.rank, bytes, rail)));
  }
  peer.at_once_below = at_once_below(peer);
}

Rail& Engine::make_rail(Link& link) {
  Peer& peer = make_peer(link.peer());
  // Of a peer that speaks first we learn the transport here.
  if (peer.transport == nullptr && polling_ != nullptr) use_transport(peer, *polling_);
  auto rail = std::make_unique<Rail>();
  rail->peer = &peer;
  rail->link = &link;
  link.owner = rail.get();
  peer.all_rails.push_back(std::move(rail));
  return *peer.all_rails.back();
}

bool Engine::same_host(Rank a, Rank b) {
  if (a == b) return true;
  const PeerCard* first = card_of(a);
  if (first == nullptr) return false;
  const std::string host = first->host;  // the next look-up may move the cards
  const PeerCard* second = card_of(b);
  return second != nullptr && second->host == host;
}

std::int64_t Engine::step(std::int64_t now_ns) {
  now_ns_ = now_ns;
  unsigned events = 0;
  if (work_left_ > 0) [[unlikely]] broadcasts_.forgotten.clear();
  ++steps_;
  for (const Polled& polled : polled_) {
    // A poll that costs a system call delays those that do not; it is done now and then, unless its transport is the busy one.
    if (polled.costly && busiest_ != polled.transport && steps_ % kStepsPerCostlyPoll != 0) continue;
    const unsigned told = poll(*polled.transport, now_ns);
    if (told > 0) busiest_ = polled.transport;
    events += told;
  }
  last_events_ = events;
  if (work_left_ > 0) [[unlikely]] return do_what_is_left(now_ns, events > 0);
  return events > 0 ? now_ns : base::kNever;
}

/// Starts broadcasts whose time has come, sends what was posted meanwhile, and copies a piece. The rest of `step`.
std::int64_t Engine::do_what_is_left(std::int64_t now_ns, bool events) {
  if (!draining_.empty()) check_draining(now_ns);
  if (!paced_peers_.empty()) check_pacers(now_ns);
  if (!broadcasts_.unstarted.empty()) start_waiting_broadcasts();
  const bool copying = copies();
  if (copying) {
    flush_offers();  // others shall not wait for it
    copy_some();
  }
  if (busy()) flush_offers();
  if (events || copying) return now_ns;
  return waits_for_time() ? due_ns(now_ns) : base::kNever;
}

std::int64_t Engine::due_ns(std::int64_t now_ns) const noexcept {
  std::int64_t next = base::kNever;
  for (Transport* transport : draining_) {
    next = std::min(next, std::max<std::int64_t>(0, ports_.find(transport)->second.rate.look_ns()));
  }
  for (const Peer* peer : paced_peers_) next = std::min(next, peer->port->look_ns);
  for (const Broadcast* broadcast : broadcasts_.unstarted) next = std::min(next, due_ns(*broadcast, now_ns));
  return next;
}

inline unsigned Engine::poll(Transport& transport, std::int64_t now_ns) {
  polling_ = &transport;
  const unsigned events = transport.poll(now_ns);
  polling_ = nullptr;
  if (work_left_ > 0) [[unlikely]] report_departures();
  return events;
}

void Engine::report_departures() {
  for (Peer* peer : departed_) {
    if (peer->transport != nullptr) peer->transport->peer_left(peer->rank);
  }
  departed_.clear();
}

void Engine::hurry_transports() {
  for (const auto& transport : transports_) transport->hurry();
}

/// Connects to those that we have not sent to before, and forms packets for those that have something new to send.
void Engine::pump_dirty() {
  while (!dirty_.empty()) {
    Peer& peer = *dirty_.back();
    dirty_.pop_back();
    peer.dirty = false;
    if (peer.dead || peer.rank == context_.rank) continue;
    if (!choose_transport(peer)) {
      peer_failed(peer.rank, "no transport reaches it");
      continue;
    }
    connect_rails(peer);
    if (!peer.queue.idle()) pump(peer);
    if (head_is_due(peer)) send_head(peer);
  }
}

namespace {

/// What all engines of the process share.
template <class Act>
void for_each_recycled(Act act) {
  act.template operator()<SentCore>();
  act.template operator()<SendCore>();
  act.template operator()<ReceiveCore>();
  act.template operator()<Envelope>();
  act.template operator()<OutgoingStream>();
  act.template operator()<Incoming>();
  act.template operator()<ControlItem>();
  act.template operator()<DeferredSend>();
  act.template operator()<Want>();
}

}  // namespace

std::size_t Engine::spare_bytes() const noexcept {
  std::size_t bytes = matcher_.spare_bytes();
  for_each_recycled([&bytes]<class T>() { bytes += T::spare_bytes(); });
  return bytes;
}

void Engine::trim_requests() noexcept {
  for_each_recycled([]<class T>() { T::trim(); });
}

// ---- How requests end.

[[gnu::noinline]] void Engine::keep_notify(RequestCore& core, const Callbacks& callbacks, CompletionQueue* queue,
                                           std::uint64_t user) {
  Extra& extra = core.needed_extra();
  extra.callbacks = callbacks;
  extra.queue = queue;
  extra.user = user;
  core.notifies = true;
}

[[gnu::noinline]] void Engine::add_event(RequestCore& core, CompletionQueue::Event what) {
  core.retain();
  events_.push_back(Event{.what = what, .core = &core});
}

void Engine::finish_send(RequestCore& core, Ending ending, Rank culprit) {
  core.end_by(ending, culprit);
  if (core.kind == RequestCore::Kind::send && static_cast<SendCore&>(core).broadcast != nullptr) {
    Broadcast* broadcast = std::exchange(static_cast<SendCore&>(core).broadcast, nullptr);
    core.request = 0;  // the broadcast's, which may go on
    --broadcast->plain_pending;
    maybe_released(*broadcast);
  }
  end(core, ending == Ending::done ? CompletionQueue::Event::released : CompletionQueue::Event::failed);
}

void Engine::mark_arrived(ReceiveCore& core, Ending ending) {
  core.ending = ending;
  ++statistics_.messages_received;
  trace_.arrived(core);
  core.mark_arrived();
  notify(core, ending == Ending::done ? CompletionQueue::Event::arrived : CompletionQueue::Event::failed);
}

void Engine::release(RequestCore& core) {
  end(core, core.ending == Ending::done ? std::optional(CompletionQueue::Event::released) : std::nullopt);
}

void Engine::fail_receive(ReceiveCore& core, Ending ending, Rank culprit) {
  core.end_by(ending, culprit);
  end(core, CompletionQueue::Event::failed);
}

void Engine::end(RequestCore& core, std::optional<CompletionQueue::Event> what) {
  --outstanding_;
  trace_.ended(core);
  const bool counted = core.counted();
  core.end();
  if (!counted) return;
  if (what) notify(core, *what);
  core.drop();
}

bool Engine::cancel(RequestCore& core) {
  if (core.kind == RequestCore::Kind::receive) {
    auto& receive = static_cast<ReceiveCore&>(core);
    if (!matcher_.cancel(receive)) return false;
    fail_receive(receive, Ending::cancelled, Rank{0});
    return true;
  }
  if (core.kind == RequestCore::Kind::send) {
    auto& send = static_cast<SendCore&>(core);
    if (send.held != nullptr) {
      drop_deferred(send);
      finish_send(send, Ending::cancelled);
      return true;
    }
    if (send.stage_now() != 0 || !send.queued()) return false;
    send.peer->queue.remove(send);
    if (send.stream != nullptr) end_stream(*std::exchange(send.stream, nullptr));
    finish_send(send, Ending::cancelled);
    return true;
  }
  if (core.kind == RequestCore::Kind::sent) return false;
  return cancel_broadcast(static_cast<McastCore&>(core));
}

// ---- Leaving.

bool Engine::pending_for_peers() const noexcept {
  if (!broadcasts_.all.empty() || !broadcasts_.unstarted.empty()) {
    for (const auto& [name, broadcast] : broadcasts_.all) {
      if (pending_below(*broadcast)) return true;
    }
  }
  for (const auto& [rank, peer] : peers_) {
    if (peer->dead || peer->left) continue;
    if (!peer->queue.idle() || (peer->deferred != nullptr && !peer->deferred->empty())) return true;
    if (peer->shared != nullptr) return true;  // the peer may be writing into a receive's memory
    // Streams of broadcasts were counted above.
    bool sends = false;
    peer->outgoing.for_each([&sends](const OutgoingStream& stream) { sends |= stream.send != nullptr; });
    if (sends) return true;
    for (const auto& rail : peer->all_rails) {
      if (!peer->dead && posted_on(*rail) > 0) return true;
    }
  }
  return false;
}

void Engine::say_goodbye() {
  if (std::exchange(leaving_, true)) return;
  for (const auto& [rank, peer] : peers_) {
    if (!peer->dead && peer->transport != nullptr && !peer->goodbye_answered) post_control(*peer, wire::Goodbye{});
  }
}

bool Engine::all_answered_goodbye() const noexcept {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    const Peer& peer = *entry.second;
    return peer.dead || peer.left || peer.transport == nullptr || peer.goodbye_answered;
  });
}

void Engine::abandon() {
  for (const auto& [rank, peer] : peers_) {
    if (!peer->dead && peer->transport != nullptr) peer->transport->disconnect(peer->rank);
  }
  // Handlers that are being asked about a message learn that it will not come.
  for (Envelope* envelope : asked_) envelope->lost = true;
  end_everything();
}

void Engine::cancel_everything() {
  end_everything();
  for (Envelope* envelope : asked_) delete envelope;
  asked_.clear();
}

void Engine::end_everything() {
  for (PostedReceive* posted : matcher_.extract_all_posted()) {
    fail_receive(static_cast<ReceiveCore&>(*posted), Ending::cancelled, Rank{0});
  }
  for (const auto& [rank, peer] : peers_) {
    if (!peer->dead) fail_peer(*peer, Ending::cancelled);
  }
  for (ArrivedEnvelope* envelope : matcher_.extract_all_kept()) discard(static_cast<Envelope*>(envelope));
  drop_broadcasts();
}

}  // namespace tandem::comm::internal
