// tandem/runtime/wait/kernel_watch.cpp: looks at what the workers run, and reports kernels that do not end.
#include "tandem/runtime/wait/kernel_watch.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::runtime {

std::int64_t KernelWatch::step(std::int64_t now_ns) {
  const std::lock_guard guard(mutex_);
  const auto running = waits_ ? workers_.running() : std::vector<WorkerTeam::Running>();
  const Task* const kernel = !running.empty() && running.front().worker == 0 ? running.front().task : nullptr;
  const std::uint64_t finished = executor_.finished();
  if (kernel == nullptr || kernel != kernel_ || finished != finished_) {
    kernel_ = kernel;
    finished_ = finished;
    since_ns_ = now_ns;
    reported_ = false;
  } else if (now_ns - since_ns_ >= after_ns_ && !std::exchange(reported_, true)) {
    report();
  }
  return now_ns + after_ns_ / 2 + 1;
}

void KernelWatch::report() const {
  log_.error("no task has ended for {:.1f} s", static_cast<double>(after_ns_) * 1e-9);
  for (const auto& [worker, task] : workers_.running())
    log_.error("  worker {}{}: {}: its kernel is running", worker, worker == 0 ? ", the thread that waits" : "",
               describe(*task));
}

}  // namespace tandem::runtime
