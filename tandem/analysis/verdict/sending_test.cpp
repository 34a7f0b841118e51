// tandem/analysis/verdict/sending_test.cpp: bandwidths of messages that overlap, leave at once, or fail.
#include "tandem/analysis/verdict/sending.hpp"

#include <gtest/gtest.h>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::sending_test {
namespace {

using test::at;
using test::SmallRun;
using trace::Type;

TEST(Sending, IsOverTheTimeInWhichAtLeastOneMessageIsUnderWay) {
  SmallRun run(2);
  run.usual(0).usual(1);
  // A message that is granted at 150 and sent until 200, another one from 180 to 240, and one that leaves within its
  // posting.
  run.stream(0, 4).add(Type::send_posted, at(100), {1, 1, 0, 0, 7, 6000}).add(Type::send_granted, at(150), {1});
  run.stream(0, 4).add(Type::send_posted, at(180), {2, 1, 0, 0, 8, 3000}).add(Type::message_sent, at(200), {1});
  run.stream(0, 4)
      .add(Type::message_sent, at(240), {2})
      .add(Type::send_posted, at(300), {3, 1, 0, 0, 9, 8})
      .add(Type::message_sent, at(300), {3});
  run.stream(1, 4).add(Type::receive_posted, at(20), {1, 0, 0, 7}).add(Type::receive_posted, at(20), {2, 0, 0, 8});
  run.stream(1, 4)
      .add(Type::receive_posted, at(20), {3, 0, 0, 9})
      .add(Type::message_arrived, at(250), {1, 0, 0, 7, 6000});
  run.stream(1, 4)
      .add(Type::message_arrived, at(260), {2, 0, 0, 8, 3000})
      .add(Type::message_arrived, at(340), {3, 0, 0, 9, 8});
  const auto all = sending(*run.read());
  ASSERT_EQ(all.size(), 1u) << "rank 1 sends nothing";
  EXPECT_EQ(all[0].rank, 0u);
  EXPECT_EQ(all[0].sent.messages, 2u);
  EXPECT_EQ(all[0].sent.bytes, 9000u);
  EXPECT_EQ(all[0].sent.busy_ns, 240 - 150);
  EXPECT_EQ(all[0].sent.most_at_once, 2);
  EXPECT_DOUBLE_EQ(all[0].sent.bytes_per_s(), 9000 / 90e-9);
  EXPECT_EQ(all[0].delivered.messages, 3u);
  EXPECT_EQ(all[0].delivered.bytes, 9008u);
  EXPECT_EQ(all[0].delivered.busy_ns, (260 - 100) + (340 - 300));
}

TEST(Sending, LeavesOutWhatFailedOrIsNotKnown) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.stream(0, 4)
      .add(Type::send_posted, at(100), {1, 1, 0, 0, 7, 64})
      .add(Type::send_posted, at(100), {2, 1, 0, 0, 8, 64});
  run.stream(0, 4).add(Type::message_failed, at(120), {2, 1});
  const auto all = sending(*run.read());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].sent.messages, 0u);
  EXPECT_EQ(all[0].sent.bytes_per_s(), 0);
  EXPECT_EQ(all[0].delivered.messages, 0u);
}

TEST(Sending, BeginsWhenTheReceiverIsThere) {
  SmallRun run(2);
  run.usual(0).usual(1);
  // The receiver reads the first one from 200 on; the second one, which is small, leaves without it.
  run.stream(0, 4)
      .add(Type::send_posted, at(100), {1, 1, 0, 0, 7, 6000})
      .add(Type::send_announced, at(110), {1})
      .add(Type::message_sent, at(250), {1});
  run.stream(1, 4)
      .add(Type::receive_posted, at(200), {1, 0, 0, 7})
      .add(Type::message_arrived, at(240), {1, 0, 0, 7, 6000});
  run.stream(0, 4).add(Type::send_posted, at(300), {2, 1, 0, 0, 8, 60}).add(Type::message_sent, at(320), {2});
  run.stream(1, 4)
      .add(Type::receive_posted, at(400), {2, 0, 0, 8})
      .add(Type::message_arrived, at(400), {2, 0, 0, 8, 60});
  const auto all = sending(*run.read());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].sent.busy_ns, 50 + 20);
  EXPECT_EQ(all[0].delivered.busy_ns, 140 + 100);
}

TEST(Sending, OfTheFlowsDataAlone) {
  SmallRun run(2);
  test::add_message(run);  // of 64 bytes, from 120 to 300
  run.stream(0, 4).add(Type::send_posted, at(400), {2, 1, 0, 0, 8, 16}).add(Type::message_sent, at(420), {2});
  run.stream(1, 4)
      .add(Type::receive_posted, at(400), {2, 0, 0, 8})
      .add(Type::message_arrived, at(500), {2, 0, 0, 8, 16});
  const auto history = run.read();
  EXPECT_EQ(sending(*history).at(0).delivered.messages, 2u);
  EXPECT_EQ(sending(*history, Sent::flow_data).at(0).delivered.messages, 1u);
  EXPECT_EQ(sending(*history, Sent::flow_data).at(0).delivered.bytes, 64u);
  EXPECT_EQ(sending(*history, Sent::flow_data).at(0).sent.messages, 0u);
}

TEST(Sending, OfOneRankIsNone) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).execute(0, 2, 1, 10, 110);
  EXPECT_TRUE(sending(*run.read()).empty());
}

}  // namespace
}  // namespace tandem::analysis::sending_test
