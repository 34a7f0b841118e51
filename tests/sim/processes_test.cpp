// tests/sim/processes_test.cpp: ranks that are processes, and take turns; beside the same programs in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/model/contention/platforms.hpp"
#include "tandem/sim/simulation.hpp"
#include "tandem/sim/turn_keeper.hpp"
#include "tandem/sim_rank/process_place.hpp"
#include "tandem/sim_rank/turn_wire.hpp"
#include "tandem/tandem.hpp"
#include "tests/sim/plain_options.hpp"

namespace tandem::sim::processes_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

using Program = std::function<int(std::uint32_t rank)>;

/// A duration that depends on the sizes alone.
std::optional<KernelTime> by_bytes(const runtime::EmulatedTask& task, std::uint32_t) {
  KernelTime time{.mean_ns = 10'000};
  for (const runtime::Shape& shape : task.data) time.bytes += static_cast<double>(shape.bytes());
  time.mean_ns += time.bytes;
  return time;
}

std::string name_of(pid_t parent) { return "tandem-processes-test-" + std::to_string(parent); }

/// A child that runs the program of one rank, and ends as a program does.
pid_t start_rank(std::uint32_t rank, const Program& program) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  auto line = TurnLine::connect(name_of(::getppid()));
  if (!line || !line.value().send(TurnKind::hello, encode(Greeting{.rank = rank}))) ::_exit(98);
  ::setenv(turns_variable, std::to_string(line.value().release().release()).c_str(), 1);
  int status = 99;
  try {
    status = program(rank);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %u: %s\n", rank, error.what());
  }
  std::exit(status);
}

struct Ended {
  TurnKeeper::Outcome outcome;
  std::vector<int> statuses;
};

Ended run_in_processes(TurnKeeper::Options options, const Program& program) {
  const std::uint32_t ranks = options.platform.ranks;
  auto keeper = TurnKeeper::listen(std::move(options), name_of(::getpid()));
  EXPECT_TRUE(keeper.ok());
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) children.push_back(start_rank(rank, program));
  Ended ended{keeper.value()->run(ends[0]), {}};
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ended.statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  ::close(ends[0]);
  ::close(ends[1]);
  return ended;
}

/// Runs it both ways, which must take equally long, but for the few messages by which ranks begin and end together:
/// what happens at one time has another order. Returns the time in ns of the processes.
std::int64_t expect_near_times(const Platform& platform, const Program& program) {
  const Ended apart = run_in_processes({.platform = platform, .kernels = by_bytes}, program);
  Simulation simulation({.platform = platform, .kernels = by_bytes});
  const Simulation::Outcome here = simulation.run(program);
  EXPECT_EQ(apart.outcome.error, "");
  EXPECT_THAT(apart.statuses, Each(0));
  EXPECT_EQ(here.error, "");
  const auto slack_ns = static_cast<double>(20 * platform.latency_ns + here.end_ns / 1000);
  EXPECT_NEAR(static_cast<double>(apart.outcome.end_ns), static_cast<double>(here.end_ns), slack_ns);
  return apart.outcome.end_ns;
}

TEST(SimulatedProcesses, FindTheirPlaces) {
  const Ended ended =
      run_in_processes({.platform = {.ranks = 3, .cores = 4}, .kernels = by_bytes}, [](std::uint32_t rank) {
        Runtime rt(plain());
        const bool is_right = rt.rank() == rank && rt.size() == 3 && rt.worker_count() == 4;
        return is_right ? static_cast<int>(10 + rank) : 1;
      });
  EXPECT_EQ(ended.outcome.error, "");
  EXPECT_THAT(ended.statuses, ElementsAre(10, 11, 12));
}

