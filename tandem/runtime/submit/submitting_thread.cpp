// tandem/runtime/submit/submitting_thread.cpp: why a thread may not submit.
#include "tandem/runtime/submit/submitting_thread.hpp"

#include <fmt/core.h>

#include "tandem/base/exceptions.hpp"
#include "tandem/base/fiber_local.hpp"
#include "tandem/runtime/exec/worker_thread.hpp"

namespace tandem::runtime {

constinit thread_local const char SubmittingThread::token_ = 0;
const base::FiberLocal WorkerThread::own_depth_([]() noexcept -> void* { return &depth_; }, sizeof depth_);

void SubmittingThread::refuse(const char* action) const {
  if (owner_ == &token_ || WorkerThread::is_this())
    throw UsageError(
        fmt::format("cannot {} from inside a kernel: a flow is submitted by the thread that made the runtime, outside "
                    "kernels; submit the following tasks after this one instead",
                    action));
  throw UsageError(fmt::format(
      "cannot {} from this thread: a flow is sequential, and belongs to the thread that made the runtime", action));
}

}  // namespace tandem::runtime
