// tests/dist_flow/random_plan.hpp: random flows on random owners, drawn from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "job_setup.hpp"
#include "random_operation.hpp"

namespace tandem::dist_test {

struct Plan {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 2;
  JobSetup setup;
  std::vector<std::optional<std::uint32_t>> owners;  ///< none: each rank's own
  std::vector<bool> allocated;                       ///< by Tandem, so without a value at first
  std::vector<std::size_t> sizes;
  std::vector<Operation> operations;
  /// Operations from a position on that are recorded together, and how often they are replayed.
  struct Recorded {
    std::size_t length = 0;
    unsigned replays = 0;
  };
  std::map<std::size_t, Recorded> recorded;
  bool faults = false;
  bool objects = false;  ///< all data are objects, whose sizes change; `sizes` are those at first, and the estimates
  bool cancels = false;         ///< some operations end their flow
  bool may_be_refused = false;  ///< the budget of copies may be less than a task sees
  std::vector<std::vector<bool>> skips;  ///< by rank and operation: tasks that it skips; empty: no rank skips any
};

Plan draw(std::uint64_t seed);
/// The same flow, in which some kernels and programs cancel what is to come until the next wait.
Plan draw_with_cancels(std::uint64_t seed);
/// The same flow, in which ranks skip tasks; some ranks skip all that they may.
Plan with_skips(Plan plan);

/// Prints the plan for a person who looks for a mistake.
void print(const Plan& plan);

}  // namespace tandem::dist_test
