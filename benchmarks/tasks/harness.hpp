// benchmarks/tasks/harness.hpp: measures the flows on one runtime, which a small adapter class presents.
//
// An adapter is a visitor of the flows (flows.hpp) with some more members:
//
//   explicit Adapter(unsigned workers);
//   static constexpr const char* name;                      // "starpu"
//   std::string version() const;
//   template <class Flow> void open(const Flow& flow);      // untimed: make Flow::data_count handles
//   void task(...);                                         // timed: submit one task with an empty kernel
//   void wait();                                            // timed: return when all submitted tasks have finished
//   void close();                                           // untimed: drop the handles
//
// An adapter of a runtime that can run a recorded flow again has
//
//   template <class Flow> void record(const Flow& flow);    // untimed, after open(); returns when nothing is pending
//   void replay();                                          // timed: submit the recording once; wait() follows
//
// and one that can report the memory of a submitted task has
//
//   static constexpr std::size_t memory_tasks;              // how many tasks to pile up
//   static double memory_bytes();                           // memory in use, by whatever means suits its allocator
//   bool can_block() const;                                 // false where block() would hold up release(), too
//   void block();                                           // hold datum 0, with a task that sleeps until release()
//   void release();
//
// One sample submits and waits `laps` times and counts the time from the first submission to the end of the wait of
// each lap: open, close and the destruction of graphs are outside. main is: `return run_flows<Adapter>(argc, argv);`
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"
#include "benchmarks/tasks/flows.hpp"

namespace benchmarks::tasks {

template <class Adapter>
concept Replays = requires(Adapter& adapter, const Cholesky& flow) {
  adapter.record(flow);
  adapter.replay();
};

template <class Adapter>
concept TellsMemory = requires(Adapter& adapter) {
  { Adapter::memory_bytes() } -> std::convertible_to<double>;
  { Adapter::memory_tasks } -> std::convertible_to<std::size_t>;
  { adapter.can_block() } -> std::convertible_to<bool>;
  adapter.block();
  adapter.release();
};

/// Resident memory of this process. Right for any allocator, when enough tasks are piled up to make pages a detail.
inline double resident_bytes() {
  unsigned long total_pages = 0;
  unsigned long resident_pages = 0;
  if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%lu %lu", &total_pages, &resident_pages) != 2) {
      resident_pages = 0;
    }
    std::fclose(statm);
  }
  return static_cast<double>(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// What malloc has given out in the main thread's arena: exact, for a runtime that cannot hold back more than a few
/// tasks.
inline double allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

/// What the command line asks for.
struct Plan {
  unsigned workers;
  unsigned repetitions;
  std::string flow;

  Plan(int argc, char** argv)
      : Plan(Options(argc, argv, {"workers", "repetitions", "flow"}),
             std::max(1U, std::thread::hardware_concurrency())) {}

  bool wants(std::string_view name) const { return flow == "all" || flow == name; }

 private:
  Plan(const Options& options, unsigned cores)
      : workers(options.count("workers", cores)),
        repetitions(options.count("repetitions", 7)),
        flow(options.text("flow", "all")) {}
};

namespace internal {

/// Nanoseconds that `submit` and the wait after it take.
template <class Adapter, class Submit>
double lap_ns(Adapter& adapter, const Submit& submit) {
  const auto begin = std::chrono::steady_clock::now();
  submit();
  adapter.wait();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs `sample` once to warm up and then `repetitions` times.
template <class Sample>
Measurement repeat(std::string_view name, std::size_t task_count, unsigned repetitions, const Sample& sample) {
  Measurement measurement{std::string(name), "ns/task", {}, task_count};
  sample();
  for (unsigned i = 0; i < repetitions; ++i) {
    measurement.samples.push_back(sample() / static_cast<double>(task_count));
  }
  return measurement;
}

template <class Adapter, class Flow>
Measurement measure_flow(Adapter& adapter, const Flow& flow, unsigned repetitions) {
  return repeat(Flow::name, Flow::task_count * Flow::laps, repetitions, [&] {
    double total_ns = 0;
    for (unsigned lap = 0; lap < Flow::laps; ++lap) {
      adapter.open(flow);
      total_ns += lap_ns(adapter, [&] { flow(adapter); });
      adapter.close();
    }
    return total_ns;
  });
}

template <Replays Adapter>
Measurement measure_replay(Adapter& adapter, const Cholesky& flow, unsigned repetitions) {
  adapter.open(flow);
  adapter.record(flow);
  auto measurement = repeat(Cholesky::replay_name, Cholesky::task_count * Cholesky::replay_laps, repetitions, [&] {
    double total_ns = 0;
    for (unsigned lap = 0; lap < Cholesky::replay_laps; ++lap) {
      total_ns += lap_ns(adapter, [&] { adapter.replay(); });
    }
    return total_ns;
  });
  adapter.close();
  return measurement;
}

/// Has to come first in a process: memory that earlier flows left in pools would be used again, and not be seen.
template <TellsMemory Adapter>
Measurement measure_memory(Adapter& adapter) {
  const ThreeAccesses flow{Adapter::memory_tasks};
  adapter.open(flow);
  adapter.block();
  const double before_bytes = Adapter::memory_bytes();
  flow(adapter);
  const double after_bytes = Adapter::memory_bytes();
  adapter.release();
  adapter.wait();
  adapter.close();
  const double bytes = (after_bytes - before_bytes) / static_cast<double>(flow.task_count);
  return {std::string(ThreeAccesses::name), "bytes", {bytes}, flow.task_count};
}

}  // namespace internal

/// Measures what the plan asks for and that the adapter can do.
template <class Adapter>
Report measure(const Plan& plan) {
  Adapter adapter(plan.workers);
  Report report{Adapter::name, adapter.version(), plan.workers, {}};
  if constexpr (TellsMemory<Adapter>) {
    if (plan.wants(ThreeAccesses::name) && adapter.can_block()) {
      report.results.push_back(internal::measure_memory(adapter));
    }
  }
  const auto time_flow = [&](const auto& flow) {
    if (plan.wants(flow.name)) {
      report.results.push_back(internal::measure_flow(adapter, flow, plan.repetitions));
    }
  };
  std::apply([&](const auto&... flow) { (time_flow(flow), ...); }, TimedFlows{});
  if constexpr (Replays<Adapter>) {
    if (plan.wants(Cholesky::replay_name)) {
      report.results.push_back(internal::measure_replay(adapter, Cholesky{}, plan.repetitions));
    }
  }
  return report;
}

/// The main function of a benchmark program: --workers N (default: all cores), --repetitions N (7), --flow NAME|all.
/// A flow that this runtime does not have gives an empty list of results.
template <class Adapter>
int run_flows(int argc, char** argv) {
  measure<Adapter>(Plan(argc, argv)).print();
  return 0;
}

}  // namespace benchmarks::tasks
