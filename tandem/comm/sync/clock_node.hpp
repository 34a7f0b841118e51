// tandem/comm/sync/clock_node.hpp: one rank's part in the synchronisation of clocks, as a state machine without threads
// or messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tandem/base/ids.hpp"
#include "tandem/clock/drift_model.hpp"
#include "tandem/clock/global_clock.hpp"
#include "tandem/clock/offset.hpp"
#include "tandem/comm/sync/records.hpp"

namespace tandem::comm::internal::sync {

using base::Rank;

/// A record to be sent. `watched`: its sender calls `gone` when the peer cannot be reached.
struct Outgoing {
  Rank to{0};
  Record record;
  bool watched = false;
};
using Outbox = std::vector<Outgoing>;

/// Compares this rank's clock with its parent's from time to time, and serves its children.
///
/// A measurement. The child asks for a turn. The parent grants one turn at a time, once it knows its own relation to
/// the reference: so no two children disturb each other's ping-pongs, and the levels of the tree follow each other.
/// Then come `ping_pongs` ping-pongs, one after the other. Then the child ends the turn, and the parent serves the next
/// child. A turn that no message ends is over after `turn_limit_ns`: turns serve exactness, not correctness. Ranks of
/// one host that read one counter need no ping-pongs. Other ranks of one host use different processors: on one
/// processor each message costs a switch of threads, and a ping may take longer than a pong.
///
/// The thread that receives messages answers pings, without this object (see `clock_sync.cpp`).
///
/// Not thread-safe: its owner calls one member at a time, and then sends what the outbox holds. Times are this rank's.
///
/// Invariant: once known, `to_reference` stays known: its bound grows with time, also when the reference cannot be
/// reached any more.
class ClockNode {
 public:
  struct Options {
    std::int64_t interval_ns = 1'000'000'000;  ///< between measurements in the long run
    /// Time between the first two measurements, while the rate is hardly known; doubles from then on.
    std::int64_t first_interval_ns = 10'000'000;
    unsigned first_ping_pongs = 128;
    unsigned ping_pongs = 48;                  ///< of every later measurement
    clock::DriftLimits limits = {};
  };
  struct Environment {
    Rank rank{0};
    SharedCounter counter = {};
    std::function<bool(Rank)> same_host = {};         ///< called from `step` only; may block
    std::function<std::uint64_t()> ticks = {};  ///< of the TSC, when that is the counter
    /// Moves the calling thread to another processor if it runs on this one; whether it did. Called from `take`; may
    /// block.
    std::function<bool(std::uint64_t processor)> leave_processor = {};
  };

  ClockNode(Environment environment, const Options& options);

  /// Takes a record. Ignores all but Ask, Turn, Pong and End. A pong was received at `now_ns`.
  void take(Rank from, const Record& record, std::int64_t now_ns, Outbox& outbox);
  /// Does what is due. Returns the time of the next call (`base::kNever`: when a record has come).
  std::int64_t step(std::int64_t now_ns, Outbox& outbox);
  /// Notes that the rank cannot be reached any more. Its parent takes its place.
  void gone(Rank rank, Outbox& outbox);

  bool known() const noexcept { return known_; }
  /// The function from our clock to the reference's, counted by `version`.
  const clock::GlobalClock& to_reference() const noexcept { return to_reference_; }
  std::uint64_t version() const noexcept { return version_; }

  bool measuring() const noexcept { return state_ == State::measuring; }
  /// Whether a record of a measurement is expected, from a child or from our parent.
  bool busy() const noexcept { return measuring() || holder_.has_value(); }
  std::size_t sample_count() const noexcept { return samples_.size(); }  ///< of the current measurement
  /// The rank that we measure against; empty for the reference, and when all ranks between us and it are gone.
  std::optional<Rank> parent() const noexcept { return parent_; }
  const clock::DriftModel& model() const noexcept { return model_; }
  std::int64_t next_due_ns() const noexcept { return due_ns_; }

  static constexpr std::int64_t ask_again_ns = 20'000'000;
  static constexpr std::int64_t measure_limit_ns = 20'000'000;  ///< a measurement ends then with the samples it has
  static constexpr std::int64_t turn_limit_ns = 100'000'000;
  static constexpr unsigned most_moves = 2;  ///< per measurement; each takes some 100 us

 private:
  enum class State { resting, asking, measuring };
  struct Claim {
    Rank child{0};
    std::uint64_t attempt = 0;
  };

  void take_ask(const Claim& claim, std::int64_t now_ns, Outbox& outbox);
  void take_turn(const Turn& turn, std::int64_t now_ns, Outbox& outbox);
  void take_pong(const Pong& pong, std::int64_t now_ns, Outbox& outbox);
  void end_turn(Rank child, std::int64_t now_ns, Outbox& outbox);
  void grant_next(std::int64_t now_ns, Outbox& outbox);
  void finish(std::int64_t now_ns, Outbox& outbox);
  void learn(const clock::GlobalClock& to_parent, std::int64_t now_ns, Outbox& outbox);
  void plan_next(const clock::OffsetPoint& point, bool agreed, std::int64_t now_ns);
  void attach(std::optional<Rank> parent);
  bool shares_counter(const Turn& turn) const noexcept;

  const Environment environment_;
  const Options options_;

  // As a child.
  std::optional<Rank> parent_;
  bool same_host_ = false;      ///< of the parent
  State state_ = State::resting;
  std::int64_t due_ns_ = 0;     ///< deadline of what the state waits for
  std::int64_t gap_ns_ = 0;     ///< to the next measurement
  std::uint64_t attempt_ = 0;
  clock::GlobalClock parent_to_reference_;
  std::vector<clock::PingPong> samples_;
  unsigned moves_ = 0;
  clock::DriftModel model_;
  bool known_ = false;
  clock::GlobalClock to_reference_;
  std::uint64_t version_ = 0;

  // As a parent.
  std::vector<Claim> waiting_;
  std::optional<Claim> holder_;
  std::int64_t held_since_ns_ = 0;
};

}  // namespace tandem::comm::internal::sync
