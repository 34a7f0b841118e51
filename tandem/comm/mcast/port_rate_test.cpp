// tandem/comm/mcast/port_rate_test.cpp: a socket's buffer before a limiter with a bucket of tokens, and what is learnt
// of it.
#include "tandem/comm/mcast/port_rate.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace tandem::comm::port_rate_test {
namespace {

struct Way {
  double bytes_per_ns = 0.025;
  double bucket_bytes = 65'536;
  double copy_bytes_per_ns = 4;   ///< rate at which a rail takes bytes
  double buffer_bytes = 32'768;
};

/// Sends `bytes` in pieces of 4 KiB, each as soon as the buffer has room for it.
void send(PortRate& rate, const Way& way, std::int64_t now_ns, double bytes) {
  const double piece = 4096;
  const auto began = static_cast<double>(now_ns);
  double now = began, taken = 0;
  // Bytes in the buffer now; the bucket's have left it at once, then by the rate.
  const auto unsent = [&] {
    return static_cast<std::size_t>(std::max(0.0, taken - way.bucket_bytes - way.bytes_per_ns * (now - began)));
  };
  while (taken < bytes) {
    if (const std::size_t here = unsent(); static_cast<double>(here) + piece > way.buffer_bytes) {
      rate.refused(static_cast<std::int64_t>(now), here);
      now += (static_cast<double>(here) + piece - way.buffer_bytes) / way.bytes_per_ns;
    }
    now += piece / way.copy_bytes_per_ns;
    taken += piece;
    rate.took(static_cast<std::int64_t>(now), 4096);
  }
  rate.rested(static_cast<std::int64_t>(now), unsent());
}

TEST(PortRate, LearnsTheRateAndTheBucketOfALimiter) {
  PortRate rate;
  EXPECT_FALSE(rate.known());
  send(rate, {}, 1'000, 439'296);
  ASSERT_TRUE(rate.known());
  EXPECT_NEAR(rate.bytes_per_ns(), 0.025, 0.001);
  EXPECT_NEAR(rate.burst_bytes(), 65'536, 8'192);
}

TEST(PortRate, LearnsFromHowBuffersDrainWhereTheyTookEverything) {
  for (const double bytes_per_ns : {0.002, 0.0125, 0.025, 0.125}) {
    PortRate rate;
    rate.took(1'000, 200'000);
    rate.rested(10'000, 140'000);
    EXPECT_FALSE(rate.known());
    const auto unsent = [&](std::int64_t now_ns) {
      return static_cast<std::size_t>(std::max(0.0, 140'000 - bytes_per_ns * static_cast<double>(now_ns - 10'000)));
    };
    for (int looks = 0; rate.look_ns() >= 0; ++looks) {
      ASSERT_LT(looks, 12);
      rate.look(rate.look_ns(), unsent(rate.look_ns()));
    }
    ASSERT_TRUE(rate.known()) << bytes_per_ns;
    EXPECT_NEAR(rate.bytes_per_ns(), bytes_per_ns, 0.01 * bytes_per_ns);
    EXPECT_NEAR(rate.burst_bytes(), 60'000, 2'000);
    // From now on only busy times count; the first of them replaces all that was learnt before.
    rate.rested(2'000'000'000, 140'000);
    EXPECT_LT(rate.look_ns(), 0);
    send(rate, {}, 3'000'000'000, 439'296);
    EXPECT_NEAR(rate.bytes_per_ns(), 0.025, 0.001);
    EXPECT_NEAR(rate.burst_bytes(), 65'536, 8'192);
  }
}

