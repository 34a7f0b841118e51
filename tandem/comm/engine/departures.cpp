// tandem/comm/engine/departures.cpp: what a peer's death, or its leaving, ends; and how this rank leaves.
#include <algorithm>

#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {

Departures::Departures(EngineParts& parts)
    : context_(parts.context),
      broadcasts_(parts.broadcasts),
      completions_(parts.completions),
      peers_(parts.peers),
      pacing_(parts.pacing),
      queues_(parts.queues),
      deferral_(parts.deferral),
      outgoing_(parts.outgoing),
      incoming_(parts.incoming),
      arrivals_(parts.arrivals),
      children_(parts.children),
      recipient_(parts.recipient),
      departed_(parts.work_left) {}

void Departures::report_departures() {
  for (Peer* peer : departed_) {
    if (peer->transport != nullptr) peer->transport->peer_left(peer->rank);
  }
  departed_.clear();
}

bool Departures::pending_for_peers() const noexcept {
  if (!broadcasts_.all.empty() || !broadcasts_.held.empty()) {
    for (const auto& [name, broadcast] : broadcasts_.all) {
      if (pending_below(*broadcast)) return true;
    }
  }
  for (const auto& [rank, peer] : peers_.all()) {
    if (peer->dead || peer->left) continue;
    if (!peer->queue.idle() || (peer->deferred != nullptr && !peer->deferred->empty())) return true;
    if (peer->shared != nullptr) return true;  // the peer may be writing into a receive's memory
    // Streams of broadcasts were counted above.
    bool sends = false;
    peer->outgoing.for_each([&sends](const OutgoingStream& stream) { sends |= stream.send != nullptr; });
    if (sends) return true;
    for (const auto& rail : peer->all_rails) {
      if (rail->is_reading()) return true;
    }
  }
  return false;
}

void Departures::say_goodbye() {
  if (peers_.leave()) return;
  broadcasts_.held.look_at_all();
  for (const auto& [rank, peer] : peers_.all()) {
    if (!peer->dead && Peers::has_transport(*peer) && !peer->goodbye_answered)
      queues_.post_control(*peer, wire::Goodbye{});
  }
}

bool Departures::all_answered_goodbye() const noexcept {
  return std::all_of(peers_.all().begin(), peers_.all().end(), [](const auto& entry) {
    const Peer& peer = *entry.second;
    return peer.dead || peer.left || !Peers::has_transport(peer) || peer.goodbye_answered;
  });
}

void Departures::abandon() {
  peers_.give_up_on_strangers();
  for (const auto& [rank, peer] : peers_.all()) {
    if (!peer->dead && peer->transport != nullptr) peer->transport->disconnect(peer->rank);
  }
  // Handlers that are being asked about a message learn that it will not come.
  arrivals_.lose_asked();
  end_everything();
}

void Departures::cancel_everything() {
  end_everything();
  arrivals_.drop_asked();
}

void Departures::end_everything() {
  for (PostedReceive* posted : arrivals_.matcher().extract_all_posted()) {
    completions_.fail_receive(static_cast<ReceiveCore&>(*posted), Ending::cancelled, Rank{0});
  }
  for (ReceiveCore* core : arrivals_.extract_awaiting({})) completions_.fail_receive(*core, Ending::cancelled, Rank{0});
  for (const auto& [rank, peer] : peers_.all()) {
    if (!peer->dead) fail_peer(*peer, Ending::cancelled);
  }
  for (ArrivedEnvelope* envelope : arrivals_.matcher().extract_all_kept())
    arrivals_.discard(static_cast<Envelope*>(envelope));
  drop_broadcasts();
}

const char* Departures::take_goodbye(Peer& peer, const wire::Goodbye& goodbye) {
  departed_.push_back(&peer);
  // Once we have answered, nothing is written into the peer's memory any more.
  outgoing_.stop_pushing_to(peer);
  if (goodbye.prefix.kind == wire::Kind::goodbye_answered) {
    peer.goodbye_answered = true;
    return nullptr;
  }
  wire::Goodbye answer;
  answer.prefix.kind = wire::Kind::goodbye_answered;
  queues_.post_control(peer, answer);
  if (!std::exchange(peer.left, true)) peer_has_left(peer);
  return nullptr;
}

void Departures::peer_failed(Rank rank, std::string_view reason) {
  Peer& peer = peers_.make_peer(rank);
  if (peer.dead) return;
  // The peer said goodbye, and is gone now; or we did, and it has not waited to answer.
  if (peer.left || peers_.leaving()) {
    fail_peer(peer, Ending::peer_left);
    return fail_broadcasts(rank);
  }
  context_.log->info("rank {}: rank {} is dead: {}", context_.rank.value(), rank.value(), reason);
  fail_peer(peer, Ending::peer_dead);
  fail_broadcasts(rank);
  if (completions_.on_death) {
    completions_.call_later([this, rank, why = std::string(reason)] { completions_.on_death(rank, why); });
  }
}

