// tandem/analysis/bounds/area_bound_test.cpp: the area bound against other ways to compute it, and against all
// schedules of tiny runs.
#include "tandem/analysis/bounds/area_bound.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/analysis/bounds/area_program.hpp"
#include "tandem/analysis/bounds/paths.hpp"
#include "tandem/analysis/history/small_run.hpp"
#include "tandem/analysis/verdict/time_split.hpp"

namespace tandem::analysis::area_bound_test {
namespace {

using test::at;
using test::SmallRun;
using trace::ActorKind;
using trace::Type;

/// Kernels, and workers of some kinds, sorted by the kinds' names.
struct Machine {
  static constexpr std::array<const char*, 3> names{"cpu", "cuda", "user"};
  static constexpr std::array<const char*, 3> prefixes{"", "cuda ", "user "};
  std::vector<std::uint32_t> kind_of_worker;
  std::vector<std::vector<std::int64_t>> time_ns;  ///< of each kernel on each kind

  std::size_t kinds() const { return time_ns.front().size(); }
};

Machine random_machine(std::mt19937& random, std::size_t kinds, std::size_t most_workers) {
  Machine machine;
  for (std::uint32_t kind = 0; kind < kinds; ++kind)
    machine.kind_of_worker.insert(machine.kind_of_worker.end(), 1 + random() % most_workers, kind);
  machine.time_ns.resize(1 + random() % 3);
  for (auto& of_kernel : machine.time_ns)
    for (std::size_t kind = 0; kind < kinds; ++kind)
      of_kernel.push_back(2 + 2 * static_cast<std::int64_t>(random() % 50));
  return machine;
}

struct Task {
  std::size_t kernel = 0, worker = 0;
  std::vector<std::uint32_t> after = {};
  std::int64_t start_ns = 0, end_ns = 0;
};

/// Runs the tasks: each begins when its predecessors have ended and its worker is free.
std::int64_t emulate(const Machine& machine, std::vector<Task>& tasks, const std::vector<std::uint32_t>& order) {
  std::vector<std::int64_t> free_ns(machine.kind_of_worker.size());
  std::int64_t makespan_ns = 0;
  for (const std::uint32_t number : order) {
    Task& task = tasks[number];
    task.start_ns = free_ns[task.worker];
    for (const std::uint32_t before : task.after) task.start_ns = std::max(task.start_ns, tasks[before].end_ns);
    task.end_ns = free_ns[task.worker] =
        task.start_ns + machine.time_ns[task.kernel][machine.kind_of_worker[task.worker]];
    makespan_ns = std::max(makespan_ns, task.end_ns);
  }
  return makespan_ns;
}

/// Random tasks on random workers, in the order of their submission.
std::vector<Task> random_tasks(std::mt19937& random, const Machine& machine, std::uint32_t count) {
  std::vector<Task> tasks(count);
  for (std::uint32_t number = 0; number < count; ++number) {
    tasks[number].kernel = random() % machine.time_ns.size();
    tasks[number].worker = random() % machine.kind_of_worker.size();
    for (std::uint32_t before = 0; before < number; ++before)
      if (random() % 4 == 0) tasks[number].after.push_back(before);
  }
  return tasks;
}

std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

std::unique_ptr<History> recorded(const Machine& machine, const std::vector<Task>& tasks) {
  SmallRun run;
  run.actor(0, 1, ActorKind::submitter, 0, "submitter");
  std::vector<std::string> names;
  for (std::size_t worker = 0; worker < machine.kind_of_worker.size(); ++worker)
    names.push_back(Machine::prefixes[machine.kind_of_worker[worker]] + ("worker " + std::to_string(worker)));
  for (std::uint32_t worker = 0; worker < names.size(); ++worker)
    run.actor(0, 2 + worker, ActorKind::worker, static_cast<std::uint16_t>(worker), names[worker].c_str())
        .stream(0, 2 + worker)
        .add(Type::worker_state, at(0), {static_cast<std::uint8_t>(trace::WorkerState::polling)});
  std::uint16_t site = 0;
  for (const char* kernel : {"a", "b", "c"})
    run.catalogue().add(Type::site, at(0), {site, 1 + site, kernel, "app.cpp"}), ++site;
  for (std::uint32_t number = 0; number < tasks.size(); ++number)
    run.submit(0, 0, number, static_cast<std::uint16_t>(tasks[number].kernel), {}, tasks[number].after);
  for (std::uint32_t number = 0; number < tasks.size(); ++number)
    run.execute(0, 2 + static_cast<std::uint32_t>(tasks[number].worker), number, tasks[number].start_ns,
                tasks[number].end_ns);
  return run.read();
}

AreaProgram program_of(const Machine& machine, const std::vector<Task>& tasks) {
  AreaProgram program;
  program.workers.resize(machine.kinds());
  for (const std::uint32_t kind : machine.kind_of_worker) ++program.workers[kind];
  for (std::size_t kernel = 0; kernel < machine.time_ns.size(); ++kernel) {
    double count = 0;
    std::vector<std::optional<double>> times(machine.kinds());
    for (const Task& task : tasks) {
      if (task.kernel != kernel) continue;
      const std::uint32_t kind = machine.kind_of_worker[task.worker];
      times[kind] = static_cast<double>(machine.time_ns[kernel][kind]);
      ++count;
    }
    if (count == 0) continue;
    program.tasks.push_back(count);
    program.times.push_back(times);
  }
  return program;
}

/// The optimum for one or two kinds: the dual is concave in the share p of the first kind, and linear between those p
/// at which a kernel takes equally long on both.
double by_breakpoints(const AreaProgram& program) {
  const std::size_t kinds = program.workers.size();
  std::vector<double> shares{1};
  if (kinds == 2) {
    shares.push_back(0);
    for (const auto& times : program.times) {
      if (!times[0] || !times[1]) continue;
      const double first = *times[0] / program.workers[0], second = *times[1] / program.workers[1];
      shares.push_back(second / (first + second));  // p * first == (1 - p) * second
    }
  }
  double best = 0;
  for (const double share : shares) {
    double sum = 0;
    for (std::size_t kernel = 0; kernel < program.tasks.size(); ++kernel) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t kind = 0; kind < kinds; ++kind)
        if (const auto& time = program.times[kernel][kind])
          least = std::min(least, (kind == 0 ? share : 1 - share) * *time / program.workers[kind]);
      sum += program.tasks[kernel] * least;
    }
    best = std::max(best, sum);
  }
  return best;
}

