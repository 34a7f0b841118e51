// tandem/clock/correction.hpp: corrects the clocks of a finished trace: from local stamps to the time of rank 0.
//
// Mathematics. Let theta_r(t) be the reference's time minus that of rank r when r's clock shows t; theta_0 = 0. A trace
// has points (t_i, o_i, w_i) at which rank r was compared with the reference, |theta_r(t_i) - o_i| <= w_i (what
// `DriftModel` works with while the program runs; afterwards there are points on both sides), and messages, none of
// which arrives before it was sent: with t_a when a sends it, t_b when b receives it, and L the least latency,
//
//     t_b + theta_b(t_b)  >=  t_a + theta_a(t_a) + L(a, b).                                                                 (1)
//
// Method `none`: theta_r is the offset of the first point. With a rate of 20 ppm that is wrong by 20 us after a second.
// Method `linear` (Vampir's, and the article's two synchronised barriers): theta_r is interpolated between the first
// and the last barrier, and its value there is held before and after (figure 19: extrapolated, it may be wrong by
// anything). A rate that changes by df over a span T leaves an error of up to df T / 8 between them.
// Method `piecewise`: theta_r is linear between knots k_j, a window W apart, x_j = theta_r(k_j) being the least of
//
//     sum_i ((theta_r(t_i) - o_i) / s_i)^2  +  sum_j (W / T) ((x_{j+1} - 2 x_j + x_{j-1}) / (alpha W^2))^2                  (2)
//     s_i = w / 8 + w_i - w,    w = min_i w_i,    T the usual time between points,
//
// under the inequalities (1). alpha is the limit on the change of a rate (`DriftLimits`), so that the second sum allows
// what a clock may do and no more; W / T makes it the same for all W. s_i: see (3) of drift_model.hpp. Knots cover all
// points and messages of the rank; beyond, the rate stays as it was last: what is not known then is how it changed, not
// the rate itself.
//
// Few messages matter. Between the same two knots of a and the same two of b, (1) is linear in t, so that of one pair,
// direction and window only those on the lower convex hull of t_b - t_a bound anything (Duda et al., "Estimating global
// time in distributed systems"); and none whose slack is more than all that the points leave open. One that they
// contradict by more than that is *inconsistent* (a clock was set, a stamp is wrong, L is too large): it is counted,
// and bends nothing. When violations remain since lines are too stiff, W is halved.
//
// A path that always takes longer one way than back cannot be detected. Points err by half of the difference, within
// w_i, and as long as both ways take longer than L no message shows it. All ranks may be shifted so, by constants.
//
// Example: rank 1 has the points (0 s, 0, 100 ns) and (10 s, 50 us, 100 ns), and was 10 us off that line in between, at
// 5 s. `none` is wrong by 50 us at 10 s, `linear` by 10 us at 5 s. A message that rank 1 sends at 5 s and that takes 4
// us arrives 6 us before it was sent by `linear`; `piecewise` bends the line there by those 6 us. With points every
// second it needs no message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/base/ids.hpp"
#include "tandem/clock/drift_model.hpp"

namespace tandem::clock {

/// When the rank's clock showed `local_ns`, the reference showed `reference_ns`, within `error_ns`.
struct SyncPoint {
  std::int64_t local_ns = 0;
  std::int64_t reference_ns = 0;
  std::int64_t error_ns = 0;
  bool is_barrier = false;  ///< from a synchronised barrier: the time that was waited for (`BarrierExit::local_ns`)
};

struct TracedMessage {
  base::Rank sender;
  base::Rank receiver;
  std::int64_t send_local_ns = 0;     ///< the sender's clock, before the message could leave
  std::int64_t receive_local_ns = 0;  ///< the receiver's clock, when the message was there
};

/// A continuous function from a rank's local time to the reference's, linear between knots, that never decreases. A
/// value; reading is thread-safe.
class Correction {
 public:
  struct Knot {
    std::int64_t local_ns = 0;
    std::int64_t reference_ns = 0;
    friend bool operator==(const Knot&, const Knot&) = default;
  };
  /// How the function continues before the first knot and after the last one.
  enum class Outside : std::uint8_t { hold_offset, hold_rate };

