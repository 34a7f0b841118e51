// tandem/comm/engine/deferral.cpp: messages that are not announced until their receiver wants them.
#include <algorithm>

#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {
namespace {

constexpr unsigned kAnnouncedAtOnce = 64;  ///< of those that wait, which is about a packet of announcements
/// When deferral ends and begins again, earlier wishes may still be on their way.
constexpr std::size_t kWantsBeforeRefusal = 4 * kMostWants;

}  // namespace

Deferral::Deferral(EngineParts& parts)
    : context_(parts.context),
      peers_(parts.peers),
      queues_(parts.queues),
      arrivals_(parts.arrivals) {}

bool Deferral::may_announce(const Peer& peer) noexcept { return peer.announced < peer.allowed.announcements; }

/// Handlers take all messages, so that what they wait for ends by itself, and makes room for the next.
bool Deferral::may_call(const Peer& peer) noexcept { return peer.announced_calls < kMostCalls; }

/// Adds a message to what waits for its peer: the queue, or the deferred messages.
void Deferral::enqueue(SendCore& core, Peer& peer) {
  queues_.prepare(core, peer);
  if (peer.deferred == nullptr && !core.whole && !may_announce(peer)) [[unlikely]] {
    settle_queue(peer);
    if (peer.deferred == nullptr) start_deferring(peer);
  }
  if (peer.deferred != nullptr) [[unlikely]] {
    // A queue that is not empty may need the credit.
    const bool covered =
        core.whole && peer.queue.message_count() == 0 && Credit(peer).covers(core.bytes, core.header().size());
    if (has_to_wait(core, peer, covered)) return peer.deferred->hold(core);
    if (!covered) make_announced(core);
  }
  if (!core.whole) queues_.make_stream(core, peer);
  if (!core.whole && queues_.announce_at_once(core, peer)) return;
  peer.queue.push(core);
}

/// Whether a message is to be deferred: because it needs an announcement (it is not `covered`) that may not be sent, or
/// stands behind such a message of its key. Else it goes; unless it is covered, the caller announces it now, for it may
/// have taken a want.
bool Deferral::has_to_wait(const SendCore& core, Peer& peer, bool covered) {
  if (peer.deferred == nullptr) {
    if (covered || may_announce(peer)) return false;
    start_deferring(peer);
  }
  DeferredSends& deferred = *peer.deferred;
  const std::uint32_t channel = core.SendItem::channel;
  const std::uint64_t tag = core.SendItem::tag;
  if (deferred.holds(channel, tag)) return true;
  if (covered) return false;
  if (deferred.takes_all(channel)) return !may_call(peer);
  return !deferred.take_want(channel, tag) && !may_announce(peer);
}

/// Announces queued eager messages that the credit does not cover, some at a time, and defers those that may not be
/// announced. If messages were deferred before, queued ones are only announced, since they are older than the deferred
/// ones.
void Deferral::settle_queue(Peer& peer) {
  Credit credit(peer);
  const bool late = peer.deferred != nullptr;
  unsigned announced = 0;
  std::vector<SendCore*> held, in_exchange;
  for (auto item = peer.queue.messages(); item && (announced < kAnnouncedAtOnce || peer.deferred != nullptr);
       item.advance()) {
    if (static_cast<Item&>(*item).what != ItemKind::message) continue;
    auto& core = static_cast<SendCore&>(*item);
    const bool behind = !held.empty() && peer.deferred->holds(core.SendItem::channel, core.SendItem::tag);
    if (!behind && (!core.whole || credit.take(core))) continue;
    if (late || !has_to_wait(core, peer, false)) {
      core.whole = false;
      queues_.make_stream(core, peer);
      peer.queue.reshape(core, SendKind::record, PeerQueues::announced_bytes(core), 0);
      ++announced;
      continue;
    }
    if (core.stream != nullptr) in_exchange.push_back(&core);
    peer.deferred->hold(core);
    held.push_back(&core);
  }
  for (SendCore* core : held) peer.queue.remove(*core);
  // The announcements of newer messages go to the oldest of their keys.
  for (SendCore* core : in_exchange) {
    queues_.drop_stream(*std::exchange(core->stream, nullptr));
    announce_deferred(*peer.deferred->want(core->SendItem::channel, core->SendItem::tag, false));
  }
}

