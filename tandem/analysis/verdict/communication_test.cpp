// tandem/analysis/verdict/communication_test.cpp: the matrix and the times of messages, by hand and by brute force.
#include "tandem/analysis/verdict/communication.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "tandem/analysis/history/random_run.hpp"

namespace tandem::analysis::communication_test {
namespace {

using test::at;
using test::RandomRun;
using test::SmallRun;
using trace::Type;

Communication communication_of(const History& history) {
  return communication(history, TaskGraph(history), split_time(history));
}

TEST(Communication, IdleTimeIsExposedAndKernelsHideMessages) {
  SmallRun run(2);
  run.usual(0).usual(1);
  for (const std::uint32_t actor : {2u, 3u})
    run.stream(1, actor).add(Type::worker_state, at(0), {static_cast<std::uint8_t>(trace::WorkerState::polling)});
  run.submit(0, 0, 1, 0).execute(0, 2, 1, 10, 110).submit(0, 0, 2, 0, {}, {1});
  run.stream(0, 4).add(Type::send_posted, at(120), {1, 1, 0, 0, 7, 640}).add(Type::data_sent, at(120), {0, 1, 2, 1});
  run.submit(1, 0, 3, 0).submit(1, 0, 4, 0, {}, {3}).submit(1, 0, 5, 0);
  run.stream(1, 4)
      .add(Type::receive_posted, at(20), {1, 0, 0, 7})
      .add(Type::message_arrived, at(300), {1, 0, 0, 7, 640});
  run.stream(1, 4).add(Type::data_received, at(300), {0, 1, 3, 1}).add(Type::task_ready, at(300), {4});
  run.execute(1, 3, 5, 0, 200).execute(1, 2, 4, 320, 400);
  const Communication result = communication_of(*run.read());
  ASSERT_EQ(result.matrix.size(), 1u);
  EXPECT_EQ(result.matrix[0].source, 0u);
  EXPECT_EQ(result.matrix[0].destination, 1u);
  EXPECT_EQ(result.matrix[0].messages, 1u);
  EXPECT_EQ(result.matrix[0].bytes, 640u);
  EXPECT_EQ(result.matrix[0].total_ns, 180);
  ASSERT_TRUE(result.sent_to_arrived);
  EXPECT_EQ(result.sent_to_arrived->median, 180);
  ASSERT_TRUE(result.arrived_to_used);
  EXPECT_EQ(result.arrived_to_used->median, 20);
  ASSERT_EQ(result.ranks.size(), 2u);
  const RankCommunication& receiver = result.ranks[1];
  EXPECT_EQ(receiver.in.messages, 1u);
  EXPECT_EQ(receiver.in.busy_ns, 180);
  EXPECT_DOUBLE_EQ(receiver.in.bytes_per_s(), 640 / 180e-9);
  EXPECT_EQ(receiver.out.messages, 0u);
  EXPECT_EQ(receiver.out.bytes_per_s(), 0);
  // Worker 0 is idle from 20 on, worker 1 from 200 on; the message is under way from 120 to 300.
  EXPECT_EQ(receiver.awaiting_ns, 280 + 100);
  EXPECT_EQ(receiver.exposed_ns, 180 + 100);
  EXPECT_EQ(receiver.overlapped_ns, 80);
  EXPECT_DOUBLE_EQ(result.overlap().value(), 80.0 / 360);
  EXPECT_EQ(result.ranks[0].out.messages, 1u);
  EXPECT_EQ(result.ranks[0].awaiting_ns, 0);
}

TEST(Communication, WhatNobodyKnowsIsLeftOut) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.stream(0, 4)
      .add(Type::send_posted, at(100), {1, 1, 0, 0, 7, 64})
      .add(Type::send_posted, at(100), {2, 1, 0, 0, 8, 64});
  run.stream(0, 4).add(Type::message_failed, at(120), {2, 1});
  run.stream(1, 4)
      .add(Type::receive_posted, at(20), {1, UINT32_MAX, 0, 9})
      .add(Type::receive_posted, at(20), {2, 0, 0, 10});
  const Communication result = communication_of(*run.read());
  EXPECT_EQ(result.messages(), 1u);
  EXPECT_FALSE(result.sent_to_arrived);
  EXPECT_FALSE(result.overlap());
}

TEST(Communication, OneRankHasNone) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).execute(0, 2, 1, 10, 110);
  const Communication result = communication_of(*run.read());
  EXPECT_TRUE(result.matrix.empty());
  EXPECT_EQ(result.messages(), 0u);
  ASSERT_EQ(result.ranks.size(), 1u);
}

