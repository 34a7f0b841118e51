// tandem/api/machine_option_test.cpp: option machine: a program takes the figures of a file, or explains why not.
#include "tandem/api/machine_option.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/device.hpp"
#include "tandem/runtime/machine/machine_file.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::machine_option_test {
namespace {

using runtime::LinkSource;
using runtime::Machine;
using runtime::MachineLink;
using runtime::NodeKind;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

struct CardMemory final : MemoryNode {
  std::string name() const override { return "card memory"; }
  void* allocate(std::size_t bytes) override { return ::operator new(bytes); }
  void release(void* memory, std::size_t) noexcept override { ::operator delete(memory); }
};

/// A device that runs kernels at once.
struct Card final : Device {
  std::string name() const override { return "card"; }
  unsigned depth() const noexcept override { return 1; }
  Launched launch(DeviceTask& task, std::int64_t) override {
    task.run();
    return Launched::done;
  }
  std::int64_t poll(std::int64_t, std::vector<Ended>&) override { return kWhenWoken; }
};

runtime::DeviceUnit card() {
  runtime::DeviceUnit unit;
  unit.device = std::make_unique<Card>();
  unit.memory = std::make_unique<CardMemory>();
  unit.budget = 1'000'000;
  unit.bytes_per_ns = 1;
  unit.latency_ns = 1;
  return unit;
}

/// Two cores and a device of the program's, and a file that describes them.
struct MachineOption : testing::Test {
  MachineOption() {
    described.workers = {{.kind = DeviceKind::cpu}, {.kind = DeviceKind::cpu}};
    described.distance.assign(2, {1, 1});
    const runtime::NodeIndex node =
        described.add_node({.kind = NodeKind::device, .name = "fast card", .budget = 5'000'000});
    described.workers.push_back({.kind = DeviceKind::user, .node = node});
    described.links.push_back({.from = 0,
                               .to = 1,
                               .bytes_per_ns = 20,
                               .latency_ns = 3'000,
                               .source = LinkSource::measured,
                               .loaded_bytes_per_ns = 9});
  }
  ~MachineOption() override { std::filesystem::remove(file); }

  void write() const { ASSERT_TRUE(runtime::write_machine(file, described).ok()); }
  Options options(const std::string& named) const {
    return {.workers = 2,
            .sched = "dmda",
            .more = {{"machine", named}, {"bind", "false"}, {"ranks", "alone"}},
            .devices = {card}};
  }
  std::string refused() const {
    return thrown_by<StartError>([this] { Runtime rt(options(file)); });
  }

