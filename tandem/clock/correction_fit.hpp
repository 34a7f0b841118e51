// tandem/clock/correction_fit.hpp: from a trace to the least squares (2) of correction.hpp under its inequalities (1),
// and back.
//
// Each rank's offset is written as a straight line through its points, plus a function that is linear between knots and
// small: what `correction_solver.hpp` finds. First without messages. Then those messages become inequalities that may
// matter: with
//
//     open_r(t) = max(w_i, w_{i+1}) + alpha (t_{i+1} - t_i)^2 / 8 + rms of the residuals                                     (3)
//
// between two points (beyond the last one, with the uncertainty of its slope), no right fit is further from the first
// one than some open_a + open_b. Messages with more slack than that bound nothing. Those early by more are inconsistent
// with the points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/clock/correction.hpp"

namespace tandem::clock::internal {

inline std::int64_t least_latency_ns(const CorrectionOptions& options, std::size_t ranks,
                                     const TracedMessage& message) {
  if (options.least_latency_of_pair_ns.empty()) return options.least_latency_ns;
  return options.least_latency_of_pair_ns[message.sender.index() * ranks + message.receiver.index()];
}

/// The median of the times between neighbouring points of a rank; a second when there are none.
double usual_window_ns(const TracedClocks& trace);

struct FitWindows {
  double window_ns;  ///< W; longer where a rank would have more than some thousand knots
  double usual_ns;   ///< T
};

struct FittedClocks {
  std::vector<std::vector<Correction::Knot>> knots;  ///< of each rank; none for rank 0, and where there are no points
  std::uint64_t constraint_count = 0;
  std::uint64_t inconsistent_count = 0;
  double largest_shift_ns = 0;
};

/// Fits the clocks of `trace`, whose points are in order of time.
FittedClocks fit_clocks(const TracedClocks& trace, const CorrectionOptions& options, const FitWindows& windows);

}  // namespace tandem::clock::internal
