// tandem/comm/sync/barrier_node.hpp: one rank's part in a barrier that all ranks leave at one time, as a state machine.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tandem/base/ids.hpp"
#include "tandem/clock/global_clock.hpp"
#include "tandem/comm/sync/clock_node.hpp"
#include "tandem/comm/sync/records.hpp"

namespace tandem::comm::internal::sync {

/// The agreed time in this rank's clock, and how late the rank learned of it (0: in time).
struct BarrierAgreement {
  std::int64_t local_ns = 0;
  std::int64_t global_ns = 0;
  std::int64_t error_ns = 0;
  std::int64_t late_ns = 0;
};

/// Why barriers cannot complete any more.
struct BarrierBreak {
  Rank rank{0};
  bool left = false;  ///< it said goodbye; else it died
};

/// The window-based barrier of thesis 3.4.2 (Hunold and Carpen-Amarie), with a vote. Four trips of log p messages along
/// the tree:
///   up    each rank is ready;
///   down  the reference proposes a time;
///   up    each rank votes: how much time it had left when it received the proposal;
///   down  if that suffices for one more trip, the reference commits; else it proposes a later time, with the window
///   doubled.
/// No rank leaves before all can. A rank that was not running when the commit came leaves late, and learns by how much.
///
/// When a neighbour in the tree is gone, all ranks learn it, and barriers fail from then on. While a rank waits, it
/// repeats its last messages from time to time. So records may come twice, and a repetition that fails shows that a
/// rank is gone.
///
/// Not thread-safe, like `ClockNode`.
class BarrierNode {
 public:
  BarrierNode(Rank rank, std::uint32_t size);

  /// Enters the barrier. This rank has left the barrier before (assertion).
  void enter(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox);
  /// Takes a record; ignores those that do not belong to the barrier.
  void take(Rank from, const Record& record, std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox);
  std::int64_t step(std::int64_t now_ns, Outbox& outbox);
  void gone(Rank rank, bool left, Outbox& outbox);
  /// This rank leaves the job's barriers and notifies the others.
  void leave(Outbox& outbox) { break_up({rank_, true}, std::nullopt, outbox); }

  bool inside() const noexcept { return inside_; }
  /// The agreement, once all ranks agree; then this rank is not inside any more.
  const std::optional<BarrierAgreement>& agreement() const noexcept { return agreement_; }
  const std::optional<BarrierBreak>& broken() const noexcept { return broken_; }

  static constexpr std::int64_t repeat_ns = 100'000'000;
  static constexpr std::int64_t first_window_ns = 200'000;
  static constexpr std::int64_t least_window_ns = 20'000;
  static constexpr unsigned most_rounds = 16;  ///< then the reference commits in any case

 private:
  struct Child {
    Rank rank{0};
    std::uint64_t ready = 0;  ///< the last barrier that it was ready for
    bool voted = false;       ///< in this round
  };

  bool is_reference() const noexcept { return rank_.value() == 0; }
  Child* child(Rank rank) noexcept;
  void advance(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox);
  void propose(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox);
  void consider(const Propose& proposal, std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox);
  void count_votes(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox);
  void decide(std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox);
  void commit(std::int64_t leave_ns, std::int64_t now_ns, const clock::GlobalClock& clock, Outbox& outbox);
  void break_up(const BarrierBreak& why, std::optional<Rank> learned_from, Outbox& outbox);

  const Rank rank_;
  std::vector<Child> children_;
  std::uint64_t barrier_ = 0;   ///< the one that we are in or were in last
  bool inside_ = false;
  bool sent_ready_ = false;
  std::optional<Propose> proposal_;  ///< of this round
  std::int64_t slack_ns_ = 0;        ///< the least of ours and of the votes so far
  bool voted_ = false;
  std::int64_t proposed_ns_ = 0;     ///< time of the reference's proposal
  std::int64_t window_ns_ = first_window_ns;
  std::int64_t repeat_due_ns_ = INT64_MAX;
  std::optional<BarrierAgreement> agreement_;
  std::optional<BarrierBreak> broken_;
};

}  // namespace tandem::comm::internal::sync
