// tandem/comm/mcast/port_rate.hpp: the rate and the burst of this rank's way out, from when its rails take bytes. Pure.
//
// While there is more to send than the network takes, a rail takes bytes at the network's rate w. Before that it takes
// at once what fits into the socket's buffer, and, behind a rate limiter that was left to rest, a burst of B bytes.
// When one rail refuses, the buffers of those to other ranks may still have room, so bytes count once they have left
// buffers. With x(t) the bytes taken since a rest that ended at t_0, S(t) those of them that are still in buffers, and
// t_1 the first time at which a rail refuses,
//
//   w = (x(t) - S(t) - x(t_1) + S(t_1)) / (t - t_1)        B = x(t_1) - S(t_1) - w (t_1 - t_0)
//
// A busy time that does not end for long has times in which nothing may go: receivers do not answer, or bulk waits for
// what is more urgent, which lasts the longer the slower the port seems. So w is learnt anew from each 512 KiB, between
// two times at which a rail refuses, or bytes are taken while buffers still have some. Those in which the port was idle
// seem slow, and those behind a rest fast, since queues of the host and of a limiter fill up that S does not hold: the
// median of the last 32 is the rate.
//
// Where buffers take nearly everything, so that no rail refuses for long enough, a rate that is not known yet is learnt
// from how they drain behind the last byte, at t_r: w = (S(t_r) - S(t)) / (t - t_r), and B = x(t_r) - S(t_r) -
// w (t_r - t_0). Receivers that have no core make this too slow, so the first busy time that can be learnt
//   from replaces it.
//
// The burst counts only if it was taken at four times the rate at least: without a limiter there is no such bend, and B
// is 0. Worked example (test): 25 bytes per us, a bucket of 64 KiB, a buffer of 32 KiB: refused after 96 KiB, then 25
// bytes per us.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tandem::comm {

/// The median of what was learnt last, the greater one of two. Times do not decrease. Not thread-safe; no allocation.
class PortRate {
 public:
  void took(std::int64_t now_ns, std::size_t bytes);  ///< a rail took bytes
  /// Whether a rail's refusal now would be the first since the rest.
  bool awaits_refusal() const { return taken_ > 0 && since_ns_ < 0; }
  /// Whether `sample` is due, before bytes are taken or when a rail has refused, if the port is busy then.
  bool awaits_sample() const { return taken_since_sample_ >= sample_bytes; }
  /// Learns from what has left since the last sample of this busy time.
  void sample(std::int64_t now_ns, std::size_t unsent_bytes);
  /// A rail could not take more: the port is busy. `unsent_bytes`: those taken that are still in our buffers; 0 for
  /// later refusals.
  void refused(std::int64_t now_ns, std::size_t unsent_bytes);
  /// Whether `rested` needs to know what is in buffers.
  bool awaits_unsent() const { return !known_ || since_ns_ >= 0; }
  /// Ends a busy time: nothing is left to send. `unsent_bytes`: still in our buffers, if it is needed.
  void rested(std::int64_t now_ns, std::size_t unsent_bytes = 0);
  /// When to call `look`, to see how far the buffers have drained; negative: no need.
  std::int64_t look_ns() const { return look_ns_; }
  void look(std::int64_t now_ns, std::size_t unsent_bytes);

  bool known() const { return known_; }
  double bytes_per_ns() const { return bytes_per_ns_; }  ///< 0 until known
  double burst_bytes() const { return burst_bytes_; }    ///< 0 until known, and without a limiter

  static constexpr double least_bytes = 64 * 1024;  ///< that must be taken at the network's rate before it counts
  static constexpr double sample_bytes = 512 * 1024;

 private:
  static constexpr std::size_t most_recent = 32;
  void learn(std::int64_t now_ns, double gone_bytes);

  double taken_ = 0;                  ///< x since the rest
  double taken_since_sample_ = 0;
  std::int64_t began_ns_ = 0;         ///< t_0
  std::int64_t since_ns_ = -1;        ///< t_1, or the last sample; -1: not yet
  double gone_before_ = 0;            ///< x - S then
  bool bends_ = false;                ///< `since_ns_` is t_1, before which a burst may have gone
  std::int64_t look_ns_ = -1;
  std::int64_t rested_ns_ = 0;        ///< t_r
  double unsent_when_rested_ = 0;     ///< S(t_r)
  double gone_when_rested_ = 0;       ///< x(t_r) - S(t_r)
  std::array<double, most_recent> recent_ = {};  ///< rates, the oldest of them overwritten
  std::size_t learnt_ = 0;
  bool known_ = false;
  double bytes_per_ns_ = 0, burst_bytes_ = 0;
};

}  // namespace tandem::comm
