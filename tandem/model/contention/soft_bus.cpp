// tandem/model/contention/soft_bus.cpp: how cores and network share a bus that slows down gradually.
#include "tandem/model/contention/soft_bus.hpp"

#include <algorithm>
#include <cmath>

namespace tandem::model::contention {
namespace {

/// Equation 6.1 for a real number of cores.
double capacity_mb_s(const ThresholdParameters& m, double n) {
  if (n <= m.n_par_max) return m.t_par_max_mb_s;
  if (n <= m.n_seq_max) return m.t_par_max_mb_s - m.delta_l_mb_s * (n - m.n_par_max);
  return m.t_par_max2_mb_s - m.delta_r_mb_s * (n - m.n_seq_max);
}

bool fits(const ThresholdParameters& m, double n) {
  return n * m.b_comp_seq_mb_s + m.alpha * m.b_comm_seq_mb_s < capacity_mb_s(m, n);
}

/// Bandwidth of both together.
double served_mb_s(const SoftParameters& p, double n) {
  return soft_min(n * p.bus.b_comp_seq_mb_s + p.bus.b_comm_seq_mb_s, capacity_mb_s(p.bus, n), p.softness);
}

/// Bandwidth of the network if cores go first and both fit: the rest.
double left_mb_s(const SoftParameters& p, double n) {
  const double left = served_mb_s(p, n) - soft_min(n * p.bus.b_comp_seq_mb_s, capacity_mb_s(p.bus, n), p.softness);
  return std::clamp(left, p.bus.alpha * p.bus.b_comm_seq_mb_s, p.bus.b_comm_seq_mb_s);
}

/// Bandwidth of the network where both do not fit: equation 6.5.
double squeezed_mb_s(const SoftParameters& p, double n) {
  const ThresholdParameters& m = p.bus;
  const double least = m.alpha * m.b_comm_seq_mb_s;
  if (m.n_seq_max <= m.n_par_max + 1 || n >= m.n_seq_max) return least;
  double i = std::floor(n);
  while (i > 0 && !fits(m, i)) i -= 1;
  if (i <= 0) return least;
  const double at_i = left_mb_s(p, i);
  return at_i - (at_i - least) * (n - i) / (m.n_seq_max - i);
}

double network_mb_s(const SoftParameters& p, double n) {
  const double wish = p.bus.b_comm_seq_mb_s, pressure = p.network_weight * wish;
  const double by_weight = std::min(wish, served_mb_s(p, n) * pressure / (n * p.bus.b_comp_seq_mb_s + pressure));
  return std::max(by_weight, fits(p.bus, n) ? left_mb_s(p, n) : squeezed_mb_s(p, n));
}

}  // namespace

double soft_min(double x, double y, double softness) {
  const double least = std::min(x, y), ratio = least / std::max(x, y);
  if (softness < 1e-3 || !(ratio > 0)) return least;
  return least * std::pow(1 + std::pow(ratio, 1 / softness), -softness);
}

Bandwidths share(const SoftParameters& p, double n) {
  const ThresholdParameters& m = p.bus;
  Bandwidths b{.communication_alone_mb_s = m.b_comm_seq_mb_s, .communication_mb_s = m.b_comm_seq_mb_s};
  if (n <= 0) return b;
  b.computation_alone_mb_s =
      soft_min(n * m.b_comp_seq_mb_s, std::min(capacity_mb_s(m, n), m.t_seq_max_mb_s), p.softness);
  b.communication_mb_s = network_mb_s(p, n);
  b.computation_mb_s = served_mb_s(p, n) - b.communication_mb_s;
  return b;
}

base::Result<void> check(const SoftParameters& p) {
  if (const auto good = check(p.bus); !good) return good;
  if (!(p.softness >= 0 && p.softness <= 0.5))
    return base::Error{base::ErrorCode::invalid_argument,
                       "softness of a model of memory contention must be between 0 and 0.5"};
  if (!(p.network_weight >= 0 && p.network_weight <= 4))
    return base::Error{base::ErrorCode::invalid_argument,
                       "network_weight of a model of memory contention must be between 0 and 4"};
  return {};
}

}  // namespace tandem::model::contention
