// tandem/runtime/machine/machine_network_test.cpp: durations of messages between and beyond the measured sizes.
#include "tandem/runtime/machine/machine_network.hpp"

#include <gtest/gtest.h>

namespace tandem::runtime::machine_network_test {
namespace {

/// A network with 10 us latency, then 1 byte/ns; under load half of that.
MachineNetwork network() {
  return {.transport = "tcp",
          .times = {{.bytes = 1'000, .alone_ns = 11'000},
                    {.bytes = 101'000, .alone_ns = 111'000, .both_ways_ns = 150'000, .loaded_ns = 211'000},
                    {.bytes = 1'000'000, .alone_ns = 1'010'000, .loaded_ns = 2'010'000}}};
}

TEST(MachineNetwork, HasTheLatencyOfItsSmallestMessageAndTheRateOfItsLargest) {
  EXPECT_EQ(network().latency_ns(), 11'000);
  EXPECT_DOUBLE_EQ(network().bytes_per_ns(), 1'000'000 / 1'010'000.0);
}

TEST(MachineNetwork, FurtherBytesOfALargeMessageHaveARateOfTheirOwn) {
  EXPECT_DOUBLE_EQ(network().marginal_bytes_per_ns(), 1);
  MachineNetwork noisy = network();
  noisy.times.back().alone_ns = 120'000;  // sooner than the rate of any message
  EXPECT_DOUBLE_EQ(noisy.marginal_bytes_per_ns(), noisy.bytes_per_ns());
  noisy.times.erase(noisy.times.begin(), noisy.times.end() - 1);
  EXPECT_DOUBLE_EQ(noisy.marginal_bytes_per_ns(), noisy.bytes_per_ns());
}

TEST(MachineNetwork, TimesLieOnTheCurve) {
  const MachineNetwork one = network();
  EXPECT_DOUBLE_EQ(one.message_ns(0), 11'000) << "the least size's time";
  EXPECT_DOUBLE_EQ(one.message_ns(1'000), 11'000);
  EXPECT_DOUBLE_EQ(one.message_ns(51'000), 61'000) << "affine between two sizes";
  EXPECT_DOUBLE_EQ(one.message_ns(101'000), 111'000);
  EXPECT_DOUBLE_EQ(one.message_ns(1'000'000), 1'010'000);
  EXPECT_DOUBLE_EQ(one.message_ns(10'000'000), 10'100'000) << "by the rate of the largest size";
}

}  // namespace
}  // namespace tandem::runtime::machine_network_test
