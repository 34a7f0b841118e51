// tests/sim/devices_test.cpp: simulated nodes with devices and NUMA memories, and of several kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/cuda.hpp"
#include "tandem/sim/simulation.hpp"
#include "tandem/tandem.hpp"
#include "tests/sim/plain_options.hpp"

namespace tandem::sim::devices_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double card_ns = 1e6, core_ns = 20e6;
constexpr std::size_t block = 125'000;  // 1 MB

KernelTime by_kind(const runtime::EmulatedTask& task, std::uint32_t node) {
  if (task.codelet == "fill") return {.mean_ns = 1};
  return {.mean_ns = (task.device == DeviceKind::cuda ? card_ns : core_ns) * (node == 0 ? 1 : 2)};
}

auto work_codelet() {
  return Codelet("work", [](std::span<double>) {}).cuda([](CudaQueue&, std::span<double>) {});
}

struct Ran {
  double seconds = 0;
  std::vector<unsigned> workers;  ///< by rank
};

/// `tasks` independent tasks on each rank, each with 1 MB.
Ran run(const Platform& platform, unsigned tasks,
        const std::vector<std::pair<std::string, std::string>>& options = {}) {
  Simulation simulation({.platform = platform, .kernels = by_kind});
  Ran ran{.workers = std::vector<unsigned>(platform.ranks)};
  const auto outcome = simulation.run([&](std::uint32_t rank) {
    Runtime rt(plain(options));
    ran.workers[rank] = rt.worker_count();
    const auto work = work_codelet();
    const Codelet fill("fill", [](std::span<double>) {});
    std::vector<Data<Vector<double>>> all;
    for (std::uint32_t owner = 0; owner < platform.ranks; ++owner)
      for (unsigned i = 0; i < tasks; ++i) all.push_back(rt.vector<double>("block", block, {.owner = owner}));
    for (const auto& data : all) rt.submit(fill, write(data));
    rt.wait();
    for (const auto& data : all) rt.submit(work, read_write(data));
    rt.wait();
    return 0;
  });
  EXPECT_EQ(outcome.error, "");
  ran.seconds = static_cast<double>(outcome.end_ns) * 1e-9;
  return ran;
}

Platform with_cards(unsigned count, double bytes_per_ns) {
  Platform platform{.ranks = 1, .cores = 1};
  platform.nodes.front().devices = {{.count = count, .bytes_per_ns = bytes_per_ns}};
  return platform;
}

TEST(SimulatedDevices, TakeTheTasksThatTheyRunFaster) {
  const Ran one = run(with_cards(1, 1'000), 400);
  EXPECT_THAT(one.workers, ElementsAre(2));
  EXPECT_GT(one.seconds, 0.37);
  EXPECT_LT(one.seconds, 0.43) << "20 times the speed of the core";
  const Ran two = run(with_cards(2, 1'000), 400);
  EXPECT_LT(two.seconds, 0.6 * one.seconds);
  EXPECT_GT(run(with_cards(0, 1), 400).seconds, 7.9);
}

TEST(SimulatedDevices, WaitForTheirCopies) {
  EXPECT_GT(run(with_cards(1, 0.25), 100, {{"workers", "1"}, {"sched", "dmdas"}}).seconds, 0.3)
      << "1 MB takes 4 ms there, and most tasks are there";
}

TEST(SimulatedNodes, KernelsTakeLongerThatWorkOnAnotherNumaNode) {
  Platform platform{.ranks = 1, .cores = 4};
  platform.nodes.front().numa_nodes = 2;
  platform.nodes.front().remote = 1.5;
  const double without = run(platform, 100).seconds;
  // Two cores take 20 ms for a task, two 30 ms: 100 tasks in 0.6 s, instead of 0.5 s.
  EXPECT_NEAR(without, 0.6, 0.04);
  EXPECT_NEAR(run(platform, 100, {{"numa", "true"}}).seconds, 0.5, 0.04) << "data is copied there";
  EXPECT_NEAR(run(platform, 100, {{"caller.numa", "1"}}).seconds, without, 0.04);
  Simulation simulation({.platform = platform, .kernels = by_kind});
  EXPECT_THAT(simulation
                  .run([](std::uint32_t) {
                    Runtime rt(plain({{"caller.numa", "2"}}));
                    return 0;
                  })
                  .error,
              HasSubstr("caller.numa"));
}

TEST(SimulatedNodes, DifferInCoresDevicesAndKernels) {
  Platform platform{.ranks = 4, .cores = 7};
  platform.nodes = {{.count = 1, .cores = 2}, {.count = 0, .cores = 3, .devices = {{.count = 2}}}};
  EXPECT_EQ(platform.kind_of(0), 0U);
  EXPECT_EQ(platform.kind_of(3), 1U);
  EXPECT_THAT(run(platform, 1).workers, ElementsAre(2, 5, 5, 5));
  platform.ranks_per_node = 2;
  EXPECT_THAT(run(platform, 1).workers, ElementsAre(2, 2, 4, 4)) << "ranks of a node share its devices";
  platform.ranks_per_node = 1;
  platform.nodes = {{.count = 1, .cores = 1}, {.cores = 1}};
  platform.ranks = 2;
  EXPECT_NEAR(run(platform, 10).seconds, 0.4, 0.01) << "kernels take twice as long on the second kind";
}

}  // namespace
}  // namespace tandem::sim::devices_test
