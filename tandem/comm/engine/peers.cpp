// tandem/comm/engine/peers.cpp: the peers of an engine, the transports that reach them, and the rails to them.
#include <algorithm>
#include <fmt/format.h>

#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {

Peers::Peers(EngineParts& parts, SendOrder order)
    : context_(parts.context),
      statistics_(parts.completions.statistics),
      broadcasts_(parts.broadcasts),
      due_messages_(std::max(1u, context_.options.credit_messages / 4)),
      due_units_(static_cast<std::uint32_t>(
          std::clamp<std::size_t>(context_.options.credit_bytes / 2 / wire::BlockHead::unit_bytes, 1, INT32_MAX))),
      order_(order),
      dirty_(parts.work_left),
      lookups_(context_.directory, [this](Rank rank, base::Result<PeerCard> card) {
        context_.with_lock([&] { learn(rank, std::move(card)); });
        context_.wake();  // a caller that waits may sleep, and steps the engine itself
      }) {
  ports_.emplace(&awaited_, Port{});
}

void Peers::add_transport(std::unique_ptr<Transport> transport) {
  ports_.emplace(transport.get(), Port{});
  transports_.push_back(std::move(transport));
}

Peer* Peers::take_dirty() noexcept {
  if (dirty_.empty()) return nullptr;
  Peer* const peer = dirty_.back();
  dirty_.pop_back();
  peer->dirty = false;
  return peer;
}

Peer& Peers::make_peer(Rank rank) {
  auto& peer = by_rank_[rank.value()];
  if (!peer) {
    peer = std::make_unique<Peer>(rank, order_);
    peer->allowed = Allowance::of(context_.options);
    peer->head.fences_passed = fences_on_wire(broadcasts_.started_up_to());
    peer->head_received.fences_passed = fences_on_wire(kFirstBroadcast - 1);
    peer->dead = given_up_ && rank != context_.rank;
    ++statistics_.peers;
  }
  return *peer;
}

const PeerCard* Peers::card_of(Rank rank) {
  if (know(rank) != Known::yes) return nullptr;
  const auto known = cards_.find(rank.value());
  return known != cards_.end() ? &known->second : nullptr;
}

/// Looks for the address of the rank, if there is one. `later`: it is being looked up, from now on or since earlier.
Peers::Known Peers::know(Rank rank) {
  if (context_.directory == nullptr) return Known::no;
  if (cards_.contains(rank.value())) return Known::yes;
  if (const auto asked = lookups_under_way_.find(rank.value()); asked != lookups_under_way_.end())
    return asked->second.failed ? Known::no : Known::later;
  if (auto card = context_.directory->lookup_now(rank)) {
    learn(rank, *std::move(card));
    return know(rank);
  }
  lookups_under_way_.emplace(rank.value(), Lookup{.since_ns = context_.now()});
  lookups_.ask(rank);
  return Known::later;
}

/// Takes the answer of the directory. A peer that waited for it is connected at the end of the step.
void Peers::learn(Rank rank, base::Result<PeerCard> card) {
  if (card) {
    cards_.emplace(rank.value(), std::move(card).value());
    lookups_under_way_.erase(rank.value());
  } else {
    context_.log->error("rank {} cannot find rank {}: {}", context_.rank.value(), rank.value(), card.error().message);
    lookups_under_way_[rank.value()].failed = true;
  }
  broadcasts_.held.look_at_all();  // those that wait for addresses
  Peer* const peer = find(rank);
  if (peer == nullptr || !std::exchange(peer->awaited, false) || peer->dead) return;
  peer->rails.clear();
  std::erase_if(peer->all_rails, [](const auto& rail) { return rail->awaited; });  // they have never taken anything
  forget_recent(*peer);
  peer->unreachable = !card;
  if (card && peer->transport == &awaited_) use_transport(*peer, nullptr);
  if (choose_transport(*peer)) connect_rails(*peer);
  mark_dirty(*peer);
}

