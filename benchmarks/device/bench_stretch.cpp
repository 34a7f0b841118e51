// benchmarks/device/bench_stretch.cpp: a replayed chain of small dependent kernels on an OpenCL or CUDA device, with
// and without stretches.
//
// `one by one`: each task is posted when the one before it has ended (`device_stretch=1`). `stretches`: up to 16 are
// posted one behind the other. `graphs`, for CUDA: these as graphs (`cuda.graphs`). `one task` posts the same kernels
// by itself, and is the least that this device takes. In turns, on one device, in one process.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"
#include "tandem/cuda.hpp"
#include "tandem/opencl.hpp"
#include "tandem/tandem.hpp"

namespace {

constexpr const char* kCudaSource = R"(
  __global__ void work(int steps, float* x, size_t count) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= count) return;
    float v = x[i];
    for (int s = 0; s < steps; ++s) v = v * 0.5f + 1.0f;
    x[i] = v;
  }
)";
constexpr const char* kSource = R"(
  __kernel void work(int steps, __global float* x, ulong count) {
    size_t i = get_global_id(0);
    float v = x[i];
    for (int s = 0; s < steps; ++s) v = v * 0.5f + 1.0f;
    x[i] = v;
  }
)";

bool is_device(const tandem::WorkerDescription& worker) { return worker.device != tandem::DeviceKind::cpu; }
const auto kWork = tandem::Codelet("work", [](int, std::span<float>) {})
                       .opencl(kSource, "work", [](int, std::span<float> x) { return x.size(); })
                       .cuda(kCudaSource, "work", [](int, std::span<float> x) { return x.size(); })
                       .can_run(is_device);
const auto kAll = tandem::Codelet("all", [](int, int, std::span<float>) {})
                      .also(tandem::DeviceKind::opencl,
                            [](const tandem::Context& context, int count, int steps, std::span<float> x) {
                              static const tandem::OpenClSource source{kSource, "work", ""};
                              const std::size_t size = x.size();
                              const tandem::OpenClArgument arguments[] = {
                                  {&steps, sizeof(steps)}, {x.data(), 0}, {&size, sizeof(size)}};
                              for (int i = 0; i < count; ++i)
                                static_cast<tandem::OpenClQueue*>(context.queue)->launch(source, arguments, size);
                            })
                      .cuda([](tandem::CudaQueue& queue, int count, int steps, std::span<float> x) {
                        static const tandem::CudaSource source{kCudaSource, "work", ""};
                        const std::size_t size = x.size();
                        const tandem::CudaArgument arguments[] = {
                            {&steps, sizeof(steps)}, {x.data(), 0}, {&size, sizeof(size)}};
                        for (int i = 0; i < count; ++i) queue.launch(source, arguments, size);
                      })
                      .can_run(is_device);

struct Side {
  tandem::Runtime rt;
  tandem::Data<tandem::Vector<float>> x;
  tandem::Graph graph;
  tandem::TaskRef all;
  int tasks;
  int steps;

  Side(const std::string& device, const std::string& stretch, bool graphs, int count, int kernel_steps,
       std::size_t floats)
      : rt(tandem::Options{
            .workers = 1,
            .more = {{device, "1"}, {"device_stretch", stretch}, {"cuda.graphs", graphs ? "true" : "false"}}}),
        x(rt.vector<float>("x", floats)),
        tasks(count),
        steps(kernel_steps) {
    rt.submit("clear", [](std::span<float> v) { std::fill(v.begin(), v.end(), 0.0f); }, write(x));
    graph = rt.record([&] {
      for (int i = 0; i < tasks; ++i) rt.submit(kWork, steps, read_write(x));
    });
  }
  template <class Action>
  static double us_of(const Action& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  }
  /// us of a task.
  double replay() {
    return us_of([&] {
             rt.replay(graph);
             rt.wait();
           }) / tasks;
  }
  double one_task() {
    return us_of([&] {
             rt.submit(kAll, tasks, steps, read_write(x));
             rt.wait();
           }) / tasks;
  }
  /// After so many kernels every number has come to 2.
  bool is_right() {
    auto seen = rt.acquire(read(x));
    const std::span<const float> values = *seen;
    return std::all_of(values.begin(), values.end(), [](float v) { return std::fabs(v - 2.0f) < 1e-3f; });
  }
  std::size_t behind() {
    std::size_t count = 0;
    for (const auto& worker : rt.statistics().workers) count += worker.posted_behind;
    return count;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"device", "tasks", "floats", "steps", "repetitions", "stretch"});
  const std::string device = options.text("device", "opencl");
  const std::string stretch = options.text("stretch", "16");
  const int tasks = static_cast<int>(options.count("tasks", 500));
  const int steps = static_cast<int>(options.count("steps", 1));
  const std::size_t floats = options.count("floats", 64);
  struct Way {
    std::string name;
    std::unique_ptr<Side> side;
    benchmarks::Measurement took{}, ratio{};
  };
  std::vector<Way> ways;
  const auto add = [&](const std::string& name, const std::string& length, bool graphs) {
    Way way{name, std::make_unique<Side>(device, length, graphs, tasks, steps, floats)};
    way.took = {name, "us/task", {}, static_cast<std::size_t>(tasks)};
    way.ratio = {name + "/one by one", "ratio", {}};
    ways.push_back(std::move(way));
  };
  add("one by one", "1", false);
  add("stretches", stretch, false);
  if (device == "cuda") add("graphs", stretch, true);
  benchmarks::Measurement one_task{"one task", "us/task", {}, static_cast<std::size_t>(tasks)};
  const std::size_t repetitions = options.count("repetitions", 9);
  for (std::size_t i = 0; i <= repetitions; ++i) {
    double one_by_one_us = 0;
    for (Way& way : ways) {
      const double us = way.side->replay();
      if (&way == &ways.front()) one_by_one_us = us;
      if (i == 0) continue;  // compiles
      way.took.samples.push_back(us);
      way.ratio.samples.push_back(us / one_by_one_us);
    }
    const double us = ways.back().side->one_task();
    if (i != 0) one_task.samples.push_back(us);
  }
  std::vector<benchmarks::Measurement> all;
  for (Way& way : ways) {
    if (!way.side->is_right()) {
      std::fprintf(stderr, "%s: the values are wrong\n", way.name.c_str());
      return 1;
    }
    std::fprintf(stderr, "%s: %zu tasks were posted behind others\n", way.name.c_str(), way.side->behind());
    all.push_back(way.took);
  }
  all.push_back(one_task);
  for (std::size_t i = 1; i < ways.size(); ++i) all.push_back(ways[i].ratio);
  benchmarks::Report{"tandem", "0.1.0", 1, all}.print();
}
