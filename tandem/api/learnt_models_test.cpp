// tandem/api/learnt_models_test.cpp: models that workers learn of tasks, and their use in a later run.
#include "tandem/api/learnt_models.hpp"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::learnt_models_test {
namespace {

namespace fs = std::filesystem;
using runtime::DurationModels;
using testing::HasSubstr;

class LearntDurations : public testing::Test {
 protected:
  LearntDurations() {
    std::string name = (fs::temp_directory_path() / "tandem-learnt-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~LearntDurations() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  Options with_models() const {
    return {.workers = 2,
            .more = {{"models", "on"}, {"model.folder", (folder_ / "models").string()}, {"ranks", "alone"}}};
  }
  std::map<std::string, model::CodeletModels> files() const {
    std::map<std::string, model::CodeletModels> result;
    const auto read = ModelFolder(folder_ / "models", "").read_all();
    for (const ModelFolder::File& file : read.value())
      if (file.models.ok()) result[file.models.value().codelet] = file.models.value();
    return result;
  }
  fs::path folder_;
};

/// Spins for at least this long.
void spin_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

const Codelet kWork("work", [](std::span<double> v) {
  spin_for(std::chrono::microseconds(v.size() / 10));
  v[0] += 1;
});
const Codelet kFail("fail", [](std::span<double>) { throw std::runtime_error("on purpose"); });

void run_work(Runtime& rt, int tasks) {
  std::vector<double> small(200), large(2000);
  auto x = rt.data("small", small), y = rt.data("large", large);
  for (int i = 0; i < tasks; ++i) {
    rt.submit(kWork, read_write(x));
    rt.submit(kWork, read_write(y));
  }
  rt.wait();
}

TEST_F(LearntDurations, EachImplementationHasRowsAndALaterRunNeedsNoTrials) {
  std::atomic<int> slow{0}, fast{0};
  const auto both = Codelet("both", [&](std::span<double>) {
                      ++slow, spin_for(std::chrono::milliseconds(20));
                    }).also([&](std::span<double>) { ++fast, spin_for(std::chrono::microseconds(20)); });
  for (const int run : {1, 2}) {
    slow = fast = 0;
    Runtime rt(with_models());
    std::vector<double> values(200);
    auto x = rt.data("x", values);
    for (int i = 0; i < 60; ++i) rt.submit(both, read_write(x));
    rt.wait();
    EXPECT_EQ(slow + fast, 60);
    EXPECT_EQ(slow, run == 1 ? 3 : 0);
  }
  const auto known = files();
  std::set<std::uint32_t> implementations;
  for (const auto& [kind, sizes] : known.at("both").kinds) implementations.insert(kind.implementation);
  EXPECT_EQ(implementations, (std::set<std::uint32_t>{0, 1}));
}

TEST_F(LearntDurations, ARunFillsTheFilesAndTheNextOneGoesOn) {
  for (const std::uint64_t runs : {1U, 2U}) {
    {
      Runtime rt(with_models());
      run_work(rt, 50);
    }
    const auto known = files();
    ASSERT_EQ(known.size(), 1U);
    const auto& kinds = known.at("work").kinds;
    ASSERT_EQ(kinds.size(), 1U);
    EXPECT_EQ(kinds.begin()->first, model::WorkKind{});
    const auto entries = kinds.begin()->second.entries();
    ASSERT_EQ(entries.size(), 2U);
    for (const auto& entry : entries) {
      EXPECT_EQ(entry.history.samples(), 50 * runs);
      // At least as long as the kernel spins.
      EXPECT_GE(entry.history.estimate().mean_ns, static_cast<double>(entry.footprint.bytes) / 80 * 1e3);
    }
  }
}

TEST_F(LearntDurations, ARunKnowsWhatEarlierOnesLearnt) {
  {
    Runtime rt(with_models());
    run_work(rt, 10);
  }
  Runtime rt(with_models());
  const DurationModels& models = rt.resources().models->durations();
  const auto of_elements = [&](std::size_t elements) {
    return models.expected_ns("work", {0, elements * sizeof(double)}, DeviceKind::cpu);
  };
  EXPECT_FALSE(of_elements(200).known) << "another shape of as many bytes, and two sizes are too few for a law";
  bool was_known = false;
  double before_ns = 0;
  const auto known = files();
  for (const auto& entry : known.at("work").kinds.begin()->second.entries()) {
    const auto estimate = models.expected_ns("work", entry.footprint, DeviceKind::cpu);
    was_known = estimate.known && estimate.samples == 10;
    before_ns = std::max(before_ns, estimate.mean_ns);
    EXPECT_EQ(models.expected_ns("work", entry.footprint, 1U).mean_ns, estimate.mean_ns) << "all CPU workers are alike";
    EXPECT_FALSE(models.expected_ns("work", entry.footprint, DeviceKind::cuda).known);
    EXPECT_FALSE(models.expected_ns("other", entry.footprint, DeviceKind::cpu).known);
  }
  EXPECT_TRUE(was_known);
  EXPECT_GE(before_ns, 200e3);
}

TEST_F(LearntDurations, WithoutTheOptionNothingIsWritten) {
  {
    Options options = with_models();
    options.more[0].second = "off";
    Runtime rt(options);
    run_work(rt, 5);
    EXPECT_EQ(rt.resources().models, nullptr);
  }
  EXPECT_FALSE(fs::exists(folder_ / "models"));
}

TEST_F(LearntDurations, FailedKernelsTeachNothing) {
  {
    Runtime rt(with_models());
    std::vector<double> memory(10);
    auto x = rt.data("x", memory);
    rt.submit(kFail, read_write(x));
    rt.submit(kWork, read_write(x));  // cancelled
    EXPECT_THROW(rt.wait(), std::runtime_error);
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(LearntDurations, TwoRuntimesAtOnceAddToOneFile) {
  const auto run = [&] {
    Runtime rt(with_models());
    run_work(rt, 20);
  };
  std::thread other(run);
  run();
  other.join();
  const auto known = files();
  for (const auto& entry : known.at("work").kinds.begin()->second.entries()) EXPECT_EQ(entry.history.samples(), 40U);
}

TEST_F(LearntDurations, ARefusedFileIsNamedAndTheRunGoesOn) {
  fs::create_directories(folder_ / "models");
  std::ofstream(folder_ / "models" / "work.toml")
      << "format = 1\nmachine = \"an abacus\"\ncodelet = \"work\"\nrows = 0\n";
  testing::internal::CaptureStderr();
  {
    Runtime rt(with_models());
    run_work(rt, 5);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("work.toml: is of another machine ('an abacus'"));
  EXPECT_THAT(said, HasSubstr("put aside as work.toml.refused"));
  EXPECT_EQ(files().count("work"), 1U);
  EXPECT_TRUE(fs::exists(folder_ / "models" / "work.toml.refused"));
}

TEST_F(LearntDurations, ModelledTasksAreLearntAndNotStored) {
  {
    Options options = with_models();
    options.emulation = [](const runtime::EmulatedTask&) -> std::optional<std::int64_t> { return 2'000'000; };
    Runtime rt(options);
    run_work(rt, 40);
    EXPECT_FALSE(rt.resources().models->durations().news().empty());
  }
  EXPECT_FALSE(fs::exists(folder_ / "models"));
}

TEST(DurationModels, DevicesLearnApartFromCpuWorkers) {
  auto resources = test::test_resources();
  auto world = make_test_world({.workers = 1, .devices = 2}, *resources);
  DurationModels models(world.worker_specs());
  const std::vector<runtime::WorkerSpec> workers = world.worker_specs();
  {
    const auto add = [](std::span<double> v) { v[0] += 1; };
    const auto work = Codelet("work", add).also(DeviceKind::user, add);
    runtime::CoreOptions options;
    options.models = &models;
    options.emulation = [](const runtime::EmulatedTask& task) -> std::optional<std::int64_t> {
      return static_cast<std::int64_t>(task.data[0].rows * 10);
    };
    Runtime rt(std::move(resources), std::move(world), options);
    std::vector<std::vector<double>> memory(60, std::vector<double>(1000));
    std::vector<Data<Vector<double>>> data;
    for (auto& vector : memory) data.push_back(rt.data(vector));
    for (auto& x : data) rt.submit(work, read_write(x));
    rt.wait();
  }
  const auto news = models.news();
  ASSERT_EQ(news.size(), 1U);
  ASSERT_EQ(news[0].kinds.size(), 2U) << "two devices of one kind";
  std::uint64_t samples = 0;
  for (const auto& [kind, sizes] : news[0].kinds) {
    ASSERT_EQ(sizes.entries().size(), 1U);
    EXPECT_EQ(sizes.entries()[0].footprint.bytes, 8000U);
    EXPECT_NEAR(sizes.entries()[0].history.estimate().mean_ns, 10'000, 500) << kind.worker;
    EXPECT_EQ(kind.implementation, kind.worker == "cpu" ? 0U : 1U);
    samples += sizes.entries()[0].history.samples();
  }
  EXPECT_EQ(samples, 60U);
}

TEST(ModelEstimates, APolicyThatLooksAheadTriesNothingThatIsKnown) {
  const TestWorldOptions on_both{.workers = 2, .sched = "dm", .devices = 1, .copy_ns = 0};
  auto first = test::test_resources();
  DurationModels models(make_test_world(on_both, *first).worker_specs());
  runtime::CoreOptions options;
  options.models = &models;
  options.tasks_per_step = 1;
  options.emulation = [](const runtime::EmulatedTask& task) {
    return std::optional<std::int64_t>(task.device == DeviceKind::cpu ? 1'000'000 : 10'000);
  };
  const auto kernel = [](double&) {};
  const auto anywhere = Codelet("work", kernel).also(DeviceKind::user, kernel);
  const auto on = [&](DeviceKind kind) {
    return Codelet("work", kernel).also(DeviceKind::user, kernel).can_run([kind](const WorkerDescription& worker) {
      return worker.device == kind;
    });
  };
  /// Number of 20 tasks, one after the other, that ran on the device.
  const auto run = [&](const auto& codelet) {
    auto resources = test::test_resources();
    runtime::World world = make_test_world(on_both, *resources);
    world.estimates = std::make_unique<ModelEstimates>(models);
    Runtime rt(std::move(resources), std::move(world), options);
    double value = 0;
    const auto x = rt.data("x", value);
    for (int i = 0; i < 20; ++i) rt.wait(rt.submit(codelet, read_write(x)));
    return rt.statistics().workers.at(2).tasks;
  };
  EXPECT_LT(run(anywhere), 20U) << "nothing is known yet, so cores are tried";
  EXPECT_EQ(run(on(DeviceKind::cpu)), 0U);
  EXPECT_EQ(run(on(DeviceKind::user)), 20U);
  EXPECT_EQ(run(anywhere), 20U);
}

}  // namespace
}  // namespace tandem::learnt_models_test