  Correction() noexcept = default;  ///< the identity
  /// `knots` in strictly increasing local order (assertion). One whose reference is before that of its predecessor is
  /// set to that: the time of the reference stands still there.
  explicit Correction(std::vector<Knot> knots, Outside outside = Outside::hold_offset);

  /// O(log knots). Times of 70 years fit.
  std::int64_t to_reference(std::int64_t local_ns) const noexcept { return at(segment_of(local_ns), local_ns); }
  const std::vector<Knot>& knots() const noexcept { return knots_; }

  /// For times that mostly ascend: remembers the position of the last one, which makes the next O(1). The correction
  /// outlives it.
  class Cursor {
   public:
    explicit Cursor(const Correction& correction) noexcept : correction_(&correction) {}
    std::int64_t to_reference(std::int64_t local_ns) noexcept;

   private:
    const Correction* correction_;
    std::size_t segment_ = 0;
  };

 private:
  /// The segment of a time: 0 is before the first knot; i begins at knot i - 1.
  std::size_t segment_of(std::int64_t local_ns) const noexcept;
  std::int64_t at(std::size_t segment, std::int64_t local_ns) const noexcept;

  std::vector<Knot> knots_;
  std::vector<double> rates_;  ///< of each segment: ns of the reference per local ns, beyond 1; at least -1
};

/// A trace's facts about its ranks' clocks. Points and messages in any order; those in order of time are faster.
struct TracedClocks {
  std::vector<std::vector<SyncPoint>> points;  ///< of each rank; those of rank 0, the reference, are ignored
  std::span<const TracedMessage> messages;     ///< between existing ranks (assertion)

  std::size_t rank_count() const noexcept { return points.size(); }
};

enum class CorrectionMethod : std::uint8_t { none, linear, piecewise };

struct CorrectionOptions {
  CorrectionMethod method = CorrectionMethod::piecewise;
  DriftLimits limits = {};
  double window_s = 0;                 ///< W; 0: the usual time between points
  std::int64_t least_latency_ns = 0;   ///< L of all pairs
  /// L of each pair instead, at sender * ranks + receiver; empty, or one for each (assertion).
  std::vector<std::int64_t> least_latency_of_pair_ns = {};
};

/// Messages that were received before they could be.
struct Violations {
  std::uint64_t count = 0;
  std::int64_t worst_ns = 0;
};

struct RankCorrectionReport {
  std::size_t point_count = 0;
  bool corrected = false;       ///< rank 0, and all with a point; without any the local time stays unchanged
  double residual_rms_ns = 0;   ///< of the points, afterwards
  double residual_max_ns = 0;
};

struct CorrectionReport {
  std::vector<RankCorrectionReport> ranks;
  std::uint64_t message_count = 0;      ///< between different ranks
  Violations by_offset, by_line, after;  ///< with `none`, with `linear`, and with the requested method
  // The rest applies to `piecewise`.
  std::uint64_t constraint_count = 0;    ///< messages that were kept as (1)
  std::uint64_t inconsistent_count = 0;  ///< messages that contradict the points, and were left out
  std::int64_t largest_shift_ns = 0;     ///< greatest move of a knot by messages
  double window_s = 0;                   ///< the final W
};

struct CorrectedClocks {
  std::vector<Correction> of_rank;
  CorrectionReport report;
};

/// The corrections of all ranks. Pure. Some passes over all messages, and for `piecewise` some tens of factorisations
/// of a sparse matrix with a row per knot: 1.3 s for a million messages of 4 ranks over a minute, 2.3 s for those of 64
/// ranks, 19 s for those of 256 (points each second; two cores of an Intel Xeon virtual machine). Memory: 40 bytes per
/// message that could matter.
CorrectedClocks correct_clocks(const TracedClocks& trace, const CorrectionOptions& options = {});

}  // namespace tandem::clock
