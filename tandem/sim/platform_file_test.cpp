// tandem/sim/platform_file_test.cpp: platforms that people write, and their mistakes.
#include "tandem/sim/platform_file.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/model/contention/platforms.hpp"
#include "tandem/runtime/machine/machine_file.hpp"

namespace tandem::sim::platform_file_test {
namespace {

using testing::HasSubstr;

DescribedPlatform parsed(const std::string& text) {
  auto platform = parse_platform(text, "a.toml");
  EXPECT_TRUE(platform.ok()) << (platform.ok() ? "" : platform.error().message);
  return platform.ok() ? platform.value() : DescribedPlatform();
}

std::string error_of(const std::string& text) {
  const auto platform = parse_platform(text, "a.toml");
  return platform.ok() ? "no error" : platform.error().message;
}

TEST(PlatformFile, AllThatItSays) {
  const DescribedPlatform file = parsed(R"(
name = "henri"
cores = 36
latency = "1.8us"
bandwidth = 10.5
segment = "256KiB"
node_spread = 0.02
[kernels.gemm.cpu]
mean = "1.2ms"
bytes = "3MB"
power = 1.5
spread = 0.25
[kernels."my.kernel".cuda]
mean = "7us"
)");
  EXPECT_EQ(file.name, "henri");
  EXPECT_EQ(file.platform.cores, 36U);
  EXPECT_EQ(file.platform.latency_ns, 1'800);
  EXPECT_EQ(file.platform.bytes_per_ns, 10.5);
  EXPECT_EQ(file.platform.segment_bytes, 262'144U);
  EXPECT_EQ(file.platform.node_spread, 0.02);
  const std::vector<runtime::Shape> tiles(3, {.rows = 500, .cols = 1000, .element_bytes = 8});  // four times 3 MB
  const auto gemm = file.time_of({"gemm", tiles, DeviceKind::cpu, 0});
  ASSERT_TRUE(gemm.has_value());
  EXPECT_NEAR(gemm->mean_ns, 1.2e6 * 8, 1);
  EXPECT_NEAR(gemm->deviation_ns, 1.2e6 * 2, 1);
  EXPECT_EQ(file.time_of({"my.kernel", tiles, DeviceKind::cuda, 0})->mean_ns, 7'000);
  EXPECT_FALSE(file.time_of({"gemm", tiles, DeviceKind::cuda, 0}).has_value());
  EXPECT_FALSE(file.time_of({"potrf", tiles, DeviceKind::cpu, 0}).has_value());
}

TEST(PlatformFile, NodesHaveNumaMemoriesAndDevices) {
  const DescribedPlatform file = parsed(R"(
numa_nodes = 2
numa_bandwidth = 15
remote = 1.25
[devices.gtx]
kind = "cuda"
count = 2
memory = "11GB"
bandwidth = 6
latency = "20us"
in_flight = 4
[devices.other]
kind = "opencl"
)");
  const Node& node = file.platform.nodes.at(0);
  EXPECT_EQ(node.numa_nodes, 2U);
  EXPECT_EQ(node.numa_bytes_per_ns, 15);
  EXPECT_EQ(node.remote, 1.25);
  ASSERT_EQ(node.devices.size(), 2U);
  EXPECT_EQ(node.devices[0].kind, DeviceKind::cuda);
  EXPECT_EQ(node.devices[0].count, 2U);
  EXPECT_EQ(node.devices[0].memory_bytes, 11'000'000'000U);
  EXPECT_EQ(node.devices[0].bytes_per_ns, 6);
  EXPECT_EQ(node.devices[0].latency_ns, 20'000);
  EXPECT_EQ(node.devices[0].depth, 4U);
  EXPECT_EQ(node.devices[1].kind, DeviceKind::opencl);
}

TEST(PlatformFile, NodesOfSeveralKindsHaveFilesOfTheirOwn) {
  const std::filesystem::path folder = testing::TempDir() + "platform_file_test_nodes";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "slow.toml") << "cores = 20\nbandwidth = 3\n[kernels.gemm.cpu]\nmean = \"2ms\"\n";
  std::ofstream(folder / "fast.toml") << "cores = 28\n[devices.gpu]\ncount = 2\n";
  const auto read = [&](const std::string& nodes) {
    return parse_platform("bandwidth = 7\nnodes = \"" + nodes + "\"\n[kernels.gemm.cpu]\nmean = \"1ms\"", "a.toml",
                          folder);
  };
  const auto both = read("14 slow:18, 7 fast");
  ASSERT_TRUE(both.ok()) << both.error().message;
  const Platform& platform = both.value().platform;
  EXPECT_EQ(platform.bytes_per_ns, 7) << "the network is that of the file itself";
  EXPECT_EQ(platform.cores_of(13), 18U);
  EXPECT_EQ(platform.cores_of(14), 28U);
  EXPECT_EQ(platform.node_of(20).devices.at(0).count, 2U);
  const std::vector<runtime::Shape> none;
  EXPECT_EQ(both.value().time_of({"gemm", none, DeviceKind::cpu, 0}, 0)->mean_ns, 2e6);
  EXPECT_EQ(both.value().time_of({"gemm", none, DeviceKind::cpu, 0}, 1)->mean_ns, 1e6) << "it has no own";
  const auto changed = parse_platform("nodes = \"1 slow, 1 fast\"", "a.toml", folder,
                                      {{"slow.cores", "5"}, {"slow.kernels.gemm.cpu.mean", "3ms"}, {"latency", "7us"}});
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_EQ(changed.value().platform.cores_of(0), 5U);
  EXPECT_EQ(changed.value().platform.latency_ns, 7'000);
  EXPECT_EQ(changed.value().time_of({"gemm", none, DeviceKind::cpu, 0}, 0)->mean_ns, 3e6);
  EXPECT_THAT(parse_platform("", "a.toml", {}, {{"latency", "7us"}, {"latency", "7"}}).error().message,
              HasSubstr("--set:2: latency = 7: write a time"));
  EXPECT_THAT(read("slow").error().message, HasSubstr("a.toml:2: nodes: 'slow': write"));
  EXPECT_THAT(read("3 slow:0").error().message, HasSubstr("nodes: '3 slow:0': write"));
  EXPECT_THAT(read("3 missing").error().message, HasSubstr("missing.toml"));
  std::ofstream(folder / "many.toml") << "nodes = \"1 slow, 1 fast\"\n";
  EXPECT_THAT(read("3 many").error().message, HasSubstr("many.toml:1: a kind of nodes has several kinds"));
  std::ofstream(folder / "itself.toml") << "nodes = \"1 itself\"\n";
  EXPECT_THAT(read_platform(folder / "itself.toml").error().message, HasSubstr("several kinds"));
  std::filesystem::remove_all(folder);
}

TEST(PlatformFile, WhatItDoesNotSayHasDefaults) {
  const DescribedPlatform file = parsed("");
  EXPECT_EQ(file.platform.latency_ns, Platform().latency_ns);
  EXPECT_TRUE(file.kernels.at(0).empty());
}

TEST(PlatformFile, ANodeIsAMachine) {
  runtime::Machine machine;
  for (unsigned worker = 0; worker < 3; ++worker) machine.workers.push_back({});
  machine.distance.assign(3, std::vector<unsigned>(3, 10));
  machine.set_network(
      {.transport = "tcp", .times = {{.bytes = 8, .alone_ns = 20'000}, {.bytes = 4'000, .alone_ns = 2'000}}});
  const std::filesystem::path folder = testing::TempDir() + "platform_file_test";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(runtime::write_machine(folder / "node.toml", machine).ok());
  const auto platform = parse_platform("bandwidth = 7\nmachine = \"node.toml\"", "a.toml", folder);
  ASSERT_TRUE(platform.ok()) << platform.error().message;
  EXPECT_EQ(platform.value().platform.cores, 3U);
  EXPECT_EQ(platform.value().platform.latency_ns, 20'000);
  EXPECT_EQ(platform.value().platform.bytes_per_ns, 7) << "what the platform itself says goes before";
  EXPECT_FALSE(parse_platform("machine = \"missing.toml\"", "a.toml", folder).ok());
  std::filesystem::remove_all(folder);
}

TEST(PlatformFile, KernelsAndMessagesMayShareMemory) {
  EXPECT_FALSE(parsed("name = \"a\"").platform.contention.has_value());
  const model::contention::Platform& henri = *model::contention::find_platform("henri");
  const auto known = parsed("contention = \"henri\"").platform.contention;
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->machine.local.bus.alpha, henri.machine.local.alpha);
  EXPECT_EQ(known->cores, henri.cores_per_socket);
  const std::filesystem::path folder = testing::TempDir() + "platform_file_test_contention";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "own.toml") << to_text(*known);
  const auto own = parse_platform("contention = \"own.toml\"", "a.toml", folder);
  ASSERT_TRUE(own.ok()) << own.error().message;
  EXPECT_EQ(own.value().platform.contention->machine.local.bus.alpha, henri.machine.local.alpha);
  std::ofstream(folder / "own.toml") << "nothing = 3\n";
  EXPECT_FALSE(parse_platform("contention = \"own.toml\"", "a.toml", folder).ok());
  EXPECT_THAT(error_of("contention = \"hneri\""),
              HasSubstr("a.toml:1: contention = hneri is none of the machines billy"));
  std::filesystem::remove_all(folder);
}

TEST(PlatformFile, MistakesAreNamed) {
  EXPECT_THAT(error_of("cores = 0"), HasSubstr("a.toml:1: cores = 0: write a number from 1"));
  EXPECT_THAT(error_of("\ncore = 3"), HasSubstr("a.toml:2: a platform has no core; did you mean cores?"));
  EXPECT_THAT(error_of("latency = 3"), HasSubstr("write a time"));
  EXPECT_THAT(error_of("bandwidth = \"nan\""), HasSubstr("write a number"));
  EXPECT_THAT(error_of("[kernels.gemm.gpu]\nmean = \"1ms\""), HasSubstr("gpu is no kind of worker"));
  EXPECT_THAT(error_of("[kernels.gemm.cpu]\nmaen = \"1ms\""), HasSubstr("did you mean mean?"));
  EXPECT_THAT(error_of("[kernels.gemm.cpu]\nspread = 0.1"), HasSubstr("kernel gemm has no duration"));
  EXPECT_THAT(error_of("kernels.gemm = 3"), HasSubstr("a platform has no kernels.gemm"));
  EXPECT_THAT(error_of("[devices.gtx]\nkind = \"cpu\""), HasSubstr("kind = cpu: write \"cuda\" or"));
  EXPECT_THAT(error_of("[devices.gtx]\ncuont = 2"), HasSubstr("did you mean count?"));
  EXPECT_THAT(error_of("numa_nodes = 0"), HasSubstr("write a number from 1"));
  EXPECT_THAT(error_of("cores = "), HasSubstr("a.toml"));
  EXPECT_FALSE(read_platform("/nothing/there.toml").ok());
}

}  // namespace
}  // namespace tandem::sim::platform_file_test