TEST(PortRate, LooksNoMoreOnceBuffersAreEmptyOrFilledAgain) {
  PortRate rate;
  rate.rested(0, 140'000);
  rate.look(rate.look_ns(), 0);
  EXPECT_LT(rate.look_ns(), 0);
  rate.rested(1'000'000, 140'000);
  EXPECT_GE(rate.look_ns(), 1'000'000);
  rate.took(1'100'000, 1000);
  EXPECT_LT(rate.look_ns(), 0);
  rate.rested(2'000'000, 60'000);  // too little to be learnt from
  EXPECT_LT(rate.look_ns(), 0);
  EXPECT_FALSE(rate.known());
}

TEST(PortRate, WithoutALimiterThereIsNoBurst) {
  PortRate rate;
  send(rate, {.bytes_per_ns = 1.25, .bucket_bytes = 0}, 1'000, 4'000'000);
  ASSERT_TRUE(rate.known());
  EXPECT_NEAR(rate.bytes_per_ns(), 1.25, 0.05);
  EXPECT_EQ(rate.burst_bytes(), 0);
}

TEST(PortRate, WhatNeverFillsTheBufferTeachesNothing) {
  PortRate rate;
  for (int i = 0; i < 100; ++i) {
    rate.took(i * 1000, 1000);
    rate.rested(i * 1000 + 500);
  }
  send(rate, {}, 1'000'000, 120'000);
  EXPECT_FALSE(rate.known());
}

TEST(PortRate, IsNotFasterWhereBuffersToOtherRanksHaveRoom) {
  PortRate rate;
  const auto unsent = [](std::int64_t now_ns, double taken) {
    return static_cast<std::size_t>(taken - 0.125 * static_cast<double>(now_ns));
  };
  rate.took(0, 262'144);
  rate.refused(1'000, unsent(1'000, 262'144));
  for (int rank = 1; rank < 4; ++rank) rate.took(1'000 + rank * 10'000, 262'144);
  rate.rested(31'000, unsent(31'000, 1'048'576));
  EXPECT_FALSE(rate.known());
  const auto late_ns = static_cast<std::int64_t>(1'048'576 / 0.125);
  rate.took(late_ns, 262'144);
  rate.refused(late_ns, 262'144);
  rate.took(late_ns + 1'000, 262'144);
  rate.took(late_ns + 1'000'000, 262'144);
  rate.rested(late_ns + 1'000'000, unsent(1'000'000, 3 * 262'144));
  ASSERT_TRUE(rate.known());
  EXPECT_NEAR(rate.bytes_per_ns(), 0.125, 0.01);
}

TEST(PortRate, IsLearntWithinABusyTimeInWhichThePortPauses) {
  constexpr double bytes_per_ns = 6, piece = 262'144;
  PortRate rate;
  double now = 0, unsent = 0;
  const auto send_one = [&] {
    if (rate.awaits_sample() && unsent > 0)
      rate.sample(static_cast<std::int64_t>(now), static_cast<std::size_t>(unsent));
    rate.took(static_cast<std::int64_t>(now), static_cast<std::size_t>(piece));
    unsent += piece;
  };
  for (int i = 0; i < 400; ++i) {
    send_one();
    const double pause_ns = i % 4 == 3 ? 3e6 : 40e3;
    now += pause_ns;
    unsent = std::max(0.0, unsent - bytes_per_ns * pause_ns);
    if (i == 100) {
      EXPECT_TRUE(rate.known());
      EXPECT_NEAR(rate.bytes_per_ns(), bytes_per_ns, 0.25 * bytes_per_ns);
    }
  }
  rate.rested(static_cast<std::int64_t>(now), static_cast<std::size_t>(unsent));
  EXPECT_NEAR(rate.bytes_per_ns(), bytes_per_ns, 0.25 * bytes_per_ns);
  EXPECT_EQ(rate.burst_bytes(), 0);
}

TEST(PortRate, FollowsAChangedNetwork) {
  PortRate rate;
  send(rate, {}, 1'000, 439'296);
  for (int i = 1; i < 20; ++i) send(rate, {.bytes_per_ns = 0.125}, i * 1'000'000'000LL, 439'296);
  EXPECT_NEAR(rate.bytes_per_ns(), 0.125, 0.005);
}

/// Some of the receivers have no core; queues that nobody sees fill up behind rests.
TEST(PortRate, IsTheMedianOfWhatSeemsSlowAndFast) {
  PortRate rate;
  for (int i = 1; i < 50; ++i)
    send(rate,
         {.bytes_per_ns = i % 3 == 0   ? 0.2
                          : i % 3 == 1 ? 1.6
                                       : 1.2,
          .bucket_bytes = 0},
         i * 1'000'000'000LL, 4'000'000);
  EXPECT_NEAR(rate.bytes_per_ns(), 1.2, 0.05);
  for (int i = 50; i < 150; ++i) send(rate, {.bytes_per_ns = 0.2, .bucket_bytes = 0}, i * 1'000'000'000LL, 4'000'000);
  EXPECT_NEAR(rate.bytes_per_ns(), 0.2, 0.05) << "a network that has become slower is followed";
}

}  // namespace
}  // namespace tandem::comm::port_rate_test
