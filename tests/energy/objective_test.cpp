// tests/energy/objective_test.cpp: schedules by energy and by time on modelled machines whose workers' powers are
// known.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::objective_test {
namespace {

using runtime::Objective;
using runtime::WorkerPower;
using testing::HasSubstr;

/// Four cores and a card. Times are of a kernel, powers of a worker.
struct Modelled {
  std::int64_t core_ns = 40'000'000, card_ns = 4'000'000;
  std::optional<WorkerPower> core = WorkerPower{.running_watts = 6, .idle_watts = 1},
                             card = WorkerPower{.running_watts = 320, .idle_watts = 20};
};

/// What earlier runs have measured.
class Known final : public runtime::Estimates {
 public:
  explicit Known(const Modelled& modelled) : modelled_(modelled) {}
  runtime::Estimate expected_ns(std::string_view codelet, model::Footprint, DeviceKind kind) const override {
    return {codelet != "work" ? 1'000
                              : static_cast<double>(kind == DeviceKind::cpu ? modelled_.core_ns : modelled_.card_ns),
            0, true};
  }

 private:
  const Modelled modelled_;
};

struct Outcome {
  double joules = 0, seconds = 0;
  std::uint64_t on_card = 0;
  std::string log;
  runtime::EnergyReport energy;
};

/// Independent tasks, or a chain of them.
Outcome run(const Modelled& modelled, const std::string& sched, Objective objective, unsigned tasks = 400,
            bool is_chain = false) {
  runtime::CoreOptions options;
  options.emulation = [&](const runtime::EmulatedTask& task) -> std::optional<runtime::EmulatedWork> {
    if (task.codelet != "work") return {};
    return task.device == DeviceKind::cpu ? modelled.core_ns : modelled.card_ns;
  };
  options.tasks_per_step = 1;
  options.objective = objective;
  test::LogLines lines;
  auto resources = test::test_resources(&lines);
  runtime::World world = make_test_world({.workers = 4,
                                          .sched = sched,
                                          .devices = 1,
                                          .link = runtime::MachineLink{.bytes_per_ns = 10, .latency_ns = 1'000}},
                                         *resources);
  for (runtime::MachineWorker& worker : world.machine.workers)
    worker.power = worker.kind == DeviceKind::cpu ? modelled.core : modelled.card;
  world.estimates = std::make_unique<Known>(modelled);
  world.caller_works = false;  // all four cores are there from the first task on
  base::EventLoop& loop = *resources->loop;
  Outcome result;
  {
    Runtime rt(std::move(resources), std::move(world), options);
    const auto work = [](MatrixView<double>) {};
    const auto codelet = Codelet("work", work).also(DeviceKind::user, work);
    const auto fill = Codelet("fill", [](MatrixView<double>) {});
    std::vector<Data<Matrix<double>>> data;
    for (unsigned i = 0; i < (is_chain ? 1 : tasks); ++i) {
      data.push_back(rt.matrix<double>("data", 4, 4));
      rt.submit(fill, write(data.back()));
    }
    rt.wait();
    const std::int64_t began_ns = loop.now_ns();
    for (unsigned i = 0; i < tasks; ++i) rt.submit(codelet, read_write(data[is_chain ? 0 : i]));
    rt.wait();
    result.seconds = static_cast<double>(loop.now_ns() - began_ns) * 1e-9;
    const runtime::StatisticsReport report = rt.statistics();
    result.energy = report.energy;
    result.joules = report.energy.joules();
    result.on_card = report.workers.back().tasks;
  }
  result.log = lines.all();
  return result;
}

const std::vector<std::string> kPolicies{"dm", "dmda", "dmdas", "dmdar", "plan", "heteroprio", "darts"};

TEST(Objective, WhereSlowWorkersTakeLessEnergyTakesLessEnergyAndByTimeIsFaster) {
  // A kernel adds 5 W * 40 ms = 0.2 J on a core, 300 W * 4 ms = 1.2 J on the card; the machine draws 24 W while it is
  // idle.
  for (const std::string& sched : kPolicies) {
    const Outcome by_time = run({}, sched, Objective::time), by_energy = run({}, sched, Objective::energy);
    EXPECT_LT(by_energy.joules, 0.8 * by_time.joules) << sched;
    EXPECT_LT(by_time.seconds, 0.5 * by_energy.seconds) << sched;
    EXPECT_LT(by_energy.on_card, by_time.on_card / 4) << sched;
    EXPECT_EQ(by_time.log + by_energy.log, "") << sched;
    // All on cores is the least: 400 * 0.2 J, and 24 W for 400 * 40 ms / 4.
    EXPECT_LT(by_energy.joules, 1.05 * (400 * 0.2 + 24 * 4)) << sched;
  }
}

TEST(Objective, WhereTheFastWorkersTakeLessEnergyTheSlowOnesMayStayIdle) {
  const Modelled modelled{.core = WorkerPower{.running_watts = 31, .idle_watts = 1},
                          .card = WorkerPower{.running_watts = 70, .idle_watts = 20}};
  // 1.2 J on a core, 0.2 J on the card, and 24 W: a core that runs a task saves the card 4 ms, or 0.096 J.
  for (const std::string& sched : kPolicies) {
    const Outcome by_time = run(modelled, sched, Objective::time), by_energy = run(modelled, sched, Objective::energy);
    EXPECT_LT(by_energy.joules, 0.85 * by_time.joules) << sched;
    EXPECT_GT(by_energy.on_card, 390U) << sched;
    EXPECT_LT(by_time.on_card, 350U) << sched;
  }
}

TEST(Objective, WithEqualPowersAndNoDynamicPowerIsThatOfTime) {
  // What is drawn does not depend on what runs: the least energy is the least time.
  const Modelled modelled{.core = WorkerPower{.running_watts = 10, .idle_watts = 10},
                          .card = WorkerPower{.running_watts = 10, .idle_watts = 10}};
  for (const std::string& sched : kPolicies) {
    const Outcome by_time = run(modelled, sched, Objective::time), by_energy = run(modelled, sched, Objective::energy);
    EXPECT_NEAR(by_energy.seconds, by_time.seconds, 0.06 * by_time.seconds) << sched;
    EXPECT_NEAR(by_energy.joules, by_time.joules, 0.06 * by_time.joules) << sched;
  }
}

TEST(Objective, WithEqualWorkersIsThatOfTime) {
  const WorkerPower power{.running_watts = 12, .idle_watts = 2};
  const Modelled modelled{.core_ns = 10'000'000, .card_ns = 10'000'000, .core = power, .card = power};
  for (const std::string& sched : kPolicies) {
    const Outcome by_time = run(modelled, sched, Objective::time), by_energy = run(modelled, sched, Objective::energy);
    EXPECT_NEAR(by_energy.seconds, by_time.seconds, 0.05 * by_time.seconds) << sched;
  }
}

TEST(Objective, OfAChainIsDecidedByEachTask) {
  // On a core: 0.2 J, and 24 W * 40 ms = 0.96 J. On the card: 1.2 J, and 24 W * 4 ms = 0.096 J: less than 1.16 J by a
  // cheaper card alone.
  Modelled modelled;
  modelled.card->running_watts = 420;  // 1.6 J, and 0.096 J
  for (const std::string& sched : kPolicies)
    EXPECT_LT(run(modelled, sched, Objective::energy, 100, true).on_card, 10U) << sched;
  modelled.card->running_watts = 120;  // 0.4 J, and 0.096 J
  for (const std::string& sched : kPolicies)
    EXPECT_GT(run(modelled, sched, Objective::energy, 100, true).on_card, 90U) << sched;
}

TEST(Objective, OfTheProductIsBetweenTimeAndEnergy) {
  for (const std::string sched : {"dmda", "plan", "heteroprio", "darts"}) {
    const Outcome by_time = run({}, sched, Objective::time), by_product = run({}, sched, Objective::edp),
                  by_energy = run({}, sched, Objective::energy);
    const auto product = [](const Outcome& one) { return one.joules * one.seconds; };
    EXPECT_LE(by_product.seconds, 1.01 * by_energy.seconds) << sched;
    EXPECT_GE(by_product.seconds, 0.99 * by_time.seconds) << sched;
    EXPECT_LE(product(by_product), 1.02 * std::min(product(by_time), product(by_energy))) << sched;
  }
}

TEST(Objective, OfEnergyTakesNoMoreOfItThanThatOfTimeOnRandomMachines) {
  double log_ratios = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto real = [&](double from, double to) {
      return from * std::pow(to / from, static_cast<double>(random() >> 11) * 0x1p-53);
    };
    const auto power = [&](double most) {
      const double idle = real(0.5, most / 4);
      return WorkerPower{.running_watts = idle + real(0.5, most), .idle_watts = idle};
    };
    const auto core_ns = static_cast<std::int64_t>(real(2e6, 60e6)),
               card_ns = static_cast<std::int64_t>(real(2e6, 20e6));
    const Modelled modelled{.core_ns = core_ns, .card_ns = card_ns, .core = power(30), .card = power(400)};
    const bool is_chain = seed % 3 == 0;
    const unsigned tasks = is_chain ? 40 : 20 + static_cast<unsigned>(random() % 300);
    for (const std::string sched : {"dm", "dmda", "plan", "heteroprio", "darts"}) {
      const Outcome by_time = run(modelled, sched, Objective::time, tasks, is_chain),
                    by_energy = run(modelled, sched, Objective::energy, tasks, is_chain);
      EXPECT_LT(by_energy.joules, 1.05 * by_time.joules) << sched << ", seed " << seed;
      EXPECT_LT(by_time.seconds, 1.25 * by_energy.seconds)
          << sched << ", seed " << seed << ": no policy is the best everywhere, in time either";
      log_ratios += std::log(by_energy.seconds / by_time.seconds);
    }
  }
  EXPECT_GT(log_ratios, 0);
}

TEST(Objective, WithoutKnownPowersWarnsOnceAndIsTime) {
  const Modelled modelled{.core = {}, .card = {}};
  for (const std::string sched : {"dmda", "plan"}) {
    const Outcome by_time = run(modelled, sched, Objective::time), by_energy = run(modelled, sched, Objective::energy);
    EXPECT_EQ(by_time.seconds, by_energy.seconds) << sched;
    EXPECT_EQ(by_time.log, "");
    EXPECT_THAT(
        by_energy.log,
        HasSubstr("option objective=energy: tasks are placed by time, since nothing is known of what workers draw"));
    EXPECT_EQ(std::count(by_energy.log.begin(), by_energy.log.end(), '\n'), 1);
    EXPECT_TRUE(by_energy.energy.kinds.empty());
  }
}

TEST(Objective, OfAPolicyThatDoesNotCountEnergyWarns) {
  EXPECT_THAT(run({}, "prio", Objective::edp).log,
              HasSubstr("option objective=edp changes nothing: scheduling policy prio does not count energy"));
  EXPECT_THAT(run({}, "lws", Objective::energy).log, HasSubstr("scheduling policy lws does not count energy"));
}

TEST(EnergyReport, ByTheFiguresOfTheMachineAddsUp) {
  const Outcome one = run({}, "dmda", Objective::time);
  const runtime::EnergyReport& energy = one.energy;
  EXPECT_FALSE(energy.is_measured);
  ASSERT_EQ(energy.kinds.size(), 2u);
  EXPECT_EQ(energy.kinds[0].idle.watts, 4);
  EXPECT_EQ(energy.kinds[1].idle.watts, 20);
  double kernels = 0, idle = 0, of_card = 0;
  for (const runtime::KernelEnergy& kernel : energy.kernels) {
    kernels += kernel.joules;
    if (kernel.codelet == "work" && kernel.kind == "user") of_card = kernel.joules;
  }
  for (const runtime::KindEnergy& kind : energy.kinds) idle += kind.idle_joules;
  EXPECT_NEAR(kernels + idle, energy.joules(), 1e-6 * energy.joules());
  EXPECT_NEAR(of_card, 1.2 * static_cast<double>(one.on_card), 0.01 * of_card);
  EXPECT_NEAR(idle, 24 * one.seconds, 0.05 * idle);
  EXPECT_THAT(energy.table(), testing::AllOf(HasSubstr("energy, by the machine's figures"), HasSubstr("work"),
                                             HasSubstr("(idle)"), HasSubstr("all")));
}

}  // namespace
}  // namespace tandem::objective_test
