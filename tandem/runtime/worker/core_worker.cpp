// tandem/runtime/worker/core_worker.cpp: the steps of a worker whose thread runs the kernels.
#include "tandem/runtime/worker/core_worker.hpp"

#include <algorithm>

#include "tandem/runtime/worker/expected_end.hpp"

namespace tandem::runtime {

std::int64_t CoreWorker::step_tasks(std::int64_t now_ns) {
  wake_up();
  for (unsigned count = 0; count < options_.tasks_per_step && !is_paused(); ++count) {
    Task* const task = take_unless_holding();
    if (task == nullptr) return rest(now_ns);
    work_comes(now_ns);
    run(*task);
  }
  // The driver may step others now, so the kept task goes to a queue where they find it.
  queue_kept();
  return now_ns;
}

/// Prefetches what the end of the task writes while the kernel runs: the lines of its successors, which another worker
/// or the submitting thread wrote last. A link is in its successor, behind the line with the count.
static void prefetch_successors(const Task& task) noexcept {
  if (task.recorded) {
    const RecordedPart& part = *task.recording;
    const std::uint32_t count = std::min(part.successor_count, 8U);
    for (std::uint32_t i = 0; i < count; ++i) __builtin_prefetch(part.successors[i], 1);
  } else if (const Link* link = task.successors.peek()) {
    __builtin_prefetch(link, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(link) - 64, 1);
  }
}

void CoreWorker::run(Task& task) {
  if (!is_ready(task)) return;
  running_.store(&task, std::memory_order_release);
  prefetch_successors(task);
  const bool reports_end = expects();
  const bool is_timed = measures_ || reports_end || task.chooses;
  const Durations::Choice choice = is_timed ? implementation_for(task) : Durations::Choice();
  trace_.note_started(task);
  if (is_timed) run_timed(task, choice, reports_end);
  else invoke(task, 0);
  running_.store(nullptr, std::memory_order_relaxed);
  finish(task);
}

/// As `run`, for a measured kernel.
void CoreWorker::run_timed(Task& task, const Durations::Choice& choice, bool reports_end) {
  const std::int64_t start_ns = clock_.now_ns();
  if (options_.metered) [[unlikely]] measurements_.begin_kernel(task.codelet, start_ns);
  if (reports_end)
    if (const auto mean_ns = measurements_.mean_ns(task.codelet)) report_expected_end(task, *mean_ns);
  invoke(task, choice.implementation);
  const std::int64_t end_ns = clock_.now_ns();
  if (options_.timed || reports_end) measurements_.add_kernel(task, start_ns, end_ns);
  learn(task, choice, start_ns, end_ns);
}

}  // namespace tandem::runtime
