// tandem/model/contention/soft_model.cpp: from a load to the demand on each bus, and to each stream's share.
#include "tandem/model/contention/soft_model.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

namespace tandem::model::contention {
namespace {

/// The load's cores as a number of cores that ask for all of B_comp_seq.
double whole_cores(const SoftMachine& m, const SoftParameters& bus, const Load& load) {
  double part = 1 - std::clamp(load.cached_share, 0.0, 1.0);
  if (m.core_gflop_s > 0 && load.flop_per_byte > 0)
    part *= std::min(1.0, m.core_gflop_s * 1e3 / (load.flop_per_byte * bus.bus.b_comp_seq_mb_s));
  return load.cores * part;
}

double network_alone_mb_s(const SoftMachine& m, const Load& load) {
  const unsigned node = load.placement.communication;
  double rate = (node < m.nodes_per_socket ? m.local : m.remote).bus.b_comm_seq_mb_s;
  if (node < m.network_mb_s.size() && m.network_mb_s[node] > 0) rate = m.network_mb_s[node];
  const double bytes = static_cast<double>(load.message_bytes);
  return load.message_bytes > 0 ? rate * bytes / (bytes + m.half_message_bytes) : rate;
}

Bandwidths share_of(SoftParameters bus, double cores, double streams_mb_s) {
  bus.bus.b_comm_seq_mb_s = streams_mb_s;
  return share(bus, cores);
}

}  // namespace

Relation SoftMachine::relation_of(const Placement& p) const noexcept {
  if (p.computation < nodes_per_socket)
    return p.communication < nodes_per_socket ? Relation::local_other : Relation::local_remote;
  return p.communication < nodes_per_socket ? Relation::remote_local : Relation::remote_other;
}

SoftMachine soften(const ThresholdMachine& machine) {
  return {.local = {machine.local}, .remote = {machine.remote}, .nodes_per_socket = machine.nodes_per_socket};
}

Bandwidths predict(const SoftMachine& m, const Load& load) {
  const SoftParameters& bus = load.placement.computation < m.nodes_per_socket ? m.local : m.remote;
  const double network = network_alone_mb_s(m, load), streams = network + std::max(0.0, load.device_mb_s);
  Bandwidths b = share_of(bus, whole_cores(m, bus, load), streams);
  if (load.placement.computation != load.placement.communication) {
    const Coupling& felt = m.between[static_cast<std::size_t>(m.relation_of(load.placement))];
    const double on_one_node = share_of(m.local, whole_cores(m, m.local, load), streams).communication_mb_s;
    b.computation_mb_s = b.computation_alone_mb_s - felt.computation * (b.computation_alone_mb_s - b.computation_mb_s);
    b.communication_mb_s = streams - felt.communication * (streams - on_one_node);
  }
  b.communication_alone_mb_s = network;
  b.device_mb_s = streams > 0 ? b.communication_mb_s * (streams - network) / streams : 0;
  b.communication_mb_s -= b.device_mb_s;
  return b;
}

base::Result<SoftModel> SoftModel::create(SoftMachine machine) {
  const auto wrong = [](const std::string& what) { return base::Error{base::ErrorCode::invalid_argument, what}; };
  if (const auto good = check(machine.local); !good) return wrong("local: " + good.error().message);
  if (const auto good = check(machine.remote); !good) return wrong("remote: " + good.error().message);
  if (machine.nodes_per_socket == 0) return wrong("a socket has at least one NUMA node");
  for (const double rate : machine.network_mb_s)
    if (!(rate >= 0) || !std::isfinite(rate))
      return wrong("network_mb_s of a model of memory contention must not be negative");
  for (const Coupling& c : machine.between)
    if (!(c.computation >= 0 && c.computation <= 1 && c.communication >= 0 && c.communication <= 1))
      return wrong("couplings of a model of memory contention must be between 0 and 1");
  if (!(machine.core_gflop_s >= 0) || !(machine.half_message_bytes >= 0))
    return wrong("core_gflop_s and half_message_bytes of a model of memory contention must not be negative");
  return SoftModel(std::move(machine));
}

Bandwidths SoftModel::predict(const Load& load) const { return contention::predict(machine_, load); }

double fit_half_message_bytes(std::span<const MessageRate> rates) {
  // Seconds t = a + m / B, each with weight 1 / t^2: two normal equations.
  double s1 = 0, sm = 0, smm = 0, st = 0, smt = 0;
  for (const MessageRate& rate : rates) {
    if (!(rate.bytes > 0) || !(rate.mb_s > 0)) continue;
    const double t = rate.bytes / rate.mb_s, w = 1 / (t * t);
    s1 += w, sm += w * rate.bytes, smm += w * rate.bytes * rate.bytes, st += w * t, smt += w * rate.bytes * t;
  }
  const double determinant = s1 * smm - sm * sm;
  if (!(determinant > 1e-12 * s1 * smm)) return 0;
  const double a = (st * smm - smt * sm) / determinant, per_byte = (s1 * smt - sm * st) / determinant;
  return a > 0 && per_byte > 0 ? a / per_byte : 0;
}

double fit_core_gflop_s(std::span<const IntensityRate> rates, double b_comp_seq_mb_s) {
  double sum = 0, count = 0;
  for (const IntensityRate& rate : rates)
    if (rate.flop_per_byte > 0 && rate.mb_s > 0 && rate.mb_s < 0.7 * b_comp_seq_mb_s)
      sum += std::log(rate.flop_per_byte * rate.mb_s / 1e3), ++count;
  return count > 0 ? std::exp(sum / count) : 0;
}

}  // namespace tandem::model::contention
