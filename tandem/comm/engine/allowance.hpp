// tandem/comm/engine/allowance.hpp: what a rank keeps of a peer's unasked messages, as the sender counts it and as the
// receiver does.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// Receives, probes and handlers of a peer that a rank notes while it defers messages to that peer. The peer counts,
/// too (`Deferral::want`), and renews its wishes before it exceeds this.
inline constexpr std::uint32_t kMostWants = 1 << 17;
/// Announcements for handlers of the peer that a rank has under way at once, while it defers messages to that peer.
inline constexpr std::uint32_t kMostCalls = 1 << 14;
/// Unacknowledged broadcasts along trees of which a rank is the root. Beyond that it sends plainly.
inline constexpr std::size_t kMostBroadcasts = 1 << 14;

/// What a rank allows each of its peers. Each rank publishes its own in its address, and its peers keep to it.
struct Allowance {
  std::uint32_t messages = 0;       ///< eager ones
  std::uint32_t units = 0;          ///< of `wire::BlockHead::unit_bytes`, of their data and headers
  std::uint32_t announcements = 0;  ///< for which no receive waits

  static Allowance of(std::size_t bytes, std::uint32_t messages, std::uint32_t announcements) noexcept {
    // One unit more, since a message of no bytes but a header takes one.
    const std::size_t units = std::min<std::size_t>(bytes / wire::BlockHead::unit_bytes + 1, INT32_MAX);
    return {.messages = messages, .units = static_cast<std::uint32_t>(units), .announcements = announcements};
  }
  static Allowance of(const EndpointOptions& options) noexcept {
    return of(options.credit_bytes, options.credit_messages, options.credit_announcements);
  }
  /// The allowance that a peer's address says; of one without, what this rank allows itself (`otherwise`).
  static Allowance of(const PeerCard& card, const EndpointOptions& otherwise) noexcept {
    if (card.credit_messages == 0) return of(otherwise);
    return of(card.credit_bytes, card.credit_messages, card.credit_announcements);
  }
};

/// What messages of one peer take of our memory now. A peer that keeps to the allowance never reaches its bounds: it
/// counts a message from its sending until it hears that we have dropped it, and messages that met their receive, too.
///
/// Invariant: each part is at most what the allowance of the last `take` said.
class Occupancy {
 public:
  /// Counts an eager message, or a strand that counts as one. False: beyond the allowance, and nothing is counted.
  bool take(std::uint32_t units, const Allowance& allowed) noexcept {
    if (messages_ >= allowed.messages || (units != 0 && (units > allowed.units || units_ > allowed.units - units)))
      return false;
    ++messages_;
    units_ += units;
    return true;
  }
  void leave(std::uint32_t messages, std::uint32_t units) noexcept {
    messages_ -= messages;
    units_ -= units;
  }
  /// Counts an announcement without a waiting receive. A sender announces more than it is allowed for three reasons: a
  /// receive or a probe asked for such a message (`asked`, in all); the message was queued as an eager one, whose
  /// credit others took meanwhile; or it was queued before the sender knew our address (`kBeforeCard`).
  bool take_announcement(const Allowance& allowed, std::uint64_t asked) noexcept {
    if (announcements_ >= unasked(allowed) + asked) return false;
    ++announcements_;
    return true;
  }
  void leave_announcement() noexcept { --announcements_; }
  /// Counts a message that is announced for a handler, until its data is here. The sender counts until its data is
  /// handed over (`kMostCalls`), so that further announcements may overtake segments on other rails: hence the margin.
  /// Before it defers messages to us, it does not distinguish them from others.
  bool take_call(const Allowance& allowed) noexcept {
    if (calls_ >= unasked(allowed) + 4 * kMostCalls) return false;
    ++calls_;
    return true;
  }
  void leave_call() noexcept { --calls_; }

  std::uint64_t messages() const noexcept { return messages_; }
  std::uint32_t units() const noexcept { return units_; }
  std::uint64_t announcements() const noexcept { return announcements_; }
  std::uint64_t calls() const noexcept { return calls_; }

  /// Most announcements of a sender that does not know its allowance yet.
  static constexpr std::uint32_t kBeforeCard = 1024;

 private:
  static std::uint64_t unasked(const Allowance& allowed) noexcept {
    return std::uint64_t{allowed.announcements} + allowed.messages + kBeforeCard;
  }

  std::uint32_t messages_ = 0;
  std::uint32_t units_ = 0;
  std::uint64_t announcements_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace tandem::comm::internal
