// tandem/api/numa_test.cpp: option numa: NUMA nodes as separate memories, on made-up machines.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/device_test_support.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"

namespace tandem::numa_test {
namespace {

using test::CountingCopier;
using test::thrown_by;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Workers 0 and 1 are near the first NUMA node, workers 2 and 3 near the second one. Memory of the program's lies on
/// `place`.
struct Numa : testing::Test {
  std::unique_ptr<Runtime> start(const std::string& sched = "auto", std::size_t place = 0,
                                 const std::vector<std::pair<std::string, std::string>>& more = {}) {
    auto resources = test::test_resources();
    resources->topology =
        std::make_unique<base::Topology>(base::Topology::synthetic("package:2 numa:1 core:2 pu:1").value());
    Options options{.workers = 4, .sched = sched, .more = {{"numa", "true"}, {"bind", "false"}}};
    options.more.insert(options.more.end(), more.begin(), more.end());
    base::Config config = test::test_config(options);
    runtime::World world = make_real_world(config, *resources);
    settle_policy(world, config, *resources);
    measure_links_for_policy(world, *resources->log);
    for (auto& [node, copier] : world.nodes) copier = std::make_unique<CountingCopier>(std::move(copier), bytes);
    world.numa_node_of = [place](const void*, std::size_t) { return place; };
    machine = world.machine;
    return std::make_unique<Runtime>(std::move(resources), std::move(world), core_options(config));
  }
  static bool far(const WorkerDescription& worker) { return worker.worker >= 2; }
  static bool near(const WorkerDescription& worker) { return worker.worker < 2; }

  CountingCopier::Bytes bytes;
  runtime::Machine machine;
};

TEST_F(Numa, EachNodeWithWorkersIsAMemory) {
  const auto rt = start();
  const auto nodes = rt->memory_nodes();
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].name, "main memory");
  EXPECT_EQ(nodes[1].name, "NUMA node 1");
  EXPECT_EQ(machine.workers[1].node, 0U);
  EXPECT_EQ(machine.workers[3].node, 1U);
  EXPECT_EQ(machine.link(0, 1).source, runtime::LinkSource::measured) << "plan is the policy, and looks ahead";
  machine.check();
}

