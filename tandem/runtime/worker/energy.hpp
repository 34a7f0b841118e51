// tandem/runtime/worker/energy.hpp: energy of a team of workers: the meter, the powers for policies, and the report.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/runtime/sched/policies/powers.hpp"
#include "tandem/runtime/worker/energy_meter.hpp"
#include "tandem/runtime/worker/learnt_powers.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem::runtime {

class Placer;
class Worker;

/// Energy of the workers. Powers come, in this order, from the world (`World::powers`), the figures of the machine's
/// workers, and counters of this run and of earlier ones.
///
/// Threads: the submitting thread.
class Energy {
 public:
  /// `workers` is filled later, and outlives this, as do all other arguments.
  Energy(World& world, const CoreOptions& options, const std::vector<WorkerSpec>& specs,
         const std::vector<std::unique_ptr<Worker>>& workers);
  ~Energy();

  /// Makes policies count energy, if `CoreOptions::objective` says so and powers are known. Otherwise the log says once
  /// why they do not.
  void aim(Placer* placer, const CoreOptions& options);
  /// Begins samples, if there are counters. Called once all workers exist.
  void start();
  /// Takes the last sample, after the driver was stopped.
  void finish(std::int64_t now_ns);

  /// Whether kernels must be measured, and the running one be told.
  bool meters() const noexcept { return meter_ != nullptr; }
  EnergyReport report(std::int64_t now_ns) const;
  model::PowerTable measured() const { return meter_ != nullptr ? meter_->measured() : model::PowerTable(); }
  void trace_to(trace::Session& session) {
    if (meter_ != nullptr) meter_->trace_to(session);
  }

 private:
  EnergyReport by_figures(std::int64_t now_ns) const;

  World& world_;
  const std::vector<WorkerSpec>& specs_;
  const std::vector<std::unique_ptr<Worker>>& workers_;
  const std::int64_t began_ns_;
  std::unique_ptr<MachinePowers> machine_powers_;  ///< null: not for all kinds of workers
  std::unique_ptr<LearntPowers> learnt_powers_;    ///< null: there are no counters, and no earlier run has measured
  std::unique_ptr<EnergyMeter> meter_;             ///< null: there are no counters
};

}  // namespace tandem::runtime
