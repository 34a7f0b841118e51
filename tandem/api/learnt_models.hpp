// tandem/api/learnt_models.hpp: performance models of a run: read at its start, learnt by its workers, saved at its
// end.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tandem/api/model_folder.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/runtime/sched/estimates.hpp"
#include "tandem/runtime/sched/placing/durations.hpp"
#include "tandem/runtime/worker/duration_models.hpp"

namespace tandem {

struct WorldResources;

/// The models of a runtime and their folder. Made and saved by the thread that has the runtime; outlives its workers.
class LearntModels {
 public:
  struct Options {
    bool is_stored = true;  ///< false: durations are not those of this machine, so files are neither read nor saved
  };
  /// Makes the models by option `model.folder`. The log names refused files, one line each. Throws StartError when
  /// there is no place for the folder.
  static std::unique_ptr<LearntModels> start(const base::Config& config,
                                             const std::vector<runtime::WorkerSpec>& workers, const Options& options,
                                             const WorldResources& resources);

  /// Makes the models with their files in `folder`; null: without files.
  LearntModels(std::optional<ModelFolder> folder, const std::vector<runtime::WorkerSpec>& workers, base::Log& log);

  runtime::DurationModels& durations() noexcept { return durations_; }
  /// Powers that earlier runs have measured.
  const model::PowerTable& powers() const noexcept { return powers_; }
  /// Adds to the files what was learnt, and the powers that this run has measured. Once the workers have ended. The log
  /// names failures.
  void save(const model::PowerTable& measured, base::Log& log);

  /// Powers in the folder of models, for a run that learns no durations; none if they cannot be read, which the log
  /// says.
  static model::PowerTable stored_powers(const base::Config& config, const WorldResources& resources);

 private:
  std::optional<ModelFolder> folder_;
  runtime::DurationModels durations_;
  model::PowerTable powers_;
};

/// Estimates from models, for policies that look ahead. Any thread.
class ModelEstimates final : public runtime::Estimates {
 public:
  /// `models` outlives this.
  explicit ModelEstimates(const runtime::DurationModels& models) : models_(models) {}
  runtime::Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const override {
    const model::Estimate known = models_.expected_ns(codelet, footprint, kind);
    return {known.mean_ns, known.deviation_ns, known.known};
  }
  /// Known as soon as an earlier run has measured it as often as a run tries it.
  runtime::Estimate expected_ns_by(unsigned implementation, std::string_view codelet, model::Footprint footprint,
                                   DeviceKind kind) const override {
    const model::Estimate known = models_.expected_ns(codelet, footprint, kind, implementation);
    return {known.mean_ns, known.deviation_ns, known.samples > runtime::Durations::kTrials};
  }

 private:
  const runtime::DurationModels& models_;
};

}  // namespace tandem
