// tandem/comm/engine/failure.cpp: what a peer's death, or its leaving, ends.
#include <algorithm>

#include "tandem/comm/engine/engine.hpp"

namespace tandem::comm::internal {

void Engine::peer_failed(Rank rank, std::string_view reason) {
  Peer& peer = make_peer(rank);
  if (peer.dead) return;
  // It said goodbye, and is gone now; or we did, and it has not waited to answer.
  if (peer.left || leaving_) {
    fail_peer(peer, Ending::peer_left);
    return fail_broadcasts(rank);
  }
  context_.log->info("rank {}: rank {} is dead: {}", context_.rank.value(), rank.value(), reason);
  fail_peer(peer, Ending::peer_dead);
  fail_broadcasts(rank);
  if (on_death) {
    events_.push_back(Event{.call = [this, rank, why = std::string(reason)] { on_death(rank, why); }});
  }
}

/// So that it is among those to whom we say goodbye.
void Engine::opened(Link& link) {
  Peer& peer = *rail_of(link).peer;
  if (leaving_ && !peer.dead) post_control(peer, wire::Goodbye{});
}

/// Who needs nothing of it need not know whether it left or died. A broadcast whose root is out of reach is needed.
void Engine::peer_unreachable(Rank rank, std::string_view reason) {
  Peer& peer = make_peer(rank);
  if (!waits_for(peer)) peer.left = true;
  peer_failed(rank, reason);
}

bool Engine::waits_for(const Peer& peer) const {
  const auto needs = [&](const auto& entry) { return entry.second->root == peer.rank && orphaned(*entry.second); };
  return !peer.queue.idle() || peer.deferred != nullptr || !peer.outgoing.empty() || !peer.incoming.empty() ||
         matcher_.waits_for(peer.rank) || std::ranges::any_of(broadcasts_.all, needs);
}

/// The peer said goodbye: it will send nothing more. What we still owe it goes out until it closes.
void Engine::peer_has_left(Peer& peer) {
  peer.at_once_below = at_once_below(peer);
  forget_deferring_peer(peer);
  for (PostedReceive* posted : matcher_.extract_posted_from(peer.rank)) {
    fail_receive(static_cast<ReceiveCore&>(*posted), Ending::peer_left, peer.rank);
  }
}

/// Ends everything that is under way with the peer.
void Engine::fail_peer(Peer& peer, Ending ending) {
  peer.dead = true;
  peer.at_once_below = at_once_below(peer);
  if (recent_peer_ == &peer) recent_peer_ = nullptr;
  for (PostedReceive* posted : matcher_.extract_posted_from(peer.rank)) {
    fail_receive(static_cast<ReceiveCore&>(*posted), ending, peer.rank);
  }
  forget_deferring_peer(peer);
  fail_landings(peer, ending);
  fail_outgoing(peer, ending);
  note_backlog(peer);
  note_ready_bulk(peer);
  for (Incoming* incoming : peer.incoming.all()) {
    if (incoming->strand != nullptr) incoming->strand->incoming = nullptr;
    ReceiveCore* core = incoming->receive;
    end_incoming(*incoming);
    if (core != nullptr) fail_receive(*core, ending, peer.rank);
  }
  // Announced messages whose receive is not posted keep their place, so that this receive learns what happened.
  matcher_.for_each_kept([&](ArrivedEnvelope& kept) {
    auto& envelope = static_cast<Envelope&>(kept);
    if (envelope.key.source == peer.rank) lose_envelope(envelope);
  });
  for (Envelope* envelope : asked_) {
    if (envelope->key.source == peer.rank) lose_envelope(*envelope);
  }
  if (const auto root = broadcasts_.roots.find(peer.rank.value()); root != broadcasts_.roots.end()) {
    for (Envelope* envelope : root->second.plain) lose_envelope(*envelope);
  }
}

/// The sender of a message is dead: what has not come will not come.
void Engine::lose_envelope(Envelope& envelope) {
  if (envelope.kind != Envelope::Kind::broadcast && !envelope.complete) envelope.lost = true;
}

/// Payloads that were on their way into memory.
void Engine::fail_landings(Peer& peer, Ending ending) {
  for (const auto& rail : peer.all_rails) {
    LandingPlace& place = rail->landing;
    const auto kind = std::exchange(place.kind, LandingPlace::Kind::none);
    if (kind == LandingPlace::Kind::receive) fail_receive(*place.receive, ending, peer.rank);
    if (kind == LandingPlace::Kind::envelope && place.envelope->receive != nullptr) {
      Envelope* envelope = place.envelope;
      fail_receive(*envelope->receive, ending, peer.rank);
      delete envelope;
    }
    rail->blocked = true;  // for ever
  }
}

/// What was queued for the peer, and what its rails were reading.
void Engine::fail_outgoing(Peer& peer, Ending ending) {
  for (SendCore* held; peer.deferred != nullptr && (held = peer.deferred->oldest()) != nullptr;) {
    drop_deferred(*held);
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
    end_stream(*stream);
    core.stream = nullptr;
    fail_send(core, ending, peer.rank);
  }
}

void Engine::fail_send(SendCore& core, Ending ending, Rank rank) {
  if (core.broadcast != nullptr) note_dead_recipient(*core.broadcast, rank);
  finish_send(core, ending, rank);
}

/// Broadcasts lose children, parents and roots.
void Engine::fail_broadcasts(Rank dead) {
  std::vector<Broadcast*> all;
  for (const auto& [name, broadcast] : broadcasts_.all) all.push_back(broadcast.get());
  for (Broadcast* broadcast : all) {
    if (broadcast->forgotten) continue;
    orphan(*broadcast);
    std::vector<Child*> lost;
    for (unsigned i = 0; i < broadcast->strand_count; ++i) {
      for (const auto& child : broadcast->strands[i].children) {
        if (child->rank == dead) lost.push_back(child.get());
      }
    }
    for (Child* child : lost) {
      if (!child->acknowledged) {
        lose_child(*child);
      } else {  // its rails do not read any more
        child->offer_posted = false;
        child_progress(*child);
      }
    }
    // What was landing from the dead rank, or being read for it, does not hold a lost one back any more.
    if (broadcast->lost) lose(*broadcast, dead);
  }
}

bool Engine::is_dead(Rank rank) const noexcept {
  const auto peer = peers_.find(rank.value());
  return peer != peers_.end() && peer->second->dead;
}

/// Somebody died above us, maybe. While the root lives, who is left above us finds out in time that nobody serves us; if there is
/// nobody left but the root, it is the root. Without it nobody may be left who has what is missing here.
void Engine::orphan(Broadcast& broadcast) {
  if (broadcast.root == context_.rank || broadcast.lost || !orphaned(broadcast)) return;
  if (is_dead(broadcast.root)) lose(broadcast, broadcast.root);
  else connect_to(broadcast.root);
}

/// Sees to it that there is a connection to a rank, since connections are what tells of deaths. Also while polling.
void Engine::connect_to(Rank rank) { mark_dirty(make_peer(rank)); }

void Engine::connect_to_roots() {
  for (const auto& [name, broadcast] : broadcasts_.all) {
    if (broadcast->root != context_.rank && pending_below(*broadcast)) connect_to(broadcast->root);
  }
}

/// The endpoint ends, or is given up: nobody will ask for these any more.
void Engine::drop_broadcasts() {
  for (const auto& [name, broadcast] : broadcasts_.all) {
    if (broadcast->receive != nullptr) fail_receive(*std::exchange(broadcast->receive, nullptr), Ending::cancelled, Rank{0});
    if (broadcast->request != nullptr) {
      broadcast->request->broadcast = nullptr;
      finish_send(*std::exchange(broadcast->request, nullptr), Ending::cancelled);
    }
    for (Strand& strand : broadcast->strands) {
      for (const auto& child : strand.children) {
        if (child->stream != nullptr) end_stream(*std::exchange(child->stream, nullptr));
      }
    }
  }
  broadcasts_.unstarted.clear();
  broadcasts_.to_offer.clear();
  broadcasts_.unacknowledged.clear();
  broadcasts_.by_key.clear();
  broadcasts_.forward_bytes = 0;
  broadcasts_.all.clear();
  broadcasts_.forgotten.clear();
  for (auto& [rank, root] : broadcasts_.roots) {
    for (Envelope* envelope : root.plain) delete envelope;
  }
  broadcasts_.roots.clear();
}

/// Whether leaving now would break a promise to somebody below.
bool Engine::pending_below(const Broadcast& broadcast) const noexcept {
  if (broadcast.root == context_.rank && !broadcast.started) return true;
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    for (const auto& child : broadcast.strands[i].children) {
      if (child->peer != nullptr && (child->peer->left || child->peer->dead)) continue;
      // Without a root there is nobody whom an acknowledgement would reach: what was sent is enough.
      const bool owed = is_dead(broadcast.root) ? !child->sent : !child->acknowledged;
      if (owed && !broadcast.lost) return true;
    }
  }
  return false;
}

std::size_t Engine::posted_on(const Rail& rail) noexcept {
  return static_cast<std::size_t>(std::count_if(rail.posted.begin(), rail.posted.end(), [](const PostedPacket& packet) {
    return packet.send != nullptr || packet.stream != nullptr || packet.child != nullptr;
  }));
}

}  // namespace tandem::comm::internal
