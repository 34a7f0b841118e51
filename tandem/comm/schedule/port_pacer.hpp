// tandem/comm/schedule/port_pacer.hpp: whose large messages a port takes that several peers share. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace tandem::comm {

/// Each peer has a queue of its own (`SendQueue`), and its connections take what they can; a network then shares the port alike
/// among connections, whatever their messages' priorities are. So bulk (ready streams) waits at this gate
///
///  - while another peer has bulk of higher priority, as long as that moves: when nothing of it has gone for `grace_ns`, its
///    receiver is what is slow, and the gate is open until something of it goes again. So no two ranks can wait for each other
///    here, and the port is not idle for long;
///  - and from when the port would not be done with it before a more urgent message begins that was announced, until that is
///    withdrawn, or is late by more than was said with it. Users announce what they will post; what is posted is expected until
///    its receiver has granted it.
///
/// Bulk of equal priority shares the port. Not thread-safe. Costs: O(log P), P being the number of different priorities
/// present.
class PortPacer {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// A peer's most urgent ready stream has another priority than before, or there is none any more, or it is the first. True:
  /// bulk that was held may go now.
  bool changed(std::optional<std::int32_t> before, std::optional<std::int32_t> after, std::int64_t now_ns);

  /// Bulk of this priority was handed to the network. The next that does may take `grace_ns`.
  void moved(std::int32_t priority, std::int64_t now_ns, std::int64_t grace_ns);

  /// Whether bulk of different priorities is ready.
  bool contended() const noexcept { return ready_.size() > 1; }
  /// Whether bulk of lower priority is ready.
  bool has_below(std::int32_t priority) const { return !ready_.empty() && ready_.begin()->first < priority; }
  /// Whether bulk of this priority waits now. `busy_ns`: for so long the port would be busy with it, and with what it has.
  bool holds(std::int32_t priority, std::int64_t now_ns, std::int64_t busy_ns) const;
  /// Whether there is an announcement more urgent than that: only then `holds` looks at `busy_ns`.
  bool expects_above(std::int32_t priority, std::int64_t now_ns) const;

  /// When those held are to be looked at again, if nothing happens before; later than now, except for what is to `expire`.
  std::int64_t due_ns(std::int64_t now_ns) const;

  /// A message of this priority will be ready at about `when_ns`, and is waited for until `late_ns`. The number, never 0, is for
  /// `withdraw`.
  std::uint64_t announce(std::int32_t priority, std::int64_t when_ns, std::int64_t late_ns);
  /// True: it was there; bulk that was held may go.
  bool withdraw(std::uint64_t number);
  /// Forgets what is late.
  void expire(std::int64_t now_ns);

 private:
  struct Announced {
    std::uint64_t number;
    std::int32_t priority;
    std::int64_t when_ns;
    std::int64_t late_ns;
  };

  std::map<std::int32_t, unsigned> ready_;  ///< peers by the priority of their most urgent stream
  std::int64_t moved_ns_ = 0;               ///< the most urgent bulk did
  std::int64_t grace_ns_ = 0;
  std::vector<Announced> announced_;
  std::uint64_t last_number_ = 0;
};

}  // namespace tandem::comm
