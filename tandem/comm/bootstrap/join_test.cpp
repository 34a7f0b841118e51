// tandem/comm/bootstrap/join_test.cpp: which launcher started this process, according to environment variables.
#include "tandem/comm/bootstrap/join.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/comm/bootstrap/socket.hpp"
#include "tandem/comm/bootstrap/variables.hpp"

namespace tandem::comm::join_test {
namespace {

using base::Environment;
using base::ErrorCode;
using base::Result;
using testing::HasSubstr;

class Join : public testing::Test {
 protected:
  Result<Job> join(const Environment& environment, std::int64_t timeout_ns = 20'000'000'000) {
    return join_job({.environment = environment, .log = log_, .timeout_ns = timeout_ns});
  }
  std::string refusal(const Environment& environment) {
    const auto job = join(environment, 200'000'000);
    return job ? "joined by " + job.value().source : job.error().message;
  }
  /// A port that was free a moment ago. It lies outside the range of outgoing connections and differs between
  /// processes, so that concurrent tests do not take it.
  static std::string free_port() {
    for (unsigned i = 0;; ++i) {
      const auto port = static_cast<std::uint16_t>(10'000 + (static_cast<unsigned>(::getpid()) + 4099 * i) % 20'000);
      if (internal::listen_at({"127.0.0.1", port})) return std::to_string(port);
    }
  }
  static Environment master(std::uint32_t rank, std::uint32_t size, const std::string& port,
                            const std::string& secret) {
    return {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(size)}, {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", port}, {"TANDEM_JOB_SECRET", secret}};
  }
  static PeerCard card_of(Rank rank) { return {1, "0.1", "host", "host", {{"tcp", std::to_string(rank.value())}}}; }

  base::Log log_{base::LogLevel::error};
};

constexpr const char* good_secret = "a secret of enough characters";

TEST_F(Join, WithoutALauncherARankIsAlone) {
  const auto job = join({{"HOME", "/nowhere"}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job.value().size, 1u);
  EXPECT_EQ(job.value().rank, Rank(0));
  EXPECT_EQ(job.value().source, "alone");
  EXPECT_EQ(job.value().directory, nullptr);
  EXPECT_NE(job.value().secret, join({}).value().secret);
}

TEST_F(Join, OneOfTheMasterVariablesAloneIsSomebodyElses) {
  EXPECT_EQ(refusal({{"RANK", "general"}}), "joined by alone");
  EXPECT_EQ(refusal({{"WORLD_SIZE", "8"}}), "joined by alone");
}

TEST_F(Join, MalformedVariablesAreNamed) {
  EXPECT_THAT(refusal({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK is 'x'"));
  EXPECT_THAT(refusal({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK is '-1'"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2 "}}), HasSubstr("WORLD_SIZE is '2 '"));
  EXPECT_THAT(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=2 and WORLD_SIZE=2"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}), HasSubstr("WORLD_SIZE is '99999999999'"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), HasSubstr("MASTER_ADDR is missing"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "x"}}), HasSubstr("MASTER_PORT is missing"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "x"}, {"MASTER_PORT", "0"}}),
              HasSubstr("MASTER_PORT is 0"));
  EXPECT_THAT(refusal({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "x"}, {"MASTER_PORT", "1"}}), HasSubstr("RANK is missing"));
  EXPECT_THAT(refusal({{"TANDEM_JOB_RANK", "0"}, {"TANDEM_JOB_SIZE", "2"}}), HasSubstr("TANDEM_JOB_SERVER is missing"));
  EXPECT_THAT(refusal({{"TANDEM_JOB_RANK", "0"}, {"TANDEM_JOB_SIZE", "2"}, {"TANDEM_JOB_SERVER", "nowhere"}}),
              HasSubstr("TANDEM_JOB_SERVER is 'nowhere'"));
  EXPECT_THAT(refusal({{"TANDEM_JOB_RANK", "0"}, {"TANDEM_JOB_SIZE", "2"}, {"TANDEM_JOB_SERVER", "h:1"}}),
              HasSubstr("TANDEM_JOB_SECRET_FD is missing"));
}

TEST_F(Join, SeveralTasksOfASilentLauncherAreRefusedWithARemedy) {
  EXPECT_THAT(refusal({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "1"}}), HasSubstr("srun --mpi=pmix"));
  EXPECT_THAT(refusal({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "1"}}), HasSubstr("task 1 of 4"));
  EXPECT_THAT(refusal({{"PMI_SIZE", "4"}, {"PMI_RANK", "1"}}), HasSubstr("does not speak PMIx"));
  EXPECT_EQ(refusal({{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}}), "joined by alone");
  EXPECT_EQ(refusal({{"SLURM_NTASKS", "4"}}), "joined by alone") << "in the allocation, outside of a task";
  EXPECT_EQ(refusal({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}), "joined by alone");
}

TEST_F(Join, TheMasterVariablesBringRanksTogetherInAnyOrder) {
  const std::string port = free_port();
  std::vector<Job> jobs(3);
  std::vector<std::thread> threads;
  for (std::uint32_t rank : {2u, 1u, 0u})
    threads.emplace_back([&, rank] {
      auto job = join(master(rank, 3, port, good_secret));
      ASSERT_TRUE(job) << job.error().message;
      jobs[rank] = std::move(job).value();
      ASSERT_TRUE(jobs[rank].directory->publish(card_of(Rank(rank))));
      for (std::uint32_t peer = 0; peer < 3; ++peer) {
        const auto card = jobs[rank].directory->lookup(Rank(peer));
        ASSERT_TRUE(card) << card.error().message;
        EXPECT_EQ(card.value().transports.at(0).second, std::to_string(peer));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(jobs[0].secret, jobs[2].secret);
  EXPECT_EQ(jobs[0].id, jobs[2].id);
  EXPECT_EQ(jobs[1].source, "environment");
}

TEST_F(Join, RankZeroMayLeaveFirst) {
  const std::string port = free_port();
  Result<Job> second = base::Error{};
  std::thread other([&] { second = join(master(1, 2, port, good_secret)); });
  auto first = join(master(0, 2, port, good_secret));
  other.join();
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(first.value().directory->publish(card_of(Rank(0))));
  ASSERT_TRUE(second.value().directory->publish(card_of(Rank(1))));
  ASSERT_TRUE(first.value().directory->lookup(Rank(1)));
  first.value().directory.reset();
  const auto card = second.value().directory->lookup(Rank(0));
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card.value().transports.at(0).second, "0");
}

TEST_F(Join, AWrongSecretIsRefused) {
  const std::string port = free_port();
  Result<Job> wrong = base::Error{}, right = base::Error{};
  std::thread stranger([&] { wrong = join(master(1, 2, port, "another secret of enough characters")); });
  auto first = join(master(0, 2, port, good_secret));
  stranger.join();
  ASSERT_TRUE(first);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("does not belong to this job"));
  EXPECT_TRUE(join(master(1, 2, port, good_secret))) << "the job goes on";
}

TEST_F(Join, APortThatIsTakenIsNamedWithItsVariable) {
  const auto taken = internal::listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(taken);
  EXPECT_THAT(refusal(master(0, 2, std::to_string(taken.value().port), good_secret)),
              HasSubstr("MASTER_PORT chose the port"));
}

TEST_F(Join, AMasterThatNeverComesEndsTheWaitWithItsAddress) {
  const std::string port = free_port();
  EXPECT_THAT(refusal(master(1, 2, port, good_secret)), HasSubstr("nobody answers at 127.0.0.1:" + port));
}

TEST_F(Join, TheVariablesOfTheBootstrapAreNoOptions) {
  base::Registry registry;
  Environment environment;
  for (const std::string& name : job_variables()) environment.emplace_back(name, "1");
  EXPECT_TRUE(base::Config::load(registry, {.environment = environment, .reserved_variables = job_variables()}));
}

}  // namespace
}  // namespace tandem::comm::join_test
