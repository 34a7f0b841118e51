// tandem/runtime/worker/learnt_powers.hpp: powers that counters have shown, in this run and in earlier ones, for policies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/model/energy/power_table.hpp"
#include "tandem/runtime/exec/worker_spec.hpp"
#include "tandem/runtime/sched/powers.hpp"

namespace tandem::runtime {

/// Threads: any.
class LearntPowers final : public Powers {
 public:
  /// Of these workers; `known`: by earlier runs.
  LearntPowers(const std::vector<WorkerSpec>& workers, model::PowerTable known);

  /// What this run has measured so far.
  void update(const model::PowerTable& measured);

  /// Of a codelet that is not known the mean of all on that kind of workers.
  std::optional<double> kernel_watts(std::string_view codelet, DeviceKind kind) const override;
  double idle_watts() const override;
  double full_watts() const override;

 private:
  struct OfKind {
    DeviceKind device;
    std::string name;  ///< as tables have it
    unsigned workers = 0;
  };

  std::vector<OfKind> kinds_;
  const model::PowerTable known_;
  mutable base::SpinLock lock_;  ///< guards what follows
  model::PowerTable powers_;     ///< known and measured
};

}  // namespace tandem::runtime
