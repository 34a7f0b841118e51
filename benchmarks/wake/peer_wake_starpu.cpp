// benchmarks/wake/peer_wake_starpu.cpp: idle workers and their waking, on StarPU 1.3, scheduler lws (STARPU_SCHED
// overrides).
#include <starpu.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "benchmarks/wake/harness.hpp"

namespace benchmarks::wake {
namespace {

/// StarPU's workers are threads of their own: the caller never runs a task, not even in wait().
class StarpuAdapter {
 public:
  static constexpr const char* name = "starpu";

  explicit StarpuAdapter(unsigned workers) {
    setenv("STARPU_SILENT", "1", 0);
    const char* scheduler = std::getenv("STARPU_SCHED");
    starpu_conf configuration;
    starpu_conf_init(&configuration);
    configuration.precedence_over_environment_variables = 1;
    configuration.sched_policy_name = scheduler != nullptr ? scheduler : "lws";
    configuration.ncpus = static_cast<int>(workers);
    configuration.ncuda = 0;
    configuration.nopencl = 0;
    configuration.calibrate = 0;
    configuration.bus_calibrate = 0;
    if (starpu_init(&configuration) != 0) {
      std::fprintf(stderr, "StarPU does not start\n");
      std::exit(1);
    }
    starpu_codelet_init(&start_);
    start_.cpu_funcs[0] = [](void**, void* probe) { static_cast<Probe*>(probe)->start(); };
  }
  StarpuAdapter(const StarpuAdapter&) = delete;
  StarpuAdapter& operator=(const StarpuAdapter&) = delete;
  ~StarpuAdapter() { starpu_shutdown(); }

  std::string version() const {
    int major = 0, minor = 0, release = 0;
    starpu_get_version(&major, &minor, &release);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  }

  bool workers_beside_caller() const { return true; }

  void submit(Probe& probe) {
    starpu_task* task = starpu_task_create();
    task->cl = &start_;
    task->cl_arg = &probe;
    if (starpu_task_submit(task) != 0) {
      std::fprintf(stderr, "StarPU cannot run the task\n");
      std::exit(1);
    }
  }

  void wait() { starpu_task_wait_for_all(); }

 private:
  starpu_codelet start_;
};

}  // namespace
}  // namespace benchmarks::wake

int main(int argc, char** argv) {
  const benchmarks::wake::Plan plan(argc, argv);
  benchmarks::wake::StarpuAdapter adapter(plan.workers);
  benchmarks::wake::measure(adapter, plan);
}
