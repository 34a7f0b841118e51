// tandem/model/contention/curve_fit.cpp: least squares over all pairs (N_par_max, N_seq_max).
#include "tandem/model/contention/curve_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tandem/base/assert.hpp"
#include "tandem/model/cholesky.hpp"

namespace tandem::model::contention {
namespace {

/// Indices in `CurveFit::Values`.
enum Place : std::size_t { b_comp, b_comm, t_par, t_seq, alpha, delta_l, delta_r, t_par2, softness, weight, place_count };

constexpr double least_spread = 1e-4;  // of measurements that the model explains exactly
// The best of many positions of a change explains more of the noise than one parameter does: N has about the freedom of
// three, whose quantile of chi^2 is twice that of one.
constexpr double places_slack = 2;
constexpr unsigned least_cores = 4, pairs_per_side = 32;

double Sample::*const columns[] = {&Sample::computation_alone_mb_s, &Sample::communication_alone_mb_s,
                                   &Sample::computation_mb_s, &Sample::communication_mb_s};
double Bandwidths::*const predicted_columns[] = {&Bandwidths::computation_alone_mb_s,
                                                 &Bandwidths::communication_alone_mb_s, &Bandwidths::computation_mb_s,
                                                 &Bandwidths::communication_mb_s};
constexpr const char* column_names[] = {"computation alone", "communication alone", "computation beside communication",
                                        "communication beside computation"};
constexpr std::size_t kind_of(std::size_t column) { return column % 2; }  // computation, communication

/// The 97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.5, two terms).
double student_975(double freedom) {
  constexpr double z = 1.959964;
  return z + (z * z * z + z) / (4 * freedom) +
         (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * freedom * freedom);
}

base::Error too_few(std::size_t there) {
  return {base::ErrorCode::invalid_argument,
          "no fit of a model of memory contention: it needs measurements with at least 4 different numbers of "
          "computing cores, and has " +
              std::to_string(there)};
}

/// Whether there are enough measurements for a fit.
base::Result<void> enough(std::span<const Sample> samples) {
  std::set<unsigned> cores;
  for (const Sample& sample : samples) {
    if (sample.cores > 0) cores.insert(sample.cores);
    for (std::size_t column = 0; column < 4; ++column)
      if (const double value = sample.*columns[column]; !std::isnan(value) && !(value > 0 && std::isfinite(value)))
        return base::Error{base::ErrorCode::invalid_argument, std::string("a bandwidth of ") + column_names[column] +
                                                                  " with " + std::to_string(sample.cores) +
                                                                  " cores is not positive"};
  }
  if (cores.size() < least_cores) return too_few(cores.size());
  for (std::size_t column = 0; column < 4; ++column)
    if (std::ranges::all_of(
            samples, [&](const Sample& sample) { return std::isnan(sample.*columns[column]) || sample.cores == 0; }))
      return base::Error{
          base::ErrorCode::invalid_argument,
          std::string("no fit of a model of memory contention: there are no measurements of ") + column_names[column]};
  return {};
}

/// The mean of the repetitions, by number of cores.
std::map<unsigned, Sample> means(std::span<const Sample> samples) {
  std::map<unsigned, Sample> mean;
  for (const Sample& sample : samples)
    if (sample.cores > 0) mean[sample.cores].cores = sample.cores;
  for (auto& [cores, sample] : mean)
    for (const auto column : columns) {
      double sum = 0, count = 0;
      for (const Sample& other : samples)
        if (other.cores == cores && !std::isnan(other.*column)) sum += other.*column, ++count;
      sample.*column = count > 0 ? sum / count : Sample::none;
    }
  return mean;
}

}  // namespace

SoftParameters CurveFit::parameters_of(const Candidate& c, const Values& v, unsigned most_cores) {
  SoftParameters p;
  ThresholdParameters& m = p.bus;
  m.n_par_max = c.n_par_max;
  m.n_seq_max = c.n_seq_max;
  m.b_comp_seq_mb_s = v[b_comp];
  m.b_comm_seq_mb_s = v[b_comm];
  // A maximum is a value that is reached: at most what is asked for, and what the bus carries.
  const double asked = most_cores * v[b_comp];
  m.t_par_max_mb_s = std::min(v[t_par], asked + v[b_comm]);
  m.alpha = v[alpha];
  m.delta_l_mb_s = c.n_par_max < c.n_seq_max ? v[delta_l] : 0;
  m.delta_r_mb_s = v[delta_r];
  m.t_par_max2_mb_s =
      c.n_par_max > c.n_seq_max ? v[t_par2] : m.t_par_max_mb_s - m.delta_l_mb_s * (c.n_seq_max - c.n_par_max);
  double reached = 0;
  for (unsigned n = 1; n <= most_cores; ++n) reached = std::max(reached, std::min(n * v[b_comp], total_mb_s(m, n)));
  m.t_seq_max_mb_s = std::min(v[t_seq], reached);
  p.softness = v[softness];
  p.network_weight = v[weight];
  return p;
}

/// The step of a derivative: downwards for a parameter that may be at its upper bound, where a step upwards would
/// change nothing.
double CurveFit::step_of(std::size_t place, const Values& v) {
  switch (place) {
    case t_par:
    case t_seq:
    case t_par2: return -1e-4 * v[place];
    case delta_l:
    case delta_r: return 1e-5 * v[t_par];
    case alpha: return v[place] > 0.5 ? -1e-4 : 1e-4;
    // At 0 a small step changes nothing.
    case weight: return v[place] > 1 ? -1e-3 : v[place] > 0.1 ? 1e-3 : 0.25;
    case softness: return v[place] > 0.25 ? -1e-3 : v[place] > 0.03 ? 1e-3 : 0.02;
    default: return 1e-4 * v[place];
  }
}

Interval CurveFit::interval(const Quantity& quantity) const {
  Interval all{quantity(chosen_), quantity(chosen_)};
  for (const Candidate& c : accepted_) {
    const double here = quantity(parameters_of(c, c.values, most_cores_));
    std::vector<double> gradient;
    for (const std::size_t place : c.free) {
      Values moved = c.values;
      const double step = step_of(place, c.values);
      moved[place] += step;
      gradient.push_back((quantity(parameters_of(c, moved, most_cores_)) - here) / step);
    }
    double variance = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i)
      for (std::size_t k = 0; k < gradient.size(); ++k)
        variance += gradient[i] * gradient[k] * c.covariance[i * gradient.size() + k];
    const double reach = std::sqrt(std::max(0.0, variance) * (slack_ - std::max(0.0, c.sum - least_)));
    all.low = std::min(all.low, here - reach);
    all.high = std::max(all.high, here + reach);
  }
  return all;
}

