// tandem/comm/schedule/port_pacer.hpp: which large messages go to a port that several peers share, and which wait.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace tandem::comm {

/// Each peer has its own queue (`SendQueue`), and its connections take what they can; a network then shares the port
/// equally among connections, whatever their messages' priorities. So the pacer makes bulk (ready streams) wait in two
/// cases:
///
///  - another peer has bulk of higher priority, and that moves. When nothing of it has gone for `grace_ns`, its
///    receiver is slow, and bulk may go until something of it goes again. So no two ranks can wait for each other here,
///    and the port is not idle for long;
///  - a more urgent message was announced, and the port would not finish the bulk before it begins; until that message
///    is withdrawn, or is later than was announced. Users announce what they will post; the engine announces what is
///    posted, until its receiver has granted it.
///
/// Bulk of equal priority shares the port. Not thread-safe. Costs: O(log P), P being the number of different priorities
/// present.
class PortPacer {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// The priority of a peer's most urgent ready stream has changed; empty: the peer has no ready stream. True: bulk
  /// that waited may go now.
  bool changed(std::optional<std::int32_t> before, std::optional<std::int32_t> after, std::int64_t now_ns);

  /// Notes that bulk of this priority was handed to the network. The next may take `grace_ns`.
  void moved(std::int32_t priority, std::int64_t now_ns, std::int64_t grace_ns);

  /// Whether bulk of different priorities is ready.
  bool contended() const noexcept { return ready_.size() > 1; }
  /// Whether bulk of lower priority is ready.
  bool has_below(std::int32_t priority) const { return !ready_.empty() && ready_.begin()->first < priority; }
  /// Whether bulk of this priority waits now. `busy_ns`: time that the port needs for it and for what it has.
  bool holds(std::int32_t priority, std::int64_t now_ns, std::int64_t busy_ns) const;
  /// Whether a more urgent message is announced: only then `holds` uses `busy_ns`.
  bool expects_above(std::int32_t priority, std::int64_t now_ns) const;

  /// When to ask `holds` again, if nothing happens before; later than now, except when an announcement is to `expire`.
  std::int64_t due_ns(std::int64_t now_ns) const;

  /// Announces a message of this priority for about `when_ns`; bulk waits for it until `late_ns`. Returns a number for
  /// `withdraw`, never 0.
  std::uint64_t announce(std::int32_t priority, std::int64_t when_ns, std::int64_t late_ns);
  /// Ends an announcement. True: it existed, and bulk that waited for it may go.
  bool withdraw(std::uint64_t number);
  /// Forgets announcements that are late.
  void expire(std::int64_t now_ns);

 private:
  struct Announced {
    std::uint64_t number;
    std::int32_t priority;
    std::int64_t when_ns;
    std::int64_t late_ns;
  };

  std::map<std::int32_t, unsigned> ready_;  ///< peers by the priority of their most urgent stream
  std::int64_t moved_ns_ = 0;               ///< time of the last move of the most urgent bulk
  std::int64_t grace_ns_ = 0;
  std::vector<Announced> announced_;
  std::uint64_t last_number_ = 0;
};

}  // namespace tandem::comm
