// tandem/comm/mcast/cost.cpp: the prediction of cost.hpp for each tree and cut, and the smallest one.
#include "tandem/comm/mcast/cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tandem/base/assert.hpp"

namespace tandem::comm {
namespace {

/// A later tree or cut is preferred if it is better by this factor.
constexpr double clearly_better = 0.98;

/// Factor of two strands where they meet at ports; see (3) of cost.hpp.
constexpr double where_strands_meet = 1.15;

/// Class of a size in quarters of an octave: 4 log2(bytes), rounded up, in integers; and the largest size of that
/// class.
struct SizeClass {
  std::uint32_t number;
  std::size_t bytes;
};
SizeClass size_class(std::size_t bytes) {
  if (bytes <= 16) return {static_cast<std::uint32_t>(bytes), bytes};
  const auto octave = static_cast<unsigned>(std::bit_width(bytes - 1));  // 2^(octave - 1) < bytes <= 2^octave
  const std::size_t quarter = std::size_t{1} << (octave - 3);
  const std::size_t quarters = (bytes - 1) / quarter + 1;                // 5 .. 8
  return {octave * 4 + static_cast<std::uint32_t>(quarters - 5), quarters * quarter};
}

/// Class of a queue: 0 for none; else octaves relative to the message, between a sixteenth and sixteen times it.
std::uint32_t queue_class(std::size_t queued, std::size_t bytes) {
  if (queued == 0 || bytes == 0) return 0;
  const double octaves = std::log2(static_cast<double>(queued) / static_cast<double>(bytes));
  return octaves < -4 ? 0 : static_cast<std::uint32_t>(std::lround(std::min(octaves, 4.0)) + 5);
}
std::size_t queued_bytes_of_class(std::uint32_t number, std::size_t bytes) {
  return number == 0 ? 0
                     : static_cast<std::size_t>(std::ldexp(static_cast<double>(bytes), static_cast<int>(number) - 5));
}

}  // namespace

std::uint32_t segment_count(TreeKind kind, std::uint32_t recipients, std::size_t bytes,
                            std::size_t segment_bytes) noexcept {
  const std::size_t part = kind == TreeKind::two_tree && recipients > 1 ? (bytes + 1) / 2 : bytes;
  if (segment_bytes == 0 || part <= segment_bytes) return 1;
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(part / segment_bytes + (part % segment_bytes != 0), UINT32_MAX));
}

void TreeChooser::set_costs(const NetworkCosts& costs) {
  if (costs == costs_) return;
  costs_ = costs;
  known_.fill({});
}

/// Sets the tree's vertices in preorder, in which parents come first and siblings in the order of service.
void TreeChooser::plant(std::uint32_t recipients, const TreeShape& shape) {
  builder_.build(recipients, shape, forest_);
  parents_.strand_count = forest_.strand_count;
  parents_.interleaved = forest_.interleaved;
  parents_.root_children = 0;
  for (std::uint32_t s = 0; s < forest_.strand_count; ++s) {
    const std::vector<RouteNode>& nodes = forest_.strands[s].nodes;
    std::vector<std::uint32_t>& parent = parents_.strands[s];
    parent.assign(1, 0);
    std::uint32_t above = 0;  // vertex i + 1 is nodes[i]; its subtree ends before nodes[i + subtree_size]
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      while (above > 0 && above - 1 + nodes[above - 1].subtree_size <= i) above = parent[above];
      parent.push_back(above);
      if (above == 0) ++parents_.root_children;
      above = i + 1;
    }
  }
}

double TreeChooser::evaluate(const BroadcastLoad& load, const TreeShape& shape, std::size_t segment_bytes) {
  if (load.recipients == 0) return 0;
  const std::uint32_t segments = segment_count(shape.kind, load.recipients, load.bytes, segment_bytes);
  const double strand_bytes = static_cast<double>(load.bytes) / parents_.strand_count;
  const double on_the_wire = strand_bytes / segments / costs_.bytes_per_ns;
  const OnePort port{.send = costs_.per_message_ns + (costs_.receiver_pulls ? 0 : on_the_wire),
                     .latency = costs_.latency_ns,
                     .receive = costs_.receiver_pulls ? on_the_wire : 0,
                     .credit = costs_.receiver_pulls ? 0 : costs_.burst_bytes / costs_.bytes_per_ns,
                     .fast_send = costs_.per_message_ns + strand_bytes / segments / costs_.burst_bytes_per_ns,
                     .segments = segments,
                     .interleaved = parents_.interleaved};
  double network = 0;
  for (std::uint32_t s = 0; s < parents_.strand_count; ++s) {
    const bool alone = parents_.strand_count == 1;
    const RootShare share = alone ? RootShare{} : RootShare{.slots_before = s, .slots = parents_.root_children};
    times_.run(parents_.strands[s], port, share);
    network = std::max(network, times_.finish_of_all());
  }
  if (parents_.strand_count > 1) network *= where_strands_meet;
  const double root_busy = parents_.root_children * segments * port.send;
  network += std::min(root_busy, static_cast<double>(load.queued_bytes) / costs_.bytes_per_ns);
  if (costs_.shared_cores <= 0) return network;
  const double hops = static_cast<double>(load.recipients) * parents_.strand_count;
  const double work = hops * (segments * costs_.cpu_per_message_ns + strand_bytes * costs_.cpu_per_byte_ns);
  return std::cbrt(std::pow(network, 3) + std::pow(work / costs_.shared_cores, 3));
}

