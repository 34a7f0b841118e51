// tandem/model/transfers/transfer_model.cpp: curves through the measured sizes.
#include "tandem/model/transfers/transfer_model.hpp"

#include <algorithm>
#include <cmath>

#include "tandem/model/line_sums.hpp"

namespace tandem::model {
namespace {

constexpr double kLeastErrorOfSize = 0.01;  ///< of a mean, relative
constexpr double kReach = 16;               ///< the curve is known within this factor of a measured size
constexpr double kOpenByLoad = 0.5;         ///< relative deviation where the curve of a full load is not known
constexpr unsigned kMakeAfter = 16;

}  // namespace

std::vector<TransferCurve::Node> TransferCurve::known_sizes() const {
  std::vector<Node> nodes;
  for (const SizeModel::Entry& entry : sizes_.entries()) {
    const Estimate duration = entry.history.estimate();
    if (!duration.known) continue;
    const double count = static_cast<double>(std::min<std::uint64_t>(duration.samples, History::kWindow));
    const double error = std::max(duration.deviation_ns / std::sqrt(count), kLeastErrorOfSize * duration.mean_ns);
    nodes.push_back({static_cast<double>(entry.footprint.bytes), duration.mean_ns,
                     duration.deviation_ns / duration.mean_ns, 1 / (error * error), duration.samples});
  }
  return nodes;
}

std::optional<AffineLink> TransferCurve::affine() const {
  const std::vector<Node> nodes = known_sizes();
  if (nodes.size() < 2) return {};
  const double scale = std::max(1.0, nodes.back().bytes);
  LineSums sums;
  for (const Node& node : nodes) sums.add(node.bytes / scale, node.mean_ns, node.weight);
  const auto [slope, latency] = sums.best();
  double misfit = 0;
  for (const Node& node : nodes) {
    const double difference = latency + slope * node.bytes / scale - node.mean_ns;
    misfit += node.weight * difference * difference;
  }
  const double excess = nodes.size() > 2 ? std::max(1.0, misfit / static_cast<double>(nodes.size() - 2)) : 1;
  AffineLink link{.latency_ns = latency, .latency_error_ns = std::sqrt(excess * sums.wuu / sums.determinant())};
  if (slope > 0) {
    link.bytes_per_ns = scale / slope;
    link.bytes_per_ns_error = link.bytes_per_ns * std::sqrt(excess * sums.w / sums.determinant()) / slope;
  }
  return link;
}

void TransferCurve::make_curve() {
  curve_.clear();
  // Each block is a series of sizes with one mean; a size that descends joins the blocks before it.
  struct Block {
    double weight, mean_ns;
    std::size_t sizes;
  };
  std::vector<Block> blocks;
  const std::vector<Node> nodes = known_sizes();
  for (const Node& node : nodes) {
    blocks.push_back({node.weight, node.mean_ns, 1});
    while (blocks.size() > 1 && blocks.back().mean_ns < blocks[blocks.size() - 2].mean_ns) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& before = blocks.back();
      before.mean_ns = (before.weight * before.mean_ns + last.weight * last.mean_ns) / (before.weight + last.weight);
      before.weight += last.weight;
      before.sizes += last.sizes;
    }
  }
  std::size_t next = 0;
  for (const Block& block : blocks)
    for (std::size_t i = 0; i < block.sizes; ++i, ++next) {
      curve_.push_back(nodes[next]);
      curve_.back().mean_ns = block.mean_ns;
    }
}

/// The slope in ns per byte, between the first, or last, size and the next one that differs by a factor of two.
double TransferCurve::slope_at(bool begin) const {
  const Node& end = begin ? curve_.front() : curve_.back();
  const auto is_far = [&](const Node& node) {
    return begin ? node.bytes >= 2 * end.bytes : 2 * node.bytes <= end.bytes;
  };
  const auto slope_to = [&](const Node& node) { return (node.mean_ns - end.mean_ns) / (node.bytes - end.bytes); };
  if (begin) {
    const auto next = std::find_if(curve_.begin() + 1, curve_.end(), is_far);
    return next != curve_.end() ? slope_to(*next) : 0;
  }
  const auto next = std::find_if(curve_.rbegin() + 1, curve_.rend(), is_far);
  return next != curve_.rend() ? slope_to(*next) : 0;
}

Estimate TransferCurve::estimate(std::uint64_t bytes) {
  if (added_ >= made_at_) {
    make_curve();
    made_at_ = added_ + kMakeAfter;
  }
  if (curve_.empty()) return sizes_.find(bytes) != nullptr ? sizes_.find(bytes)->estimate() : Estimate{};
  const double size = std::max(static_cast<double>(bytes), 1.0);
  const auto above = std::lower_bound(curve_.begin(), curve_.end(), size,
                                      [](const Node& node, double s) { return node.bytes < s; });
  const Node& high = above == curve_.end() ? curve_.back() : *above;
  const Node& low = above == curve_.begin() ? curve_.front() : *(above - 1);
  Estimate estimate{.samples = low.samples};
  double deviation = std::max(low.deviation, high.deviation), reach = 1;
  if (&low != &high) {
    estimate.mean_ns = low.mean_ns + (high.mean_ns - low.mean_ns) * (size - low.bytes) / (high.bytes - low.bytes);
    estimate.samples += high.samples;
  } else {
    const double edge = std::max(low.bytes, 1.0);
    reach = std::max(size / edge, edge / size);
    deviation *= 1 + std::log2(reach);
    const double slope = slope_at(size < edge);
    estimate.mean_ns = size >= edge ? low.mean_ns + slope * (size - edge)
                                    : std::max(low.mean_ns - slope * (edge - size), low.mean_ns * size / edge);
  }
  estimate.deviation_ns = deviation * estimate.mean_ns;
  estimate.known = (curve_.back().bytes >= 2 * curve_.front().bytes || reach <= 1) && reach <= kReach &&
                   deviation <= kKnownDeviation;
  return estimate;
}

Estimate TransferModel::estimate(std::uint64_t bytes, double load) {
  const double part = std::clamp(load, 0.0, 1.0);
  const Estimate free = alone.estimate(bytes), full = loaded.estimate(bytes);
  if (free.known && full.known)
    return {.mean_ns = free.mean_ns + part * (full.mean_ns - free.mean_ns),
            .deviation_ns = free.deviation_ns + part * (full.deviation_ns - free.deviation_ns),
            .samples = free.samples + full.samples,
            .known = true};
  Estimate other = full.known ? full : free;
  const double open = kOpenByLoad * other.mean_ns * (full.known ? 1 - part : part);
  other.deviation_ns = std::hypot(other.deviation_ns, open);
  return other;
}

}  // namespace tandem::model
