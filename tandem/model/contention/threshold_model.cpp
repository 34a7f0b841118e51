// tandem/model/contention/threshold_model.cpp: equations 6.1 to 6.8, one by one.
#include "tandem/model/contention/threshold_model.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "tandem/base/assert.hpp"

namespace tandem::model::contention {
namespace {

/// The first case of equation 6.4.
double rest_mb_s(const ThresholdParameters& m, unsigned n) {
  return std::min(total_mb_s(m, n) - n * m.b_comp_seq_mb_s, m.b_comm_seq_mb_s);
}

/// The greatest number of cores up to `n` for which R < T; 0 if there is none.
unsigned last_that_fits(const ThresholdParameters& m, unsigned n) {
  while (n > 0 && required_mb_s(m, n) >= total_mb_s(m, n)) --n;
  return n;
}

/// alpha(n), equation 6.5: a straight line from what the network has at the last n that fits to alpha at N_seq_max.
double share_of_network(const ThresholdParameters& m, unsigned n) {
  const bool falls_slowly = m.n_seq_max > m.n_par_max + 1 && n < m.n_seq_max;
  const unsigned i = falls_slowly ? last_that_fits(m, n) : 0;
  if (i == 0) return m.alpha;
  const double at_i = rest_mb_s(m, i) / m.b_comm_seq_mb_s;
  return at_i - (at_i - m.alpha) / (m.n_seq_max - i) * (n - i);
}

}  // namespace

double total_mb_s(const ThresholdParameters& m, unsigned n) {
  if (n <= m.n_par_max) return m.t_par_max_mb_s;
  if (n <= m.n_seq_max) return m.t_par_max_mb_s - m.delta_l_mb_s * (n - m.n_par_max);
  return m.t_par_max2_mb_s - m.delta_r_mb_s * (n - m.n_seq_max);
}

double required_mb_s(const ThresholdParameters& m, unsigned n) {
  return n * m.b_comp_seq_mb_s + m.alpha * m.b_comm_seq_mb_s;
}

Bandwidths share(const ThresholdParameters& m, unsigned n) {
  Bandwidths b{.communication_alone_mb_s = m.b_comm_seq_mb_s, .communication_mb_s = m.b_comm_seq_mb_s};
  if (n == 0) return b;
  const double total = total_mb_s(m, n);
  b.computation_alone_mb_s = std::min({n * m.b_comp_seq_mb_s, total, m.t_seq_max_mb_s});  // 6.6
  if (required_mb_s(m, n) < total) {
    b.computation_mb_s = n * m.b_comp_seq_mb_s;  // 6.3
    b.communication_mb_s = rest_mb_s(m, n);      // 6.4
  } else {
    b.communication_mb_s = share_of_network(m, n) * m.b_comm_seq_mb_s;
    b.computation_mb_s = total - b.communication_mb_s;
  }
  return b;
}

base::Result<void> check(const ThresholdParameters& m) {
  const auto wrong = [](const char* name, const char* rule) {
    return base::Error{base::ErrorCode::invalid_argument,
                       std::string(name) + " of a model of memory contention must be " + rule};
  };
  if (m.n_par_max == 0) return wrong("n_par_max", "at least 1");
  if (m.n_seq_max == 0) return wrong("n_seq_max", "at least 1");
  const std::pair<const char*, double> positive[] = {{"t_par_max_mb_s", m.t_par_max_mb_s},
                                                     {"t_seq_max_mb_s", m.t_seq_max_mb_s},
                                                     {"t_par_max2_mb_s", m.t_par_max2_mb_s},
                                                     {"b_comp_seq_mb_s", m.b_comp_seq_mb_s},
                                                     {"b_comm_seq_mb_s", m.b_comm_seq_mb_s}};
  for (const auto& [name, value] : positive)
    if (!(value > 0) || !std::isfinite(value)) return wrong(name, "greater than 0");
  if (!(m.alpha >= 0 && m.alpha <= 1))
    return wrong("alpha", "between 0 and 1: it is the share of the network's bandwidth that remains");
  if (!std::isfinite(m.delta_l_mb_s)) return wrong("delta_l_mb_s", "a number");
  if (!std::isfinite(m.delta_r_mb_s)) return wrong("delta_r_mb_s", "a number");
  return {};
}

ThresholdModel::ThresholdModel(const ThresholdMachine& machine) : machine_(machine) {
  TANDEM_ASSERT(check(machine.local).ok() && check(machine.remote).ok() && machine.nodes_per_socket > 0);
}

base::Result<ThresholdModel> ThresholdModel::create(const ThresholdMachine& machine) {
  if (const auto good = check(machine.local); !good)
    return base::Error{good.error().code, "local: " + good.error().message};
  if (const auto good = check(machine.remote); !good)
    return base::Error{good.error().code, "remote: " + good.error().message};
  if (machine.nodes_per_socket == 0)
    return base::Error{base::ErrorCode::invalid_argument, "a socket has at least one NUMA node"};
  return ThresholdModel(machine);
}

Bandwidths ThresholdModel::predict(const Load& load) const {
  const auto [computation, communication] = load.placement;
  const bool same = computation == communication;
  const bool computes_remotely = computation >= machine_.nodes_per_socket,
             sends_remotely = communication >= machine_.nodes_per_socket;
  const Bandwidths of_cores = share(computes_remotely ? machine_.remote : machine_.local, load.cores);

  // 6.7: only cores that use the network's own remote node hinder it as the remote model says.
  ThresholdParameters of_network = machine_.local;
  if (same && computes_remotely) of_network = machine_.remote;
  else if (sends_remotely) of_network.b_comm_seq_mb_s = machine_.remote.b_comm_seq_mb_s;

  return {.computation_alone_mb_s = of_cores.computation_alone_mb_s,
          .communication_alone_mb_s = of_network.b_comm_seq_mb_s,
          .computation_mb_s = same ? of_cores.computation_mb_s : of_cores.computation_alone_mb_s,  // 6.8
          .communication_mb_s = share(of_network, load.cores).communication_mb_s};
}

}  // namespace tandem::model::contention
