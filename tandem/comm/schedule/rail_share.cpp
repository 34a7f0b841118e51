// tandem/comm/schedule/rail_share.cpp: the system of rail_share.hpp, solved.
#include "tandem/comm/schedule/rail_share.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "tandem/base/assert.hpp"

namespace tandem::comm::internal {
namespace {

/// Values b and s of one rail.
struct Pipe {
  double bandwidth = 1;
  double start_ns = 0;
  bool takes_part = true;

  double carried_until(double end_ns) const noexcept {
    return takes_part ? std::max(0.0, bandwidth * (end_ns - start_ns)) : 0;
  }
  double end_alone_ns(double bytes) const noexcept { return start_ns + bytes / bandwidth; }
};

double guess_of_unknown(std::span<const RailState> rails) noexcept {
  double sum = 0;
  unsigned known = 0;
  for (const RailState& rail : rails) {
    if (rail.bytes_per_ns <= 0) continue;
    sum += rail.bytes_per_ns;
    ++known;
  }
  return known > 0 ? sum / known : 1;
}

/// T of (1). A rail that starts after the common end carries nothing; leaving it out brings the end forward, so that
/// each round leaves out more, until none is left to leave out.
double common_end_ns(std::span<const Pipe> pipes, double bytes) noexcept {
  double end_ns = std::numeric_limits<double>::infinity();
  for (std::size_t round = 0; round <= pipes.size(); ++round) {
    double bandwidth = 0, weighted_start = 0;
    for (const Pipe& pipe : pipes) {
      if (!pipe.takes_part || pipe.start_ns >= end_ns) continue;
      bandwidth += pipe.bandwidth;
      weighted_start += pipe.bandwidth * pipe.start_ns;
    }
    const double next_ns = (bytes + weighted_start) / bandwidth;
    if (!(next_ns < end_ns)) break;
    end_ns = next_ns;
  }
  return end_ns;
}

}  // namespace

double share_of_rail(std::span<const RailState> rails, unsigned rail, std::uint64_t bytes,
                     std::uint64_t least_bytes) noexcept {
  TANDEM_DEBUG_ASSERT(rail < rails.size() && rails.size() <= max_rails);
  const double whole = static_cast<double>(bytes), guess = guess_of_unknown(rails);
  std::array<Pipe, max_rails> storage;
  const std::span<Pipe> pipes(storage.data(), rails.size());
  for (std::size_t r = 0; r < rails.size(); ++r) {
    const double bandwidth = rails[r].bytes_per_ns > 0 ? rails[r].bytes_per_ns : guess;
    const double backlog_ns = static_cast<double>(rails[r].in_flight_bytes) / bandwidth;
    pipes[r] = {.bandwidth = bandwidth, .start_ns = static_cast<double>(rails[r].latency_ns) + backlog_ns};
  }
  const auto best = std::min_element(pipes.begin(), pipes.end(), [whole](const Pipe& a, const Pipe& b) {
    return a.end_alone_ns(whole) < b.end_alone_ns(whole);
  });
  const double all_end_ns = common_end_ns(pipes, whole);
  std::size_t parts = 0;
  for (auto pipe = pipes.begin(); pipe != pipes.end(); ++pipe) {
    pipe->takes_part = pipe == best || pipe->carried_until(all_end_ns) >= static_cast<double>(least_bytes);
    parts += pipe->takes_part;
  }
  if (parts == 1) return pipes[rail].takes_part ? whole : 0;
  return pipes[rail].carried_until(common_end_ns(pipes, whole));
}

}  // namespace tandem::comm::internal
