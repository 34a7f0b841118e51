// tandem/api/rank_cores_test.cpp: lists of cores, and ranks of one host that agree on theirs.
#include "tandem/api/rank_cores.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tandem/api/configure.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/affinity.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/pu_list.hpp"
#include "tandem/comm/bootstrap/thread_job.hpp"

namespace tandem::rank_cores_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

base::Config config_with(const std::vector<std::pair<std::string, std::string>>& values) {
  base::Registry registry;
  register_options(registry);
  base::Config config(registry);
  for (const auto& [name, value] : values) EXPECT_TRUE(config.set(name, value).ok()) << name;
  return config;
}

TEST(RankCores, OneListIsForEveryRank) {
  EXPECT_THAT(cores_of_option("0-3,8", 1, 2).value(), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(cores_of_option("5", 0, 1).value(), ElementsAre(5));
}

TEST(RankCores, AListForEachRankOfTheHost) {
  EXPECT_THAT(cores_of_option("0-1;2-3;7", 1, 3).value(), ElementsAre(2, 3));
  EXPECT_THAT(cores_of_option("0-1;2-3;7", 2, 3).value(), ElementsAre(7));
  EXPECT_THAT(cores_of_option("0;1", 0, 3).error().message,
              HasSubstr("has 2 lists, but this host has 3 of the job's ranks"));
  EXPECT_THAT(cores_of_option("0;x", 1, 2).error().message, HasSubstr("option cores: 'x'"));
}

/// Cores that each of `count` ranks, one thread each, finds.
struct Found {
  bool own = false;
  std::vector<unsigned> pus, home;
};
std::vector<Found> find(std::uint32_t count, const std::vector<std::vector<unsigned>>& masks = {}) {
  auto jobs = comm::make_thread_job(count);
  std::vector<Found> found(count);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      if (!masks.empty()) {
        ASSERT_TRUE(base::set_affinity_of_this_thread(masks[rank]).ok());
      }
      WorldResources resources;
      resources.log = std::make_unique<base::Log>(base::LogLevel::error);
      resources.ranks_here = count;
      comm::Job job = jobs[rank];
      for (std::uint32_t other = 0; other < count; ++other) job.here.emplace_back(other);
      find_cores(config_with({}), &job, resources);
      found[rank].own = resources.has_own_cores;
      for (const base::Core& core : resources.topology->cores())
        found[rank].pus.insert(found[rank].pus.end(), core.pus.begin(), core.pus.end());
      if (resources.home != nullptr) found[rank].home = base::affinity_of_this_thread();
    });
  for (std::thread& thread : threads) thread.join();
  return found;
}

TEST(RankCores, RanksWithOneMaskDivideIt) {
  const std::size_t cores = base::Topology::discover().value().cores().size();
  if (cores < 2) GTEST_SKIP() << "one core";
  std::set<unsigned> seen;
  for (const Found& rank : find(2)) {
    EXPECT_TRUE(rank.own);
    EXPECT_EQ(rank.home, rank.pus) << "the thread and those that it makes stay there";
    for (const unsigned pu : rank.pus) EXPECT_TRUE(seen.insert(pu).second) << pu;
  }
  EXPECT_EQ(seen.size(), base::affinity_of_this_thread().size());
}

TEST(RankCores, MoreRanksThanCoresAreNotBound) {
  const auto cores = static_cast<std::uint32_t>(base::Topology::discover().value().cores().size());
  if (cores > 16) GTEST_SKIP() << "many cores";
  for (const Found& rank : find(cores + 1)) {
    EXPECT_FALSE(rank.own);
    EXPECT_TRUE(rank.home.empty());
    EXPECT_EQ(rank.pus.size(), base::affinity_of_this_thread().size());
  }
}

TEST(RankCores, AListBindsARankThatIsAlone) {
  const unsigned last = base::affinity_of_this_thread().back();
  std::thread([last] {
    WorldResources resources;
    resources.log = std::make_unique<base::Log>(base::LogLevel::error);
    find_cores(config_with({{"cores", std::to_string(last)}}), nullptr, resources);
    ASSERT_EQ(resources.topology->cores().size(), 1u);
    EXPECT_THAT(resources.topology->cores()[0].pus, ElementsAre(last));
    EXPECT_THAT(base::affinity_of_this_thread(), ElementsAre(last));
    const auto plan = plan_workers(*resources.topology, std::nullopt, config_with({}));
    EXPECT_EQ(plan.size(), 1u);
    EXPECT_THROW(find_cores(config_with({{"cores", "99999"}}), nullptr, resources), StartError);
  }).join();
}

TEST(RankCores, TheCallerAndTheFirstWorkersAreOnItsNumaNode) {
  const auto machine = base::Topology::synthetic("numa:2 core:3 pu:1").value();
  const auto places = [&machine](const std::vector<std::pair<std::string, std::string>>& options) {
    std::vector<std::size_t> numa;
    for (const WorkerPlacement& placement : plan_workers(machine, std::nullopt, config_with(options)))
      numa.push_back(machine.numa_place_of(core_of(placement, machine)));
    return numa;
  };
  EXPECT_THAT(places({}), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(places({{"caller.numa", "1"}}), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(places({{"caller.numa", "1"}, {"workers", "4"}}), ElementsAre(1, 1, 1, 0));
  EXPECT_THROW(places({{"caller.numa", "2"}}), StartError);
}

TEST(RankCores, TheCallerIsBoundToItsNumaNode) {
  const auto before = base::affinity_of_this_thread();
  std::thread([&before] {
    WorldResources resources;
    resources.log = std::make_unique<base::Log>(base::LogLevel::error);
    find_cores(config_with({{"caller.numa", "0"}}), nullptr, resources);
    ASSERT_NE(resources.home, nullptr);
    for (const unsigned pu : base::affinity_of_this_thread()) EXPECT_THAT(before, testing::Contains(pu));
    EXPECT_THROW(find_cores(config_with({{"caller.numa", "99"}}), nullptr, resources), StartError);
  }).join();
}

TEST(RankCores, WorkersFillTheCoresOfARankThatHasThemForItself) {
  const auto machine = base::Topology::synthetic("core:16 pu:1").value();
  const auto bound = [&](const std::vector<std::pair<std::string, std::string>>& options, RankShare share,
                         std::optional<double> quota = {}) {
    const auto plan = plan_workers(machine, quota, config_with(options), share);
    std::size_t count = 0;
    for (const WorkerPlacement& placement : plan) count += placement.core.has_value();
    return std::pair(plan.size(), count);
  };
  EXPECT_EQ(bound({}, {8, true}), std::pair(std::size_t(16), std::size_t(15))) << "srun -n 8 -c 16";
  EXPECT_EQ(bound({}, {8, false}), std::pair(std::size_t(2), std::size_t(0))) << "the masks are not known";
  EXPECT_EQ(bound({}, {32, false}), std::pair(std::size_t(1), std::size_t(0)));
  EXPECT_EQ(bound({{"workers", "4"}}, {8, true}), std::pair(std::size_t(4), std::size_t(3)));
  EXPECT_EQ(bound({}, {4, true}, 8.0), std::pair(std::size_t(2), std::size_t(1)))
      << "the ranks of a container share its quota";
}

}  // namespace
}  // namespace tandem::rank_cores_test
