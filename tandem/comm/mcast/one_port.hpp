// tandem/comm/mcast/one_port.hpp: when each vertex of a broadcast tree has the data, if a rank sends one segment at a
// time.
//
// The model. A message of k equal segments leaves the root, vertex 0. A rank sends one segment at a time, which keeps
// its port busy for s; the segment is at the child l later, and the child needs r to take it in, one at a time too. A
// rank forwards a segment once it has it whole. A port that rested may have credit c (a rate limiter's bucket of
// tokens, as shaped networks have them): what it sends may be ahead of the rate 1 / s by c in all, and then takes only
// q <= s. Without credit, q = s.
//
//   first(v)   when v has its first segment          first(0) = 0
//   finish(v)  when v has its last one               finish(0) = 0: the root has all of them
//   period(v)  between two segments, at the rate     period(0) = 0
//   fast(v)    between two segments, on credit       fast(0) = 0
//
// A vertex v with f children c_0 .. c_(f-1) serves them in this order, in one of two ways.
//
//   Interleaved (segment by segment: to each child segment 0, then to each child segment 1, ...): a round takes f s, or
//   f q on credit, and waits for its segment:
//     first(c_i)  = first(v) + max((i + 1) q, (i + 1) s - c) + l + r
//     fast(c_i)   = max(fast(v), f q, r)              period(c_i) = max(period(v), f s, r)
//     finish(c_i) = the latest of                     first(v) + (i + 1) s - c + (k - 1) f s + l + r   the port is the limit
//                                                     finish(v) + (i + 1) q + l + r                    the parent's finish is
//                                                     first(c_i) + (k - 1) fast(c_i)                   the links are
//   Child by child (all segments to c_0, then all to c_1, ...): c_0 is served while v receives, as above with f = 1;
//   the others from what v then has, without credit. With end_i the time at which all is sent to c_i, which is
//   finish(c_i) - l - r for i =
//     0: first(c_i)  = end_(i-1) + s + l + r             fast(c_i) = period(c_i) = max(s, r)
//     finish(c_i) = first(c_i) + (k - 1) max(s, r)    end_i = end_(i-1) + k s
//
// Without credit these are exact, not bounds: arrivals at each vertex are evenly spaced, by induction from the root.
// (With k = 1 both ways are the textbook's one-port model with whole messages: c_i has it at first(v) + (i + 1) s + l +
// r.) With credit they are exact for a chain, and nearly so elsewhere. Not modelled: that the last segment may be
// shorter; that two strands of a two-tree meet at one receiving port; that credit grows again while a port waits.
//
// Worked examples. A chain of n ranks without credit has finish = n (s + l) + (k - 1) s: for l = 0 the (p - 2 + k) (a +
// b m / k) of the literature with p = n + 1 and s = a + b m / k. With credit for one segment at least, c >= s - q, it
// has n (q + l) + k s
// - c - q or more: a hop costs q instead of s, and a long chain little more than a short one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::comm {

/// Costs of one segment in any unit of time, and how many there are.
struct OnePort {
  double send = 1;      ///< s
  double latency = 0;   ///< l
  double receive = 0;   ///< r
  double credit = 0;    ///< c
  double fast_send = 0;  ///< q; only used with credit
  std::uint32_t segments = 1;
  bool interleaved = false;
};

/// The children that the root serves beside those of this tree, when a message is split over several trees.
struct RootShare {
  std::uint32_t slots_before = 0;  ///< children of other trees that the root serves earlier in each round
  std::uint32_t slots = 0;         ///< children of the root over all trees; 0: those of this tree
};

/// Evaluates the model. Reusable, so that the steady state allocates nothing; not thread-safe.
class OnePortTimes {
 public:
  /// `parent[v] < v` for v > 0; siblings are served in increasing order of v. O(vertices). A `share` asks for
  /// `interleaved`.
  void run(std::span<const std::uint32_t> parent, const OnePort& port, RootShare share = {});

  double first(std::uint32_t v) const { return vertices_[v].first; }
  double finish(std::uint32_t v) const { return vertices_[v].finish; }
  double finish_of_all() const;  ///< 0 when there is the root only

 private:
  struct Vertex {
    double first, finish, period, fast;
    double end;               ///< child by child: when all was sent to the last child so far
    std::uint32_t children;   ///< how many there are
    std::uint32_t served;     ///< how many the pass has seen
  };
  void serve_rounds(const Vertex& from, Vertex& to, std::uint32_t children, std::uint32_t index) const;

  OnePort port_;
  std::vector<Vertex> vertices_;
};

}  // namespace tandem::comm
