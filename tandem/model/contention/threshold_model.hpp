// tandem/model/contention/threshold_model.hpp: the thesis's model: a memory bus with a capacity that cores and network
// share.
//
// P. Swartvagher, On the Interactions between HPC Task-based Runtime Systems and Communication Libraries, 2022, chapter
// 6.
//
//   T(n)   what the bus carries while n cores compute (equation 6.1): constant up to N_par_max, then falling
//   R(n)   = n B_comp_seq + alpha B_comm_seq, what the cores ask for and the network is sure of (6.2)
//
// While R(n) < T(n), cores have all that they ask for, and the network has the rest (6.3, 6.4). Beyond, the network
// falls to its assured share alpha, at N_seq_max cores at the latest (6.5), and the cores have the rest.
//
// Worked example: T = 10, B_comp_seq = 2, B_comm_seq = 4, alpha = 1/2. Three cores ask for 6, and the network has 4.
// Four cores ask for 8: R = 10 is not below T, so the network has 2, and the cores have 8. With five cores the network
// still has 2, and the cores have 8, not 10.
//
// Section 6.2.1 says in one sentence that alpha = 0.9 leaves the network 10 %. Its equations, and the alpha of 1.000 of
// a machine whose network does not suffer, say that alpha is what remains, which this model follows.
#pragma once

#include "tandem/base/result.hpp"
#include "tandem/model/contention/model.hpp"

namespace tandem::model::contention {

/// Parameters of section 6.2.1, for data of both on one NUMA node.
struct ThresholdParameters {
  unsigned n_par_max = 1;          ///< cores with which the total is highest while the network is used
  double t_par_max_mb_s = 0;       ///< that total
  unsigned n_seq_max = 1;          ///< cores with which computation alone is fastest
  double t_seq_max_mb_s = 0;       ///< that bandwidth
  double t_par_max2_mb_s = 0;      ///< the total at n_seq_max cores while the network is used
  double alpha = 1;                ///< share of its own bandwidth that the network is sure of
  double delta_l_mb_s = 0;         ///< what the total loses with each core from n_par_max to n_seq_max
  double delta_r_mb_s = 0;         ///< likewise beyond n_seq_max; negative where it gains
  double b_comp_seq_mb_s = 0;      ///< what one core takes alone
  double b_comm_seq_mb_s = 0;      ///< what the network takes alone

  friend bool operator==(const ThresholdParameters&, const ThresholdParameters&) = default;
};

/// Whether a model can have these parameters. Errors: invalid_argument, naming the parameter.
base::Result<void> check(const ThresholdParameters& parameters);

/// T(n), equation 6.1.
double total_mb_s(const ThresholdParameters& parameters, unsigned cores);
/// R(n), equation 6.2.
double required_mb_s(const ThresholdParameters& parameters, unsigned cores);
/// Equations 6.3 to 6.6 for data of both on one node. Where R(1) >= T(1), algorithm 4 has no point to interpolate from:
/// alpha counts.
Bandwidths share(const ThresholdParameters& parameters, unsigned cores);

/// The parameters of a machine: for data on the cores' own socket, and on another one.
struct ThresholdMachine {
  ThresholdParameters local = {};     ///< data of both on a NUMA node of the cores' socket
  ThresholdParameters remote = {};    ///< data of both on a NUMA node of another socket
  unsigned nodes_per_socket = 1;      ///< NUMA nodes, #m
};

/// Chooses between the two sets of parameters by where data lies (section 6.2.3).
class ThresholdModel final : public Model {
 public:
  /// `machine` passes `check`, and has a node.
  explicit ThresholdModel(const ThresholdMachine& machine);
  /// Makes a model. Errors: those of `check`, with the wrong set of parameters.
  static base::Result<ThresholdModel> create(const ThresholdMachine& machine);

  Bandwidths predict(const Load& load) const override;
  const ThresholdMachine& machine() const noexcept { return machine_; }  ///< as given

 private:
  ThresholdMachine machine_;
};

}  // namespace tandem::model::contention
