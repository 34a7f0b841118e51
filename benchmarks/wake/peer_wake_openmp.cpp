// benchmarks/wake/peer_wake_openmp.cpp: idle workers and their waking, on the OpenMP library of the compiler.
//
// All is measured inside one parallel region: the other threads are at its end, where they wait for tasks by the
// library's own policy (OMP_WAIT_POLICY and what goes with it).
#include <omp.h>

#include <string>

#include "benchmarks/wake/harness.hpp"

namespace benchmarks::wake {
namespace {

class OpenmpAdapter {
 public:
#ifdef __clang__
  static constexpr const char* name = "libomp";
#else
  static constexpr const char* name = "openmp";
#endif

  std::string version() const { return std::string(__VERSION__) + ", OpenMP " + std::to_string(_OPENMP); }
  bool workers_beside_caller() const { return omp_get_num_threads() > 1; }
  void submit(Probe& probe) {
    Probe* const target = &probe;
#pragma omp task firstprivate(target)
    target->start();
  }
  void wait() {
#pragma omp taskwait
  }
};

}  // namespace
}  // namespace benchmarks::wake

int main(int argc, char** argv) {
  const benchmarks::wake::Plan plan(argc, argv);
  benchmarks::wake::OpenmpAdapter adapter;
#pragma omp parallel num_threads(plan.workers)
#pragma omp master
  benchmarks::wake::measure(adapter, plan);
}
