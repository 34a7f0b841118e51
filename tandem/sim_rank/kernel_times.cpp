// tandem/sim_rank/kernel_times.cpp: log-normal factors from a seed.
#include "tandem/sim_rank/kernel_times.hpp"

#include <cmath>
#include <numbers>

#include "tandem/base/splitmix64.hpp"

namespace tandem::sim {

namespace {

/// A number in (0, 1].
double uniform(std::uint64_t& state) { return static_cast<double>((base::splitmix64(state) >> 11) + 1) * 0x1p-53; }

/// A number of about a normal distribution: the sum of 12 uniform ones.
double normal(std::uint64_t& state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform(state);
  return sum;
}

// The exponential function and the logarithm of the C library differ in the last bit from one processor to another, and
// a simulation is the same on all. These use operations that IEEE 754 defines alone, and err by less than 1e-12.

double exponential(double x) {
  constexpr int halvings = 10;
  const double small = x / (1 << halvings);
  double term = 1, sum = 0;
  for (int i = 1; i < 10; ++i) sum += term *= small / i;
  double power = 1 + sum;
  for (int i = 0; i < halvings; ++i) power *= power;
  return power;
}

/// `x` is positive.
double logarithm(double x) {
  int exponent = 0;
  constexpr double centre = std::numbers::sqrt2 / 2;
  const double fraction = std::frexp(x, &exponent);  // from 0.5 on, below 1
  const double part = (fraction - centre) / (fraction + centre);
  const double square = part * part;
  double term = part, sum = 0;
  for (int i = 1; i < 24; i += 2, term *= square) sum += term / i;
  return 2 * sum + (exponent - 0.5) * std::numbers::ln2;
}

/// A factor with mean 1 and this standard deviation, log-normal.
double factor(double deviation, std::uint64_t& state) {
  if (!(deviation > 0)) return 1;
  const double variance = logarithm(1 + deviation * deviation);
  return exponential(std::sqrt(variance) * normal(state) - variance / 2);
}

/// Without what differs from one processor to another in estimates by laws.
double rounded(double ns) { return std::round(ns * 1024) / 1024; }
double part_of(double value, double mean) { return mean > 0 ? rounded(value) / mean : 0; }

}  // namespace

DrawnTimes::DrawnTimes(const Platform& platform, std::uint32_t rank, std::uint64_t seed)
    : seed_(base::mix64(seed)), state_(base::mix64(seed_ + rank)) {
  std::uint64_t shared = base::mix64(seed_ + base::kSplitMix64Step);
  node_factor_ = factor(platform.node_spread, state_) * factor(platform.run_spread, shared);
}

runtime::EmulatedWork DrawnTimes::draw(const KernelTime& time, std::uint64_t kind, double slowness) {
  std::uint64_t shared = base::mix64(seed_ ^ kind);
  const double known_ns = rounded(time.mean_ns);
  const double mean_ns = slowness * known_ns * node_factor_ * factor(part_of(time.mean_error_ns, known_ns), shared);
  runtime::EmulatedWork work(std::llround(mean_ns * factor(part_of(time.deviation_ns, known_ns), state_)));
  work.slow_down = &time.slow_down;
  work.computes = time.computes;
  work.bytes = time.bytes;
  return work;
}

KernelTime time_of_own(const runtime::EmulatedTask& task, const Platform& platform, Execution execution) {
  constexpr double usual_bytes_per_ns = 5;
  double bytes = 0;
  for (const runtime::Shape& shape : task.data) bytes += static_cast<double>(shape.bytes());
  const double rate = platform.copy_bytes_per_ns > 0 ? platform.copy_bytes_per_ns : usual_bytes_per_ns;
  const auto carried = static_cast<double>(network_of(platform, execution).carried_bytes());
  return {.mean_ns = bytes / rate, .computes = bytes <= carried};
}

std::uint64_t number_of_kind(const runtime::EmulatedTask& task) {
  std::uint64_t number = static_cast<std::uint64_t>(task.device) << 32 | task.implementation;
  const auto add = [&number](std::uint64_t value) { number = base::mix64(number + base::kSplitMix64Step + value); };
  if (task.is_own) add(1);
  for (const char letter : task.codelet) add(static_cast<unsigned char>(letter));
  for (const runtime::Shape& shape : task.data) add(shape.rows), add(shape.cols), add(shape.element_bytes);
  return number;
}

runtime::Estimate KnownDurations::expected_ns(std::string_view codelet, model::Footprint footprint,
                                              DeviceKind kind) const {
  const runtime::Shape all{.rows = footprint.bytes, .cols = 1, .element_bytes = 1};
  const runtime::EmulatedTask task{.codelet = codelet, .data = {&all, 1}, .device = kind};
  const auto [found, is_new] = known_.try_emplace(number_of_kind(task));
  if (is_new)
    if (const auto time = time_of_(task))
      found->second = {.mean_ns = time->mean_ns, .deviation_ns = time->deviation_ns, .known = true};
  return found->second;
}

}  // namespace tandem::sim
