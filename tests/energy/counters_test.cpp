// tests/energy/counters_test.cpp: counters that move, wrap around, are refused and vanish.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tandem/base/energy_counter.hpp"
#include "tandem/base/nvml.hpp"
#include "tests/energy/fake_powercap.hpp"

namespace tandem::base::counters_test {
namespace {

using test::FakePowercap;
using ::testing::HasSubstr;

TEST(Powercap, PackagesAndTheirMemoryCountSinceTheyWereOpened) {
  FakePowercap files;
  files.add("intel-rapl:0", "package-0", 1'000'000);
  files.add("intel-rapl:0:0", "core", 500'000);
  files.add("intel-rapl:0:1", "dram", 70);
  files.add("intel-rapl:1", "package-1", 5);
  files.add("intel-rapl:2", "psys", 9);
  files.add("intel-rapl-mmio:0", "package-0", 1'000'000);
  const EnergyCounters found = find_powercap_counters(files.folder());
  EXPECT_EQ(found.missing, "");
  ASSERT_EQ(found.counters.size(), 3u);
  EXPECT_EQ(found.counters[0]->name(), "package-0");
  EXPECT_EQ(found.counters[1]->name(), "package-0 dram");
  EXPECT_EQ(found.counters[2]->name(), "package-1");
  EXPECT_EQ(found.counters[0]->read_uj(), 0u);
  files.set("intel-rapl:0", 1'250'000);
  files.set("intel-rapl:0:1", 100);
  EXPECT_EQ(found.counters[0]->read_uj(), 250'000u);
  EXPECT_EQ(found.counters[1]->read_uj(), 30u);
  EXPECT_EQ(found.counters[2]->read_uj(), 0u);
}

TEST(Powercap, ACounterThatBeginsAgainGoesOn) {
  FakePowercap files;
  files.add("intel-rapl:0", "package-0", 900, 1000);
  const EnergyCounters found = find_powercap_counters(files.folder());
  ASSERT_EQ(found.counters.size(), 1u);
  files.set("intel-rapl:0", 50);
  EXPECT_EQ(found.counters[0]->read_uj(), 150u);
  files.set("intel-rapl:0", 950);
  EXPECT_EQ(found.counters[0]->read_uj(), 1050u);
  files.set("intel-rapl:0", 949);
  EXPECT_EQ(found.counters[0]->read_uj(), 2049u);
}

TEST(Powercap, WithoutARangeACounterThatBeginsAgainDoesNotGoBack) {
  FakePowercap files;
  files.add("intel-rapl:0", "package-0", 900);
  std::filesystem::remove(files.folder() / "intel-rapl:0" / "max_energy_range_uj");
  const EnergyCounters found = find_powercap_counters(files.folder());
  ASSERT_EQ(found.counters.size(), 1u);
  files.set("intel-rapl:0", 50);
  EXPECT_EQ(found.counters[0]->read_uj(), 50u);
}

TEST(Powercap, AMachineWithoutCountersIsToldSo) {
  FakePowercap files;
  const EnergyCounters found = find_powercap_counters(files.folder() / "nowhere");
  EXPECT_TRUE(found.counters.empty());
  EXPECT_THAT(found.missing, HasSubstr("no RAPL counters"));
  EXPECT_THAT(found.missing, HasSubstr("nowhere/intel-rapl:0"));
  EXPECT_THAT(found.remedy, HasSubstr("modprobe intel_rapl_msr"));
}

TEST(Powercap, FilesForRootAloneAreNamedWithTheRemedy) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read all files";
  FakePowercap files;
  files.add("intel-rapl:0", "package-0", 900);
  files.add("intel-rapl:1", "package-1", 7);
  std::filesystem::permissions(files.energy_of("intel-rapl:0"), std::filesystem::perms::none);
  const EnergyCounters found = find_powercap_counters(files.folder());
  EXPECT_EQ(found.counters.size(), 1u);
  EXPECT_THAT(found.missing, HasSubstr("intel-rapl:0/energy_uj is for root alone"));
  EXPECT_THAT(found.remedy, HasSubstr("chmod a+r"));
}

TEST(Powercap, AFileWithoutANumberIsNamed) {
  FakePowercap files;
  files.add("intel-rapl:0", "package-0", 900);
  std::ofstream(files.energy_of("intel-rapl:0")) << "soon\n";
  const EnergyCounters found = find_powercap_counters(files.folder());
  EXPECT_TRUE(found.counters.empty());
  EXPECT_THAT(found.missing, HasSubstr("intel-rapl:0/energy_uj holds no number"));
}

TEST(Powercap, AFileThatBecomesEmptyIsNotRead) {
  FakePowercap files;
  files.add("intel-rapl:0", "package-0", 900);
  const EnergyCounters found = find_powercap_counters(files.folder());
  ASSERT_EQ(found.counters.size(), 1u);
  std::ofstream(files.energy_of("intel-rapl:0")).close();
  EXPECT_EQ(found.counters[0]->read_uj(), std::nullopt);
  files.set("intel-rapl:0", 1000);  // it comes back
  EXPECT_EQ(found.counters[0]->read_uj(), 100u);
}

// --- NVML

void pass(int ms) {
  void* const library = ::dlopen(TANDEM_FAKE_NVML, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  reinterpret_cast<void (*)(int)>(::dlsym(library, "tandem_fake_nvml_pass"))(ms);
  ::dlclose(library);
}

TEST(NvmlCounters, ADeviceCountsSinceItWasOpened) {
  const auto nvml = Nvml::load(TANDEM_FAKE_NVML);
  ASSERT_TRUE(nvml.ok()) << nvml.error().message;
  EXPECT_EQ(nvml.value()->device_count(), 2u);
  const auto counter = nvml.value()->counter_at("0000:3b:00.0");
  ASSERT_TRUE(counter.ok()) << counter.error().message;
  EXPECT_EQ(counter.value()->name(), "nvidia 0");
  EXPECT_EQ(counter.value()->read_uj(), 0u);
  pass(20);
  EXPECT_EQ(counter.value()->read_uj(), 2'000'000u);
  const auto same = nvml.value()->counter(0);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same.value()->read_uj(), 0u);
  pass(-1);
  EXPECT_EQ(counter.value()->read_uj(), std::nullopt);
}

TEST(NvmlCounters, DevicesThatDoNotCountAndThatAreNotThereAreNamed) {
  const auto nvml = Nvml::load(TANDEM_FAKE_NVML);
  ASSERT_TRUE(nvml.ok());
  EXPECT_THAT(nvml.value()->counter(1).error().message,
              HasSubstr("nvidia 1 does not count its energy (Not Supported)"));
  EXPECT_THAT(nvml.value()->counter(2).error().message, HasSubstr("no device 2"));
  EXPECT_THAT(nvml.value()->counter_at("0000:00:00.0").error().message,
              HasSubstr("no device at 0000:00:00.0: Not Found"));
}

TEST(NvmlCounters, ALibraryThatIsNotThereIsNamed) {
  const auto nvml = Nvml::load("libnothing-of-the-kind.so.1");
  ASSERT_FALSE(nvml.ok());
  EXPECT_THAT(nvml.error().message, HasSubstr("libnothing-of-the-kind.so.1"));
}

}  // namespace
}  // namespace tandem::base::counters_test
