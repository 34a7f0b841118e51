// tandem/comm/mcast/one_port_test.cpp: the closed recurrence against a simulation of every segment on every edge.
#include "tandem/comm/mcast/one_port.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace tandem::comm::one_port_test {
namespace {

using Parents = std::vector<std::uint32_t>;

/// When each vertex has its last segment, found by following each segment over each edge.
std::vector<double> simulate(const Parents& parent, const OnePort& port, RootShare share) {
  const std::size_t n = parent.size();
  std::vector<std::vector<double>> has(n, std::vector<double>(port.segments, 0));
  std::vector<double> finish(n, 0);
  for (std::size_t v = 0; v < n; ++v) {
    std::vector<std::size_t> children;
    for (std::size_t c = v + 1; c < n; ++c)
      if (parent[c] == v) children.push_back(c);
    finish[v] = v == 0 ? 0 : has[v].back();
    double port_free = 0;
    const auto send = [&](std::size_t segment, std::size_t child) {
      port_free = std::max(port_free, has[v][segment]) + port.send;
      const double busy = segment == 0 ? 0 : has[child][segment - 1];
      has[child][segment] = std::max(port_free + port.latency, busy) + port.receive;
    };
    const std::size_t before = v == 0 ? share.slots_before : 0;
    const std::size_t after = v == 0 && share.slots > 0 ? share.slots - before - children.size() : 0;
    if (port.interleaved) {
      for (std::size_t s = 0; s < port.segments; ++s) {
        port_free += static_cast<double>(before) * port.send;
        for (std::size_t child : children) send(s, child);
        port_free += static_cast<double>(after) * port.send;
      }
    } else {
      for (std::size_t child : children)
        for (std::size_t s = 0; s < port.segments; ++s) send(s, child);
    }
  }
  return finish;
}

Parents random_tree(std::mt19937_64& random, std::uint32_t vertices) {
  Parents parent(1, 0);
  for (std::uint32_t v = 1; v < vertices; ++v) {
    const std::uint32_t width = 1 + static_cast<std::uint32_t>(random() % 4) * 3;
    parent.push_back(v - 1 - static_cast<std::uint32_t>(random() % std::min(v, width)));
  }
  return parent;
}

TEST(OnePortTimes, EqualsTheSimulationOfEverySegmentOnRandomTrees) {
  const std::uint64_t seed = 20260101;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  OnePortTimes times;
  for (int round = 0; round < 2000; ++round) {
    const Parents parent = random_tree(random, 1 + static_cast<std::uint32_t>(random() % 20));
    const OnePort port{.send = static_cast<double>(random() % 5),
                       .latency = static_cast<double>(random() % 5),
                       .receive = static_cast<double>(random() % 9),
                       .segments = 1 + static_cast<std::uint32_t>(random() % 7),
                       .interleaved = random() % 2 == 0};
    times.run(parent, port);
    const std::vector<double> expected = simulate(parent, port, {});
    for (std::uint32_t v = 0; v < parent.size(); ++v)
      ASSERT_DOUBLE_EQ(times.finish(v), expected[v]) << "round " << round;
  }
}

TEST(OnePortTimes, RootThatServesTwoTreesTakesTurns) {
  const Parents parent{0, 0, 1, 1, 2};
  OnePortTimes times;
  for (std::uint32_t before = 0; before < 2; ++before) {
    const OnePort port{.send = 2, .latency = 1, .segments = 5, .interleaved = true};
    times.run(parent, port, {.slots_before = before, .slots = 2});
    const std::vector<double> expected = simulate(parent, port, {.slots_before = before, .slots = 2});
    for (std::uint32_t v = 0; v < parent.size(); ++v) EXPECT_DOUBLE_EQ(times.finish(v), expected[v]);
  }
}

TEST(OnePortTimes, WorkedExampleOfTheChain) {
  Parents parent{0};
  for (std::uint32_t v = 0; v < 10; ++v) parent.push_back(v);
  OnePortTimes times;
  times.run(parent, {.send = 3, .latency = 2, .segments = 7, .interleaved = true});
  EXPECT_DOUBLE_EQ(times.finish_of_all(), 10 * (3 + 2) + 6 * 3);
  times.run(parent, {.send = 3, .segments = 7});  // one child each: both ways of serving are the same
  EXPECT_DOUBLE_EQ(times.finish_of_all(), (11 - 2 + 7) * 3);
}

/// When each rank of a chain has all segments: a simulation of every segment on every hop, with a bucket of tokens at
/// every port. A segment leaves when it is there, the port is free for the quick way, and the bucket holds its tokens.
double simulate_chain(std::uint32_t recipients, const OnePort& port) {
  std::vector<double> has(port.segments, 0);
  for (std::uint32_t hop = 0; hop < recipients; ++hop) {
    const double woken = has[0];
    double port_free = 0;
    for (std::uint32_t j = 0; j < port.segments; ++j) {
      const double tokens = woken + (j + 1) * port.send - port.credit;
      port_free = std::max(std::max(port_free, has[j]) + port.fast_send, tokens);
      has[j] = port_free + port.latency;
    }
  }
  return has.back();
}

TEST(OnePortTimes, CreditOfAPortIsExactForChains) {
  OnePortTimes times;
  for (double credit : {0.5, 9.0, 25.0, 60.0, 500.0}) {
    for (double quick : {0.0, 1.0, 4.0, 10.0}) {
      for (std::uint32_t segments : {1u, 2u, 14u, 60u}) {
        for (std::uint32_t recipients : {1u, 2u, 7u, 38u}) {
          const OnePort port{.send = 10, .latency = 2, .credit = credit, .fast_send = quick, .segments = segments,
                             .interleaved = true};
          Parents parent{0};
          for (std::uint32_t v = 0; v < recipients; ++v) parent.push_back(v);
          times.run(parent, port);
          EXPECT_NEAR(times.finish_of_all(), simulate_chain(recipients, port), 1e-6)
              << "credit " << credit << " quick " << quick << " segments " << segments << " recipients " << recipients;
        }
      }
    }
  }
}

TEST(OnePortTimes, CreditCountsOnceForWhatAPortSendsWithoutRest) {
  const Parents flat{0, 0, 0, 0};
  OnePortTimes times;
  times.run(flat, {.send = 10, .credit = 3, .fast_send = 1});
  EXPECT_DOUBLE_EQ(times.finish(1), 7);
  EXPECT_DOUBLE_EQ(times.finish(3), 27);
  times.run(flat, {.send = 10, .credit = 3, .fast_send = 1, .segments = 4, .interleaved = true});
  EXPECT_DOUBLE_EQ(times.finish(3), 4 * 3 * 10 - 3);
}

TEST(OnePortTimes, RootAloneIsDoneAtOnce) {
  OnePortTimes times;
  times.run(Parents{0}, {});
  EXPECT_EQ(times.finish_of_all(), 0);
  times.run(Parents{}, {});
  EXPECT_EQ(times.finish_of_all(), 0);
}

}  // namespace
}  // namespace tandem::comm::one_port_test
