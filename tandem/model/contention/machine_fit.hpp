// tandem/model/contention/machine_fit.hpp: both models of a machine from the curves of a campaign, and their errors.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tandem/model/contention/curve_fit.hpp"
#include "tandem/model/contention/soft_model.hpp"

namespace tandem::model::contention {

/// Which curves `SoftMachine` may use. The thesis's model uses two placements in any case.
enum class Calibration {
  all,             ///< couplings from all placements
  two_placements,  ///< of other placements only the network's bandwidth alone; couplings are the thesis's
};

/// Mean absolute percentage errors, as table 6.1 has them; NaN where there is nothing to compare.
struct Errors {
  double on_samples = 0;      ///< of the placements that gave the parameters
  double on_non_samples = 0;  ///< of the others
  double all = 0;             ///< of all placements
};

/// Errors of one model.
struct ModelErrors {
  Errors communication = {};  ///< network, beside computation
  Errors computation = {};    ///< cores, beside communication
  double average() const noexcept { return (communication.all + computation.all) / 2; }  ///< last column of table 6.1
};

/// Compares predictions with the means of measurements.
ModelErrors errors_of(const Model& model, std::span<const Curve> curves, std::span<const Placement> samples);

/// The results of a campaign on a machine.
struct MachineFit {
  Placement local_placement = {};                  ///< that gave the local parameters
  /// None: no curve has data on another socket, and the local parameters count.
  std::optional<Placement> remote_placement = {};
  CurveFit sharp_local, sharp_remote;              ///< fits of the thesis's buses
  CurveFit soft_local, soft_remote;                ///< fits of soft buses
  ThresholdMachine threshold = {};                 ///< the thesis's model
  SoftMachine soft = {};                           ///< the other
  ModelErrors threshold_errors = {};               ///< of the thesis's model
  ModelErrors soft_errors = {};                    ///< of the other

  /// A bandwidth that the soft model predicts, with 95 % confidence that its mean lies between. Some milliseconds.
  Interval interval(const Load& load, double Bandwidths::*bandwidth) const;
};

/// Fits both models. Errors: invalid_argument, where there is no curve with data of both on one node of the cores'
/// socket, and those of `fit_curve`.
base::Result<MachineFit> fit_machine(std::span<const Curve> curves, unsigned nodes_per_socket, Calibration calibration);

}  // namespace tandem::model::contention
