// tools/machine/network_meter_test.cpp: ranks of one process measure messages, with and without links between memories,
// and beside other ranks.
#include "tools/machine/network_meter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "tandem/base/log.hpp"
#include "tandem/comm/transport/loop/loop.hpp"

namespace tandem::tools::network_meter_test {
namespace {

struct PlainMemory final : runtime::MemoryNode {
  std::string name() const override { return "memory"; }
  void* allocate(std::size_t bytes) override { return ::operator new(bytes); }
  void release(void* memory, std::size_t) noexcept override { ::operator delete(memory); }
};

struct PlainCopier final : runtime::Copier {
  explicit PlainCopier(std::atomic<std::uint64_t>& c) : copies(c) {}
  runtime::CopyState start(const runtime::CopyRequest& request, runtime::CopyEnded ended) override {
    std::memcpy(request.to, request.from, request.shape.bytes());
    copies.fetch_add(1);
    ended(nullptr);
    return runtime::CopyState::posted;
  }
  std::atomic<std::uint64_t>& copies;
};

/// Rank 0 measures, with the last rank as partner.
struct MeasuredNetwork : testing::Test {
  struct RankWorld {
    explicit RankWorld(const clock::Clock& clock, bool has_links) {
      world.clock = &clock;
      world.add_cpu_workers(1);
      if (has_links)
        world.add_memory({.kind = runtime::NodeKind::numa, .name = "memory"}, std::make_unique<PlainMemory>(),
                         std::make_unique<PlainCopier>(copies));
    }
    std::atomic<std::uint64_t> copies{0};
    runtime::World world;
    std::optional<runtime::LinkMeter> links;
  };

  MeasuredNetwork() {
    link_options.sizes = {4'096, 65'536};
    link_options.copies = 6;
    options.sizes = {8, 4'096, 1 << 20};
    options.trips = 6;
    options.load_bytes = 65'536;
  }

  void run(bool has_links, std::uint32_t size = 3) {
    comm::LoopNetwork network({.ranks = size});
    std::vector<std::unique_ptr<comm::Endpoint>> at;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      at.push_back(comm::Endpoint::open_loop(network, comm::Rank(rank), {}, log, nullptr));
      ranks.push_back(std::make_unique<RankWorld>(clock, has_links));
    }
    std::vector<std::jthread> others;
    for (std::uint32_t rank = 1; rank < size; ++rank)
      others.emplace_back([&, rank] {
        const auto served = serve_network(*at[rank], [&]() -> runtime::LinkMeter& {
          if (!ranks[rank]->links) ranks[rank]->links.emplace(ranks[rank]->world, link_options);
          return *ranks[rank]->links;
        });
        EXPECT_TRUE(served.ok()) << served.error().message;
      });
    runtime::LinkMeter links(ranks[0]->world, link_options);
    links.measure();
    const comm::Rank partner(size - 1);
    auto measured = measure_networks(*at[0], std::span(&partner, 1), links, clock, options);
    others.clear();
    ASSERT_TRUE(measured.ok()) << measured.error().message;
    networks = std::move(measured).value();
    curves = links.curves();
    for (const auto& one : at) sent.push_back(one->statistics().messages_sent);
    at.clear();
  }

  base::Log log{base::LogLevel::error};
  clock::RawMonotonicClock clock;
  runtime::LinkCurveOptions link_options;
  NetworkMeterOptions options;
  std::vector<std::unique_ptr<RankWorld>> ranks;
  std::vector<runtime::MachineNetwork> networks;
  std::vector<runtime::LinkCurves> curves;
  std::vector<std::uint64_t> sent;  ///< messages, by rank
};

TEST_F(MeasuredNetwork, HasTimesAloneBothWaysAndBesideCopies) {
  run(true);
  ASSERT_EQ(networks.size(), 1U);
  EXPECT_EQ(networks[0].transport, "loop");
  EXPECT_EQ(networks[0].source, runtime::LinkSource::measured);
  ASSERT_EQ(networks[0].times.size(), options.sizes.size());
  for (std::size_t i = 0; i < options.sizes.size(); ++i) {
    const runtime::MessageTimes& times = networks[0].times[i];
    EXPECT_EQ(times.bytes, options.sizes[i]);
    EXPECT_GT(times.alone_ns, 0);
    EXPECT_GT(times.both_ways_ns.value_or(0), 0);
    EXPECT_GT(times.loaded_ns.value_or(0), 0);
    EXPECT_FALSE(times.all_pairs_ns) << "one rank alone is no pair";
  }
  EXPECT_EQ(ranks[1]->copies.load(), 0U) << "it is no partner";
  EXPECT_GT(ranks[2]->copies.load(), 0U);
  ASSERT_EQ(curves.size(), 2U);
  for (const runtime::LinkCurves& one : curves) {
    const auto link = one.link();
    ASSERT_TRUE(link);
    EXPECT_TRUE(link->beside_messages_bytes_per_ns) << "its rate beside messages is known";
  }
}

TEST_F(MeasuredNetwork, IsMeasuredWithoutLinksBetweenMemories) {
  run(false);
  ASSERT_EQ(networks.size(), 1U);
  for (const runtime::MessageTimes& times : networks[0].times) {
    EXPECT_TRUE(times.both_ways_ns);
    EXPECT_FALSE(times.loaded_ns);
  }
  EXPECT_TRUE(curves.empty());
}

TEST_F(MeasuredNetwork, HasTimesBesidePairsOfOtherRanks) {
  options.sizes = {8, 4'096};
  options.here = {comm::Rank(0), comm::Rank(3)};
  run(false, 6);  // the partner, 5, is far: 3 talks with 4, and 1 with 2
  ASSERT_EQ(networks.size(), 1U);
  ASSERT_EQ(networks[0].times.size(), 2U);
  for (const runtime::MessageTimes& times : networks[0].times) EXPECT_GT(times.all_pairs_ns.value_or(0), 0);
  for (const std::uint32_t rank : {1, 2, 3, 4}) EXPECT_GE(sent[rank], 2U) << "rank " << rank;
}

TEST_F(MeasuredNetwork, ARankThatIsLeftOverWaits) {
  options.sizes = {8, 4'096};
  run(false, 5);  // 2 talks with 3
  ASSERT_EQ(networks.size(), 1U);
  EXPECT_TRUE(networks[0].times[0].all_pairs_ns);
  EXPECT_EQ(sent[1], 0U);
  EXPECT_GE(sent[2], 2U);
}

TEST_F(MeasuredNetwork, LeavesOutWhatTakesTooLong) {
  options.most_ns = 1;
  unsigned steps = 0;
  options.progress = [&](unsigned step, unsigned all, std::string_view) {
    EXPECT_EQ(step, steps++);
    EXPECT_EQ(all, 3U * 3U);
  };
  run(true);
  EXPECT_TRUE(networks.empty()) << "no size got enough messages";
  EXPECT_EQ(steps, 9U);
}

}  // namespace
}  // namespace tandem::tools::network_meter_test
