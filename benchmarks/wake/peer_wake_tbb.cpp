// benchmarks/wake/peer_wake_tbb.cpp: idle workers and their waking, on oneTBB's task_group.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

#include <string>

#include "benchmarks/wake/harness.hpp"

namespace benchmarks::wake {
namespace {

/// The thread that made it works in wait() only.
class TbbAdapter {
 public:
  static constexpr const char* name = "tbb";

  explicit TbbAdapter(unsigned workers)
      : workers_(workers), parallelism_(tbb::global_control::max_allowed_parallelism, workers) {}

  std::string version() const { return TBB_runtime_version(); }
  /// oneTBB's pool has no thread beside the caller on a machine of one core, whatever the limit.
  bool workers_beside_caller() const { return workers_ > 1 && tbb::this_task_arena::max_concurrency() > 1; }
  void submit(Probe& probe) {
    group_.run([&probe] { probe.start(); });
  }
  void wait() { group_.wait(); }

 private:
  unsigned workers_;
  tbb::global_control parallelism_;
  tbb::task_group group_;
};

}  // namespace
}  // namespace benchmarks::wake

int main(int argc, char** argv) {
  const benchmarks::wake::Plan plan(argc, argv);
  benchmarks::wake::TbbAdapter adapter(plan.workers);
  benchmarks::wake::measure(adapter, plan);
}
