// tandem/runtime/sched/contention/message_load_test.cpp: the conditions under which latency limits messages.
#include "tandem/runtime/sched/contention/message_load.hpp"

#include <gtest/gtest.h>

namespace tandem::runtime::message_load_test {
namespace {

constexpr std::size_t kShort = 8, kLong = MessageLoad::kLongBytes;

TEST(MessageLoad, IsLimitedByLatencyWhileTasksWaitForShortMessagesAlone) {
  MessageLoad load;
  EXPECT_FALSE(load.counts().are_latency_bound()) << "nothing is under way";
  EXPECT_FALSE(load.counts().are_awaited());
  load.begin_receive(kShort);
  load.begin_receive(kLong - 1);
  EXPECT_TRUE(load.counts().are_latency_bound());
  load.end_receive(kShort);
  EXPECT_TRUE(load.counts().are_latency_bound());
  EXPECT_TRUE(load.counts().are_awaited());
  load.end_receive(kLong - 1);
  EXPECT_FALSE(load.counts().are_latency_bound());
  EXPECT_FALSE(load.counts().are_awaited());
}

TEST(MessageLoad, IsLimitedByBandwidthWhileALongMessageComesOrLeaves) {
  MessageLoad load;
  load.begin_receive(kShort);
  load.begin_receive(kLong);
  EXPECT_FALSE(load.counts().are_latency_bound());
  load.end_receive(kLong);
  EXPECT_TRUE(load.counts().are_latency_bound());
  load.begin_send(kLong);
  EXPECT_FALSE(load.counts().are_latency_bound());
  load.end_send(kLong);
  load.begin_send(kShort);
  EXPECT_TRUE(load.counts().are_latency_bound());
  load.end_send(kShort);
  load.end_receive(kShort);
  EXPECT_TRUE(load.is_empty());
}

}  // namespace
}  // namespace tandem::runtime::message_load_test
