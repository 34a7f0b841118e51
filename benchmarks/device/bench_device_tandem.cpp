// benchmarks/device/bench_device_tandem.cpp: tasks that alternate between a core and an OpenCL device.
#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/device/harness.hpp"
#include "tandem/opencl.hpp"
#include "tandem/tandem.hpp"

namespace {

using benchmarks::device::kernel_source;
using benchmarks::device::Plan;

bool on_device(const tandem::WorkerDescription& worker) { return worker.device == tandem::DeviceKind::opencl; }
void on_core(int, std::span<float>) {}
std::size_t rows(int, std::span<float> x) { return x.size() / benchmarks::device::row_floats; }
std::size_t one(int, std::span<float>) { return 1; }

const auto kWork = tandem::Codelet("work", &on_core).opencl(kernel_source, "work", &rows).can_run(on_device);
const auto kNothing = tandem::Codelet("nothing", &on_core).opencl(kernel_source, "nothing", &one).can_run(on_device);
const tandem::Codelet kFill("fill", [](std::span<float> x) { x[0] = 1; });
const tandem::Codelet kLook("look", [](std::span<const float> x) {
  if (x[0] < 0) std::abort();
});

class TandemAdapter {
 public:
  static constexpr const char* name = "tandem";

  explicit TandemAdapter(const Plan& plan) : steps_(plan.steps) {
    for (unsigned i = 0; i < plan.blocks; ++i) {
      blocks_.push_back(rt_.vector<float>("block", plan.floats));
      rt_.submit("clear", [](std::span<float> x) { std::fill(x.begin(), x.end(), 1.0f); }, write(blocks_.back()));
    }
    rt_.wait();
  }
  std::string version() const { return "0.1.0"; }
  unsigned workers() const { return static_cast<unsigned>(rt_.worker_count()); }

  void kernels() {
    for (const auto& block : blocks_) rt_.submit(kWork, steps_, read_write(block));
    rt_.wait();
  }
  void round_trips(bool works) {
    for (const auto& block : blocks_) {
      rt_.submit(kFill, read_write(block));
      rt_.submit(works ? kWork : kNothing, steps_, read_write(block));
      rt_.submit(kLook, read(block));
    }
    rt_.wait();
  }

 private:
  tandem::Runtime rt_{tandem::Options{.more = {{"opencl", "1"}}}};
  std::vector<tandem::Data<tandem::Vector<float>>> blocks_;
  int steps_;
};

}  // namespace

int main(int argc, char** argv) { benchmarks::device::measure<TandemAdapter>(Plan(argc, argv)); }
