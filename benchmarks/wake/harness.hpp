// benchmarks/wake/harness.hpp: what idle workers cost, and how soon they start the first task that comes.
//
// An adapter presents one runtime:
//
//   static constexpr const char* name;                      // "starpu"
//   std::string version() const;
//   bool workers_beside_caller() const;                     // false when nobody but the caller could run a task
//   void submit(Probe& probe);                              // a task whose kernel calls probe.start()
//   void wait();                                            // until all submitted tasks have finished
//
// Results: `idle_cpu`, percent of one core that the process uses while there is no work; `first_task`, microseconds
// from the call of submit to the kernel's first statement when every worker has slept and the caller sleeps too, so
// that a worker has to wake; `first_task_wait`, the same with the caller in the runtime's own wait at once, who may run
// the task; and the 99th percentile of either.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"

namespace benchmarks::wake {

using Clock = std::chrono::steady_clock;

constexpr auto settle = std::chrono::milliseconds(100);      // without work before the processor time is taken
constexpr auto idle_span = std::chrono::milliseconds(500);
constexpr auto sleep_before_task = std::chrono::milliseconds(20);
constexpr auto patience = std::chrono::seconds(10);

/// Reports one kernel's start to the caller. The kernel calls start() once per trial; the caller calls the rest.
class Probe {
 public:
  /// In the kernel: the clock first, then everything that takes time.
  void start() {
    const auto now = Clock::now();
    {
      const std::lock_guard lock(mutex_);
      started_at_ = now;
      thread_ = std::this_thread::get_id();
      started_ = true;
    }
    changed_.notify_one();
  }

  /// Sleeps until the kernel has started. A worker that never wakes ends the program: nothing could be measured any
  /// more.
  void sleep_until_started() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return started_; })) {
      std::fprintf(stderr, "no worker started the task within 10 s\n");
      std::_Exit(1);
    }
  }

  /// Microseconds from `submitted_at` to the start; forgets it, for the next trial.
  double take_us(Clock::time_point submitted_at) {
    const std::lock_guard lock(mutex_);
    if (!started_) {
      std::fprintf(stderr, "the wait returned before the task had started\n");
      std::_Exit(1);
    }
    started_ = false;
    return std::chrono::duration<double, std::micro>(started_at_ - submitted_at).count();
  }

  /// Which thread the latest kernel ran on.
  std::thread::id thread() {
    const std::lock_guard lock(mutex_);
    return thread_;
  }

 private:
  std::mutex mutex_;  // held around all below
  std::condition_variable changed_;
  Clock::time_point started_at_;
  std::thread::id thread_;
  bool started_ = false;
};

/// What the command line asks for: --workers N (all cores), --repetitions N of idle_cpu (3), --trials N of the others
/// (200).
struct Plan {
  unsigned workers;
  unsigned repetitions;
  unsigned trials;

  Plan(int argc, char** argv)
      : Plan(Options(argc, argv, {"workers", "repetitions", "trials"}),
             std::max(1U, std::thread::hardware_concurrency())) {}

 private:
  Plan(const Options& options, unsigned cores)
      : workers(options.count("workers", cores)),
        repetitions(options.count("repetitions", 3)),
        trials(options.count("trials", 200)) {}
};

namespace internal {

/// Seconds of processor time that all threads of this process have used.
inline double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The value that 99 % of the samples do not exceed. Not empty.
inline double percentile_99(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[(samples.size() * 99 + 99) / 100 - 1];
}

template <class Adapter>
Measurement measure_idle(Adapter& adapter, Probe& probe, unsigned repetitions) {
  Measurement measurement{"idle_cpu", "% of core", {}};
  for (unsigned i = 0; i < repetitions; ++i) {
    // A task before, since workers that have never worked may not have started yet.
    adapter.submit(probe);
    adapter.wait();
    probe.take_us(Clock::now());
    std::this_thread::sleep_for(settle);
    const auto begin = Clock::now();
    const double before = cpu_seconds();
    std::this_thread::sleep_for(idle_span);
    const double used = cpu_seconds() - before;
    measurement.samples.push_back(100 * used / std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return measurement;
}

/// Once to warm up, then `trials` times.
template <class Adapter>
std::vector<double> first_task_us(Adapter& adapter, Probe& probe, unsigned trials, bool caller_waits) {
  std::vector<double> samples;
  for (unsigned i = 0; i <= trials; ++i) {
    std::this_thread::sleep_for(sleep_before_task);
    const auto submitted_at = Clock::now();
    adapter.submit(probe);
    if (!caller_waits) {
      probe.sleep_until_started();
      if (probe.thread() == std::this_thread::get_id()) {
        std::fprintf(stderr, "the caller ran the task, so that no worker had to wake\n");
        std::_Exit(1);
      }
    }
    adapter.wait();
    const double elapsed_us = probe.take_us(submitted_at);
    if (i > 0) {
      samples.push_back(elapsed_us);
    }
  }
  return samples;
}

}  // namespace internal

/// Measures an adapter that has started, and prints the report.
template <class Adapter>
void measure(Adapter& adapter, const Plan& plan) {
  Probe probe;
  Report report{Adapter::name, adapter.version(), plan.workers, {}};
  report.results.push_back(internal::measure_idle(adapter, probe, plan.repetitions));
  const auto add = [&](const std::string& name, const std::vector<double>& samples) {
    report.results.push_back({name, "us", samples});
    report.results.push_back({name + "_p99", "us", {internal::percentile_99(samples)}});
  };
  if (adapter.workers_beside_caller()) {
    add("first_task", internal::first_task_us(adapter, probe, plan.trials, false));
  } else {
    std::fprintf(stderr, "first_task is left out: there is no worker beside the caller\n");
  }
  add("first_task_wait", internal::first_task_us(adapter, probe, plan.trials, true));
  report.print();
}

}  // namespace benchmarks::wake
