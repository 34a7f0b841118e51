// tandem/runtime/worker/learnt_powers.hpp: powers measured by counters, in this run and in earlier ones, for policies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/model/energy/power_table.hpp"
#include "tandem/runtime/exec/worker_spec.hpp"
#include "tandem/runtime/sched/policies/powers.hpp"

namespace tandem::runtime {

/// Measured powers for policies. Threads: any.
class LearntPowers final : public Powers {
 public:
  /// Makes powers for these workers; `known`: powers from earlier runs.
  LearntPowers(const std::vector<WorkerSpec>& workers, model::PowerTable known);

  /// Updates the powers with those measured in this run so far.
  void update(const model::PowerTable& measured);

  /// Power of a codelet; for an unknown one, the mean of all on that kind of workers.
  std::optional<double> kernel_watts(std::string_view codelet, DeviceKind kind) const override;
  double idle_watts() const override;
  double full_watts() const override;

 private:
  struct OfKind {
    DeviceKind device;
    std::string name;  ///< name in tables
    unsigned workers = 0;
  };

  std::vector<OfKind> kinds_;
  const model::PowerTable known_;
  mutable base::SpinLock lock_;  ///< guards the members below
  model::PowerTable powers_;     ///< known and measured powers
};

}  // namespace tandem::runtime