void Deferral::start_deferring(Peer& peer) {
  peer.deferred = std::make_unique<DeferredSends>();
  peer.at_once_below = peers_.at_once_below(peer);
  queues_.post_control(peer, wire::Defer{});
}

/// Ends deferral when no message is deferred, and none will be soon.
void Deferral::stop_deferring(Peer& peer) {
  if (!peer.deferred->empty() || peer.announced > peer.allowed.announcements / 2) return;
  peer.deferred.reset();
  peer.at_once_below = peers_.at_once_below(peer);
  wire::Defer over;
  over.prefix.flags = wire::flag_over;
  queues_.post_control(peer, over);
}

/// Makes a message an announced one, without any of its data.
void Deferral::make_announced(SendCore& core) noexcept {
  core.whole = false;
  core.SendItem::kind = SendKind::record;
  core.control_bytes = PeerQueues::announced_bytes(core);
  core.bulk_bytes = 0;
}

/// Announces a deferred message.
void Deferral::announce_deferred(SendCore& core) {
  Peer& peer = *core.peer;
  make_announced(core);
  queues_.make_stream(core, peer);
  peer.queue.push(core);
  peers_.mark_dirty(peer);
}

/// Announces other messages, since an announced one has ended.
void Deferral::announce_more(Peer& peer) {
  while (!peer.deferred->empty() && may_announce(peer)) {
    SendCore& core = *peer.deferred->oldest();
    peer.deferred->release(core);
    announce_deferred(core);
  }
  announce_calls(peer);
  stop_deferring(peer);
}

/// Announces what handlers of the peer take.
void Deferral::announce_calls(Peer& peer) {
  while (may_call(peer)) {
    SendCore* const core = peer.deferred->take_call();
    if (core == nullptr) return;
    announce_deferred(*core);
  }
}

const char* Deferral::take_want(Peer& peer, const wire::Want& want) {
  if (peer.deferred == nullptr) return nullptr;  // deferral is over, as the peer will hear
  if ((want.prefix.flags & wire::flag_renew) != 0) return peer.deferred->forget_wants(), nullptr;
  if (peer.deferred->wants() >= kWantsBeforeRefusal)
    return "more receives that wait for held messages than a rank may tell (wants)";
  if ((want.prefix.flags & wire::flag_everything) != 0) {
    peer.deferred->open_everything([this](SendCore& core) { announce_deferred(core); });
  } else if ((want.prefix.flags & wire::flag_all) != 0) {
    peer.deferred->open(want.channel);
    announce_calls(peer);
  } else if (SendCore* core =
                 peer.deferred->want(want.channel, want.tag, (want.prefix.flags & wire::flag_any_tag) != 0)) {
    announce_deferred(*core);
  }
  stop_deferring(peer);
  return nullptr;
}

/// Drops a deferred message, which is not to go any more.
void Deferral::drop_deferred(SendCore& core) {
  Peer& peer = *core.peer;
  peer.deferred->release(core);
  if (!peer.dead) stop_deferring(peer);
}

std::uint64_t Deferral::deferred_messages() const noexcept {
  std::uint64_t messages = 0;
  for (const auto& [rank, peer] : peers_.all()) messages += peer->deferred != nullptr ? peer->deferred->size() : 0;
  return messages;
}

const char* Deferral::take_defer(Peer& peer, const wire::Defer& record) {
  const bool over = (record.prefix.flags & wire::flag_over) != 0;
  const bool known = std::ranges::find(deferring_peers_, &peer) != deferring_peers_.end();
  if (over != known) return over ? "an end of holding back without its beginning" : "holding back begins twice";
  if (over) {
    forget_deferring_peer(peer);
    return nullptr;
  }
  deferring_peers_.push_back(&peer);
  tell_wants(peer);
  return nullptr;
}

