// tandem/runtime/sched/policies/pulling_policy_test.cpp: picks of pulling policies, by example, and prices, without
// threads.
#include "tandem/runtime/sched/policies/pulling_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/runtime/sched/placing/test_machine.hpp"
#include "tandem/runtime/sched/policies/prices.hpp"

namespace tandem::runtime::pulling_policy_test {
namespace {

constexpr std::int64_t kNow = 5'000;
constexpr std::uint32_t kInMain = 1;
constexpr std::uint32_t kOnFirstCard = 2;

/// Workers 0 and 1 are cores, 2 and 3 devices with memories 1 and 2. A copy of 1000 bytes takes 100 ns.
class Scene final : public ReadyView, public Estimates {
 public:
  Machine machine = two_cores_and_two_cards();
  std::vector<WorkerLoad> loads = std::vector<WorkerLoad>(4, {.free_ns = kNow});
  std::vector<LinkLoad> links = links_between_three(kNow);

  /// Adds a kind of tasks, of which `seen` were seen.
  unsigned kind(const char* codelet, double core_ns, double card_ns, double seen) {
    ReadyKind made;
    made.codelet = codelet;
    made.workers = workers_;
    made.by_kind = {{DeviceKind::cpu, 0, 2, {core_ns, 0, core_ns > 0}},
                    {DeviceKind::user, 2, 2, {card_ns, 0, card_ns > 0}}};
    made.given.resize(4);
    made.seen = seen;
    kinds_.push_back(std::move(made));
    return static_cast<unsigned>(kinds_.size() - 1);
  }
  /// Sets the power of a kernel of `kind`, as a part of the price of time; policies count it from now on.
  void draws(unsigned kind, double core, double card) {
    kinds_[kind].by_kind[0].draw = core;
    kinds_[kind].by_kind[1].draw = card;
    by_energy_ = true;
  }
  /// Adds a task. Returns its number.
  std::uint64_t add(unsigned kind, int priority = 0, std::vector<AccessView> data = {}) {
    kinds_[kind].tasks.insert({.priority = priority, .sequence = count_, .kind = kind});
    for (const AccessView& access : data) bytes_ += access.bytes;
    data_[count_] = std::move(data);
    return count_++;
  }
  /// Number of the task that `worker` gets; -1: none.
  int pick(const char* policy, unsigned worker) {
    prices_ = prices_of(kinds_, machine);
    const LoadView load{.machine = machine,
                        .estimates = *this,
                        .now_ns = kNow,
                        .workers = loads,
                        .links = links,
                        .prices = prices_,
                        .energy = by_energy_ ? &aim_ : nullptr};
    const OpenTask* const task = PolicyRegistry().make(policy)->pulling()->pick(worker, *this, load);
    return task == nullptr ? -1 : static_cast<int>(task->sequence);
  }

  /// Whether core 0 waits for `arriving` rather than beginning the first task of `kind`.
  bool holds(unsigned kind, std::span<const ArrivingTask> arriving) {
    const LoadView load{.machine = machine, .estimates = *this, .now_ns = kNow, .workers = loads, .links = links};
    return PolicyRegistry().make("plan")->pulling()->holds(0, *kinds_[kind].tasks.begin(), arriving, *this, load);
  }

  std::size_t count() const noexcept override { return count_; }
  std::size_t bytes() const noexcept override { return bytes_; }
  const std::vector<ReadyKind>& kinds() const noexcept override { return kinds_; }
  std::span<const AccessView> accesses(const OpenTask& task) const override { return data_.at(task.sequence); }
  bool works(unsigned) const noexcept override { return true; }
  Estimate expected_ns(std::string_view, model::Footprint, DeviceKind) const override { return {}; }