TEST(Communication, RandomRunsAgreeWithBruteForce) {
  std::int64_t all_exposed_ns = 0, all_hidden_ns = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomRun run(seed, 2 + seed % 2);
    const auto history = run.read();
    const TimeSplit split = split_time(*history);
    const Communication result = communication(*history, TaskGraph(*history), split);
    std::map<std::pair<std::uint32_t, std::uint32_t>, RankPair> pairs;
    std::vector<std::int64_t> latencies, waits;
    for (const RandomRun::Message& message : run.messages) {
      RankPair& pair = pairs[{message.source, message.destination}];
      ++pair.messages;
      pair.bytes += message.bytes;
      pair.total_ns += message.arrived_ns - message.posted_ns;
      latencies.push_back(message.arrived_ns - message.posted_ns);
      waits.push_back(run.tasks[message.for_task].start_ns - message.arrived_ns);
    }
    ASSERT_EQ(result.matrix.size(), pairs.size()) << "seed " << seed;
    for (const RankPair& pair : result.matrix) {
      const RankPair& expected = pairs.at({pair.source, pair.destination});
      EXPECT_EQ(pair.messages, expected.messages) << "seed " << seed;
      EXPECT_EQ(pair.bytes, expected.bytes) << "seed " << seed;
      EXPECT_EQ(pair.total_ns, expected.total_ns) << "seed " << seed;
    }
    if (!run.messages.empty()) {
      EXPECT_EQ(result.sent_to_arrived->max, std::ranges::max(latencies)) << "seed " << seed;
      EXPECT_EQ(result.arrived_to_used->total, std::accumulate(waits.begin(), waits.end(), std::int64_t{0}))
          << "seed " << seed;
    }
    for (const RankCommunication& rank : result.ranks) {
      const auto under_way = [&](std::int64_t ns, bool in) {
        return std::ranges::count_if(run.messages, [&](const RandomRun::Message& message) {
          return (in ? message.destination : message.source) == rank.rank && message.posted_ns <= ns &&
                 ns < message.arrived_ns;
        });
      };
      std::int64_t busy_ns = 0, most = 0, hidden_ns = 0;
      for (std::int64_t ns = 0; ns < split.end_ns(); ++ns) {
        const std::int64_t now = under_way(ns, true);
        busy_ns += now > 0;
        most = std::max(most, now);
        if (now == 0) continue;
        hidden_ns += std::ranges::count_if(run.tasks, [&](const RandomRun::Task& task) {
          return task.rank == rank.rank && task.start_ns <= ns && ns < task.end_ns;
        });
      }
      EXPECT_EQ(rank.in.busy_ns, busy_ns) << "seed " << seed;
      EXPECT_EQ(rank.in.most_at_once, most) << "seed " << seed;
      EXPECT_EQ(rank.overlapped_ns, hidden_ns) << "seed " << seed;
      EXPECT_LE(rank.exposed_ns, rank.awaiting_ns) << "seed " << seed;
      std::int64_t exposed_ns = 0;
      for (const WorkerTimes& worker : split.workers)
        if (worker.rank == rank.rank) exposed_ns += worker.ns[static_cast<std::size_t>(Spent::awaiting_message)];
      EXPECT_EQ(rank.awaiting_ns, exposed_ns) << "seed " << seed;
      all_exposed_ns += rank.exposed_ns;
      all_hidden_ns += hidden_ns;
    }
  }
  EXPECT_GT(all_exposed_ns, 0);
  EXPECT_GT(all_hidden_ns, 0);
}

}  // namespace
}  // namespace tandem::analysis::communication_test
