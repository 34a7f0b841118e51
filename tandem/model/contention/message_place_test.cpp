// tandem/model/contention/message_place_test.cpp: the choice against all others, on the machines of the thesis.
#include "tandem/model/contention/message_place.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/model/contention/platforms.hpp"
#include "tandem/model/contention/threshold_model.hpp"

namespace tandem::model::contention::message_place_test {
namespace {

using testing::HasSubstr;
using testing::Optional;

StoredMachine stored(const ThresholdMachine& machine, unsigned cores) {
  return {.machine = soften(machine), .cores = cores};
}

std::vector<NodeUse> nodes_of(unsigned count) {
  std::vector<NodeUse> nodes(count);
  for (unsigned i = 0; i < count; ++i) nodes[i].number = i;
  return nodes;
}

/// The cost defined in the header, with bandwidths of the thesis's model.
double cost_of(double communication_mb_s, double computation_mb_s, double alone_mb_s) {
  return (1 + (1 - computation_mb_s / alone_mb_s)) / communication_mb_s;
}

/// `costs` and bandwidths of messages are by node. Of the nodes where messages lose at most 2 % against the usual one,
/// the choice costs least, or it is the usual one, which costs at most 2 % more.
void expect_best(const MessagePlace& place, std::vector<double> costs, const std::vector<double>& messages_mb_s) {
  ASSERT_TRUE(place.memory);
  EXPECT_GE(messages_mb_s[*place.memory], 0.98 * messages_mb_s[place.usual_memory]);
  for (std::size_t node = 0; node < costs.size(); ++node)
    if (messages_mb_s[node] < 0.98 * messages_mb_s[place.usual_memory])
      costs[node] = std::numeric_limits<double>::infinity();
  const double least = *std::ranges::min_element(costs), usual = costs[place.usual_memory];
  if (least < 0.98 * usual * (1 - 1e-9)) {
    EXPECT_NEAR(costs[*place.memory] / least, 1, 1e-9);
  } else if (least > 0.98 * usual * (1 + 1e-9)) {
    EXPECT_EQ(*place.memory, place.usual_memory);
  }
}

TEST(MessagePlace, IsTheBestOfAllForCoresThatUseOneNode) {
  unsigned moved = 0, stays = 0;
  for (const Platform& platform : platforms()) {
    const ThresholdModel model(platform.machine);
    const StoredMachine machine = stored(platform.machine, platform.cores_per_socket);
    const unsigned count = platform.sockets * platform.machine.nodes_per_socket;
    for (unsigned computation = 0; computation < platform.machine.nodes_per_socket; ++computation)
      for (unsigned cores = 1; cores <= platform.cores_per_socket; ++cores)
        for (unsigned network = 0; network <= count; ++network) {
          std::vector<NodeUse> nodes = nodes_of(count);
          nodes[computation].computing = cores;
          MessageSituation situation{.nodes = nodes, .machine = &machine};
          if (network < count) situation.network_node = network;
          const MessagePlace place = choose_message_place(situation);
          std::vector<double> costs, messages_mb_s;
          for (unsigned memory = 0; memory < count; ++memory) {
            const Bandwidths b = model.predict({.cores = cores, .placement = {computation, memory}});
            costs.push_back(cost_of(b.communication_mb_s, b.computation_mb_s, b.computation_alone_mb_s));
            messages_mb_s.push_back(b.communication_mb_s);
            if (place.memory != memory) continue;
            EXPECT_NEAR(place.predicted.communication_mb_s / b.communication_mb_s, 1, 1e-9) << platform.name;
            EXPECT_NEAR(place.predicted.computation_mb_s / b.computation_mb_s, 1, 1e-9) << platform.name;
          }
          EXPECT_EQ(place.usual_memory, network < count ? network : computation);
          expect_best(place, costs, messages_mb_s);
          ++(place.memory == place.usual_memory ? stays : moved);
        }
  }
  EXPECT_GT(moved, 100U);
  EXPECT_GT(stays, 100U);
}

/// All sockets compute. Each group is a machine of the thesis as seen from its own socket; the network takes the same
/// from both, so that the thesis's model predicts either.
TEST(MessagePlace, IsTheBestOfAllForCoresOfBothSockets) {
  for (const Platform& platform : platforms()) {
    ThresholdMachine even = platform.machine;
    even.remote.b_comm_seq_mb_s = even.local.b_comm_seq_mb_s;
    const ThresholdModel model(even);
    const StoredMachine machine = stored(even, platform.cores_per_socket);
    const unsigned per_socket = even.nodes_per_socket, count = 2 * per_socket;
    const auto seen = [&](unsigned node, unsigned socket) { return (node + socket * per_socket) % count; };
    for (unsigned first = 1; first <= platform.cores_per_socket / per_socket; ++first)
      for (unsigned second = 0; second <= first; ++second) {
        std::vector<NodeUse> nodes = nodes_of(count);
        for (unsigned node = 0; node < count; ++node) nodes[node].computing = node < per_socket ? first : second;
        const MessagePlace place = choose_message_place({.nodes = nodes, .machine = &machine});
        std::vector<double> costs, messages_mb_s;
        for (unsigned memory = 0; memory < count; ++memory) {
          double communication = std::numeric_limits<double>::infinity(), computation = 0, alone = 0;
          for (unsigned node = 0; node < count; ++node) {
            if (nodes[node].computing == 0) continue;
            const unsigned socket = node / per_socket;
            const Bandwidths b = model.predict(
                {.cores = nodes[node].computing, .placement = {seen(node, socket), seen(memory, socket)}});
            communication = std::min(communication, b.communication_mb_s);
            computation += b.computation_mb_s;
            alone += b.computation_alone_mb_s;
          }
          costs.push_back(cost_of(communication, computation, alone));
          messages_mb_s.push_back(communication);
          if (place.memory != memory) continue;
          EXPECT_NEAR(place.predicted.communication_mb_s / communication, 1, 1e-9) << platform.name;
          EXPECT_NEAR(place.predicted.computation_mb_s / computation, 1, 1e-9) << platform.name;
        }
        expect_best(place, costs, messages_mb_s);
        if (first != second) continue;
        EXPECT_EQ(place.memory, place.usual_memory) << platform.name << ": all nodes are alike";
      }
  }
}

TEST(MessagePlace, OfTheWorkedExample) {
  const StoredMachine diablo = stored(find_platform("diablo")->machine, 32);
  std::vector<NodeUse> nodes = nodes_of(2);
  nodes[0].computing = 32;
  nodes[1].free_cores = 32;
  const MessagePlace place = choose_message_place({.nodes = nodes, .machine = &diablo});
  EXPECT_THAT(place.memory, Optional(1U));
  EXPECT_NEAR(place.usual.communication_mb_s, 11.7e3, 50);
  EXPECT_NEAR(place.predicted.communication_mb_s, 21.7e3, 50);
  EXPECT_EQ(place.predicted.computation_mb_s, place.predicted.computation_alone_mb_s);
  EXPECT_EQ(place.reason,
            "what messages bring lies on NUMA node 1: beside all computing cores, messages have 21.7 GB/s and "
            "computing cores 70.1 there by the model; on NUMA node 0 "
            "messages have 11.7 GB/s and computing cores 70.1; the progress thread has a free core of NUMA node 1, "
            "where that memory is");
}

/// The thread's node is, of all with a free core, the network card's, else one on its socket, else near messages'
/// memory.
TEST(MessagePlace, TheThreadHasTheFreeCoreThatCostsLeast) {
  StoredMachine machine = stored(find_platform("henrisubnuma")->machine, 18);
  machine.machine.network_mb_s = {11e3, 11e3, 11e3, 13e3};  // so that memory for messages is on the last one
  unsigned apart = 0;
  for (unsigned network = 0; network < 4; ++network)
    for (unsigned free_nodes = 0; free_nodes < 16; ++free_nodes) {
      std::vector<NodeUse> nodes = nodes_of(4);
      for (unsigned node = 0; node < 4; ++node)
        nodes[node] = {.number = node, .computing = node < 2 ? 8U : 0U, .free_cores = free_nodes >> node & 1U};
      const MessagePlace place = choose_message_place({.nodes = nodes, .network_node = network, .machine = &machine});
      EXPECT_EQ(place.thread.has_value(), free_nodes != 0);
      if (!place.thread) continue;
      apart += place.memory != network;
      ASSERT_NE(nodes[*place.thread].free_cores, 0U) << "never a core of a worker";
      const auto far = [&](unsigned node) {
        return std::tuple(node != network, node / 2 != network / 2, node != place.memory);
      };
      for (unsigned node = 0; node < 4; ++node)
        if (nodes[node].free_cores != 0) {
          EXPECT_LE(far(*place.thread), far(node));
        }
    }
  EXPECT_GT(apart, 10U) << "memory and the card are on different nodes";
}

TEST(MessagePlace, WithoutAModelIsNearTheNetworkCard) {
  std::vector<NodeUse> nodes = nodes_of(2);
  nodes[0] = {.number = 0, .computing = 2};
  nodes[1] = {.number = 4, .computing = 1, .free_cores = 1};
  MessagePlace place = choose_message_place({.nodes = nodes, .network_node = 1});
  EXPECT_THAT(place.memory, Optional(1U));
  EXPECT_THAT(place.thread, Optional(1U));
  EXPECT_THAT(place.reason, HasSubstr("lies on NUMA node 4, where the network card is, since there is no model"));
  nodes[1].free_cores = 0;
  place = choose_message_place({.nodes = nodes, .network_node = 1});
  EXPECT_THAT(place.memory, Optional(1U));
  EXPECT_FALSE(place.thread);
  EXPECT_THAT(place.reason, HasSubstr("no core of its own"));
}

TEST(MessagePlace, WithoutCardAndModelOrOnOneNodeIsNotChosen) {
  std::vector<NodeUse> nodes = nodes_of(2);
  nodes[0] = {.computing = 1, .free_cores = 1};
  MessagePlace place = choose_message_place({.nodes = nodes});
  EXPECT_FALSE(place.memory || place.thread);
  EXPECT_THAT(place.reason, HasSubstr("neither"));
  const StoredMachine machine = stored(find_platform("henri")->machine, 18);
  nodes.pop_back();
  place = choose_message_place({.nodes = nodes, .network_node = 0, .machine = &machine});
  EXPECT_FALSE(place.memory || place.thread);
  EXPECT_EQ(place.reason, "there is one NUMA node");
}

TEST(MessagePlace, IsNotMemoryWithoutCores) {
  const StoredMachine diablo = stored(find_platform("diablo")->machine, 32);
  std::vector<NodeUse> nodes = nodes_of(3);
  nodes[0].computing = 32;
  for (unsigned node = 1; node < 3; ++node) nodes[node].has_cores = false;
  EXPECT_THAT(choose_message_place({.nodes = nodes, .machine = &diablo}).memory, Optional(0U));
}

/// No core computes: messages have the network's bandwidth alone.
TEST(MessagePlace, BesideNothingIsWhereTheNetworkIsFastest) {
  const StoredMachine billy = stored(find_platform("billy")->machine, 32);
  const MessagePlace place = choose_message_place({.nodes = nodes_of(2), .machine = &billy});
  EXPECT_THAT(place.memory, Optional(1U));
  EXPECT_EQ(place.predicted.communication_mb_s, 18898.9);
}

}  // namespace
}  // namespace tandem::model::contention::message_place_test
