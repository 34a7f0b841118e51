// benchmarks/device/bench_device.cpp: data that goes between a core and an OpenCL device: wall time against copies and kernels alone.
//
// Each round writes every block on a core, runs a kernel with it on the device, and reads it on a core. `copies`: the kernel does nothing.
// `kernels`: the blocks stay on the device. `together` would take as long as the slower of the two if they overlapped wholly, and as long
// as both if they did not.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <tandem/opencl.hpp>
#include <tandem/tandem.hpp>
#include <vector>

namespace {

using Blocks = std::vector<tandem::Data<tandem::Vector<float>>>;

// One work item per row of 64 floats, so that little memory traffic can stand beside much arithmetic.
constexpr const char* kSource = R"(
  __kernel void work(int steps, __global float* x, ulong count) {
    size_t i = get_global_id(0) * 64;
    for (int k = 0; k < 64; ++k) {
      float v = x[i + k];
      for (int s = 0; s < steps; ++s) v = v * 0.999f + 0.5f;
      x[i + k] = v;
    }
  }
  __kernel void nothing(int steps, __global float* x, ulong count) {}
)";

bool on_device(const tandem::WorkerDescription& worker) { return worker.device == tandem::DeviceKind::opencl; }

double seconds_of(const auto& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv, {.more = {{"opencl", "1"}}});
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) * 1024 / 4 : 1024 * 1024 / 4;  // KiB per block
  const int blocks = argc > 2 ? std::atoi(argv[2]) : 32;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 20;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;

  const auto rows = [](int, std::span<float> x) { return x.size() / 64; };
  const auto cpu = [](int, std::span<float>) {};
  const auto work = tandem::Codelet("work", cpu).opencl(kSource, "work", rows).can_run(on_device);
  const auto nothing = tandem::Codelet("nothing", cpu).opencl(kSource, "nothing", [](int, std::span<float>) { return 1; }).can_run(on_device);
  const tandem::Codelet fill("fill", [](std::span<float> x) { x[0] = 1; });
  const tandem::Codelet look("look", [](std::span<const float> x) {
    if (x[0] < 0) std::abort();
  });
  Blocks data;
  for (int i = 0; i < blocks; ++i) data.push_back(rt.vector<float>("block", count));
  const tandem::Codelet clear("clear", [](std::span<float> x) { std::fill(x.begin(), x.end(), 1.0f); });
  for (const auto& block : data) rt.submit(clear, write(block));
  for (const auto& block : data) rt.submit(work, steps, read_write(block));
  for (const auto& block : data) rt.submit(nothing, steps, read_write(block));  // both are compiled
  rt.wait();

  const auto kernels = [&] {
    for (const auto& block : data) rt.submit(work, steps, read_write(block));
    rt.wait();
  };
  const auto with = [&](const auto& codelet) {
    for (const auto& block : data) {
      rt.submit(fill, read_write(block));
      rt.submit(codelet, steps, read_write(block));
      rt.submit(look, read(block));
    }
    rt.wait();
  };
  std::vector<double> copies_s, kernels_s, together_s, ratios, sums;
  for (int round = 0; round <= rounds; ++round) {
    with(nothing);  // all is in main memory
    const double copies = seconds_of([&] { with(nothing); });
    const double together = seconds_of([&] { with(work); });
    kernels();
    const double alone = seconds_of(kernels);
    if (round == 0) continue;
    copies_s.push_back(copies);
    kernels_s.push_back(alone);
    together_s.push_back(together);
    ratios.push_back(together / std::max(copies, alone));
    sums.push_back(together / (copies + alone));
  }
  std::printf("{\"peer\": \"tandem\", \"results\": [");
  const auto print = [](const char* name, const char* unit, std::vector<double> values, double scale, const char* end) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    std::printf("{\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.4g, \"min\": %.4g, \"max\": %.4g, \"n\": %zu}%s", name, unit,
                median(values) * scale, *least * scale, *most * scale, values.size(), end);
  };
  print("copies", "ms", copies_s, 1e3, ", ");
  print("kernels", "ms", kernels_s, 1e3, ", ");
  print("together", "ms", together_s, 1e3, ", ");
  print("together/larger", "", ratios, 1, ", ");
  print("together/sum", "", sums, 1, "]}\n");
}