/// Makes what is posted stay in the queue until the address is here.
void Peers::await(Peer& peer) {
  peer.awaited = true;
  if (peer.transport == nullptr) use_transport(peer, &awaited_);
  for (unsigned number = 0; number < awaited_.capabilities().rails; ++number) {
    Rail& rail = make_rail(awaited_.connect(peer.rank, "", number));
    rail.awaited = rail.blocked = true;
    peer.rails.push_back(&rail);
  }
  peer.at_once_below = at_once_below(peer);
}

bool Peers::waits_for_card(Rank rank) {
  return know(rank) == Known::later && context_.now() - lookups_under_way_.at(rank.value()).since_ns < kCardPatienceNs;
}

Transport* Peers::transport_to(Rank rank) {
  Peer* peer = peer_for(rank);
  return peer != nullptr ? peer->transport : nullptr;
}

/// Chooses the first transport, in order of preference, that reaches the peer, once.
bool Peers::choose_transport(Peer& peer) {
  if (peer.transport == nullptr && !peer.unreachable) {
    if (know(peer.rank) == Known::later) await(peer);
    else peer.unreachable = !find_transport(peer);
  }
  return peer.transport != nullptr && !peer.unreachable;
}

bool Peers::find_transport(Peer& peer) {
  const PeerCard* card = card_of(peer.rank);
  if (card == nullptr) return false;
  if (card->wire_version != wire::version) {
    context_.log->error(
        "rank {} runs Tandem {} with wire format {}, rank {} has wire format {}: install one version everywhere",
        peer.rank.value(), card->version, card->wire_version, context_.rank.value(), wire::version);
    return false;
  }
  for (const auto& transport : transports_) {
    if (std::ranges::find(peer.failed_transports, transport.get()) != peer.failed_transports.end()) continue;
    for (const auto& [name, bytes] : card->transports) {
      if (name == transport->name() && transport->reaches(peer.rank, bytes)) {
        use_transport(peer, transport.get());
        return true;
      }
    }
  }
  std::string ours, theirs;
  for (const auto& transport : transports_) ours += fmt::format("{}{}", ours.empty() ? "" : ", ", transport->name());
  for (const auto& [name, bytes] : card->transports) theirs += fmt::format("{}{}", theirs.empty() ? "" : ", ", name);
  context_.log->error(
      "rank {} has no transport that reaches rank {} on {}: it has {}, that rank has {} (mpi reaches ranks that "
      "mpirun has started); see option comm.transports",
      context_.rank.value(), peer.rank.value(), card->host_name, ours.empty() ? "none" : ours,
      theirs.empty() ? "none" : theirs);
  return false;
}

bool Peers::change_transport(Peer& peer) {
  peer.failed_transports.push_back(polling_);
  if (peer.transport != polling_) return peer.transport != nullptr;  // the peer has connected by another transport
  use_transport(peer, nullptr);
  peer.rails.clear();
  peer.unreachable = !find_transport(peer);
  if (!peer.unreachable) mark_dirty(peer);
  return !peer.unreachable;
}

/// Sets the transport. Null: none, until another one is known.
void Peers::use_transport(Peer& peer, Transport* transport) {
  Port* const port = transport != nullptr ? &ports_.find(transport)->second : nullptr;
  if (peer.backlogged) {
    --peer.port->backlogged;
    if (port != nullptr) ++port->backlogged;
    else peer.backlogged = false;
  }
  peer.transport = transport;
  peer.port = port;
  if (transport == nullptr) return;
  const Capabilities& able = transport->capabilities();
  peer.rail_states.resize(std::max(1u, able.rails));
  peer.bytes_per_ns = able.bytes_per_ns;
  peer.latency_ns = able.latency_ns;
  peer.known = nullptr;
  for (const KnownNetwork& network : context_.options.networks)
    if (network.transport == transport->name()) peer.known = &network;
  if (peer.known != nullptr) {
    peer.bytes_per_ns = peer.known->bytes_per_ns;
    peer.latency_ns = peer.known->latency_ns;
  }
  port->assumed_bytes_per_ns = peer.bytes_per_ns;
  for (RailState& state : peer.rail_states)
    state = RailState{.bytes_per_ns = peer.bytes_per_ns, .latency_ns = peer.latency_ns};
}