TEST_F(Numa, DataIsCopiedToWhereItIsUsed) {
  const auto rt = start("lws");
  std::vector<int> x(1'000, 1);
  const auto data = rt->data("x", x);
  const auto twice = Codelet("twice", [](std::span<int> values) {
                       for (int& value : values) value *= 2;
                     }).can_run(far);
  for (int i = 0; i < 5; ++i) rt->submit(twice, read_write(data));
  rt->wait(data);
  EXPECT_EQ(bytes.to_device, 4'000U) << "once";
  EXPECT_EQ(bytes.from_device, 4'000U);
  EXPECT_EQ(std::accumulate(x.begin(), x.end(), 0), 32'000);
}

TEST_F(Numa, MemoryOfTheProgramIsUsedWhereItLies) {
  const auto rt = start("lws", 1);
  std::vector<int> x(1'000, 1);
  const auto data = rt->data("x", x);
  const int* seen = nullptr;
  const auto twice = Codelet("twice", [&](std::span<int> values) {
                       seen = values.data();
                       for (int& value : values) value *= 2;
                     }).can_run(far);
  rt->submit(twice, read_write(data));
  rt->wait();
  EXPECT_EQ(seen, x.data());
  EXPECT_EQ(bytes.to_device + bytes.from_device, 0U);
  EXPECT_EQ(x[999], 2);
}

TEST_F(Numa, ObjectsStayAndAreUsedFromEverywhere) {
  const auto rt = start("lws");
  std::string value = "a";
  const auto text = rt->object("text", value);
  const auto b = Codelet("b", [](std::string& s) { s += 'b'; }).can_run(far);
  const auto c = Codelet("c", [](std::string& s) { s += 'c'; }).can_run(near);
  for (int i = 0; i < 3; ++i) {
    rt->submit(b, read_write(text));
    rt->submit(c, read_write(text));
  }
  EXPECT_EQ(*rt->acquire(read(text)), "abcbcbc");
  EXPECT_EQ(bytes.to_device + bytes.from_device, 0U);
}

TEST_F(Numa, TheWholeOfAFlowGivesWhatItGivesElsewhere) {
  for (const char* const sched : {"auto", "lws", "prio", "dmda", "heteroprio", "darts"}) {
    const auto rt = start(sched, 1);
    const std::size_t n = 6;
    std::vector<std::uint64_t> cells(n * n), shifted(12 * 5, 0);
    std::iota(cells.begin(), cells.end(), 1U);
    const auto a = rt->data("A", MatrixView<std::uint64_t>{cells.data(), n, n, n});
    const auto sum = rt->scalar<std::uint64_t>("sum").reduction(
        [](std::uint64_t& copy) { copy = 0; }, [](std::uint64_t& into, std::uint64_t from) { into += from; });
    const auto add = Codelet("add", [](MatrixView<const std::uint64_t> tile, std::uint64_t& into) {
      for (std::size_t j = 0; j < tile.cols; ++j)
        for (std::size_t i = 0; i < tile.rows; ++i) into += tile(i, j);
    });
    const auto bump = Codelet("bump", [](MatrixView<std::uint64_t> tile) {
      for (std::size_t j = 0; j < tile.cols; ++j)
        for (std::size_t i = 0; i < tile.rows; ++i) ++tile(i, j);
    });
    rt->submit([](std::uint64_t& value) { value = 0; }, write(sum));
    for (int round = 0; round < 3; ++round) {
      const auto tiles = rt->parts(a, {.rows = 2, .cols = 2});
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
          rt->submit(bump, read_write(tiles(i, j)));
          rt->submit(add, read(tiles(i, j)), reduce(sum));
        }
      rt->submit(bump, read_write(a));
    }
    EXPECT_EQ(*rt->acquire(read(sum)), 3 * 666U + 36 * (1 + 3 + 5)) << sched;
    rt->wait();
    EXPECT_EQ(cells[35], 36U + 6) << sched;
  }
}

TEST_F(Numa, EachNodeHasItsPartOfABudgetOfMemory) {
  constexpr std::size_t kWords = 8'192;  // words of 64 KiB
  for (const char* const sched : {"auto", "lws", "dmda"}) {
    const auto rt = start(sched, 0, {{"memory", "512KiB"}, {"spill", testing::TempDir()}});
    const auto nodes = rt->memory_nodes();
    ASSERT_EQ(nodes.size(), 3U) << "two NUMA nodes and the file";
    EXPECT_EQ(nodes[0].budget, 256U << 10);
    EXPECT_EQ(nodes[1].budget, 256U << 10);
    EXPECT_TRUE(nodes[2].is_storage);
    std::vector<Data<Vector<std::uint64_t>>> data;
    const Codelet fill("fill",
                       [](std::uint64_t value, std::span<std::uint64_t> v) { std::fill(v.begin(), v.end(), value); });
    const auto add_of = [](const char* name) {
      return Codelet(name, [](std::span<const std::uint64_t> from, std::span<std::uint64_t> to) {
        for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
      });
    };
    const auto add_far = add_of("add_far").can_run(far), add_near = add_of("add_near").can_run(near);
    std::vector<std::uint64_t> expected;
    for (std::uint64_t i = 0; i < 64; ++i) {  // eight times the budget
      data.push_back(rt->vector<std::uint64_t>("v" + std::to_string(i), kWords));
      rt->submit(fill, i, write(data.back()));
      expected.push_back(i);
    }
    for (std::size_t round = 0; round < 3; ++round)
      for (std::size_t i = 0; i < data.size(); ++i) {
        const std::size_t from = (i * 29 + 7) % data.size();
        rt->submit((i + round) % 2 == 0 ? add_far : add_near, read(data[from]), read_write(data[i]));
        expected[i] += expected[from];
      }
    for (std::size_t i = 0; i < data.size(); ++i) {
      auto view = rt->acquire(read(data[i]));
      EXPECT_EQ((*view)[0], expected[i]) << sched << ", " << i;
      EXPECT_EQ((*view)[kWords - 1], expected[i]) << sched << ", " << i;
    }
  }
}

TEST_F(Numa, ObjectsAndTheProgramsOwnMemoryCountInNoBudget) {
  const auto rt = start("lws", 1, {{"memory", "16KiB"}, {"spill", testing::TempDir()}});
  std::vector<int> x(100'000, 1);
  const auto own = rt->data("x", x);
  const auto object = rt->object<std::vector<int>>("o");
  for (const auto& where : {&far, &near})
    for (int i = 0; i < 3; ++i)
      rt->submit(Codelet("both", [](std::span<int> values, std::vector<int>& o) {
                   for (int& value : values) ++value;
                   o.resize(10'000);
                 }).can_run(*where), read_write(own), write(object));
  rt->wait(own);
  EXPECT_EQ(x[99'999], 7);
}

TEST_F(Numa, ATaskThatFitsIntoNoPartOfTheBudgetIsToldTheNumbers) {
  const auto rt = start("lws", 0, {{"memory", "512KiB"}, {"spill", testing::TempDir()}});
  const auto large = rt->vector<std::uint64_t>("large", 40'000);
  EXPECT_THAT(thrown_by<OutOfMemory>([&] { rt->submit("touch", [](std::span<std::uint64_t>) {}, write(large)); }),
              AllOf(HasSubstr("takes 320000 bytes"), HasSubstr("budget is 262144 bytes")));
}

}  // namespace
}  // namespace tandem::numa_test
