// tandem/comm/bootstrap/thread_job_test.cpp: ranks that are threads of one process.
#include "tandem/comm/bootstrap/thread_job.hpp"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::comm::thread_job_test {
namespace {

PeerCard card_of(Rank rank) { return {1, "0.1", "host", "host", {{"loop", std::to_string(rank.value())}}}; }

TEST(ThreadJob, EveryRankFindsEveryOther) {
  std::vector<Job> jobs = make_thread_job(8);
  ASSERT_EQ(jobs.size(), 8u);
  std::vector<std::thread> threads;
  for (const Job& job : jobs)
    threads.emplace_back([&job] {
      ASSERT_TRUE(job.directory->publish(card_of(job.rank)));
      for (std::uint32_t peer = 0; peer < job.size; ++peer) {
        const auto card = job.directory->lookup(Rank(peer));
        ASSERT_TRUE(card) << card.error().message;
        EXPECT_EQ(card.value().transports.at(0).second, std::to_string(peer));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(jobs[0].secret, jobs[7].secret);
  EXPECT_EQ(jobs[0].id, jobs[7].id);
  EXPECT_NE(jobs[0].secret, make_thread_job(2)[0].secret);
}

TEST(ThreadJob, ALookUpOfARankThatNeverPublishesEndsWithTheTime) {
  std::vector<Job> jobs = make_thread_job(2, 1'000'000);
  ASSERT_TRUE(jobs[0].directory->publish(card_of(Rank(0))));
  const auto card = jobs[0].directory->lookup(Rank(1));
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().code, base::ErrorCode::exhausted);
}

}  // namespace
}  // namespace tandem::comm::thread_job_test
