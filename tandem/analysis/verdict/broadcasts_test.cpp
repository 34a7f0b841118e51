// tandem/analysis/verdict/broadcasts_test.cpp: counts of broadcasts, and of data that should have gone by one.
#include "tandem/analysis/verdict/broadcasts.hpp"

#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::broadcasts_test {
namespace {

using test::at;
using test::SmallRun;
using trace::Type;

TEST(Broadcasts, CountsTimesAndLateArrivals) {
  constexpr std::uint32_t ranks = 12;
  SmallRun run(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) run.usual(rank);
  auto& root = run.stream(0, 4);
  root.add(Type::mcast_posted, at(100), {21, 7, 5, 4096, ranks - 1});
  for (std::uint32_t rank = 1; rank < ranks; ++rank) root.add(Type::mcast_recipient, at(100), {21, rank});
  root.add(Type::mcast_posted, at(2000), {22, 7, 6, 64, 2});  // its recipients were not recorded, and none has it
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    if (rank == 3) run.stream(rank, 4).add(Type::receive_posted, at(50), {1, 0, 7, 5});
    run.stream(rank, 4).add(Type::message_arrived, at(rank == 11 ? 1100 : 200 + 2 * rank), {1, 0, 7, 5, 4096});
  }
  run.stream(1, 4).add(Type::mcast_declined, at(1200), {0, 2, 5});
  const Broadcasts result = broadcasts(*run.read());
  EXPECT_EQ(result.count, 2u);
  EXPECT_EQ(result.bytes, 4096u * 11 + 64 * 2);
  EXPECT_EQ(result.recipients->min, 2);
  EXPECT_EQ(result.recipients->max, 11);
  EXPECT_EQ(result.durations->count, 1u);
  EXPECT_EQ(result.durations->max, 1000);
  EXPECT_NEAR(result.gain.value(), 11 * 102 / 1000.0, 0.01) << "the first arrival, 102 ns, tells the rate";
  EXPECT_EQ(result.arrivals, 11u);
  EXPECT_EQ(result.awaited, 1u);
  EXPECT_EQ(result.late, 1u);
  EXPECT_EQ(result.late_excess_ns, 1000 - (100 + 2 * 6));
  ASSERT_EQ(result.delays.size(), 1u) << "of one size something has arrived";
  EXPECT_EQ(result.delays.at(4096).median, 100 + 2 * 6);
  EXPECT_EQ(result.declined, 1u);
}

TEST(Broadcasts, GainOverPlainMessagesAtTheHighestRate) {
  SmallRun run(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) run.usual(rank);
  auto& root = run.stream(0, 4);
  root.add(Type::send_posted, at(10), {1, 1, 7, 0, 1, 8000});
  root.add(Type::mcast_posted, at(200), {21, 7, 5, 3000, 3});
  for (std::uint32_t rank = 1; rank < 4; ++rank) root.add(Type::mcast_recipient, at(200), {21, rank});
  run.stream(1, 4).add(Type::message_arrived, at(90), {1, 0, 7, 1, 8000});  // 100 bytes per ns
  for (std::uint32_t rank = 1; rank < 4; ++rank)
    run.stream(rank, 4).add(Type::message_arrived, at(230 + 5 * rank), {2, 0, 7, 5, 3000});
  const Broadcasts result = broadcasts(*run.read());
  EXPECT_NEAR(result.gain.value(), 90.0 / 45, 0.1);
}

/// A broadcast of 1000 bytes by rank 0, with a tag; `children` are those of the root.
void add_broadcast(SmallRun& run, std::int64_t posted_ns, std::uint32_t request, std::uint64_t tag,
                   const std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& children) {
  auto& root = run.stream(0, 4);
  root.add(Type::mcast_posted, at(posted_ns), {request, 7, tag, 1000, to.size()});
  for (const std::uint32_t rank : to) root.add(Type::mcast_recipient, at(posted_ns), {request, rank});
  root.add(Type::mcast_routed, at(posted_ns + 2), {request, 1, 0, children.size(), children});
}
void arrive(SmallRun& run, std::uint32_t rank, std::uint64_t tag, std::int64_t ns) {
  run.stream(rank, 4).add(Type::message_arrived, at(ns), {static_cast<std::uint32_t>(ns), 0, 7, tag, 1000});
}
void forward(SmallRun& run, std::uint32_t rank, std::uint32_t child, std::uint64_t tag, std::int64_t ns) {
  run.stream(rank, 4).add(Type::mcast_forwarded, at(ns), {0, child, tag, 1000});
}

