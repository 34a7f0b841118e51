// tools/trace/check_test.cpp: each broken promise of a trace is found, and none in a sound trace.
#include "tools/trace/check.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tandem/trace/read/sample_trace.hpp"

namespace tandem::tools::trace_check_test {
namespace {

namespace test = trace::test;
using test::PacketWriter;
using trace::Type;

class TraceCheckTest : public ::testing::Test {
 protected:
  TraceCheckTest() {
    test::write_sample_run(run_);
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      describe({.rank = rank, .events = test::sample_events + test::sample_descriptions});
  }

  /// The streams here have a few events of all types, whose causes are not checked.
  void describe(test::RankFacts facts) {
    facts.size = 2;
    facts.selection = "-task.submitted,-comm.receive_posted";
    facts.line = {test::sample_first_point(facts.rank), test::sample_last_point(facts.rank)};
    test::write_rank(test::sample_rank_folder(run_, facts.rank), facts);
  }

  TraceCheck checked() {
    auto opened = trace::TraceReader::open(run_);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return opened.ok() ? check(*opened.value()) : TraceCheck{};
  }
  std::filesystem::path stream(std::uint32_t rank, std::uint32_t actor) const {
    return test::stream_path(test::sample_rank_folder(run_, rank), actor);
  }
  /// The broken promises of these streams, without those about the sample's counts in rank.json.
  std::vector<std::string> broken() {
    std::vector<std::string> promises;
    for (const Violation& violation : checked().violations)
      if (!violation.promise.starts_with("rank.json counts")) promises.push_back(violation.promise);
    return promises;
  }
  void expect_broken(const std::string& promise) {
    const auto promises = broken();
    ASSERT_EQ(promises.size(), 1u) << ::testing::PrintToString(promises) << " instead of " << promise;
    EXPECT_NE(promises[0].find(promise), std::string::npos) << promises[0];
  }