TEST(SimulatedProcesses, TasksOfOneRankTakeTheirTime) {
  const std::int64_t time_ns = expect_near_times({.cores = 4}, [](std::uint32_t) {
    Runtime rt(plain());
    std::vector<double> values(64);
    for (double& value : values)
      rt.submit(
          "work", [](double&) {}, read_write(rt.data(value)));
    rt.wait();
    return 0;
  });
  EXPECT_GE(time_ns, 16 * 10'008);
}

/// A rank computes while its memory sends: kernels and messages share it in processes as in one.
TEST(SimulatedProcesses, KernelsAndMessagesShareMemory) {
  const model::contention::Platform& henri = *model::contention::find_platform("henri");
  model::contention::ThresholdMachine slow = henri.machine;  // kernels of 1 GB/s fill its memory
  for (const model::contention::ParameterName& parameter : model::contention::parameter_names)
    if (parameter.most > 1) slow.local.*parameter.value /= 5;
  Platform platform{.ranks = 2, .cores = 16, .bytes_per_ns = 8};
  const auto program = [](std::uint32_t) {
    Runtime rt(plain());
    constexpr std::size_t count = 1 << 20;
    auto message = rt.vector<double>("message", count, {.owner = 0});
    std::vector<Data<Vector<double>>> blocks;
    for (std::uint32_t i = 0; i < 64; ++i) blocks.push_back(rt.vector<double>("block", count, {.owner = i % 2}));
    for (auto& block : blocks)
      rt.submit(
          "make", [](std::span<double>) {}, write(block));
    for (int step = 0; step < 8; ++step) {
      rt.submit(
          "make", [](std::span<double>) {}, write(message));
      rt.submit(
          {.on = 1}, "take", [](std::span<const double>) {}, read(message));
    }
    rt.wait();
    return 0;
  };
  const std::int64_t without_ns = expect_near_times(platform, program);
  platform.contention = {.machine = soften(slow), .cores = henri.cores_per_socket};
  EXPECT_GT(expect_near_times(platform, program), without_ns + without_ns / 10);
}

TEST(SimulatedProcesses, MessagesTakeLatencyAndRate) {
  constexpr std::size_t kBytes = 8 << 20;
  const Platform platform{.ranks = 2, .latency_ns = 40'000, .bytes_per_ns = 2};
  const std::int64_t time_ns = expect_near_times(platform, [](std::uint32_t) {
    Runtime rt(plain());
    auto block = rt.vector<std::byte>("block", kBytes, {.owner = 0});
    auto small = rt.vector<std::byte>("small", 100, {.owner = 1});
    rt.submit(
        "make", [](std::span<std::byte>) {}, write(block));
    rt.submit(
        "make", [](std::span<std::byte>) {}, write(small));
    rt.submit(
        {.on = 1}, "look", [](std::span<const std::byte>, std::span<std::byte>) {}, read(block), read_write(small));
    rt.submit(
        {.on = 0}, "look", [](std::span<const std::byte>) {}, read(small));
    rt.wait();
    return 0;
  });
  EXPECT_GE(time_ns, static_cast<std::int64_t>(2 * kBytes + kBytes / 2));
}

/// Values that travel in small messages are right: a kernel of `reduce` runs, and so does the program.
TEST(SimulatedProcesses, SmallMessagesCarryTheirValues) {
  const auto program = [](std::uint32_t rank) {
    Runtime rt(plain());
    double own = 10 + rank, other = 0;
    auto x = rt.data("x", own), y = rt.data("y", other);
    rt.send(x, 1 - rank, 5);
    rt.receive(y, 1 - rank, 5);
    rt.wait();
    return other == 11 - rank ? 0 : 1;
  };
  expect_near_times({.ranks = 2}, program);
}

TEST(SimulatedProcesses, TakeAsLongAsInOneProcess) {
  expect_near_times({.ranks = 5, .cores = 2, .latency_ns = 3'000}, [](std::uint32_t) {
    Runtime rt(plain());
    std::vector<Data<Vector<double>>> blocks;
    for (std::size_t i = 0; i < 5; ++i)
      blocks.push_back(rt.vector<double>("block", 20'000 * (i + 1), {.owner = static_cast<std::uint32_t>(i)}));
    for (auto& block : blocks)
      rt.submit(
          "make", [](std::span<double>) {}, write(block));
    for (std::size_t step = 0; step < 6; ++step)  // a ring
      for (std::size_t i = 0; i < 5; ++i)
        rt.submit(
            "work", [](std::span<const double>, std::span<double>) {}, read(blocks[(i + 4) % 5]),
            read_write(blocks[i]));
    rt.wait();
    return 0;
  });
}

TEST(SimulatedProcesses, NameKernelsWithoutADuration) {
  const auto knows_none = [](const runtime::EmulatedTask&, std::uint32_t) { return std::optional<KernelTime>(); };
  const Ended ended = run_in_processes({.kernels = knows_none}, [](std::uint32_t) {
    Runtime rt(plain());
    double value = 0;
    for (int i = 0; i < 3; ++i)
      rt.submit(
          "unheard of", [](double&) {}, read_write(rt.data(value)));
    rt.wait();
    return value == 0 ? 0 : 1;
  });
  EXPECT_THAT(ended.outcome.without_model, ElementsAre("unheard of"));
  EXPECT_THAT(ended.statuses, ElementsAre(0));
}

TEST(SimulatedProcesses, SayThatNothingGoesOn) {
  const Ended ended = run_in_processes({.platform = {.ranks = 2}, .kernels = by_bytes}, [](std::uint32_t rank) {
    Runtime rt(plain());
    double value = 0;
    auto x = rt.data("x", value);
    if (rank == 1) rt.receive(x, 0, 7);  // nobody sends it
    rt.wait();
    return 0;
  });
  EXPECT_THAT(ended.outcome.error, HasSubstr("nothing can go on"));
  EXPECT_EQ(ended.statuses[1], 99);
}

TEST(SimulatedProcesses, ThatEndEarlyAreMissed) {
  const Ended ended = run_in_processes({.platform = {.ranks = 2}, .kernels = by_bytes}, [](std::uint32_t rank) {
    if (rank == 1) ::_exit(3);
    Runtime rt(plain());
    double value = 0;
    auto x = rt.data("x", value);
    rt.receive(x, 1, 7);
    rt.wait();
    return 0;
  });
  EXPECT_THAT(ended.statuses, ElementsAre(testing::Ne(0), 3));
  EXPECT_LT(ended.outcome.broken_ns, 1'000'000);
}

TEST(SimulatedProcesses, AProgramWithoutARuntimeIsNoSimulation) {
  const Ended ended =
      run_in_processes({.platform = {.ranks = 2}, .kernels = by_bytes}, [](std::uint32_t) { return 0; });
  EXPECT_THAT(ended.outcome.error, HasSubstr("no rank has made a tandem::Runtime"));
}

TEST(SimulatedProcesses, EndWithTheLauncher) {
  auto keeper = TurnKeeper::listen({.kernels = by_bytes}, name_of(::getpid()));
  ASSERT_TRUE(keeper.ok());
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  ::close(ends[1]);  // no rank ever comes
  EXPECT_EQ(keeper.value()->run(ends[0]).end_ns, 0);
  ::close(ends[0]);
}

// Connections that say something else are closed, and the others go on.
TEST(SimulatedProcesses, StrangersDoNotDisturb) {
  const Program program = [](std::uint32_t) {
    std::vector<TurnLine> strangers;
    for (int i = 0; i < 3; ++i) {
      auto line = TurnLine::connect(name_of(::getppid()));
      if (!line) return 2;
      strangers.push_back(std::move(line).value());
    }
    strangers[0].send(TurnKind::hello, encode(Greeting{.rank = 0}));  // which is there already
    strangers[1].send(TurnKind::hello, encode(Greeting{.rank = 7}));  // not of this job
    strangers[2].send(TurnKind::park, std::string(100, '\xff'));
    Runtime rt(plain());
    double value = 0;
    rt.submit(
        "work", [](double&) {}, read_write(rt.data(value)));
    rt.wait();
    return 0;
  };
  const Ended ended = run_in_processes({.kernels = by_bytes}, program);
  EXPECT_EQ(ended.outcome.error, "");
  EXPECT_THAT(ended.statuses, ElementsAre(0));
}

TEST(TurnWire, ReadsWhatItWrote) {
  const Turn turn{7'000, {{3, 9'000, "message"}, {1, 1, ""}}};
  const auto read = decode_turn(encode(turn));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().date_ns, 7'000);
  ASSERT_EQ(read.value().parcels.size(), 2U);
  EXPECT_EQ(read.value().parcels[0].message, "message");
  EXPECT_EQ(read.value().parcels[1].rank, 1U);
  RankPlace place{{.ranks = 9, .cores = 3, .latency_ns = 17, .bytes_per_ns = 0.25}, 8, 5, Execution::some, 0.5};
  place.platform.segment_bytes = 999;
  const model::contention::Platform& henri = *model::contention::find_platform("henri");
  place.platform.contention = {.machine = soften(henri.machine), .cores = henri.cores_per_socket};
  place.platform.nodes = {{.count = 3, .cores = 5},
                          {.numa_nodes = 2, .devices = {{.kind = DeviceKind::opencl, .depth = 4}}}};
  const auto seen = decode_place(encode(place));
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen.value().platform.cores_of(2), 5U);
  EXPECT_EQ(seen.value().platform.node_of(8).numa_nodes, 2U);
  EXPECT_EQ(seen.value().platform.node_of(8).devices.at(0).depth, 4U);
  EXPECT_EQ(seen.value().platform.bytes_per_ns, 0.25);
  EXPECT_EQ(seen.value().platform.segment_bytes, 999U);
  EXPECT_EQ(seen.value().rank, 8U);
  EXPECT_EQ(seen.value().execution, Execution::some);
  EXPECT_EQ(seen.value().host_speed, 0.5);
  EXPECT_EQ(seen.value().platform.contention->machine.local.bus.alpha, henri.machine.local.alpha);
  const std::vector<runtime::Shape> shapes = {{3, 4, 8}};
  const auto task = decode_task(encode(runtime::EmulatedTask{"name", shapes, DeviceKind::cuda, 2}));
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task.value().codelet, "name");
  EXPECT_EQ(task.value().data, shapes);
}