TEST(Broadcasts, AnEdgeLeadsFromWhoSentItToEachRecipient) {
  SmallRun run(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) run.usual(rank);
  // A chain 0 -> 1 -> 2 -> 3, whose second link begins before all data is there.
  add_broadcast(run, 100, 21, 5, {1, 2, 3}, {1});
  forward(run, 1, 2, 5, 110);
  arrive(run, 1, 5, 120);
  arrive(run, 2, 5, 140);
  forward(run, 2, 3, 5, 150);
  arrive(run, 3, 5, 190);
  const auto history = run.read();
  const std::vector<BroadcastEdge> edges = broadcast_edges(*history, broadcasts(*history).delays);
  ASSERT_EQ(edges.size(), 3u);
  const std::uint32_t parents[] = {0, 1, 2};
  const std::int64_t begun_ns[] = {102, 110, 150};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(history->communications[edges[i].communication].destination, i + 1);
    EXPECT_EQ(edges[i].parent, parents[i]);
    EXPECT_EQ(edges[i].begun_ns - history->broadcasts[0].posted_ns, begun_ns[i] - 100);
    EXPECT_FALSE(edges[i].late);
  }
}

TEST(Broadcasts, ATagThatComesAgainIsAnotherTree) {
  SmallRun run(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) run.usual(rank);
  add_broadcast(run, 100, 21, 5, {1, 2}, {1, 2});  // the root serves both
  arrive(run, 1, 5, 120);
  arrive(run, 2, 5, 130);
  add_broadcast(run, 200, 22, 5, {1, 2}, {1});  // rank 1 serves rank 2
  arrive(run, 1, 5, 220);
  forward(run, 1, 2, 5, 222);
  arrive(run, 2, 5, 240);
  const auto history = run.read();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> parent_of;  // of each broadcast and recipient
  for (const BroadcastEdge& edge : broadcast_edges(*history, broadcasts(*history).delays)) {
    const CommunicationRow& row = history->communications[edge.communication];
    EXPECT_TRUE(parent_of.try_emplace({row.broadcast, row.destination}, edge.parent).second);
  }
  EXPECT_EQ(parent_of, (decltype(parent_of){{{0, 1}, 0}, {{0, 2}, 0}, {{1, 1}, 0}, {{1, 2}, 1}}));
}

TEST(Broadcasts, TwoStrandsGiveARecipientTwoEdges) {
  SmallRun run(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) run.usual(rank);
  add_broadcast(run, 100, 21, 5, {1, 2}, {1});
  run.stream(0, 4).add(Type::mcast_routed, at(104), {21, 6, 0, 1, std::vector<std::uint32_t>{2}});
  forward(run, 2, 1, 5, 110);
  forward(run, 1, 2, 5, 112);
  arrive(run, 1, 5, 130);
  arrive(run, 2, 5, 140);
  const auto history = run.read();
  std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (const BroadcastEdge& edge : broadcast_edges(*history, broadcasts(*history).delays))
    edges.emplace(edge.parent, history->communications[edge.communication].destination);
  EXPECT_EQ(edges, (decltype(edges){{0, 1}, {0, 2}, {1, 2}, {2, 1}}));
}

TEST(Broadcasts, LateEdgesAreTheLateArrivals) {
  constexpr std::uint32_t ranks = 12;
  SmallRun run(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) run.usual(rank);
  std::vector<std::uint32_t> to;
  for (std::uint32_t rank = 1; rank < ranks; ++rank) to.push_back(rank);
  add_broadcast(run, 100, 21, 5, to, to);
  for (const std::uint32_t rank : to) arrive(run, rank, 5, rank == 7 ? 1100 : 200 + 2 * rank);
  const auto history = run.read();
  for (const BroadcastEdge& edge : broadcast_edges(*history, broadcasts(*history).delays))
    EXPECT_EQ(edge.late, history->communications[edge.communication].destination == 7);
}

TEST(Broadcasts, TheBoundIsTheFastestMessage) {
  SmallRun run(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) run.usual(rank);
  EXPECT_EQ(fastest_message(*run.read()).bound_ns(1000), 0) << "nothing is known";
  run.stream(0, 4)
      .add(Type::send_posted, at(10), {1, 1, 7, 0, 1, 10})
      .add(Type::send_posted, at(20), {2, 1, 7, 0, 2, 8000});
  run.stream(1, 4)
      .add(Type::message_arrived, at(30), {1, 0, 7, 1, 10})
      .add(Type::message_arrived, at(100), {2, 0, 7, 2, 8000});
  const FastestMessage fastest = fastest_message(*run.read());
  EXPECT_EQ(fastest.shortest_ns, 20);
  EXPECT_EQ(fastest.bytes_per_ns, 100);
  EXPECT_EQ(fastest.bound_ns(500), 20);
  EXPECT_EQ(fastest.bound_ns(8000), 80);
}

