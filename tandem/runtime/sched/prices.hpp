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
/// Where energy counts (`KindWorkers::draw`), the linear program makes the sum of late_watts times the makespan and the energy of all kernels small. Its
/// duals, in units of late_watts, are these prices: a task costs least where its duration times the sum of price and draw is smallest. Kinds of
/// workers that are better left idle have the price 0, nearly.
///
/// Found by raising the price of the kinds of workers that get more than their share, in steps that shrink, so within a few percent.
/// Kinds of tasks whose durations are not known do not count.
std::vector<double> prices_of(std::span<const ReadyKind> kinds, const Machine& machine);

/// Where a task of `kind` costs least, by these; null: nobody knows how long it takes.
const KindWorkers* cheapest_of(const ReadyKind& kind, std::span<const double> prices);

/// By kind of worker, the tasks seen so far that cost least there.
std::vector<KindPart> parts_of(std::span<const ReadyKind> kinds, std::span<const double> prices);

}  // namespace tandem::runtime
