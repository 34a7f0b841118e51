// benchmarks/tasks/peer_tasks_openmp.cpp: the task flows on OpenMP's `task depend`, of the compiler that builds this
// file.
//
// Both libraries measured here bound the tasks that wait: GNU's runs a task at once, as soon as its predecessors have,
// when 64 per thread exist, which makes its independent tasks function calls.
#include <omp.h>

#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include "benchmarks/tasks/harness.hpp"

namespace benchmarks::tasks {
namespace {

/// Does nothing, but is there: a compiler drops a task with an empty body.
inline void empty_kernel() { asm volatile(""); }

/// Lives and is used inside a parallel region, on the one thread that submits; that thread runs tasks in wait().
class OpenmpAdapter {
 public:
#ifdef __clang__
  static constexpr const char* name = "libomp";
  static constexpr std::size_t memory_tasks = 100'000;
  static double memory_bytes() { return resident_bytes(); }
#else
  static constexpr const char* name = "openmp";
  static constexpr std::size_t memory_tasks = 100;
  static double memory_bytes() { return allocated_bytes(); }
#endif

  explicit OpenmpAdapter(unsigned workers) : workers_(workers) {}

  std::string version() const { return std::string(__VERSION__) + ", OpenMP " + std::to_string(_OPENMP); }

  template <class Flow>
  void open(const Flow&) {
    data_.resize(Flow::data_count);
  }

  void close() {}

  void task() {
#pragma omp task
    empty_kernel();
  }

  void task(ReadWrite own) {
    [[maybe_unused]] char* const c = &data_[own.datum];
#pragma omp task depend(inout : c[0])
    empty_kernel();
  }

  void task(Read first, ReadWrite own) {
    [[maybe_unused]] char* const a = &data_[first.datum];
    [[maybe_unused]] char* const c = &data_[own.datum];
#pragma omp task depend(in : a[0]) depend(inout : c[0])
    empty_kernel();
  }

  void task(Read first, Read second, ReadWrite own) {
    [[maybe_unused]] char* const a = &data_[first.datum];
    [[maybe_unused]] char* const b = &data_[second.datum];
    [[maybe_unused]] char* const c = &data_[own.datum];
#pragma omp task depend(in : a[0], b[0]) depend(inout : c[0])
    empty_kernel();
  }

  void wait() {
#pragma omp taskwait
  }

  /// A single thread would sleep in the task that only it can release.
  bool can_block() const { return workers_ > 1; }

  void block() {
    [[maybe_unused]] char* const c = data_.data();
    std::binary_semaphore* const released = &released_;
#pragma omp task depend(inout : c[0]) firstprivate(released)
    released->acquire();
  }

  void release() { released_.release(); }

 private:
  unsigned workers_;
  std::vector<char> data_;
  std::binary_semaphore released_{0};
};

}  // namespace
}  // namespace benchmarks::tasks

int main(int argc, char** argv) {
  namespace tasks = benchmarks::tasks;
  const tasks::Plan plan(argc, argv);
  std::optional<benchmarks::Report> report;
#pragma omp parallel num_threads(plan.workers) default(shared)
#pragma omp single
  report = tasks::measure<tasks::OpenmpAdapter>(plan);
  report->print();
  return 0;
}
