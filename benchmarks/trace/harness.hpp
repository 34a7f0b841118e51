// benchmarks/trace/harness.hpp: what an event with two arguments costs the thread that records it.
//
// An adapter presents one tracer:
//
//   static constexpr const char* name;        // "fxt"
//   std::string version() const;
//   class Actor {                             // of one thread
//     explicit Actor(Adapter&, unsigned index);
//     void on(std::uint32_t a, std::uint32_t b);  // an event that is recorded
//     void off(...);                              // an event of a type that is not recorded
//   };
//   void drain();                             // returns when the buffers are empty, by whatever the tracer does
//
// Results: `event_N`, nanoseconds of the recording threads' processor time per event with N threads at once, in rows as
// long as the buffers hold; `event_p999`, the 99.9th percentile of single events on one thread; `off`, of an event
// whose type is off; and `clock`, of reading the TSC alone, which every event with a time costs.
#pragma once

#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"

namespace benchmarks::trace {

/// What the command line asks for: --repetitions N (5), --events N of each thread in a row (200,000), --cold N (4,000)
/// of Tandem's inside of tasks.
struct Plan {
  unsigned repetitions;
  unsigned events;
  unsigned cold;

  Plan(int argc, char** argv) : Plan(Options(argc, argv, {"repetitions", "events", "cold"})) {}

 private:
  explicit Plan(const Options& options)
      : repetitions(options.count("repetitions", 5)),
        events(options.count("events", 200'000)),
        cold(options.count("cold", 4'000)) {}
};

namespace internal {

inline double thread_cpu_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

inline double wall_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Nanoseconds per tick of the TSC.
inline double tick_ns() {
  const double from_ns = wall_ns();
  const std::uint64_t from = __rdtsc();
  while (wall_ns() < from_ns + 2e7) {
  }
  return (wall_ns() - from_ns) / static_cast<double>(__rdtsc() - from);
}

/// Mean over all threads of the processor time per call.
template <class Adapter, class Body>
double ns_per_call(Adapter& adapter, unsigned threads, unsigned calls, Body body) {
  std::atomic<unsigned> ready{0};
  std::vector<double> spent(threads);
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      typename Adapter::Actor actor(adapter, t);
      for (std::uint32_t i = 0; i < 100; ++i) body(actor, i);
      ++ready;
      while (ready < threads) std::this_thread::yield();
      const double from_ns = thread_cpu_ns();
      for (std::uint32_t i = 0; i < calls; ++i) body(actor, i);
      spent[t] = (thread_cpu_ns() - from_ns) / calls;
    });
  for (std::thread& thread : all) thread.join();
  double sum = 0;
  for (const double ns : spent) sum += ns;
  return sum / threads;
}

/// One event each, between two looks at the clock; without what the looks take.
template <class Adapter>
double percentile_999_ns(Adapter& adapter, unsigned events) {
  std::vector<std::uint32_t> ticks(events), bare(events);
  std::thread([&] {
    typename Adapter::Actor actor(adapter, 0);
    for (auto* list : {&bare, &ticks})
      for (std::uint32_t i = 0; i < events; ++i) {
        const std::uint64_t from = __rdtsc();
        if (list == &ticks) actor.on(i, i);
        (*list)[i] = static_cast<std::uint32_t>(__rdtsc() - from);
      }
  }).join();
  const auto at = [&](std::vector<std::uint32_t>& list, double share) {
    std::sort(list.begin(), list.end());
    return static_cast<double>(list[static_cast<std::size_t>(share * (events - 1))]);
  };
  return std::max(0.0, at(ticks, 0.999) - at(bare, 0.5)) * tick_ns();
}

}  // namespace internal

template <class Adapter>
Report measure(Adapter& adapter, const Plan& plan) {
  using Actor = typename Adapter::Actor;
  Report report{Adapter::name, adapter.version(), 1, {}};
  const auto add = [&](const std::string& name, auto sample) {
    Measurement measurement{name, "ns/event", {}};
    for (unsigned i = 0; i < plan.repetitions; ++i) {
      measurement.samples.push_back(sample());
      adapter.drain();
    }
    report.results.push_back(measurement);
  };
  for (const unsigned threads : {1U, 2U, 8U})
    add("event_" + std::to_string(threads), [&] {
      return internal::ns_per_call(adapter, threads, plan.events / threads,
                                   [](Actor& actor, std::uint32_t i) { actor.on(i, i); });
    });
  add("event_p999", [&] { return internal::percentile_999_ns(adapter, plan.events / 4); });
  add("off", [&] {
    return internal::ns_per_call(adapter, 1, 10 * plan.events, [](Actor& actor, std::uint32_t i) { actor.off(i, i); });
  });
  add("clock", [&] {
    return internal::ns_per_call(adapter, 1, plan.events, [](Actor&, std::uint32_t) {
      const std::uint64_t now = __rdtsc();
      asm volatile("" ::"r"(now));
    });
  });
  return report;
}

}  // namespace benchmarks::trace
