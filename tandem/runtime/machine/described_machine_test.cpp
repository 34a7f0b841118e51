// tandem/runtime/machine/described_machine_test.cpp: which machine may stand for another one, and which figures it
// gives.
#include "tandem/runtime/machine/described_machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

namespace tandem::runtime::described_machine_test {
namespace {

using testing::HasSubstr;

/// Two cores, one of them near another NUMA node, and a device.
Machine machine() {
  Machine one;
  const NodeIndex numa = one.add_node({.kind = NodeKind::numa, .name = "NUMA node 1", .numa_node = 1});
  const NodeIndex card = one.add_node({.kind = NodeKind::device, .name = "card", .budget = 1'000});
  one.workers = {
      {.kind = DeviceKind::cpu}, {.kind = DeviceKind::cpu, .node = numa}, {.kind = DeviceKind::cuda, .node = card}};
  one.distance.assign(2, {1, 1});
  one.check();
  return one;
}

std::string differs(const std::function<void(Machine&)>& change) {
  Machine other = machine();
  change(other);
  return difference(other, machine());
}

TEST(DescribedMachine, MayHaveOtherNamesAndFigures) {
  EXPECT_EQ(differs([](Machine& other) {
              other.nodes[2].name = "fast card";
              other.nodes[2].budget = 7;
              other.workers[1].core = 5;
              other.distance[0][1] = 9;
              other.add_links(0, 1, 3, 4, LinkSource::measured);
            }),
            "");
}

TEST(DescribedMachine, HasTheWorkersAndMemoriesOfTheOther) {
  EXPECT_THAT(differs([](Machine& other) { other.workers.pop_back(); }),
              HasSubstr("0 workers of kind cuda, and this program has 1"));
  EXPECT_THAT(differs([](Machine& other) { other.workers.insert(other.workers.begin(), MachineWorker{}); }),
              HasSubstr("3 workers of kind cpu, and this program has 2"));
  EXPECT_THAT(differs([](Machine& other) { other.add_node({.kind = NodeKind::storage}); }),
              HasSubstr("1 memory of kind storage, and this program has 0"));
  EXPECT_THAT(differs([](Machine& other) { other.workers[2].kind = DeviceKind::opencl; }),
              HasSubstr("workers of kind cuda"));
  EXPECT_THAT(differs([](Machine& other) { std::swap(other.nodes[1], other.nodes[2]); }),
              HasSubstr("memory 1 is of kind device"));
  EXPECT_THAT(differs([](Machine& other) { other.nodes[1].numa_node = 3; }),
              HasSubstr("memory 1 is NUMA node 3, and that of this program is NUMA node 1"));
  EXPECT_THAT(differs([](Machine& other) { std::swap(other.workers[0], other.workers[1]); }),
              HasSubstr("worker 0 works in memory 1"));
}

TEST(DescribedMachine, GivesNamesLinksNetworksAndPowers) {
  Machine described = machine(), found = machine();
  described.nodes[2].name = "fast card";
  described.links.push_back({.from = 0,
                             .to = 2,
                             .bytes_per_ns = 25,
                             .latency_ns = 7'000,
                             .source = LinkSource::measured,
                             .loaded_bytes_per_ns = 11});
  found.add_links(0, 2, 1, 1, LinkSource::given);
  described.networks.push_back(
      {.transport = "tcp", .source = LinkSource::measured, .times = {{.bytes = 8, .alone_ns = 15'000}}});
  found.networks.push_back({.transport = "shm", .times = {{.bytes = 8, .alone_ns = 300}}});
  described.workers[2].power = WorkerPower{.running_watts = 250, .idle_watts = 30};
  found.workers[0].power = WorkerPower{.running_watts = 9, .idle_watts = 2};
  take_names_and_figures(found, described);
  EXPECT_EQ(found.workers[2].power, (WorkerPower{.running_watts = 250, .idle_watts = 30}));
  EXPECT_EQ(found.workers[0].power, (WorkerPower{.running_watts = 9, .idle_watts = 2}))
      << "which the described one does not know";
  EXPECT_FALSE(found.workers[1].power);
  EXPECT_EQ(found.nodes[2].name, "fast card");
  EXPECT_EQ(found.nodes[2].budget, 1'000U);
  EXPECT_EQ(found.link(0, 2).bytes_per_ns, 25);
  EXPECT_EQ(found.link(0, 2).loaded_bytes_per_ns, 11);
  EXPECT_EQ(found.link(0, 2).source, LinkSource::measured);
  EXPECT_EQ(found.link(2, 0).bytes_per_ns, 1) << "which the described one does not know";
  ASSERT_EQ(found.networks.size(), 2U);
  EXPECT_EQ(found.networks[0].transport, "shm") << "which the described one does not know";
  EXPECT_EQ(found.networks[1].latency_ns(), 15'000);
  found.check();
}

}  // namespace
}  // namespace tandem::runtime::described_machine_test