  test::TempFolder temp_;
  std::filesystem::path run_ = temp_.path() / "run";
};

TEST_F(TraceCheckTest, ASoundTraceBreaksNothing) {
  const TraceCheck result = checked();
  EXPECT_TRUE(result.violations.empty()) << result.violations[0].promise << ": " << result.violations[0].examples[0];
  EXPECT_TRUE(result.notes.empty());
  EXPECT_EQ(result.events, 2 * test::sample_events);
  EXPECT_EQ(result.tasks_started, 2u * test::sample_tasks);
  EXPECT_EQ(result.tasks_ended, 2u * test::sample_tasks);
  EXPECT_EQ(result.messages_paired, 6u);
  EXPECT_EQ(result.least_latency_ns, 2 * 10'000 - 100) << "rank 1 is 100 ns late, and sends to rank 0";
}

TEST_F(TraceCheckTest, ATaskThatDoesNotEndIsReportedUnlessTheProgramWasKilled) {
  test::write_file(stream(0, 1), PacketWriter(1, 0, 2'000'000).add(Type::task_started, 2'000'000, {7}).bytes());
  const auto promises = broken();
  ASSERT_EQ(promises.size(), 2u);
  EXPECT_TRUE(promises[0].starts_with("each task.started"));
  EXPECT_TRUE(promises[1].starts_with("as many tasks start"));
  describe({.complete = false, .recovered = true});
  const TraceCheck killed = checked();
  EXPECT_TRUE(killed.violations.empty());
  EXPECT_EQ(killed.tasks_running_at_kill, 1u);
}

TEST_F(TraceCheckTest, SpansThatAreNotNestedAreReported) {
  PacketWriter tasks(1, 0, 2'000'000);
  tasks.add(Type::task_started, 2'000'000, {7}).add(Type::task_started, 2'000'000, {8});
  tasks.add(Type::task_ended, 2'000'000, {7}).add(Type::task_ended, 2'000'000, {8});
  test::write_file(stream(0, 1), tasks.bytes());
  expect_broken("task.started");
  EXPECT_NE(checked().violations.back().examples[0].find("task.ended 7, while 8 is open"), std::string::npos);
}

TEST_F(TraceCheckTest, OtherSpansAreCheckedToo) {
  const auto only = [&](Type type, std::initializer_list<test::Value> values) {
    test::write_file(stream(0, 1), PacketWriter(1, 0, 2'000'000).add(type, 2'000'000, values).bytes());
  };
  only(Type::span_began, {0});
  expect_broken("user.span_began");
  only(Type::span_ended, {0});
  expect_broken("user.span_began");
  only(Type::flush_began, {1, 2});
  expect_broken("tracer.flush_began");
  only(Type::wait_ended, {});
  expect_broken("flow.wait_began");
  only(Type::submission_throttled, {});
  expect_broken("flow.throttled");
  only(Type::quiet_ended, {});
  expect_broken("tracer.quiet_began");
}

TEST_F(TraceCheckTest, WhatWasLostIsNotHeldAgainstTheRest) {
  PacketWriter lossy(1, 0, 2'000'000, 3);
  lossy.add(Type::events_lost, 2'000'000, {3}).add(Type::task_ended, 2'000'000, {7});
  test::write_file(stream(0, 1), lossy.bytes());
  EXPECT_TRUE(broken().empty());
  EXPECT_FALSE(checked().notes.empty());
}

TEST_F(TraceCheckTest, LossesThatThePacketsDoNotCountAreReported) {
  test::write_file(stream(0, 1), PacketWriter(1, 0, 2'000'000, 2).add(Type::events_lost, 2'000'000, {3}).bytes());
  expect_broken("no more events are said to be lost");
}

TEST_F(TraceCheckTest, CountsInTheManifestAreHeldAgainstTheStreams) {
  describe({.events = 5, .lost_events = 6});
  const TraceCheck result = checked();
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_EQ(result.violations[0].count, 2u);
}

TEST_F(TraceCheckTest, MissingPacketsAreReportedWhereNoneMayBe) {
  const auto packets = test::sample_worker_packets();
  test::write_file(stream(0, 1), packets[0] + packets[1] + packets[3]);
  expect_broken("no packet is missing");
}

TEST_F(TraceCheckTest, DamageIsReportedWithItsPlace) {
  PacketWriter bad(1, 0, 2'000'000);
  test::write_file(stream(0, 1), bad.add(static_cast<Type>(126), 2'000'000).bytes());
  const TraceCheck result = checked();
  EXPECT_TRUE(result.violations[0].promise.starts_with("every packet and record"));
  EXPECT_NE(result.violations[0].examples[0].find("at byte 64"), std::string::npos);
  const auto packets = test::sample_worker_packets();
  test::write_file(stream(0, 1), packets[0] + packets[1].substr(0, 100));
  expect_broken("every file ends with a whole packet");
}

/// Rank 0 sends, and rank 1 receives; each message is (stamp, bytes).
using Stamped = std::vector<std::pair<std::uint64_t, int>>;
void write_messages(const std::filesystem::path& run, const Stamped& sent, const Stamped& arrived) {
  PacketWriter sender(2, 0, 1'000'000), receiver(2, 0, 1'000'000);
  for (const auto& [ticks, bytes] : sent) sender.add(Type::send_posted, ticks, {0, 1, 7, 0, 5, bytes});
  for (const auto& [ticks, bytes] : arrived) receiver.add(Type::message_arrived, ticks, {0, 0, 7, 5, bytes});
  test::write_file(test::stream_path(test::sample_rank_folder(run, 0), 2), sender.bytes());
  test::write_file(test::stream_path(test::sample_rank_folder(run, 1), 2), receiver.bytes());
}

TEST_F(TraceCheckTest, MessagesArriveOnceEachWithTheirBytes) {
  write_messages(run_, {{1'000'000, 8}, {1'000'100, 16}}, {{1'005'000, 8}, {1'005'100, 16}});
  EXPECT_TRUE(broken().empty());
  write_messages(run_, {{1'000'000, 8}, {1'000'100, 16}}, {{1'005'000, 8}});
  expect_broken("as many messages arrive");
  write_messages(run_, {{1'000'000, 8}}, {{1'005'000, 8}, {1'005'000, 8}});
  expect_broken("as many messages arrive");
  write_messages(run_, {{1'000'000, 8}}, {{1'005'000, 9}});
  expect_broken("with the bytes that were sent");
}

TEST_F(TraceCheckTest, NoMessageArrivesBeforeItWasSentByMoreThanTheClocksErr) {
  // A tick is 2 ns; rank 1's clock is 100 ns behind rank 0's, give or take 20.
  write_messages(run_, {{1'000'100, 8}}, {{1'000'041, 8}});
  EXPECT_TRUE(broken().empty()) << "18 ns early, which the clocks' error explains";
  write_messages(run_, {{1'000'100, 8}}, {{1'000'039, 8}});
  expect_broken("before it was sent");
}

TEST_F(TraceCheckTest, ABroadcastIsAMessageToEachOfItsRecipients) {
  write_messages(run_, {{1'000'100, 8}}, {{1'001'000, 8}, {2'001'000, 8}});
  PacketWriter broadcast(1, 0, 2'000'000);
  broadcast.add(Type::mcast_posted, 2'000'000, {1, 7, 5, 8, 1});
  test::write_file(stream(0, 1), broadcast.bytes());
  expect_broken("as many messages arrive");
  test::write_file(stream(0, 1), broadcast.add(Type::mcast_recipient, 2'000'000, {1, 1}).bytes());
  EXPECT_TRUE(broken().empty());
  EXPECT_EQ(checked().messages_paired, 2u);
}

}  // namespace
}  // namespace tandem::tools::trace_check_test
