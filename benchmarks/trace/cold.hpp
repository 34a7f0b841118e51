// benchmarks/trace/cold.hpp: what an event costs inside tasks that compute, whose data have pushed the trace out of the
// caches.
#pragma once

#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/trace/harness.hpp"
#include "tandem/tandem.hpp"
#include "tandem/trace.hpp"
#include "tandem/trace/stream.hpp"

namespace benchmarks::trace {

/// One thread that runs kernels: its own stream in the runtime's trace, and what its looks at the TSC differed by.
/// Written by that thread alone, and read once the runtime has waited.
struct ColdThread {
  tandem::trace::Stream stream;
  std::array<volatile std::uint32_t, 16> own_words{};
  std::vector<std::uint32_t> with_event, with_stores, without;
};

/// The threads that have run kernels of one flow. They stay valid; any thread may ask for its own.
class ColdThreads {
 public:
  ColdThread& mine(tandem::Runtime& runtime) {
    static thread_local ColdThread* own = nullptr;
    static thread_local const ColdThreads* of = nullptr;
    if (of == this) return *own;
    const std::lock_guard guard(mutex_);
    own = threads_.emplace_back(std::make_unique<ColdThread>()).get();
    of = this;
    runtime.trace().attach(own->stream, "cold " + std::to_string(threads_.size()));
    return *own;
  }

  /// Of all threads, without what they had before.
  std::vector<std::uint32_t> take(std::vector<std::uint32_t> ColdThread::*list) {
    std::vector<std::uint32_t> all;
    for (const auto& thread : threads_) {
      all.insert(all.end(), ((*thread).*list).begin(), ((*thread).*list).end());
      ((*thread).*list).clear();
    }
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ColdThread>> threads_;
};

/// Nanoseconds of events in a flow of updates y_i += a x_j on tiles of 2 MiB, which the runtime runs, and traces as it
/// always does.
///
/// A kernel first does its work, which takes 4 MiB through the caches of its core. Then it looks at the TSC, and looks
/// again: of three kernels one emits an event in between, one stores six words to a line of the program's own, and one
/// does nothing. So what the looks themselves take is known from kernels that are as cold: `cold` and `cold_p999` are
/// the median and the 99.9th percentile with an event, less the median with nothing. `cold_stores_p999` and
/// `cold_nothing_p999` are the same percentile of the others: what comes first behind a kernel that writes to memory
/// waits until the processor has room for further stores, whatever it is. No fence: stores that are still under way
/// delay what comes behind them no more than in a program.
inline void measure_cold(Report& report, unsigned repetitions, unsigned events) {
  constexpr std::size_t tile_doubles = (2 << 20) / sizeof(double);
  constexpr unsigned tiles = 8;
  const auto folder = std::filesystem::temp_directory_path() / ("bench-trace-cold-" + std::to_string(::getpid()));
  Measurement middle{"cold", "ns/event", {}}, rare{"cold_p999", "ns/event", {}};
  Measurement stores{"cold_stores_p999", "ns", {}}, nothing{"cold_nothing_p999", "ns", {}};
  {
    tandem::Runtime runtime(tandem::Options{.more = {{"trace", "all"}, {"trace.folder", folder.string()}}});
    ColdThreads threads;
    std::vector<std::vector<double>> x(tiles, std::vector<double>(tile_doubles, 1.0)), y = x;
    std::vector<tandem::Data<tandem::Vector<double>>> hx, hy;
    for (unsigned i = 0; i < tiles; ++i) {
      hx.push_back(runtime.data("x", x[i]));
      hy.push_back(runtime.data("y", y[i]));
    }
    const tandem::Codelet update("update", [&](unsigned number, std::span<const double> from, std::span<double> to) {
      for (std::size_t i = 0; i < from.size(); ++i) to[i] += 1e-6 * from[i];
      ColdThread& mine = threads.mine(runtime);
      const auto timed = [&](std::vector<std::uint32_t>& list, auto action) {
        const std::uint64_t begin = __rdtsc();
        action();
        list.push_back(static_cast<std::uint32_t>(__rdtsc() - begin));
      };
      switch (number % 3) {
        case 0: return timed(mine.with_event,
                             [&] { mine.stream.emit<tandem::trace::Type::task_deps>(number, number); });
        case 1:
          return timed(mine.with_stores, [&] {
            for (unsigned i = 0; i < 6; ++i) mine.own_words[i] = number;
          });
        default: return timed(mine.without, [] { asm volatile("" ::: "memory"); });
      }
    });
    for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
      for (unsigned number = 0; number < 3 * events; ++number)
        runtime.submit(update, number, read(hx[(number / tiles) % tiles]), read_write(hy[number % tiles]));
      runtime.wait();
      const auto with_event = threads.take(&ColdThread::with_event),
                 with_stores = threads.take(&ColdThread::with_stores), without = threads.take(&ColdThread::without);
      const double looks = without[without.size() / 2], tick = internal::tick_ns();
      const auto ns = [&](const std::vector<std::uint32_t>& ticks, double share) {
        return std::max(0.0, ticks[static_cast<std::size_t>(share * static_cast<double>(ticks.size() - 1))] - looks) *
               tick;
      };
      middle.samples.push_back(ns(with_event, 0.5));
      rare.samples.push_back(ns(with_event, 0.999));
      stores.samples.push_back(ns(with_stores, 0.999));
      nothing.samples.push_back(ns(without, 0.999));
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  for (Measurement* measurement : {&middle, &rare, &stores, &nothing})
    report.results.push_back(std::move(*measurement));
}

}  // namespace benchmarks::trace
