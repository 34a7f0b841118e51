// tandem/comm/bootstrap/job_roll_test.cpp: the counts agree with what a look at every rank finds, and cost less.
#include "tandem/comm/bootstrap/job_roll.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace tandem::comm::internal::job_roll_test {
namespace {

/// A reference implementation that compares every ended rank with every member.
struct Plain {
  struct Member {
    std::uint32_t rank, generation;
  };
  std::vector<std::uint32_t> joined;
  std::vector<Member> members;
  std::set<std::pair<std::uint32_t, std::uint32_t>> published;  ///< generation, rank
  std::set<std::uint32_t> ended;

  bool never_came(std::uint32_t rank) const {
    return std::any_of(members.begin(), members.end(), [&](const Member& member) {
      if (joined[rank] <= member.generation) return true;
      return published.contains({member.generation, member.rank}) && !published.contains({member.generation, rank});
    });
  }
  bool any() const {
    return std::any_of(ended.begin(), ended.end(), [&](std::uint32_t rank) { return never_came(rank); });
  }
};

TEST(JobRoll, FindsWhatALookAtEveryRankFinds) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto size = static_cast<std::uint32_t>(1 + random() % 5);
    JobRoll roll(size);
    Plain plain{.joined = std::vector<std::uint32_t>(size, 0), .members = {}, .published = {}, .ended = {}};
    for (int step = 0; step < 60; ++step) {
      const auto rank = static_cast<std::uint32_t>(random() % size);
      const auto member =
          std::find_if(plain.members.begin(), plain.members.end(), [&](const auto& m) { return m.rank == rank; });
      const auto what = random() % 8;
      if (what < 3 && member == plain.members.end()) {
        plain.members.push_back({rank, plain.joined[rank]++});
        EXPECT_EQ(roll.join(rank), plain.joined[rank] - 1);
      } else if (what < 5 && member != plain.members.end()) {
        if (plain.published.insert({member->generation, rank}).second) roll.publish(rank, member->generation);
      } else if (what < 7 && member != plain.members.end()) {
        roll.leave(rank, member->generation);
        plain.members.erase(member);
      } else if (what == 7 && random() % 4 == 0) {
        roll.end(rank, "over");
        plain.ended.insert(rank);
      }
      const std::uint32_t fewest = *std::min_element(plain.joined.begin(), plain.joined.end());
      EXPECT_EQ(roll.oldest_generation(), fewest == 0 ? 0 : fewest - 1);
      roll.forget_before(roll.oldest_generation());
      const auto found = roll.never_came();
      ASSERT_EQ(found.has_value(), plain.any()) << "step " << step;
      EXPECT_TRUE(!found || (plain.ended.contains(*found) && plain.never_came(*found)));
    }
  }
}

TEST(JobRoll, TheFirstReasonOfAnEndStays) {
  JobRoll roll(2);
  EXPECT_EQ(roll.reason_of_end(1), nullptr);
  roll.end(1, "it went home");
  roll.end(1, "again");
  ASSERT_NE(roll.reason_of_end(1), nullptr);
  EXPECT_EQ(*roll.reason_of_end(1), "it went home");
}

/// Steps that a whole job costs when its ranks join, publish and end one after the other, with a question after each
/// event.
std::uint64_t steps_of_job(std::uint32_t size) {
  JobRoll roll(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) EXPECT_EQ((roll.join(rank), roll.never_came()), std::nullopt);
  for (std::uint32_t rank = 0; rank < size; ++rank) EXPECT_EQ((roll.publish(rank, 0), roll.never_came()), std::nullopt);
  for (std::uint32_t rank = 0; rank + 1 < size; ++rank) {
    roll.leave(rank, 0);
    roll.end(rank, "over");
    EXPECT_EQ(roll.never_came(), std::nullopt);
  }
  return roll.steps();
}

TEST(JobRoll, QuestionsOfAJobOfTwiceTheSizeCostTwiceAsMuch) {
  const std::uint64_t small = steps_of_job(1000), large = steps_of_job(2000);
  EXPECT_GT(small, 0u);
  EXPECT_LE(large, 2 * small + 100) << small << " steps, then " << large;
}

}  // namespace
}  // namespace tandem::comm::internal::job_roll_test