TEST(AreaBound, TasksGoWhereTheyAreFastest) {
  if (!has_area_solver()) GTEST_SKIP() << "built without lp_solve";
  // 12 of kernel 0, 10 on the first kind (one worker) and 20 on the second (two workers); 4 of kernel 1, on the first
  // kind alone, 5 each.
  const AreaSolution solution = solve({.workers = {1, 2}, .tasks = {12, 4}, .times = {{10, 20}, {5, std::nullopt}}});
  // x tasks of kernel 0 on the first kind: 10 x + 20 = (12 - x) * 20 / 2, so x = 5.
  EXPECT_TRUE(solution.is_exact);
  EXPECT_NEAR(solution.bound, 70, 1e-6);
  ASSERT_EQ(solution.placed.size(), 2u);
  EXPECT_NEAR(solution.placed[0][0], 5, 1e-6);
  EXPECT_NEAR(solution.placed[0][1], 7, 1e-6);
  EXPECT_NEAR(solution.placed[1][0], 4, 1e-6);
  EXPECT_EQ(solution.placed[1][1], 0);
}

TEST(AreaBound, KindsAreNamedByTheWorkersNames) {
  const Machine machine{.kind_of_worker = {0, 0, 1}, .time_ns = {{40, 20}}};
  std::vector<Task> tasks{{.kernel = 0, .worker = 0}, {.kernel = 0, .worker = 2}, {.kernel = 0, .worker = 2}};
  emulate(machine, tasks, numbers(3));
  const auto history = recorded(machine, tasks);
  const AreaBound bound = area_bound(*history);
  ASSERT_EQ(bound.kinds.size(), 2u);
  EXPECT_EQ(bound.kinds[0].name, "cpu");
  EXPECT_EQ(bound.kinds[0].workers, 2u);
  EXPECT_EQ(bound.kinds[1].name, "cuda");
  ASSERT_EQ(bound.kernels.size(), 2u);
  EXPECT_EQ(bound.kernels[0].tasks, 1u);
  EXPECT_EQ(bound.kernels[0].ns, 40);
  EXPECT_EQ(bound.kernels[1].tasks, 2u);
  EXPECT_EQ(bound.kernels[1].ns, 40);
  EXPECT_LE(bound.ns, 40);
}

