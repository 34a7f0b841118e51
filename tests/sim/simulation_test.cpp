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

#include "tandem/model/contention/platforms.hpp"
#include "tandem/runtime/virtual_place.hpp"
#include "tandem/sim/simulation.hpp"
#include "tandem/sim_rank/node_memories.hpp"
#include "tandem/tandem.hpp"
#include "tests/sim/plain_options.hpp"

namespace tandem::sim::simulation_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

KernelTimes all_take(std::int64_t ns) {
  return [ns](const runtime::EmulatedTask&, std::uint32_t) { return KernelTime{.mean_ns = static_cast<double>(ns)}; };
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

TEST(Simulation, ObjectsTakeTheTimeOfTheirBytesAndStayAsTheyAre) {
  constexpr std::size_t numbers = 100'000;
  const auto time = [](std::size_t count) {
    Simulation simulation({.platform = {.ranks = 2, .bytes_per_ns = 1}, .kernels = all_take(1'000)});
    const auto outcome = simulation.run([&](std::uint32_t rank) {
      Runtime rt(plain());
      std::vector<double> value(rank == 0 ? count : 3, 1.0);
      auto object = rt.object("object", value, {.owner = 0});
      rt.submit({.on = 1}, Codelet("use", [](const std::vector<double>&) {}), read(object));
      rt.wait();
      return 0;
    });
    EXPECT_EQ(outcome.error, "");
    EXPECT_THAT(outcome.statuses, ElementsAre(0, 0));
    return static_cast<double>(outcome.end_ns);
  };
  EXPECT_GT(time(numbers), time(1) + numbers * sizeof(double) * 0.9);
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
    Simulation simulation({.platform = {.ranks = ranks, .ranks_per_node = ranks_per_node, .cores = cores},
                           .kernels = [&](const runtime::EmulatedTask&, std::uint32_t) {
                             return KernelTime{.mean_ns = 1e6, .slow_down = slow_down};
                           }});
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

TEST(Simulation, TheRuntimesOwnTasksNeedNoModel) {
  Simulation simulation({.platform = {.ranks = 2}, .kernels = [](const runtime::EmulatedTask& task, std::uint32_t) {
                           const bool is_known = task.codelet == "work";
                           return is_known ? std::optional(KernelTime{.mean_ns = 1'000}) : std::nullopt;
                         }});
  double sums[2] = {};
  const auto outcome = simulation.run([&](std::uint32_t rank) {
    Runtime rt(plain());
    double memory = 0;
    auto sum = rt.data("sum", memory, {.owner = 0});
    sum.reduction([](double& share) { share = 0; }, [](double& into, const double& from) { into += from; });
    const Codelet add("work", [](double& to) { to += 1; });
    for (std::uint32_t i = 0; i < 10; ++i) rt.submit({.on = i % 2}, add, reduce(sum));  // start a share, gather shares
    rt.wait();
    sums[rank] = memory;

    std::vector<double> values(1'000'000, 1.0);
    auto whole = rt.data("values", values);
    {
      auto parts = rt.parts(whole, {.row_parts = 4});
      for (std::size_t i = 0; i < parts.rows(); ++i)
        rt.submit("work", [](std::span<double>) {}, read_write(parts(i)));
    }
    Graph graph = rt.record([&] { rt.submit("work", [](std::span<double>) {}, read_write(whole)); });
    for (int i = 0; i < 3; ++i) rt.replay(graph);  // end of a replay
    rt.wait();
    return 0;
  });
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.without_model, ElementsAre());
  EXPECT_EQ(sums[0], 10);
}

TEST(Simulation, RanksOfANodeShareItsCard) {
  constexpr std::size_t kBytes = 8 << 20;
  const auto time = [](std::uint32_t ranks_per_node) {
    Simulation simulation({.platform = {.ranks = 4, .ranks_per_node = ranks_per_node, .bytes_per_ns = 1},
                           .kernels = all_take(0)});
    const auto outcome = simulation.run([&](std::uint32_t) {
      Runtime rt(plain());
      std::vector<Data<Vector<std::byte>>> blocks;
      for (std::uint32_t rank = 0; rank < 4; ++rank)
        blocks.push_back(rt.vector<std::byte>("block", kBytes, {.owner = rank}));
      for (auto& block : blocks) rt.submit("make", [](std::span<std::byte>) {}, write(block));
      for (std::uint32_t rank : {2U, 3U})
        rt.submit({.on = rank}, Codelet("use", [](std::span<const std::byte>) {}), read(blocks[rank - 2]));
      rt.wait();
      return 0;
    });
    EXPECT_EQ(outcome.error, "");
    return static_cast<double>(outcome.end_ns);
  };
  EXPECT_NEAR(time(1), kBytes, 0.1 * kBytes);
  EXPECT_NEAR(time(2), 2 * kBytes, 0.1 * kBytes);
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

/// Virtual time until kernels that read 32 MiB each, one on each core of rank 0, have ended, and until as much has
/// come to rank 1: in ns. Rank 0 is a socket of a machine of the thesis.
std::pair<double, double> share_memory(unsigned kernels, bool sends, bool is_shared) {
  const model::contention::Platform& henri = *model::contention::find_platform("henri");
  const double core_bytes_per_ns = henri.machine.local.b_comp_seq_mb_s * 1e-3;
  constexpr std::size_t count = std::size_t{4} << 20;
  Platform platform{.ranks = 2, .cores = 18, .bytes_per_ns = henri.machine.local.b_comm_seq_mb_s * 1e-3};
  if (is_shared) platform.contention = {.machine = soften(henri.machine), .cores = henri.cores_per_socket};
  Simulation simulation({.platform = platform, .kernels = [&](const runtime::EmulatedTask& task, std::uint32_t) {
                           KernelTime time;
                           if (task.codelet != "read") return time;
                           time.mean_ns = count * sizeof(double) / core_bytes_per_ns;
                           time.bytes = moved_bytes(task, time.mean_ns, platform);
                           return time;
                         }});
  double computed_ns = 0, come_ns = 0;
  const auto outcome = simulation.run([&](std::uint32_t rank) {
    Runtime rt(plain());
    auto message = rt.vector<double>("message", count, {.owner = 0});
    rt.submit(
        "make", [](std::span<double>) {}, write(message));
    std::vector<Data<Vector<double>>> blocks;
    for (unsigned i = 0; i < kernels; ++i) {
      blocks.push_back(rt.vector<double>("block", count, {.owner = 0}));
      rt.submit(
          "make", [](std::span<double>) {}, write(blocks.back()));
    }
    for (auto& block : blocks)
      rt.submit(
          "read", [](std::span<double>) {}, read_write(block));
    if (sends)
      rt.submit(
          {.on = 1}, "take", [](std::span<const double>) {}, read(message));
    rt.wait();
    (rank == 0 ? computed_ns : come_ns) = static_cast<double>(simulation.now_ns());
    return 0;
  });
  EXPECT_EQ(outcome.error, "");
  return {computed_ns, come_ns};
}

TEST(Simulation, KernelsAndMessagesShareMemory) {
  const double one = share_memory(1, false, true).first, alone = share_memory(1, false, false).first;
  EXPECT_NEAR(one, alone, alone * 0.02) << "one core does not fill a memory";
  const double crowd = share_memory(18, false, true).first;
  EXPECT_GT(crowd, 1.08 * one) << "all cores of a socket do";
  EXPECT_NEAR(share_memory(18, false, false).first, alone, alone * 0.02) << "a platform without contention";
  const double message = share_memory(0, true, true).second, beside = share_memory(18, true, true).second;
  EXPECT_GT(beside, 1.5 * message) << "kernels take memory from a message";
  EXPECT_NEAR(share_memory(0, true, false).second, message, message * 0.02);
}

/// Virtual time in ns of one kernel of 1 ms that moves so many bytes, on a node with two sockets.
double time_of_kernel(double bytes) {
  const model::contention::Platform& henri = *model::contention::find_platform("henri");
  Simulation simulation(
      {.platform = {.cores = 2 * henri.cores_per_socket,
                    .contention = {{.machine = soften(henri.machine), .cores = henri.cores_per_socket}}},
       .kernels = [bytes](const runtime::EmulatedTask&, std::uint32_t) {
         return KernelTime{.mean_ns = 1e6, .bytes = bytes};
       }});
  const auto outcome = simulation.run([](std::uint32_t) {
    Runtime rt(plain());
    double value = 0;
    rt.submit("work", [](double&) {}, write(rt.data(value)));
    rt.wait();
    return 0;
  });
  EXPECT_EQ(outcome.error, "");
  return static_cast<double>(outcome.end_ns);
}

TEST(Simulation, AKernelAloneTakesItsTimeHoweverMuchItMoves) {
  for (const double bytes : {1.0, 16e3, 1e5, 1e6, 4e6}) EXPECT_NEAR(time_of_kernel(bytes), 1e6, 2e4) << bytes;
}

TEST(Simulation, CachesServeWhatIsFasterThanMemory) {
  const model::contention::Platform& henri = *model::contention::find_platform("henri");
  const Platform platform{.contention = {{.machine = soften(henri.machine), .cores = henri.cores_per_socket}}};
  const std::vector<runtime::Shape> data = {{1000, 1000, 8}};
  const double core_ns = 8e6 / (henri.machine.local.b_comp_seq_mb_s * 1e-3);
  EXPECT_NEAR(moved_bytes({"one", data, DeviceKind::cpu, 0}, core_ns, platform), 8e6, 1);
  EXPECT_NEAR(moved_bytes({"one", data, DeviceKind::cpu, 0}, core_ns / 1.05, platform), 8e6 / 1.05, 1)
      << "no more than a core moves";
  EXPECT_EQ(moved_bytes({"one", data, DeviceKind::cpu, 0}, core_ns / 2, platform), 0);
  EXPECT_EQ(moved_bytes({"one", data, DeviceKind::cuda, 0}, core_ns, platform), 0);
  EXPECT_EQ(moved_bytes({"one", data, DeviceKind::cpu, 0}, core_ns, {}), 0);
}

TEST(Simulation, IsTheSameEachTime) {
  const auto play = [] {
    Simulation simulation(
        {.platform = {.ranks = 4, .cores = 2}, .kernels = [](const runtime::EmulatedTask& task, std::uint32_t) {
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

/// Steps in which each block of 64 KiB adds its neighbour's: the first values of all blocks, and the virtual time.
std::pair<std::vector<double>, std::int64_t> play_ring(Execution execution, const std::string& that_runs) {
  Simulation simulation({.platform = {.ranks = 3, .cores = 2},
                         .kernels =
                             [&](const runtime::EmulatedTask& task, std::uint32_t) {
                               const bool runs = execution == Execution::all || task.codelet == that_runs;
                               return KernelTime{.mean_ns = 1e6, .computes = runs};
                             },
                         .execution = execution});
  std::vector<double> values(3);
  const auto outcome = simulation.run([&](std::uint32_t) {
    Runtime rt(plain());
    EXPECT_EQ(rt.is_simulated(), execution != Execution::all);
    std::vector<Data<Vector<double>>> blocks;
    for (std::uint32_t i = 0; i < 3; ++i) blocks.push_back(rt.vector<double>("block", 8192, {.owner = i}));
    for (std::size_t i = 0; i < 3; ++i)
      rt.submit(
          "make", [](double value, std::span<double> block) { std::ranges::fill(block, value); },
          static_cast<double>(i + 1), write(blocks[i]));
    for (std::size_t step = 0; step < 6; ++step)
      rt.submit(
          "add",
          [](std::span<const double> from, std::span<double> to) {
            for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
          },
          read(blocks[(step + 1) % 3]), read_write(blocks[step % 3]));
    rt.wait();
    for (std::uint32_t i = 0; i < 3; ++i)
      if (auto block = rt.acquire_at_owner(read(blocks[i]))) values[i] = (**block).back();
    return 0;
  });
  EXPECT_EQ(outcome.error, "");
  return {values, outcome.end_ns};
}

TEST(Simulation, RunsKernelsWhereItIsTold) {
  // 1 2 3, 3 2 3, 3 5 3, 3 5 6, 8 5 6, 8 11 6, 8 11 14.
  const auto [computed, computed_ns] = play_ring(Execution::all, "");
  EXPECT_THAT(computed, ElementsAre(8, 11, 14));
  const auto [made, made_ns] = play_ring(Execution::some, "make");
  EXPECT_THAT(made, ElementsAre(1, 2, 3));
  const auto [none, none_ns] = play_ring(Execution::none, "");
  EXPECT_EQ(computed_ns, none_ns) << "a kernel that runs takes its modelled time alone";
  EXPECT_EQ(made_ns, none_ns);
}

TEST(Simulation, KernelsThatRunMayThrow) {
  Simulation simulation({.kernels = [](const runtime::EmulatedTask&,
                                       std::uint32_t) { return KernelTime{.mean_ns = 1, .computes = true}; },
                         .execution = Execution::all});
  const auto outcome = simulation.run([&](std::uint32_t) {
    Runtime rt(plain());
    double value = 0;
    rt.submit(
        "fail", [](double&) { throw std::runtime_error("no such root"); }, write(rt.data(value)));
    rt.wait();
    return 0;
  });
  EXPECT_THAT(outcome.error, HasSubstr("no such root"));
}

TEST(Simulation, NamesKernelsWithoutADuration) {
  const auto knows_none = [](const runtime::EmulatedTask&, std::uint32_t) { return std::optional<KernelTime>(); };
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