/// Fits one set of samples.
class CurveFitter {
 public:
  using Candidate = CurveFit::Candidate;
  using Values = CurveFit::Values;

  CurveFitter(std::span<const Sample> samples, BusShape shape) : shape_(shape), mean_(means(samples)) {
    std::map<unsigned, std::size_t> place;
    for (const auto& [cores, sample] : mean_) place[cores] = cores_.size(), cores_.push_back(cores);
    most_cores_ = cores_.back();
    for (const Sample& sample : samples)
      for (std::size_t column = 0; column < 4 && sample.cores > 0; ++column)
        if (!std::isnan(sample.*columns[column]))
          measured_.push_back({place[sample.cores], column, std::log(sample.*columns[column])});
  }

  CurveFit fit() {
    static_assert(place_count == std::tuple_size_v<Values>);
    guess();
    std::vector<Candidate> all = candidates();
    for (Candidate& c : all) minimise_from_two(c);
    estimate_spread(best(all));
    for (Candidate& c : all) minimise(c, 10);
    return result(std::move(all));
  }

 private:
  struct Measured {
    std::size_t place, column;
    double log_value;
  };

  double mean_at(unsigned cores, double Sample::*column) const {
    const auto found = mean_.find(cores);
    return found == mean_.end() ? Sample::none : found->second.*column;
  }
  double total_near(unsigned cores) const {
    double best = start_[t_par];
    unsigned gap = ~0U;
    for (const auto& [n, sample] : mean_) {
      const double total = sample.computation_mb_s + sample.communication_mb_s;
      const unsigned apart = n > cores ? n - cores : cores - n;
      if (!std::isnan(total) && apart < gap) best = total, gap = apart;
    }
    return best;
  }

  /// Sets the start of the search.
  void guess() {
    double per_core = 0, per_core_count = 0, network = 0, network_count = 0, greatest = 0, greatest_total = 0, last = 0;
    for (const auto& [n, sample] : mean_) {
      const double alone = sample.computation_alone_mb_s, total = sample.computation_mb_s + sample.communication_mb_s;
      if (!std::isnan(alone)) {
        if (per_core_count < 2) per_core += alone / n, ++per_core_count;
        greatest = std::max(greatest, alone);
      }
      if (!std::isnan(sample.communication_alone_mb_s)) network += sample.communication_alone_mb_s, ++network_count;
      if (!std::isnan(total)) greatest_total = std::max(greatest_total, total);
      if (!std::isnan(sample.communication_mb_s)) last = sample.communication_mb_s;
    }
    start_[b_comp] = per_core / per_core_count;
    start_[b_comm] = network / network_count;
    start_[t_seq] = greatest;
    start_[t_par] = greatest_total > 0 ? greatest_total : greatest + last;
    start_[alpha] = std::clamp(last / start_[b_comm], 0.02, 0.99);
  }

