// tools/machine/doctor_test.cpp: made-up systems, and the doctor's findings.
#include "tools/machine/doctor.hpp"

#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/configure.hpp"

namespace tandem::tools::doctor_test {
namespace {

using testing::HasSubstr;

class Doctor : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "doctor-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& content) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << content;
  }
  std::filesystem::path root_;
};

TEST_F(Doctor, NumaBalancingIsWrongWithSeveralNodes) {
  EXPECT_EQ(check_numa_balancing(root_, 2).verdict, Verdict::right);
  write("proc/sys/kernel/numa_balancing", "1\n");
  EXPECT_EQ(check_numa_balancing(root_, 1).verdict, Verdict::right);
  EXPECT_EQ(check_numa_balancing(root_, 2).verdict, Verdict::wrong);
  EXPECT_THAT(check_numa_balancing(root_, 2).remedy, HasSubstr("sysctl kernel.numa_balancing=0"));
  write("proc/sys/kernel/numa_balancing", "0\n");
  EXPECT_EQ(check_numa_balancing(root_, 2).verdict, Verdict::right);
}

TEST_F(Doctor, AGovernorThatSavesPowerIsNamed) {
  EXPECT_EQ(check_governor(root_).verdict, Verdict::right);
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  EXPECT_EQ(check_governor(root_).verdict, Verdict::right);
  write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
  const Finding mixed = check_governor(root_);
  EXPECT_EQ(mixed.verdict, Verdict::advice);
  EXPECT_THAT(mixed.found, HasSubstr("powersave on 1 processors"));
}

TEST_F(Doctor, SharedMemoryMayBeMissingOrSmall) {
  EXPECT_EQ(check_shared_memory(0, 0).verdict, Verdict::wrong);
  EXPECT_EQ(check_shared_memory(64u << 20, 1u << 20).verdict, Verdict::wrong);
  EXPECT_EQ(check_shared_memory(1u << 30, 1u << 29).verdict, Verdict::right);
}

TEST_F(Doctor, TheHardLimitOfDescriptorsCounts) {
  EXPECT_EQ(check_descriptors({.rlim_cur = 256, .rlim_max = 1024}).verdict, Verdict::wrong);
  EXPECT_EQ(check_descriptors({.rlim_cur = 256, .rlim_max = 65536}).verdict, Verdict::right);
  EXPECT_EQ(check_descriptors({.rlim_cur = 256, .rlim_max = RLIM_INFINITY}).verdict, Verdict::right);
}

TEST_F(Doctor, EnergyThatCannotBeCountedIsAdviceWithTheRemedy) {
  const std::string no_library = "libnothing-of-the-kind.so.1";
  const auto none = check_energy(root_ / "sys/class/powercap", no_library);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].verdict, Verdict::advice);
  EXPECT_THAT(none[0].found, HasSubstr("this machine shows no RAPL counters"));
  EXPECT_THAT(none[0].found, HasSubstr("programs run without it"));
  EXPECT_THAT(none[0].remedy, HasSubstr("modprobe intel_rapl_msr"));
  write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  write("sys/class/powercap/intel-rapl:0/energy_uj", "123\n");
  write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000\n");
  const auto some = check_energy(root_ / "sys/class/powercap", no_library);
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(some[0].verdict, Verdict::right);
  EXPECT_EQ(some[0].found, "counters of package-0");
  write("sys/class/powercap/intel-rapl:1/name", "package-1\n");
  write("sys/class/powercap/intel-rapl:1/energy_uj", "none\n");
  const auto part = check_energy(root_ / "sys/class/powercap", no_library);
  EXPECT_EQ(part.at(0).verdict, Verdict::advice);
  EXPECT_THAT(part[0].found, HasSubstr("counters of package-0; "));
  EXPECT_THAT(part[0].found, HasSubstr("intel-rapl:1/energy_uj holds no number"));
}

