// tandem/comm/engine/engine.cpp: the steps of an engine, and the records that arrive.
#include "tandem/comm/engine/engine.hpp"

#include "tandem/base/driver.hpp"

#include <algorithm>
#include <cstring>

namespace tandem::comm::internal {
namespace {

constexpr std::uint64_t kStepsPerCostlyPoll = 16;
constexpr std::uint64_t kStepsPerAudit = 8;
/// A rail has room for one payload that lands. Each transport keeps to that; this check holds for all of them.
constexpr const char* kInterleaved = "a packet within the payload of the one before it";

}  // namespace

Engine::Engine(EngineContext context, std::unique_ptr<Strategy> strategy)
    : parts_(std::move(context), std::move(strategy)) {}

Engine::~Engine() {
  stop_lookups();
  parts_.departures.cancel_everything();
  for (const Event& event : events()) {
    if (event.core != nullptr) event.core->drop();
  }
  RequestCore::free_orphans();
}

void Engine::add_transport(std::unique_ptr<Transport> transport) {
  if (polled_.empty()) busiest_ = transport.get();
  polled_.push_back({transport.get(), transport->capabilities().poll_is_costly});
  parts_.peers.add_transport(std::move(transport));
}

std::int64_t Engine::step(std::int64_t now_ns) {
  TANDEM_AUDIT_ASSERT(steps_ % kStepsPerAudit != 0 || check_invariants());
  unsigned events = 0;
  if (parts_.work_left > 0) [[unlikely]] parts_.broadcasts.forgotten.clear();
  ++steps_;
  for (const Polled& polled : polled_) {
    // A poll that costs a system call delays those that do not, so it is made now and then, unless its transport is the
    // busy one.
    if (polled.costly && busiest_ != polled.transport && steps_ % kStepsPerCostlyPoll != 0) continue;
    const unsigned reported = poll(*polled.transport, now_ns);
    if (reported > 0) busiest_ = polled.transport;
    events += reported;
  }
  last_events_ = events;
  if (parts_.work_left > 0) [[unlikely]] return do_what_is_left(now_ns, events > 0);
  return events > 0 ? now_ns : base::kNever;
}

/// The rest of `step`: starts broadcasts whose time has come, sends what was posted meanwhile, and copies a piece.
std::int64_t Engine::do_what_is_left(std::int64_t now_ns, bool events) {
  if (parts_.pacing.waits_for_time()) parts_.pacing.step(now_ns);
  if (!parts_.broadcasts.held.empty()) parts_.root.start_waiting_broadcasts();
  const bool copying = copies();
  if (copying) {
    parts_.packets.flush();  // others shall not wait for it
    parts_.incoming.copy_some();
    parts_.outgoing.copy_some();
  }
  if (busy()) parts_.packets.flush();
  if (events || copying) return now_ns;
  return waits_for_time() ? due_ns() : base::kNever;
}

inline unsigned Engine::poll(Transport& transport, std::int64_t now_ns) {
  parts_.peers.set_polled(&transport);
  const unsigned events = transport.poll(now_ns);
  parts_.peers.set_polled(nullptr);
  if (parts_.work_left > 0) [[unlikely]] parts_.departures.report_departures();
  return events;
}

void Engine::log_callback_failure(std::string_view what) const noexcept {
  try {
    parts_.context.log->error("rank {}: a callback threw, and the next call that waits will throw it: {}",
                              parts_.context.rank.value(), what);
  } catch (...) {  // no memory for the line
  }
}

void Engine::hurry_transports() {
  for (const auto& transport : transports()) transport->hurry();
}

namespace {

/// Calls `act` for each type whose freed objects all engines of the process share.
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
  std::size_t bytes = parts_.arrivals.matcher().spare_bytes();
  for_each_recycled([&bytes]<class T>() { bytes += T::spare_bytes(); });
  return bytes;
}

void Engine::trim_requests() noexcept {
  for_each_recycled([]<class T>() { T::trim(); });
}

RequestCore* Engine::await_message(ReceiveCore& core) {
  parts_.completions.begin();
  parts_.arrivals.await_message(core);
  if (core.stage_now() != 0) return &core;
  if (parts_.deferral.any_peer_defers()) parts_.deferral.want_from_all(core.pattern);
  Peer* const peer = parts_.peers.peer_for(core.pattern.source);
  if (peer == nullptr || peer->dead || peer->left) parts_.arrivals.fail_posted(core, peer);
  return &core;
}

bool Engine::cancel(RequestCore& core) {
  if (core.kind == RequestCore::Kind::receive) {
    auto& receive = static_cast<ReceiveCore&>(core);
    if (!parts_.arrivals.take_back(receive)) return false;
    parts_.completions.fail_receive(receive, Ending::cancelled, Rank{0});
    return true;
  }
  if (core.kind == RequestCore::Kind::send) {
    auto& send = static_cast<SendCore&>(core);
    if (send.held != nullptr) {
      parts_.deferral.drop_deferred(send);
      parts_.completions.end_send(send, Ending::cancelled);
      return true;
    }
    if (send.stage_now() != 0 || !send.queued()) return false;
    send.peer->queue.remove(send);
    if (send.stream != nullptr) parts_.outgoing.end_stream(*std::exchange(send.stream, nullptr));
    parts_.completions.end_send(send, Ending::cancelled);
    return true;
  }
  if (core.kind == RequestCore::Kind::sent) return false;
  return parts_.root.cancel_broadcast(static_cast<McastCore&>(core));
}

inline void Engine::after_arrival(Peer& peer) {
  if (!parts_.broadcasts.roots.empty()) [[unlikely]] parts_.recipient.settle(peer.rank);
  if (parts_.peers.head_is_due(peer)) [[unlikely]] parts_.peers.mark_dirty(peer);
}

Landing Engine::arrived(Link& link, std::span<const std::byte> control, std::size_t payload_bytes) {
  Landing landing;
  if (payload_bytes == 0) {
    landing.malformed = arrived_whole(link, control);
    return landing;
  }
  Rail& rail = parts_.peers.rail_of(link);
  ++parts_.completions.statistics.packets_received;
  parts_.completions.trace.packet_received(rail.peer->rank, control.size() + payload_bytes);
  if (rail.peer->dead) {
    rail.landing.kind = LandingPlace::Kind::drop;
    return landing;
  }
  if (rail.landing.kind != LandingPlace::Kind::none) [[unlikely]] {
    landing.malformed = kInterleaved;
    return landing;
  }
  rail.landing.pieces.clear();
  landing.malformed = take_block(rail, control, payload_bytes);
  if (landing.malformed == nullptr) {
    if (rail.landing.kind == LandingPlace::Kind::none) landing.malformed = "a payload without a record";
    rail.landing.bytes = payload_bytes;
    landing.pieces = rail.landing.pieces;
    if (rail.landing.kind == LandingPlace::Kind::incoming) {
      const Incoming& incoming = *rail.landing.incoming;
      landing.message_bytes = incoming.strand != nullptr ? incoming.strand->broadcast->bytes : incoming.length;
    }
  }
  after_arrival(*rail.peer);
  return landing;
}

const char* Engine::arrived_whole(Link& link, std::span<const std::byte> control) {
  Rail& rail = parts_.peers.rail_of(link);
  Peer& peer = *rail.peer;
  ++parts_.completions.statistics.packets_received;
  parts_.completions.trace.packet_received(peer.rank, control.size());
  if (peer.dead) [[unlikely]] return nullptr;
  const char* malformed = nullptr;
  const std::uint64_t first = control.size() < wire::kBeforeData ? 0 : wire::first_word(control);
  if (wire::holds_one_plain_message(control, first)) [[likely]] {
    take_head(rail, control.data());
    malformed = parts_.arrivals.take_plain_message(rail, peer, control, first);
  } else {
    malformed = rail.landing.kind == LandingPlace::Kind::none ? take_block(rail, control, 0) : kInterleaved;
  }
  after_arrival(peer);
  return malformed;
}

const char* Engine::take_block(Rail& rail, std::span<const std::byte> control, std::size_t payload_bytes) {
  wire::Reader reader(control);
  if (reader.get_bytes(sizeof(wire::BlockHead)).empty()) return "a block shorter than its head";
  take_head(rail, control.data());
  while (!reader.at_end()) {
    const wire::Prefix prefix = reader.peek();
    const char* wrong = prefix.kind == wire::Kind::eager ? parts_.arrivals.take_eager(rail, reader, payload_bytes)
                                                         : take_other(rail, reader, prefix.kind, payload_bytes);
    if (!reader.ok()) return "a block that ends inside a record";
    if (wrong != nullptr) return wrong;
  }
  return nullptr;
}

/// Takes any record but an eager message.
const char* Engine::take_other(Rail& rail, wire::Reader& reader, wire::Kind kind, std::size_t payload_bytes) {
  Peer& peer = *rail.peer;
  switch (kind) {
    case wire::Kind::eager: break;
    case wire::Kind::announce: return parts_.arrivals.take_announce(rail, reader, payload_bytes);
    case wire::Kind::grant: return parts_.outgoing.take_grant(peer, reader.get<wire::Grant>());
    case wire::Kind::data: return parts_.incoming.take_data(rail, reader.get<wire::Data>(), payload_bytes);
    case wire::Kind::finish: return parts_.outgoing.take_finish(peer, reader.get<wire::Finish>());
    case wire::Kind::share: return parts_.outgoing.take_share(rail, reader.get<wire::Share>());
    case wire::Kind::shared: return parts_.incoming.take_shared(peer, reader.get<wire::Shared>());
    case wire::Kind::mcast: return parts_.recipient.take_mcast(rail, reader, payload_bytes);
    case wire::Kind::mcast_done:
    case wire::Kind::mcast_decline: return parts_.children.take_note(peer, reader.get<wire::McastNote>());
    case wire::Kind::mcast_lost: return parts_.recipient.take_lost(peer, reader.get<wire::McastLost>());
    case wire::Kind::goodbye:
    case wire::Kind::goodbye_answered: return parts_.departures.take_goodbye(peer, reader.get<wire::Goodbye>());
    case wire::Kind::defer: return parts_.deferral.take_defer(peer, reader.get<wire::Defer>());
    case wire::Kind::want: return parts_.deferral.take_want(peer, reader.get<wire::Want>());
  }
  return "a record of an unknown kind";
}

/// Reads the head of a block. Blocks of different rails overtake each other; what an older one says is known. All four
/// counters at once take fewer instructions, without a branch for each.
[[gnu::always_inline]] inline void Engine::take_head(const Rail& rail, const std::byte* head) {
  using Counters [[gnu::vector_size(sizeof(wire::BlockHead))]] = std::uint32_t;
  using Differences [[gnu::vector_size(sizeof(wire::BlockHead))]] = std::int32_t;
  wire::BlockHead& heard = rail.peer->head_received;
  const std::uint32_t fences_passed = heard.fences_passed;
  Counters received, known;
  std::memcpy(&received, head, sizeof received);
  std::memcpy(&known, &heard, sizeof known);
  known = reinterpret_cast<Differences>(received - known) > 0 ? received : known;
  std::memcpy(static_cast<void*>(&heard), &known, sizeof known);
  if (rail.link->rail() != 0) [[unlikely]] heard.fences_passed = fences_passed;  // these numbers are of rail 0
}

}  // namespace tandem::comm::internal
