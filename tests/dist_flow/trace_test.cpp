// tests/dist_flow/trace_test.cpp: the trace of a flow on several ranks: clocks, messages, and what travelled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ranks.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/trace.hpp"
#include "tandem/trace/read/reader.hpp"

namespace tandem::dist_test::trace_test {
namespace {

namespace fs = std::filesystem;
using trace::Event;
using trace::Type;

struct Folder {
  fs::path path = [] {
    std::string name = (fs::temp_directory_path() / "dist_trace_XXXXXX").string();
    return fs::path(::mkdtemp(name.data()));
  }();
  ~Folder() { fs::remove_all(path); }
};

using Tile = std::span<double>;
using ReadTile = std::span<const double>;
constexpr std::size_t kTile = 8;

const Codelet potrf("potrf", [](Tile a) {
  for (std::size_t k = 0; k < kTile; ++k) {
    for (std::size_t j = 0; j < k; ++j) a[k * kTile + k] -= a[k * kTile + j] * a[k * kTile + j];
    a[k * kTile + k] = std::sqrt(a[k * kTile + k]);
    for (std::size_t i = k + 1; i < kTile; ++i) {
      for (std::size_t j = 0; j < k; ++j) a[i * kTile + k] -= a[i * kTile + j] * a[k * kTile + j];
      a[i * kTile + k] /= a[k * kTile + k];
    }
  }
});
const Codelet trsm("trsm", [](ReadTile l, Tile a) {
  for (std::size_t i = 0; i < kTile; ++i)
    for (std::size_t k = 0; k < kTile; ++k) {
      for (std::size_t j = 0; j < k; ++j) a[i * kTile + k] -= a[i * kTile + j] * l[k * kTile + j];
      a[i * kTile + k] /= l[k * kTile + k];
    }
});
const Codelet gemm("gemm", [](ReadTile a, ReadTile b, Tile c) {
  for (std::size_t i = 0; i < kTile; ++i)
    for (std::size_t j = 0; j < kTile; ++j)
      for (std::size_t k = 0; k < kTile; ++k) c[i * kTile + j] -= a[i * kTile + k] * b[j * kTile + k];
});

/// Cholesky's factor of a matrix of so many tiles a side, dealt to a grid of 2 x 2 ranks.
void factor(Runtime& rt, std::size_t tiles) {
  std::vector<std::vector<double>> memory(tiles * tiles, std::vector<double>(kTile * kTile, 1));
  std::vector<Data<Vector<double>>> a;
  for (std::size_t i = 0; i < tiles; ++i)
    for (std::size_t j = 0; j < tiles; ++j) {
      auto& tile = memory[i * tiles + j];
      if (i == j)
        for (std::size_t k = 0; k < kTile; ++k) tile[k * kTile + k] = static_cast<double>(2 * kTile * tiles);
      a.push_back(rt.data("A", tile, {.owner = static_cast<std::uint32_t>(i % 2 * 2 + j % 2)}));
    }
  const auto at = [&](std::size_t i, std::size_t j) -> Data<Vector<double>>& { return a[i * tiles + j]; };
  for (std::size_t k = 0; k < tiles; ++k) {
    rt.submit(potrf, read_write(at(k, k)));
    for (std::size_t i = k + 1; i < tiles; ++i) rt.submit(trsm, read(at(k, k)), read_write(at(i, k)));
    for (std::size_t i = k + 1; i < tiles; ++i)
      for (std::size_t j = k + 1; j <= i; ++j) rt.submit(gemm, read(at(i, k)), read(at(j, k)), read_write(at(i, j)));
  }
  rt.wait();
}

std::unique_ptr<trace::TraceReader> read_run(const fs::path& folder) {
  auto run = trace::TraceReader::open(folder);
  EXPECT_TRUE(run.ok()) << run.error().message;
  return run.ok() ? std::move(run).value() : nullptr;
}

void for_each(trace::TraceReader& run, const std::function<void(const Event&, std::int64_t)>& each) {
  std::map<std::uint32_t, trace::ReferenceLine> lines;
  for (const auto& rank : run.ranks) lines[rank->rank] = rank->line();
  const auto read = run.in_order([&](const Event& event) { return lines[event.rank].to_reference(event.local_ns); },
                                 [&](const Event& event, std::int64_t time_ns) { return each(event, time_ns), true; });
  EXPECT_TRUE(read.ok());
}

constexpr std::uint32_t kRanks = 4;

/// The trace that the ranks of a job have left in the folder; null: some rank failed, or there is none of it.
std::unique_ptr<trace::TraceReader> run_traced(const Folder& folder, const JobSetup& setup,
                                               const std::function<void(Runtime&)>& program) {
  for (const Ending& ending : run_job(setup, program)) {
    EXPECT_EQ(ending.error, "");
    if (!ending.error.empty()) return nullptr;
  }
  auto run = read_run(folder.path);
  if (run == nullptr) return nullptr;
  EXPECT_EQ(run->ranks.size(), kRanks);
  return run->ranks.size() == kRanks ? std::move(run) : nullptr;
}

/// Source, destination, channel, tag.
using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>;
struct Traffic {
  std::vector<std::int64_t> sent, posted, arrived;
};

TEST(DistTrace, WhatIsSentArrivesOnEachPairOfRanksAndNotBeforeItWasSent) {
  const Folder folder;
  const auto run = run_traced(folder, {.ranks = kRanks, .trace = folder.path}, [](Runtime& rt) { factor(rt, 6); });
  ASSERT_NE(run, nullptr);
  std::map<Key, Traffic> traffic;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::pair<std::uint64_t, std::uint64_t>> broadcasts;
  for_each(*run, [&](const Event& event, std::int64_t time_ns) {
    const auto peer = [&](std::size_t field) { return static_cast<std::uint32_t>(event.number(field)); };
    if (event.type == Type::send_posted) {
      traffic[{event.rank, peer(1), event.number(2), event.number(4)}].sent.push_back(time_ns);
    } else if (event.type == Type::mcast_posted) {
      broadcasts[{event.rank, event.number(0)}] = {event.number(1), event.number(2)};
    } else if (event.type == Type::mcast_recipient) {
      const auto& [channel, tag] = broadcasts.at({event.rank, event.number(0)});
      traffic[{event.rank, peer(1), channel, tag}].sent.push_back(time_ns);
    } else if (event.type == Type::receive_posted) {
      traffic[{peer(1), event.rank, event.number(2), event.number(3)}].posted.push_back(time_ns);
    } else if (event.type == Type::message_arrived) {
      traffic[{peer(1), event.rank, event.number(2), event.number(3)}].arrived.push_back(time_ns);
    }
  });
  std::int64_t error_ns = 0;
  for (const auto& rank : run->ranks) error_ns += rank->line().error_ns().value_or(0);
  // Clocks notify each other of their end, and a rank that has left does not receive the notice.
  std::set<std::uint64_t> clocks;
  for (const auto& rank : run->ranks)
    for (const auto& [kind, text] : rank->names)
      if (kind == trace::NameKind::channel && text.ends_with(" tandem.clock")) clocks.insert(std::stoull(text));
  EXPECT_EQ(clocks.size(), 1u);
  std::size_t pairs = 0;
  for (const auto& [key, messages] : traffic) {
    const auto& [source, destination, channel, tag] = key;
    if (clocks.contains(channel)) continue;
    ASSERT_EQ(messages.sent.size(), messages.arrived.size()) << source << " to " << destination << ", tag " << tag;
    ASSERT_EQ(messages.sent.size(), messages.posted.size()) << source << " to " << destination << ", tag " << tag;
    for (std::size_t i = 0; i < messages.sent.size(); ++i, ++pairs)
      EXPECT_GE(messages.arrived[i], messages.sent[i] - error_ns) << source << " to " << destination << ", tag " << tag;
  }
  EXPECT_GT(pairs, 30u);
}

/// The barriers that all ranks of a run left at one instant.
std::size_t common_barriers(const trace::TraceReader& run) {
  std::vector<std::vector<std::int64_t>> references(run.ranks.size());
  for (const auto& rank : run.ranks)
    for (const trace::ClockPoint& point : rank->clock_points)
      if (point.kind == trace::ClockPointKind::barrier) references[rank->rank].push_back(point.reference_ns);
  for (const auto& known : references) EXPECT_EQ(known, references[0]) << "they left at one instant";
  return references[0].size();
}

TEST(DistTrace, AllRanksHaveTheTimeOfABarrierAtTheirStartAndAtTheirEnd) {
  const Folder folder;
  run_job({.ranks = kRanks, .flow = {.trace_sync_every_ns = 20'000'000}, .trace = folder.path}, [](Runtime& rt) {
    factor(rt, 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  const auto run = read_run(folder.path);
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(common_barriers(*run), 2u);
  for (const auto& rank : run->ranks)
    EXPECT_GE(std::ranges::count(rank->clock_points, trace::ClockPointKind::background, &trace::ClockPoint::kind), 2);
}

TEST(DistTrace, RanksThatStartInMidRunCompareTheirClocksAtTheNextWait) {
  const Folder folder;
  const auto run = run_traced(folder, {.ranks = kRanks}, [&](Runtime& rt) {
    factor(rt, 3);
    rt.trace().start("all", folder.path);
    rt.wait();
    factor(rt, 4);
    rt.trace().stop();
    rt.trace().start("task");  // the same trace goes on
    factor(rt, 3);
  });
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(common_barriers(*run), 2u);
  for (const auto& rank : run->ranks) EXPECT_TRUE(rank->line().error_ns().has_value());
  std::size_t ended = 0;
  for_each(*run, [&](const Event& event, std::int64_t) { ended += event.type == Type::task_ended ? 1 : 0; });
  EXPECT_EQ(ended, 20u + 10u);
}

TEST(DistTrace, ClocksAreComparedOnceAllRanksAreTraced) {
  const Folder folder;
  const auto run = run_traced(folder, {.ranks = kRanks}, [&](Runtime& rt) {
    if (rt.rank() != 1) rt.trace().start("all", folder.path);
    factor(rt, 3);
    if (rt.rank() == 1) rt.trace().start("all", folder.path);
    factor(rt, 4);
  });
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(common_barriers(*run), 2u);
}

TEST(DistTrace, WhatTravelsIsExpectedAndReceivedByTheNumbersOfAllRanks) {
  const Folder folder;
  run_job({.ranks = kRanks, .trace = folder.path}, [](Runtime& rt) { factor(rt, 6); });
  const auto run = read_run(folder.path);
  ASSERT_NE(run, nullptr);
  // By rank, data and version.
  using Version = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  std::map<Version, int> expected, received;
  std::map<std::uint32_t, std::size_t> opened, closed;
  std::size_t joined = 0, sent = 0;
  for_each(*run, [&](const Event& event, std::int64_t) {
    if (event.type == Type::data_expected) ++expected[{event.rank, event.number(0), event.number(1)}];
    if (event.type == Type::data_received) ++received[{event.rank, event.number(0), event.number(1)}];
    if (event.type == Type::bag_opened) ++opened[event.rank];
    if (event.type == Type::bag_closed) ++closed[event.rank];
    if (event.type == Type::bag_joined) ++joined;
    if (event.type == Type::data_sent) ++sent;
    if (event.type == Type::data_sent || event.type == Type::data_received) {
      EXPECT_NE(event.number(3), 0u) << "the endpoint's request";
    }
  });
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(expected, received);
  EXPECT_EQ(opened, closed);
  EXPECT_EQ(joined, received.size());
  EXPECT_GT(sent, 0u);
  for (const auto& rank : run->ranks) {
    ASSERT_GE(rank->data.size(), 36u);
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t j = 0; j < 6; ++j) EXPECT_EQ(rank->data[i * 6 + j].owner, i % 2 * 2 + j % 2);
  }
}

/// Skipped tasks cost nothing: so does a flow whose positions are far from each other.
TEST(DistTrace, IdsBeyond32BitsAreTold) {
  constexpr std::uint64_t skipped = 3'000'000;
  const Folder folder;
  std::vector<std::uint64_t> positions;
  const auto run = run_traced(folder, {.ranks = kRanks, .trace = folder.path}, [&](Runtime& rt) {
    double value = 1;
    auto data = rt.data("value", value, {.owner = 0});
    for (int round = 0; round < 4; ++round) {
      rt.submit("increase", [](double& to) { to += 1; }, read_write(data));
      if (rt.rank() == 0) positions.push_back(rt.position());
      rt.skip_tasks(skipped);
    }
    rt.wait();
    if (rt.rank() == 0) { EXPECT_EQ(value, 5); }
  });
  ASSERT_NE(run, nullptr);
  std::vector<std::uint64_t> told;
  for_each(*run, [&](const Event& event, std::int64_t) {
    if (event.rank == 0 && event.type == Type::task_id) told.push_back(event.number(0) >> trace::kIdBitsBelowPosition);
  });
  EXPECT_THAT(told, testing::IsSupersetOf(std::vector(positions.begin() + 1, positions.end())));
}

TEST(DistTrace, ReceivedCopiesSayOnWhichNumaNodeTheyLay) {
  const auto machine = base::Topology::discover();
  ASSERT_TRUE(machine.ok());
  if (machine.value().numa_nodes().empty()) GTEST_SKIP() << "the system does not say which NUMA nodes there are";
  const Folder folder;
  run_job({.ranks = kRanks, .trace = folder.path}, [](Runtime& rt) { factor(rt, 4); });
  const auto run = read_run(folder.path);
  ASSERT_NE(run, nullptr);
  std::set<std::pair<std::uint64_t, std::uint64_t>> received, located;  // by rank and data
  for_each(*run, [&](const Event& event, std::int64_t) {
    if (event.type == Type::data_received) received.emplace(event.rank, event.number(0));
    if (event.type == Type::data_numa) located.emplace(event.rank, event.number(0));
  });
  EXPECT_FALSE(received.empty());
  EXPECT_TRUE(std::ranges::includes(located, received));
}

TEST(DistTrace, ARankThatLeavesByAnExceptionKeepsNobodyWaiting) {
  const Folder folder;
  std::barrier begun(
      kRanks);  // a rank that leaves while others are in the first barrier of the clocks takes that point from them
  const auto endings = run_job({.ranks = kRanks, .trace = folder.path}, [&](Runtime& rt) {
    begun.arrive_and_wait();
    if (rt.rank() == 2) throw std::runtime_error("enough");
    factor(rt, 4);
  });
  EXPECT_EQ(endings[2].error, "enough");
  const auto run = read_run(folder.path);
  ASSERT_NE(run, nullptr);
  for (const auto& rank : run->ranks) EXPECT_EQ(rank->clock_points.size(), 1u);
}

}  // namespace
}  // namespace tandem::dist_test::trace_test
