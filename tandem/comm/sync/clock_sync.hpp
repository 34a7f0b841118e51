// tandem/comm/sync/clock_sync.hpp: one time for all ranks of a job, and a barrier that they leave at one instant.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tandem/base/config.hpp"
#include "tandem/base/ids.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/option.hpp"
#include "tandem/base/result.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/clock/global_clock.hpp"
#include "tandem/comm/endpoint.hpp"

namespace tandem::comm {

/// How ranks follow the clock of rank 0. The options `clock.*` set these.
struct ClockSyncOptions {
  /// Time between measurements of the offset to the parent in the tree, in the long run.
  std::int64_t interval_ns = 1'000'000'000;
  unsigned ping_pongs = 48;                  ///< per measurement; the first one takes more
  double rate_limit = 500e-6;                ///< what the bounds assume: most difference of two clocks' rates,
  double rate_change_per_s = 0.2e-6;         ///<   and most change of that difference in a second
  const clock::Clock* clock = nullptr;       ///< the local clock, which outlives the endpoint; null: the machine's best
  std::int64_t timeout_ns = 30'000'000'000;  ///< of `open`
};

/// Registers the options `clock.*`.
void add_clock_options(base::Registry& registry);
/// The values of the options `clock.*`.
ClockSyncOptions clock_options(const base::Config& config);

/// How this rank left a barrier. All ranks left when the reference showed `global_ns`.
struct BarrierExit {
  /// That instant in the local clock: the time that was waited for. Stamp events at the barrier with it rather than
  /// with the clock: the thread may be preempted before it reads the clock.
  std::int64_t local_ns = 0;
  std::int64_t global_ns = 0;  ///< that instant in the clock of rank 0
  std::int64_t error_ns = 0;  ///< of `local_ns`
  /// Above 0: this rank received the time this much too late (it was not running), and left late.
  std::int64_t late_ns = 0;
};

/// The time of the reference, which is the clock of rank 0, on every rank. Ranks repeatedly measure their offset to
/// their parent in a binomial tree in the background, by ping-pongs that keep the shortest round trips (thesis 3.4.2;
/// `clock/offset.hpp`), and follow its rate (`clock/drift_model.hpp`). Ranks of one host that read one counter know
/// their offset exactly.
///
/// The bounds hold for all delays of messages, within the limits of the options. The estimates assume that the shortest
/// round trips took as long there as back. When a parent dies or leaves, its parent takes its place; without any, time
/// goes on at the last known rate and its bound grows.
///
/// Thread-safe. One per endpoint, ever; all ranks open one. Times are nanoseconds of `local_clock()` or of the
/// reference. Corrections are not smooth: a new measurement may set global time back by as much as its error was.
class ClockSync {
 public:
  /// Returns when this rank knows the time: after about log2(ranks) measurements of 0.1 ms over shared memory. Makes
  /// progress on the endpoint, which outlives the object. Errors: exhausted (the ranks between this one and rank 0 did
  /// not answer in time).
  static base::Result<std::unique_ptr<ClockSync>> open(Endpoint& endpoint, const ClockSyncOptions& options,
                                                       base::Log& log);

  /// Notifies the neighbours. Barriers of other ranks fail from then on; their clocks continue.
  ~ClockSync();
  ClockSync(const ClockSync&) = delete;
  ClockSync& operator=(const ClockSync&) = delete;

  /// The reference's time now, and the bound of its error. Some tens of nanoseconds; writes no shared memory.
  clock::GlobalTime global_now() const noexcept;
  /// The reference's time at a local time not long ago, and the bound of its error.
  clock::GlobalTime to_global(std::int64_t local_ns) const noexcept;
  /// The local time when the reference shows `global_ns`, and the bound of its error.
  clock::GlobalTime to_local(std::int64_t global_ns) const noexcept;
  /// The function behind these conversions, as of now, to convert many times with one function or to store it with a
  /// trace.
  clock::GlobalClock global_clock() const noexcept;
  const clock::Clock& local_clock() const noexcept;  ///< the clock whose times this object converts

  /// Waits for all ranks, then until one time at which all leave. Collective. Makes progress on the endpoint. Called by
  /// one thread at a time (others wait). Errors: io (a rank died or has left), permanently.
  base::Result<BarrierExit> barrier();

  /// The rank that this rank measures against now; none on the reference, or when none is left.
  std::optional<Rank> parent() const;
  /// How often global time was corrected so far.
  std::uint64_t corrections() const;

 private:
  struct Parts;
  explicit ClockSync(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::comm
