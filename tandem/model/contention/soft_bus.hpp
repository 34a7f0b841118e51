// tandem/model/contention/soft_bus.hpp: the thesis's bus, with cores that hinder each other before it is full.
//
// Two numbers are added to ThresholdParameters; where both are 0, the result is the thesis's.
//
//   softness s         how early the bus slows down: a demand x gets (x^-k + T^-k)^(-1/k), k = 1/s, instead of min(x, T)
//   network weight w   how hard the network presses: of the total S it has at least S w B_comm_seq / (n B_comp_seq + w B_comm_seq), up to
//                      B_comm_seq. 0: what the cores leave, as in the thesis; 1: a share in proportion to what both ask
//                      for
//
// The network has at least alpha B_comm_seq in any case. A core that asks for a part f of B_comp_seq counts as f cores,
// so the number of cores is real.
#pragma once

#include "tandem/model/contention/threshold_model.hpp"

namespace tandem::model::contention {

/// Parameters of a bus for data of both on one NUMA node.
struct SoftParameters {
  ThresholdParameters bus = {};  ///< the thesis's
  double softness = 0;           ///< from 0, a sharp threshold, to 0.5
  double network_weight = 0;     ///< of the network against cores: 0 as in the thesis, 1 in proportion, at most 4
};

/// Whether a model can have these parameters. Errors: invalid_argument, naming the parameter.
base::Result<void> check(const SoftParameters& parameters);

/// The lesser of two positive numbers, rounded off where they are near each other.
double soft_min(double x, double y, double softness);

/// Bandwidths while `cores` cores, or parts of cores, compute.
Bandwidths share(const SoftParameters& parameters, double cores);

}  // namespace tandem::model::contention
