// benchmarks/wake/bench_wake_tandem.cpp: idle workers and their waking, on Tandem.
#include <string>

#include "benchmarks/wake/harness.hpp"
#include "tandem/tandem.hpp"

namespace benchmarks::wake {
namespace {

/// The thread that made it is worker 0, and works in wait() only.
class TandemAdapter {
 public:
  static constexpr const char* name = "tandem";

  explicit TandemAdapter(unsigned workers) : runtime_(tandem::Options{.workers = workers}) {}

  std::string version() const { return "0.1.0"; }
  bool workers_beside_caller() const { return runtime_.worker_count() > 1; }
  void submit(Probe& probe) { runtime_.submit(start_, &probe); }
  void wait() { runtime_.wait(); }

 private:
  tandem::Runtime runtime_;
  tandem::Codelet<void (*)(Probe*)> start_{"start", [](Probe* probe) { probe->start(); }};
};

}  // namespace
}  // namespace benchmarks::wake

int main(int argc, char** argv) {
  const benchmarks::wake::Plan plan(argc, argv);
  benchmarks::wake::TandemAdapter adapter(plan.workers);
  benchmarks::wake::measure(adapter, plan);
}