double TreeChooser::predict_ns(const BroadcastLoad& load, const TreeShape& shape, std::size_t segment_bytes) {
  TANDEM_ASSERT(shape.kind != TreeKind::two_groups);
  TreeShape plain = shape;
  plain.segments = 1;  // only labels depend on it
  plant(load.recipients, plain);
  return evaluate(load, shape, segment_bytes);
}

/// Evaluates the planted tree with every cut, and keeps the best.
void TreeChooser::try_cuts(const BroadcastLoad& load, const TreeShape& shape, TreeChoice& best) {
  const auto consider = [&](std::size_t segment_bytes) {
    const double predicted = evaluate(load, shape, segment_bytes);
    if (best.predicted_ns > 0 && predicted >= clearly_better * best.predicted_ns) return;
    best = {shape, segment_bytes, predicted};
    best.shape.segments = segment_count(shape.kind, load.recipients, load.bytes, segment_bytes);
  };
  consider(0);
  for (std::size_t size = std::bit_floor(costs_.max_segment_bytes); size >= costs_.min_segment_bytes && size > 0;
       size /= 2)
    if (size < load.bytes && (costs_.burst_bytes <= 0 || static_cast<double>(size) <= costs_.burst_bytes / 2))
      consider(size);
}

TreeChoice TreeChooser::cut(const BroadcastLoad& load, const TreeShape& shape) {
  TANDEM_ASSERT(shape.kind != TreeKind::two_groups);
  TreeShape plain = shape;
  plain.segments = 1;
  plant(load.recipients, plain);
  TreeChoice best;
  try_cuts(load, plain, best);
  return best;
}

TreeChoice TreeChooser::compute(const BroadcastLoad& load) {
  // Shapes by simplicity; where several are the same tree, one stands for them.
  const TreeShape shapes[]{{.kind = TreeKind::flat},
                           {.kind = TreeKind::binomial},
                           {.kind = TreeKind::chain},
                           {.kind = TreeKind::two_tree},
                           {.kind = TreeKind::binary},
                           {.kind = TreeKind::kary, .fanout = 4},
                           {.kind = TreeKind::knomial, .fanout = 4},
                           {.kind = TreeKind::delegate, .below = TreeKind::binomial}};
  TreeChoice best{.shape = {.kind = TreeKind::flat}, .segment_bytes = 0, .predicted_ns = 0};
  for (const TreeShape& shape : shapes) {
    if (load.recipients < 2 && shape.kind != TreeKind::flat) break;
    if (shape.kind == TreeKind::delegate && load.queued_bytes == 0) continue;
    if (shape.kind == TreeKind::two_tree && load.ordered) continue;
    plant(load.recipients, shape);
    try_cuts(load, shape, best);
  }
  return best;
}

TreeChoice TreeChooser::choose(const BroadcastLoad& load) {
  const SizeClass size = size_class(load.bytes);
  const std::uint32_t queue = queue_class(load.queued_bytes, load.bytes);
  const std::uint32_t hash = (load.recipients * 0x9E3779B1u) ^ (size.number * 0x85EBCA6Bu) ^ (queue * 0xC2B2AE35u) ^
                             (load.ordered ? 0x27D4EB2Fu : 0);
  Known& known = known_[hash >> 26];
  if (!known.valid || known.recipients != load.recipients || known.size_class != size.number ||
      known.queue_class != queue || known.ordered != load.ordered) {
    const BroadcastLoad typical{load.recipients, size.bytes, queued_bytes_of_class(queue, size.bytes), load.ordered};
    known = {true, load.recipients, size.number, queue, load.ordered, compute(typical)};
  }
  TreeChoice choice = known.choice;
  choice.shape.segments = segment_count(choice.shape.kind, load.recipients, load.bytes, choice.segment_bytes);
  return choice;
}

}  // namespace tandem::comm
