// tandem/base/core_plan_test.cpp: plans for imaginary machines.
#include "tandem/base/core_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tandem/base/pu_list.hpp"

namespace tandem::base::core_plan_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Topology machine(const std::string& description) { return Topology::synthetic(description).value(); }

std::vector<unsigned> range(unsigned first, unsigned last) {
  std::vector<unsigned> pus(last - first + 1);
  std::iota(pus.begin(), pus.end(), first);
  return pus;
}

/// Each rank's cores as "rank: list".
std::vector<std::string> shown(const std::vector<RankCores>& plan) {
  std::vector<std::string> texts;
  for (const RankCores& rank : plan)
    texts.push_back(std::to_string(rank.rank) + ": " + format_pu_list(rank.pus) + (rank.crowded ? " crowded" : ""));
  return texts;
}

std::vector<RankMask> alike(std::uint32_t count, const std::vector<unsigned>& pus) {
  std::vector<RankMask> masks;
  for (std::uint32_t rank = 0; rank < count; ++rank) masks.push_back({rank, pus});
  return masks;
}

TEST(CorePlan, RanksWithMasksOfTheirOwnUseThemWhole) {
  // The case of srun -n 8 -c 16 on 128 cores.
  const Topology host = machine("package:2 numa:4 core:16 pu:1");
  std::vector<RankMask> masks;
  for (unsigned rank = 0; rank < 8; ++rank) masks.push_back({rank, range(16 * rank, 16 * rank + 15)});
  const auto plan = plan_rank_cores(host, masks);
  for (unsigned rank = 0; rank < 8; ++rank)
    EXPECT_EQ(plan[rank], (RankCores{rank, range(16 * rank, 16 * rank + 15), false}));
}

TEST(CorePlan, HardwareThreadsOfOneCoreMayBelongToTwoRanks) {
  const Topology host = machine("core:2 pu:2");
  EXPECT_THAT(shown(plan_rank_cores(host, std::vector<RankMask>{{0, {0}}, {1, {1}}, {2, {2, 3}}})),
              ElementsAre("0: 0", "1: 1", "2: 2-3"));
}

TEST(CorePlan, RanksThatShareAMaskDivideItAlongNumaNodes) {
  const Topology host = machine("package:2 numa:2 core:7 pu:1");
  EXPECT_THAT(shown(plan_rank_cores(host, alike(4, range(0, 27)))),
              ElementsAre("0: 0-6", "1: 7-13", "2: 14-20", "3: 21-27"));
  EXPECT_THAT(shown(plan_rank_cores(host, alike(2, range(0, 27)))), ElementsAre("0: 0-13", "1: 14-27"));
  EXPECT_THAT(shown(plan_rank_cores(host, alike(8, range(0, 27)))),
              ElementsAre("0: 0-2", "1: 3-6", "2: 7-9", "3: 10-13", "4: 14-16", "5: 17-20", "6: 21-23", "7: 24-27"));
}

TEST(CorePlan, ABorderBetweenRanksMovesToOneBetweenPackages) {
  // The mask has 9 cores of the first package and 11 of the second.
  const Topology host = machine("package:2 core:16 pu:1");
  std::vector<unsigned> mask = range(7, 26);
  EXPECT_THAT(shown(plan_rank_cores(host, alike(2, mask))), ElementsAre("0: 7-15", "1: 16-26"));
  EXPECT_THAT(shown(plan_rank_cores(host, alike(3, range(0, 31)))), ElementsAre("0: 0-9", "1: 10-20", "2: 21-31"))
      << "too far away: the shares stay alike";
}

TEST(CorePlan, BothThreadsOfACoreGoToOneRank) {
  const Topology host = machine("core:4 pu:2");
  EXPECT_THAT(shown(plan_rank_cores(host, alike(2, range(0, 7)))), ElementsAre("0: 0-3", "1: 4-7"));
}

TEST(CorePlan, GroupsOfRanksDivideTheirOwnMasks) {
  const Topology host = machine("package:2 core:8 pu:1");
  std::vector<RankMask> masks{{4, range(0, 7)}, {5, range(8, 15)}, {6, range(0, 7)}, {7, range(8, 15)}};
  EXPECT_THAT(shown(plan_rank_cores(host, masks)), ElementsAre("4: 0-3", "5: 8-11", "6: 4-7", "7: 12-15"));
}

TEST(CorePlan, MasksThatOverlapInPartAreDealtOut) {
  const Topology host = machine("core:8 pu:1");
  const auto plan = plan_rank_cores(host, std::vector<RankMask>{{0, range(0, 4)}, {1, range(3, 7)}});
  EXPECT_THAT(shown(plan), ElementsAre("0: 0-3", "1: 4-7"));
  // One rank's mask lies inside another's.
  EXPECT_THAT(shown(plan_rank_cores(host, std::vector<RankMask>{{0, range(0, 7)}, {1, {2}}})),
              ElementsAre("0: 0-1,3-7", "1: 2"));
}

