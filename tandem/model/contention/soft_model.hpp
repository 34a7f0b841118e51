// tandem/model/contention/soft_model.hpp: a model beside the thesis's, for what section 6.3.3 says that it misses.
//
//   the thesis's limit                              here
//   cores do not hinder each other before the       softness and network weight of each bus (soft_bus.hpp)
//   threshold, which comes too late
//   network bandwidth by local and remote only      what the network takes alone, for each NUMA node
//   data on two nodes: the network suffers as if    a coupling for each relation of two nodes: which part of the contention on one
//   it was one, computation not at all              node is felt across them; the thesis's are 1 and 0
//   one kernel, one message size                    a core asks for min(B_comp_seq, peak / intensity) (roofline), less what caches
//                                                   serve; a message of m bytes takes B m / (m + m_half) (Hockney)
//   no third stream                                 copies to devices ask beside the network, and both share in proportion
//
// A machine made from the thesis's parameters predicts what the thesis predicts.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "tandem/model/contention/model.hpp"
#include "tandem/model/contention/soft_bus.hpp"

namespace tandem::model::contention {

/// The relation of two different NUMA nodes, the first that of the cores' data, the second that of the network's.
enum class Relation {
  local_other,   ///< two of the cores' own socket
  local_remote,  ///< of the cores' own socket, and of another
  remote_local,  ///< of another socket, and of the cores' own
  remote_other,  ///< two that are not of the cores' socket
};
inline constexpr std::size_t relation_count = 4;  ///< kinds of `Relation`

/// The part of the contention on one node that data on two nodes suffers; 0: none, 1: all.
struct Coupling {
  double computation = 0;    ///< of what computation loses on one node
  double communication = 1;  ///< of what the network loses to cores that use local data on its node
};

/// The parameters of a machine.
struct SoftMachine {
  SoftParameters local = {};              ///< data of both on a node of the cores' socket
  SoftParameters remote = {};             ///< data of both on a node of another socket
  unsigned nodes_per_socket = 1;          ///< NUMA nodes
  std::vector<double> network_mb_s = {};  ///< alone, by the node of its data; B_comm_seq where a node is missing or 0
  std::array<Coupling, relation_count> between = {};  ///< by `Relation`
  double core_gflop_s = 0;        ///< most that one core computes; 0: not known, and intensity has no effect
  /// With messages of this size the network reaches half of its bandwidth; 0: not known.
  double half_message_bytes = 0;

  Relation relation_of(const Placement& placement) const noexcept;  ///< of two nodes that differ
};

/// The thesis's parameters as a machine of this model.
SoftMachine soften(const ThresholdMachine& machine);

/// Predicts by a `SoftMachine`.
class SoftModel final : public Model {
 public:
  /// Makes a model. Errors: invalid_argument, naming the parameter.
  static base::Result<SoftModel> create(SoftMachine machine);
  Bandwidths predict(const Load& load) const override;
  const SoftMachine& machine() const noexcept { return machine_; }  ///< as given

 private:
  explicit SoftModel(SoftMachine machine) : machine_(std::move(machine)) {}
  SoftMachine machine_;
};

/// Like `SoftModel::predict`, for parameters that are known to be valid.
Bandwidths predict(const SoftMachine& machine, const Load& load);

/// A size of messages, and the network's bandwidth with it.
struct MessageRate {
  double bytes = 0;  ///< of a message
  double mb_s = 0;   ///< measured
};
/// m_half from the time of messages, a + m / B, by least squares of relative errors; 0 with less than two sizes, or
/// without visible latency.
double fit_half_message_bytes(std::span<const MessageRate> rates);

/// An arithmetic intensity, and the memory bandwidth of one core that computes with it.
struct IntensityRate {
  double flop_per_byte = 0;  ///< of the kernel
  double mb_s = 0;           ///< of one core
};
/// The peak of one core in GFlop/s, from where bandwidth falls as 1 / intensity. 0 if no kernel is bound by
/// computation.
double fit_core_gflop_s(std::span<const IntensityRate> rates, double b_comp_seq_mb_s);

}  // namespace tandem::model::contention
