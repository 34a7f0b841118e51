// tandem/runtime/sched/policies/prices.hpp: prices of the time of each worker, from the tasks that there are. Pure.
#pragma once

#include <span>
#include <vector>

#include "tandem/runtime/sched/policies/pulling_policy.hpp"

namespace tandem::runtime {

/// By worker, how much later all would end if it worked for a unit of time less: the duals of the area bound, whose
/// linear program shares the tasks seen so far among workers that are never idle. The sum over workers is 1. A task
/// costs least where its duration times the price is smallest; the sum of these costs over some tasks is how long they
/// keep all workers busy.
///
/// Where energy counts (`KindWorkers::draw`), the linear program minimises late_watts times the makespan plus the
/// energy of all kernels. Its duals, in units of late_watts, are these prices: a task costs least where its duration
/// times the sum of price and draw is smallest. Kinds of workers that are better left idle have a price of nearly 0.
///
/// The prices are found by raising the price of kinds of workers that get more than their share, in steps that shrink,
/// to within a few percent. Kinds of tasks without known durations do not count.
std::vector<double> prices_of(std::span<const ReadyKind> kinds, const Machine& machine);

/// The workers on which a task of `kind` costs least by these prices; null: its duration is not known.
const KindWorkers* cheapest_of(const ReadyKind& kind, std::span<const double> prices);

/// By kind of worker, the part of the tasks seen so far that cost least there.
std::vector<KindPart> parts_of(std::span<const ReadyKind> kinds, std::span<const double> prices);

}  // namespace tandem::runtime
