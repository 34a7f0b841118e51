// tandem/runtime/wait/kernel_watch.hpp: a watchdog for kernels in which the submitting thread is stuck.
#pragma once

#include <cstdint>
#include <mutex>

#include "tandem/base/driver.hpp"
#include "tandem/base/log.hpp"
#include "tandem/runtime/exec/executor.hpp"

namespace tandem::runtime {

class Task;
class WorkerTeam;

/// While the submitting thread waits, it runs kernels as worker 0. Only another thread can report a kernel there that
/// does not return. This one wakes up twice in the watchdog's time, and reports a kernel of worker 0 during which no
/// task of any worker ends.
///
/// Threads: `step` belongs to the driver's thread; `begin_wait` and `end_wait` to the submitting thread. `mutex_`
/// guards all members. `step` holds it while it reads tasks: `end_wait` takes it, too, so the submitting thread
/// recycles no task meanwhile.
class KernelWatch final : public base::Steppable {
 public:
  KernelWatch(const Executor& executor, const WorkerTeam& workers, base::Log& log, std::int64_t after_ns)
      : executor_(executor), workers_(workers), log_(log), after_ns_(after_ns) {}

  void begin_wait() { set(true); }
  void end_wait() { set(false); }

  std::int64_t step(std::int64_t now_ns) override;

 private:
  void set(bool waits) {
    const std::lock_guard guard(mutex_);
    waits_ = waits;
  }
  void report() const;

  const Executor& executor_;
  const WorkerTeam& workers_;
  base::Log& log_;
  const std::int64_t after_ns_;
  std::mutex mutex_;
  bool waits_ = false;
  const Task* kernel_ = nullptr;  ///< kernel of worker 0 at the last step
  std::uint64_t finished_ = 0;    ///< tasks that had ended at the last step
  std::int64_t since_ns_ = 0;     ///< time since which both are unchanged
  bool reported_ = false;
};

}  // namespace tandem::runtime
