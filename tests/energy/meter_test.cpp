// tests/energy/meter_test.cpp: runs whose counters are files that a test moves: statistics, models, traces, and a
// schedule by what was learnt.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/energy_counters.hpp"
#include "tandem/api/model_folder.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/worker/energy_meter.hpp"
#include "tandem/runtime/worker/learnt_powers.hpp"
#include "tandem/runtime/worker/worker_team.hpp"
#include "tests/energy/fake_powercap.hpp"

namespace tandem::meter_test {
namespace {

using runtime::EnergyMeter;
using runtime::EnergySource;
using test::FakePowercap;
using testing::AllOf;
using testing::HasSubstr;

/// Shows what `joules` says at the time of the loop.
class ModelledCounter final : public base::EnergyCounter {
 public:
  ModelledCounter(std::string name, std::function<std::optional<double>()> joules)
      : EnergyCounter(std::move(name)), joules_(std::move(joules)) {}
  std::optional<std::uint64_t> read_uj() noexcept override {
    const auto joules = joules_();
    return joules ? std::optional(static_cast<std::uint64_t>(*joules * 1e6)) : std::nullopt;
  }

 private:
  std::function<std::optional<double>()> joules_;
};

EnergySource source_of(std::vector<unsigned> workers, std::function<std::optional<double>()> joules, double share = 1) {
  EnergySource source{.kind = "cpu", .workers = std::move(workers), .counters = {}, .share = share};
  source.counters.push_back(std::make_unique<ModelledCounter>("package-0", std::move(joules)));
  return source;
}

constexpr std::int64_t kMs = 1'000'000;

// --- the meter alone

struct Scene {
  double joules = 0;
  bool is_there = true;
  std::vector<std::pair<std::string, double>> busy_ns{{"a", 0}, {"b", 0}};

