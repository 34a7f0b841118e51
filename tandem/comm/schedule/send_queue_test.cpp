// tandem/comm/schedule/send_queue_test.cpp: in which order things leave a queue, by example.
#include "tandem/comm/schedule/send_queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tandem/comm/schedule/strategy.hpp"

namespace tandem::comm::send_queue_test {
namespace {

struct Message : SendItem {
  Message(std::int32_t with_priority, std::uint64_t with_tag, bool is_ordered = true) {
    tag = with_tag;
    priority = with_priority;
    ordered = is_ordered;
    control_bytes = 32;
  }
};

struct Stream : SendItem {
  Stream(std::int32_t with_priority, std::uint64_t ready_bytes) {
    kind = SendKind::stream;
    priority = with_priority;
    control_bytes = 24;
    bulk_bytes = ready_bytes;
  }
};

std::vector<const SendItem*> walk(const SendQueue& queue) {
  std::vector<const SendItem*> order;
  for (SendQueue::Cursor at = queue.messages(); at; at.advance()) order.push_back(&*at);
  return order;
}

using Order = std::vector<const SendItem*>;

TEST(SendQueue, EqualPrioritiesLeaveInTheOrderOfPosting) {
  SendQueue queue;
  Message a(0, 1), b(0, 2, false), c(0, 1);
  for (SendItem* item : {&a, &b, &c}) queue.push(*item);
  EXPECT_EQ(walk(queue), (Order{&a, &b, &c}));
  queue.remove(b);
  EXPECT_EQ(walk(queue), (Order{&a, &c}));
  EXPECT_FALSE(b.queued());
  EXPECT_EQ(queue.pending_bytes(), 64u);
}

TEST(SendQueue, HigherPrioritiesLeaveFirst) {
  SendQueue queue;
  Message a(0, 1), b(5, 2), c(-3, 3), d(5, 4), e(0, 5);
  for (SendItem* item : {&a, &b, &c, &d, &e}) queue.push(*item);
  EXPECT_EQ(walk(queue), (Order{&b, &d, &a, &e, &c}));
}

TEST(SendQueue, InTheOrderOfPostingPrioritiesDoNotCount) {
  SendQueue queue(SendOrder::posting);
  Message a(0, 1), b(5, 2), c(9, 1);
  Stream s(0, 10), t(7, 10);
  for (SendItem* item : {&a, &b, &c}) queue.push(*item);
  for (SendItem* item : {&s, &t}) queue.push(*item);
  EXPECT_EQ(walk(queue), (Order{&a, &b, &c}));
  EXPECT_EQ(queue.stream(), &s);
  queue.set_priority(b, 100);
  queue.set_priority(t, 100);
  EXPECT_EQ(walk(queue), (Order{&a, &b, &c}));
  EXPECT_EQ(queue.stream(), &s);
}

TEST(SendQueue, OlderMessagesOfAKeyGoBeforeAnUrgentOneWithItsPriority) {
  SendQueue queue;
  Message old(0, 1), other(3, 2), older_still_other(0, 3), urgent(9, 1), late(9, 4);
  for (SendItem* item : {&old, &other, &older_still_other, &urgent, &late}) queue.push(*item);
  EXPECT_EQ(walk(queue), (Order{&old, &urgent, &late, &other, &older_still_other}));
  EXPECT_EQ(queue.messages().priority(), 9);
  queue.check_invariants();
}

TEST(SendQueue, UnorderedItemsNeitherWaitForTheirKeyNorRaiseIt) {
  SendQueue queue;
  Message old(0, 1), record(9, 1, false), low(-1, 1, false);
  for (SendItem* item : {&old, &record, &low}) queue.push(*item);
  EXPECT_EQ(walk(queue), (Order{&record, &old, &low}));
}

TEST(SendQueue, AnInheritedPriorityStaysWhenTheUrgentMessageIsCancelled) {
  SendQueue queue;
  Message first(0, 1), second(2, 1), other(5, 2), urgent(9, 1);
  for (SendItem* item : {&first, &second, &other, &urgent}) queue.push(*item);
  queue.remove(urgent);
  queue.check_invariants();
  EXPECT_EQ(walk(queue), (Order{&first, &second, &other}));
  EXPECT_EQ(queue.messages().priority(), 9);
  queue.remove(second);
  queue.remove(first);
  queue.check_invariants();
  EXPECT_EQ(walk(queue), (Order{&other}));
}

TEST(SendQueue, AMessageCanBecomeUrgentOrUnimportant) {
  SendQueue queue;
  Message a(0, 1), b(0, 2), c(0, 1), d(0, 1);
  for (SendItem* item : {&a, &b, &c, &d}) queue.push(*item);
  queue.set_priority(c, 4);
  queue.check_invariants();
  EXPECT_EQ(walk(queue), (Order{&a, &c, &b, &d}));
  queue.set_priority(b, -1);
  EXPECT_EQ(walk(queue), (Order{&a, &c, &d, &b}));
  queue.set_priority(a, -9);  // c needs it
  EXPECT_EQ(walk(queue), (Order{&a, &c, &d, &b}));
  queue.set_priority(d, -2);
  EXPECT_EQ(walk(queue), (Order{&a, &c, &b, &d}));
  queue.check_invariants();
}

TEST(SendQueue, AMessageThatIsSentInAnotherWayKeepsItsPlace) {
  SendQueue queue;
  Message a(0, 1), b(0, 2), c(7, 2);
  for (SendItem* item : {&a, &b, &c}) queue.push(*item);
  queue.reshape(b, SendKind::whole, 24, 5000);
  EXPECT_EQ(queue.pending_bytes(), 32u + 24u + 5000u + 32u);
  EXPECT_EQ(walk(queue), (Order{&b, &c, &a}));
  queue.reshape(b, SendKind::record, 48, 0);
  EXPECT_EQ(queue.pending_bytes(), 32u + 48u + 32u);
  EXPECT_EQ(walk(queue), (Order{&b, &c, &a}));
  queue.check_invariants();
}

TEST(SendQueue, AReadyStreamOfHighPriorityAndAgeIsFirst) {
  SendQueue queue;
  Stream a(0, 100), b(0, 100), c(1, 0), d(-1, 100);
  for (SendItem* item : {&a, &b, &c, &d}) queue.push(*item);
  EXPECT_EQ(queue.stream(0), &a);
  EXPECT_EQ(queue.stream(1), &b);
  EXPECT_EQ(queue.ready_stream_count(), 3u);
  queue.update(c, 10);
  EXPECT_EQ(queue.stream(), &c);
  queue.update(c, 0);
  queue.update(a, 0);
  EXPECT_EQ(queue.stream(), &b);
  queue.update(a, 5);  // resumes before the younger one
  EXPECT_EQ(queue.stream(), &a);
  queue.set_priority(d, 7);
  EXPECT_EQ(queue.stream(), &d);
  EXPECT_EQ(queue.pending_bytes(), 205u);
  for (SendItem* item : {&a, &b, &c, &d}) queue.remove(*item);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pending_bytes(), 0u);
}

TEST(SendQueue, ACommitAdvancesTheStreamAndTakesTheMessages) {
  SendQueue queue;
  Message a(0, 1), b(0, 2);
  Stream s(0, 100);
  for (SendItem* item : {&a, &b}) queue.push(*item);
  queue.push(s);
  PacketPlan plan;
  plan.records = {&a};
  plan.bulk = &s;
  plan.bulk_bytes = 60;
  queue.commit(plan);
  EXPECT_EQ(walk(queue), (Order{&b}));
  EXPECT_EQ(s.bulk_bytes, 40u);
  plan.records = {&b};
  plan.bulk_bytes = 40;
  queue.commit(plan);
  EXPECT_TRUE(queue.idle());
  EXPECT_FALSE(queue.empty()) << "the stream stays until it is removed";
  queue.remove(s);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace tandem::comm::send_queue_test
