// tandem/runtime/worker/statistics.hpp: statistics of workers: times per codelet, and where each worker's time went.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tandem/model/energy/power_model.hpp"
#include "tandem/runtime/memory/page_locked_report.hpp"
#include "tandem/runtime/memory/prefetch_report.hpp"

namespace tandem::runtime {

/// Count, mean and variance of durations, updated in one pass (Welford 1962), merged pairwise (Chan, Golub, LeVeque
/// 1979).
struct DurationStatistics {
  std::uint64_t count = 0;  ///< number of durations
  double mean_ns = 0;       ///< 0 when there are none
  double squares = 0;  ///< sum of squared differences from the mean, ns^2

  /// Adds a duration.
  void add(double duration_ns) noexcept {
    ++count;
    const double delta = duration_ns - mean_ns;
    mean_ns += delta / static_cast<double>(count);
    squares += delta * (duration_ns - mean_ns);
  }
  /// Adds all durations of `other`.
  void merge(const DurationStatistics& other) noexcept {
    if (other.count == 0) return;
    const double total = static_cast<double>(count + other.count);
    const double delta = other.mean_ns - mean_ns;
    squares += other.squares + delta * delta * static_cast<double>(count) * static_cast<double>(other.count) / total;
    mean_ns += delta * static_cast<double>(other.count) / total;
    count += other.count;
  }
  /// Standard deviation of the sample.
  double deviation_ns() const noexcept { return count < 2 ? 0 : std::sqrt(squares / static_cast<double>(count - 1)); }
  /// Sum of all durations.
  double total_ns() const noexcept { return mean_ns * static_cast<double>(count); }
};

/// Durations of the kernels of one codelet.
struct CodeletReport {
  std::string name;              ///< name of the codelet
  DurationStatistics durations;  ///< durations of its kernels
};

/// Where a worker's time went since the runtime started, in ns. `busy`: in kernels, or its device had tasks; `idle`:
/// resting or asleep; the rest is overhead. The caller's worker exists only inside waits, so its total is shorter than
/// the others'.
struct WorkerReport {
  std::uint64_t tasks = 0;   ///< tasks that it ran
  std::uint64_t steals = 0;  ///< thefts of tasks from another worker's queue
  std::uint64_t fallbacks = 0;  ///< tasks that its device could not run and that other workers ran instead
  /// Tasks posted to its device while the one they waited for was in flight (`device_stretch`).
  std::uint64_t posted_behind = 0;
  std::uint64_t holds = 0;  ///< waits for an urgent task when it could have run another
  std::uint64_t put_aside = 0;  ///< times that a memory-bound task that it took had to wait for others (`MemoryGate`)
  std::uint64_t polls = 0;  ///< looks that found no task, without polling the network
  std::uint64_t wakes = 0;  ///< times that another thread chose it to wake up, asleep or awake (`polling=auto`)
  double busy_ns = 0;        ///< time in kernels
  double idle_ns = 0;        ///< time resting or asleep
  double total_ns = 0;       ///< time since the runtime started
  /// Time neither busy nor idle.
  double overhead_ns() const noexcept { return total_ns - busy_ns - idle_ns; }
};

/// Energy of a codelet's kernels on one kind of workers, beyond the idle power.
struct KernelEnergy {
  std::string codelet;      ///< name of the codelet
  std::string kind;         ///< of the workers: "cpu", or the name of a device without its number
  double joules = 0;        ///< energy of all its kernels
  model::Watts watts = {};  ///< power of one running kernel, with its error
};

/// Energy of one kind of workers.
struct KindEnergy {
  std::string kind;        ///< kind as in `KernelEnergy`
  double joules = 0;       ///< all energy
  double idle_joules = 0;  ///< energy that it would have taken without kernels
  model::Watts idle = {};  ///< power of one device, or of all that the processor's counters cover
};

/// Where the energy of a run went. Empty: no counter can be read, and no powers of workers are given.
struct EnergyReport {
  /// This process's part of a counter.
  struct Counter {
    std::string name;   ///< "package-0"
    double joules = 0;  ///< energy since the runtime started
  };

  bool is_measured = false;  ///< true: by counters; false: by the figures of the machine's workers
  std::vector<Counter> counters = {};      ///< counters, if it is measured
  std::vector<KindEnergy> kinds = {};      ///< energy by kind of workers
  std::vector<KernelEnergy> kernels = {};  ///< energy by codelet, the most first

  /// Energy of all kinds.
  double joules() const noexcept {
    double sum = 0;
    for (const KindEnergy& kind : kinds) sum += kind.joules;
    return sum;
  }
  std::string table() const;  ///< text for people
};

/// Result of `Runtime::statistics`.
struct StatisticsReport {
  std::vector<CodeletReport> codelets;  ///< with option `stats` or `timeline`
  std::vector<WorkerReport> workers;    ///< by index
  PrefetchReport prefetches;            ///< hints of the program
  PageLockedReport page_locked;         ///< main memory for copies from and to CUDA devices
  EnergyReport energy;                  ///< with option `stats`, and with those that need it
  std::string table() const;  ///< text for people
};

/// One run of a kernel.
struct TimelineEvent {
  const std::string* codelet = nullptr;  ///< name of the codelet
  std::uint64_t task = 0;                ///< position in the flow
  unsigned worker = 0;                   ///< worker that ran it
  std::int64_t start_ns = 0;             ///< by the runtime's clock
  std::int64_t end_ns = 0;               ///< by the runtime's clock
};

}  // namespace tandem::runtime
