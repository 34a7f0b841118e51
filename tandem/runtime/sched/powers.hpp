// tandem/runtime/sched/powers.hpp: what workers draw, and what a schedule is to save, for policies that count energy.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tandem/runtime/machine/machine.hpp"

namespace tandem::runtime {

/// What a schedule is to make small.
enum class Objective : std::uint8_t {
  time,    ///< the makespan
  energy,  ///< of the whole machine, until all has ended
  edp,     ///< the product of both
};

/// What is known of powers, in W. Any thread, several at a time.
class Powers {
 public:
  virtual ~Powers() = default;
  /// What one running kernel of `codelet` on a worker of `kind` adds to `idle_watts`; nothing: not known.
  virtual std::optional<double> kernel_watts(std::string_view codelet, DeviceKind kind) const = 0;
  /// Of the whole machine while no kernel runs.
  virtual double idle_watts() const = 0;
  /// Of the whole machine while each worker runs some kernel.
  virtual double full_watts() const = 0;
};

/// Those that a machine's workers have as figures. Of workers of one kind the mean.
class MachinePowers final : public Powers {
 public:
  /// Of `machine`, which is not needed any more afterwards.
  explicit MachinePowers(const Machine& machine);
  /// Of some worker of each kind the power is given.
  static bool are_in(const Machine& machine);

  std::optional<double> kernel_watts(std::string_view codelet, DeviceKind kind) const override;
  double idle_watts() const override { return idle_watts_; }
  double full_watts() const override { return full_watts_; }

 private:
  struct OfKind {
    DeviceKind kind;
    double watts = 0;  ///< the mean
    unsigned workers = 0;
  };
  std::vector<OfKind> kinds_;
  double idle_watts_ = 0, full_watts_ = 0;
};

/// How policies weigh energy against time. With E the energy and T the makespan, a task that draws e and delays the end by t costs
///
///   energy:  dE = e + idle_watts t
///   edp:     d(E T) / T = e + idle_watts t + (E / T) t,   where E / T is at most full_watts
///
/// so both are an energy and a price of the time by which all ends later.
struct EnergyAim {
  const Powers* powers = nullptr;  ///< outlives this
  double late_watts = 0;           ///< what such time costs: J for each second; above 0

  /// Not `time`.
  static EnergyAim of(Objective objective, const Powers& powers);
};

}  // namespace tandem::runtime
