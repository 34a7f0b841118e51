// tandem/runtime/worker/energy_meter.hpp: reads counters of energy now and then, and says what each kind of task takes of it.
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

/// Counters, and the workers whose energy they show: all packages of the processor and the CPU workers, or a device and its worker.
struct EnergySource {
  std::string kind;               ///< of these workers, as performance models name it; several sources may be of one kind
  std::vector<unsigned> workers;  ///< in ascending order
  std::vector<std::unique_ptr<base::EnergyCounter>> counters;
  double share = 1;               ///< of what the counters show that is this process's: one of several ranks of a host has a part
};

/// Every `every_ns` a sample: what the counters of each source have shown since the last one, and for how long each codelet ran on its workers. A
/// `model::PowerModel` for each kind of workers makes powers of that. A counter that cannot be read, or that jumps, costs the sample of its source; it may
/// come back.
///
/// A step takes some us for each counter and worker, 1 ms more every `kFitEvery` samples if somebody asks for powers (`tell`).
///
/// Threads: steps by the driver's; `report`, `measured` and `sample` by any.
class EnergyMeter final : public base::Steppable {
 public:
  static constexpr unsigned kFitEvery = 20;        ///< samples
  static constexpr std::int64_t kShortestNs = 1'000'000;  ///< of a sample: RAPL is updated as often
  static constexpr double kMostWatts = 20'000;     ///< of a counter; more is a mistake of its

  /// Calls `visit(codelet, ns)` for each codelet with the time that it has run on a worker so far.
  using BusyTimes = std::function<void(unsigned worker, std::int64_t now_ns, const std::function<void(std::string_view codelet, double ns)>& visit)>;

  /// The counting begins at `now_ns`.
  EnergyMeter(std::vector<EnergySource> sources, BusyTimes busy, std::int64_t every_ns, std::int64_t now_ns);

  std::int64_t step(std::int64_t now_ns) override;
  /// One more, after the last step.
  void sample(std::int64_t now_ns);
  /// `powers` hears what is measured; outlives this. Before the first step.
  void tell(LearntPowers& powers) noexcept { told_ = &powers; }

  EnergyReport report() const;
  /// For a file, and for later runs.
  model::PowerTable measured() const;

  /// An event `worker.energy` for each counter and sample.
  void trace_to(trace::Session& session);

 private:
  struct Kind {
    std::string name;
    model::PowerModel model;
    std::map<std::string, unsigned, std::less<>> numbers;  ///< of codelets in the model
    std::vector<std::string> codelets;                     ///< by number
  };
  struct Source {
    EnergySource of;
    unsigned kind = 0;
    std::vector<std::uint64_t> last_uj = {};             ///< by counter
    std::vector<bool> is_read = {};                      ///< by counter: `last_uj` is a value of `last_ns`
    std::vector<double> joules = {};                     ///< by counter, all; before `share`
    std::vector<std::uint32_t> names = {};               ///< by counter, in the trace
    std::map<std::string, double, std::less<>> busy_s = {};  ///< by codelet, at the last sample
    std::int64_t last_ns = 0;
  };

  void sample(Source& source, std::int64_t now_ns);
  unsigned number_of(Kind& kind, const std::string& codelet);
  model::PowerTable measured_here() const;

  const BusyTimes busy_;
  const std::int64_t every_ns_;
  LearntPowers* told_ = nullptr;
  trace::Stream stream_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::vector<Kind> kinds_;
  std::vector<Source> sources_;
  unsigned samples_ = 0;
};

}  // namespace tandem::runtime
