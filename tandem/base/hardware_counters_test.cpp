// tandem/base/hardware_counters_test.cpp: the processor's counters, where this machine has them.
#include "tandem/base/hardware_counters.hpp"

#include <gtest/gtest.h>

namespace tandem::base::hardware_counters_test {
namespace {

TEST(HardwareCounters, DifferencesOfWhatIsNotCountedAreNotCounted) {
  const HardwareCounts before{.cycles = 10, .instructions = 5}, after{.cycles = 30, .instructions = 45, .misses = 7};
  const HardwareCounts counts = after.since(before);
  EXPECT_EQ(counts.cycles, 20u);
  EXPECT_EQ(counts.instructions, 40u);
  EXPECT_EQ(counts.stalled, HardwareCounts::kNotCounted);
  EXPECT_EQ(counts.misses, HardwareCounts::kNotCounted);
}

TEST(HardwareCounters, TheRealMachineCountsALoopOrSaysWhyNot) {
  auto counters = open_hardware_counters();
  if (!counters) {
    EXPECT_FALSE(counters.error().message.empty());
    GTEST_SKIP() << counters.error().message;
  }
  const HardwareCounts before = counters.value()->read();
  volatile std::uint64_t sum = 0;
  constexpr std::uint64_t rounds = 1'000'000;
  for (std::uint64_t i = 0; i < rounds; ++i) sum = sum + i;
  const HardwareCounts counts = counters.value()->read().since(before);
  EXPECT_GT(counts.instructions, 2 * rounds);
  EXPECT_LT(counts.instructions, 1000 * rounds);
  EXPECT_GT(counts.cycles, rounds / 10);
}

}  // namespace
}  // namespace tandem::base::hardware_counters_test
