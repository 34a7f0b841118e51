// tandem/runtime/worker/kernel_counters.cpp: reads counters before and after a kernel, and writes the difference.
#include "tandem/runtime/worker/kernel_counters.hpp"

#include <utility>

namespace tandem::runtime {

void KernelCounters::begin(const trace::Stream& stream) {
  is_counting_ = stream.any_on<trace::Type::task_counters>();
  if (!is_counting_) return;
  if (!std::exchange(is_open_, true))
    if (auto opened = open_()) counters_ = std::move(opened).value();
  is_counting_ = counters_ != nullptr;
  if (is_counting_) before_ = counters_->read();
}

void KernelCounters::end() noexcept {
  if (is_counting_) counts_ = counters_->read().since(before_);
}

void KernelCounters::write(const Task& task, trace::Stream& stream) noexcept {
  if (!std::exchange(is_counting_, false)) return;
  stream.append<trace::Type::task_counters>(flow_position(task), counts_.cycles, counts_.instructions, counts_.stalled,
                                            counts_.misses);
}

}  // namespace tandem::runtime
