// tandem/model/contention/limit.hpp: how many cores should use memory at once, alone and beside an awaited message.
#pragma once

#include "tandem/model/contention/model.hpp"

namespace tandem::model::contention {

/// The cost of a message of one MB, for what waits for it and for all else.
struct MessageCost {
  double waited = 0;  ///< seconds, m / C
  double lost = 0;    ///< seconds of work of all cores, m / C (1 - R(n) / R)
  double sum() const noexcept { return waited + lost; }
};
/// The cost with the bandwidths `shared`, if the cores would have `all_mb_s` without the message. Infinite where a
/// message has no bandwidth.
MessageCost cost_of_message(const Bandwidths& shared, double all_mb_s) noexcept;
/// Choices that gain less than this share of the cost are not made: predictions are not more exact.
inline constexpr double least_gain = 0.02;

/// The least number of computing cores, from 1 to `load.cores`, that have together 99 % of the most bandwidth of any
/// number without a message. More cores would only slow each other down. O(W^2).
unsigned cores_that_fill_bus(const Model& model, Load load);

/// The number of computing cores, from 1 to `load.cores`, beside which a message costs least.
///
/// While m bytes are in flight, n cores of W compute. That takes m / C(n), and meanwhile the share 1 - R(n) / R of the
/// work that all cores would do without the message is lost. So what waits for the message waits
///
///   m / C(n)                        and all else loses        m / C(n) (1 - R(n) / R)
///
/// (C: `communication_mb_s`, R(n): `computation_mb_s`, R: `computation_alone_mb_s` of W cores). Of the numbers of cores
/// that lose no more work than W, the one with the least sum of both, for any m: so a flow that waits for messages ends
/// earlier, and one that does not ends no later. W, where that gains less than 2 % (`least_gain`). O(W^2).
unsigned cores_beside_message(const Model& model, Load load);

}  // namespace tandem::model::contention
