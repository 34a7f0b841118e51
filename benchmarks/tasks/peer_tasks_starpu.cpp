// benchmarks/tasks/peer_tasks_starpu.cpp: the task flows on StarPU 1.3.
//
// StarPU at its best for this: scheduler lws (STARPU_SCHED overrides), no performance models and so no calibration,
// data without contents, tasks filled in directly instead of through starpu_task_insert's argument list.
#include <starpu.h>

#include <cstdio>
#include <cstdlib>
#include <semaphore>
#include <string>
#include <vector>

#include "benchmarks/tasks/harness.hpp"

namespace benchmarks::tasks {
namespace {

void nothing(void**, void*) {}

void sleep_until_released(void**, void* semaphore) { static_cast<std::binary_semaphore*>(semaphore)->acquire(); }

/// A codelet with `access_count` accesses, the last of which updates and the others read.
starpu_codelet make_codelet(starpu_cpu_func_t kernel, int access_count) {
  starpu_codelet codelet;
  starpu_codelet_init(&codelet);
  codelet.cpu_funcs[0] = kernel;
  codelet.nbuffers = access_count;
  for (int i = 0; i < access_count; ++i) {
    codelet.modes[i] = i + 1 < access_count ? STARPU_R : STARPU_RW;
  }
  return codelet;
}

/// Submits from the thread that made it; StarPU's workers are threads of their own, so `workers` + 1 threads exist.
class StarpuAdapter {
 public:
  static constexpr const char* name = "starpu";
  static constexpr std::size_t memory_tasks = 50'000;

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
    starpu_profiling_status_set(STARPU_PROFILING_DISABLE);
  }
  StarpuAdapter(const StarpuAdapter&) = delete;
  StarpuAdapter& operator=(const StarpuAdapter&) = delete;
  ~StarpuAdapter() { starpu_shutdown(); }

  std::string version() const {
    int major = 0;
    int minor = 0;
    int release = 0;
    starpu_get_version(&major, &minor, &release);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  }

  template <class Flow>
  void open(const Flow&) {
    handles_.resize(Flow::data_count);
    for (starpu_data_handle_t& handle : handles_) {
      starpu_void_data_register(&handle);
    }
  }

  void close() {
    for (const starpu_data_handle_t handle : handles_) {
      starpu_data_unregister(handle);
    }
    handles_.clear();
  }

  void task() { submit(make_task(0)); }

  void task(ReadWrite own) {
    starpu_task* task = make_task(1);
    task->handles[0] = handles_[own.datum];
    submit(task);
  }

  void task(Read a, ReadWrite own) {
    starpu_task* task = make_task(2);
    task->handles[0] = handles_[a.datum];
    task->handles[1] = handles_[own.datum];
    submit(task);
  }

  void task(Read a, Read b, ReadWrite own) {
    starpu_task* task = make_task(3);
    task->handles[0] = handles_[a.datum];
    task->handles[1] = handles_[b.datum];
    task->handles[2] = handles_[own.datum];
    submit(task);
  }

  void wait() { starpu_task_wait_for_all(); }

  static double memory_bytes() { return resident_bytes(); }

  bool can_block() const { return true; }

  void block() {
    starpu_task* task = starpu_task_create();
    task->cl = &blocker_;
    task->handles[0] = handles_[0];
    task->cl_arg = &released_;
    submit(task);
  }

  void release() { released_.release(); }

 private:
  starpu_task* make_task(std::size_t access_count) {
    starpu_task* task = starpu_task_create();
    task->cl = &codelets_[access_count];
    return task;
  }

  static void submit(starpu_task* task) {
    if (starpu_task_submit(task) != 0) {
      std::fprintf(stderr, "StarPU cannot run the task\n");
      std::exit(1);
    }
  }

  starpu_codelet codelets_[4] = {make_codelet(nothing, 0), make_codelet(nothing, 1), make_codelet(nothing, 2),
                                 make_codelet(nothing, 3)};
  starpu_codelet blocker_ = make_codelet(sleep_until_released, 1);
  std::binary_semaphore released_{0};
  std::vector<starpu_data_handle_t> handles_;
};

}  // namespace
}  // namespace benchmarks::tasks

int main(int argc, char** argv) { return benchmarks::tasks::run_flows<benchmarks::tasks::StarpuAdapter>(argc, argv); }