/// Rank 0 sends versions of data to ranks as a test says.
class SharedRun {
 public:
  SharedRun() {
    for (std::uint32_t rank = 0; rank < 5; ++rank) run_.usual(rank);
  }
  void send(std::uint32_t data, std::uint32_t version, std::uint32_t to, std::uint64_t bytes) {
    ++request_;
    run_.stream(0, 4).add(Type::send_posted, at(2 * request_), {request_, to, 0, 0, request_, bytes});
    run_.stream(0, 4).add(Type::data_sent, at(2 * request_), {data, version, 0, request_});
  }
  void broadcast(std::uint32_t data, std::uint32_t version, const std::vector<std::uint32_t>& to, std::uint64_t bytes) {
    ++request_;
    auto& root = run_.stream(0, 4);
    root.add(Type::mcast_posted, at(2 * request_), {request_, 0, request_, bytes, to.size()});
    for (const std::uint32_t rank : to) root.add(Type::mcast_recipient, at(2 * request_), {request_, rank});
    root.add(Type::data_sent, at(2 * request_), {data, version, 0, request_});
  }
  SharedData read() { return broadcasts(*run_.read()).shared; }

 private:
  SmallRun run_{5};
  std::uint32_t request_ = 0;
};

TEST(Broadcasts, TheDetectionRateIsThatOfRecipients) {
  SharedRun run;
  run.broadcast(0, 1, {1, 2, 3}, 100);
  run.send(0, 2, 1, 100);  // one recipient: nothing to detect
  run.send(1, 1, 1, 50);
  run.send(1, 1, 2, 50);
  run.broadcast(1, 2, {1, 2}, 10);
  run.send(1, 2, 4, 10);
  const SharedData shared = run.read();
  EXPECT_EQ(shared.versions, 3u);
  EXPECT_EQ(shared.recipients, 3u + 2 + 3);
  EXPECT_EQ(shared.by_broadcast, 5u);
  EXPECT_EQ(shared.bytes, 300u + 100 + 30);
  EXPECT_EQ(shared.bytes_by_broadcast, 320u);
  EXPECT_EQ(shared.split, 1u);
  EXPECT_DOUBLE_EQ(shared.detection_rate().value(), 5.0 / 8);
}

TEST(Broadcasts, NothingWasSent) {
  SmallRun run;
  run.usual();
  const Broadcasts result = broadcasts(*run.read());
  EXPECT_EQ(result.count, 0u);
  EXPECT_FALSE(result.durations);
  EXPECT_FALSE(result.shared.detection_rate());
}

TEST(Broadcasts, RandomRunsAgreeWithBruteForce) {
  std::uint64_t split = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    SharedRun run;
    struct Ways {
      std::set<std::uint32_t> all, by_broadcast, plain;
      std::size_t broadcasts = 0;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Ways> versions;
    for (int i = 0; i < 30; ++i) {
      const std::uint32_t data = random() % 2, version = random() % 8;
      Ways& ways = versions[{data, version}];
      std::vector<std::uint32_t> to;
      for (std::uint32_t rank = 1; rank < 5; ++rank)
        if (!ways.all.contains(rank) && random() % 2 == 0) to.push_back(rank);
      if (to.empty()) continue;
      ways.all.insert(to.begin(), to.end());
      if (to.size() > 1) {
        run.broadcast(data, version, to, 8);
        ways.by_broadcast.insert(to.begin(), to.end());
        ++ways.broadcasts;
      } else {
        run.send(data, version, to.front(), 8);
        ways.plain.insert(to.front());
      }
    }
    SharedData expected;
    for (const auto& [version, ways] : versions) {
      if (ways.all.size() < 2) continue;
      ++expected.versions;
      expected.recipients += ways.all.size();
      expected.by_broadcast += ways.by_broadcast.size();
      expected.split += ways.broadcasts > 1 || (ways.broadcasts == 1 && !ways.plain.empty());
    }
    const SharedData shared = run.read();
    EXPECT_EQ(shared.versions, expected.versions) << "seed " << seed;
    EXPECT_EQ(shared.recipients, expected.recipients) << "seed " << seed;
    EXPECT_EQ(shared.by_broadcast, expected.by_broadcast) << "seed " << seed;
    EXPECT_EQ(shared.bytes, 8 * expected.recipients) << "seed " << seed;
    EXPECT_EQ(shared.split, expected.split) << "seed " << seed;
    split += shared.split;
  }
  EXPECT_GT(split, 0u);
}

}  // namespace
}  // namespace tandem::analysis::broadcasts_test