  void add(std::vector<Candidate>& all, unsigned n_par, unsigned n_seq, bool soft) const {
    Candidate c;
    c.n_par_max = n_par;
    c.n_seq_max = n_seq;
    c.values = start_;
    c.free = {b_comp, b_comm, t_par, t_seq, alpha};
    const double at_seq = total_near(n_seq), at_end = total_near(most_cores_);
    if (n_par < n_seq) {
      c.free.push_back(delta_l);
      c.values[delta_l] = (start_[t_par] - at_seq) / (n_seq - n_par);
    }
    if (n_par > n_seq && n_par < most_cores_) {
      c.free.push_back(t_par2);
      c.values[t_par2] = at_end;
    }
    if (n_seq < most_cores_ && (n_par <= n_seq || n_par + 1 < most_cores_)) {
      c.free.push_back(delta_r);
      if (n_par <= n_seq) c.values[delta_r] = (at_seq - at_end) / (most_cores_ - n_seq);
    }
    if (soft) {
      c.free.insert(c.free.end(), {softness, weight});
      c.values[softness] = 0.1;
      c.values[weight] = 0.8;
    }
    all.push_back(std::move(c));
  }

  /// Candidates for N_par_max: numbers of cores that reach the total, so that they ask for as much, or all of them do
  /// not.
  std::vector<Candidate> candidates() const {
    std::vector<Candidate> all;
    const unsigned stride = (most_cores_ + pairs_per_side - 1) / pairs_per_side;
    const auto reached = static_cast<unsigned>(std::ceil(start_[t_seq] / start_[b_comp] - 0.05));
    for (const bool soft : {false, true}) {
      if (soft && shape_ != BusShape::soft) break;
      for (unsigned n_par = most_cores_ % stride == 0 ? stride : most_cores_ % stride; n_par <= most_cores_;
           n_par += stride) {
        if (n_par < most_cores_ && n_par * start_[b_comp] + start_[b_comm] < (soft ? 0.8 : 0.95) * start_[t_par])
          continue;
        for (unsigned n_seq = n_par; n_seq <= most_cores_; n_seq += stride) add(all, n_par, n_seq, soft);
        // Beyond N_par_max only T_par_max2 and delta_r matter, not N_seq_max: then it is the number of cores that
        // saturates.
        if (n_par > 1) add(all, n_par, std::clamp(reached, 1U, n_par - 1), soft);
      }
    }
    return all;
  }