  EnergyMeter meter(double share = 1) {
    std::vector<EnergySource> sources;
    sources.push_back(source_of({0}, [this] { return is_there ? std::optional(joules) : std::nullopt; }, share));
    return EnergyMeter(std::move(sources), [this](unsigned, std::int64_t, const auto& visit) {
      for (const auto& [codelet, ns] : busy_ns) visit(codelet, ns);
    }, 50 * kMs, 0);
  }
  /// 50 ms, in which each codelet runs for so many of them: 10 W idle, 20 W for a, 40 W for b.
  void pass(double a_ms, double b_ms) {
    joules += 10 * 0.05 + 20 * a_ms * 1e-3 + 40 * b_ms * 1e-3;
    busy_ns[0].second += a_ms * 1e6;
    busy_ns[1].second += b_ms * 1e6;
  }
};

TEST(EnergyMeter, MeasuresWhatKernelsDraw) {
  Scene scene;
  EnergyMeter meter = scene.meter();
  std::int64_t now_ns = 0;
  for (int i = 0; i < 200; ++i) {
    scene.pass(i % 7 * 5, i % 5 * 4);
    now_ns += 50 * kMs;
    EXPECT_EQ(meter.step(now_ns), now_ns + 50 * kMs);
  }
  const runtime::EnergyReport report = meter.report();
  EXPECT_TRUE(report.is_measured);
  EXPECT_NEAR(report.joules(), scene.joules, 1e-3);
  ASSERT_EQ(report.kernels.size(), 2u);
  const model::PowerTable table = meter.measured();
  EXPECT_NEAR(table.kernels.at({"cpu", "a"}).watts, 20, 1);
  EXPECT_NEAR(table.kernels.at({"cpu", "b"}).watts, 40, 1);
  EXPECT_NEAR(table.idle.at("cpu").watts, 10, 1);
  EXPECT_THAT(report.table(), AllOf(HasSubstr("energy, measured"), HasSubstr("package-0"), HasSubstr("(idle)")));
}

TEST(EnergyMeter, ACounterThatVanishesCostsItsSamplesAlone) {
  Scene scene;
  EnergyMeter meter = scene.meter();
  std::int64_t now_ns = 0;
  for (int i = 0; i < 300; ++i) {
    scene.is_there = i % 10 != 3;
    scene.pass(i % 7 * 5, i % 5 * 4);
    meter.step(now_ns += 50 * kMs);
  }
  EXPECT_NEAR(meter.measured().kernels.at({"cpu", "b"}).watts, 40, 2);
  scene.is_there = false;
  const double before = meter.report().joules();
  for (int i = 0; i < 20; ++i) meter.step(now_ns += 50 * kMs);
  EXPECT_EQ(meter.report().joules(), before);
}

TEST(EnergyMeter, ACounterThatJumpsIsNotBelieved) {
  Scene scene;
  EnergyMeter meter = scene.meter();
  std::int64_t now_ns = 0;
  for (int i = 0; i < 100; ++i) {
    if (i == 50) scene.joules += 1e6;
    scene.pass(i % 7 * 5, i % 5 * 4);
    meter.step(now_ns += 50 * kMs);
  }
  EXPECT_LT(meter.report().joules(), 1e4);
  EXPECT_NEAR(meter.measured().kernels.at({"cpu", "a"}).watts, 20, 2);
}

TEST(EnergyMeter, ARankCountsItsShare) {
  Scene scene;
  EnergyMeter meter = scene.meter(0.25);
  scene.pass(10, 10);
  meter.step(50 * kMs);
  EXPECT_NEAR(meter.report().joules(), scene.joules / 4, 1e-6);
}

TEST(EnergyMeter, ManyCodeletsShareOneNumber) {
  Scene scene;
  scene.busy_ns.clear();
  for (int i = 0; i < 100; ++i) scene.busy_ns.emplace_back("codelet " + std::to_string(i), 0);
  EnergyMeter meter = scene.meter();
  for (int step = 1; step <= 5; ++step) {
    scene.joules += 3;
    for (auto& [codelet, ns] : scene.busy_ns) ns += 1e5;
    meter.step(step * 50 * kMs);
  }
  EXPECT_EQ(meter.report().kernels.size(), model::PowerModel::kMostCodelets);
  EXPECT_TRUE(meter.measured().kernels.contains({"cpu", "(others)"}));
}

TEST(LearntPowers, KnowMeansAndTotals) {
  model::PowerTable known;
  known.idle["cpu"] = {40, 1, 10};
  known.kernels[{"cpu", "a"}] = {10, 1, 10};
  const std::vector<runtime::WorkerSpec> workers{
      {.device = DeviceKind::cpu}, {.device = DeviceKind::cpu}, {.device = DeviceKind::cuda}};
  runtime::LearntPowers powers(workers, known);
  EXPECT_EQ(powers.kernel_watts("a", DeviceKind::cpu), 10);
  EXPECT_EQ(powers.kernel_watts("b", DeviceKind::cpu), 10) << "the mean";
  EXPECT_EQ(powers.kernel_watts("a", DeviceKind::cuda), std::nullopt);
  EXPECT_EQ(powers.idle_watts(), 40);
  EXPECT_EQ(powers.full_watts(), 60);
  model::PowerTable measured;
  measured.kernels[{"cuda", "a"}] = {200, 1, 10};
  powers.update(measured);
  EXPECT_EQ(powers.kernel_watts("a", DeviceKind::cuda), 200);
  EXPECT_EQ(powers.full_watts(), 260);
}

// --- runs

/// On a modelled machine whose one counter shows 15 W while nothing runs, and 8 W for each core that runs `small`, 25 W
/// for each that runs `large`.
struct ModelledRun {
  runtime::EnergyReport report;
  model::PowerTable powers;
};
ModelledRun run_modelled() {
  runtime::CoreOptions options;
  options.emulation = [](const runtime::EmulatedTask& task) -> std::optional<runtime::EmulatedWork> {
    // `large` is longer than the time between two samples
    return task.codelet == "small" ? 7'000'000 : task.codelet == "large" ? 230'000'000 : 41'000'000;
  };
  options.tasks_per_step = 1;
  auto resources = test::test_resources();
  runtime::World world = make_test_world({.workers = 4}, *resources);
  base::EventLoop& loop = *resources->loop;
  // What runs now is seen where the program says what it submits: the energy is integrated at each change.
  struct Meter {
    double joules = 0;
    std::int64_t at_ns = 0;
    unsigned small = 0, large = 0;
    void go_on(std::int64_t now_ns) {
      joules += 1e-9 * static_cast<double>(now_ns - at_ns) * (15 + 8 * small + 25 * large);
      at_ns = now_ns;
    }
  };
  const auto meter = std::make_shared<Meter>();
  world.energy.push_back(source_of({0, 1, 2, 3}, [meter, &loop] {
    meter->go_on(loop.now_ns());
    return std::optional(meter->joules);
  }));
  ModelledRun result;
  Runtime rt(std::move(resources), std::move(world), options);
  const auto nothing = [](double&) {};
  const Codelet small("small", nothing), large("large", nothing), pause("pause", nothing);
  std::vector<double> values(4);
  std::vector<Data<double>> data;
  for (double& value : values) data.push_back(rt.data(value));
  // Phases in which so many workers run each: between two waits nothing else begins.
  for (int phase = 0; phase < 60; ++phase) {
    const unsigned wide = 1 + static_cast<unsigned>(phase) % 4;
    const bool is_large = phase % 3 == 0;
    meter->go_on(loop.now_ns());
    (is_large ? meter->large : meter->small) = wide;
    for (int i = 0; i < (is_large ? 1 : 20); ++i)
      for (unsigned w = 0; w < wide; ++w) rt.submit(is_large ? large : small, read_write(data[w]));
    rt.wait();
    meter->go_on(loop.now_ns());
    meter->small = meter->large = 0;
    rt.submit(pause, read_write(data[0]));  // which draws nothing
    rt.wait();
  }
  result.report = rt.statistics().energy;
  result.powers = rt.core().workers().measured_powers();
  return result;
}

TEST(MeteredRun, KernelsHaveTheirPowerAlsoWhereTheyAreLongerThanASample) {
  const ModelledRun run = run_modelled();
  ASSERT_TRUE(run.report.is_measured);
  EXPECT_NEAR(run.powers.kernels.at({"cpu", "small"}).watts, 8, 1.5);
  EXPECT_NEAR(run.powers.kernels.at({"cpu", "large"}).watts, 25, 2.5);
  EXPECT_NEAR(run.powers.idle.at("cpu").watts, 15, 2);
}

/// Moves a counter in real time, as a machine of 100 W.
class MovingCounter {
 public:
  explicit MovingCounter(FakePowercap& files) : thread_([this, &files] {
    for (std::uint64_t uj = 0; !stops_; uj += 500'000) {
      files.set("intel-rapl:0", uj);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }) {}
  ~MovingCounter() {
    stops_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

void busy_run(Runtime& rt, int tasks) {
  const Codelet spin("spin", [](double& value) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(4);
    while (std::chrono::steady_clock::now() < until) value += 1;
  });
  double a = 0, b = 0;
  auto x = rt.data(a), y = rt.data(b);
  for (int i = 0; i < tasks; ++i) {
    rt.submit(spin, read_write(x));
    if (i % 3 == 0) rt.submit(spin, read_write(y));
  }
  rt.wait();
}

TEST(MeteredRun, OfAProgramHasStatisticsAModelAndATrace) {
  FakePowercap files;
  files.add("intel-rapl:0", "package-0", 0);
  const std::filesystem::path models = files.folder() / "models", folder = files.folder() / "trace";
  const auto options = [&](const std::string& more) {
    return Options{.workers = 2,
                   .more = {{"energy.powercap", files.folder().string()},
                            {"energy.every", "10ms"},
                            {"models", "true"},
                            {"model.folder", models.string()},
                            {"ranks", "alone"},
                            {"bind", "false"},
                            {"trace", more},
                            {"trace.folder", folder.string()}}};
  };
  {
    const MovingCounter moves(files);
    Runtime rt(options("all"));
    busy_run(rt, 120);
    const runtime::EnergyReport report = rt.statistics().energy;
    EXPECT_TRUE(report.is_measured);
    EXPECT_GT(report.joules(), 0.5);
    ASSERT_FALSE(report.kernels.empty());
    EXPECT_EQ(report.kernels[0].codelet, "spin");
  }
  const auto powers = ModelFolder(models, "").read_powers();
  ASSERT_TRUE(powers.ok()) << powers.error().message;
  EXPECT_TRUE(powers.value().kernels.contains({"cpu", "spin"}));
  EXPECT_TRUE(powers.value().idle.contains("cpu"));
  EXPECT_TRUE(std::filesystem::exists(folder));
}

TEST(MeteredRun, OptionEnergyTurnsItOff) {
  FakePowercap files;
  files.add("intel-rapl:0", "package-0", 0);
  Runtime rt({.workers = 1,
              .more = {{"energy.powercap", files.folder().string()},
                       {"energy", "false"},
                       {"objective", "energy"},
                       {"ranks", "alone"},
                       {"log", "error"}}});
  EXPECT_TRUE(rt.statistics().energy.kinds.empty());
}

TEST(MeteredRun, WithoutCountersRunsAsBefore) {
  const FakePowercap files;  // none
  Runtime rt({.workers = 1,
              .more = {{"energy.powercap", files.folder().string()},
                       {"models", "true"},
                       {"model.folder", (files.folder() / "models").string()},
                       {"ranks", "alone"}}});
  double value = 1;
  auto data = rt.data(value);
  rt.submit(Codelet("add", [](double& x) { x += 1; }), read_write(data));
  rt.wait();
  EXPECT_EQ(value, 2);
  EXPECT_TRUE(rt.statistics().energy.kinds.empty());
  EXPECT_EQ(rt.core().workers().measured_powers().kernels.size(), 0u);
}

TEST(EnergyOptions, WrongOnesAreNamed) {
  const auto thrown = [](const std::string& name, const std::string& value) {
    return test::thrown_by<UsageError>([&] { test::test_config({.more = {{name, value}}}); });
  };
  EXPECT_THAT(thrown("objective", "energie"), AllOf(HasSubstr("objective"), HasSubstr("energy")));
  EXPECT_THAT(thrown("energy.every", "1us"), HasSubstr("energy.every"));
  EXPECT_THAT(thrown("energy", "much"), HasSubstr("energy"));
}

TEST(FindEnergy, NamesWhatCannotBeCounted) {
  FakePowercap files;
  files.add("intel-rapl:0", "package-0", 0);
  runtime::World world;
  world.add_cpu_workers(2);
  world.machine.nodes.resize(1);
  world.machine.workers.push_back({.kind = DeviceKind::cuda, .bus_address = "0000:3b:00.0"});
  world.machine.workers.push_back({.kind = DeviceKind::cuda, .bus_address = "0000:af:00.0"});
  world.machine.workers.push_back({.kind = DeviceKind::opencl});
  const auto find = [&](const std::string& powercap, const std::string& nvml) {
    return find_energy(world, test::test_config({.more = {{"energy.powercap", powercap}, {"energy.nvml", nvml}}}), 2);
  };
  const FoundEnergy found = find(files.folder().string(), TANDEM_FAKE_NVML);
  ASSERT_EQ(found.sources.size(), 2u);
  EXPECT_EQ(found.sources[0].workers, (std::vector<unsigned>{0, 1}));
  EXPECT_EQ(found.sources[0].share, 0.5);
  EXPECT_EQ(found.sources[1].workers, (std::vector<unsigned>{2}));
  EXPECT_EQ(found.sources[1].counters.at(0)->name(), "nvidia 0");
  ASSERT_EQ(found.missing.size(), 2u);
  EXPECT_THAT(found.missing[0].why, HasSubstr("nvidia 1 does not count its energy"));
  EXPECT_THAT(found.missing[1].why, HasSubstr("no counters of such devices"));
  const FoundEnergy none = find("/nowhere", "libnothing.so.1");
  EXPECT_TRUE(none.sources.empty());
  ASSERT_EQ(none.missing.size(), 4u);
  EXPECT_THAT(none.missing[0].remedy, HasSubstr("modprobe"));
  EXPECT_THAT(none.missing[1].why, HasSubstr("libnothing.so.1"));
}

}  // namespace
}  // namespace tandem::meter_test