 private:
  std::vector<unsigned> workers_{0, 1, 2, 3};
  std::vector<ReadyKind> kinds_;
  std::map<std::uint64_t, std::vector<AccessView>> data_;
  std::size_t count_ = 0, bytes_ = 0;
  std::vector<double> prices_;
  const EnergyAim aim_{.powers = nullptr, .late_watts = 1};
  bool by_energy_ = false;
};

TEST(Prices, AreThoseOfTheAreaBound) {
  Scene scene;
  // The devices would need 100 x 10 / 2 for `large`, the cores 10 x 100 / 2 for `small`: each kind has its own work,
  // and as much as the other.
  scene.kind("large", 250, 10, 100);
  scene.kind("small", 100, 50, 10);
  const std::vector<double> prices = prices_of(scene.kinds(), scene.machine);
  EXPECT_NEAR(std::accumulate(prices.begin(), prices.end(), 0.0), 1, 1e-9);
  EXPECT_EQ(prices[0], prices[1]);
  EXPECT_EQ(prices[2], prices[3]);
  EXPECT_LT(100 * prices[0], 50 * prices[2]) << "`small` costs less on a core";
  EXPECT_GT(250 * prices[0], 10 * prices[2]) << "`large` costs less on a card";
}

TEST(Prices, OfAKindThatAllShareMakeItCostTheSameEverywhere) {
  std::mt19937 random(3);
  const auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
  for (int trial = 0; trial < 100; ++trial) {
    const double core_ns = 1 + draw(1000), card_ns = 1 + draw(1000);
    Scene scene;
    scene.kind("only", core_ns, card_ns, 10);
    const std::vector<double> prices = prices_of(scene.kinds(), scene.machine);
    EXPECT_NEAR(core_ns * prices[0] / (card_ns * prices[2]), 1, 0.08) << core_ns << " " << card_ns;
  }
}

TEST(Prices, AreEqualWhereNothingIsKnown) {
  Scene scene;
  EXPECT_EQ(prices_of(scene.kinds(), scene.machine), std::vector<double>(4, 0.25));
}

TEST(Prices, WithWhatKernelsDrawAreThoseOfTimeAndEnergyTogether) {
  std::mt19937 random(17);
  const auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
  for (int trial = 0; trial < 100; ++trial) {
    const double core_ns = 1 + draw(1000), card_ns = 1 + draw(1000), core_draw = draw(200) / 100.0,
                 card_draw = draw(200) / 100.0;
    Scene scene;
    scene.draws(scene.kind("only", core_ns, card_ns, 10), core_draw, card_draw);
    // The best part of the tasks on cores is found by brute force.
    double best = 1e300;
    for (int i = 0; i <= 1000; ++i) {
      const double cores = 10 * i / 1000.0, cards = 10 - cores;
      best = std::min(best, std::max(cores * core_ns / 2, cards * card_ns / 2) + cores * core_ns * core_draw +
                                cards * card_ns * card_draw);
    }
    const std::vector<double> prices = prices_of(scene.kinds(), scene.machine);
    const double dual = 10 * std::min(core_ns * (prices[0] + core_draw), card_ns * (prices[2] + card_draw));
    EXPECT_LE(dual, best * 1.001) << core_ns << " " << card_ns << " " << core_draw << " " << card_draw;
    EXPECT_GE(dual, best * 0.95) << core_ns << " " << card_ns << " " << core_draw << " " << card_draw;
  }
}

TEST(Plan, LeavesTasksToWorkersOnWhichTheyTakeLessEnergy) {
  for (const unsigned tasks : {4U, 100U}) {
    Scene scene;
    const unsigned kind = scene.kind("work", 1000, 200, 100);
    for (unsigned i = 0; i < tasks; ++i) scene.add(kind);
    EXPECT_EQ(scene.pick("plan", 2), 0) << tasks;
    scene.draws(kind, 0.5, 20);
    EXPECT_EQ(scene.pick("plan", 2), -1) << tasks << ": 4200 ns of time there, and 1500 at most on a core";
    EXPECT_EQ(scene.pick("plan", 0), 0) << tasks;
    scene.draws(kind, 8, 1);
    EXPECT_EQ(scene.pick("plan", 2), 0) << tasks;
    EXPECT_EQ(scene.pick("plan", 0), -1) << tasks;
  }
}

TEST(MostUrgentFirst, MergesKindsByPriorityThenByTheOrderOfTheFlow) {
  Scene scene;
  const unsigned a = scene.kind("a", 1, 1, 1), b = scene.kind("b", 1, 1, 1);
  const auto low = scene.add(a, 1), first = scene.add(b, 5), second = scene.add(a, 5), last = scene.add(b, -2);
  MostUrgentFirst tasks(scene.kinds());
  for (const auto expected : {first, second, low, last}) EXPECT_EQ(tasks.next()->sequence, expected);
  EXPECT_EQ(tasks.next(), nullptr);
}

TEST(HeteroPrio, TakesWhatGainsMostAndLeavesWhatOthersDoSooner) {
  Scene scene;
  const unsigned large = scene.kind("large", 250, 10, 10), small = scene.kind("small", 100, 50, 10);
  scene.add(large);
  scene.add(small, 7);
  EXPECT_EQ(scene.pick("heteroprio", 2), 0) << "25 times faster on a card";
  EXPECT_EQ(scene.pick("heteroprio", 0), -1) << "cards have run either in less than a core takes";
  for (int i = 0; i < 5; ++i) scene.add(small);
  EXPECT_EQ(scene.pick("heteroprio", 0), 1) << "6 x 50 / 2 > 100; the most urgent of these";
}

TEST(Darts, TakesATaskWithoutCopiesThenTheDatumThatFreesMost) {
  static const int data[5] = {};
  const auto in_main = [&](int datum) { return AccessView{AccessMode::read, 1'000, kInMain, 0, &data[datum]}; };
  Scene scene;
  const unsigned kind = scene.kind("work", 1000, 100, 10);
  scene.add(kind, 0, {in_main(0)});
  scene.add(kind, 0, {in_main(1)});
  scene.add(kind, 0, {in_main(1)});
  scene.add(kind, 0, {in_main(2), in_main(3)});
  EXPECT_EQ(scene.pick("darts", 2), 1) << "two tasks need datum 1 alone";
  scene.add(kind, -3, {{AccessMode::read, 1'000, kInMain | kOnFirstCard, 0, &data[4]}});
  EXPECT_EQ(scene.pick("darts", 2), 4) << "its data is on the first card";
  EXPECT_EQ(scene.pick("darts", 3), 1) << "but not on the second";
}

TEST(Darts, LooksFurtherWhereMemoryIsSmall) {
  static const int data[41] = {};
  const auto in_main = [&](int datum) { return AccessView{AccessMode::read, 1'000, kInMain, 0, &data[datum]}; };
  Scene scene;
  const unsigned kind = scene.kind("work", 1000, 100, 10);
  for (int i = 0; i < 40; ++i) scene.add(kind, 0, {in_main(i)});
  for (int i = 0; i < 2; ++i) scene.add(kind, 0, {in_main(40)});
  EXPECT_EQ(scene.pick("darts", 2), 0);
  scene.machine.nodes[1].budget = 10'000;
  EXPECT_EQ(scene.pick("darts", 2), 40) << "two tasks need its datum alone";
}

TEST(Plan, GivesFewTasksToThoseThatEndThemFirst) {
  Scene scene;
  const unsigned kind = scene.kind("work", 1000, 200, 10);
  scene.add(kind, 1);
  const auto urgent = static_cast<int>(scene.add(kind, 9));
  EXPECT_EQ(scene.pick("plan", 2), urgent);
  EXPECT_EQ(scene.pick("plan", 0), -1) << "the cards end both in 200";
  for (int i = 0; i < 9; ++i) scene.add(kind);
  EXPECT_NE(scene.pick("plan", 0), -1) << "the last of eleven would end after 1200 on the cards";
  EXPECT_NE(scene.pick("plan", 0), urgent);
}

TEST(Plan, LetsEachDoWhatItIsBestAtWhereThereIsMuch) {
  Scene scene;
  const unsigned large = scene.kind("large", 250, 10, 100), small = scene.kind("small", 100, 50, 10);
  for (int i = 0; i < 100; ++i) scene.add(large);
  for (int i = 0; i < 10; ++i) scene.add(small, 5);
  EXPECT_EQ(scene.pick("plan", 2), 0) << "though small ones are more urgent, and would end sooner here";
  EXPECT_EQ(scene.pick("plan", 0), 100);
}

TEST(Plan, TakesTheTaskWhoseDataIsThereAmongEquals) {
  static const int data[2] = {};
  Scene scene;
  const unsigned kind = scene.kind("work", 1000, 200, 10);
  scene.add(kind, 0, {{AccessMode::read, 1'000, kInMain, 0, &data[0]}});
  scene.add(kind, 0, {{AccessMode::read, 1'000, kOnFirstCard, 0, &data[1]}});
  EXPECT_EQ(scene.pick("plan", 2), 1);
  EXPECT_EQ(scene.pick("plan", 3), 0);
}

TEST(Plan, LoadsWhatFreesMostWhereMemoryIsSmallAndItWouldWait) {
  static const int data[4] = {};
  // Copied in 100 ns.
  const auto in_main = [&](int datum) { return AccessView{AccessMode::read, 1'000, kInMain, 0, &data[datum]}; };
  Scene scene;
  const unsigned kind = scene.kind("work", 10'000, 200, 10);
  scene.add(kind, 2, {in_main(0)});
  scene.add(kind, 2, {in_main(1), in_main(2)});
  scene.add(kind, 2, {in_main(3)});
  scene.add(kind, 2, {in_main(3)});
  for (int i = 0; i < 3; ++i) scene.add(kind, 1, {in_main(1)});
  scene.machine.nodes[1].budget = 1'000'000;
  EXPECT_EQ(scene.pick("plan", 2), 0) << "all data fits";
  scene.machine.nodes[1].budget = 5'000;
  EXPECT_EQ(scene.pick("plan", 2), 2) << "of those that are as urgent, two need datum 3 alone";
  scene.loads[2].free_ns = scene.loads[3].free_ns = kNow + 100;
  EXPECT_EQ(scene.pick("plan", 2), 0) << "copies run beside another kernel";
}

TEST(Plan, LeavesATaskToOthersWhereItWouldTakeFarTooLong) {
  Scene scene;
  const unsigned slow = scene.kind("slow on cards", 20, 2'000, 1);
  scene.kind("slower", 100, 20'000, 1'000);
  for (int i = 0; i < 13; ++i) scene.add(slow);
  EXPECT_EQ(scene.pick("plan", 2), -1) << "a card's time is worth a 200th of a core's, so that the task costs less "
                                          "there, but cores end all of them in 130";
  EXPECT_EQ(scene.pick("plan", 0), 12);
  for (int i = 0; i < 200; ++i) scene.add(slow);
  EXPECT_NE(scene.pick("plan", 2), -1);
}

TEST(Plan, HelpsWithWhatIsInASmallMemory) {
  static const int data[20] = {};
  Scene scene;
  scene.kind("large", 250, 10, 100);
  const unsigned small = scene.kind("small", 100, 50, 10);
  for (int i = 0; i < 20; ++i)
    scene.add(small, 0, {{AccessMode::read, 100, i == 12 ? kInMain | kOnFirstCard : kInMain, 0, &data[i]}});
  EXPECT_EQ(scene.pick("plan", 2), 19) << "small ones cost less on cores, which come to the last one late";
  scene.machine.nodes[1].budget = 1'000;
  EXPECT_EQ(scene.pick("plan", 2), 12) << "it is there";
  EXPECT_EQ(scene.pick("plan", 3), 19);
}

TEST(Plan, TakesALessUrgentTaskOnlyWhereItWouldWaitForCopies) {
  static const int data[2] = {};
  // Copied in 40 and 100 ns; a kernel takes 200, of which a quarter counts.
  for (const std::size_t bytes : {400U, 1'000U}) {
    Scene scene;
    const unsigned kind = scene.kind("work", 10'000, 200, 10);
    scene.add(kind, 5, {{AccessMode::read, bytes, kInMain, 0, &data[0]}});
    scene.add(kind, 3, {{AccessMode::read, bytes, kOnFirstCard, 0, &data[1]}});
    EXPECT_EQ(scene.pick("plan", 2), bytes == 400 ? 0 : 1);
    scene.loads[2].free_ns = kNow + 100;
    scene.loads[3].free_ns = kNow + 100;
    EXPECT_EQ(scene.pick("plan", 2), 0) << "copies run beside another kernel";
  }
}

TEST(PullingPolicies, HoldACoreWhereThatGainsMoreThanItCosts) {
  Scene scene;
  const unsigned large = scene.kind("large", 1000, 5000, 10), urgent = scene.kind("urgent", 100, 400, 10),
                 unknown = scene.kind("unknown", 0, 0, 10);
  scene.add(large, 1);
  scene.loads[1].free_ns = kNow + 2000;
  const auto holds = [&](ArrivingTask task) { return scene.holds(large, {&task, 1}); };
  EXPECT_TRUE(holds({.priority = 2, .kind = urgent, .due_ns = kNow + 100}))
      << "it ends after 200, and after 500 on a card";
  EXPECT_FALSE(holds({.priority = 1, .kind = urgent, .due_ns = kNow + 100})) << "it is as urgent";
  EXPECT_FALSE(holds({.priority = 2, .kind = urgent, .due_ns = kNow + 600}))
      << "the core would be idle for longer than it gains";
  EXPECT_TRUE(holds({.priority = 2, .kind = urgent, .due_ns = kNow - 50})) << "it is a little late";
  EXPECT_FALSE(holds({.priority = 2, .kind = unknown, .due_ns = kNow + 100}));
  const ArrivingTask two[] = {{.priority = 0, .kind = urgent, .due_ns = kNow},
                              {.priority = 2, .kind = urgent, .due_ns = kNow + 100}};
  EXPECT_TRUE(scene.holds(large, two));
  scene.loads[1].free_ns = kNow + 150;
  EXPECT_FALSE(holds({.priority = 2, .kind = urgent, .due_ns = kNow + 100})) << "the other core ends it after 250";
  scene.loads[1].free_ns = kNow;
  EXPECT_FALSE(holds({.priority = 2, .kind = urgent, .due_ns = kNow})) << "the other core is idle";
}

TEST(PullingPolicies, PickNothingThatIsNotThere) {
  std::mt19937 random(11);
  const auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
  for (const char* policy : {"heteroprio", "darts", "plan"})
    for (int trial = 0; trial < 300; ++trial) {
      Scene scene;
      const unsigned kinds = 1 + draw(5), tasks = 1 + draw(60);
      for (unsigned i = 0; i < kinds; ++i) scene.kind("kind", 1 + draw(1000), 1 + draw(1000), draw(100));
      for (unsigned i = 0; trial % 2 == 1 && i < kinds; ++i) scene.draws(i, draw(300) / 100.0, draw(300) / 100.0);
      for (unsigned i = 0; i < tasks; ++i) scene.add(draw(kinds), static_cast<int>(draw(4)));
      for (unsigned worker = 0; worker < 4; ++worker) {
        scene.loads[worker].free_ns += draw(2000);
        EXPECT_LT(scene.pick(policy, worker), static_cast<int>(tasks)) << policy;
      }
    }
}

}  // namespace
}  // namespace tandem::runtime::pulling_policy_test
