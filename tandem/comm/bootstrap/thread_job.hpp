// tandem/comm/bootstrap/thread_job.hpp: a job whose ranks are objects or threads of one process.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm {

/// One Job for each rank, with a common directory in memory and a secret of its own. For tests, and for simulations of
/// many ranks. A look-up sleeps until the peer has published, at most for `timeout_ns`: ranks that share one thread
/// publish all before any of them looks for another.
std::vector<Job> make_thread_job(std::uint32_t size, std::int64_t timeout_ns = 60'000'000'000);

}  // namespace tandem::comm
