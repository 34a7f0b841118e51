// tandem/comm/engine/broadcast_ends.cpp: how broadcasts end at a recipient: arrived, released, acknowledged, forgotten;
// or lost.
#include <algorithm>
#include <utility>

#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {

void BroadcastRecipient::maybe_arrived(Broadcast& broadcast) {
  if (broadcast.delivered || broadcast.lost) return;
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    if (!broadcast.strands[i].complete) return;
  }
  broadcast.arrived = true;
  if (broadcast.memory == nullptr) {  // zero bytes
    broadcast.memory = &broadcast.own;
  }
  if (broadcast.receive == nullptr) return;
  ReceiveCore& core = *broadcast.receive;
  bool truncated = false;
  if (broadcast.library != nullptr) {
    if (core.owns_buffer) {
      broadcasts_.forward_bytes -= broadcast.library_bytes();
      core.keep_owned(std::move(broadcast.library));
      broadcast.given_away = true;
    } else {
      core.pieces.copy_in(0, {broadcast.library.get(), std::min<std::size_t>(broadcast.bytes, core.pieces.bytes())});
      truncated = broadcast.bytes > core.pieces.bytes();
    }
  }
  broadcast.delivered = true;
  for (unsigned i = 0; i < broadcast.strand_count; ++i) free_credit(broadcast.strands[i]);
  completions_.mark_arrived(core, truncated ? Ending::truncated : Ending::done);
  maybe_released(broadcast);
}

void BroadcastRecipient::child_advanced(const Child& child) {
  Broadcast& broadcast = *child.broadcast;
  if (child.sent) maybe_released(broadcast);
  if (!child.acknowledged) return;
  maybe_acknowledge(broadcast.strands[child.strand]);
  acknowledge_if_all(broadcast);
  maybe_forget(broadcast);
}

void BroadcastRecipient::maybe_released(Broadcast& broadcast) {
  if (broadcast.released) return;
  const bool sent = children_.all_sent(broadcast);
  if (broadcast.root == context_.rank) {
    if (!broadcast.started || broadcast.plain_pending > 0 || !sent) return;
    broadcast.released = true;
    McastCore& core = *std::exchange(broadcast.request, nullptr);
    core.broadcast = nullptr;
    const Ending uncancelled = broadcast.recipient_died ? Ending::peer_dead : Ending::done;
    completions_.end_send(core, broadcast.cancelled ? Ending::cancelled : uncancelled, broadcast.culprit);
    return maybe_forget(broadcast);
  }
  if (!broadcast.delivered) {
    if (broadcast.lost && sent) lose(broadcast, broadcast.culprit);
    return;
  }
  const bool reads_user = broadcast.library == nullptr;
  if (reads_user && !sent) return;
  if (broadcast.receive != nullptr) completions_.release(*std::exchange(broadcast.receive, nullptr));
  // Our own copy stays for the children that need it.
  if (!sent) return;
  broadcast.released = true;
  drop_library(broadcast);
  maybe_forget(broadcast);
}

void BroadcastRecipient::drop_library(Broadcast& broadcast) {
  if (broadcast.library != nullptr) broadcasts_.forward_bytes -= broadcast.library_bytes();
  broadcast.library = nullptr;
}

/// Acknowledges the strand to the parent once the whole subtree has it and its place in the order here is certain, or
/// once the whole subtree knows that the data will not come.
void BroadcastRecipient::maybe_acknowledge(Strand& strand) {
  Broadcast& broadcast = *strand.broadcast;
  const bool settled = broadcast.lost ? strand.known : strand.complete && broadcast.entered;
  if (strand.done_sent || !settled || strand.parent == nullptr) return;
  for (const auto& child : strand.children) {
    if (!child->acknowledged) return;
  }
  strand.done_sent = true;
  if (!strand.parent->dead) queues_.post_control(*strand.parent, wire::McastNote{.stream = strand.parent_stream});
  maybe_forget(broadcast);
}

void BroadcastRecipient::acknowledge_if_all(Broadcast& broadcast) {
  if (broadcast.root != context_.rank || !broadcast.started || broadcast.acknowledged) return;
  for (unsigned index = 0; index < broadcast.strand_count; ++index) {
    for (const auto& child : broadcast.strands[index].children) {
      if (!child->acknowledged) return;
    }
  }
  broadcast.acknowledged = true;
  broadcasts_.unacknowledged.erase(broadcast.id);
  const auto found = broadcasts_.by_key.find(broadcast.key());
  std::erase(found->second, &broadcast);
  if (found->second.empty()) broadcasts_.by_key.erase(found);
  maybe_forget(broadcast);
}