  double residuals(const Candidate& c, const Values& v, std::vector<double>& r) const {
    const SoftParameters p = CurveFit::parameters_of(c, v, most_cores_);
    predicted_.resize(cores_.size());
    for (std::size_t i = 0; i < cores_.size(); ++i) predicted_[i] = share(p, cores_[i]);
    const double floor = 1e-3 * v[b_comm];
    double sum = 0;
    r.resize(measured_.size());
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      const auto& [place, column, log_value] = measured_[i];
      r[i] = (log_value - std::log(std::max(predicted_[place].*predicted_columns[column], floor))) /
             spread_[kind_of(column)];
      sum += r[i] * r[i];
    }
    return sum;
  }

  void keep_in_bounds(const Candidate& c, Values& v) const {
    for (const std::size_t place : {b_comp, b_comm, t_par, t_seq, t_par2})
      if (start_[place] > 0) v[place] = std::clamp(v[place], 0.05 * start_[place], 20 * start_[place]);
    v[t_par2] = std::clamp(v[t_par2], 0.05 * start_[t_par], 20 * start_[t_par]);
    v[t_par] = std::min(v[t_par], most_cores_ * v[b_comp] + v[b_comm]);
    v[alpha] = std::clamp(v[alpha], 0.0, 1.0);
    v[weight] = std::clamp(v[weight], 0.0, 4.0);
    v[softness] = std::clamp(v[softness], 0.0, 0.5);
    const double steepest = 0.95 * v[t_par] / most_cores_;
    v[delta_l] = std::clamp(v[delta_l], -steepest, steepest);
    v[delta_r] = std::clamp(v[delta_r], -steepest, steepest);
    v[t_seq] = CurveFit::parameters_of(c, v, most_cores_).bus.t_seq_max_mb_s;
  }

  /// The unit of a parameter, so that the equations are well scaled.
  double scale_of(std::size_t place) const {
    switch (place) {
      case delta_l:
      case delta_r: return start_[t_par] / most_cores_;
      case t_par2: return start_[t_par];
      case alpha:
      case weight:
      case softness: return 1;
      default: return start_[place];
    }
  }

  /// 1 / sigma^2 of prior knowledge, in these units: it keeps parameters that the data do not show, and their
  /// covariance finite.
  static double slight_knowledge(std::size_t place) {
    switch (place) {
      case softness: return 16;
      case alpha: return 4;
      case weight: return 0.25;
      case delta_l:
      case delta_r: return 0.04;
      default: return 1;
    }
  }

  /// The greatest total of noisy measurements is too high, and from there a bus may never become full: so a second
  /// start is lower.
  void minimise_from_two(Candidate& c) const {
    Candidate lower = c;
    lower.values[t_par] *= 0.96;
    minimise(c, 20);
    minimise(lower, 20);
    if (lower.sum < c.sum) c = std::move(lower);
  }

  /// Levenberg and Marquardt's method. Leaves the sum and, up to the factor of the residuals' variance, the covariance.
  void minimise(Candidate& c, unsigned most_steps) const {
    const std::size_t n = c.free.size(), count = measured_.size();
    std::vector<double> r, moved, jacobian(count * n), normal(n * n), gradient(n);
    keep_in_bounds(c, c.values);
    c.sum = residuals(c, c.values, r);
    double damping = 1e-3;
    const auto linearise = [&] {
      for (std::size_t j = 0; j < n; ++j) {
        Values v = c.values;
        const double step = CurveFit::step_of(c.free[j], v), unit = step / scale_of(c.free[j]);
        v[c.free[j]] += step;
        residuals(c, v, moved);
        for (std::size_t i = 0; i < count; ++i) jacobian[i * n + j] = (moved[i] - r[i]) / unit;
      }
      std::ranges::fill(normal, 0);
      std::ranges::fill(gradient, 0);
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          gradient[j] -= jacobian[i * n + j] * r[i];
          for (std::size_t k = 0; k <= j; ++k) normal[j * n + k] += jacobian[i * n + j] * jacobian[i * n + k];
        }
      for (std::size_t j = 0; j < n; ++j) normal[j * n + j] += slight_knowledge(c.free[j]);
    };
    linearise();
    for (unsigned steps = 0; steps < most_steps; ++steps) {
      std::vector<double> damped = normal, move = gradient;
      for (std::size_t j = 0; j < n; ++j) damped[j * n + j] *= 1 + damping;
      if (!factor(damped, n)) break;
      solve(damped, n, move);
      Values v = c.values;
      for (std::size_t j = 0; j < n; ++j) v[c.free[j]] += move[j] * scale_of(c.free[j]);
      keep_in_bounds(c, v);
      const double sum = residuals(c, v, moved);
      if (sum < c.sum) {
        const bool settled = c.sum - sum < 1e-5 * (1 + sum);
        c.values = v;
        c.sum = sum;
        r = moved;
        damping = std::max(1e-6, damping / 5);
        linearise();
        if (settled) break;
      } else {
        damping *= 6;
        if (damping > 1e4) break;
      }
    }
    set_covariance(c, std::move(normal));
  }

  void set_covariance(Candidate& c, std::vector<double> normal) const {
    const std::size_t n = c.free.size();
    c.covariance.assign(n * n, 0);
    if (!factor(normal, n)) return;
    for (std::size_t j = 0; j < n; ++j) {
      std::vector<double> column(n, 0.0);
      column[j] = 1;
      solve(normal, n, column);
      for (std::size_t i = 0; i < n; ++i)
        c.covariance[i * n + j] = column[i] * scale_of(c.free[i]) * scale_of(c.free[j]);
    }
  }

  /// The best candidate by Schwarz's criterion; while `spread_` is a guess, by the logarithm of the sum.
  const Candidate& best(const std::vector<Candidate>& all) const {
    const double count = static_cast<double>(measured_.size());
    const auto cost = [&](const Candidate& c) {
      const double misfit = spread_known_ ? c.sum : count * std::log(c.sum / count + least_spread * least_spread);
      return misfit + static_cast<double>(c.free.size()) * std::log(count);
    };
    return *std::ranges::min_element(all, {}, cost);
  }

  void estimate_spread(const Candidate& c) {
    std::vector<double> r;
    residuals(c, c.values, r);
    std::array<double, 2> sums{}, counts{};
    for (std::size_t i = 0; i < r.size(); ++i) {
      sums[kind_of(measured_[i].column)] += r[i] * r[i];
      ++counts[kind_of(measured_[i].column)];
    }
    const double left = std::max(1.0, static_cast<double>(r.size()) - static_cast<double>(c.free.size())) /
                        static_cast<double>(r.size());
    for (std::size_t kind = 0; kind < 2; ++kind)
      spread_[kind] = std::max(least_spread, std::sqrt(sums[kind] / (counts[kind] * left)));
    spread_known_ = true;
  }

  CurveFit result(std::vector<Candidate> all) {
    CurveFit fit;
    const Candidate& chosen = best(all);
    const double freedom =
        std::max(1.0, static_cast<double>(measured_.size()) - static_cast<double>(chosen.free.size()));
    fit.most_cores_ = most_cores_;
    fit.chosen_ = CurveFit::parameters_of(chosen, chosen.values, most_cores_);
    fit.spread_ = spread_;
    fit.least_ = chosen.sum;
    const double t = student_975(freedom);
    fit.slack_ = t * t * std::max(chosen.sum / freedom, 1e-2);
    fit.n_par_max_ = {double(chosen.n_par_max), double(chosen.n_par_max)};
    fit.n_seq_max_ = {double(chosen.n_seq_max), double(chosen.n_seq_max)};
    const auto include = [](Interval& interval, double value) {
      interval.low = std::min(interval.low, value);
      interval.high = std::max(interval.high, value);
    };
    for (Candidate& c : all) {
      if (c.sum > fit.least_ + places_slack * fit.slack_) continue;
      include(fit.n_par_max_, c.n_par_max);
      include(fit.n_seq_max_, c.n_seq_max);
      if (c.sum <= fit.least_ + fit.slack_) fit.accepted_.push_back(std::move(c));
    }
    if (fit.chosen_.bus.n_par_max > fit.chosen_.bus.n_seq_max) {
      const Interval cores =
          fit.interval([](const SoftParameters& p) { return p.bus.t_seq_max_mb_s / p.bus.b_comp_seq_mb_s; });
      include(fit.n_seq_max_, std::max(1.0, std::ceil(cores.low)));
      include(fit.n_seq_max_, std::min(double(most_cores_), std::ceil(cores.high)));
    }
    return fit;
  }

  BusShape shape_;
  std::map<unsigned, Sample> mean_;
  std::vector<unsigned> cores_;
  unsigned most_cores_ = 0;
  std::vector<Measured> measured_;
  Values start_{};
  std::array<double, 2> spread_{1, 1};
  bool spread_known_ = false;
  mutable std::vector<Bandwidths> predicted_;  // memory that is used again
};

