// tandem/model/contention/machine_fit.cpp: two placements give the buses, the others give couplings.
#include "tandem/model/contention/machine_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "tandem/base/assert.hpp"

namespace tandem::model::contention {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

const Curve* curve_on_one_node(std::span<const Curve> curves, unsigned from, unsigned to) {
  const Curve* found = nullptr;
  for (const Curve& curve : curves) {
    const auto [computation, communication] = curve.placement;
    if (computation == communication && computation >= from && computation < to &&
        (found == nullptr || computation < found->placement.computation))
      found = &curve;
  }
  return found;
}

double mean_of(const Curve& curve, unsigned cores, double Sample::*column) {
  double sum = 0, count = 0;
  for (const Sample& sample : curve.samples)
    if (sample.cores == cores && !std::isnan(sample.*column)) sum += sample.*column, ++count;
  return count > 0 ? sum / count : nothing;
}

std::map<unsigned, bool> cores_of(const Curve& curve) {
  std::map<unsigned, bool> cores;
  for (const Sample& sample : curve.samples)
    if (sample.cores > 0) cores[sample.cores] = true;
  return cores;
}

/// A running mean of percentages.
struct Percentages {
  double sum = 0, count = 0;
  void add(double measured, double predicted) {
    if (std::isnan(measured) || measured == 0) return;
    sum += 100 * std::abs((measured - predicted) / measured);
    ++count;
  }
  double mean() const { return count > 0 ? sum / count : nothing; }
};

Errors errors_from(const Percentages& samples, const Percentages& others) {
  const Percentages all{samples.sum + others.sum, samples.count + others.count};
  return {samples.mean(), others.mean(), all.mean()};
}

/// The network's bandwidth alone, by node. The fits know it for the nodes of their placements; for others it is the
/// mean of measurements alone and, if `all`, beside computation that takes nothing from it, where that differs from the
/// fit's.
std::vector<double> networks(const SoftMachine& machine, const MachineFit& fit, std::span<const Curve> curves,
                             bool all) {
  constexpr double nothing_taken = 0.995;
  std::vector<double> sums, counts;
  const auto add = [&](std::size_t node, double rate) {
    if (node >= sums.size()) sums.resize(node + 1), counts.resize(node + 1);
    sums[node] += rate;
    ++counts[node];
  };
  for (const Curve& curve : curves)
    for (const Sample& sample : curve.samples) {
      if (!std::isnan(sample.communication_alone_mb_s))
        add(curve.placement.communication, sample.communication_alone_mb_s);
      if (!all || std::isnan(sample.communication_mb_s)) continue;
      const Bandwidths b = predict(machine, {.cores = sample.cores, .placement = curve.placement});
      if (b.communication_mb_s > nothing_taken * b.communication_alone_mb_s)
        add(curve.placement.communication, sample.communication_mb_s);
    }
  for (std::size_t node = 0; node < sums.size(); ++node) {
    const bool local = node < machine.nodes_per_socket;
    const double alike = (local ? machine.local : machine.remote).bus.b_comm_seq_mb_s,
                 mean = sums[node] / std::max(1.0, counts[node]);
    const double spread = (local ? fit.soft_local : fit.soft_remote).communication_spread();
    // Compares two means; the fit's is about as uncertain. Uses Schwarz's criterion, as for every other parameter.
    const bool differs =
        counts[node] * std::pow((mean / alike - 1) / spread, 2) / 2 > std::log(std::max(2.0, counts[node]));
    sums[node] = counts[node] > 0 && differs ? mean : alike;
  }
  const auto known = [&](const Placement& placement, const SoftParameters& bus) {
    if (placement.communication < sums.size()) sums[placement.communication] = bus.bus.b_comm_seq_mb_s;
  };
  known(fit.local_placement, machine.local);
  if (fit.remote_placement) known(*fit.remote_placement, machine.remote);
  return sums;
}

/// The factor k, from 0 to 1, for which base - k loss is nearest to the measurements, by relative errors.
class LossFactor {
 public:
  void add(double measured, double base, double loss) {
    if (std::isnan(measured)) return;
    above_ += (base - measured) * loss / (measured * measured);
    below_ += loss * loss / (measured * measured);
    ++count_;
  }
  /// The factor; `otherwise` unless measurements with this spread show another one, by Schwarz's criterion.
  double value(double otherwise, double spread) const {
    if (!(below_ > 0)) return otherwise;
    const double best = std::clamp(above_ / below_, 0.0, 1.0), gain = std::pow((best - otherwise) / spread, 2) * below_;
    return gain > std::log(count_) ? best : otherwise;
  }

