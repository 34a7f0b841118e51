// tandem/runtime/machine/machine_test.cpp: machines that are whole, and those that are not.
#include "tandem/runtime/machine/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "tandem/base/exceptions.hpp"

namespace tandem::runtime::machine_test {
namespace {

/// Two cores, and a device with a memory of its own.
Machine with_card() {
  Machine machine;
  machine.workers.resize(2);
  machine.distance.assign(2, {1, 1});
  machine.workers.push_back(
      {.kind = DeviceKind::cuda, .node = machine.add_node({.kind = NodeKind::device, .name = "card"})});
  machine.add_links(0, 1, 16, 5'000, LinkSource::measured);
  return machine;
}

TEST(Machine, KnowsWhetherItMattersWhoRunsATask) {
  Machine machine = with_card();
  EXPECT_TRUE(machine.is_mixed());
  EXPECT_EQ(machine.cpu_workers(), 2U);
  machine.workers.pop_back();
  EXPECT_FALSE(machine.is_mixed());
  machine.workers[1].node = 1;
  EXPECT_TRUE(machine.is_mixed());
}

TEST(Machine, SaysHowLongCopiesTake) {
  const Machine machine = with_card();
  EXPECT_DOUBLE_EQ(machine.link(1, 0).copy_ns(1'600), 5'100);
  EXPECT_EQ(machine.link(0, 1).source, LinkSource::measured);
  MachineLink link{.bytes_per_ns = 4, .latency_ns = 100, .loaded_bytes_per_ns = 2};
  EXPECT_DOUBLE_EQ(link.copy_ns(400, 0.5), 250);
  EXPECT_DOUBLE_EQ(link.copy_ns(400, 0.5, true), 250) << "nothing is known of messages";
  link.beside_messages_bytes_per_ns = 1;
  EXPECT_DOUBLE_EQ(link.copy_ns(400), 200);
  EXPECT_DOUBLE_EQ(link.copy_ns(400, 0, true), 500);
  EXPECT_DOUBLE_EQ(link.copy_ns(400, 0.5, true), 550) << "both add what they add to a lone copy";
  Machine other = with_card();
  other.add_node({.kind = NodeKind::device, .name = "other card"});
  EXPECT_EQ(other.link(1, 2).source, LinkSource::assumed) << "nothing was said of it";
}

TEST(Machine, FindsItsStorageAndItsBudgets) {
  Machine machine = with_card();
  EXPECT_FALSE(machine.storage());
  EXPECT_FALSE(machine.has_budgets());
  machine.nodes[0].budget = 100;
  EXPECT_EQ(machine.add_node({.kind = NodeKind::storage, .name = "a file"}), 2U);
  EXPECT_EQ(machine.storage(), NodeIndex{2});
  EXPECT_TRUE(machine.has_budgets());
}

TEST(Machine, HasOneNetworkForEachTransport) {
  Machine machine = with_card();
  machine.set_network({.transport = "tcp", .times = {{.bytes = 8, .alone_ns = 10}}});
  machine.set_network({.transport = "shm", .times = {{.bytes = 8, .alone_ns = 20}}});
  machine.set_network({.transport = "tcp", .times = {{.bytes = 8, .alone_ns = 30}}});
  machine.check();
  ASSERT_EQ(machine.networks.size(), 2U);
  EXPECT_EQ(machine.networks[0].latency_ns(), 30);
  EXPECT_EQ(machine.networks[1].transport, "shm");
}

TEST(Machine, ThatIsNotWholeSaysWhy) {
  const auto complaint = [](const std::function<void(Machine&)>& damage) -> std::string {
    Machine machine = with_card();
    machine.check();
    try {
      damage(machine);
      machine.check();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  };
  using testing::HasSubstr;
  EXPECT_THAT(complaint([](Machine& m) { m.workers.clear(); }), HasSubstr("no CPU worker"));
  EXPECT_THAT(complaint([](Machine& m) { std::swap(m.workers[0], m.workers[2]); }),
              HasSubstr("worker 0 stands before"));
  EXPECT_THAT(complaint([](Machine& m) { m.workers[2].node = 2; }),
              HasSubstr("worker 2 works in memory 2, and there are 2"));
  EXPECT_THAT(complaint([](Machine& m) { m.nodes[1].kind = NodeKind::storage; }),
              HasSubstr("works in card, which is storage"));
  EXPECT_THAT(complaint([](Machine& m) { m.distance.pop_back(); }), HasSubstr("2 CPU workers and the distances of 1"));
  EXPECT_THAT(complaint([](Machine& m) { m.links[0].to = 2; }), HasSubstr("from memory 0 to memory 2"));
  EXPECT_THAT(complaint([](Machine& m) { m.links[0].bytes_per_ns = 0; }), HasSubstr("0 bytes/ns"));
  EXPECT_THAT(complaint([](Machine& m) { m.links.push_back(m.links[0]); }), HasSubstr("two links"));
  EXPECT_THAT(complaint([](Machine& m) { m.links[0].beside_messages_bytes_per_ns = -1; }),
              HasSubstr("-1 bytes/ns beside messages"));
  EXPECT_THAT(complaint([](Machine& m) { m.networks.push_back({.transport = "tcp", .times = {}}); }),
              HasSubstr("of messages over tcp no time is known"));
  EXPECT_THAT(
      complaint([](Machine& m) { m.networks.push_back({.transport = "tcp", .times = {{.bytes = 8, .alone_ns = 0}}}); }),
      HasSubstr("a message of 8 bytes over tcp takes no time"));
  EXPECT_THAT(
      complaint([](Machine& m) {
        m.networks.push_back({.transport = "tcp", .times = {{.bytes = 8, .alone_ns = 1}, {.bytes = 8, .alone_ns = 1}}});
      }),
      HasSubstr("the sizes of messages over tcp do not ascend"));
  EXPECT_THAT(
      complaint([](Machine& m) { m.networks.assign(2, {.transport = "tcp", .times = {{.bytes = 8, .alone_ns = 1}}}); }),
      HasSubstr("two networks of transport tcp"));
  EXPECT_THAT(complaint([](Machine& m) {
                while (true) m.add_node({.name = "too many"});
              }),
              HasSubstr("at most 16 memories, and 'too many'"));
}

}  // namespace
}  // namespace tandem::runtime::machine_test