/// Notes a new link, so that its peer gets our goodbye, too.
void Departures::opened(Link& link) {
  Peer& peer = *peers_.rail_of(link).peer;
  if (peers_.leaving() && !peer.dead) queues_.post_control(peer, wire::Goodbye{});
}

void Departures::peer_needs_other_transport(Rank rank, std::string_view reason) {
  Peer& peer = peers_.make_peer(rank);
  if (peer.dead || peer.left || peers_.leaving() || !peers_.change_transport(peer))
    return peer_unreachable(rank, reason);
  context_.log->warn("rank {} reaches rank {} by {} instead of {}: {}", context_.rank.value(), rank.value(),
                     peer.transport->name(), peers_.polled()->name(), reason);
}

/// Ends a peer that cannot be reached. When nothing of it is needed, it does not matter whether it left or died, and
/// nobody is told; a later use of it finds it dead. A broadcast whose root is out of reach is needed.
void Departures::peer_unreachable(Rank rank, std::string_view reason) {
  Peer& peer = peers_.make_peer(rank);
  if (peer.dead) return;
  if (waits_for(peer) || peer.left || peers_.leaving()) return peer_failed(rank, reason);
  fail_peer(peer, Ending::peer_dead);
  fail_broadcasts(rank);
}

bool Departures::waits_for(const Peer& peer) const {
  const auto needs = [&](const auto& entry) {
    return entry.second->root == peer.rank && recipient_.orphaned(*entry.second);
  };
  return !peer.queue.idle() || peer.deferred != nullptr || !peer.outgoing.empty() || !peer.incoming.empty() ||
         arrivals_.matcher().waits_for(peer.rank) || arrivals_.awaits(peer.rank) ||
         std::ranges::any_of(broadcasts_.all, needs);
}

/// Notes that the peer said goodbye: it will send nothing more. What is queued for it goes out until it closes.
void Departures::peer_has_left(Peer& peer) {
  peer.at_once_below = peers_.at_once_below(peer);
  deferral_.forget_deferring_peer(peer);
  fail_posted_from(peer.rank, Ending::peer_left);
}

void Departures::fail_posted_from(Rank rank, Ending ending) {
  for (PostedReceive* posted : arrivals_.matcher().extract_posted_from(rank))
    completions_.fail_receive(static_cast<ReceiveCore&>(*posted), ending, rank);
  for (ReceiveCore* core : arrivals_.extract_awaiting(rank)) completions_.fail_receive(*core, ending, rank);
}

/// Ends everything that is under way with the peer.
void Departures::fail_peer(Peer& peer, Ending ending) {
  peer.dead = true;
  peer.at_once_below = peers_.at_once_below(peer);
  peers_.forget_recent(peer);
  fail_posted_from(peer.rank, ending);
  deferral_.forget_deferring_peer(peer);
  fail_landings(peer, ending);
  fail_outgoing(peer, ending);
  pacing_.note_backlog(peer);
  pacing_.note_ready_bulk(peer);
  for (Incoming* incoming : peer.incoming.all()) {
    if (incoming->strand != nullptr) incoming->strand->incoming = nullptr;
    ReceiveCore* core = incoming->receive;
    incoming_.end_incoming(*incoming);
    if (core != nullptr) completions_.fail_receive(*core, ending, peer.rank);
  }
  // Announced messages whose receive is not posted keep their place, so that this receive learns what happened.
  arrivals_.matcher().for_each_kept([&](ArrivedEnvelope& kept) {
    auto& envelope = static_cast<Envelope&>(kept);
    if (envelope.key.source == peer.rank) arrivals_.lose_envelope(envelope);
  });
  arrivals_.lose_asked(peer.rank);
  if (const auto root = broadcasts_.roots.find(peer.rank.value()); root != broadcasts_.roots.end()) {
    for (const RootState::Plain& waits : root->second.plain) arrivals_.lose_envelope(*waits.envelope);
  }
}

/// Fails payloads of the peer that were on their way into memory.
void Departures::fail_landings(Peer& peer, Ending ending) {
  for (const auto& rail : peer.all_rails) {
    LandingPlace& place = rail->landing;
    const auto kind = std::exchange(place.kind, LandingPlace::Kind::none);
    if (kind == LandingPlace::Kind::receive) completions_.fail_receive(*place.receive, ending, peer.rank);
    if (kind == LandingPlace::Kind::envelope && place.envelope->receive != nullptr) {
      Envelope* envelope = place.envelope;
      completions_.fail_receive(*envelope->receive, ending, peer.rank);
      delete envelope;
    }
    if (kind == LandingPlace::Kind::superseded) recipient_.superseded_landed(*place.strand);
    rail->blocked = true;  // for ever
  }
}