Peer* Peers::find_peer(Rank rank) {
  Peer& peer = make_peer(rank);
  if (rank != context_.rank && !peer.dead) {
    if (!choose_transport(peer)) {
      mark_dirty(peer);  // what else waits for the peer ends there; the caller's request ends at once
      return nullptr;
    }
    connect_rails(peer);
  }
  recent_peer_ = &peer;
  return &peer;
}

/// Makes the links for sending.
void Peers::connect_rails(Peer& peer) {
  if (!peer.rails.empty() || peer.dead) return;
  if (know(peer.rank) == Known::later) return await(peer);
  const PeerCard* card = card_of(peer.rank);
  std::string_view bytes;
  if (card != nullptr) {
    peer.allowed = Allowance::of(*card, context_.options);
    for (const auto& [name, text] : card->transports) {
      if (name == peer.transport->name()) bytes = text;
    }
  }
  for (unsigned rail = 0; rail < peer.rail_states.size(); ++rail) {
    peer.rails.push_back(&rail_of(peer.transport->connect(peer.rank, bytes, rail)));
  }
  peer.at_once_below = at_once_below(peer);
}

Rail& Peers::make_rail(Link& link) {
  Peer& peer = make_peer(link.peer());
  // The transport of a peer that speaks first becomes known here.
  if ((peer.transport == nullptr || peer.transport == &awaited_) && polling_ != nullptr) use_transport(peer, polling_);
  auto rail = std::make_unique<Rail>();
  rail->peer = &peer;
  rail->link = &link;
  link.owner = rail.get();
  peer.all_rails.push_back(std::move(rail));
  return *peer.all_rails.back();
}

std::vector<Rank> Peers::connected() const {
  std::vector<Rank> ranks;
  for (const auto& [rank, peer] : by_rank_) {
    if (has_transport(*peer) && !peer->all_rails.empty() && !peer->dead && !peer->left) ranks.push_back(peer->rank);
  }
  return ranks;
}

void Peers::mark_dirty(Peer& peer) {
  if (std::exchange(peer.dirty, true)) return;
  dirty_.push_back(&peer);
}

/// Whether a transfer of this size shows the network's rate: buffers on the way hide small ones.
bool Peers::shows_rate(const Peer& peer, std::uint64_t bytes) noexcept {
  return bytes >= std::min<std::uint64_t>(256 * 1024, 4 * peer.transport->capabilities().segment_bytes);
}

/// Averages the rate of transfers; recent ones count more.
void Peers::measure(Peer& peer, std::uint64_t bytes, std::int64_t since_ns) {
  if (!shows_rate(peer, bytes)) return;
  const std::int64_t took = context_.now_ns() - since_ns;
  if (took <= 0) return;
  const double rate = static_cast<double>(bytes) / static_cast<double>(took);
  peer.bytes_per_ns = peer.measured ? peer.bytes_per_ns * 0.75 + rate * 0.25 : rate;
  peer.measured = true;
}

bool Peers::is_dead(Rank rank) const noexcept {
  const auto peer = by_rank_.find(rank.value());
  return peer != by_rank_.end() ? peer->second->dead : given_up_ && rank != context_.rank;
}

/// Connects to a rank at the end of the step, since connections report deaths. May be called while polling.
void Peers::connect_to(Rank rank) { mark_dirty(make_peer(rank)); }

/// Messages up to this size, in bytes, are sent without an announcement.
std::size_t Peers::eager_limit(const Peer& peer) const noexcept {
  const Capabilities& able = peer.transport->capabilities();
  return context_.options.eager_bytes > 0 ? std::min(context_.options.eager_bytes, able.max_payload_bytes)
                                          : able.eager_bytes;
}

}  // namespace tandem::comm::internal
