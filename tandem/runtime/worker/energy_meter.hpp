// tandem/runtime/worker/energy_meter.hpp: samples energy counters, and estimates the power of each kind of task.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/driver.hpp"
#include "tandem/base/energy_counter.hpp"
#include "tandem/model/energy/power_model.hpp"
#include "tandem/model/energy/power_table.hpp"
#include "tandem/runtime/worker/statistics.hpp"
#include "tandem/trace/session.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::runtime {

class LearntPowers;

/// Counters, and the workers whose energy they show: all packages of the processor and the CPU workers, or a device and
/// its worker.
struct EnergySource {
  std::string kind;               ///< kind of these workers in performance models; several sources may have one kind
  std::vector<unsigned> workers;  ///< ascending
  std::vector<std::unique_ptr<base::EnergyCounter>> counters;
  double share = 1;  ///< this process's share of the counted energy: one of several ranks of a host has a part
};

/// Takes a sample every `every_ns`: the energy of each source's counters since the last one, and the time that each
/// codelet ran on its workers. A `model::PowerModel` for each kind of workers computes powers from that. A counter that
/// cannot be read, or that jumps, loses the sample of its source; it may recover.
///
/// A step takes some us for each counter and worker, and 1 ms more every `kFitEvery` samples if `tell` was called.
///
/// Threads: the driver's calls steps; any may call `report`, `measured` and `sample`.
class EnergyMeter final : public base::Steppable {
 public:
  static constexpr unsigned kFitEvery = 20;        ///< samples
  static constexpr std::int64_t kShortestNs = 1'000'000;  ///< shortest sample: RAPL is updated as often
  static constexpr double kMostWatts = 20'000;     ///< most power of a counter; more is an error of the counter

  /// Calls `visit(codelet, ns)` for each codelet with the time that it has run on a worker so far.
  using BusyTimes = std::function<void(unsigned worker, std::int64_t now_ns,
                                       const std::function<void(std::string_view codelet, double ns)>& visit)>;

  /// Counting begins at `now_ns`.
  EnergyMeter(std::vector<EnergySource> sources, BusyTimes busy, std::int64_t every_ns, std::int64_t now_ns);

  std::int64_t step(std::int64_t now_ns) override;
  /// Takes another sample, after the last step.
  void sample(std::int64_t now_ns);
  /// Sets the object that is told the measured powers; it outlives this. Before the first step.
  void tell(LearntPowers& powers) noexcept { told_ = &powers; }

  EnergyReport report() const;
  /// Measured powers for a file, and for later runs.
  model::PowerTable measured() const;

  /// Writes an event `worker.energy` for each counter and sample.
  void trace_to(trace::Session& session);

 private:
  struct Kind {
    std::string name;
    model::PowerModel model;
    std::map<std::string, unsigned, std::less<>> numbers;  ///< numbers of codelets in the model
    std::vector<std::string> codelets;                     ///< by number
  };
  struct Source {
    EnergySource of;
    unsigned kind = 0;
    std::vector<std::uint64_t> last_uj = {};             ///< by counter
    std::vector<bool> is_read = {};                      ///< by counter: `last_uj` is a value of `last_ns`
    std::vector<double> joules = {};                     ///< by counter: all joules, before `share`
    std::vector<std::uint32_t> names = {};               ///< by counter: name in the trace
    std::map<std::string, double, std::less<>> busy_s = {};  ///< by codelet: busy time at the last sample
    std::int64_t last_ns = 0;
  };

  void sample(Source& source, std::int64_t now_ns);
  unsigned number_of(Kind& kind, const std::string& codelet);
  model::PowerTable measured_here() const;

  const BusyTimes busy_;
  const std::int64_t every_ns_;
  LearntPowers* told_ = nullptr;
  trace::Stream stream_;
  mutable std::mutex mutex_;  ///< guards the members below
  std::vector<Kind> kinds_;
  std::vector<Source> sources_;
  unsigned samples_ = 0;
};

}  // namespace tandem::runtime
