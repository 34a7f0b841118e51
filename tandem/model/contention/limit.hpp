// tandem/model/contention/limit.hpp: how many cores should use memory at once, alone and beside a message that others wait for.
#pragma once

#include "tandem/model/contention/model.hpp"

namespace tandem::model::contention {

/// What a message of one MB costs what waits for it, and all else.
struct MessageCost {
  double waited = 0;  ///< seconds, m / C
  double lost = 0;    ///< seconds of work of all cores, m / C (1 - R(n) / R)
  double sum() const noexcept { return waited + lost; }
};
/// Beside what `shared` says, where the cores would have `all_mb_s` without the message. Infinite where a message would have no bandwidth.
MessageCost cost_of_message(const Bandwidths& shared, double all_mb_s) noexcept;
/// Choices that gain less than this share of the cost are not made: predictions are not better than that.
inline constexpr double least_gain = 0.02;

/// The least number of computing cores, from 1 to `load.cores`, that have together 99 % of the most bandwidth that any number of them has without a
/// message. More of them would only slow down each other. O(W^2).
unsigned cores_that_fill_bus(const Model& model, Load load);

/// The number of computing cores, from 1 to `load.cores`, beside which a message costs least.
///
/// While m bytes are in flight, n cores of W compute. That takes m / C(n), and meanwhile the share 1 - R(n) / R of the work is lost that all cores
/// would do without the message. So what waits for the message waits
///
///   m / C(n)                        and all else loses        m / C(n) (1 - R(n) / R)
///
/// (C: `communication_mb_s`, R(n): `computation_mb_s`, R: `computation_alone_mb_s` of W cores). Of the numbers of cores that lose no more work
/// than W, the one with the least sum of both, whatever m is: so a flow that waits for messages ends earlier, and one that does not ends no later.
/// W, where that gains less than 2 % (`least_gain`). O(W^2).
unsigned cores_beside_message(const Model& model, Load load);

}  // namespace tandem::model::contention
