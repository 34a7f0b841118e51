// tandem/base/cpu_quota_test.cpp: quotas of both versions of cgroups, from files that the test writes.
#include "tandem/base/cpu_quota.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace tandem::base::cpu_quota_test {
namespace {

namespace fs = std::filesystem;

class CpuQuota : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& relative, const std::string& content) const {
    fs::create_directories((root_ / relative).parent_path());
    std::ofstream(root_ / relative) << content;
  }
  std::optional<double> quota() const { return cpu_quota(root_, root_ / "membership"); }

  fs::path root_;
};

TEST(CpuMax, IsARatioOrMax) {
  EXPECT_DOUBLE_EQ(parse_cpu_max("150000 100000\n").value(), 1.5);
  for (const char* content : {"max 100000\n", "", "x", "100000", "100000 0"})
    EXPECT_FALSE(parse_cpu_max(content)) << content;
}

TEST_F(CpuQuota, TheLeastOfThoseAboveHolds) {
  write("membership", "0::/job/step\n");
  write("job/step/cpu.max", "max 100000\n");
  write("job/cpu.max", "250000 100000\n");
  write("cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 2.5);
}

TEST_F(CpuQuota, OfVersionOneIsReadFromItsCpuHierarchy) {
  write("membership", "7:memory:/a\n4:cpu,cpuacct:/job\n");
  write("cpu/job/cpu.cfs_quota_us", "50000\n");
  write("cpu/job/cpu.cfs_period_us", "100000\n");
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 0.5);
}

TEST_F(CpuQuota, NoLimitAndNoFilesMeanNone) {
  EXPECT_FALSE(quota());
  write("membership", "0::/../elsewhere\nnonsense\n");
  EXPECT_FALSE(quota());
}

}  // namespace
}  // namespace tandem::base::cpu_quota_test
