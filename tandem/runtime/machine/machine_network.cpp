// tandem/runtime/machine/machine_network.cpp: durations of messages between and beyond the known sizes.
#include "tandem/runtime/machine/machine_network.hpp"

#include <algorithm>
#include <cmath>

namespace tandem::runtime {

double MachineNetwork::message_ns(std::size_t bytes) const noexcept {
  const auto above = std::ranges::find_if(times, [bytes](const MessageTimes& one) { return one.bytes >= bytes; });
  if (above == times.end()) return static_cast<double>(bytes) / bytes_per_ns();
  if (above == times.begin()) return above->alone_ns;
  const MessageTimes& below = above[-1];
  const double part = static_cast<double>(bytes - below.bytes) / static_cast<double>(above->bytes - below.bytes);
  return below.alone_ns + part * (above->alone_ns - below.alone_ns);
}

std::int64_t MachineNetwork::latency_ns() const noexcept { return std::llround(times.front().alone_ns); }

double MachineNetwork::marginal_bytes_per_ns() const noexcept {
  const double whole = bytes_per_ns();
  if (times.size() < 2) return whole;
  const MessageTimes &last = times.back(), &before = times[times.size() - 2];
  const double rate = static_cast<double>(last.bytes - before.bytes) / (last.alone_ns - before.alone_ns);
  constexpr double most_apart = 1.5;  // beyond this it is noise
  return rate < most_apart * whole && rate > whole / most_apart ? rate : whole;
}

}  // namespace tandem::runtime
