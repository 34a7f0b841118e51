// tandem/runtime/sched/policies/powers.hpp: power of workers, and what a schedule minimises, for policies that count
// energy.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tandem/runtime/machine/machine.hpp"

namespace tandem::runtime {

/// What a schedule minimises.
enum class Objective : std::uint8_t {
  time,    ///< the makespan
  energy,  ///< energy of the whole machine until the end
  edp,     ///< product of makespan and energy
};

/// Known powers, in W. Any thread, several at a time.
class Powers {
 public:
  virtual ~Powers() = default;
  /// Power that a running kernel of `codelet` on a worker of `kind` adds to `idle_watts`; no value: not known.
  virtual std::optional<double> kernel_watts(std::string_view codelet, DeviceKind kind) const = 0;
  /// Power of the whole machine while no kernel runs.
  virtual double idle_watts() const = 0;
  /// Power of the whole machine while each worker runs some kernel.
  virtual double full_watts() const = 0;
};

/// The powers in a machine's description; the mean for workers of one kind.
class MachinePowers final : public Powers {
 public:
  /// Copies the powers of `machine`.
  explicit MachinePowers(const Machine& machine);
  /// Whether each kind has a worker with a given power.
  static bool are_in(const Machine& machine);

  std::optional<double> kernel_watts(std::string_view codelet, DeviceKind kind) const override;
  double idle_watts() const override { return idle_watts_; }
  double full_watts() const override { return full_watts_; }

 private:
  struct OfKind {
    DeviceKind kind;
    double watts = 0;  ///< mean power
    unsigned workers = 0;
  };
  std::vector<OfKind> kinds_;
  double idle_watts_ = 0, full_watts_ = 0;
};

/// Weight of energy against time. With E the energy and T the makespan, a task that takes the energy e and delays the
/// end by t costs
///
///   energy:  dE = e + idle_watts t
///   edp:     d(E T) / T = e + idle_watts t + (E / T) t,   where E / T is at most full_watts
///
/// so both are an energy and a price of the delay of the end.
struct EnergyAim {
  const Powers* powers = nullptr;  ///< outlives this
  double late_watts = 0;           ///< price of the delay in J per second; above 0

  /// Makes the weight for an objective other than `time`.
  static EnergyAim of(Objective objective, const Powers& powers);
};

}  // namespace tandem::runtime
