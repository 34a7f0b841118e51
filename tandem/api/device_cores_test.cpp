// tandem/api/device_cores_test.cpp: option device_cores, on made-up machines.
#include "tandem/api/device_cores.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/numa_balancing.hpp"
#include "tandem/api/test_support.hpp"

namespace tandem::device_cores_test {
namespace {

using test::thrown_by;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Two NUMA nodes of four cores, six CPU workers on cores 0 to 5, and three devices: the first two at NUMA node 1, the
/// third at none.
struct DeviceCores : testing::Test {
  DeviceCores() {
    world.add_cpu_workers(6);
    for (int core = 0; core < 6; ++core) world.machine.workers[core].core = core;
    for (const char* const address : {"0000:3b:00.0", "0000:5e:00.0", ""})
      world.machine.workers.push_back({.kind = DeviceKind::user, .bus_address = address});
    for (const char* const address : {"0000:3b:00.0", "0000:5e:00.0"}) {
      const auto folder = root / "sys/bus/pci/devices" / address;
      std::filesystem::create_directories(folder);
      std::ofstream(folder / "numa_node") << "1\n";
    }
  }
  ~DeviceCores() override { std::filesystem::remove_all(root); }
  void bind(const std::string& text) {
    const auto log = test::LogLines::log_to(&lines);
    bind_device_workers(world, test::test_config({.workers = 6, .more = {{"device_cores", text}}}), topology, *log,
                        root);
  }
  std::vector<int> cores() const {
    std::vector<int> found;
    for (std::size_t i = 6; i < world.machine.workers.size(); ++i) found.push_back(world.machine.workers[i].core);
    return found;
  }

  const base::Topology topology = base::Topology::synthetic("package:2 numa:1 core:4 pu:2").value();
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) / ("device_cores_" + std::to_string(getpid()));
  test::LogLines lines;
  runtime::World world;
};

TEST_F(DeviceCores, NumaBalancingIsWarnedOfWhereItMatters) {
  EXPECT_EQ(internal::warning_of_numa_balancing(2, root), "");
  std::filesystem::create_directories(root / "proc/sys/kernel");
  std::ofstream(root / "proc/sys/kernel/numa_balancing") << "1\n";
  EXPECT_EQ(internal::warning_of_numa_balancing(1, root), "");
  EXPECT_THAT(internal::warning_of_numa_balancing(2, root), HasSubstr("sysctl kernel.numa_balancing=0"));
  std::ofstream(root / "proc/sys/kernel/numa_balancing") << "0\n";
  EXPECT_EQ(internal::warning_of_numa_balancing(2, root), "");
}

TEST_F(DeviceCores, AreAnyByDefault) {
  bind("");
  EXPECT_THAT(cores(), ElementsAre(-1, -1, -1));
}

TEST_F(DeviceCores, NearAreFreeOnesAtTheDevicesNumaNode) {
  bind("near");
  EXPECT_THAT(cores(), ElementsAre(6, 7, -1));
  EXPECT_EQ(world.machine.workers[6].numa_node, 1U);
}

TEST_F(DeviceCores, NearIsTheLastOneWhenNoneIsFree) {
  world.machine.workers[2].core = 6;
  world.machine.workers[3].core = 7;
  bind("near");
  EXPECT_THAT(cores(), ElementsAre(7, 7, -1));
}

TEST_F(DeviceCores, AListNamesHardwareThreads) {
  bind("15,0-1");
  EXPECT_THAT(cores(), ElementsAre(7, 0, 0));
}

TEST_F(DeviceCores, WhatCannotBeIsRefused) {
  EXPECT_THAT(thrown_by<StartError>([&] { bind("far"); }),
              AllOf(HasSubstr("option device_cores is 'far'"), HasSubstr("or near")));
  EXPECT_THAT(thrown_by<StartError>([&] { bind("1,2"); }), HasSubstr("there are 3 devices and 2 hardware threads"));
  EXPECT_THAT(thrown_by<StartError>([&] { bind("1,2,99"); }), HasSubstr("may not use hardware thread 99"));
}

}  // namespace
}  // namespace tandem::device_cores_test