/// Destroys the broadcast, at the next step, when nothing needs it.
void BroadcastRecipient::maybe_forget(Broadcast& broadcast) {
  if (broadcast.forgotten || !broadcast.released) return;
  if (broadcast.root == context_.rank) {
    if (!broadcast.acknowledged) return;
  } else {
    for (unsigned i = 0; i < broadcast.strand_count; ++i) {
      const Strand& strand = broadcast.strands[i];
      if (!strand.done_sent && (!broadcast.lost || strand.parent != nullptr)) return;
      if (strand.incoming != nullptr) return;
    }
  }
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    for (const auto& child : broadcast.strands[i].children) {
      if (child->stream != nullptr || child->offer.queued() || child->offer_posted) return;
    }
  }
  broadcast.forgotten = true;
  const auto found = broadcasts_.all.find(Broadcasts::name(broadcast.root, broadcast.id));
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    for (const auto& child : broadcast.strands[i].children) broadcasts_.to_offer.remove(child.get());
  }
  broadcasts_.forgotten.push_back(std::move(found->second));
  broadcasts_.all.erase(found);
}

/// A rank above us may have died. While the root lives, the lowest living rank above us finds out in time that no rank
/// serves us; at the latest that is the root. When the root is dead, it may be that no rank has what is missing here.
void BroadcastRecipient::orphan(Broadcast& broadcast) {
  if (broadcast.root == context_.rank || broadcast.lost || !orphaned(broadcast)) return;
  if (peers_.is_dead(broadcast.root)) lose(broadcast, broadcast.root);
  else peers_.connect_to(broadcast.root);
}

/// Whether no rank above us is known to be alive that would report the end of a strand: it is not known yet, or the
/// parent is dead.
bool BroadcastRecipient::orphaned(const Broadcast& broadcast) noexcept {
  const auto strands = std::span(broadcast.strands).first(broadcast.strand_count);
  return std::ranges::any_of(strands, [](const Strand& strand) {
    return !strand.known || (!strand.complete && strand.parent != nullptr && strand.parent->dead);
  });
}

/// The data will not come: its receive fails, now or when it is posted. Those below that lack something are informed.
void BroadcastRecipient::lose(Broadcast& broadcast, Rank dead) {
  if (broadcast.arrived || broadcast.delivered) return;
  if (!std::exchange(broadcast.lost, true)) {
    broadcast.culprit = dead;
    broadcasts_.roots[broadcast.root.value()].lost.emplace(broadcast.id, dead);
  }
  // A payload may be landing in the receive's memory right now; it must end first (then this is called again).
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    const Incoming* incoming = broadcast.strands[i].incoming;
    if (incoming != nullptr && incoming->landings > 0 && !incoming->peer->dead) return;
    if (broadcast.strands[i].superseded > 0) return;
  }
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    Strand& strand = broadcast.strands[i];
    if (strand.incoming != nullptr) incoming_.end_incoming(*std::exchange(strand.incoming, nullptr));
    free_credit(strand);
  }
  for (unsigned i = 0; i < broadcast.strand_count; ++i) {
    children_.end_below(broadcast.strands[i]);
    maybe_acknowledge(broadcast.strands[i]);
  }
  // Rails may still read the memory; when they have finished, this is called again.
  if (!children_.all_sent(broadcast)) return;
  if (!broadcast.entered) {
    if (!broadcast.waiting) try_enter(broadcast);
    if (!broadcast.entered) return;
  }
  if (broadcast.receive == nullptr) return;
  broadcast.delivered = true;
  ReceiveCore& core = *std::exchange(broadcast.receive, nullptr);
  completions_.fail_receive(core, Ending::peer_dead, broadcast.culprit);
  broadcast.released = true;
  drop_library(broadcast);
  maybe_forget(broadcast);
}

/// A strand of a lost broadcast came whose parent will not serve those below us: we inform them.
void BroadcastRecipient::pass_on_loss(Strand& strand, std::span<const std::byte> route_bytes) {
  if (!std::exchange(strand.serves, true)) {
    strand.route_bytes.assign(route_bytes.begin(), route_bytes.end());
    const RouteView below = RouteView(strand.route_bytes).below();
    for (std::uint32_t k = 0; k < below.size(); ++k)
      children_.await_lost(strand, below.part(k, k + 1), strand.broadcast->culprit);
  }
  maybe_acknowledge(strand);
}

}  // namespace tandem::comm::internal
