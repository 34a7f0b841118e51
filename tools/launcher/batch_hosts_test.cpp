// tools/launcher/batch_hosts_test.cpp: made-up environments and files of batch systems.
#include "tools/launcher/batch_hosts.hpp"

#include <unistd.h>

#include <fstream>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::tools::batch_hosts_test {
namespace {

using base::ErrorCode;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> shown(const std::vector<HostShare>& hosts) {
  std::vector<std::string> texts;
  for (const HostShare& share : hosts)
    texts.push_back(share.ranks ? fmt::format("{}:{}", share.host, *share.ranks) : share.host);
  return texts;
}

BatchHosts job_of(const base::Environment& environment) {
  auto job = batch_hosts(environment);
  EXPECT_TRUE(job.ok()) << job.error().message;
  EXPECT_TRUE(job.value().has_value());
  return job.value().value_or(BatchHosts{});
}

class BatchFile : public testing::Test {
 protected:
  std::string write(const std::string& content) {
    path_ = fmt::format("{}tandem_batch_{}", testing::TempDir(), getpid());
    std::ofstream(path_) << content;
    return path_;
  }
  void TearDown() override { unlink(path_.c_str()); }
  std::string path_;
};

TEST(Nodelist, ExpandsBrackets) {
  EXPECT_THAT(expand_nodelist("n[1-3,7]").value(), ElementsAre("n1", "n2", "n3", "n7"));
  EXPECT_THAT(expand_nodelist("alpha").value(), ElementsAre("alpha"));
  EXPECT_THAT(expand_nodelist("a[09-11],login,b2").value(), ElementsAre("a09", "a10", "a11", "login", "b2"));
  EXPECT_THAT(expand_nodelist("r[0-1]-n[1,3]-ib").value(), ElementsAre("r0-n1-ib", "r0-n3-ib", "r1-n1-ib", "r1-n3-ib"));
  EXPECT_THAT(expand_nodelist("n-1.example.org").value(), ElementsAre("n-1.example.org"));
}

TEST(Nodelist, RefusesWhatItCannotRead) {
  for (const char* const wrong : {"", ",", "n[", "n]", "n[]", "n[1-]", "n[3-1]", "n[a]", "n[1]]", "n[[1]]", "n[1,]",
                                  "a,,b", "n[0-4000000]", "n[1-1000][1-1000][1-1000]"})
    EXPECT_EQ(expand_nodelist(wrong).error().code, ErrorCode::malformed) << wrong;
}

TEST(TasksPerNode, RepeatsNumbers) {
  EXPECT_THAT(expand_tasks_per_node("2(x3),1").value(), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(expand_tasks_per_node("16").value(), ElementsAre(16));
  for (const char* const wrong : {"", "a", "2(x", "2(x3", "2(x)", "(x2)", "2,,1", "1(x9999999)"})
    EXPECT_FALSE(expand_tasks_per_node(wrong).ok()) << wrong;
}

TEST(Batch, NoJobWithoutItsVariables) {
  EXPECT_FALSE(
      batch_hosts({{"PATH", "/bin"}, {"SLURM_CONF", "/etc/slurm.conf"}, {"PBS_NODEFILE", ""}}).value().has_value());
}

TEST(Batch, ASlurmJobThatAskedForTasks) {
  const BatchHosts job =
      job_of({{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_NTASKS", "5"}, {"SLURM_TASKS_PER_NODE", "2(x2),1"}});
  EXPECT_EQ(job.system, "Slurm");
  EXPECT_THAT(shown(job.hosts), ElementsAre("n1:2", "n2:2", "n3:1"));
  EXPECT_THAT(job.remote, testing::Contains("srun"));
}

TEST(Batch, ASlurmJobThatAskedForNodes) {
  EXPECT_THAT(shown(job_of({{"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "64(x2)"}}).hosts),
              ElementsAre("n1", "n2"));
}

TEST(Batch, ASlurmJobWhoseNumbersDoNotFitIsRefused) {
  EXPECT_EQ(batch_hosts({{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_NTASKS", "2"}, {"SLURM_TASKS_PER_NODE", "2"}})
                .error()
                .code,
            ErrorCode::malformed);
}

TEST_F(BatchFile, APbsJobHasALineForEachProcess) {
  EXPECT_THAT(shown(job_of({{"PBS_NODEFILE", write("a\na\nb\n\na\n")}}).hosts), ElementsAre("a:3", "b:1"));
}

TEST_F(BatchFile, AnOarJobHasALineForEachCore) {
  const BatchHosts job = job_of({{"OAR_NODEFILE", write("a.example\na.example\nb.example\nb.example\n")}});
  EXPECT_THAT(shown(job.hosts), ElementsAre("a.example", "b.example"));
  EXPECT_THAT(job.remote, ElementsAre("oarsh"));
}

TEST_F(BatchFile, AnLsfJobHasHostsWithSlots) {
  EXPECT_THAT(shown(job_of({{"LSB_MCPU_HOSTS", "a 4 b 2"}}).hosts), ElementsAre("a:4", "b:2"));
  EXPECT_THAT(shown(job_of({{"LSB_DJOB_HOSTFILE", write("a\na\nb 3\n")}}).hosts), ElementsAre("a:2", "b:3"));
  EXPECT_FALSE(batch_hosts({{"LSB_MCPU_HOSTS", "a 4 b"}}).ok());
}

TEST_F(BatchFile, AFileThatIsMissingOrEmptyIsNamed) {
  EXPECT_THAT(batch_hosts({{"PBS_NODEFILE", "/nowhere"}}).error().message,
              HasSubstr("PBS_NODEFILE names, /nowhere, cannot be read"));
  EXPECT_THAT(batch_hosts({{"OAR_NODEFILE", write("")}}).error().message, HasSubstr("is empty"));
}

TEST(Batch, RanksAreThoseOfTheJobOrAreSharedAlike) {
  const BatchHosts job{"Slurm", {{"a", 2}, {"b", 4}}, {}};
  EXPECT_THAT(shown(shares_for(std::nullopt, job)), ElementsAre("a:2", "b:4"));
  EXPECT_THAT(shown(shares_for(6, job)), ElementsAre("a:2", "b:4"));
  EXPECT_THAT(shown(shares_for(2, job)), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace tandem::tools::batch_hosts_test
