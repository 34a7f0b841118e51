// tandem/analysis/history/live_view_test.cpp: the view of a running rank, from events that a test writes into its live
// buffers.
#include "tandem/analysis/history/live_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tandem/analysis/history/live_tasks.hpp"
#include "tandem/trace/read/live_test_support.hpp"

namespace tandem::analysis::live_view_test {
namespace {

using trace::Type;
using trace::test::LiveFolder;
using trace::test::PacketWriter;
using enum trace::ActorKind;

/// A time in ns (even) of the rank's clock, as a stamp.
std::uint64_t at(std::int64_t ns) { return 1'000'000 + static_cast<std::uint64_t>(ns - 5'000) / 2; }
constexpr std::int64_t us = 1'000, begin = 10 * us;

std::uint8_t number(ActorState state) { return static_cast<std::uint8_t>(state); }

/// Actor 1 submits, 2 is worker 0, 3 polls the network. Sites: potrf, gemm, (event).
class LiveViewTest : public testing::Test {
 protected:
  explicit LiveViewTest(trace::test::RankFacts facts = {}) : folder_(std::move(facts)) {
    rank_ = trace::LiveRank::open(folder_.folder()).value();
    view_ = std::make_unique<LiveView>(*rank_);
    const auto actor = [&](std::uint32_t which, trace::ActorKind kind, const char* name) {
      stream(0).add(Type::actor, at(begin), {which, static_cast<std::uint8_t>(kind), 0, 3, name});
    };
    actor(1, submitter, "submitter"), actor(2, worker, "worker 0"), actor(3, progress, "progress");
    for (std::uint32_t i = 0; i < 3; ++i)
      stream(0).add(Type::site, at(begin), {i, 1, std::vector<const char*>{"potrf", "gemm", "(event)"}[i], "app.cpp"});
    stream(0).add(Type::data, at(begin), {7, 1, 64, 8, 1, 0, "C[2]"}).add(Type::name, at(begin), {5, 1, "residual"});
    look(begin);
  }
  PacketWriter& stream(std::uint32_t actor) { return streams_.try_emplace(actor, actor, 0, at(begin)).first->second; }
  void submit(std::int64_t ns, std::uint32_t task, std::uint16_t site, std::vector<std::uint32_t> deps = {}) {
    stream(1).add(Type::task_submitted, at(ns), {task, 0, site, 0, deps.size(), std::vector<std::uint32_t>{}, deps});
  }
  LiveInterval look(std::int64_t ns) {
    for (const auto& [actor, packet] : streams_) folder_.put(actor, packet);
    rank_->poll(*view_);
    return view_->take(ns);
  }

  LiveFolder folder_;
  std::unique_ptr<trace::LiveRank> rank_;
  std::unique_ptr<LiveView> view_;
  std::map<std::uint32_t, PacketWriter> streams_;
};

TEST_F(LiveViewTest, TheTimeOfAWorkerIsDividedWithoutARestAlsoOverTheEndsOfIntervals) {
  submit(10 * us, 1, 0);
  submit(10 * us, 2, 1);
  stream(2).add(Type::worker_state, at(12 * us), {number(ActorState::absent)});
  stream(2).add(Type::worker_state, at(13 * us), {number(ActorState::scheduling)});
  stream(2).add(Type::task_started, at(15 * us), {1}).add(Type::task_ended, at(25 * us), {1});
  stream(2).add(Type::worker_state, at(26 * us), {number(ActorState::sleeping)});
  stream(2).add(Type::worker_state, at(30 * us), {number(ActorState::scheduling)});
  stream(2).add(Type::task_started, at(32 * us), {2});
  const LiveInterval first = look(40 * us);
  EXPECT_EQ(first.length_ns, 30 * us);
  ASSERT_EQ(first.workers.size(), 1u);
  const LiveWorker& worker = first.workers[0];
  // Nothing is known before 12 us.
  EXPECT_EQ(worker.ns, (std::array<std::int64_t, 4>{18 * us, 5 * us, 4 * us, 1 * us}));
  EXPECT_EQ(worker.state, ActorState::executing);
  EXPECT_EQ(worker.kernel, "gemm");
  EXPECT_EQ(worker.task, 2u);
  EXPECT_EQ(worker.state_ns, 8 * us);
  EXPECT_EQ(worker.tasks, 1u);
  EXPECT_EQ(worker.core, 3);
  ASSERT_EQ(first.kernels.size(), 2u);
  EXPECT_EQ(first.kernels[0].name, "potrf");
  EXPECT_EQ(first.kernels[0].ns, 10 * us);
  EXPECT_EQ(first.kernels[1].ns, 8 * us) << "of the task that runs";

  const LiveInterval second = look(50 * us);
  EXPECT_EQ(second.workers[0].ns[0], 10 * us) << "nothing new was recorded: the task still runs";
  EXPECT_EQ(second.workers[0].state_ns, 18 * us);
  stream(2).add(Type::task_ended, at(52 * us), {2}).add(Type::worker_state, at(52 * us), {number(ActorState::polling)});
  const LiveInterval third = look(60 * us);
  EXPECT_EQ(third.workers[0].ns, (std::array<std::int64_t, 4>{2 * us, 0, 8 * us, 0}));
  EXPECT_EQ(third.workers[0].state, ActorState::polling);
  EXPECT_EQ(third.workers[0].state_ns, 8 * us);
  EXPECT_EQ(third.tasks.ended, 1u);
  EXPECT_EQ(third.all_tasks.ended, 2u);
}

TEST_F(LiveViewTest, ATaskThatRunsWithinAnotherInterruptsIt) {
  submit(10 * us, 1, 0);
  submit(10 * us, 2, 1);
  stream(2).add(Type::task_started, at(20 * us), {1}).add(Type::task_started, at(24 * us), {2});
  stream(2).add(Type::task_ended, at(30 * us), {2});
  const LiveInterval interval = look(40 * us);
  ASSERT_EQ(interval.kernels.size(), 2u);
  EXPECT_EQ(interval.kernels[0].name, "potrf");
  EXPECT_EQ(interval.kernels[0].ns, 14 * us);
  EXPECT_EQ(interval.kernels[1].ns, 6 * us);
  EXPECT_EQ(interval.workers[0].kernel, "potrf");
  EXPECT_EQ(interval.workers[0].state_ns, 20 * us);
  EXPECT_EQ(interval.running, 1u);
}

TEST_F(LiveViewTest, CountsTasksThatWaitAreReadyAndRunButNoNodes) {
  submit(10 * us, 1, 0);
  submit(10 * us, 2, 1, {1});
  submit(10 * us, 3, 1, {1, 2});
  submit(10 * us, 4, 1, {3});
  submit(10 * us, 5, 2);
  LiveInterval now = look(20 * us);
  EXPECT_EQ(now.tasks.submitted, 4u);
  EXPECT_EQ(now.ready, 1u) << "the one without predecessors";
  EXPECT_EQ(now.waiting, 3u);
  stream(2).add(Type::task_started, at(21 * us), {1}).add(Type::task_ended, at(22 * us), {1});
  for (const std::uint32_t task : {2u, 5u, 3u}) stream(2).add(Type::task_ready, at(22 * us), {task});
  stream(2).add(Type::task_started, at(23 * us), {2}).add(Type::task_cancelled, at(24 * us), {4});
  now = look(30 * us);
  EXPECT_EQ(now.ready, 1u);
  EXPECT_EQ(now.waiting, 0u);
  EXPECT_EQ(now.running, 1u);
  EXPECT_EQ(now.tasks.cancelled, 1u);
  EXPECT_EQ(now.tasks.submitted, 0u);
}

TEST_F(LiveViewTest, CountsMessagesAndEachRecipientOfABroadcast) {
  stream(3).add(Type::send_posted, at(11 * us), {1, 1, 0, 0, 7, 100});
  stream(3).add(Type::mcast_posted, at(12 * us), {2, 0, 7, 50, 3});
  for (std::uint32_t to = 1; to <= 3; ++to) stream(3).add(Type::mcast_recipient, at(12 * us), {2, to});
  stream(3).add(Type::message_arrived, at(13 * us), {3, 1, 0, 7, 30});
  const LiveInterval first = look(20 * us);
  EXPECT_EQ(first.messages.sent, 4u);
  EXPECT_EQ(first.messages.sent_bytes, 250u);
  EXPECT_EQ(first.messages.arrived, 1u);
  EXPECT_EQ(first.messages.arrived_bytes, 30u);
  stream(3).add(Type::message_released, at(21 * us), {2}).add(Type::send_posted, at(22 * us), {4, 1, 0, 0, 7, 1});
  const LiveInterval second = look(30 * us);
  EXPECT_EQ(second.messages.sent, 1u);
  EXPECT_EQ(second.all_messages.sent_bytes, 251u);
}

TEST_F(LiveViewTest, NamesTheRankWhoseDataIsAwaitedOnceItsReceiveIsPosted) {
  for (const std::uint32_t task : {20u, 21u, 22u}) {
    stream(1).add(Type::data_expected, at(11 * us), {7, 1, task, task == 22 ? 2 : 1});
    submit(11 * us, task, 2, task == 20 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{1});
  }
  LiveInterval now = look(20 * us);
  ASSERT_EQ(now.receives.size(), 1u) << "the others wait for readers of the data";
  EXPECT_EQ(now.receives[0].peer, 1u);
  EXPECT_EQ(now.receives[0].count, 1u);
  EXPECT_EQ(now.receives[0].oldest_ns, 9 * us);
  EXPECT_EQ(now.receives[0].data, "C[2]");
  stream(2).add(Type::task_ready, at(25 * us), {21}).add(Type::task_ready, at(26 * us), {22});
  stream(3).add(Type::data_received, at(27 * us), {7, 1, 20, 1});
  now = look(30 * us);
  ASSERT_EQ(now.receives.size(), 2u);
  EXPECT_EQ(now.receives[0].oldest_ns, 5 * us);
  EXPECT_EQ(now.receives[1].peer, 2u);
}

TEST_F(LiveViewTest, SaysWhatTheProgramDoesAndItsCounters) {
  EXPECT_FALSE(look(11 * us).program);
  stream(1).add(Type::submission_throttled, at(12 * us)).add(Type::counter, at(13 * us), {5, 0.25});
  LiveInterval now = look(20 * us);
  EXPECT_EQ(now.program, LiveProgram::throttled);
  EXPECT_EQ(now.program_ns, 8 * us);
  EXPECT_EQ(now.counters, (std::map<std::string, double>{{"residual", 0.25}}));
  stream(1).add(Type::submission_resumed, at(21 * us)).add(Type::wait_began, at(22 * us));
  EXPECT_EQ(look(30 * us).program, LiveProgram::waiting);
  stream(1).add(Type::wait_ended, at(31 * us));
  EXPECT_EQ(look(40 * us).program, LiveProgram::submitting);
}

TEST_F(LiveViewTest, AfterAGapNothingIsClaimedOfWhatMayHaveChanged) {
  submit(10 * us, 1, 0);
  stream(2)
      .add(Type::worker_state, at(12 * us), {number(ActorState::scheduling)})
      .add(Type::task_started, at(15 * us), {1});
  EXPECT_TRUE(look(20 * us).waiting);
  streams_.erase(2);
  PacketWriter later(2, 3, at(30 * us));
  later.add(Type::task_ended, at(35 * us), {9});
  streams_.emplace(2, later);
  LiveInterval now = look(40 * us);
  EXPECT_EQ(now.missed_packets, 3u);
  EXPECT_FALSE(now.waiting);
  EXPECT_FALSE(now.ready);
  EXPECT_FALSE(now.workers[0].state);
  EXPECT_EQ(now.workers[0].ns, (std::array<std::int64_t, 4>{}));
  EXPECT_EQ(now.tasks.ended, 1u);
  streams_.at(2).add(Type::worker_state, at(45 * us), {number(ActorState::sleeping)});
  now = look(50 * us);
  EXPECT_EQ(now.workers[0].state, ActorState::sleeping);
  EXPECT_EQ(now.workers[0].ns[2], 5 * us);
}

class LiveViewOfTasksOnly : public LiveViewTest {
 protected:
  LiveViewOfTasksOnly() : LiveViewTest({.size = 2, .selection = "task,-task.deps"}) {}
};
TEST_F(LiveViewOfTasksOnly, SaysWhichCategoriesAreMissing) {
  EXPECT_EQ(view_->lacks(), (std::vector<std::string>{"task", "worker", "flow", "comm", "broadcast", "dist"}));
  submit(11 * us, 1, 0);
  EXPECT_FALSE(look(20 * us).ready) << "without task.deps no task seems to wait";
}

// An actor's events may become known before earlier ones of another actor.
TEST(LiveTasks, CountsAreTheSameForEveryOrderOfEvents) {
  constexpr std::uint32_t tasks = 60;
  std::mt19937 random(20261125);
  std::vector<std::pair<std::uint32_t, std::uint8_t>> events;
  std::uint64_t waiting = 0, ready = 0, submitted = 0;
  for (std::uint32_t task = 0; task < tasks; ++task) {
    const auto stage = random() % 5;  // how far it has come: waits, is ready, runs, has ended; or is a node
    if (stage == 4) {
      events.emplace_back(task, LiveTasks::submitted | LiveTasks::node), events.emplace_back(task, LiveTasks::ready);
      continue;
    }
    ++submitted;
    waiting += stage == 0 ? 1 : 0;
    ready += stage == 1 ? 1 : 0;
    events.emplace_back(task, LiveTasks::submitted);
    if (stage >= 1) events.emplace_back(task, LiveTasks::ready);
    if (stage >= 2) events.emplace_back(task, LiveTasks::started);
    if (stage >= 3) events.emplace_back(task, LiveTasks::ended);
  }
  for (int round = 0; round < 50; ++round) {
    std::ranges::shuffle(events, random);
    LiveTasks live;
    for (const auto& [task, flags] : events) {
      if ((flags & LiveTasks::submitted) != 0) live.submit(task, 3, flags);
      else live.note(task, flags);
    }
    ASSERT_EQ(live.waiting(), waiting);
    ASSERT_EQ(live.ready_count(), ready);
    ASSERT_EQ(live.submitted_count(), submitted);
  }
}

TEST(LiveTasks, TasksOfAReplayAreLikeThoseOfTheFirst) {
  LiveTasks live;
  live.submit(10, 4, LiveTasks::unbound);
  live.submit(11, 5, 0);
  live.replay(1, 10, 2);
  for (const std::uint32_t task : {10u, 11u}) live.note(task, LiveTasks::started | LiveTasks::ended);
  EXPECT_EQ(live.ready_count() + live.waiting(), 0u);
  live.replay(1, 100, 2);
  EXPECT_EQ(live.site_of(100), 4);
  EXPECT_EQ(live.site_of(101), 5);
  EXPECT_EQ(live.ready_count(), 1u);
  EXPECT_EQ(live.waiting(), 1u);
  EXPECT_EQ(live.submitted_count(), 4u);
}

TEST(LiveTasks, TasksThatHaveEndedAreForgottenAndNumbersComeAgain) {
  LiveTasks live;
  live.submit(7, 1, 0);
  for (std::uint32_t i = 0; i < LiveTasks::kept + 10; ++i) {
    live.submit(1000 + i, 2, LiveTasks::unbound);
    live.note(1000 + i, LiveTasks::ended);
  }
  EXPECT_EQ(live.site_of(1000), LiveTasks::no_site);
  EXPECT_EQ(live.site_of(1000 + LiveTasks::kept), 2);
  EXPECT_EQ(live.site_of(7), 1) << "it has not ended";
  EXPECT_EQ(live.waiting(), 1u);
  live.submit(1000, 3, LiveTasks::unbound);
  live.submit(7, 4, LiveTasks::unbound);  // its end was not read
  EXPECT_EQ(live.site_of(1000), 3);
  EXPECT_EQ(live.waiting(), 0u);
  EXPECT_EQ(live.ready_count(), 2u);
}

}  // namespace
}  // namespace tandem::analysis::live_view_test
