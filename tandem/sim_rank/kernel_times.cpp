// tandem/sim_rank/kernel_times.cpp: log-normal factors from a seed.
#include "tandem/sim_rank/kernel_times.hpp"

#include <cmath>
#include <numbers>

#include "tandem/base/splitmix64.hpp"

namespace tandem::sim {

namespace {

/// A number in (0, 1].
double uniform(std::uint64_t& state) { return static_cast<double>((base::splitmix64(state) >> 11) + 1) * 0x1p-53; }

/// A factor with mean 1 and this standard deviation (Box and Muller's normal number, as an exponent).
double factor(double deviation, std::uint64_t& state) {
  if (!(deviation > 0)) return 1;
  const double normal = std::sqrt(-2 * std::log(uniform(state))) * std::cos(2 * std::numbers::pi * uniform(state));
  const double variance = std::log(1 + deviation * deviation);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

double part_of(double value, double mean) { return mean > 0 ? value / mean : 0; }

}  // namespace

DrawnTimes::DrawnTimes(const Platform& platform, std::uint32_t rank, std::uint64_t seed)
    : seed_(base::mix64(seed)), state_(base::mix64(seed_ + rank)) {
  node_factor_ = factor(platform.node_spread, state_);
}

runtime::EmulatedWork DrawnTimes::draw(const KernelTime& time, std::uint64_t kind) {
  std::uint64_t shared = base::mix64(seed_ ^ kind);
  const double mean_ns = time.mean_ns * node_factor_ * factor(part_of(time.mean_error_ns, time.mean_ns), shared);
  return std::llround(mean_ns * factor(part_of(time.deviation_ns, time.mean_ns), state_));
}

std::uint64_t number_of_kind(const runtime::EmulatedTask& task) {
  std::uint64_t number = static_cast<std::uint64_t>(task.device) << 32 | task.implementation;
  const auto add = [&number](std::uint64_t value) { number = base::mix64(number + base::kSplitMix64Step + value); };
  for (const char letter : task.codelet) add(static_cast<unsigned char>(letter));
  for (const runtime::Shape& shape : task.data) add(shape.rows), add(shape.cols), add(shape.element_bytes);
  return number;
}

}  // namespace tandem::sim
