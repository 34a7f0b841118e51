// tandem/comm/engine/deferral.cpp: messages that are not announced until their receiver wants them.
#include <algorithm>

#include "tandem/comm/engine/parts.hpp"

namespace tandem::comm::internal {
namespace {

constexpr unsigned kAnnouncedAtOnce = 64;  ///< of those that wait; about a packet of announcements

}  // namespace

Deferral::Deferral(EngineParts& parts)
    : context_(parts.context),
      peers_(parts.peers),
      packets_(parts.packets),
      sends_(parts.sends),
      outgoing_(parts.outgoing),
      arrivals_(parts.arrivals) {}

bool Deferral::may_announce(const Peer& peer) noexcept { return peer.announced < peer.allowed.announcements; }

/// A message joins what waits for its peer: the queue, or what is held back.
void Deferral::enqueue(SendCore& core, Peer& peer) {
  sends_.prepare(core, peer);
  if (peer.deferred == nullptr && !core.whole && !may_announce(peer)) [[unlikely]] {
    settle_queue(peer);
    if (peer.deferred == nullptr) start_deferring(peer);
  }
  if (peer.deferred != nullptr) [[unlikely]] {
    // Not when something is queued, which may need the credit.
    const bool covered =
        core.whole && peer.queue.message_count() == 0 && peers_.within_credit(peer, core.bytes, core.header().size());
    if (has_to_wait(core, peer, covered)) return peer.deferred->hold(core);
    if (!covered) make_announced(core);
  }
  if (!core.whole) sends_.make_stream(core, peer);
  if (!core.whole && packets_.announce_at_once(core, peer)) return;
  peer.queue.push(core);
}

/// Whether a message is to be held back: because it needs an announcement (it is not `covered`) that may not be sent, or stands
/// behind such a one of its key. Else it goes; unless it is covered, its announcement goes now, for it may have taken a want.
bool Deferral::has_to_wait(const SendCore& core, Peer& peer, bool covered) {
  if (peer.deferred == nullptr) {
    if (covered || may_announce(peer)) return false;
    start_deferring(peer);
  }
  DeferredSends& deferred = *peer.deferred;
  const std::uint32_t channel = core.SendItem::channel;
  const std::uint64_t tag = core.SendItem::tag;
  return deferred.holds(channel, tag) || (!covered && !deferred.take_want(channel, tag) && !may_announce(peer));
}

/// Announces the eager messages of the queue that the credit does not cover, some at a time, and holds back those that may not be
/// announced. Once something was held back before, what is queued only ever is announced, since it is older than what is held.
void Deferral::settle_queue(Peer& peer) {
  Credit credit(peer);
  const bool late = peer.deferred != nullptr;
  unsigned announced = 0;
  std::vector<SendCore*> held, in_exchange;
  for (auto item = peer.queue.messages(); item && (announced < kAnnouncedAtOnce || peer.deferred != nullptr); item.advance()) {
    if (static_cast<Item&>(*item).what != ItemKind::message) continue;
    auto& core = static_cast<SendCore&>(*item);
    const bool behind = !held.empty() && peer.deferred->holds(core.SendItem::channel, core.SendItem::tag);
    if (!behind && (!core.whole || credit.take(core))) continue;
    if (late || !has_to_wait(core, peer, false)) {
      core.whole = false;
      sends_.make_stream(core, peer);
      peer.queue.reshape(core, SendKind::record, Sends::announced_bytes(core), 0);
      ++announced;
      continue;
    }
    if (core.stream != nullptr) in_exchange.push_back(&core);
    peer.deferred->hold(core);
    held.push_back(&core);
  }
  for (SendCore* core : held) peer.queue.remove(*core);
  // The announcements of those that had one go to the oldest of their keys.
  for (SendCore* core : in_exchange) {
    outgoing_.drop_stream(*std::exchange(core->stream, nullptr));
    announce_deferred(*peer.deferred->want(core->SendItem::channel, core->SendItem::tag, false));
  }
}

void Deferral::start_deferring(Peer& peer) {
  peer.deferred = std::make_unique<DeferredSends>();
  peer.at_once_below = peers_.at_once_below(peer);
  packets_.post_control(peer, wire::Defer{});
}

/// When nothing is held, and nothing will be soon.
void Deferral::stop_deferring(Peer& peer) {
  if (!peer.deferred->empty() || peer.announced > peer.allowed.announcements / 2) return;
  peer.deferred.reset();
  peer.at_once_below = peers_.at_once_below(peer);
  wire::Defer over;
  over.prefix.flags = wire::flag_over;
  packets_.post_control(peer, over);
}

/// It is announced, without any of its data.
void Deferral::make_announced(SendCore& core) noexcept {
  core.whole = false;
  core.SendItem::kind = SendKind::record;
  core.control_bytes = Sends::announced_bytes(core);
  core.bulk_bytes = 0;
}

/// What was held goes.
void Deferral::announce_deferred(SendCore& core) {
  Peer& peer = *core.peer;
  make_announced(core);
  sends_.make_stream(core, peer);
  peer.queue.push(core);
  peers_.mark_dirty(peer);
}

/// An announced message has ended: others may be announced.
void Deferral::announce_more(Peer& peer) {
  while (!peer.deferred->empty() && may_announce(peer)) {
    SendCore& core = *peer.deferred->oldest();
    peer.deferred->release(core);
    announce_deferred(core);
  }
  stop_deferring(peer);
}

const char* Deferral::take_want(Peer& peer, const wire::Want& want) {
  if (peer.deferred == nullptr) return nullptr;  // it is over; the peer will hear of it
  if ((want.prefix.flags & wire::flag_all) != 0) {
    peer.deferred->open(want.channel, [this](SendCore& core) { announce_deferred(core); });
  } else if (SendCore* core = peer.deferred->want(want.channel, want.tag, (want.prefix.flags & wire::flag_any_tag) != 0)) {
    announce_deferred(*core);
  }
  stop_deferring(peer);
  return nullptr;
}

/// It is not to go any more.
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
  arrivals_.matcher().for_each_posted([&](PostedReceive& posted) { want(peer, posted.pattern); });
  arrivals_.for_each_handler([&](std::uint32_t channel) { want_all(peer, channel); });
  return nullptr;
}

