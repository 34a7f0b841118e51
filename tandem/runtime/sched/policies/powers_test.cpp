// tandem/runtime/sched/policies/powers_test.cpp: powers of a machine, the price of time, and the worker with the least
// energy, by example.
#include "tandem/runtime/sched/policies/powers.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "tandem/runtime/sched/placing/test_machine.hpp"
#include "tandem/runtime/sched/policies/placing_policy.hpp"

namespace tandem::runtime::powers_test {
namespace {

Machine machine_with_powers() {
  Machine machine = two_cores_and_two_cards();
  machine.workers[0].power = WorkerPower{.running_watts = 12, .idle_watts = 2};
  machine.workers[1].power = WorkerPower{.running_watts = 16, .idle_watts = 2};
  machine.workers[2].power = machine.workers[3].power = WorkerPower{.running_watts = 320, .idle_watts = 20};
  return machine;
}

TEST(MachinePowers, AreMeansOfAKindAndSumsOfAll) {
  const MachinePowers powers(machine_with_powers());
  EXPECT_EQ(powers.kernel_watts("any", DeviceKind::cpu), 12);
  EXPECT_EQ(powers.kernel_watts("any", DeviceKind::user), 300);
  EXPECT_EQ(powers.kernel_watts("any", DeviceKind::cuda), std::nullopt);
  EXPECT_EQ(powers.idle_watts(), 44);
  EXPECT_EQ(powers.full_watts(), 668);
}

TEST(MachinePowers, AreThereWhenEachKindHasSome) {
  Machine machine = machine_with_powers();
  machine.workers[1].power.reset();
  machine.workers[3].power.reset();
  EXPECT_TRUE(MachinePowers::are_in(machine));
  machine.workers[2].power.reset();
  EXPECT_FALSE(MachinePowers::are_in(machine));
  EXPECT_FALSE(MachinePowers::are_in(two_cores_and_two_cards()));
}

TEST(EnergyAim, PricesTimeByTheIdlePowerAndForTheProductByTheFullOneToo) {
  const MachinePowers powers(machine_with_powers());
  EXPECT_EQ(EnergyAim::of(Objective::energy, powers).late_watts, 44);
  EXPECT_EQ(EnergyAim::of(Objective::edp, powers).late_watts, 44 + 668);
  Machine machine = two_cores_and_two_cards();
  for (MachineWorker& worker : machine.workers) worker.power = WorkerPower{.running_watts = 25, .idle_watts = 0};
  EXPECT_EQ(EnergyAim::of(Objective::energy, MachinePowers(machine)).late_watts, 1) << "a hundredth of all";
}

/// Powers that depend on the kind of worker alone.
class Given final : public Powers {
 public:
  std::map<DeviceKind, double> of;
  std::optional<double> kernel_watts(std::string_view, DeviceKind kind) const override {
    const auto known = of.find(kind);
    return known != of.end() ? std::optional(known->second) : std::nullopt;
  }
  double idle_watts() const override { return 10; }
  double full_watts() const override { return 1000; }
};

/// A kernel takes 1000 ns and 5 W on a core, 200 ns and 100 W on a device; time costs 10 W. A copy of 1000 bytes takes
/// 100 ns.
struct Scene {
  static constexpr std::int64_t kNow = 5'000;
  Machine machine = two_cores_and_two_cards();
  Given powers;
  GivenDurations durations;
  EnergyAim aim{.powers = &powers, .late_watts = 10};
  std::vector<WorkerLoad> loads = std::vector<WorkerLoad>(4, {.free_ns = kNow});
  std::vector<LinkLoad> links = links_between_three(kNow);
  std::vector<AccessView> accesses;
  std::vector<unsigned> workers{0, 1, 2, 3};

  Scene() {
    durations.of = {{DeviceKind::cpu, 1'000}, {DeviceKind::user, 200}};
    powers.of = {{DeviceKind::cpu, 5}, {DeviceKind::user, 100}};
  }
  unsigned choice_of(const char* policy, bool by_energy = true) const {
    const TaskView task{.codelet = "work", .accesses = accesses, .workers = workers, .alike = {}};
    const LoadView load{.machine = machine,
                        .estimates = durations,
                        .now_ns = kNow,
                        .workers = loads,
                        .links = links,
                        .energy = by_energy ? &aim : nullptr};
    return PolicyRegistry().make(policy)->placing()->choose(task, load);
  }
};

TEST(LeastEnergy, IsThatOfTheKernelAndOfTheTimeByWhichAllEndsLater) {
  for (const char* policy : {"dm", "dmda", "dmdas", "dmdar"}) {
    Scene scene;
    EXPECT_EQ(scene.choice_of(policy, false), 2U) << policy;
    EXPECT_EQ(scene.choice_of(policy), 0U) << policy << ": 5 + 10 W for 1000 ns, and 110 W for 200 ns on a card";
    scene.powers.of[DeviceKind::user] = 50;
    EXPECT_EQ(scene.choice_of(policy), 2U) << policy << ": 60 W for 200 ns";
    scene.loads[3].free_ns += 5'000;
    EXPECT_EQ(scene.choice_of(policy), 0U)
        << policy << ": the other card works for longer than that, so a core costs 5 W for 1000 ns";
    scene.loads[0].free_ns += 3'000;
    EXPECT_EQ(scene.choice_of(policy), 1U) << policy << ": which costs as little, and ends it sooner";
  }
}

TEST(LeastEnergy, IsSharedByTheWorkersOfAKindThatAllHaveTasks) {
  Scene scene;
  scene.powers.of[DeviceKind::user] = 60;
  scene.loads[0].free_ns = scene.loads[1].free_ns = Scene::kNow + 2'000;
  scene.loads[2].free_ns = scene.loads[3].free_ns = Scene::kNow + 2'000;
  // A core costs 5 W and half of 10 W for 1000 ns, a device 60 W and half of 10 W for 200 ns.
  EXPECT_EQ(scene.choice_of("dmda"), 0U);
  scene.powers.of[DeviceKind::user] = 40;
  EXPECT_EQ(scene.choice_of("dmda"), 2U);
}

TEST(LeastEnergy, CountsTheTimeOfCopies) {
  Scene scene;
  scene.powers.of[DeviceKind::user] = 50;
  scene.accesses = {{AccessMode::read, 7'000, 1, 0}};
  EXPECT_EQ(scene.choice_of("dm"), 2U);
  EXPECT_EQ(scene.choice_of("dmda"), 0U) << "50 W for 200 ns and 10 W for 900, against 15 W for 1000";
}

TEST(LeastEnergy, WithoutThePowerOfSomeKindIsTheLeastTime) {
  Scene scene;
  scene.powers.of.erase(DeviceKind::user);
  EXPECT_EQ(scene.choice_of("dmda"), 2U);
  scene.workers = {0, 1};
  EXPECT_EQ(scene.choice_of("dmda"), 0U);
}

TEST(LeastEnergy, WorkersOfUnknownDurationsAreTriedAsBefore) {
  Scene scene;
  scene.durations.of.erase(DeviceKind::cpu);
  scene.loads[0].free_ns += 10;
  EXPECT_EQ(scene.choice_of("dmda"), 1U);
}

}  // namespace
}  // namespace tandem::runtime::powers_test
