// tests/sim/simulation_test.cpp: programs of several ranks on one loop, and runtimes that find their simulated places.
#include "tandem/sim/job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/virtual_place.hpp"
#include "tandem/sim/simulation.hpp"
#include "tandem/tandem.hpp"

namespace tandem::sim::simulation_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Options that no file or variable of this machine changes.
Options plain(std::vector<std::pair<std::string, std::string>> more = {}) {
  more.insert(more.end(), {{"trace", ""}, {"models", "off"}, {"log", "error"}});
  return {.more = std::move(more)};
}

KernelTimes all_take(std::int64_t ns) {
  return [ns](const runtime::EmulatedTask&) { return KernelTime{.mean_ns = static_cast<double>(ns)}; };
}

TEST(Job, RunsProgramsThatYield) {
  for (const Job::Turns turns : {Job::Turns::prompt, Job::Turns::drawn}) {
    Job job(1);
    std::vector<int> steps(3);
    for (int& count : steps)
      job.add([&count] {
        for (; count < 5; ++count) Fiber::yield();
      });
    EXPECT_TRUE(job.run(turns));
    EXPECT_THAT(steps, ElementsAre(5, 5, 5));
  }
}

TEST(Simulation, ARuntimeFindsItsPlace) {
  Simulation simulation({.platform = {.ranks = 3, .cores = 4}, .kernels = all_take(1'000'000)});
  std::vector<unsigned> workers(3), sizes(3);
  const auto outcome = simulation.run([&](std::uint32_t rank) {
    Runtime rt(plain());
    EXPECT_EQ(rt.rank(), rank);
    EXPECT_TRUE(rt.is_simulated());
    sizes[rank] = rt.size();
    workers[rank] = rt.worker_count();
    return static_cast<int>(rank);
  });
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.statuses, ElementsAre(0, 1, 2));
  EXPECT_THAT(sizes, ElementsAre(3, 3, 3));
  EXPECT_THAT(workers, ElementsAre(4, 4, 4));
  EXPECT_EQ(runtime::VirtualPlace::current(), nullptr);
  EXPECT_FALSE(Runtime(plain()).is_simulated());
}