TEST(CorePlan, MoreRanksThanCoresShareThem) {
  const Topology host = machine("core:2 pu:1");
  EXPECT_THAT(shown(plan_rank_cores(host, alike(3, range(0, 1)))),
              ElementsAre("0: 0-1 crowded", "1: 0-1 crowded", "2: 0-1 crowded"));
  EXPECT_THAT(shown(plan_rank_cores(host, std::vector<RankMask>{{0, {0}}, {1, {0, 1}}, {2, {1}}})),
              ElementsAre("0: 0 crowded", "1: 0-1 crowded", "2: 1 crowded"));
}

TEST(CorePlan, UnknownHardwareThreadsAreIgnored) {
  const Topology host = machine("core:2 pu:1");
  EXPECT_THAT(shown(plan_rank_cores(host, std::vector<RankMask>{{0, {0, 77}}, {1, {88}}})), ElementsAre("0: 0", "1: "));
}

TEST(CorePlan, NoCoreIsGivenTwiceWhateverTheMasks) {
  const Topology host = machine("package:2 numa:2 core:6 pu:2");
  for (std::uint32_t count = 1; count <= 24; ++count) {
    std::set<unsigned> given;
    std::size_t fewest = 48, most = 0;
    for (const RankCores& rank : plan_rank_cores(host, alike(count, range(0, 47)))) {
      for (const unsigned pu : rank.pus) EXPECT_TRUE(given.insert(pu).second) << count << " ranks, thread " << pu;
      fewest = std::min(fewest, rank.pus.size());
      most = std::max(most, rank.pus.size());
    }
    EXPECT_EQ(given.size(), 48u) << count;
    EXPECT_LE(most, 2 * fewest) << count;
  }
}

TEST(CorePlan, ALauncherBindsToCoresNodesOrPackages) {
  const Topology host = machine("package:2 numa:2 core:4 pu:1");
  EXPECT_THAT(shown(plan_host(host, 8, 4, BindTo::core, MapBy::core)),
              ElementsAre("8: 0-3", "9: 4-7", "10: 8-11", "11: 12-15"));
  EXPECT_THAT(shown(plan_host(host, 0, 8, BindTo::numa, MapBy::core)),
              ElementsAre("0: 0-3", "1: 0-3", "2: 4-7", "3: 4-7", "4: 8-11", "5: 8-11", "6: 12-15", "7: 12-15"));
  EXPECT_THAT(shown(plan_host(host, 0, 2, BindTo::package, MapBy::core)), ElementsAre("0: 0-7", "1: 8-15"));
  EXPECT_THAT(shown(plan_host(host, 0, 2, BindTo::none, MapBy::core)),
              ElementsAre("0: 0-15 crowded", "1: 0-15 crowded"));
  EXPECT_THAT(shown(plan_host(host, 0, 1, BindTo::none, MapBy::core)), ElementsAre("0: 0-15"));
}

TEST(CorePlan, ConsecutiveRanksGoToOneNodeAfterTheOther) {
  const Topology host = machine("package:2 numa:2 core:4 pu:1");
  EXPECT_THAT(shown(plan_host(host, 0, 4, BindTo::core, MapBy::package)),
              ElementsAre("0: 0-3", "1: 8-11", "2: 4-7", "3: 12-15"));
  EXPECT_THAT(shown(plan_host(host, 0, 8, BindTo::core, MapBy::numa)),
              ElementsAre("0: 0-1", "1: 4-5", "2: 8-9", "3: 12-13", "4: 2-3", "5: 6-7", "6: 10-11", "7: 14-15"));
}

TEST(CorePlan, APictureShowsTheRankOfEachCore) {
  const Topology host = machine("package:2 numa:1 core:4 pu:1");
  EXPECT_EQ(draw_plan(host, plan_host(host, 0, 2, BindTo::core, MapBy::core)),
            "  package 0, NUMA node 0: 0000\n  package 1, NUMA node 1: 1111\n  rank 0: hardware threads 0-3\n"
            "  rank 1: hardware threads 4-7\n");
  const std::string shared = draw_plan(host, plan_host(host, 10, 2, BindTo::none, MapBy::core));
  EXPECT_THAT(shared, HasSubstr("NUMA node 0: ++++"));
  EXPECT_THAT(shared, HasSubstr("rank 11: hardware threads 0-7, shared with other ranks"));
}

TEST(PuList, ReadsNumbersAndRangesInTheirOrder) {
  EXPECT_THAT(parse_pu_list("16-18,0,3-4").value(), ElementsAre(16, 17, 18, 0, 3, 4));
  EXPECT_THAT(parse_pu_list("7").value(), ElementsAre(7));
  for (const char* const wrong : {"", "a", "1-", "-1", "3-1", "1,,2", "0-2,1", "9999999999", "1 2", "1,"})
    EXPECT_EQ(parse_pu_list(wrong).error().code, ErrorCode::invalid_argument) << wrong;
}

TEST(PuList, WritesRanges) {
  EXPECT_EQ(format_pu_list(std::vector<unsigned>{3, 1, 0, 2, 7, 9, 8}), "0-3,7-9");
  EXPECT_EQ(format_pu_list(std::vector<unsigned>{}), "");
}

}  // namespace
}  // namespace tandem::base::core_plan_test
