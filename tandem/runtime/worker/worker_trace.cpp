// tandem/runtime/worker/worker_trace.cpp: writes a worker's events.
#include "tandem/runtime/worker/worker_trace.hpp"

#include <utility>

namespace tandem::runtime {

namespace {
/// After a kernel as short as this, the next one starts with the stamp of its end: a second read of the clock would take longer
/// than what lies between, and a good part of the kernel.
constexpr std::uint64_t kShortTicks = 512;
}  // namespace

using trace::Type;

void WorkerTrace::write_taken(const Task& task, std::uint64_t steals) {
  begin_event();
  shares_stamp_ = true;
  if (std::exchange(steals_, steals) != steals) stream.append<Type::task_stolen>(flow_position(task));
  else stream.append<Type::task_popped>(flow_position(task));
}

void WorkerTrace::write_started(const Task& task) {
  begin_event();
  started_ticks_ = stream.instant();
  stream.append<Type::task_started>(flow_position(task));
}

void WorkerTrace::write_ended(const Task& task) {
  const std::uint64_t ticks = stream.read_clock();
  stream.set_instant(ticks);
  shares_stamp_ = ticks - started_ticks_ < kShortTicks;
  stream.append<Type::task_ended>(flow_position(task));
}

}  // namespace tandem::runtime