 private:
  double above_ = 0, below_ = 0, count_ = 0;
};

void fit_couplings(SoftMachine& machine, const CurveFit& local, std::span<const Curve> curves) {
  std::array<LossFactor, relation_count> computation, communication;
  SoftMachine none = machine, full = machine;
  none.between.fill({.computation = 0, .communication = 0});
  full.between.fill({.computation = 1, .communication = 1});
  for (const Curve& curve : curves) {
    if (curve.placement.computation == curve.placement.communication) continue;
    const auto relation = static_cast<std::size_t>(machine.relation_of(curve.placement));
    for (const auto& [cores, there] : cores_of(curve)) {
      const Load load{.cores = cores, .placement = curve.placement};
      const Bandwidths base = predict(none, load), least = predict(full, load);
      computation[relation].add(mean_of(curve, cores, &Sample::computation_mb_s), base.computation_mb_s,
                                base.computation_mb_s - least.computation_mb_s);
      communication[relation].add(mean_of(curve, cores, &Sample::communication_mb_s), base.communication_mb_s,
                                  base.communication_mb_s - least.communication_mb_s);
    }
  }
  for (std::size_t relation = 0; relation < relation_count; ++relation) {
    Coupling& between = machine.between[relation];
    between = {.computation = computation[relation].value(between.computation, local.computation_spread()),
               .communication = communication[relation].value(between.communication, local.communication_spread())};
  }
}

}  // namespace

ModelErrors errors_of(const Model& model, std::span<const Curve> curves, std::span<const Placement> samples) {
  Percentages communication[2], computation[2];
  for (const Curve& curve : curves) {
    const bool other = std::ranges::find(samples, curve.placement) == samples.end();
    for (const auto& [cores, there] : cores_of(curve)) {
      const Bandwidths predicted = model.predict({.cores = cores, .placement = curve.placement});
      communication[other].add(mean_of(curve, cores, &Sample::communication_mb_s), predicted.communication_mb_s);
      computation[other].add(mean_of(curve, cores, &Sample::computation_mb_s), predicted.computation_mb_s);
    }
  }
  return {errors_from(communication[0], communication[1]), errors_from(computation[0], computation[1])};
}

Interval MachineFit::interval(const Load& load, double Bandwidths::*bandwidth) const {
  const double here = predict(soft, load).*bandwidth;
  const auto around = [&](const CurveFit& fit, SoftParameters SoftMachine::*bus) {
    return fit.interval([&](const SoftParameters& parameters) {
      SoftMachine other = soft;
      other.*bus = parameters;
      return predict(other, load).*bandwidth;
    });
  };
  // Two campaigns do not share their errors: deviations add as squares.
  const Interval by_local = around(soft_local, &SoftMachine::local);
  Interval all{here - by_local.low, by_local.high - here};
  if (remote_placement) {
    const Interval by_remote = around(soft_remote, &SoftMachine::remote);
    all = {std::hypot(all.low, here - by_remote.low), std::hypot(all.high, by_remote.high - here)};
  }
  return {here - all.low, here + all.high};
}

base::Result<MachineFit> fit_machine(std::span<const Curve> curves, unsigned nodes_per_socket,
                                     Calibration calibration) {
  if (nodes_per_socket == 0)
    return base::Error{base::ErrorCode::invalid_argument, "a socket has at least one NUMA node"};
  const Curve* local = curve_on_one_node(curves, 0, nodes_per_socket);
  const Curve* remote = curve_on_one_node(curves, nodes_per_socket, std::numeric_limits<unsigned>::max());
  if (local == nullptr)
    return base::Error{base::ErrorCode::invalid_argument,
                       "no fit of a model of memory contention: no measurements have the data of computation and of "
                       "communication on one "
                       "NUMA node of the computing cores"};
  MachineFit fit;
  fit.local_placement = local->placement;
  if (remote != nullptr) fit.remote_placement = remote->placement;
  for (const auto shape : {BusShape::sharp, BusShape::soft}) {
    auto of_local = fit_curve(local->samples, shape);
    if (!of_local) return of_local.error();
    auto of_remote = remote != nullptr ? fit_curve(remote->samples, shape) : of_local;
    if (!of_remote) return of_remote.error();
    (shape == BusShape::sharp ? fit.sharp_local : fit.soft_local) = std::move(of_local).value();
    (shape == BusShape::sharp ? fit.sharp_remote : fit.soft_remote) = std::move(of_remote).value();
  }
  fit.threshold = {fit.sharp_local.parameters().bus, fit.sharp_remote.parameters().bus, nodes_per_socket};
  fit.soft = {.local = fit.soft_local.parameters(),
              .remote = fit.soft_remote.parameters(),
              .nodes_per_socket = nodes_per_socket};
  fit.soft.network_mb_s = networks(fit.soft, fit, curves, calibration == Calibration::all);
  if (calibration == Calibration::all) fit_couplings(fit.soft, fit.soft_local, curves);

  std::vector<Placement> samples{fit.local_placement};
  if (fit.remote_placement) samples.push_back(*fit.remote_placement);
  const auto threshold = ThresholdModel::create(fit.threshold);
  if (!threshold) return threshold.error();
  const auto soft = SoftModel::create(fit.soft);
  if (!soft) return soft.error();
  fit.threshold_errors = errors_of(threshold.value(), curves, samples);
  fit.soft_errors = errors_of(soft.value(), curves, samples);
  return fit;
}

}  // namespace tandem::model::contention
