// tandem/comm/engine/deferred_sends.hpp: messages that wait at their sender until their receiver wants them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "tandem/base/assert.hpp"
#include "tandem/comm/engine/core.hpp"
#include "tandem/comm/engine/recycled.hpp"
#include "tandem/comm/match/matcher.hpp"

namespace tandem::comm::internal {

/// A message that is deferred.
struct DeferredSend final : ArrivedEnvelope, Recycled<DeferredSend> {
  DeferredSend(const MatchKey& from, SendCore& of) noexcept : ArrivedEnvelope(from), core(&of) {}
  SendCore* core;
  DeferredSend* older = nullptr;
  DeferredSend* younger = nullptr;
};

/// A receive of the peer, as far as we know of it.
struct Want final : PostedReceive, Recycled<Want> {
  explicit Want(const MatchPattern& wanted) noexcept : PostedReceive(wanted) {}
};

/// The messages for one peer that are not announced, since the peer keeps as many announcements as it may, and what the
/// peer wants meanwhile. The sender matches for the receiver: to `Matcher`, deferred messages are unexpected ones, and
/// wants are posted receives. So a message that a receive waits for goes at once, however many others wait.
///
/// Messages of one (channel, tag) leave in the order of `hold`. Constant time on the average, but for `forget_wants`
/// and `open_everything`. Not thread-safe.
class DeferredSends {
 public:
  DeferredSends() = default;
  ~DeferredSends() {
    forget_wants();
    while (oldest_ != nullptr) forget(*oldest_);
  }
  DeferredSends(const DeferredSends&) = delete;
  DeferredSends& operator=(const DeferredSends&) = delete;

  bool empty() const noexcept { return oldest_ == nullptr; }
  std::size_t size() const noexcept { return matcher_.kept_count(); }
  /// The message deferred longest, or null.
  SendCore* oldest() const noexcept { return oldest_ != nullptr ? oldest_->core : nullptr; }

  /// Whether a message of this key is deferred: later ones wait as well.
  bool holds(std::uint32_t channel, std::uint64_t tag) {
    return matcher_.peek(pattern_of(channel, tag, false)) != nullptr;
  }
  /// Number of the peer's wants noted here: its receives and probes that no message has met, and its handlers.
  std::size_t wants() const noexcept { return matcher_.posted_count() + open_.size(); }
  /// Whether a handler of the peer takes all messages of the channel.
  bool takes_all(std::uint32_t channel) const { return open_.contains(channel); }
  /// Whether the peer wants a message of this key, of a channel without handler; it wants one less then. No message of
  /// the key is deferred.
  bool take_want(std::uint32_t channel, std::uint64_t tag) {
    if (everything_) return true;
    PostedReceive* const want = matcher_.arrive(MatchKey{Rank{0}, channel, tag});
    if (want == nullptr) return false;
    delete static_cast<Want*>(want);
    return true;
  }

  /// Defers a message that the peer does not want yet.
  void hold(SendCore& core) {
    auto* held = new DeferredSend(MatchKey{Rank{0}, core.SendItem::channel, core.SendItem::tag}, core);
    held->older = youngest_;
    (youngest_ != nullptr ? youngest_->younger : oldest_) = held;
    youngest_ = held;
    core.held = held;
    matcher_.keep(*held);
    if (takes_all(core.SendItem::channel)) calls_.insert(core.SendItem::channel);
  }
  /// Releases a message, which goes or ends.
  void release(SendCore& core) {
    matcher_.remove(*core.held);
    forget(*core.held);
  }

  /// The peer wants one of this channel and tag: the message that is to go; null: the next one will.
  SendCore* want(std::uint32_t channel, std::uint64_t tag, bool any_tag) {
    if (everything_ || open_.contains(channel)) return nullptr;
    auto* want = new Want(pattern_of(channel, tag, any_tag));
    ArrivedEnvelope* const found = matcher_.post(*want);
    if (found == nullptr) return nullptr;
    delete want;
    SendCore& core = *static_cast<DeferredSend*>(found)->core;
    forget(*core.held);
    return &core;
  }
  /// Notes that the peer wants all messages of a channel from now on.
  void open(std::uint32_t channel) {
    open_.insert(channel);
    calls_.insert(channel);
  }
  /// Releases the next deferred message of a channel of which the peer wants all; null: there is none.
  SendCore* take_call() {
    while (!calls_.empty()) {
      const std::uint32_t channel = *calls_.begin();
      if (ArrivedEnvelope* const found = matcher_.take(pattern_of(channel, 0, true))) {
        SendCore& core = *static_cast<DeferredSend*>(found)->core;
        forget(*core.held);
        return &core;
      }
      calls_.erase(channel);
    }
    return nullptr;
  }
  /// Forgets the wants, which the peer tells anew.
  void forget_wants() {
    for (PostedReceive* want : matcher_.extract_all_posted()) delete static_cast<Want*>(want);
    open_.clear();
    calls_.clear();
  }
  /// Notes that the peer wants every message from now on. Calls `go(SendCore&)` for the deferred ones.
  template <class Go>
  void open_everything(Go go) {
    forget_wants();
    everything_ = true;
    while (oldest_ != nullptr) {
      SendCore& core = *oldest_->core;
      release(core);
      go(core);
    }
  }

  void check_invariants() const {
    matcher_.check_invariants();
    std::size_t held = 0;
    for (const DeferredSend* next = oldest_; next != nullptr; next = next->younger) {
      TANDEM_ASSERT(next->core->held == next &&
                    (next->younger != nullptr ? next->younger->older == next : youngest_ == next));
      TANDEM_ASSERT(!takes_all(next->core->SendItem::channel) || calls_.contains(next->core->SendItem::channel));
      ++held;
    }
    TANDEM_ASSERT(held == matcher_.kept_count() && (!everything_ || matcher_.posted_count() == 0));
  }

 private:
  static MatchPattern pattern_of(std::uint32_t channel, std::uint64_t tag, bool any_tag) noexcept {
    return {.source = Rank{0}, .channel = channel, .tag = any_tag ? 0 : tag, .any_source = false, .any_tag = any_tag};
  }
  /// Takes a message out of the matcher.
  void forget(DeferredSend& held) noexcept {
    (held.older != nullptr ? held.older->younger : oldest_) = held.younger;
    (held.younger != nullptr ? held.younger->older : youngest_) = held.older;
    held.core->held = nullptr;
    delete &held;
  }

  Matcher matcher_;
  DeferredSend* oldest_ = nullptr;
  DeferredSend* youngest_ = nullptr;
  std::unordered_set<std::uint32_t> open_;
  std::unordered_set<std::uint32_t> calls_;  ///< of these channels, all with deferred messages; and perhaps others
  bool everything_ = false;
};

}  // namespace tandem::comm::internal
