// tests/dist_flow/random_program.hpp: one rank's program of a plan.
#pragma once

#include "deterministic_job.hpp"
#include "random_plan.hpp"

namespace tandem::dist_test {

/// Plays the plan on the rank of `rt`, and compares its values with the sequential execution's. Throws std::logic_error
/// where they differ.
void play_program(const Plan& plan, Runtime& rt, DeterministicJob& job);

}  // namespace tandem::dist_test
