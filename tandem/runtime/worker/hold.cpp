// tandem/runtime/worker/hold.cpp: begins and ends the hold of a worker.
#include "tandem/runtime/worker/hold.hpp"

namespace tandem::runtime {

bool Hold::may_hold(const Task& task) const {
  return !task.ops->serves && !task.restricted && spec_.device == DeviceKind::cpu &&
         !executor_.queues().somebody_idle();
}

bool Hold::begin(const Task& task, std::optional<std::int64_t> task_ns) {
  if (!task_ns) return false;
  const std::int64_t now_ns = clock_.now_ns();
  const auto one = executor_.messages().expected().claim([&](const ExpectedTasks::Expected& known) {
    return known.due_ns > now_ns && executor_.queues().waits(task, *task_ns, known.priority, known.due_ns - now_ns);
  });
  if (!one) return false;
  until_ns_ = one->due_ns + (one->due_ns - now_ns) / 4;
  above_ = task.priority;
  expected_ = one->number;
  return true;
}

Task* Hold::next_urgent() {
  ReadyQueues& queues = executor_.queues();
  // True until it is ready, so the queues are read after this.
  const bool still_expected = executor_.messages().expected().contains(expected_);
  if (Task* task = queues.pop_above(worker_, above_)) {
    end();
    return task;
  }
  if (still_expected && clock_.now_ns() < until_ns_) return nullptr;
  end();
  return queues.pop(worker_);
}

}  // namespace tandem::runtime
