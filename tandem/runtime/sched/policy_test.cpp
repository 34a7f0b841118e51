// tandem/runtime/sched/policy_test.cpp: decisions of each policy, by example.
#include "tandem/runtime/sched/policy.hpp"

#include <set>

#include <gtest/gtest.h>

namespace tandem::runtime::policy_test {
namespace {

const ReadyTask kTask{};
using Order = std::vector<unsigned>;

TEST(Policy, TheRegistryKnowsTheBuiltInOnes) {
  const PolicyRegistry registry;
  for (const char* name :
       {"eager", "prio", "lws", "random", "dm", "dmda", "dmdas", "dmdar", "heteroprio", "darts", "plan"}) {
    const auto policy = registry.make(name);
    ASSERT_NE(policy, nullptr) << name;
    EXPECT_EQ(policy->name(), name);
    EXPECT_FALSE(policy->help().empty());
  }
  EXPECT_EQ(registry.names().size(), 11U);
  EXPECT_EQ(registry.make("no such"), nullptr);
}

TEST(Policy, AUsersOwnIsFoundAndMayReplaceABuiltInOne) {
  PolicyRegistry registry;
  registry.add("mine", make_prio);
  registry.add("lws", make_eager);
  EXPECT_EQ(registry.make("mine")->name(), "prio");
  EXPECT_EQ(registry.make("lws")->name(), "eager");
  EXPECT_EQ(registry.names().size(), 12U);
}

TEST(Policy, EagerAndPrioHaveOneQueueAndDifferInPriorities) {
  EXPECT_FALSE(make_eager()->queue_per_worker());
  EXPECT_FALSE(make_prio()->queue_per_worker());
  EXPECT_FALSE(make_eager()->by_priority());
  EXPECT_TRUE(make_prio()->by_priority());
  EXPECT_FALSE(make_eager()->keeps_released());
  EXPECT_TRUE(make_eager()->victims(0, Order{0, 1}).empty());
}

TEST(Policy, LwsLeavesATaskWithWhoMadeItReady) {
  const auto lws = make_lws();
  EXPECT_TRUE(lws->queue_per_worker() && lws->by_priority() && lws->keeps_released());
  for (unsigned from = 0; from < 4; ++from) EXPECT_EQ(lws->place(kTask, {.from = from, .worker_count = 4}), from);
}

TEST(Policy, LwsSpreadsSubmittedTasksOverTheOthersInRuns) {
  const auto lws = make_lws();
  EXPECT_EQ(lws->place(kTask, {.worker_count = 1}), 0U);
  std::vector<unsigned> count(4, 0);
  unsigned changes = 0;
  unsigned last = ~0U;
  for (std::uint64_t sequence = 0; sequence < 240; ++sequence) {
    const unsigned at = lws->place(kTask, {.worker_count = 4, .sequence = sequence});
    ASSERT_LT(at, 4U);
    ++count[at];
    changes += at != last ? 1 : 0;
    last = at;
  }
  EXPECT_EQ(count, (std::vector<unsigned>{0, 80, 80, 80}));
  EXPECT_LE(changes, 60U);
}

TEST(Policy, LwsStealsFromTheNearestFirst) {
  // Worker 1 and worker 3 share a cache.
  EXPECT_EQ(make_lws()->victims(1, Order{2, 0, 4, 1}), (Order{3, 0, 2}));
  // Equal victims come from the thief's own index upwards, so that thieves do not all start with worker 0.
  EXPECT_EQ(make_lws()->victims(2, Order{1, 1, 0, 1, 1}), (Order{3, 4, 0, 1}));
}

TEST(Policy, RandomPlacesByWhatWasDrawnAndReachesEverybody) {
  const auto random = make_random();
  std::set<unsigned> reached;
  for (std::uint64_t drawn = 0; drawn < 100; ++drawn) {
    const Situation now{.from = 1, .worker_count = 5, .random = drawn * 7919};
    const unsigned at = random->place(kTask, now);
    EXPECT_EQ(at, random->place(kTask, now)) << "a policy is a function of what it is given";
    reached.insert(at);
  }
  EXPECT_EQ(reached, (std::set<unsigned>{0, 1, 2, 3, 4}));
}

TEST(Policy, ALongTaskIsNotBegunShortlyBeforeAMoreUrgentOne) {
  for (const auto& policy : {make_lws(), make_prio()}) {
    EXPECT_TRUE(policy->waits(kTask, 1000, kTask.priority + 1, 499)) << policy->name();
    EXPECT_FALSE(policy->waits(kTask, 1000, kTask.priority + 1, 500)) << "as much is lost as is gained";
    EXPECT_FALSE(policy->waits(kTask, 1000, kTask.priority, 1));
  }
  EXPECT_FALSE(make_eager()->waits(kTask, 1000, kTask.priority + 1, 1)) << "it knows no priorities";
}

}  // namespace
}  // namespace tandem::runtime::policy_test