TEST(Job, ProgramsMayWaitForTimeToPass) {
  Job job(1);
  std::int64_t seen_ns = 0;
  job.add([&] {
    while (job.loop().now_ns() < 5'000) Fiber::yield();
    seen_ns = job.loop().now_ns();
  });
  job.loop().at(7'000, [] {});
  EXPECT_TRUE(job.run(Job::Turns::prompt));
  EXPECT_EQ(seen_ns, 7'000);
}

/// Independent tasks of 1 ms each: their number, and the virtual time that they take.
std::int64_t time_of(unsigned tasks, unsigned cores) {
  Simulation simulation({.platform = {.cores = cores}, .kernels = all_take(1'000'000)});
  const auto outcome = simulation.run([&](std::uint32_t) {
    Runtime rt(plain());
    std::vector<double> values(tasks);
    std::vector<Data<double>> data;
    for (double& value : values) data.push_back(rt.data(value));
    for (auto& one : data) rt.submit("work", [](double&) {}, read_write(one));
    rt.wait();
    return 0;
  });
  EXPECT_EQ(outcome.error, "");
  return outcome.end_ns;
}

TEST(Simulation, WorkersShareTasks) {
  EXPECT_NEAR(static_cast<double>(time_of(64, 1)), 64e6, 1e5);
  EXPECT_NEAR(static_cast<double>(time_of(64, 16)), 4e6, 1e5);
}

/// Virtual time of a chain of tasks that take 10 us each, beside what the platform takes.
std::int64_t time_of_chain(unsigned tasks, const Platform& platform) {
  Simulation simulation({.platform = platform, .kernels = all_take(10'000)});
  const auto outcome = simulation.run([&](std::uint32_t) {
    Runtime rt(plain({{"caller", "false"}}));
    double value = 0;
    auto datum = rt.data(value);
    for (unsigned task = 0; task < tasks; ++task) rt.submit("work", [](double&) {}, read_write(datum));
    rt.wait();
    return 0;
  });
  EXPECT_EQ(outcome.error, "");
  return outcome.end_ns;
}

TEST(Simulation, TheRuntimesOwnWorkTakesTime) {
  const auto without = static_cast<double>(time_of_chain(1'000, {.cores = 1}));
  EXPECT_NEAR(without, 10e6, 1e5);
  // Workers are faster than a submission of 20 us, so only the first and the last task wait for anything else.
  EXPECT_NEAR(static_cast<double>(time_of_chain(1'000, {.cores = 1, .submit_ns = 20'000})), 20e6, 1e5);
  EXPECT_NEAR(static_cast<double>(time_of_chain(1'000, {.cores = 1, .task_ns = 5'000})), without + 5e6, 1e5);
  // A worker that has waited for 90 us sleeps, not one that has waited for 10.
  const auto slow = static_cast<double>(time_of_chain(100, {.cores = 1, .submit_ns = 100'000}));
  EXPECT_NEAR(static_cast<double>(time_of_chain(100, {.cores = 1, .submit_ns = 100'000, .wake_ns = 50'000})),
              slow + 50e3, 1e3);
  EXPECT_NEAR(static_cast<double>(time_of_chain(100, {.cores = 1, .submit_ns = 10'000, .wake_ns = 50'000})), 1.01e6,
              2e4);
}

TEST(Simulation, KernelsSlowEachOther) {
  const auto time = [](unsigned cores, std::uint32_t ranks, std::uint32_t ranks_per_node) {
    const runtime::SlowDown slow_down({{1, 1.0}, {2, 1.5}, {4, 3.0}});
    Simulation simulation(
        {.platform = {.ranks = ranks, .ranks_per_node = ranks_per_node, .cores = cores},
         .kernels = [&](const runtime::EmulatedTask&) { return KernelTime{.mean_ns = 1e6, .slow_down = slow_down}; }});
    const auto outcome = simulation.run([&](std::uint32_t) {
      Runtime rt(plain());
      for (std::uint32_t i = 0; i < 48; ++i) {
        auto one = rt.vector<double>("one", 1, {.owner = i % rt.size()});
        rt.submit("work", [](std::span<double>) {}, write(one));
      }
      rt.wait();
      return 0;
    });
    EXPECT_EQ(outcome.error, "");
    return static_cast<double>(outcome.end_ns);
  };
  EXPECT_NEAR(time(1, 1, 1), 48e6, 1e5);
  EXPECT_NEAR(time(2, 1, 1), 24e6 * 1.5, 1e6);
  EXPECT_NEAR(time(4, 1, 1), 12e6 * 3, 2.5e6);  // the first ones begin when fewer run
  EXPECT_NEAR(time(1, 2, 1), 24e6, 1e6);
  EXPECT_NEAR(time(1, 2, 2), 24e6 * 1.5, 1e6);
}

TEST(Simulation, MessagesTakeLatencyAndRate) {
  constexpr std::size_t kBytes = 8 << 20;
  const auto time = [](std::int64_t latency_ns, double bytes_per_ns) {
    Simulation simulation({.platform = {.ranks = 2, .latency_ns = latency_ns, .bytes_per_ns = bytes_per_ns},
                           .kernels = all_take(0)});
    std::int64_t end_ns = 0;
    const auto outcome = simulation.run([&](std::uint32_t) {
      Runtime rt(plain());
      auto block = rt.vector<std::byte>("block", kBytes, {.owner = 0});
      rt.submit("make", [](std::span<std::byte>) {}, write(block));
      rt.submit({.on = 1}, "look", [](std::span<const std::byte>) {}, read(block));
      rt.wait();
      end_ns = std::max(end_ns, simulation.now_ns());
      return 0;
    });
    EXPECT_EQ(outcome.error, "");
    return static_cast<double>(end_ns);
  };
  const double fast = time(1'000, 10), slow = time(1'000, 1), far = time(1'000'000, 10);
  EXPECT_NEAR(slow - fast, kBytes * 0.9, kBytes * 0.02);
  EXPECT_GT(far - fast, 2e6);
}

TEST(Simulation, IsTheSameEachTime) {
  const auto play = [] {
    Simulation simulation({.platform = {.ranks = 4, .cores = 2}, .kernels = [](const runtime::EmulatedTask& task) {
      return KernelTime{.mean_ns = 1'000 + static_cast<double>(task.data[0].bytes())};
    }});
    std::vector<std::int64_t> ends;
    const auto outcome = simulation.run([&](std::uint32_t rank) {
      Runtime rt(plain());
      std::vector<Data<Vector<double>>> blocks;
      for (std::size_t i = 0; i < 8; ++i)
        blocks.push_back(rt.vector<double>("block", 100 * (i + 1), {.owner = static_cast<std::uint32_t>(i % 4)}));
      for (auto& block : blocks) rt.submit("make", [](std::span<double>) {}, write(block));
      for (std::size_t i = 0; i < 40; ++i)
        rt.submit("work", [](std::span<const double>, std::span<double>) {}, read(blocks[i % 8]),
                  read_write(blocks[(i * 3 + 1) % 8]));
      rt.wait();
      ends.push_back(simulation.now_ns() + rank);
      return 0;
    });
    EXPECT_EQ(outcome.error, "");
    return ends;
  };
  EXPECT_EQ(play(), play());
}

TEST(Simulation, NamesKernelsWithoutADuration) {
  const auto knows_none = [](const runtime::EmulatedTask&) { return std::optional<KernelTime>(); };
  Simulation simulation({.kernels = knows_none});
  const auto outcome = simulation.run([](std::uint32_t) {
    Runtime rt(plain());
    double value = 0;
    rt.submit("unheard of", [](double&) {}, read_write(rt.data(value)));
    rt.wait();
    return 0;
  });
  EXPECT_THAT(outcome.without_model, ElementsAre("unheard of"));
}

TEST(Simulation, SaysWhichRankThrowsAndWhen) {
  Simulation simulation({.kernels = all_take(2'000'000)});
  const auto outcome = simulation.run([](std::uint32_t) -> int {
    Runtime rt(plain());
    double value = 0;
    rt.submit("work", [](double&) {}, read_write(rt.data(value)));
    rt.wait();
    throw std::runtime_error("no more");
  });
  EXPECT_THAT(outcome.error, HasSubstr("rank 0 at 0.002"));
  EXPECT_THAT(outcome.error, HasSubstr("no more"));
}

TEST(Simulation, SaysThatNothingGoesOn) {
  Simulation simulation({.platform = {.ranks = 2}, .kernels = all_take(1'000)});
  const auto outcome = simulation.run([](std::uint32_t rank) {
    Runtime rt(plain());
    double value = 0;
    auto x = rt.data("x", value);
    if (rank == 1) rt.receive(x, 0, 7);  // nobody sends it
    rt.wait();
    return 0;
  });
  EXPECT_THAT(outcome.error, HasSubstr("nothing can go on"));
}

}  // namespace
}  // namespace tandem::sim::simulation_test