/// Fails what was queued for the peer, and what its rails were reading.
void Departures::fail_outgoing(Peer& peer, Ending ending) {
  for (SendCore* held; peer.deferred != nullptr && (held = peer.deferred->oldest()) != nullptr;) {
    deferral_.drop_deferred(*held);
    fail_send(*held, ending, peer.rank);
  }
  peer.deferred.reset();
  while (auto next = peer.queue.messages()) {
    SendItem* item = &*next;
    peer.queue.remove(*item);
    switch (static_cast<Item&>(*item).what) {
      case ItemKind::control: delete &static_cast<ControlItem&>(*item); break;
      case ItemKind::message: {
        auto& core = static_cast<SendCore&>(*item);
        if (core.stream == nullptr) fail_send(core, ending, peer.rank);
        break;  // else its stream fails, below
      }
      case ItemKind::stream:
      case ItemKind::offer: break;  // their child is lost, below
    }
  }
  std::vector<SendCore*> posted;
  for (const auto& rail : peer.all_rails) {
    for (PostedPacket& packet : rail->posted) {
      if (packet.send != nullptr) posted.push_back(packet.send);
      packet = PostedPacket{};
    }
    rail->posted.clear();
    rail->free_posted = UINT32_MAX;
  }
  for (SendCore* core : posted) fail_send(*core, ending, peer.rank);
  for (OutgoingStream* stream : peer.outgoing.all()) {
    stream->posted = 0;
    if (stream->send == nullptr) continue;  // a broadcast's: `lose_child` ends it
    SendCore& core = *stream->send;
    outgoing_.end_stream(*stream);
    core.stream = nullptr;
    fail_send(core, ending, peer.rank);
  }
}

void Departures::fail_send(SendCore& core, Ending ending, Rank rank) {
  if (core.broadcast != nullptr) note_dead_recipient(*core.broadcast, rank);
  outgoing_.finish_send(core, ending, rank);
}

/// Removes a dead rank from broadcasts, as child, parent or root.
void Departures::fail_broadcasts(Rank dead) {
  std::vector<Broadcast*> all;
  for (const auto& [name, broadcast] : broadcasts_.all) all.push_back(broadcast.get());
  for (Broadcast* broadcast : all) {
    if (broadcast->forgotten) continue;
    recipient_.orphan(*broadcast);
    std::vector<Child*> lost;
    for (unsigned i = 0; i < broadcast->strand_count; ++i) {
      for (const auto& child : broadcast->strands[i].children) {
        if (child->rank == dead) lost.push_back(child.get());
      }
    }
    for (Child* child : lost) {
      if (!child->acknowledged) {
        children_.lose_child(*child);
      } else {  // its rails do not read any more
        child->offer_posted = false;
        children_.child_progress(*child);
      }
    }
    // What was landing from the dead rank, or being read for it, does not delay the end of a lost broadcast any more.
    if (broadcast->lost) recipient_.lose(*broadcast, dead);
  }
}

void Departures::connect_to_roots() {
  for (const auto& [name, broadcast] : broadcasts_.all) {
    if (broadcast->root != context_.rank && pending_below(*broadcast)) peers_.connect_to(broadcast->root);
  }
}

/// Drops the broadcasts of an endpoint that ends or gives up: no rank will ask for them any more.
void Departures::drop_broadcasts() {
  for (const auto& [name, broadcast] : broadcasts_.all) {
    if (broadcast->receive != nullptr)
      completions_.fail_receive(*std::exchange(broadcast->receive, nullptr), Ending::cancelled, Rank{0});
    if (broadcast->request != nullptr) {
      broadcast->request->broadcast = nullptr;
      completions_.end_send(*std::exchange(broadcast->request, nullptr), Ending::cancelled);
    }
    for (Strand& strand : broadcast->strands) {
      for (const auto& child : strand.children) {
        if (child->stream != nullptr) queues_.drop_stream(*std::exchange(child->stream, nullptr));
      }
    }
  }
  broadcasts_.held.clear();
  broadcasts_.to_offer.clear();
  broadcasts_.unacknowledged.clear();
  broadcasts_.by_key.clear();
  broadcasts_.forward_bytes = 0;
  broadcasts_.all.clear();
  broadcasts_.forgotten.clear();
  for (auto& [rank, root] : broadcasts_.roots) {
    for (const RootState::Plain& waits : root.plain) delete waits.envelope;
  }
  broadcasts_.roots.clear();
}

/// Whether ranks below still need this rank.
bool Departures::pending_below(const Broadcast& broadcast) const noexcept {
  if (broadcast.root == context_.rank && !broadcast.started) return true;
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    for (const auto& child : broadcast.strands[i].children) {
      if (child->peer != nullptr && (child->peer->left || child->peer->dead)) continue;
      // When the root is dead, no rank waits for acknowledgements: what was sent is enough.
      const bool waits = peers_.is_dead(broadcast.root) ? !child->sent : !child->acknowledged;
      if (waits && !broadcast.lost) return true;
    }
  }
  return false;
}

}  // namespace tandem::comm::internal
