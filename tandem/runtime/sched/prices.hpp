// tandem/runtime/sched/prices.hpp: what the time of each worker is worth, by what there is to do. Pure.
#pragma once

#include <span>
#include <vector>

#include "tandem/runtime/sched/pulling_policy.hpp"

namespace tandem::runtime {

/// By worker, how much later all would end if it worked for a unit of time less: the duals of the area bound, whose linear program
/// shares the tasks seen so far among workers that are never idle. Their sum over workers is 1. A task costs least where its duration
/// times the price is smallest; the sum of these over some tasks is how long they keep all workers busy.
///
/// Found by raising the price of the kinds of workers that get more than their share, in steps that shrink, so within a few percent.
/// Kinds of tasks whose durations are not known do not count.
std::vector<double> prices_of(std::span<const ReadyKind> kinds, const Machine& machine);

}  // namespace tandem::runtime