  Machine described;
  const std::string file =
      (std::filesystem::path(testing::TempDir()) / ("machine_option_test_" + std::to_string(getpid()) + ".toml"))
          .string();
};

TEST_F(MachineOption, GivesLinksNamesAndBudgets) {
  write();
  Runtime rt(options(file));
  const Machine& machine = rt.core().world().machine;
  const MachineLink link = machine.link(0, 1);
  EXPECT_EQ(link.bytes_per_ns, 20);
  EXPECT_EQ(link.latency_ns, 3'000);
  EXPECT_EQ(link.loaded_bytes_per_ns, 9);
  EXPECT_EQ(link.source, LinkSource::measured);
  EXPECT_EQ(machine.link(1, 0).bytes_per_ns, 1) << "the program's device has said it, and the file says nothing";
  EXPECT_EQ(rt.memory_nodes().at(1).name, "fast card");
  EXPECT_EQ(rt.memory_nodes().at(1).budget, 5'000'000U);
  machine.check();
}

TEST_F(MachineOption, GivesNetworksToEndpoints) {
  described.networks.push_back(
      {.transport = "tcp",
       .source = LinkSource::measured,
       .times = {{.bytes = 1'000, .alone_ns = 20'000}, {.bytes = 1'000'000, .alone_ns = 500'000}}});
  write();
  Runtime rt(options(file));
  const std::vector<comm::KnownNetwork> known = known_networks(rt.core().world().machine);
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].transport, "tcp");
  EXPECT_EQ(known[0].latency_ns, 20'000);
  EXPECT_EQ(known[0].bytes_per_ns, 2);
  EXPECT_NEAR(known[0].message_ns(500'500), 260'000, 1);
}

TEST_F(MachineOption, ASavedFileHasTheLinksOfTheProgramsDevices) {
  Options measures = options("");
  measures.more.emplace_back("machine.save", file);
  {
    Runtime rt(measures);
    EXPECT_EQ(rt.core().world().machine.link(0, 1).source, LinkSource::measured)
        << "instead of what the device has said";
  }
  const auto saved = runtime::read_machine(file);
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  ASSERT_EQ(saved.value().links.size(), 2U);
  Runtime rt(options(file));
  for (const MachineLink& link : saved.value().links) {
    EXPECT_EQ(link.source, LinkSource::measured);
    EXPECT_TRUE(link.loaded_bytes_per_ns);
    EXPECT_EQ(rt.core().world().machine.link(link.from, link.to).bytes_per_ns, link.bytes_per_ns);
  }
}

TEST_F(MachineOption, SaysWhereItCannotSave) {
  Options measures = options("");
  measures.more.emplace_back("machine.save", file + "/in/no/folder.toml");
  EXPECT_THAT(thrown_by<StartError>([&] { Runtime rt(measures); }),
              AllOf(HasSubstr("option machine.save: "), HasSubstr("/in/no/")));
}

TEST_F(MachineOption, RefusesAnotherMachine) {
  described.workers.insert(described.workers.begin(), runtime::MachineWorker{});
  described.distance.assign(3, {1, 1, 1});
  write();
  EXPECT_THAT(refused(),
              AllOf(HasSubstr("option machine: " + file + " describes another machine"),
                    HasSubstr("it has 3 workers of kind cpu, and this program has 2"),
                    HasSubstr("`tandem machine --links --save FILE` with the same options, or leave the option out")));
}

TEST_F(MachineOption, RefusesAFileThatIsMissingOrDamaged) {
  EXPECT_THAT(refused(), AllOf(HasSubstr("option machine: cannot read " + file), HasSubstr("leave the option out")));
  std::ofstream(file) << "format = 1\n[memory.0]\nkind = 'min'\n";
  EXPECT_THAT(refused(), HasSubstr("option machine: " + file + ":3: memory.0.kind is 'min'; write one of main"));
}

TEST_F(MachineOption, RefusesABudgetThatWouldHaveNoEffect) {
  described.nodes[0].budget = 1 << 20;
  write();
  EXPECT_THAT(refused(),
              AllOf(HasSubstr("memory.0.budget is 1MiB, and only memories of devices take a budget from the file"),
                    HasSubstr("option memory")));
}

/// A world with a memory that stands for that of an OpenCL device.
struct BudgetOfOption : MachineOption {
  std::size_t budget(const char* option, DeviceKind kind) {
    described.workers.back().kind = kind;
    write();
    Options given{.workers = 2, .sched = "lws", .more = {{"machine", file}}};
    if (option != nullptr) given.more.emplace_back(option, "3000000");
    const base::Config config = test::test_config(given);
    runtime::World world;
    world.add_cpu_workers(2);
    const runtime::NodeIndex node = world.add_memory({.kind = NodeKind::device, .name = "card", .budget = 3'000'000},
                                                     std::make_unique<CardMemory>(), nullptr);
    world.machine.workers.push_back({.kind = kind, .node = node});
    test::LogLines lines;
    take_described_machine(world, config, *lines.make_log());
    return world.machine.nodes[1].budget;
  }
};

TEST_F(BudgetOfOption, GoesBeforeThatOfTheFile) {
  EXPECT_EQ(budget(nullptr, DeviceKind::opencl), 5'000'000U);
  EXPECT_EQ(budget("opencl.memory", DeviceKind::opencl), 3'000'000U);
  EXPECT_EQ(budget("opencl.memory", DeviceKind::cuda), 5'000'000U);
  EXPECT_EQ(budget("cuda.memory", DeviceKind::cuda), 3'000'000U);
}

/// Only links that the file does not have are measured.
TEST_F(MachineOption, LeavesOnlyTheOtherLinksToBeMeasured) {
  auto resources = test::test_resources();
  resources->topology =
      std::make_unique<base::Topology>(base::Topology::synthetic("package:2 numa:1 core:1 pu:1").value());
  Machine two;
  two.workers = {
      {.kind = DeviceKind::cpu},
      {.kind = DeviceKind::cpu, .node = two.add_node({.kind = NodeKind::numa, .name = "far", .numa_node = 1})}};
  two.distance.assign(2, {1, 1});
  two.links.push_back({.from = 0, .to = 1, .bytes_per_ns = 1'000'000, .latency_ns = 1, .source = LinkSource::given});
  ASSERT_TRUE(runtime::write_machine(file, two).ok());
  const base::Config config = test::test_config(
      {.workers = 2, .sched = "dmda", .more = {{"numa", "true"}, {"bind", "false"}, {"machine", file}}});
  runtime::World world = make_real_world(config, *resources);
  take_described_machine(world, config, *resources->log);
  measure_links_for_policy(world, *resources->log);
  EXPECT_EQ(world.machine.link(0, 1).bytes_per_ns, 1'000'000);
  EXPECT_EQ(world.machine.link(0, 1).source, LinkSource::given);
  EXPECT_EQ(world.machine.link(1, 0).source, LinkSource::measured);
  EXPECT_EQ(world.machine.nodes[1].name, "far");
}

}  // namespace
}  // namespace tandem::machine_option_test