TEST(AreaBound, RandomRunsAgreeWithBreakpointsAndLieWithinTheMakespan) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const Machine machine = random_machine(random, 1 + seed % 3, 3);
    std::vector<Task> tasks = random_tasks(random, machine, static_cast<std::uint32_t>(1 + random() % 30));
    const std::int64_t makespan_ns = emulate(machine, tasks, numbers(tasks.size()));
    const auto history = recorded(machine, tasks);
    const AreaBound bound = area_bound(*history);
    ASSERT_EQ(split_time(*history).makespan_ns, makespan_ns) << "seed " << seed;
    EXPECT_LE(bound.ns, makespan_ns) << "seed " << seed;
    EXPECT_EQ(bound.is_exact, has_area_solver() || machine.kinds() == 1) << "seed " << seed;
    const AreaProgram program = program_of(machine, tasks);
    if (!bound.is_exact || machine.kinds() == 3) continue;  // check_area_programs.py compares more kinds
    const double expected = by_breakpoints(program);
    EXPECT_LE(static_cast<double>(bound.ns), expected * (1 + 1e-12)) << "seed " << seed;
    EXPECT_GT(static_cast<double>(bound.ns), expected * (1 - 1e-9) - 1) << "seed " << seed;
    // The distribution has the reported makespan.
    std::vector<double> used(machine.kinds());
    for (const KernelPlace& place : bound.kernels)
      used[place.kind] +=
          place.placed * static_cast<double>(place.ns) / static_cast<double>(place.tasks) / program.workers[place.kind];
    EXPECT_NEAR(*std::ranges::max_element(used), expected, 1e-6 * expected) << "seed " << seed;
  }
}

TEST(AreaBound, NoScheduleOfATinyRunIsShorterThanItsBounds) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const std::size_t kinds = 1 + seed % 2;
    const Machine machine = random_machine(random, kinds, kinds == 1 ? 2 : 1);
    std::vector<Task> tasks = random_tasks(random, machine, static_cast<std::uint32_t>(2 + random() % 4));
    emulate(machine, tasks, numbers(tasks.size()));
    const auto history = recorded(machine, tasks);
    const AreaProgram program = program_of(machine, tasks);
    std::vector<std::vector<bool>> seen(machine.time_ns.size(), std::vector<bool>(kinds));  // where a kernel has run
    for (const Task& task : tasks) seen[task.kernel][machine.kind_of_worker[task.worker]] = true;
    // Enumerates every order and every choice of workers.
    std::int64_t shortest_ns = std::numeric_limits<std::int64_t>::max();
    std::vector<std::uint32_t> order = numbers(tasks.size());
    do {
      std::vector<bool> begun(tasks.size());
      const bool is_possible = std::ranges::all_of(order, [&](std::uint32_t number) {
        begun[number] = true;
        return std::ranges::all_of(tasks[number].after, [&](std::uint32_t before) { return begun[before]; });
      });
      if (!is_possible) continue;
      std::vector<Task> tried = tasks;
      const std::function<void(std::size_t)> choose = [&](std::size_t number) {
        if (number == tried.size()) return void(shortest_ns = std::min(shortest_ns, emulate(machine, tried, order)));
        for (std::size_t worker = 0; worker < machine.kind_of_worker.size(); ++worker) {
          if (!seen[tried[number].kernel][machine.kind_of_worker[worker]]) continue;
          tried[number].worker = worker;
          choose(number + 1);
        }
      };
      choose(0);
    } while (std::ranges::next_permutation(order).found);
    EXPECT_LE(area_bound(*history).ns, shortest_ns) << "seed " << seed;
    // The critical path has the measured durations: with several kinds another placement may have a shorter one.
    if (kinds > 1) continue;
    EXPECT_LE(critical_path(*history, TaskGraph(*history), Messages::free).length_ns, shortest_ns) << "seed " << seed;
  }
}

TEST(AreaBound, NothingHasRun) {
  EXPECT_EQ(solve({}).bound, 0);
  const Machine machine{.kind_of_worker = {0, 1}, .time_ns = {{2, 2}}};
  const AreaBound bound = area_bound(*recorded(machine, {}));
  EXPECT_EQ(bound.ns, 0);
  EXPECT_TRUE(bound.kernels.empty());
}

}  // namespace
}  // namespace tandem::analysis::area_bound_test
