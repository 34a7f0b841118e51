// benchmarks/device/harness.hpp: data that goes between a core and an OpenCL device: wall time against copies and
// kernels alone.
//
// Each block is written on a core, used by a kernel on the device, and read on a core. `copies`: the kernel does
// nothing. `kernels`: the blocks stay on the device. `together` would take as long as the longer of the two if they
// overlapped wholly, and as long as both if they did not.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"

namespace benchmarks::device {

/// One work item per row of so many floats, so that little memory traffic can stand beside much arithmetic.
constexpr std::size_t row_floats = 64;

constexpr const char* kernel_source = R"(
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

struct Plan {
  std::size_t floats;  ///< of a block, a multiple of `row_floats`
  unsigned blocks;
  int steps;  ///< of the kernel, for each number
  unsigned repetitions;

  Plan(int argc, char** argv) : Plan(Options(argc, argv, {"kib", "blocks", "steps", "repetitions"})) {}

 private:
  explicit Plan(const Options& options)
      : floats(std::size_t{options.count("kib", 1024)} * 1024 / sizeof(float)),
        blocks(options.count("blocks", 32)),
        steps(static_cast<int>(options.count("steps", 20))),
        repetitions(options.count("repetitions", 3)) {}
};

/// `Adapter(plan)` holds the blocks. `kernels()` runs a kernel with each, and leaves them on the device.
/// `round_trips(works)` takes each there and back, with the kernel that works or the one that does nothing. Both return
/// when all has ended.
template <class Adapter>
void measure(const Plan& plan) {
  Adapter adapter(plan);
  const auto ms_of = [](const auto& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  Measurement copies{"copies", "ms", {}}, kernels{"kernels", "ms", {}}, together{"together", "ms", {}},
      of_longer{"together/longer", "ratio", {}}, of_sum{"together/sum", "ratio", {}};
  for (unsigned i = 0; i <= plan.repetitions; ++i) {
    adapter.round_trips(false);  // all is in main memory
    const double copies_ms = ms_of([&] { adapter.round_trips(false); });
    const double together_ms = ms_of([&] { adapter.round_trips(true); });
    adapter.kernels();  // all is on the device
    const double kernels_ms = ms_of([&] { adapter.kernels(); });
    if (i == 0) continue;  // compiles
    copies.samples.push_back(copies_ms);
    kernels.samples.push_back(kernels_ms);
    together.samples.push_back(together_ms);
    of_longer.samples.push_back(together_ms / std::max(copies_ms, kernels_ms));
    of_sum.samples.push_back(together_ms / (copies_ms + kernels_ms));
  }
  Report{Adapter::name, adapter.version(), adapter.workers(), {copies, kernels, together, of_longer, of_sum}}.print();
}

}  // namespace benchmarks::device
