// tandem/comm/mcast/cost.hpp: how long a broadcast will take, and the tree that takes least. Pure.
//
// Notation of the literature: p ranks, n = p - 1 recipients, m bytes, a + b m the time of a message, L = ceil log2 p, k
// segments.
//
//   flat                n (a + b m)
//   binomial            L (a + b m)
//   pipelined chain     (p - 2 + k) (a + b m / k)            best k = sqrt(b m (p - 2) / a)
//   pipelined binary    about (2 log2 p + 2 (k - 1)) (a + b m / k), so 2 b m for long messages
//   two-tree            b m + 2 a L + sqrt(8 a b m L)        Sanders, Speck, Traeff, 2009; k = sqrt(b m L / 2 a) per half
//   any algorithm       at least max(L a, b m)
//
// We need not choose by these: the one-port recurrence (`one_port.hpp`) gives the time of every tree exactly, in O(n),
// with
//
//   s = o + B / w (B if the sender moves the bytes)     o `per_message_ns`, w `bytes_per_ns`, B the bytes of a segment
//   l = `latency_ns`
//   r = 0                                               or, if the receiver pulls: s = o, r = B / w
//   c = `burst_bytes` / w, q = o + B / `burst_bytes_per_ns`
//
// and three things that it does not know. (1) Ranks may share C cores. With h hops in all, k segments in each, they
// work for
//   T_cpu = h (k u + m d) / C                            u `cpu_per_message_ns`, d `cpu_per_byte_ns`, both ends of a hop together
// which runs beside the network but not freely so: T = (T_net^3 + T_cpu^3)^(1/3), which is the larger one when they
// differ much, and 1.26 times either when they are equal. (2) The root may have y bytes queued for others, with which
// it shares its port evenly, so that what keeps its port busy for x is later by min(x, y / w): this speaks for trees
// with few children of the root. (3) The two strands of a two-tree meet at each receiving port, which nobody schedules:
// what one wins there the other loses, and its port below idles. In network namespaces at 200 Mbit/s, two-trees took
// 1.05 to 1.3 times what the model says, other trees 0.95 to 1.1 times, so that a two-tree's T_net counts 1.15 times.
//
// Worked example (`TreeChooser, WorkedExample`): 38 recipients, 439,296 bytes, 200 Mbit/s (w = 0.025), l = 50 us, o =
// 0, segments of 8 KiB, so s = 325 us. Chain: k = 54, 38 (s + l) + 53 s = 31.5 ms. Two-tree: 27 segments per half; the
// root serves each half every other time, so a period of 2 s; the rank that is reached last has its first segment after
// 11 s + 6 l: in all 11 s + 6 l + 26 * 2 s = 20.8 ms, or 23.9 with the factor of (3), where m / w alone is 17.6 ms.
// When each port passes 64 KiB at once after a rest, at 4 bytes per ns, a chain of segments of 32 KiB has s = 1255 us,
// c = 2621 us, q = 7.8 us: 38 (q + l) + 14 s - c - q = 17.1 ms, and a flat tree as much more as ever.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/comm/mcast/one_port.hpp"
#include "tandem/comm/mcast/tree.hpp"

