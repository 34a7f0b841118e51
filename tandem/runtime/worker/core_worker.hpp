// tandem/runtime/worker/core_worker.hpp: a worker whose thread runs the kernels.
#pragma once

#include "tandem/runtime/worker/worker.hpp"

namespace tandem::runtime {

/// Runs one task after the other.
///
/// Cost of a task without statistics: its kernel's call, one exchange to seal, one load and at most one
/// read-modify-write per successor; no lock when it runs its own successor next.
class CoreWorker final : public Worker {
 public:
  CoreWorker(unsigned index, const WorkerSpec& spec, const WorkerOptions& options, Executor& executor,
             const clock::Clock& clock)
      : Worker(index, spec, options, executor, clock) {}

  void visit_running(const std::function<void(const Task&)>& visit) const override {
    if (const Task* const task = running_.load(std::memory_order_acquire)) visit(*task);
  }

 private:
  std::int64_t step_tasks(std::int64_t now_ns) override;
  void run(Task& task);
  void run_timed(Task& task, const Durations::Choice& choice, bool reports_end);

  alignas(64) std::atomic<const Task*> running_{nullptr};
};

}  // namespace tandem::runtime
