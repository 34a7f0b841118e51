// tandem/runtime/sched/policies/placing_policy_test.cpp: choices of placing policies, by example, without threads.
#include "tandem/runtime/sched/policies/placing_policy.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/sched/placing/test_machine.hpp"

namespace tandem::runtime::placing_policy_test {
namespace {

constexpr std::uint32_t kInMain = 1;
constexpr std::uint32_t kOnFirstCard = 2;

/// Workers 0 and 1 are cores, 2 and 3 devices with memories 1 and 2. A copy of 1000 bytes takes 100 ns. Kernels take
/// 1000 ns on a core, 200 on a device.
struct Scene {
  Machine machine = two_cores_and_two_cards();
  GivenDurations durations;
  std::vector<WorkerLoad> loads = std::vector<WorkerLoad>(4, {.free_ns = kNow});
  std::vector<LinkLoad> links = links_between_three(kNow);
  std::vector<AccessView> accesses;
  std::vector<unsigned> workers{0, 1, 2, 3};
  std::vector<std::uint32_t> alike = std::vector<std::uint32_t>(4);
  bool prefers_devices = false;
  std::uint64_t come = 1;
  static constexpr std::int64_t kNow = 5'000;

  Scene() { durations.of = {{DeviceKind::cpu, 1'000}, {DeviceKind::user, 200}}; }
  TaskView task() const {
    return {.codelet = "work",
            .accesses = accesses,
            .workers = workers,
            .alike = alike,
            .prefers_devices = prefers_devices,
            .come = come};
  }
  LoadView load() const {
    return {.machine = machine, .estimates = durations, .now_ns = kNow, .workers = loads, .links = links};
  }
  unsigned choice_of(const char* name) const {
    const auto policy = PolicyRegistry().make(name);
    return policy->placing()->choose(task(), load());
  }
  Transfers to(NodeIndex node) const { return transfers_to(task(), load(), node); }
};

TEST(Dm, GivesATaskToTheWorkerThatEndsItFirst) {
  Scene scene;
  EXPECT_EQ(scene.choice_of("dm"), 2U) << "a card is faster";
  scene.loads[2] = {Scene::kNow + 300, 1};
  EXPECT_EQ(scene.choice_of("dm"), 3U) << "the other one is free";
  scene.loads[3] = {Scene::kNow + 900, 3};
  EXPECT_EQ(scene.choice_of("dm"), 2U) << "300 + 200 on a card, 1000 on a core";
  scene.loads[2] = {Scene::kNow + 850, 4};
  EXPECT_EQ(scene.choice_of("dm"), 0U) << "now a core is sooner";
  scene.workers = {2, 3};
  EXPECT_EQ(scene.choice_of("dm"), 2U) << "which cannot run it";
}

TEST(Dm, DoesNotLookAtTheData) {
  Scene scene;
  scene.accesses = {{AccessMode::read, 1'000'000, kInMain, 0}};
  EXPECT_EQ(scene.choice_of("dm"), 2U);
}

TEST(Dmda, CountsTheCopiesOfTheData) {
  Scene scene;
  scene.accesses = {{AccessMode::read, 7'000, kInMain, 0}};
  EXPECT_EQ(scene.choice_of("dmda"), 2U) << "700 + 200 on a card, 1000 on a core";
  scene.accesses[0].bytes = 9'000;
  EXPECT_EQ(scene.choice_of("dmda"), 0U) << "900 + 200 on a card";
  scene.accesses[0].valid = kOnFirstCard;
  scene.loads[2].free_ns += 800;
  EXPECT_EQ(scene.choice_of("dmda"), 2U) << "the data is there";
  scene.accesses[0].mode = AccessMode::write;
  EXPECT_EQ(scene.choice_of("dmda"), 3U) << "what is replaced is not copied";
}

TEST(Dmda, WaitsForALinkThatIsBusy) {
  Scene scene;
  scene.accesses = {{AccessMode::read, 1'000, kInMain, 0}};
  scene.links[1].free_ns += 500;  // from memory 0 to 1
  EXPECT_EQ(scene.choice_of("dmda"), 3U) << "the link to the other card is free";
  scene.links[2].free_ns += 750;
  EXPECT_EQ(scene.choice_of("dmda"), 2U) << "500 + 100 + 200";
  scene.links[1].free_ns += 300;
  scene.links[2].free_ns += 300;
  EXPECT_EQ(scene.choice_of("dmda"), 0U) << "1000 on a core";
}

TEST(Dmdas, ChoosesAsDmdaAndSortsByPriority) {
  Scene scene;
  scene.accesses = {{AccessMode::read, 9'000, kInMain, 0}};
  EXPECT_EQ(scene.choice_of("dmdas"), 0U);
  const PolicyRegistry registry;
  EXPECT_TRUE(registry.make("dmdas")->by_priority());
  EXPECT_FALSE(registry.make("dmda")->by_priority());
}

TEST(PlacingPolicies, TryWorkersWhoseKindIsNotKnown) {
  for (const char* name : {"dm", "dmda", "dmdas"}) {
    Scene scene;
    scene.durations.of.erase(DeviceKind::cpu);
    EXPECT_EQ(scene.choice_of(name), 0U) << "a core has run none";
    scene.alike[0] = 1;
    EXPECT_EQ(scene.choice_of(name), 1U) << "the other one can try at the same time";
    scene.alike[1] = 1;
    EXPECT_EQ(scene.choice_of(name), 2U) << "the others need not wait for that";
    scene.durations.of.clear();
    scene.alike = {2, 1, 1, 1};
    scene.loads[1].tasks = 5;
    EXPECT_EQ(scene.choice_of(name), 2U) << "nothing is known: in turn";
  }
}

TEST(PlacingPolicies, TryCoresLateWhereTasksPreferDevices) {
  for (const char* name : {"dm", "dmda", "dmdas"}) {
    Scene scene;
    scene.prefers_devices = true;
    scene.durations.of.erase(DeviceKind::cpu);
    EXPECT_EQ(scene.choice_of(name), 2U) << "devices have little to do";
    scene.alike = {0, 0, 8, 7};
    EXPECT_EQ(scene.choice_of(name), 2U);
    scene.alike[3] = 8;
    EXPECT_EQ(scene.choice_of(name), 0U) << "eight wait for each device";
    scene.alike = {0, 0, 1, 1};
    scene.come = 32;
    EXPECT_EQ(scene.choice_of(name), 0U) << "many have come";
    scene.alike[0] = 1;
    scene.durations.missing = 2;
    EXPECT_EQ(scene.choice_of(name), 1U) << "one more will make it known";
    scene.durations.missing = 1;
    EXPECT_EQ(scene.choice_of(name), 2U) << "the one under way is enough";
    scene.durations.of.clear();
    scene.alike = {0, 0, 2, 1};
    EXPECT_EQ(scene.choice_of(name), 3U) << "nothing is known: devices, in turn";
    scene.workers = {0, 1};
    EXPECT_EQ(scene.choice_of(name), 0U) << "there is no device that can run it";
  }
}

TEST(PlacingPolicies, TakeOfWorkersThatAreEqualTheFirst) {
  for (const char* name : {"dm", "dmda", "dmdas"}) {
    Scene scene;
    scene.durations.of[DeviceKind::user] = 1'000;
    EXPECT_EQ(scene.choice_of(name), 0U);
    scene.loads[0].free_ns += 1;
    EXPECT_EQ(scene.choice_of(name), 1U);
  }
}

TEST(TransfersTo, AMemoryAreThoseOfDataThatIsNotThere) {
  Scene scene;
  scene.accesses = {{AccessMode::read, 1'000, kInMain, 0},
                    {AccessMode::read_write, 2'000, kOnFirstCard, 0},
                    {AccessMode::write, 4'000, kInMain, 0},
                    {AccessMode::commute, 8'000, kInMain | kOnFirstCard, 0}};
  EXPECT_EQ(scene.to(0).alone_ns, 200);
  EXPECT_EQ(scene.to(1).alone_ns, 100);
  EXPECT_EQ(scene.to(2).alone_ns, 1'100);
  EXPECT_EQ(scene.to(2).ready_ns, Scene::kNow + 1'100);
}

TEST(TransfersTo, AMemoryDoNotCountDataThatComesThereAnyway) {
  Scene scene;
  scene.accesses = {{AccessMode::read, 1'000, kInMain, kOnFirstCard}};
  scene.links[1].free_ns += 400;
  EXPECT_EQ(scene.to(1).alone_ns, 0);
  EXPECT_EQ(scene.to(1).ready_ns, Scene::kNow + 400) << "but it has to arrive";
  EXPECT_EQ(scene.to(2).alone_ns, 100);
}

}  // namespace
}  // namespace tandem::runtime::placing_policy_test