namespace tandem::comm {

/// What is known of the way between ranks: measured, or a transport's first guess.
struct NetworkCosts {
  double latency_ns = 20'000;       ///< from the end of sending a small segment until the receiver forwards it
  double per_message_ns = 1'000;    ///< time for which a segment keeps its sender's port busy beside its bytes
  double bytes_per_ns = 1;          ///< of one rank's port, one direction
  bool receiver_pulls = false;      ///< the receiver copies (remote reads), so that the sender's port is free at once
  double burst_bytes = 0;           ///< sent beyond a port's rate after a rest (a rate limiter's bucket of tokens)
  double burst_bytes_per_ns = 1;    ///< rate of such a burst
  double cpu_per_message_ns = 0;    ///< work of a segment on one hop, sender and receiver together
  double cpu_per_byte_ns = 0;       ///< work of a byte on one hop, sender and receiver together
  double shared_cores = 0;  ///< cores that all ranks share; 0: each has its own, and its work is in the other costs
  std::size_t min_segment_bytes = 2048;        ///< smaller ones are not considered
  std::size_t max_segment_bytes = 1u << 20;    ///< nor larger ones, but for the whole message
  friend bool operator==(const NetworkCosts&, const NetworkCosts&) = default;
};

/// A broadcast whose tree is to be chosen.
struct BroadcastLoad {
  std::uint32_t recipients = 0;
  std::size_t bytes = 0;
  std::size_t queued_bytes = 0;  ///< at the root, for others, at this priority or above
  bool ordered = false;          ///< recipients of higher priority must have the data first: excludes two_tree
};

/// A tree, and how to cut the message.
struct TreeChoice {
  TreeShape shape;                ///< with the `segments` that follow from the rest
  /// Bytes of each segment but the last; 0: the message (of two_tree: the half) is sent whole.
  std::size_t segment_bytes = 0;
  double predicted_ns = 0;
  friend bool operator==(const TreeChoice& a, const TreeChoice& b) {
    return a.shape.kind == b.shape.kind && a.shape.fanout == b.shape.fanout && a.segment_bytes == b.segment_bytes;
  }
};

/// Segments of each strand when a message is cut; at least 1.
std::uint32_t segment_count(TreeKind kind, std::uint32_t recipients, std::size_t bytes,
                            std::size_t segment_bytes) noexcept;

/// Predicts and chooses. Not thread-safe. A choice costs one look-up when its like was chosen before (same number of
/// recipients, size within a quarter of an octave, queue within an octave of that size), else about 60 predictions of
/// O(recipients) each.
class TreeChooser {
 public:
  explicit TreeChooser(const NetworkCosts& costs) : costs_(costs) {}

  const NetworkCosts& costs() const { return costs_; }
  /// Sets the costs and forgets choices made with others. Callers round what they measure, or no choice is ever found
  /// again.
  void set_costs(const NetworkCosts& costs);

  /// Predicts the time of a tree. `segment_bytes` decides (0: the whole message), `shape.segments` is ignored. Not
  /// two_groups, not automatic.
  double predict_ns(const BroadcastLoad& load, const TreeShape& shape, std::size_t segment_bytes);
  /// The best of flat, binomial, k-nomial, chain, binary, 4-ary and two_tree (unless the load is `ordered`) and, with a
  /// queue at the root, delegate above binomial, over segments of powers of two of half a burst at most. Of trees
  /// within 2 %, the simpler. Decided for the largest message of its size class.
  TreeChoice choose(const BroadcastLoad& load);
  /// The best cut for a given tree: `shape` must be fit for `predict_ns`. Not cached.
  TreeChoice cut(const BroadcastLoad& load, const TreeShape& shape);

 private:
  struct Parents {
    std::array<std::vector<std::uint32_t>, 2> strands;
    std::uint32_t strand_count = 0;
    std::uint32_t root_children = 0;  ///< over all strands
    bool interleaved = false;
  };
  struct Known {
    bool valid = false;
    std::uint32_t recipients = 0;
    std::uint32_t size_class = 0, queue_class = 0;
    bool ordered = false;
    TreeChoice choice;
  };

  void plant(std::uint32_t recipients, const TreeShape& shape);
  double evaluate(const BroadcastLoad& load, const TreeShape& shape, std::size_t segment_bytes);
  void try_cuts(const BroadcastLoad& load, const TreeShape& shape, TreeChoice& best);
  TreeChoice compute(const BroadcastLoad& load);

  NetworkCosts costs_;
  TreeBuilder builder_;
  Forest forest_;
  Parents parents_;
  OnePortTimes times_;
  std::array<Known, 64> known_{};
};

}  // namespace tandem::comm
