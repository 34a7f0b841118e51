// tandem/runtime/exec/worker_thread.hpp: whether this thread is a worker's, for messages.
#pragma once

namespace tandem::base {
class FiberLocal;
}

namespace tandem::runtime {

/// Marks the calling thread as a worker's while it lives: the thread runs kernels and callbacks.
class WorkerThread {
 public:
  WorkerThread() noexcept { ++depth_; }
  ~WorkerThread() { --depth_; }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  static bool is_this() noexcept { return depth_ != 0; }

 private:
  static constinit inline thread_local unsigned depth_ = 0;
  static const base::FiberLocal own_depth_;
};

}  // namespace tandem::runtime
