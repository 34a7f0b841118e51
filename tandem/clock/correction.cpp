// tandem/clock/correction.cpp: the piecewise-linear function, the two simple methods, and what each method leaves.
#include "tandem/clock/correction.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/clock/correction_fit.hpp"

namespace tandem::clock {
namespace {

using Knot = Correction::Knot;

/// Most halvings of W because of remaining violations.
constexpr int kMostHalvings = 8;

std::vector<SyncPoint> in_order(std::vector<SyncPoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const SyncPoint& a, const SyncPoint& b) { return a.local_ns < b.local_ns; });
  return points;
}

Knot knot_of(const SyncPoint& point) { return {point.local_ns, point.reference_ns}; }

Correction by_offset(const std::vector<SyncPoint>& points) {
  return points.empty() ? Correction() : Correction({knot_of(points.front())});
}

/// The line between the first and the last barrier; without two of them, between the first and the last point of any
/// kind.
Correction by_line(const std::vector<SyncPoint>& points) {
  if (points.empty()) return {};
  const auto barrier = [](const SyncPoint& point) { return point.is_barrier; };
  SyncPoint first = points.front(), last = points.back();
  if (std::count_if(points.begin(), points.end(), barrier) >= 2) {
    first = *std::find_if(points.begin(), points.end(), barrier);
    last = *std::find_if(points.rbegin(), points.rend(), barrier);
  }
  if (first.local_ns == last.local_ns) return Correction({knot_of(first)});
  return Correction({knot_of(first), knot_of(last)});
}

std::vector<Correction> for_all(const TracedClocks& trace, Correction (*method)(const std::vector<SyncPoint>&)) {
  std::vector<Correction> corrections(trace.rank_count());
  for (std::size_t rank = 1; rank < corrections.size(); ++rank) corrections[rank] = method(trace.points[rank]);
  return corrections;
}

Violations violations(const TracedClocks& trace, const std::vector<Correction>& corrections,
                      const CorrectionOptions& options) {
  // Each rank has one cursor for sends and one for receives: a trace has each of the two in order of time, or nearly.
  std::vector<Correction::Cursor> senders(corrections.begin(), corrections.end()), receivers = senders;
  Violations found;
  for (const TracedMessage& message : trace.messages) {
    if (message.sender == message.receiver) continue;
    const std::int64_t sent_ns = senders[message.sender.index()].to_reference(message.send_local_ns);
    const std::int64_t received_ns = receivers[message.receiver.index()].to_reference(message.receive_local_ns);
    const std::int64_t early_ns =
        sent_ns + internal::least_latency_ns(options, trace.rank_count(), message) - received_ns;
    if (early_ns <= 0) continue;
    ++found.count;
    found.worst_ns = std::max(found.worst_ns, early_ns);
  }
  return found;
}

RankCorrectionReport residuals(const std::vector<SyncPoint>& points, const Correction& correction) {
  RankCorrectionReport report{.point_count = points.size(), .corrected = !points.empty()};
  double sum = 0;
  for (const SyncPoint& point : points) {
    const auto residual_ns = static_cast<double>(correction.to_reference(point.local_ns) - point.reference_ns);
    sum += residual_ns * residual_ns;
    report.residual_max_ns = std::max(report.residual_max_ns, std::abs(residual_ns));
  }
  if (!points.empty()) report.residual_rms_ns = std::sqrt(sum / static_cast<double>(points.size()));
  return report;
}

/// Fits, and fits again with shorter windows while violations remain that the points allow to avoid, and that helps.
void fit_piecewise(const TracedClocks& trace, const CorrectionOptions& options, CorrectedClocks& result) {
  const double usual_ns = internal::usual_window_ns(trace);
  double window_ns = options.window_s > 0 ? options.window_s * 1e9 : usual_ns;
  for (int halvings = 0; halvings <= kMostHalvings; ++halvings, window_ns /= 2) {
    internal::FittedClocks fit = internal::fit_clocks(trace, options, {.window_ns = window_ns, .usual_ns = usual_ns});
    std::vector<Correction> corrections(trace.rank_count());
    for (std::size_t rank = 1; rank < corrections.size(); ++rank)
      if (!fit.knots[rank].empty())
        corrections[rank] = Correction(std::move(fit.knots[rank]), Correction::Outside::hold_rate);
    const Violations left = violations(trace, corrections, options);
    CorrectionReport& report = result.report;
    if (halvings > 0 && left.count >= report.after.count) return;
    result.of_rank = std::move(corrections);
    report.after = left;
    report.constraint_count = fit.constraint_count;
    report.inconsistent_count = fit.inconsistent_count;
    report.largest_shift_ns = std::llround(fit.largest_shift_ns);
    report.window_s = window_ns * 1e-9;
    if (left.count <= fit.inconsistent_count) return;
  }
}

}  // namespace