/// Tells the peer everything that this rank wants of it, or that it wants everything. The peer knows of no wants.
void Deferral::tell_wants(Peer& peer) {
  std::size_t wanted = peer.probed.size();
  arrivals_.matcher().for_each_posted([&](PostedReceive& posted) { wanted += concerns(posted.pattern, peer); });
  arrivals_.for_each_awaited([&](const MatchPattern& pattern) { wanted += concerns(pattern, peer); });
  arrivals_.for_each_handler([&](std::uint32_t) { ++wanted; });
  peer.wants_sent = 0;
  // So that wishes are renewed seldom, and each one costs little on the average.
  peer.wants_everything = wanted > kMostWants / 2;
  if (peer.wants_everything) {
    wire::Want record;
    record.prefix.flags = wire::flag_everything;
    return queues_.post_control(peer, record);
  }
  arrivals_.for_each_handler([&](std::uint32_t channel) { want_all(peer, channel); });
  arrivals_.matcher().for_each_posted([&](PostedReceive& posted) { want(peer, posted.pattern); });
  arrivals_.for_each_awaited([&](const MatchPattern& pattern) { want(peer, pattern); });
  for (const MatchPattern& probed : peer.probed) want(peer, probed);
}

bool Deferral::concerns(const MatchPattern& pattern, const Peer& peer) noexcept {
  return pattern.any_source || pattern.source == peer.rank;
}

/// Counts one more want. Wants that others have met, or that were cancelled, stay with the peer; so all are told anew
/// after a while. False: that has been done now, with this one among them.
bool Deferral::note_want(Peer& peer) {
  if (peer.wants_sent < kMostWants - 1) return ++peer.wants_sent, true;
  wire::Want renewed;
  renewed.prefix.flags = wire::flag_renew;
  queues_.post_control(peer, renewed);
  tell_wants(peer);
  return false;
}

void Deferral::forget_deferring_peer(Peer& peer) {
  peer.probed.clear();
  peer.wants_everything = false;
  std::erase(deferring_peers_, &peer);
}

void Deferral::want(Peer& peer, const MatchPattern& pattern) {
  if (!concerns(pattern, peer) || peer.wants_everything || !note_want(peer)) return;
  ++peer.asked;
  wire::Want record{.channel = pattern.channel, .tag = pattern.tag};
  if (pattern.any_tag) record.prefix.flags = wire::flag_any_tag;
  queues_.post_control(peer, record);
}

/// Tells the peers of a receive, or a request of `Endpoint::iprobe`, that was posted and has met nothing.
void Deferral::want_from_all(const MatchPattern& pattern) {
  for (Peer* peer : deferring_peers_) want(*peer, pattern);
}

/// Tells the peers of a probe that has met nothing. Asks once, until such a message is there: programs probe
/// repeatedly.
void Deferral::want_probed(const MatchPattern& pattern) {
  for (Peer* peer : deferring_peers_) {
    const auto same = [&](const MatchPattern& other) {
      return other.channel == pattern.channel && other.any_tag == pattern.any_tag &&
             (other.any_tag || other.tag == pattern.tag);
    };
    if (!concerns(pattern, *peer) || std::ranges::any_of(peer->probed, same)) continue;
    peer->probed.push_back(pattern);
    want(*peer, pattern);
  }
}

/// Tells the peer that a handler takes all messages of the channel.
void Deferral::want_all(Peer& peer, std::uint32_t channel) {
  if (peer.wants_everything || !note_want(peer)) return;
  wire::Want record{.channel = channel};
  record.prefix.flags = wire::flag_all;
  queues_.post_control(peer, record);
}

void Deferral::want_all_from_all(std::uint32_t channel) {
  for (Peer* peer : deferring_peers_) want_all(*peer, channel);
}

}  // namespace tandem::comm::internal
