// tests/cuda/fake_objects.hpp: streams and contexts of the CUDA driver for tests. Private to it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "tandem/runtime/device/cuda/cuda_driver.hpp"
#include "tests/cuda/fake_cuda.hpp"

namespace tandem::fake_cuda {

Control& settings();
/// The calling thread is busy for so long.
void spend(std::int64_t ns);
bool is_far(const void* address);
/// Those of the tile kernels (cuda_rows.inc).
void add_row_kernels(Control& control);
/// Counts itself among the kernels that run, and fails its context if it is told to.
void run_kernel(runtime::cuda::ContextObject& context, const std::function<void()>& body);

}  // namespace tandem::fake_cuda

namespace tandem::runtime::cuda {

struct ContextObject {
  int device = 0;
  int retained = 0;
  std::atomic<Status> failure{kSuccess};
  std::atomic<std::size_t> used_bytes{0};
};

/// Runs what is posted, in order, on a thread of its own; nothing once its context has failed.
struct StreamObject {
  explicit StreamObject(ContextObject& of) : context(of), thread([this] { serve(); }) {}
  ~StreamObject() {
    {
      const std::lock_guard guard(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }
  /// `always`: in a failed context, too.
  void post(std::function<void()> work, bool always = false) {
    const std::lock_guard guard(mutex);
    queue.push_back({std::move(work), always});
    changed.notify_all();
  }
  Status wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return queue.empty() && !busy; });
    return context.failure;
  }

  struct Work {
    std::function<void()> run;
    bool always = false;
  };
  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      const Work work = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      if (work.always || context.failure == kSuccess) work.run();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }

  ContextObject& context;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  bool busy = false;
  bool stopping = false;
  std::thread thread;
};

struct EventObject {
  ContextObject* context = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  unsigned recorded = 0;
  unsigned passed = 0;
  std::chrono::steady_clock::time_point at{};  ///< when it passed last
};

struct FunctionObject {
  explicit FunctionObject(fake_cuda::Kernel of) : kernel(std::move(of)) {}
  fake_cuda::Kernel kernel;
  std::atomic<int> dynamic_shared{48 << 10};  ///< bytes that a launch may ask for
};
struct GraphNodeObject {
  std::function<void()> kernel = {};
  Event event = nullptr;  ///< recorded there; null: a kernel
};
struct GraphObject {
  std::deque<GraphNodeObject> nodes;  ///< in the order of the chain
};
struct GraphExecObject {
  std::deque<GraphNodeObject> nodes;
};
struct ModuleObject {
  std::deque<FunctionObject> functions;  ///< found in it
};

}  // namespace tandem::runtime::cuda
