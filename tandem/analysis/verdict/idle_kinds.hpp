// tandem/analysis/verdict/idle_kinds.hpp: workers that were idle because all ready tasks ran on other kinds of workers.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/analysis/verdict/kernel_profile.hpp"
#include "tandem/analysis/verdict/time_split.hpp"

namespace tandem::analysis {

/// Workers of one kind, and their idle times while every task of their rank that was ready, or had been taken and
/// waited for memory, was of a codelet that in this run ran on other kinds of workers alone.
struct IdleKind {
  std::uint32_t kind = 0;  ///< of `WorkerKinds`
  SpentTimes ns = {};      ///< parts of `Spent::ready_elsewhere` and `Spent::awaiting_memory`
};

/// The idle times by kind; empty where all workers are of one kind. `kernels`: of this history. O(n) for n tasks and
/// states, for each kind, and a sort.
std::vector<IdleKind> idle_kinds(const History& history, const TimeSplit& split,
                                 const std::vector<KernelProfile>& kernels);

}  // namespace tandem::analysis
