// tandem/base/cost_test_support.hpp: the cost of an action for its thread, for tests that compare the costs of two
// sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "tandem/base/hardware_counters.hpp"

namespace tandem::test {

/// The cost of an action: instructions of this thread, where the processor counts them; else its own time in
/// nanoseconds, which other threads do not change. The least of three calls.
template <class Action>
double thread_cost(const Action& action) {
  auto counters = base::open_hardware_counters();
  const auto now = [&] {
    if (counters) return counters.value()->read().instructions;
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  };
  std::uint64_t least = UINT64_MAX;
  for (int repetition = 0; repetition < 3; ++repetition) {
    const std::uint64_t before = now();
    action();
    least = std::min(least, now() - before);
  }
  return static_cast<double>(least);
}

/// The cost per element of `large` elements divided by that of `small` ones: near 1 when the cost is linear, near
/// `large / small` when it is quadratic. `action(count)` is measured.
template <class Action>
double growth_of_cost(std::size_t small, std::size_t large, const Action& action) {
  const double of_small = thread_cost([&] { action(small); }) / static_cast<double>(small);
  const double of_large = thread_cost([&] { action(large); }) / static_cast<double>(large);
  return of_large / of_small;
}

}  // namespace tandem::test