TEST_F(Doctor, NetworksAndCardsAreListed) {
  EXPECT_EQ(check_networks(root_).at(0).verdict, Verdict::advice);
  write("sys/class/net/lo/operstate", "unknown\n");
  write("sys/class/net/eth0/operstate", "up\n");
  write("sys/class/net/eth0/speed", "25000\n");
  write("sys/class/net/eth0/device/numa_node", "1\n");
  write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  write("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
  const auto findings = check_networks(root_);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].found, "eth0 25000 Mbit/s at NUMA node 1");
  EXPECT_EQ(findings[1].verdict, Verdict::right);
  EXPECT_THAT(findings[1].found, HasSubstr("mlx5_0 port 1 (InfiniBand): 4: ACTIVE"));
  EXPECT_EQ(findings[2].verdict, Verdict::advice);
}

TEST_F(Doctor, ACallThatNothingReplacesIsWrong) {
  EXPECT_EQ(check_calls({{"a", true, true, ""}}).verdict, Verdict::right);
  EXPECT_EQ(check_calls({{"a", true, true, ""}, {"b", false, false, "slower"}}).verdict, Verdict::advice);
  const Finding finding = check_calls({{"a", false, true, "no ranks"}});
  EXPECT_EQ(finding.verdict, Verdict::wrong);
  EXPECT_THAT(finding.found, HasSubstr("a (no ranks)"));
  EXPECT_FALSE(probe_calls().empty());
}

TEST_F(Doctor, ThePlanForSeveralRanks) {
  base::Registry registry;
  register_options(registry);
  const base::Config config(registry);
  const auto host = base::Topology::synthetic("package:2 core:8 pu:1").value();
  EXPECT_EQ(check_binding(host, config, 4).verdict, Verdict::right);
  EXPECT_THAT(check_binding(host, config, 4).found, HasSubstr("16 cores; 4 ranks here: "));
  EXPECT_EQ(check_binding(host, config, 17).verdict, Verdict::wrong);
}

TEST_F(Doctor, FilesOfProcessesThatAreGoneAreLeftovers) {
  write("tandem-trace.12.a", "12345");
  write("tandem-trace.13.a", "");
  write("tandem-trace.x.a", "");
  write("other", "");
  const auto leftovers = find_leftovers(root_, [](std::uint32_t process) { return process == 13; });
  ASSERT_EQ(leftovers.size(), 1u);
  EXPECT_EQ(leftovers[0].process, 12u);
  EXPECT_EQ(leftovers[0].bytes, 5u);
  EXPECT_EQ(check_leftovers(leftovers).verdict, Verdict::wrong);
  EXPECT_THAT(check_leftovers(leftovers).remedy, HasSubstr("--clean"));
  EXPECT_EQ(check_leftovers({}).verdict, Verdict::right);
}

TEST_F(Doctor, WhatIsNoFileOfThisUserIsNotCleaned) {
  write("precious", "precious");
  std::filesystem::create_symlink(root_ / "precious", root_ / "tandem-trace.12.link");
  const auto leftovers = find_leftovers(root_, [](std::uint32_t) { return false; });
  ASSERT_EQ(leftovers.size(), 1u);
  EXPECT_FALSE(leftovers[0].is_own);
  EXPECT_EQ(check_leftovers(leftovers).verdict, Verdict::right);
  EXPECT_THAT(check_leftovers(leftovers).found, HasSubstr("1 file of other users"));
}

TEST_F(Doctor, FilesOfOtherUsersAreTheirs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  write("tandem-trace.12.a", "12345");
  write("tandem-trace.12.b", "12345");
  ASSERT_EQ(::chown((root_ / "tandem-trace.12.a").c_str(), 65534, 65534), 0);
  const auto leftovers = find_leftovers(root_, [](std::uint32_t) { return false; });
  ASSERT_EQ(leftovers.size(), 2u);
  EXPECT_FALSE(leftovers[0].is_own);
  EXPECT_TRUE(leftovers[1].is_own);
  EXPECT_THAT(check_leftovers(leftovers).found, HasSubstr("tandem-trace.12.b; 1 file of other users"));
}

}  // namespace
}  // namespace tandem::tools::doctor_test