void Deferral::forget_deferring_peer(Peer& peer) {
  peer.probed.clear();
  std::erase(deferring_peers_, &peer);
}

void Deferral::want(Peer& peer, const MatchPattern& pattern) {
  if (!pattern.any_source && pattern.source != peer.rank) return;
  ++peer.asked;
  wire::Want record{.channel = pattern.channel, .tag = pattern.tag};
  if (pattern.any_tag) record.prefix.flags = wire::flag_any_tag;
  packets_.post_control(peer, record);
}

/// A receive was posted that has met nothing.
void Deferral::want_from_all(const MatchPattern& pattern) {
  for (Peer* peer : deferring_peers_) want(*peer, pattern);
}

/// A probe has met nothing. Asked once, until such a message is there: programs probe again and again.
void Deferral::want_probed(const MatchPattern& pattern) {
  for (Peer* peer : deferring_peers_) {
    const auto same = [&](const MatchPattern& other) {
      return other.channel == pattern.channel && other.any_tag == pattern.any_tag &&
             (other.any_tag || other.tag == pattern.tag);
    };
    if ((!pattern.any_source && pattern.source != peer->rank) || std::ranges::any_of(peer->probed, same)) continue;
    peer->probed.push_back(pattern);
    want(*peer, pattern);
  }
}

/// The handler of active messages takes whatever comes.
void Deferral::want_all(Peer& peer, std::uint32_t channel) {
  wire::Want record{.channel = channel};
  record.prefix.flags = wire::flag_all;
  packets_.post_control(peer, record);
}

void Deferral::want_all_from_all(std::uint32_t channel) {
  for (Peer* peer : deferring_peers_) want_all(*peer, channel);
}

}  // namespace tandem::comm::internal