Correction::Correction(std::vector<Knot> knots, Outside outside) : knots_(std::move(knots)) {
  if (knots_.empty()) return;
  rates_.push_back(0);
  for (std::size_t i = 1; i < knots_.size(); ++i) {
    TANDEM_ASSERT(knots_[i].local_ns > knots_[i - 1].local_ns);
    knots_[i].reference_ns = std::max(knots_[i].reference_ns, knots_[i - 1].reference_ns);
    const std::int64_t local_ns = knots_[i].local_ns - knots_[i - 1].local_ns;
    const std::int64_t gained_ns = knots_[i].reference_ns - knots_[i - 1].reference_ns - local_ns;
    rates_.push_back(static_cast<double>(gained_ns) / static_cast<double>(local_ns));
  }
  const bool hold_rate = outside == Outside::hold_rate && knots_.size() > 1;
  if (hold_rate) rates_.front() = rates_[1];
  rates_.push_back(hold_rate ? rates_.back() : 0);
}

std::size_t Correction::segment_of(std::int64_t local_ns) const noexcept {
  const auto after = std::upper_bound(knots_.begin(), knots_.end(), local_ns,
                                      [](std::int64_t ns, const Knot& knot) { return ns < knot.local_ns; });
  return static_cast<std::size_t>(after - knots_.begin());
}

std::int64_t Correction::at(std::size_t segment, std::int64_t local_ns) const noexcept {
  if (knots_.empty()) return local_ns;
  // Only the gain is rounded: it is small, and with a rate of at least -1 the sum never decreases.
  const Knot& from = knots_[segment == 0 ? 0 : segment - 1];
  const std::int64_t elapsed_ns = local_ns - from.local_ns;
  return from.reference_ns + elapsed_ns + std::llround(rates_[segment] * static_cast<double>(elapsed_ns));
}

std::int64_t Correction::Cursor::to_reference(std::int64_t local_ns) noexcept {
  const std::vector<Knot>& knots = correction_->knots_;
  const auto holds = [&](std::size_t segment) {
    return (segment == 0 || knots[segment - 1].local_ns <= local_ns) &&
           (segment == knots.size() || local_ns < knots[segment].local_ns);
  };
  if (!holds(segment_)) {
    const bool next = segment_ < knots.size() && holds(segment_ + 1);
    segment_ = next ? segment_ + 1 : correction_->segment_of(local_ns);
  }
  return correction_->at(segment_, local_ns);
}

CorrectedClocks correct_clocks(const TracedClocks& given, const CorrectionOptions& options) {
  const std::size_t ranks = given.rank_count();
  TANDEM_ASSERT(options.least_latency_of_pair_ns.empty() || options.least_latency_of_pair_ns.size() == ranks * ranks);
  TracedClocks trace{.points = {}, .messages = given.messages};
  for (const auto& points : given.points) trace.points.push_back(in_order(points));
  CorrectedClocks result;
  CorrectionReport& report = result.report;
  for (const TracedMessage& message : trace.messages) {
    TANDEM_ASSERT(message.sender.index() < ranks && message.receiver.index() < ranks);
    report.message_count += message.sender != message.receiver;
  }

  std::vector<Correction> offsets = for_all(trace, by_offset), lines = for_all(trace, by_line);
  report.by_offset = violations(trace, offsets, options);
  report.by_line = violations(trace, lines, options);
  switch (options.method) {
    case CorrectionMethod::none:
      result.of_rank = std::move(offsets);
      report.after = report.by_offset;
      break;
    case CorrectionMethod::linear:
      result.of_rank = std::move(lines);
      report.after = report.by_line;
      break;
    case CorrectionMethod::piecewise:
      fit_piecewise(trace, options, result);
      break;
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    report.ranks.push_back(rank == 0 ? RankCorrectionReport{.corrected = true}
                                     : residuals(trace.points[rank], result.of_rank[rank]));
  }
  return result;
}

}  // namespace tandem::clock