TEST(SimulatedProcesses, RunKernelsWhereTheyAreTold) {
  const Ended ended = run_in_processes(
      {.platform = {.ranks = 2},
       .kernels = [](const runtime::EmulatedTask&,
                     std::uint32_t) { return KernelTime{.mean_ns = 1e6, .computes = true}; },
       .execution = Execution::all},
      [](std::uint32_t rank) {
        Runtime rt(plain());
        auto block = rt.vector<double>("block", 8192, {.owner = 0});
        auto sum = rt.vector<double>("sum", 1, {.owner = 1});
        rt.submit(
            "make", [](std::span<double> values) { std::ranges::fill(values, 0.5); }, write(block));
        rt.submit(
            {.on = 1}, "add",
            [](std::span<const double> values, std::span<double> to) {
              to[0] = std::accumulate(values.begin(), values.end(), 0.0);
            },
            read(block), write(sum));
        auto seen = rt.acquire_at_owner(read(sum));
        return rt.is_simulated() || (rank == 1 && (**seen)[0] != 4096) ? 1 : 0;
      });
  EXPECT_EQ(ended.outcome.error, "");
  EXPECT_THAT(ended.statuses, Each(0));
}

TEST(TurnWire, RefusesWhatIsCutOrWrong) {
  const std::string whole = encode(Turn{7'000, {{3, 9'000, "message"}}});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_FALSE(decode_turn(whole.substr(0, bytes)).ok());
  EXPECT_FALSE(decode_place(encode(RankPlace{{.ranks = 2}, 2, 1})).ok()) << "no rank of the job";
  EXPECT_FALSE(decode_time(std::string(3, '\0')).ok());
  std::string many = encode(Turn{});
  many.back() = '\x7f';  // a count of messages that are not there
  EXPECT_FALSE(decode_turn(many).ok());
}

}  // namespace
}  // namespace tandem::sim::processes_test
