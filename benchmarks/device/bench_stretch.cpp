// benchmarks/device/bench_stretch.cpp: a replayed chain of small dependent kernels on an OpenCL device, with and without stretches.
//
// `one by one`: each task is posted when the one before it has ended (`device_stretch=1`). `stretches`: up to 16 are posted one behind the other.
// `one task` posts the same kernels by itself, and is the least that this device takes. In turns, on one device, in one process.
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
#include "tandem/opencl.hpp"
#include "tandem/tandem.hpp"

namespace {

constexpr const char* kSource = R"(
  __kernel void work(int steps, __global float* x, ulong count) {
    size_t i = get_global_id(0);
    float v = x[i];
    for (int s = 0; s < steps; ++s) v = v * 0.5f + 1.0f;
    x[i] = v;
  }
)";

bool is_opencl(const tandem::WorkerDescription& worker) { return worker.device == tandem::DeviceKind::opencl; }
const auto kWork = tandem::Codelet("work", [](int, std::span<float>) {})
                       .opencl(kSource, "work", [](int, std::span<float> x) { return x.size(); })
                       .can_run(is_opencl);
const auto kAll = tandem::Codelet("all", [](int, int, std::span<float>) {})
                      .also(tandem::DeviceKind::opencl,
                            [](const tandem::Context& context, int count, int steps, std::span<float> x) {
                              static const tandem::OpenClSource source{kSource, "work", ""};
                              const std::size_t size = x.size();
                              const tandem::OpenClArgument arguments[] = {{&steps, sizeof(steps)}, {x.data(), 0}, {&size, sizeof(size)}};
                              for (int i = 0; i < count; ++i) static_cast<tandem::OpenClQueue*>(context.queue)->launch(source, arguments, size);
                            })
                      .can_run(is_opencl);

struct Side {
  tandem::Runtime rt;
  tandem::Data<tandem::Vector<float>> x;
  tandem::Graph graph;
  tandem::TaskRef all;
  int tasks;
  int steps;

  Side(const std::string& stretch, int count, int kernel_steps, std::size_t floats)
      : rt(tandem::Options{.workers = 1, .more = {{"opencl", "1"}, {"device_stretch", stretch}}}),
        x(rt.vector<float>("x", floats)), tasks(count), steps(kernel_steps) {
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
  const benchmarks::Options options(argc, argv, {"tasks", "floats", "steps", "repetitions", "stretch"});
  const int tasks = static_cast<int>(options.count("tasks", 500));
  const int steps = static_cast<int>(options.count("steps", 1));
  const std::size_t floats = options.count("floats", 64);
  Side apart("1", tasks, steps, floats), together(options.text("stretch", "16"), tasks, steps, floats);
  const auto each = [&](const char* name) { return benchmarks::Measurement{name, "us/task", {}, static_cast<std::size_t>(tasks)}; };
  benchmarks::Measurement one_by_one = each("one by one"), stretches = each("stretches"), one_task = each("one task");
  benchmarks::Measurement ratio{"stretches/one by one", "ratio", {}};
  for (unsigned i = 0; i <= options.count("repetitions", 9); ++i) {
    const double apart_us = apart.replay(), together_us = together.replay(), all_us = together.one_task();
    if (i == 0) continue;  // compiles
    one_by_one.samples.push_back(apart_us);
    stretches.samples.push_back(together_us);
    one_task.samples.push_back(all_us);
    ratio.samples.push_back(together_us / apart_us);
  }
  if (!apart.is_right() || !together.is_right()) {
    std::fprintf(stderr, "the values are wrong\n");
    return 1;
  }
  std::fprintf(stderr, "%zu tasks were posted behind others, %zu with a stretch of 1\n", together.behind(), apart.behind());
  benchmarks::Report{"tandem", "0.1.0", 1, {one_by_one, stretches, one_task, ratio}}.print();
}
