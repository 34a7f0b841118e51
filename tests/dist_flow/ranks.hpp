// tests/dist_flow/ranks.hpp: the ranks of a job as threads of one process, over the loop network.
#pragma once

#include <functional>
#include <vector>

#include "job_setup.hpp"
#include "tandem/tandem.hpp"

namespace tandem::dist_test {

/// Runs `program` on each rank, in a thread of its own, and returns how each ended. With TEST_TRACE_FOLDER, a folder,
/// jobs without a trace of their own are traced there, and the traces are removed.
std::vector<Ending> run_job(const JobSetup& setup, const std::function<void(Runtime&)>& program);

}  // namespace tandem::dist_test