base::Result<CurveFit> fit_curve(std::span<const Sample> samples, BusShape shape) {
  if (const auto good = enough(samples); !good) return good.error();
  return CurveFitter(samples, shape).fit();
}

base::Result<ThresholdParameters> pick_maxima(std::span<const Sample> samples) {
  if (const auto good = enough(samples); !good) return good.error();
  const auto mean = means(samples);
  ThresholdParameters m;
  m.alpha = 1;
  double network = 0, count = 0;
  for (const auto& [n, sample] : mean) {
    if (sample.computation_alone_mb_s > m.t_seq_max_mb_s)
      m.t_seq_max_mb_s = sample.computation_alone_mb_s, m.n_seq_max = n;
    if (const double total = sample.computation_mb_s + sample.communication_mb_s; total > m.t_par_max_mb_s)
      m.t_par_max_mb_s = total, m.n_par_max = n;
    if (!std::isnan(sample.communication_alone_mb_s)) network += sample.communication_alone_mb_s, ++count;
  }
  m.b_comm_seq_mb_s = network / count;
  for (const auto& [n, sample] : mean)
    if (!std::isnan(sample.communication_mb_s))
      m.alpha = std::min(m.alpha, sample.communication_mb_s / m.b_comm_seq_mb_s);
  const auto& [fewest, first] = *mean.begin();
  m.b_comp_seq_mb_s = first.computation_alone_mb_s / fewest;
  const auto total_at = [&](unsigned n) { return mean.at(n).computation_mb_s + mean.at(n).communication_mb_s; };
  m.t_par_max2_mb_s = total_at(m.n_seq_max);
  if (m.n_par_max < m.n_seq_max) m.delta_l_mb_s = (m.t_par_max_mb_s - m.t_par_max2_mb_s) / (m.n_seq_max - m.n_par_max);
  const unsigned most = mean.rbegin()->first;
  if (m.n_seq_max < most) m.delta_r_mb_s = (m.t_par_max2_mb_s - total_at(most)) / (most - m.n_seq_max);
  return m;
}

}  // namespace tandem::model::contention
